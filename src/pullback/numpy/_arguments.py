"""What every function of `pullback.numpy` does with its arguments, in the order in which it does it.

1. `check_arraylike`: arrays, tracers, NumPy values and Python scalars pass; lists and strings are refused, since
   converting them silently would hide slow element-by-element copies.
2. `as_array`: a NumPy value or Python scalar becomes an Array; Python scalars stay weakly typed.
3. `promote` / `promote_inexact` / `promote_numeric`: one dtype for all arguments, by the lattice of `util.dtypes`.
4. `align_ranks`: arguments are broadcast to one shape; scalars are left to lax, which takes them beside any shape.

The rest are the checks shared by reducers and shape functions: axes, `out=`, static integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback import lax
from pullback._ext import _core
from pullback.core import Array as AnyArray
from pullback.core import Tracer, hooks, typeof, types
from pullback.core.dimensions import Dimension
from pullback.core.dimensions import index as size_of
from pullback.core.explain import shown, type_shown
from pullback.core.kinds import is_arraylike
from pullback.lax.elementwise.bits import convert as lax_convert
from pullback.sharding import NamedSharding, PartitionSpec
from pullback.util import dtypes
from pullback.util.config import config
from pullback.util.errors import ConcretizationTypeError, UnhashableArgumentError, UnsupportedArgumentError
from pullback.util.static import is_hashable
from pullback.util.warning import warn, warn_if_real

Array = _core.Array
PYTHON_SCALARS = (bool, int, float, complex)
PYTHON_SCALAR_TYPES = frozenset(PYTHON_SCALARS)
_BOOL = np.dtype(bool)


# ---- 1. what counts as an array


def check_arraylike(name: str, *args: Any) -> None:
    """Raises TypeError naming the function, the type that came and its position, if an argument is not array-like."""
    for position, arg in enumerate(args):
        if not is_arraylike(arg):
            hint = "; convert it first with asarray" if isinstance(arg, (list, tuple)) else ""
            if isinstance(arg, dict):
                hint = "; jax.tree.map applies a function to each array of a tree"
            raise TypeError(
                f"{name} requires ndarray or scalar arguments, got {type_shown(arg)} at position {position}{hint}."
            )


def check_no_float0(name: str, *args: Any) -> None:
    """Raises TypeError if an argument has dtype float0, the tangent type of integers, on which nothing is computed."""
    for arg in args:
        if getattr(arg, "dtype", None) == dtypes.float0:
            raise TypeError(
                f"{name}: an argument has dtype float0, which marks the tangents of integers and booleans and holds no "
                "numbers. Where zeros are meant, make them: jnp.zeros(x.shape)."
            )


# ---- 2. conversion


def as_array(x: Any) -> Any:
    """Array or Tracer with the value of the array-like x; a Python scalar becomes weakly typed."""
    kind = type(x)
    if kind is Array:
        return x
    if kind in PYTHON_SCALAR_TYPES:
        dtype = dtypes.dtype_of(x)
        if kind is int and not -(2**31) <= x < 2**31:
            _check_int(x)
        return make_array(x, dtype, kind is not bool)
    if isinstance(x, (Array, Tracer)):
        return x
    if kind is np.ndarray or isinstance(x, (np.ndarray, np.generic)):
        return make_array(x)
    if isinstance(x, AnyArray):
        return x
    if hasattr(x, "__jax_array__"):
        return as_array(x.__jax_array__())
    if isinstance(x, PYTHON_SCALARS) and not isinstance(x, np.generic):  # subclasses such as enum.IntEnum
        kind = next(k for k in PYTHON_SCALARS if isinstance(x, k))
        return as_array(kind(x))  # type: ignore[arg-type]
    return make_array(x)


def make_array(x: Any, dtype: Any = None, weak: bool = False) -> Any:
    """Array with the value of a NumPy array or scalar, of its canonical dtype or the one given."""
    return hooks.asarray(x, dtype, weak)


def const(x: Any, value: Any) -> Any:
    """Scalar of x's dtype and weak type, to be broadcast by lax."""
    aval = x.aval
    if dtypes.canonicalize_dtype(aval.dtype, True) != aval.dtype:  # made where 64 bits were enabled
        return hooks.exactly(np.asarray(value, aval.dtype)[()])
    return make_array(value, aval.dtype, aval.weak_type)


