"""Tracers: stand-ins for arrays while a function is being transformed.

A tracer belongs to one interpreter, knows its aval, and has all operators and methods of an array (set by the numpy
layer through `core.hooks`). What needs numbers raises an error that says which line made the value.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback._ext import _core
from pullback.core.avals import Reference
from pullback.core.source import item_assignment, user_source
from pullback.util import errors
from pullback.util.tracebacks import api_boundary

_CAST = "`{0}` makes a Python number. For an array of that dtype, write `x.astype({0})` or `jnp.asarray(x, {0})`."
_MEMORY = "This occurred for {} of jax.Array: a traced value has no memory and lies on no device."
_METHOD = "This occurred in the {}() method of jax.Array; return the array from the function, and ask it outside."


def _without_memory(name: str):
    @api_boundary
    def ask(self, *args, **options):
        raise errors.ConcretizationTypeError(self, _MEMORY.format(name))

    return ask


def _is_integral(dtype) -> bool:
    return isinstance(dtype, np.dtype) and dtype.kind in "iu"


class OfType:
    """What stands for an array and knows its type, `aval`."""

    __slots__ = ()
    aval: Any

    @property
    def shape(self):
        """Shape of the value."""
        return self.aval.shape

    @property
    def dtype(self):
        """Dtype of the value."""
        return self.aval.dtype

    @property
    def ndim(self):
        """Number of dimensions."""
        return self.aval.ndim

    @property
    def size(self):
        """Number of elements."""
        return self.aval.size

    @property
    def weak_type(self):
        """Whether its dtype gives way to others, as that of a Python scalar."""
        return self.aval.weak_type

    @property
    def itemsize(self):
        """Bytes of one element."""
        return self.aval.dtype.itemsize

    @property
    def nbytes(self):
        """Bytes of all elements."""
        return self.aval.size * self.aval.dtype.itemsize


class Tracer(OfType):
    """Base of all tracers; subclasses may have properties in the place of `interpreter` and `aval`."""

    __slots__ = ("aval", "interpreter", "source", "__weakref__")
    __array_priority__ = 1000  # numpy_array + tracer asks the tracer; np.sin(tracer) asks __array__, which explains
    interpreter: Any
    source: Any

    def __init__(self, trace: Any, aval: Any) -> None:
        self.interpreter, self.aval, self.source = trace, aval, None

    @property
    def _trace(self):
        """The interpreter, under the name that libraries ask for, and set in tracers of their own."""
        return self.interpreter

    @_trace.setter
    def _trace(self, trace):
        self.interpreter = trace

    def to_concrete(self):
        """The concrete array behind this tracer, or None where there is none."""
        return

    def to_concrete_value(self):
        """As `to_concrete`, under the name that libraries ask for."""
        return self.to_concrete()

    def full_lower(self):
        """What libraries' tracers say that they stand for: here itself."""
        return self

    def describe(self) -> str:
        """For error messages: the type, where the value was made and used, and what it depends on."""
        source = self.made_at()
        made = f", made at {source}" if source is not None else ""
        used = user_source()  # None where jit was given a function of ours
        text = f"{self.aval.short()}{made}" + (f" (used at {used})" if used is not None else "")
        tracer: Tracer | None = self
        while tracer is not None:
            why = tracer.provenance()
            if why:
                return f"{text}\n{why}"
            tracer = tracer.beneath()
        return text

    def made_at(self):
        """The user's line that made the value, or None."""
        tracer: Tracer | None = self
        while tracer is not None:
            source = getattr(tracer, "source", None)
            if source is not None:
                return source
            tracer = tracer.beneath()
        return None

    def beneath(self) -> Tracer | None:
        """The tracer of an enclosing transformation that this one is about, if there is one."""
        return None

    def provenance(self) -> str | None:
        """A sentence that names the traced function and the arguments that the value depends on, if they are known."""
        return None

    @property
    def sharding(self):
        raise AttributeError(f"{type(self).__name__} has no sharding while it is traced")

    @api_boundary
    def __len__(self):
        if not self.aval.shape:
            raise TypeError("len() of unsized object")
        return self.aval.shape[0]

    @api_boundary
    def __iter__(self):
        if not self.aval.shape:
            raise TypeError("iteration over a 0-d array")
        return iter([self[i] for i in range(self.aval.shape[0])])  # type: ignore[index]

    @api_boundary
    def __reversed__(self):
        if not self.aval.shape:
            raise IndexError("reversed() of a 0-d array")
        return iter([self[i] for i in reversed(range(len(self)))])  # type: ignore[index]

    __hash__ = None  # type: ignore[assignment]  # libraries ask isinstance(x, Hashable)

    @api_boundary
    def __bool__(self):
        size = self.aval.size
        if size != 1:
            few = "an empty array" if size == 0 else "an array with more than one element"
            raise ValueError(f"The truth value of {few} is ambiguous; use any() or all(): {self.describe()}")
        return bool(self._concrete(errors.TracerBoolConversionError))

    @api_boundary
    def __index__(self):
        if self.aval.shape or not _is_integral(self.aval.dtype):
            raise TypeError(f"only integer scalar arrays can be converted to an index, not {self.describe()}")
        return self._concrete(errors.TracerIntegerConversionError).__index__()

    @api_boundary
    def __int__(self):
        return int(self._concrete(errors.ConcretizationTypeError, _CAST.format("int")))

    # What is known may steer Python (bool, int, an index), but never becomes a float, a list or text: numbers
    # computed from those would be taken for constants, and have no derivative.

    @api_boundary
    def __float__(self):
        raise errors.ConcretizationTypeError(self, _CAST.format("float"))

    @api_boundary
    def __complex__(self):
        raise errors.ConcretizationTypeError(self, _CAST.format("complex"))

    @api_boundary
    def __array__(self, dtype=None, copy=None):
        raise errors.TracerArrayConversionError(self)

    @api_boundary
    def tolist(self):
        raise errors.ConcretizationTypeError(self, _METHOD.format("tolist"))

    @api_boundary
    def item(self, *args):
        return self._concrete(errors.ConcretizationTypeError, _METHOD.format("item")).item(*args)

    @api_boundary
    def tobytes(self, order="C"):
        raise errors.ConcretizationTypeError(self, _METHOD.format("tobytes"))

    def _concrete(self, error, *context):
        value = self.to_concrete()
        if value is None:
            raise error(self, *context)
        return value

    devices = _without_memory("devices")
    delete = _without_memory("delete")
    is_deleted = _without_memory("is_deleted")
    addressable_data = _without_memory("addressable_data")
    unsafe_buffer_pointer = _without_memory("unsafe_buffer_pointer")
    on_device_size_in_bytes = _without_memory("on_device_size_in_bytes")
    __dlpack__ = _without_memory("__dlpack__")
    committed = property(_without_memory("committed"))
    is_fully_addressable = property(_without_memory("is_fully_addressable"))
    is_fully_replicated = property(_without_memory("is_fully_replicated"))
    addressable_shards = property(_without_memory("addressable_shards"))
    global_shards = property(_without_memory("global_shards"))

    @api_boundary
    def __reduce_ex__(self, protocol):
        raise errors.ConcretizationTypeError(self, "a traced value can't be pickled")

    @api_boundary
    def __setitem__(self, index, value):
        raise TypeError(item_assignment(index, value))

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __repr__(self):
        return f"{type(self).__name__}({self.aval})"

    def __format__(self, spec):
        if spec:
            raise TypeError(
                f"unsupported format string passed to {type(self).__name__}.__format__: {spec!r} needs a number, but "
                f"this is a traced {self.describe()}\nUse jax.debug.print to print values of traced arrays."
            )
        return repr(self)


