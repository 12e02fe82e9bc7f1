"""What arrays and tracers can do: the operators, methods and properties, installed on both by `core.hooks`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from types import FunctionType
from typing import Any

import numpy as np

from pullback import lax
from pullback._ext import _core
from pullback.core import Array as AnyArray
from pullback.core import Tracer, install_methods, install_operators
from pullback.numpy import (
    _comparison,
    _creation,
    _diagonals,
    _eager,
    _index_memory,
    _reducers,
    _running,
    _select,
    _shape,
    _sorting,
    _take,
    _ufuncs,
)
from pullback.numpy._arguments import Array, convert, make_array
from pullback.numpy._at import IndexUpdateHelper
from pullback.numpy._dtypes import astype
from pullback.numpy._products import dot, matmul
from pullback.util import dtypes
from pullback.util.absent import NotHere
from pullback.util.errors import AbsentAttributeError
from pullback.util.other_arrays import INSTEAD
from pullback.util.tracebacks import api_boundary, shorten

_ACCEPTED = (Array, Tracer, int, float, complex, np.ndarray, np.generic, AnyArray)


def _operand(other: Any) -> Any:
    """The other operand of an operator; NotImplemented where none takes it: it may know the operation itself."""
    if isinstance(other, _ACCEPTED):
        return other
    return other.__jax_array__() if hasattr(other, "__jax_array__") else NotImplemented


# ---- operators


def _refuse(symbol: str, left: str, right: str) -> None:
    """TypeError for lists and their like, which Python would ask to join or repeat themselves."""
    raise TypeError(
        f"unsupported operand type(s) for {symbol}: '{left}' and '{right}'; make the elements an array first, with "
        "jnp.asarray"
    )


def _forward(function: Callable[[Any, Any], Any], symbol: str) -> Callable[[Any, Any], Any]:
    def operator(self: Any, other: Any) -> Any:
        try:
            operand = _operand(other)
            if operand is not NotImplemented:
                return function(self, operand)
            if type(other) in (list, tuple):
                _refuse(symbol, type(self).__name__, type(other).__name__)
            return NotImplemented
        except Exception as error:
            shorten(error, sys._getframe())
            raise

    operator.__name__ = getattr(function, "__name__", "operator")  # which traces show
    return operator


def _reflected(function: Callable[[Any, Any], Any], symbol: str) -> Callable[[Any, Any], Any]:
    def operator(self: Any, other: Any) -> Any:
        try:
            operand = _operand(other)
            if operand is not NotImplemented:
                return function(operand, self)
            if type(other) in (list, tuple):
                _refuse(symbol, type(other).__name__, type(self).__name__)
            return NotImplemented
        except Exception as error:
            shorten(error, sys._getframe())
            raise

    operator.__name__ = getattr(function, "__name__", "operator")
    return operator


def _compared(function: Callable[[Any, Any], Any], symbol: str) -> Callable[[Any, Any], Any]:
    def operator(self: Any, other: Any) -> Any:
        try:
            operand = _operand(other)
            if operand is not NotImplemented:
                return function(self, operand)
            if type(other) in (list, tuple, dict, set):  # classes derived from them may compare as they like
                _refuse(symbol, type(self).__name__, type(other).__name__)
            return NotImplemented
        except Exception as error:
            shorten(error, sys._getframe())
            raise

    return operator


_BINARY = {
    "add": (_ufuncs.add_, "+"),
    "sub": (_ufuncs.subtract_, "-"),
    "mul": (_ufuncs.multiply_, "*"),
    "truediv": (_ufuncs.true_divide, "/"),
    "floordiv": (_ufuncs.floor_divide, "//"),
    "mod": (_ufuncs.remainder, "%"),
    "divmod": (_ufuncs.divmod, "divmod()"),
    "pow": (_ufuncs.power, "** or pow()"),
    "matmul": (matmul, "@"),
    "and": (_comparison.bitwise_and_, "&"),
    "or": (_comparison.bitwise_or_, "|"),
    "xor": (_comparison.bitwise_xor_, "^"),
    "lshift": (_comparison.left_shift, "<<"),
    "rshift": (_comparison.right_shift, ">>"),
}
_COMPARISONS = {
    "lt": (_comparison.less, "<"),
    "le": (_comparison.less_equal, "<="),
    "eq": (_comparison.equal, "=="),
    "ne": (_comparison.not_equal, "!="),
    "gt": (_comparison.greater, ">"),
    "ge": (_comparison.greater_equal, ">="),
}


def _iterate(self: Any) -> Any:
    if self.ndim == 0:
        raise TypeError("iteration over a 0-d array")
    if isinstance(self, Tracer):  # a row is recorded when it is asked for
        return (lax.index_in_dim(self, k, 0, keepdims=False) for k in range(self.shape[0]))
    cut = type(self) is _core.Array and self._device is not None
    cut = cut and not self.is_fully_replicated and self.is_fully_addressable
    whole = _core.with_aval(self, self._aval) if cut else self
    rows: list[Any] = [lax.index_in_dim(whole, k, 0, keepdims=False) for k in range(self.shape[0])]
    return iter([_core.with_aval(row, row._aval) for row in rows] if cut else rows)  # of what is cut: on no device


def _contains(self: Any, item: Any) -> Any:
    if self.ndim != 1:
        raise ValueError(f"in: the array must be one-dimensional, no scalar or matrix, got shape {self.shape}")
    if np.ndim(item) != 0:
        raise ValueError(f"in: what is looked for must be a scalar, got shape {np.shape(item)}")
    return bool(_reducers.any(_comparison.equal(self, item)))


OPERATORS: dict[str, Callable[..., Any]] = {
    **{name: _forward(function, symbol) for name, (function, symbol) in _BINARY.items()},
    **{f"r{name}": _reflected(function, symbol) for name, (function, symbol) in _BINARY.items()},
    **{name: _compared(function, symbol) for name, (function, symbol) in _COMPARISONS.items()},
    "neg": api_boundary(_ufuncs.negative_),
    "pos": api_boundary(_ufuncs.positive),
    "abs": api_boundary(_ufuncs.absolute),
    "invert": api_boundary(_comparison.invert),
    "getitem": _index_memory.getitem,
    "iter": api_boundary(_iterate),
    "contains": api_boundary(_contains),
}


# ---- methods that are functions with the array as first argument


def _shape_arguments(args: tuple[Any, ...]) -> Any:
    """reshape(2, 3) and reshape((2, 3)) mean the same."""
    return (
        args[0]
        if len(args) == 1 and (args[0] is None or np.ndim(args[0]) == 1 or isinstance(args[0], (tuple, list)))
        else args
    )


def _reshape(self: Any, *args: Any, order: str = "C", out_sharding: Any = None) -> Any:
    """The array with the same elements in another shape, without one as a scalar; see `numpy.reshape`."""
    return _shape.reshape(self, _shape_arguments(args), order, out_sharding=out_sharding)


def _transpose(self: Any, *args: Any) -> Any:
    """The array with its axes reversed or in the order given; see `numpy.transpose`."""
    return _shape.transpose(self, _shape_arguments(args) if args else None)


def _flatten(self: Any, order: str = "C", *, out_sharding: Any = None) -> Any:
    """All elements along one axis; see `numpy.ravel`."""
    return _shape.ravel(self, order, out_sharding=out_sharding)


def _astype(self: Any, dtype: Any, copy: bool = False, device: Any = None) -> Any:
    """The array converted to a dtype; see `numpy.astype`."""
    return astype(self, dtype, copy=copy, device=device)


def _dot(self: Any, b: Any, *, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """Product with another array; see `numpy.dot`."""
    return dot(self, b, precision=precision, preferred_element_type=preferred_element_type)


def _clip(self: Any, min: Any = None, max: Any = None) -> Any:
    """Elements moved into an interval; see `numpy.clip`."""
    return _select.clip(self, min, max)


def _view(self: Any, dtype: Any = None, type: None = None) -> Any:
    """The same bytes read as another dtype; lengths of the last axis change with the size of the elements.

    Raises ValueError for scalars whose element size would change, and where the last axis does not divide.
    """
    if type is not None:
        raise NotImplementedError("`type` argument of array.view() is not supported.")
    if dtype is None:
        return self
    if isinstance(dtype, (int, tuple)) and not isinstance(dtype, bool):
        raise TypeError(f"view: argument 'dtype' must be a dtype, got {dtype!r}; x.reshape(shape) changes the shape")
    target = np.dtype(dtypes.check_user_dtype_supported(dtype, "view"))
    source = self.dtype
    if source == target:
        return self
    if source == np.bool_:
        self, source = convert(self, np.dtype(np.uint8)), np.dtype(np.uint8)
    from_bits, to_bits = dtypes.itemsize_bits(source), dtypes.itemsize_bits(target)
    if from_bits != to_bits:
        if self.ndim == 0:
            raise ValueError(f"view: a 0d array keeps the size of its element; {source} and {target} differ in size")
        if self.shape[-1] * from_bits % to_bits:
            raise ValueError(
                f"view: the last axis of shape {self.shape}, in {source}, does not fill a whole number of elements of "
                f"{target}"
            )
    if target == np.bool_:
        return lax.ne(_view(self, np.uint8), make_array(0, np.dtype(np.uint8)))
    if source.kind == "c" and target.kind == "c":
        return _view(_view(self, np.zeros((), source).real.dtype), target)
    if source.kind == "c":
        parts = lax.concatenate([lax.expand_dims(p, (self.ndim,)) for p in (lax.real(self), lax.imag(self))], self.ndim)
        flat = lax.reshape(parts, (*self.shape[:-1], 2 * self.shape[-1]))
        return _view(flat, target)
    if target.kind == "c":
        flat = _view(self, np.zeros((), target).real.dtype)
        pairs = lax.reshape(flat, (*flat.shape[:-1], flat.shape[-1] // 2, 2))
        axis = pairs.ndim - 1
        return lax.complex(*(lax.index_in_dim(pairs, k, axis, keepdims=False) for k in (0, 1)))
    if from_bits == to_bits:
        return lax.bitcast_convert_type(self, target)
    if from_bits > to_bits:
        narrow = lax.bitcast_convert_type(self, target)
        return lax.reshape(narrow, (*self.shape[:-1], self.shape[-1] * from_bits // to_bits))
    ratio = to_bits // from_bits
    grouped = lax.reshape(self, (*self.shape[:-1], self.shape[-1] // ratio, ratio))
    return lax.bitcast_convert_type(grouped, target)


@api_boundary
def _byteswap(self: Any, inplace: bool = False) -> Any:
    """The elements with the order of their bytes reversed; `inplace` is refused."""
    if inplace:
        raise NotImplementedError("byteswap: arrays are immutable, inplace=True is not possible")
    size = self.dtype.itemsize
    if size == 1 or self.dtype == np.bool_:
        return self
    octets = _view(lax.expand_dims(self, (self.ndim,)), np.uint8)
    octets = lax.reshape(
        octets, (*self.shape, -(-octets.size // max(self.size, 1))) if self.size else (*self.shape, size)
    )
    if self.dtype.kind == "c":
        half = lax.reshape(octets, (*self.shape, 2, size // 2))
        octets = lax.reshape(lax.rev(half, (half.ndim - 1,)), octets.shape)
    else:
        octets = lax.rev(octets, (octets.ndim - 1,))
    return lax.squeeze(_view(octets, self.dtype), (self.ndim,))


@api_boundary
def _to_device(self: Any, device: Any, *, stream: Any = None) -> Any:
    """The array on a device."""
    if stream is not None:
        raise NotImplementedError("stream argument of array.to_device()")
    return _creation.place(self, device)


def _clone(self: Any) -> Any:
    """Another array with the same elements."""
    return _creation.array(self, copy=True)


def _round(self: Any, decimals: int = 0, out: None = None) -> Any:
    """Elements rounded to a number of decimals; see `numpy.round`."""
    return _ufuncs.round(self, decimals, out)


def _python_round(self: Any, ndigits: int | None = None) -> Any:
    """Python's round(): integers where no number of digits is given."""
    rounded = _ufuncs.round(self, ndigits or 0)
    return rounded.astype(int) if ndigits is None else rounded