def arrays(name: str, *args: Any) -> list[Any]:
    """The arguments, checked and converted."""
    check_arraylike(name, *args)
    return [as_array(x) for x in args]


def as_enabled(x: Any) -> Any:
    """The array in 32 bits if its type has 64 where these are not enabled: results of reductions have such types."""
    dtype = x.aval.dtype
    canonical = dtypes.canonicalize_dtype(dtype, True)
    return x if canonical == dtype else lax.convert_element_type(x, canonical)


def dtype_of(x: Any) -> np.dtype:
    """dtype of an array-like, after canonicalization."""
    return x.dtype if isinstance(x, (Array, Tracer)) else dtypes.dtype_of(x)


def is_weak(x: Any) -> bool:
    """Whether x is weakly typed: a Python scalar, or an array computed from Python scalars alone."""
    if isinstance(x, (Array, Tracer)):
        return x.aval.weak_type
    return dtypes.is_weak(x)


def convert(x: Any, dtype: Any, weak: bool = False) -> Any:
    """x with the dtype and weak type given; x itself if it has them."""
    if not isinstance(x, (Array, Tracer)):
        if type(x) in PYTHON_SCALAR_TYPES:
            return _scalar(x, np.dtype(dtype), weak)
        x = as_array(x)
    aval = x.aval
    if aval.dtype == dtype:
        if aval.weak_type == weak:
            return x
    else:
        if aval.dtype.kind == "c":
            warn_if_real(aval.dtype, np.dtype(dtype))
        if not weak:
            return lax_convert(x, dtype)
    return lax.convert_element_type_p.bind(x, new_dtype=np.dtype(dtype), weak_type=weak, sharding=None)


def _check_int(x: int) -> None:
    """OverflowError if the default integer does not hold a Python integer."""
    dtype = dtypes.dtype_of(x)
    if not dtypes.iinfo(dtype).min <= x <= dtypes.iinfo(dtype).max:
        raise OverflowError(f"Python int {x} too large to convert to {dtype}{dtypes.hint_of_64_bits(x, dtype)}")


def _scalar(x: Any, dtype: np.dtype, weak: bool) -> Any:
    """Python scalar as an Array of this dtype; an integer that the default integer holds, but dtype does not, wraps."""
    if type(x) is int and dtype.kind not in "biu" and not -(2**31) <= x < 2**31:
        _check_int(x)
    if type(x) is int and dtype.kind in "iu":
        limits = np.iinfo(dtype)
        if not limits.min <= x <= limits.max:
            return lax.convert_element_type(make_array(x, dtypes.dtype_of(x), True), dtype)
    if type(x) is float and dtype.kind in "iu" and not 0 <= x < 127:
        # The nearest integer of the dtype, 0 for NaN: C and NumPy leave this open.
        return lax.convert_element_type(make_array(x, np.dtype(np.float32)), dtype)
    if not weak and dtypes.canonicalize_dtype(dtype) != dtype:
        return hooks.exactly(np.asarray(x, dtype)[()])
    return make_array(x, dtype, weak)


# ---- 3. promotion


def promote_dtypes(*args: Any) -> list[Any]:
    """The array-likes, all converted to the dtype and weak type that the promotion lattice gives."""
    if len(args) < 2:
        return [as_array(x) for x in args]
    dtype, weak = dtypes.lattice_result_type(*args)
    return [convert(x, dtype, weak) for x in args]


def product_type(element_type: Any, *operands: Any) -> tuple[Any, bool]:
    """The type of products and whether it is weak: the one asked for, or what operands are promoted to.

    The operands keep their own types, as in JAX's programs, which libraries read: the equation says that of the result.
    """
    return (element_type, False) if element_type is not None else dtypes.lattice_result_type(*operands)


def promote_dtypes_inexact(*args: Any) -> list[Any]:
    """As promote_dtypes; booleans and integers become the default float."""
    dtype, weak = dtypes.lattice_result_type(*args)
    dtype = dtypes.to_inexact_dtype(dtype)
    return [convert(x, dtype, weak) for x in args]


def plain_float(x: Any) -> Any:
    """A Python integer that the default integer does not hold as a Python float: for arguments that become floats."""
    return float(x) if type(x) is int and not -(2**31) <= x < 2**31 else x