def make_operator(name: str, function):
    """The special method of Tracer for an operator's function."""

    def operator(self, *others):
        return function(self, *others)

    operator.__name__ = f"__{name}__"
    return operator


class _ArrayMeta(type):
    def __instancecheck__(cls, instance):
        if isinstance(instance, _array_types):
            return not isinstance(instance, Reference)
        return super().__instancecheck__(instance)

    def __subclasscheck__(cls, subclass):
        return issubclass(subclass, _array_types) or super().__subclasscheck__(subclass)


if TYPE_CHECKING:  # what `x.at` and `x.at[index]` have, for those who read types; `numpy/_at.py` is what they are

    class At:
        """Takes an index."""

        def __getitem__(self, index: Any, /) -> Updates: ...

    class Updates:
        """Methods that give arrays that differ at an index."""

        def _update(
            self, values: Any, /, *, indices_are_sorted: bool = ..., unique_indices: bool = ..., mode: Any = ...,
            out_sharding: Any = ..., wrap_negative_indices: bool = ...,
        ) -> Array: ...  # fmt: skip

        set = add = subtract = mul = multiply = divide = power = min = max = _update

        def get(
            self, *, indices_are_sorted: bool = ..., unique_indices: bool = ..., mode: Any = ..., fill_value: Any = ...,
            out_sharding: Any = ..., wrap_negative_indices: bool = ...,
        ) -> Array: ...  # fmt: skip
        def apply(
            self, func: Any, *, indices_are_sorted: bool = ..., unique_indices: bool = ..., mode: Any = ...,
            wrap_negative_indices: bool = ...,
        ) -> Array: ...  # fmt: skip


