"""Types of array elements: names, canonical types, promotion with weak types, limits, and the `issubdtype` tree.

Promotion is a lattice: each type has edges to the types it may become, and two types meet in the least type that both
can reach. Python scalars are types of their own in it (`int*`, `float*`, `complex*`), below the arrays' types of their
kind, so `int8_array + 1` stays int8: such values are *weakly typed*. See the "type promotion" page of JAX's
documentation.

The types there are, their families and the edges of the lattice are in `_element_types`.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import Any

import ml_dtypes
import numpy as np

from pullback.util.tracebacks import api_boundary, shorten

from . import config as _config
from ._element_types import (
    _ABOVE,
    _ALL,
    _BOOL,
    _COMPLEX,
    _CUSTOM_FLOATS,
    _CUSTOM_INTS,
    _D,
    _DTYPES,
    _HELD,
    _INTS,
    _KIND,
    _PYTHON_SCALARS,
    _SHORT,
    _SMALL_FLOATS,
    _SUPPORTED,
    _UINTS,
    _X32,
)
from ._element_types import DType as DType
from ._element_types import ExtendedDType as ExtendedDType
from ._element_types import bfloat16 as bfloat16
from ._element_types import extended as extended
from ._element_types import float0 as float0
from ._element_types import float4_e2m1fn as float4_e2m1fn
from ._element_types import float8_e3m4 as float8_e3m4
from ._element_types import float8_e4m3 as float8_e4m3
from ._element_types import float8_e4m3b11fnuz as float8_e4m3b11fnuz
from ._element_types import float8_e4m3fn as float8_e4m3fn
from ._element_types import float8_e4m3fnuz as float8_e4m3fnuz
from ._element_types import float8_e5m2 as float8_e5m2
from ._element_types import float8_e5m2fnuz as float8_e5m2fnuz
from ._element_types import float8_e8m0fnu as float8_e8m0fnu
from ._element_types import int2 as int2
from ._element_types import int4 as int4
from ._element_types import prng_key as prng_key
from ._element_types import python_scalar_dtypes as python_scalar_dtypes
from ._element_types import uint2 as uint2
from ._element_types import uint4 as uint4
from .errors import Explained, UnhashableArgumentError
from .warning import warn


class TypePromotionError(Explained, ValueError):
    """Operands of an operation have types with no implicit promotion to a common one: convert one with `.astype`."""


TypePromotionError.__module__ = "pullback.dtypes"


def kind_of(dtype: DType) -> str:
    """One letter: b(ool), i(nt), u(int), f(loat), c(omplex), V (float0) or k (extended); '?' for what arrays cannot
    hold."""
    kind = _KIND.get(dtype)
    if kind is None:
        kind = "k" if isinstance(dtype, ExtendedDType) else "?"
    return kind


def is_extended(dtype: Any) -> bool:
    """Whether `dtype` is a type that NumPy does not have."""
    return isinstance(dtype, ExtendedDType)


@lru_cache(maxsize=256)
def singleton(dtype: np.dtype) -> np.dtype:
    """NumPy's own object for a dtype. Equal ones are made by pickles, of metadata, and for `long long`; what asks them
    for `isbuiltin`, `char` or `num` gets another answer."""
    if dtype.num >= 256:  # of ml_dtypes
        return np.dtype(dtype.type)
    return np.dtype(dtype.str) if dtype.kind in "biufc" else dtype


def short_name(dtype: Any) -> str:
    """The name used in printed types: 'f32', 'i32', 'bool', 'u8', 'c64', 'bf16', 'f8_e4m3fn', 'float0', 'key<fry>'."""
    if isinstance(dtype, ExtendedDType):
        return dtype.name
    if dtype == float0:
        return "float0"
    name = np.dtype(dtype).name
    return _SHORT.get(name, name)


@api_boundary
def itemsize_bits(dtype: Any) -> int:
    """Bits of one element; 2 and 4 for the small integers, 8 for bool."""
    if isinstance(dtype, ExtendedDType):
        return dtype.itemsize * 8
    dtype = as_dtype(dtype)
    if dtype in _CUSTOM_INTS:
        return iinfo(dtype).bits
    if dtype == _SMALL_FLOATS[0]:
        return 4
    return dtype.itemsize * 8


# --------------------------------------------------------------------------------------------- from objects to dtypes


def as_dtype(spec: Any) -> DType:
    """The dtype that a user's `dtype=` argument means, not canonicalized. None means float64.

    Accepts dtypes, scalar types (NumPy's, ml_dtypes', Python's), names, and objects with a `dtype` attribute.
    Raises TypeError for what is not a dtype.
    """
    if isinstance(spec, _DTYPES):
        return spec
    if isinstance(spec, str) and spec in _BY_NAME:
        return _BY_NAME[spec]
    inner = None if isinstance(spec, str) else getattr(spec, "dtype", None)  # names chosen from arrays of them, too
    if isinstance(spec, np.ndarray):
        raise TypeError(f"a dtype is expected, got an array; give its dtype, of {spec!r}")
    if isinstance(inner, _DTYPES):
        return inner
    if isinstance(spec, (list, dict, tuple)):  # NumPy's way to write types with fields, of which there are none here
        raise TypeError(f"Cannot interpret {spec!r} as a data type")
    try:
        return np.dtype(spec)
    except TypeError as error:
        raise TypeError(f"{error}{_meant(spec)}") from None


def _meant(spec: Any) -> str:
    """What was probably meant by something that is not a dtype, for messages."""
    if isinstance(spec, str):
        import difflib  # 3 ms

        names = ["bool", "int", "float", "complex", *(name for name in _BY_NAME if name != "float0")]
        close = difflib.get_close_matches(spec, names, n=1)
        return f"; did you mean '{close[0]}'?" if close else ""
    if isinstance(spec, int):
        return "; sizes of several dimensions go into one tuple"
    return ""


_BY_NAME = {d.name: d for d in _ALL}
_BY_NAME["float0"] = float0


@api_boundary
def canonicalize_dtype(dtype: Any, allow_extended_dtype: bool = False) -> Any:
    """The type actually used for `dtype`: with x64 off, 64-bit types become their 32-bit ones.

    None and Python's types give the default types. Raises TypeError for what is not a dtype.
    """
    if isinstance(dtype, ExtendedDType):
        if not allow_extended_dtype:
            raise ValueError(f"canonicalize_dtype: {dtype} is an extended type, which is not accepted here")
        return dtype
    dtype = as_dtype(dtype)
    if _config.x64_enabled():
        return dtype
    return _X32.get(dtype, dtype)


def held_as(dtype: np.dtype) -> np.dtype | None:
    """The canonical type of NumPy's elements of this type; None where arrays cannot hold it, and for float0."""
    return _HELD[_config.x64_enabled()].get(dtype)


def is_weak(x: Any) -> bool:
    """Whether `x` is weakly typed: a Python int, float or complex, or an array or tracer made from them alone."""
    t = type(x)
    if t in _PYTHON_SCALARS:
        return True
    if t is bool or isinstance(x, (np.ndarray, np.generic)):
        return False
    weak = getattr(x, "weak_type", None)
    if weak is None:
        aval = getattr(x, "aval", None)
        if aval is not None:
            return bool(getattr(aval, "weak_type", False))
        known = isinstance(x, _PYTHON_SCALARS) and not isinstance(x, bool) and not hasattr(x, "dtype")
        return known or hasattr(t, "dimension_as_value")
    return bool(weak)


def dtype_of(x: Any, canonicalize: bool = True) -> Any:
    """The dtype of a value: array, tracer, NumPy array or scalar, Python scalar, or anything with a `dtype`.

    Raises TypeError if `x` has none.
    """
    t = type(x)
    dtype: Any = python_scalar_dtypes.get(t)
    if dtype is None:
        dtype = getattr(x, "dtype", None)
        if not isinstance(dtype, _DTYPES):
            aval = getattr(x, "aval", None)
            dtype = getattr(aval, "dtype", None)
            if not isinstance(dtype, _DTYPES):
                dtype = next((d for s, d in python_scalar_dtypes.items() if isinstance(x, s)), None)
        if dtype is None and hasattr(t, "dimension_as_value"):  # a symbolic dimension, in the place of an int
            dtype = python_scalar_dtypes[int]
        if dtype is None:
            raise TypeError(f"Cannot determine dtype of {x}: expected an array or a number, got {t.__name__}")
    if not canonicalize or _config.x64_enabled():
        return dtype
    return _X32.get(dtype, dtype)


@api_boundary
def scalar_type_of(x: Any) -> type:
    """The Python scalar type (bool, int, float or complex) of the kind of `x`, a value or a dtype.

    Raises TypeError for other kinds.
    """
    if isinstance(x, type) and x in python_scalar_dtypes:
        return x
    if isinstance(x, (str, type, np.dtype, ExtendedDType)):
        dtype = as_dtype(x)
    else:
        dtype = dtype_of(x)
    found = {"b": bool, "i": int, "u": int, "f": float, "c": complex}.get(kind_of(dtype))
    if found is None:
        raise TypeError(
            f"scalar_type_of: {x} has dtype {dtype}, which is not of a bool, integer, float or complex kind"
        )
    return found


# ------------------------------------------------------------------------------------------------------ the type tree

_CUSTOM_PARENT: dict[Any, type] = {}
for _d in [*_SMALL_FLOATS, _D(bfloat16)]:
    _CUSTOM_PARENT[_d] = np.floating
for _d in _INTS[:2]:
    _CUSTOM_PARENT[_d] = np.signedinteger
for _d in _UINTS[:2]:
    _CUSTOM_PARENT[_d] = np.unsignedinteger


def issubdtype(arg1: Any, arg2: Any) -> bool:
    """NumPy's `issubdtype` over all types of this library: bfloat16 and its like are `np.floating`, int4 is
    `np.signedinteger`, keys are `prng_key`, which is `extended`. Raises TypeError for what is not a dtype.
    """
    if type(arg2) is type:  # most often a class of NumPy's tree
        try:
            return _subdtypes[arg1, arg2]
        except (KeyError, TypeError):
            pass
    try:
        found = _issubdtype(arg1, arg2)
    except Exception as error:
        shorten(error, sys._getframe())
        raise
    if type(arg2) is type and isinstance(arg1, (np.dtype, type)):
        _subdtypes[arg1, arg2] = found
    return found


_subdtypes: dict[tuple[Any, type], bool] = {}


def _issubdtype(a: Any, b: Any) -> bool:
    if isinstance(a, ExtendedDType):
        if isinstance(b, ExtendedDType):
            return a is b
        return isinstance(b, type) and issubclass(a.type, b)
    if isinstance(b, ExtendedDType):
        return False
    if isinstance(a, type) and issubclass(a, extended):
        return isinstance(b, type) and issubclass(a, b)
    if isinstance(b, type) and issubclass(b, extended):
        as_dtype(a) if not isinstance(a, type) else None
        return False
    if not (isinstance(a, type) and issubclass(a, np.generic)):
        a = as_dtype(a)
    else:
        a = _D(a) if _is_concrete(a) else a
    if not (isinstance(b, type) and issubclass(b, np.generic) and not _is_concrete(b)):
        b = as_dtype(b)
    if isinstance(b, np.dtype):
        if b == float0 or b in _CUSTOM_PARENT or (isinstance(a, np.dtype) and (a == float0 or a in _CUSTOM_PARENT)):
            return isinstance(a, np.dtype) and a == b
        return bool(np.issubdtype(a, b))
    if isinstance(a, np.dtype):
        if a == float0:
            return b in (np.generic, np.void, np.flexible)
        if a in _CUSTOM_PARENT:
            return issubclass(_CUSTOM_PARENT[a], b)
    return bool(np.issubdtype(a, b))


def _is_concrete(scalar_type: type) -> bool:
    return scalar_type in _CONCRETE


_CONCRETE = frozenset({d.type for d in _ALL})


# ---------------------------------------------------------------------------------------------------------- promotion


@lru_cache(maxsize=4096)
def _join(mode: str, nodes: frozenset[Any], order: tuple[Any, ...]) -> Any:
    """The least common node above `nodes`; `order` is how the operands came, for the message."""
    above = _ABOVE[mode]
    for node in nodes:
        if node not in above:
            extended = not isinstance(node, (np.dtype, type))  # keys
            raise (TypeError if extended else ValueError)(
                f"dtype={node!r} is not a valid dtype for type promotion: {_where(order)}"
            )
    common = frozenset.intersection(*[above[n] for n in nodes])
    for node in common:
        if above[node] == common:
            return node
    names = tuple(str(n) if isinstance(n, type) else n.name for n in dict.fromkeys(order))
    text = f"There is no available implicit dtype promotion of {names}"
    if mode == "strict":
        raise TypePromotionError(
            f"{text} when jax_numpy_dtype_promotion=strict. Convert the operands explicitly, as in "
            "x.astype('float32'), or set jax_numpy_dtype_promotion=standard."
        )
    if any(n in _CUSTOM_INTS for n in nodes if not isinstance(n, type)):
        why, example = "2-bit and 4-bit integers do not promote implicitly", "int32"
    elif any(n in _CUSTOM_FLOATS for n in nodes if not isinstance(n, type)):
        why, example = "8-bit and 4-bit floats do not promote implicitly", "float32"
    else:
        why, example = "the types have no common one", "float32"
    raise TypePromotionError(f"{text}: {why}. Convert explicitly, as in x.astype('{example}').")


def _where(order: tuple[Any, ...]) -> str:
    return "operands were " + ", ".join(str(n) for n in order)


def _node_of(x: Any) -> Any:
    """The lattice node of an operand (a value, a dtype, a name, or a Python scalar type), and check that arrays can
    hold it."""
    t = type(x)
    if t in _PYTHON_SCALARS:
        return t
    if t is bool:
        return _BOOL
    if t is type and x in _PYTHON_SCALARS:
        return x
    if x is None:
        return float
    dtype: Any
    weak = False
    if isinstance(x, (str, type, np.dtype, ExtendedDType)):
        dtype = as_dtype(x)
        # jnp.float64 has a dtype, as arrays do, and what has one is made narrower in silence; names are not.
        if isinstance(x, (str, type)) and dtype in _X32 and not isinstance(getattr(x, "dtype", None), np.dtype):
            dtype = check_user_dtype_supported(dtype, "dtype")
    else:
        dtype = dtype_of(x, canonicalize=False)
        weak = is_weak(x)
        if weak and not hasattr(x, "dtype"):  # a subclass of int, float or complex
            return scalar_type_of(dtype)
    if weak:
        kind = _KIND.get(dtype)
        return _BOOL if kind == "b" else {"i": int, "u": int, "f": float, "c": complex}.get(kind or "", dtype)
    if not _config.x64_enabled():
        dtype = _X32.get(dtype, dtype)
    if dtype not in _SUPPORTED and dtype != float0 and not isinstance(dtype, ExtendedDType):
        raise TypeError(
            f"Value '{x}' is not a valid JAX type: its dtype is {dtype}, and arrays hold numbers and booleans."
        )
    return dtype


def _of_node(node: Any) -> tuple[Any, bool]:
    weak = isinstance(node, type)
    dtype = python_scalar_dtypes[node] if weak else node
    if not _config.x64_enabled():
        dtype = _X32.get(dtype, dtype)
    return dtype, weak


def lattice_result_type(*args: Any) -> tuple[Any, bool]:
    """The promoted (dtype, weak_type) of values, dtypes or scalar types, canonicalized.

    Raises TypePromotionError where the lattice has no least common type, TypeError for what has no dtype, and
    ValueError for types outside the lattice (keys, float0) beside others.
    """
    if len(args) == 1:
        return _of_node(_node_of(args[0]))
    order = tuple([_node_of(a) for a in args])
    nodes = frozenset(order)
    if len(nodes) == 1:
        return _of_node(order[0])
    return _of_node(_join(_config.value_of("jax_numpy_dtype_promotion"), nodes, order))


def result_type(*args: Any, return_weak_type_flag: bool = False) -> Any:
    """The promoted dtype of values, dtypes or scalar types, canonicalized; with `return_weak_type_flag`, (dtype, weak).

    Raises ValueError without arguments, and as `lattice_result_type`.
    """
    try:
        if not args:
            raise ValueError("at least one array or dtype is required")
        dtype, weak = lattice_result_type(*args)
    except Exception as error:
        shorten(error, sys._getframe())
        raise
    return (dtype, weak) if return_weak_type_flag else dtype


def promote_types(a: Any, b: Any) -> Any:
    """The promoted dtype of two dtypes, not canonicalized; `int`, `float` and `complex` are Python scalars.

    Raises TypePromotionError as `result_type`.
    """
    nodes = [spec if isinstance(spec, type) and spec in _PYTHON_SCALARS else as_dtype(spec) for spec in (a, b)]
    joined = _join(_config.value_of("jax_numpy_dtype_promotion"), frozenset(nodes), tuple(nodes))
    return python_scalar_dtypes[joined] if isinstance(joined, type) else joined


def _float_for(dtype: Any) -> Any:
    """The float of as many bits as an integer, but no fewer than 32."""
    return canonicalize_dtype(np.float64) if itemsize_bits(dtype) == 64 else _D("float32")


def to_inexact_dtype(dtype: Any) -> Any:
    """Floats and complex stay; 64-bit integers become float64 (with x64), bool and other integers float32."""
    dtype = as_dtype(dtype)
    return dtype if kind_of(dtype) in "fc" else _float_for(dtype)


def to_floating_dtype(dtype: Any) -> Any:
    """Floats stay; complex becomes its real type; bool and integers become floats as by `to_inexact_dtype`."""
    dtype = as_dtype(dtype)
    if kind_of(dtype) == "c":
        return finfo(dtype).dtype
    return dtype if kind_of(dtype) == "f" else _float_for(dtype)


def to_complex_dtype(dtype: Any) -> Any:
    """complex128 for 64-bit types (when x64 is on), else complex64."""
    dtype = to_inexact_dtype(dtype)
    return canonicalize_dtype(_COMPLEX[1] if dtype in (_D("float64"), _D("complex128")) else _COMPLEX[0])


def to_numeric_dtype(dtype: Any) -> Any:
    """bool becomes int32; all others stay."""
    dtype = as_dtype(dtype)
    return _D("int32") if dtype == _BOOL else dtype


# ------------------------------------------------------------------------------------------------------------- limits


finfo: Any = ml_dtypes.finfo  # as in JAX: classes for all types, NumPy's own among them
iinfo: Any = ml_dtypes.iinfo


# --------------------------------------------------------------------------------------------------- users' arguments


def is_supported(dtype: Any) -> bool:
    """Whether arrays can hold elements of this dtype (float0 included, byte-swapped types not)."""
    return isinstance(dtype, ExtendedDType) or dtype in _SUPPORTED or dtype == float0


_of_scalar_type: dict[type, np.dtype] = {}  # those seen that mean the same whether x64 is on or not


def check_user_dtype_supported(dtype: Any, fun_name: str | None = None) -> Any:
    """Check a user's `dtype=` argument of function `fun_name`, and return the canonical dtype.

    Raises TypeError for types that arrays cannot hold. Warns (UserWarning) when an explicit 64-bit type becomes a
    32-bit one; `int`, `float` and `complex` mean the default types, without a warning.
    """
    if isinstance(dtype, np.dtype) and dtype in _SUPPORTED and dtype not in _X32:
        return dtype
    if isinstance(dtype, ExtendedDType):
        return dtype
    if isinstance(dtype, type):
        if (found := _of_scalar_type.get(dtype)) is not None:
            return found
        if dtype in python_scalar_dtypes:
            return canonicalize_dtype(dtype)
    if hasattr(dtype, "shape") and hasattr(dtype, "dtype") and not isinstance(dtype, (type, np.dtype, np.generic)):
        kind = UnhashableArgumentError if isinstance(dtype, np.ndarray) else ValueError
        given = f"an array of type {dtype.dtype}{list(dtype.shape)}"
        meant = "give its dtype, or put several arrays into one sequence"
        raise kind(f"{fun_name or 'dtype'}: a dtype is expected, got {given}; {meant}")
    if isinstance(dtype, (list, dict)):
        raise UnhashableArgumentError(f"{fun_name or 'dtype'}: a dtype is expected, got {dtype!r}")
    try:
        resolved = as_dtype(dtype)
    except TypeError as error:
        where = f"{fun_name}: argument 'dtype' must be a dtype: " if fun_name else ""
        raise TypeError(f"{where}{error}") from None
    if isinstance(resolved, ExtendedDType):
        return resolved
    if resolved not in _SUPPORTED and resolved != float0:
        where = f" in {fun_name}" if fun_name else ""
        raise TypeError(f"JAX only supports number and bool dtypes here; dtype {dtype} came{where}")
    canonical = canonicalize_dtype(resolved)
    if canonical != resolved:
        mode = _config.value_of("jax_explicit_x64_dtypes")
        where = f" requested in {fun_name}" if fun_name else ""
        text = (
            f"Explicitly requested dtype {resolved.name}{where} is not available: with 64-bit types off it becomes "
            f"{canonical.name}. To keep 64 bits, set the option jax_enable_x64 or the environment variable "
            "JAX_ENABLE_X64."
        )
        if mode == "error":
            raise ValueError(text)
        if mode == "warn":
            warn(text, UserWarning)
    elif isinstance(dtype, type) and resolved in _SUPPORTED and resolved not in _X32:
        _of_scalar_type[dtype] = resolved
    return canonical


def fitting_integer(value: int, dtype: Any) -> int:
    """The integer; OverflowError unless the integer dtype holds it. One of less than a byte keeps its lowest bits."""
    wrapped = wrapped_integer(value, dtype)
    if wrapped != value and iinfo(dtype).bits >= 8:
        raise OverflowError(f"Python integer {value} out of bounds for {dtype}")
    return wrapped


def wrapped_integer(value: int, dtype: Any) -> int:
    """The integer that has the lowest bits of another, in an integer dtype."""
    limits = iinfo(dtype)
    low = int(limits.min)
    return (value - low) % (1 << limits.bits) + low


def hint_of_64_bits(x: int, dtype: Any) -> str:
    """What to add to the error for an integer that integers of 64 bits would hold."""
    fits = itemsize_bits(dtype) < 64 and -(2**63) <= x < 2**63
    return "; integers of 64 bits are enabled by jax.config.update('jax_enable_x64', True)" if fits else ""


def python_scalar_to_numpy(x: Any, dtype: Any = None) -> np.ndarray:
    """A Python (or NumPy) scalar as a 0-d array of `dtype` (default: the canonical type of its kind).

    Raises OverflowError for an int that does not fit; NumPy scalars wrap instead.
    """
    if dtype is None:
        target: Any = canonicalize_dtype(python_scalar_dtypes.get(type(x)) or dtype_of(x))
    else:
        target = as_dtype(dtype)
    if isinstance(x, int) and not isinstance(x, (bool, np.generic)) and kind_of(target) in "iu":
        limits = iinfo(target)
        if not int(limits.min) <= x <= int(limits.max):
            raise OverflowError(
                f"Python int {x} too large to convert to {target.name}{hint_of_64_bits(x, target)}"
                if dtype is None
                else f"Python integer {x} out of bounds for {target.name}"
            )
    with np.errstate(over="ignore", invalid="ignore"):
        if target in _SUPPORTED and isinstance(x, complex) and kind_of(target) != "c":
            return np.asarray(x.real, target)
        return np.asarray(x).astype(target)
