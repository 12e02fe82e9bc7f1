"""Abstract values: what a trace knows of an array before it has numbers.

`ShapedArray` objects are interned: equal ones are the same object, so the call cache and the rules' caches compare and
hash them by identity.
"""

from __future__ import annotations

import math
import operator
import sys
from typing import Any

import numpy as np

from pullback._ext import _core
from pullback.core.dimensions import Dimension
from pullback.sharding import AxisType, ManualAxisType, Mesh, NamedSharding, PartitionSpec
from pullback.sharding._current import get_abstract_mesh
from pullback.sharding._shardings import MemorySpace, Sharding
from pullback.sharding._specs import names_of, of_cotangents, says_something, spec_in_full, state_of
from pullback.util import dtypes
from pullback.util.errors import class_shown
from pullback.util.locks import Lock


class AbstractValue:
    """Base of the types of traced values."""

    __slots__ = ()

    def str_short(self, short_dtypes: bool = False) -> str:
        """As text."""
        return str(self)

    def short(self) -> str:
        """As in programs as text: f32[2,3]."""
        return self.str_short(True)


_no_axes: frozenset = frozenset()


class ShapedArray(AbstractValue):
    """Shape, dtype and weak type of an array; interned.

    `dtype` is a `numpy.dtype` or an extended dtype (a PRNG key type); `weak_type` says that the dtype came from a
    Python scalar and gives way in promotion. Three more facts are there while functions are traced, and gone when
    programs are compiled: `placing`, the NamedSharding along explicit axes, `vma`, the axes of shard_map along which a
    value varies, and `memory_space`, which memory it is said to lie in (core/types.py).
    """

    __slots__ = ("shape", "dtype", "weak_type", "ndim", "size", "placing", "vma", "memory_space", "__weakref__")
    shape: tuple[int, ...]
    dtype: Any
    weak_type: bool
    ndim: int
    size: int
    placing: Any
    vma: frozenset
    memory_space: MemorySpace

    def __new__(cls, shape, dtype, weak_type: bool = False, *, sharding=None, memory_space=None, **_: Any):
        if sharding is not None or memory_space is not None:
            return _as_said(ShapedArray(shape, dtype, weak_type), sharding, memory_space)
        if not (isinstance(dtype, np.dtype) or dtypes.is_extended(dtype)):
            dtype = np.dtype(dtype)
        key = (shape, dtype, weak_type)
        try:
            found = _interned.get(key)
        except TypeError:  # a list as shape
            found = None
        if found is not None:
            return found
        try:
            shape = tuple([d if isinstance(d, Dimension) else operator.index(d) for d in shape])
        except TypeError:
            raise TypeError(
                f"Shapes must be 1D sequences: an integer known while tracing for each dimension; got {shape!r}."
            ) from None
        # The first of equal dtypes is that of all arrays of this type.
        own = dtypes.singleton(dtype) if isinstance(dtype, np.dtype) else dtype
        return _intern((shape, own, bool(weak_type)))

    def __setattr__(self, name, value):
        raise AttributeError(f"ShapedArray is immutable; can't set '{name}'")

    def __reduce__(self):
        if self.is_typed:
            return typed, (self.untyped, self.placing, self.vma, self.memory_space)
        return ShapedArray, (self.shape, self.dtype, self.weak_type)

    @property
    def is_typed(self) -> bool:
        """Whether the type says anything of meshes, or of the host's memory."""
        return self.placing is not None or bool(self.vma) or self.memory_space is not MemorySpace.Device

    @property
    def untyped(self) -> ShapedArray:
        """The type without what it says of meshes and memory."""
        return ShapedArray(self.shape, self.dtype, self.weak_type) if self.is_typed else self

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __len__(self):
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    @property
    def sharding(self) -> NamedSharding:
        """Over the mesh in force, or one without axes where there is none: no dimension is cut, as far as is known."""
        if self.placing is not None:
            return self.placing
        return NamedSharding(get_abstract_mesh(), PartitionSpec(*[None] * self.ndim))

    @property
    def manual_axis_type(self) -> ManualAxisType:
        """The axes of shard_map along which values of this type vary."""
        return ManualAxisType(self.vma)

    mat = manual_axis_type

    def update(self, shape=None, dtype=None, weak_type=None, memory_space=None, sharding=None, **_: Any) -> ShapedArray:
        """The aval with some fields replaced; of another shape, nothing is known of how it is cut."""
        new = ShapedArray(
            self.shape if shape is None else shape,
            self.dtype if dtype is None else dtype,
            self.weak_type if weak_type is None else weak_type,
        )
        if not self.is_typed and memory_space is None and sharding is None:
            return new
        placing = self.placing if new.shape == self.shape else None
        new = typed(new, placing, self.vma, self.memory_space if memory_space is None else memory_space)
        return new if sharding is None else _as_said(new, sharding, None)

    # Of arrays, what the types above them (core/high.py) have.

    def lo_ty(self) -> list[ShapedArray]:
        """The types of the arrays that such a value is made of: itself."""
        return [self]

    def lower_val(self, hi_val: Any) -> list[Any]:
        """The arrays that a value is made of: itself."""
        return [hi_val]

    def raise_val(self, *lo_vals: Any) -> Any:
        """The value that is made of these arrays: the one."""
        (value,) = lo_vals
        return value

    def normalize(self) -> ShapedArray:
        """The type as functions take it."""
        return self

    def strip_weak_type(self) -> ShapedArray:
        """The aval with `weak_type` False."""
        return self.update(weak_type=False) if self.weak_type else self

    def to_tangent_aval(self) -> ShapedArray:
        """The aval of a tangent of such a value: itself for floats and complex, float0 for the rest."""
        return tangent_aval(self)

    at_least_vspace = to_tangent_aval

    def to_cotangent_aval(self) -> ShapedArray:
        """The aval of a cotangent of such a value: as a tangent's, over the axes of a mesh of the other state."""
        aval = tangent_aval(self)
        placing = aval.placing
        if placing is None or not (placing.spec.unreduced or placing.spec.reduced):
            return aval
        return typed(aval, placing.update(spec=of_cotangents(placing.spec)), aval.vma, aval.memory_space)

    to_ct_aval = to_cotangent_aval

    def str_short(self, short_dtypes: bool = False, mesh_axis_types: bool = False) -> str:
        """Such as float32[2,3], or f32[2,3] with `short_dtypes`; with `mesh_axis_types` the kinds of the mesh's axes
        follow.
        """
        name = dtypes.short_name(self.dtype) if short_dtypes else getattr(self.dtype, "name", str(self.dtype))
        kinds = ""
        if mesh_axis_types:
            mesh = self.sharding.mesh
            named = list(zip(mesh.axis_names, mesh.axis_types))
            axes = {kind.name: tuple(n for n, t in named if t is kind) for kind in mesh.axis_types}
            kinds = f"({{{', '.join(f'{kind}: {names}' for kind, names in axes.items())}}})"
        return f"{name}{self._memory()}[{self._extents()}]{self._varying()}{kinds}"

    def _memory(self) -> str:
        return "" if self.memory_space is MemorySpace.Device else f"<{self.memory_space.name.lower()}>"

    def _extents(self) -> str:
        if self.placing is None:
            return ",".join(map(str, self.shape))

        def shown(extent, part):
            names = names_of(part)
            if not names:
                return str(extent)
            return f"{extent}@{names[0] if len(names) == 1 else '(' + ','.join(map(str, names)) + ')'}"

        return ",".join(map(shown, self.shape, self.placing.spec))

    def _varying(self) -> str:
        unreduced, reduced = state_of(self)
        found = [("V", self.vma), ("U", unreduced), ("R", reduced)]
        shown = [f"{kind}:{_names(axes)}" for kind, axes in found if axes]
        return f"{{{', '.join(shown)}}}" if shown else ""

    def __str__(self):
        name = getattr(self.dtype, "name", str(self.dtype))
        return f"{'~' if self.weak_type else ''}{name}{self._memory()}[{self._extents()}]{self._varying()}"

    def __repr__(self):
        name = "float0" if self.dtype == dtypes.float0 else getattr(self.dtype, "name", self.dtype)
        return f"ShapedArray({name}{self._memory()}[{self._extents()}]{self._varying()}" + (
            ", weak_type=True)" if self.weak_type else ")"
        )