def promote_dtypes_numeric(*args: Any) -> list[Any]:
    """As promote_dtypes; booleans become the default integer."""
    dtype, weak = dtypes.lattice_result_type(*args)
    dtype = dtypes.to_numeric_dtype(dtype)
    return [convert(x, dtype, weak) for x in args]


def of_operands(x: Any, *operands: Any) -> Any:
    """x, weakly typed only if all operands are; the lattice makes an integer array and a Python float weak."""
    return x if all(type(o) is bool or is_weak(o) for o in operands) else convert(x, x.dtype, False)


def of_scalars(x: Any, *operands: Any) -> Any:
    """As `of_operands`, but weakly typed only as a scalar: constants fill arrays, which are then strongly typed."""
    return of_operands(x, *operands) if x.ndim == 0 else convert(x, x.dtype, False)


def to_complex_dtype(dtype: Any) -> np.dtype:
    """complex64 for floats up to 32 bit, complex128 for float64; a complex dtype itself."""
    if dtypes.issubdtype(dtype, np.complexfloating):
        return np.dtype(dtype)
    return np.dtype(np.complex128 if np.dtype(dtype) == np.float64 else np.complex64)


def to_real_dtype(dtype: Any) -> np.dtype:
    """dtype of the real part of a complex dtype; any other dtype itself."""
    dtype = np.dtype(dtype)
    return np.zeros((), dtype).real.dtype if dtype.kind == "c" else dtype


def _check_operands(name: str, args: tuple[Any, ...]) -> None:
    """TypeError for what is no array, for float0, and for keys beside arrays of another dtype."""
    check_arraylike(name, *args)
    check_no_float0(name, *args)
    kinds = [getattr(x, "dtype", None) for x in args]
    if any(isinstance(kind, dtypes.ExtendedDType) and kind != kinds[0] for kind in kinds) or (
        isinstance(kinds[0], dtypes.ExtendedDType) and len({*kinds}) > 1
    ):
        raise TypeError(f"{name} does not accept dtypes {', '.join(str(dtype_of(x)) for x in args)} together")


def promote(name: str, *args: Any) -> list[Any]:
    """Checked, of one dtype, of compatible ranks: ready for an n-ary lax function."""
    _check_operands(name, args)
    return align_ranks(name, promote_dtypes(*args))


def promote_inexact(name: str, *args: Any) -> list[Any]:
    """As promote, of one floating-point or complex dtype."""
    _check_operands(name, args)
    return align_ranks(name, promote_dtypes_inexact(*args))


def promote_numeric(name: str, *args: Any) -> list[Any]:
    """As promote, of one dtype that is not bool."""
    _check_operands(name, args)
    return align_ranks(name, promote_dtypes_numeric(*args))


# ---- 4. broadcasting


def align_ranks(name: str, args: list[Any]) -> list[Any]:
    """Arrays of one rank, by leading axes of size 1, but for scalars, which lax takes beside arrays of any shape.

    Raises ValueError if the shapes cannot be broadcast, TypeError if they cannot although their ranks are equal.
    """
    shapes = [x.shape for x in args]
    first = shapes[0]
    if all(shape == first for shape in shapes):
        return args
    check_rank_promotion(name, shapes)
    nonscalar = {shape for shape in shapes if shape}
    if len(nonscalar) < 2:
        return args
    rank = len(shape_of_operands(name, shapes))
    return [broadcast_to(x, (1,) * (rank - x.ndim) + x.shape) if x.shape else x for x in args]