def _namespace(self: Any, *, api_version: str | None = None) -> Any:
    """The module that implements the array API standard for this array."""
    if api_version is not None and api_version != "2024.12":
        raise ValueError(f"api_version={api_version!r} is not available; newest supported version is '2024.12'")
    import pullback.numpy

    return pullback.numpy


def _method(function: Callable[..., Any], name: str | None = None) -> Callable[..., Any]:
    """The function under its method's name; methods of extension types need functions written in Python."""
    function_name = name or function.__name__
    method = api_boundary(function)
    method.__name__ = method.__qualname__ = function_name
    method.__doc__ = f"See `numpy.{function_name}`."
    return method


def _std(
    self: Any,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    *,
    where: Any = None,
    correction: Any = None,
) -> Any:
    """Square root of the variance; see `numpy.std`."""
    return _reducers.std(self, axis, dtype, out, ddof, keepdims, where=where, correction=correction)


def _var(
    self: Any,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    *,
    where: Any = None,
    correction: Any = None,
) -> Any:
    """Mean squared distance from the mean; see `numpy.var`."""
    return _reducers.var(self, axis, dtype, out, ddof, keepdims, where=where, correction=correction)


def _nonzero(self: Any, *, fill_value: Any = None, size: int | None = None) -> Any:
    """Positions of the elements that are not zero; see `numpy.nonzero`."""
    return _select.nonzero(self, size=size, fill_value=fill_value)