def _names(axes: frozenset) -> str:
    names = ",".join(sorted(map(str, axes)))
    return names if len(axes) == 1 else f"({names})"


def typed(
    aval: ShapedArray, placing: NamedSharding | None, vma: frozenset, memory_space: MemorySpace = MemorySpace.Device
) -> ShapedArray:
    """The aval, saying how values are cut along explicit axes, along which axes of shard_map they vary, and in which
    memory they lie.
    """
    global any_typed, any_placed
    if placing is None and not vma and memory_space is MemorySpace.Device:
        return aval.untyped
    any_typed = True
    any_placed = any_placed or placing is not None
    key = (aval.shape, aval.dtype, aval.weak_type, placing, frozenset(vma), memory_space)
    found = _interned.get(key)
    return _intern(key) if found is None else found


def expect_varying() -> None:
    """From now on types are asked along which axes values vary: a shard_map is traced that may have no other."""
    global any_typed
    any_typed = True


def expect_places() -> None:
    """From now on types are asked where arrays lie: there is one along explicit axes, or in the host's memory."""
    global any_typed, any_placed
    any_typed = any_placed = True


def placed(aval: ShapedArray, sharding: Any, whole: bool = False) -> ShapedArray:
    """The type of an array that lies so: along the axes of type Explicit of a mesh; the aval where none cuts it, unless
    users are to see (`whole`) over which mesh it lies; and in the host's memory.
    """
    if getattr(sharding, "memory_kind", None) == MemorySpace.Host.value:
        aval = aval.update(memory_space=MemorySpace.Host)
    if not isinstance(sharding, NamedSharding) or AxisType.Explicit not in sharding.mesh.axis_types:
        return aval
    types = dict(zip(sharding.mesh.axis_names, sharding.mesh.axis_types, strict=True))
    parts = [tuple(n for n in names_of(part) if types[n] is AxisType.Explicit) for part in sharding.spec[: aval.ndim]]
    parts += [()] * (aval.ndim - len(parts))
    spec = spec_in_full(parts, (sharding.spec.unreduced, sharding.spec.reduced))
    mesh = sharding.mesh.abstract_mesh if isinstance(sharding.mesh, Mesh) else sharding.mesh
    if not whole and not says_something(spec):
        return aval
    return typed(aval, NamedSharding(mesh, spec), aval.vma, aval.memory_space)