def shape_of_operands(name: str, shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """As `broadcast_shapes_of`, but for lengths that do not go together in shapes of one rank a TypeError."""
    try:
        return broadcast_shapes_of(name, shapes)
    except ValueError:
        if len({len(s) for s in shapes if s}) > 1:
            raise
        text = ", ".join(str(s) for s in shapes)
        raise TypeError(f"{name} got incompatible shapes for broadcasting: {text}.") from None


def broadcast_shapes_of(name: str, shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The shape to which the shapes broadcast; ValueError showing all of them if there is none."""
    rank = max((len(s) for s in shapes), default=0)
    result = [1] * rank
    for shape in shapes:
        for axis, length in enumerate(shape, start=rank - len(shape)):
            if length != 1 and result[axis] != length:
                if result[axis] != 1:
                    raise ValueError(
                        f"Incompatible shapes for broadcasting: shapes={[tuple(s) for s in shapes]} ({name}: "
                        f"lengths {result[axis]} and {length} meet in axis {axis - rank})"
                    )
                result[axis] = length
    return tuple(result)


def check_rank_promotion(name: str, shapes: Sequence[tuple[int, ...]], core: Sequence[int] | None = None) -> None:
    """Warns, or raises ValueError, of arrays whose ranks differ, as jax_numpy_rank_promotion has it.

    Scalars go with all. `core` has how many of each shape's last axes are not broadcast, and so not counted.
    """
    if config.jax_numpy_rank_promotion == "allow":
        return
    if len({len(s) - k for s, k in zip(shapes, core or [0] * len(shapes)) if s}) < 2:
        return
    text = ", ".join(str(s) for s in shapes)
    if config.jax_numpy_rank_promotion == "raise":
        raise ValueError(
            f"{name}: shapes {text} could not be broadcast together: their ranks differ, and under "
            "jax_numpy_rank_promotion='raise' rank promotion is an error. Insert the axes by x[None] or "
            "jnp.expand_dims, or set the option to 'allow'."
        )
    warn(
        f"{name}: automatic rank promotion put axes of length 1 in front of the shorter of shapes {text}. Insert them "
        "by x[None] or jnp.expand_dims, or silence this by jax_numpy_rank_promotion='allow'.",
    )


def broadcast_to(x: Any, shape: Sequence[int]) -> Any:
    """x broadcast to the shape by NumPy's rule; ValueError if that is not possible."""
    x = as_array(x)
    shape = tuple(shape)
    if x.shape == shape:
        return x
    rank = len(shape)
    if x.ndim > rank:
        raise ValueError(f"Cannot broadcast shape {x.shape} to {shape}, which has fewer dimensions")
    offset = rank - x.ndim
    for axis, length in enumerate(x.shape):
        if length != shape[offset + axis] and length != 1:
            raise ValueError(
                f"Incompatible types for broadcasting: an array of shape {x.shape} does not fill {shape}, as length "
                f"{length} of axis {axis} cannot become {shape[offset + axis]}"
            )
    return lax.broadcast_in_dim(x, shape, range(offset, rank))


def broadcast_arrays(name: str, *args: Any) -> list[Any]:
    """The arrays, all broadcast to their common shape."""
    shapes = [x.shape for x in args]
    if all(s == shapes[0] for s in shapes):
        return list(args)
    shape = broadcast_shapes_of(name, shapes)
    spread = [broadcast_to(x, shape) for x in args]
    return types.cut_alike(list(zip(args, spread)), shape) if types.in_use() else spread


def broadcast_alike(name: str, *args: Any) -> list[Any]:
    """As `broadcast_arrays`; explicit axes that cut any of the arrays cut all, also where shapes are the same."""
    spread = broadcast_arrays(name, *args)
    return types.cut_alike(list(zip(spread, spread)), spread[0].shape) if types.in_use() else spread


def beside(x: Any, results: tuple[Any, ...]) -> tuple[Any, ...]:
    """Results that were found from the values of x, on its device, or whole on its mesh."""
    place = getattr(x, "_device", None)
    if place is None:
        return results
    if isinstance(place, NamedSharding):
        place = place.update(spec=PartitionSpec())
    return tuple(hooks.device_put(r, place) for r in results)


# ---- checks of static arguments


def refuse_out(name: str, out: Any) -> None:
    """Arrays are immutable, so that nothing can be written into `out`: NotImplementedError unless it is None."""
    if out is not None:
        if not is_arraylike(out):
            raise UnsupportedArgumentError(
                f"{name}: argument 'out' must be None, got {out!r} of type {type(out).__name__}"
            )
        raise NotImplementedError(f"The 'out' argument to jnp.{name} is not supported.")


def canonical_axis(
    name: str, axis: Any, rank: int, argument: str = "axis", error: type[Exception] = np.exceptions.AxisError
) -> int:
    """Axis as a number from 0 to rank - 1; the error (a ValueError and an IndexError) if it is out of bounds, TypeError
    if it is not an integer.
    """
    number = static_int(axis, f"{name}: argument '{argument}'")
    if not -rank <= number < rank:
        accepted = f"expected {-rank} to {rank - 1}" if rank else "a scalar has no axes"
        raise error(
            f"axis {number} is out of bounds for {name}, whose array has rank {rank} "
            f"(argument '{argument}'; {accepted})"
        )
    return number + rank if number < 0 else number


def canonical_axes(name: str, axis: Any, rank: int, argument: str = "axis") -> tuple[int, ...]:
    """None (all axes), one axis or a sequence of different ones, as a tuple of numbers from 0 to rank - 1, in order
    given.
    """
    if axis is None:
        return tuple(range(rank))
    if is_integer(axis):
        return (canonical_axis(name, axis, rank, argument),)
    if isinstance(axis, Tracer):
        raise ConcretizationTypeError(axis, f"{name}: argument '{argument}' must be static")
    try:
        given = tuple(axis)
    except TypeError:
        raise TypeError(
            f"{name}: argument '{argument}' must be an integer or a sequence of integers, got {axis!r} of type "
            f"{type(axis).__name__}"
        ) from None
    axes = tuple(canonical_axis(name, a, rank, argument) for a in given)
    if len(set(axes)) != len(axes):
        raise ValueError(f"duplicate value in 'axis': {given} ({name})")
    return axes


def is_integer(x: Any) -> bool:
    """True for what can serve as a static integer, arrays of rank 0 and integer dtype included."""
    if isinstance(x, (bool, int, np.integer, Dimension)):
        return True
    if isinstance(x, (Array, np.ndarray)):
        return x.ndim == 0 and dtypes.issubdtype(x.dtype, np.integer)
    return not isinstance(x, (Tracer, Sequence)) and hasattr(x, "__index__")


def static_int(x: Any, context: str) -> int:
    """The value of a static integer; ConcretizationTypeError with the context for a traced one."""
    if type(x) is int:
        return x
    if isinstance(x, Tracer):
        said = "must be known while tracing; under jit, mark what it comes from static (static_argnums)"
        raise ConcretizationTypeError(x, f"{context} {said}")
    try:
        return size_of(x)
    except TypeError:
        kind = TypeError if is_hashable(x) else UnhashableArgumentError
        raise kind(f"{context} must be an integer, got {shown(x)}") from None


def concrete_or_error(x: Any, context: str) -> Any:
    """x, if its value is known now; ConcretizationTypeError with the context if it is a tracer, or a list with one."""
    if isinstance(x, Tracer):
        value = x.to_concrete()
        if value is None:
            raise ConcretizationTypeError(x, context)
        return value
    if isinstance(x, (list, tuple)):
        known = [concrete_or_error(part, context) for part in x]
        return tuple(known) if isinstance(x, tuple) else known
    return x


def canonical_shape(shape: Any, context: str = "") -> tuple[int, ...]:
    """Shape given as an integer or a sequence of integers, as a tuple; TypeError for anything else."""
    if is_integer(shape) and not isinstance(shape, bool):
        shape = (shape,)
    try:
        result = () if isinstance(shape, (dict, set, str)) else tuple(shape)
        sizes = tuple(d if type(d) is int else size_of(d) for d in result)
        if not isinstance(shape, (dict, set, str)):
            if any(type(d) is int and d >= 2**63 for d in sizes):
                raise OverflowError(
                    f"a shape's lengths are below 2**63, got {sizes}{f' ({context})' if context else ''}"
                )
            return sizes
    except TypeError:
        pass
    except ConcretizationTypeError:
        pass
    shown = tuple(shape) if isinstance(shape, (list, tuple)) else shape
    hint = ""
    shown = repr(shown) if isinstance(shown, str) else shown
    members = shown if isinstance(shown, tuple) else (shown,)
    if any(isinstance(d, Tracer) for d in members):
        hint = (
            "\nName the argument that the shape depends on in `static_argnums`, or compute the shape outside of `jit`."
        )
        why = next(d for d in members if isinstance(d, Tracer)).provenance()
        hint += f"\n{why}" if why else ""
        if isinstance(shown, Tracer):
            shown = (shown,)
    raise TypeError(
        f"Shapes must be 1D: an integer or a sequence of integers, all with known values; got "
        f"{shown}.{f' ({context})' if context else ''}{hint}"
    )


def describe(x: Any) -> str:
    """Short text of an array's type, as f32[2,3], for messages."""
    return typeof(x).short()