@api_boundary
def _compress(
    self: Any,
    condition: Any,
    axis: int | None = None,
    *,
    out: None = None,
    size: int | None = None,
    fill_value: Any = 0,
) -> Any:
    """Slices where the condition holds; see `numpy.compress`."""
    return _select.compress(condition, self, axis, size=size, fill_value=fill_value, out=out)


def _flat(self: Any) -> Any:
    raise AbsentAttributeError(
        "arr.flat gives places to write to, which immutable arrays lack; arr.flatten() gives the elements."
    )


def _mT(self: Any) -> Any:
    return _shape.matrix_transpose(self)


_FUNCTIONS: list[Callable[..., Any]] = [
    *(_reducers.sum, _reducers.prod, _reducers.max, _reducers.min, _reducers.all, _reducers.any, _reducers.mean),
    *(_reducers.ptp, _reducers.argmax, _reducers.argmin, _running.cumsum, _running.cumprod),
    *(_shape.ravel, _shape.squeeze, _shape.swapaxes, _shape.repeat, _ufuncs.conj, _ufuncs.conjugate),
    *(_take.take, _take.choose, _diagonals.diagonal, _diagonals.trace),
    *(_sorting.sort, _sorting.argsort, _sorting.argpartition, _sorting.searchsorted),
]