def _as_said(aval: ShapedArray, sharding: Any, memory_space: Any) -> ShapedArray:
    """The type with what users say of places; TypeError for what is no sharding."""
    if sharding is not None and not isinstance(sharding, Sharding):
        raise TypeError(f"ShapedArray: argument 'sharding' must be a Sharding or None, got {sharding!r}")
    if isinstance(sharding, NamedSharding):
        sharding.check(aval.shape, "ShapedArray arguments")
        aval = placed(typed(aval, None, aval.vma, aval.memory_space), sharding)
    return aval if memory_space is None else aval.update(memory_space=memory_space)


def _intern(key: tuple) -> ShapedArray:
    """The one aval of a shape, dtype, weak type, and maybe placing, vma and memory space."""
    if len(_interned) > _sweep_at:
        sweep_avals()
    with _lock:
        found = _interned.get(key)
        if found is None:
            found = object.__new__(ShapedArray)
            put = object.__setattr__
            shape, dtype, weak_type = key[:3]
            put(found, "shape", shape)
            put(found, "dtype", dtype)
            put(found, "weak_type", weak_type)
            put(found, "ndim", len(shape))
            put(found, "size", math.prod(shape))
            put(found, "placing", key[3] if len(key) > 3 else None)
            put(found, "vma", key[4] if len(key) > 3 else _no_axes)
            put(found, "memory_space", key[5] if len(key) > 3 else MemorySpace.Device)
            _interned[key] = found
    return found


any_typed = False  # whether a type has said anything of meshes
any_placed = False  # whether one has said how arrays are cut along explicit axes
_interned: dict[tuple, ShapedArray] = {}
_lock = Lock()
_sweep_at = 1 << 16  # avals


def sweep_avals() -> None:
    """Forget the avals that nobody has any more."""
    global _sweep_at
    _core.sweep_avals()
    with _lock:
        for key in list(_interned):
            # Taken out first: nobody can get it meanwhile, as what is missing is looked for under the lock.
            aval = _interned.pop(key)
            if sys.getrefcount(aval) > 2:
                _interned[key] = aval
        _sweep_at = max(1 << 16, 2 * len(_interned))


class AbstractToken(AbstractValue):
    """The type of a token, by which side effects are ordered."""

    shape: tuple[int, ...] = ()
    dtype = np.dtype(bool)
    weak_type = False
    ndim = 0
    size = 0

    def str_short(self, short_dtypes: bool = False) -> str:
        """As in programs as text."""
        return "Token"

    def to_tangent_aval(self):
        """Itself: tokens have no derivative."""
        return self

    to_cotangent_aval = to_tangent_aval

    def strip_weak_type(self):
        """Itself."""
        return self


abstract_token = AbstractToken()


class Reference:
    """Base of what stands for a mutable array in a trace, and is no array itself."""

    __slots__ = ()

    @property
    def ref_aval(self) -> AbstractRef:
        """Its type."""
        raise NotImplementedError(type(self).__name__)