class Array(metaclass=_ArrayMeta):
    """The type of arrays for `isinstance` and annotations: concrete arrays, tracers, key arrays."""

    @api_boundary
    def __new__(cls, *args, **kwargs):
        raise TypeError("jax.Array can't be made directly; use jnp.array or jnp.zeros")

    if TYPE_CHECKING:  # what arrays have, for those who read types; `numpy/_methods.py` installs it
        aval: Any
        shape: tuple[int, ...]
        dtype: np.dtype
        ndim: int
        size: int
        nbytes: int
        itemsize: int
        weak_type: bool
        T: Array
        mT: Array
        real: Array
        imag: Array
        at: At
        sharding: Any
        device: Any

        def _binary(self, other: Any, /) -> Array: ...

        __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __floordiv__ = (
            __rfloordiv__
        ) = __mod__ = __rmod__ = __pow__ = __rpow__ = _binary
        __matmul__ = __rmatmul__ = __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = __lshift__ = (
            __rlshift__
        ) = __rshift__ = __rrshift__ = _binary
        __lt__ = __le__ = __gt__ = __ge__ = _binary

        def __eq__(self, other: Any, /) -> Array: ...  # type: ignore[override]
        def __ne__(self, other: Any, /) -> Array: ...  # type: ignore[override]
        def __neg__(self) -> Array: ...
        def __pos__(self) -> Array: ...
        def __abs__(self) -> Array: ...
        def __invert__(self) -> Array: ...
        def __getitem__(self, index: Any, /) -> Array: ...
        def __iter__(self) -> Iterator[Array]: ...
        def __len__(self) -> int: ...
        def __bool__(self) -> bool: ...
        def __int__(self) -> int: ...
        def __float__(self) -> float: ...
        def __complex__(self) -> complex: ...
        def __index__(self) -> int: ...
        def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray: ...
        def item(self, *args: int) -> Any: ...
        def tolist(self) -> Any: ...
        def block_until_ready(self) -> Array: ...
        def _method(self, *args: Any, **kwargs: Any) -> Array: ...

        all = any = argmax = argmin = argpartition = argsort = astype = choose = clip = compress = _method
        conj = conjugate = copy = cumprod = cumsum = diagonal = dot = flatten = max = mean = _method
        min = nonzero = prod = ptp = ravel = repeat = reshape = round = searchsorted = sort = _method
        squeeze = std = sum = swapaxes = take = trace = transpose = var = view = _method


_array_types: tuple = (_core.Array, Tracer)


def add_array_type(cls) -> None:
    """Count another class, such as PRNG key arrays, as arrays."""
    global _array_types
    _array_types += (cls,)