METHODS: dict[str, Any] = {
    **{function.__name__: _method(function) for function in _FUNCTIONS},
    "reshape": _reshape,
    "transpose": _transpose,
    "flatten": _flatten,
    "astype": _astype,
    "dot": _dot,
    "clip": _clip,
    "view": _view,
    "byteswap": _byteswap,
    "round": _round,
    "std": _std,
    "var": _var,
    "nonzero": _nonzero,
    "compress": _compress,
    "copy": _clone,
    "clone": _clone,
    "to_device": _to_device,
    "__round__": _python_round,
    "__array_namespace__": _namespace,
    "T": property(lambda self: _shape.transpose(self), doc="The array with its axes reversed."),
    "mT": property(_mT, doc="The array with its last two axes exchanged."),
    "real": property(lambda self: _ufuncs.real(self), doc="Real part."),
    "imag": property(lambda self: _ufuncs.imag(self), doc="Imaginary part."),
    "flat": property(_flat, doc="Not available: an iterator that writes into the array."),
    "at": property(
        IndexUpdateHelper,
        doc="`x.at[index].set(y)`, `.add`, `.multiply`, ...: new arrays that differ from x at the index.",
    ),
}
for _name, _made in METHODS.items():
    if isinstance(_made, FunctionType):
        _made.__qualname__ = f"Array.{_name}"  # which Python's own errors show


@api_boundary
def _tobytes(self: Any, order: str = "C") -> bytes:
    """The bytes of the elements, in C or Fortran order."""
    return np.asarray(self).tobytes(order)  # type: ignore[arg-type]


def _reversed(self: Any) -> Any:
    """The rows from the last to the first; TypeError for scalars."""
    return iter(list(self)[::-1])


# What tracers have of their own, with errors in place of values.
_OF_ARRAYS_ALONE: dict[str, Any] = {
    "tobytes": _tobytes,
    "__reversed__": _reversed,
    "is_fully_addressable": property(
        lambda self: self.sharding.is_fully_addressable, doc="Whether this process holds all of the array."
    ),
}


def _has(self: object) -> Iterable[str]:
    """The names of the attributes that an array has; `dir` and completion show them."""
    return [name for name in object.__dir__(self) if name not in INSTEAD]


def install() -> None:
    """Give arrays and tracers their operators and methods."""
    install_operators(OPERATORS)
    install_methods(METHODS)
    for name, attribute in _OF_ARRAYS_ALONE.items():
        _core.set_array_attribute(name, attribute)
    _eager.install(OPERATORS, METHODS)
    for cls in (_core.Array, Tracer):
        for name, instead in INSTEAD.items():
            setattr(cls, name, NotHere(name, instead))
        cls.__dir__ = _has  # type: ignore[method-assign]