def type_of_operand(x: Any) -> Any:
    """As `typeof`, of references, too."""
    return x.ref_aval if isinstance(x, Reference) else typeof(x)


class AbstractRef(AbstractValue):
    """The type of a mutable array: a reference to what has type `inner_aval`."""

    __slots__ = ("inner_aval", "memory_space")

    def __init__(self, inner_aval: ShapedArray, memory_space: Any = None) -> None:
        self.inner_aval = inner_aval
        self.memory_space = memory_space

    shape = property(lambda self: self.inner_aval.shape)
    dtype = property(lambda self: self.inner_aval.dtype)
    ndim = property(lambda self: self.inner_aval.ndim)
    size = property(lambda self: self.inner_aval.size)
    weak_type = property(lambda self: self.inner_aval.weak_type)
    sharding = property(lambda self: self.inner_aval.sharding)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbstractRef) and (self.inner_aval, self.memory_space) == (
            other.inner_aval,
            other.memory_space,
        )

    def __hash__(self) -> int:
        return hash((AbstractRef, self.inner_aval, self.memory_space))

    def str_short(self, short_dtypes: bool = False) -> str:
        """Such as Ref{float32[2,3]}."""
        return f"Ref{{{self.inner_aval.str_short(short_dtypes)}}}"

    def __repr__(self) -> str:
        return f"Ref{{{self.inner_aval.strip_weak_type()}}}"


def tangent_aval(aval: ShapedArray) -> ShapedArray:
    """Aval of the tangents of values of `aval`: float0 of the same shape where the dtype is not differentiable."""
    dtype = aval.dtype
    if isinstance(dtype, np.dtype) and (dtype.kind in "fc" or dtypes.issubdtype(dtype, np.inexact)):
        return aval
    return ShapedArray(aval.shape, dtype.tangent_dtype if dtypes.is_extended(dtype) else dtypes.float0)


def typeof(x) -> ShapedArray:
    """The aval of an array, tracer, NumPy value or Python scalar; TypeError for anything else."""
    aval = getattr(x, "aval", None)
    if aval is not None:
        return aval
    kind = type(x)
    if kind in dtypes.python_scalar_dtypes:
        if kind is int:
            dtype = dtypes.dtype_of(x)
            if not -(2**31) <= x < 2**31:
                limits = np.iinfo(dtype)
                if not limits.min <= x <= limits.max:
                    raise OverflowError(
                        f"Python int {x} too large to convert to {dtype}, the default integer; make it an array of "
                        f"another dtype first{dtypes.hint_of_64_bits(x, dtype)}"
                    )
            return ShapedArray((), dtype, True)
        return _python_scalar_aval(kind)
    if isinstance(x, (np.ndarray, np.generic)):
        dtype = x.dtype
        if dtype != dtypes.float0:
            if not dtypes.is_supported(dtype):
                raise TypeError(
                    f"Value {str(x)[:60]!r} is not a valid JAX type: its dtype is {dtype}, and arrays hold numbers or "
                    "booleans in native byte order."
                )
            # Of scalars it is not asked, as that would import numpy.ma: 8 ms.
            if kind is not np.ndarray and isinstance(x, np.ndarray) and isinstance(x, np.ma.MaskedArray):
                raise ValueError(
                    "numpy masked arrays are not supported: their masks would be lost. Use x.filled() or "
                    "x.data to make a plain array."
                )
            dtype = dtypes.canonicalize_dtype(dtype)
        return ShapedArray(x.shape, dtype)
    if isinstance(x, (bool, int, float, complex)):  # subclasses, such as IntEnum
        base: Any = next(t for t in (bool, int, float, complex) if isinstance(x, t))
        return ShapedArray((), dtypes.dtype_of(base(x)), base is not bool)
    if kind is Dimension:
        return _python_scalar_aval(int)
    if hasattr(kind, "__jax_array__"):
        raise ValueError(
            f"an object of type {kind.__name__} was given as it is, but its __jax_array__ is not called here: "
            "convert it with jnp.asarray first"
        )
    raise TypeError(f"Value {str(x)[:80]!r} with type {class_shown(type(x))} is not a valid JAX type")


def _python_scalar_aval(kind) -> ShapedArray:
    return ShapedArray((), dtypes.dtype_of(kind(0)), kind is not bool)


def is_array_like(x) -> bool:
    """True for what `typeof` accepts."""
    try:
        typeof(x)
    except TypeError:
        return False
    return True
