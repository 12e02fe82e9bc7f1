"""`ufunc`: NumPy's universal-function objects, with .reduce, .accumulate, .at, .outer and .reduceat.

A ufunc holds a plain function of scalars or arrays. What the function cannot do itself is done by loops over it
(`lax.fori_loop`, `lax.scan`); the named ufuncs of this package pass the fast functions they have (`add.reduce` is
`sum`).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from pullback import lax
from pullback._ext import _core
from pullback.api.eager import NEVER, WARMUP, eager, remember
from pullback.core import ShapedArray
from pullback.core.explain import with_held_arrays
from pullback.numpy._arguments import (
    arrays,
    as_array,
    broadcast_to,
    canonical_axes,
    canonical_axis,
    check_arraylike,
    convert,
    dtype_of,
    promote_dtypes,
    static_int,
)
from pullback.util import dtypes
from pullback.util.static import check_flags
from pullback.util.tracebacks import api_boundary, shorten


class ufunc(_core.JitFunction):
    """Universal function: applies elementwise with broadcasting, and has methods derived from that.

    Args:
      func: scalar function of `nin` arguments with `nout` results.
      nin, nout: numbers of inputs and outputs.
      name: name for messages; the function's own by default.
      nargs: number of arguments in all, nin by default.
      identity: value e for which func(x, e) == x, if there is one.
      call, reduce, accumulate, at, reduceat: faster implementations of the methods.
    """

    def __new__(
        cls, func: Callable[..., Any], /, *args: Any, call: Callable[..., Any] | None = None, **kwargs: Any
    ) -> Any:
        # Calls go to the memory of plans in C, and from there to `_apply` where Python is needed.
        holder: list[ufunc] = []

        def apply(*args: Any, out: Any = None, where: Any = None) -> Any:
            try:
                return holder[0]._apply(*args, out=out, where=where)
            except Exception as error:
                shorten(error, sys._getframe())
                raise

        apply.__name__ = apply.__qualname__ = str(kwargs.get("name") or getattr(func, "__name__", "ufunc"))
        self = super().__new__(cls, apply, remember(apply).miss, (), (), warmup=WARMUP if call is not None else NEVER)
        holder.append(self)
        return self

    def __init__(
        self,
        func: Callable[..., Any],
        /,
        nin: int,
        nout: int,
        *,
        name: str | None = None,
        nargs: int | None = None,
        identity: Any = None,
        call: Callable[..., Any] | None = None,
        reduce: Callable[..., Any] | None = None,
        accumulate: Callable[..., Any] | None = None,
        at: Callable[..., Any] | None = None,
        reduceat: Callable[..., Any] | None = None,
    ):
        self._func = func
        self.__name__: str = str(name or getattr(func, "__name__", "ufunc"))
        self.__qualname__ = self.__name__
        self.__doc__ = func.__doc__
        self.nin = nin
        self.nout = nout
        self.nargs = nin if nargs is None else nargs
        self.identity = identity
        self._call = call
        self._reduce = reduce
        self._accumulate = accumulate
        self._at = at
        self._reduceat = reduceat

    def __repr__(self) -> str:
        return f"<jnp.ufunc '{self.__name__}'>"

    def __hash__(self) -> int:
        return hash((self._func, self.nin, self.nout, self.__name__))

    def __eq__(self, other: Any) -> bool:
        return self is other or (
            isinstance(other, ufunc)
            and (self._func, self.nin, self.nout, self.__name__, self.identity)
            == (other._func, other.nin, other.nout, other.__name__, other.identity)
        )

    def __reduce__(self) -> Any:
        # The named ufuncs of this package are found again by name; others pickle by their parts.
        import pullback.numpy as jnp

        if getattr(jnp, self.__name__, None) is self:
            return (_named_ufunc, (self.__name__,))
        return (ufunc, (self._func, self.nin, self.nout))

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self  # not a method where it is an attribute of a class

    def _apply(self, *args: Any, out: Any = None, where: Any = None) -> Any:
        if out is not None:
            raise NotImplementedError(f"out argument of {self}")
        if where is not None:
            raise NotImplementedError(f"where argument of {self}")
        args = with_held_arrays(args) or args
        if self._call is not None:
            return self._call(*args)
        if len(args) != self.nin:
            raise TypeError(f"{self.__name__}() takes {self.nin} positional arguments but {len(args)} were given")
        from pullback.numpy._functional import vectorize

        check_arraylike(self.__name__, *args)
        return vectorize(self._func)(*args)

    def _check_binary(self, method: str) -> None:
        if self.nin != 2:
            raise ValueError(f"{method} only supported for ufuncs with two inputs, but {self} has {self.nin}")
        if self.nout != 1:
            raise ValueError(f"{method}: {self} has {self.nout} results; expected a ufunc of one")

    # ---- reduce

    @api_boundary
    def reduce(
        self,
        a: Any,
        axis: int | None = 0,
        dtype: Any = None,
        out: Any = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = None,
    ) -> Any:
        """Reduces a along the axes by applying the function between elements.

        Raises ValueError if the function does not take two inputs, or if `where` comes without `initial` for a function
        without identity.
        """
        self._check_binary("reduce")
        if out is not None:
            raise NotImplementedError(f"out argument of {self}.reduce()")
        if initial is not None:
            check_arraylike(f"{self.__name__}.reduce", a, initial)
            if np.ndim(initial) != 0:
                raise ValueError(
                    f"{self.__name__}.reduce: argument 'initial' must be a scalar, got shape {np.shape(initial)}"
                )
        check_arraylike(f"{self.__name__}.reduce", a)
        if where is not None:
            check_arraylike(f"{self.__name__}.reduce", where)
            if dtype_of(where) != np.bool_:
                raise ValueError(f"{self.__name__}.reduce: argument 'where' must be boolean, got {dtype_of(where)}")
            if self.identity is None and initial is None:
                raise ValueError(
                    f"{self.__name__}.reduce: pass 'initial' beside 'where': {self.__name__} has no identity to "
                    "return if all elements are masked out"
                )
        check_flags(f"{self.__name__}.reduce", keepdims=keepdims)
        dtype = _asked(dtype, self.__name__)
        if self._reduce is not None:
            return self._reduce(a, axis=axis, dtype=dtype, keepdims=keepdims, initial=initial, where=where)
        axis = tuple(axis) if isinstance(axis, list) else axis
        return _reduced(self, a, axis, dtype, keepdims, initial, where)

    def _reduce_by_loop(self, a: Any, axis: Any, dtype: Any, keepdims: bool, initial: Any, where: Any) -> Any:
        a = as_array(a)
        start = self.identity if initial is None else initial
        if dtype is not None:
            a = convert(a, dtype)
        a = self._carried(a, dtype)
        shape = a.shape
        axes = canonical_axes(f"{self.__name__}.reduce", axis, a.ndim)
        if where is not None:
            where = broadcast_to(convert(where, np.dtype(bool)), shape)
        kept = tuple(k for k in range(a.ndim) if k not in axes)
        order = axes + kept
        rows = lax.reshape(
            lax.transpose(a, order),
            (math.prod(shape[k] for k in axes), *(shape[k] for k in kept)),
        )
        masks = None if where is None else lax.reshape(lax.transpose(where, order), rows.shape)
        if rows.shape[0] == 0 and start is None:
            raise ValueError(f"{self.__name__}: a zero-size array and no identity to return instead; pass 'initial'")
        first = 0
        if start is None:
            carry, first = lax.index_in_dim(rows, 0, 0, keepdims=False), 1
        else:
            carry = broadcast_to(convert(start, rows.dtype), rows.shape[1:])

        def step(i: Any, acc: Any) -> Any:
            value = self(acc, lax.dynamic_index_in_dim(rows, i, 0, keepdims=False))
            value = convert(value, acc.dtype, acc.aval.weak_type)
            if masks is None:
                return value
            return lax.select(lax.dynamic_index_in_dim(masks, i, 0, keepdims=False), value, acc)

        result = lax.fori_loop(first, rows.shape[0], step, carry) if rows.shape[0] > first else carry
        if keepdims:
            result = lax.reshape(result, tuple(1 if k in axes else shape[k] for k in range(len(shape))))
        return result

    def _type_of_results(self, *operands: Any) -> Any:
        """The dtype of the function of elements of the operands."""
        from pullback.api import eval_shape

        return eval_shape(self, *(ShapedArray((), x.dtype, x.aval.weak_type) for x in operands)).dtype

    def _carried(self, a: Any, dtype: Any) -> Any:
        """a in the type of running results: `dtype` if one is asked for, else what the function gives for two of a."""
        return a if dtype is not None else convert(a, self._type_of_results(a, a))

    # ---- accumulate

    @api_boundary
    def accumulate(self, a: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
        """All partial results of reducing a along one axis; shape of a. Without an axis (None), sums and products are
        those of the elements in C order; ValueError of other functions.
        """
        self._check_binary("accumulate")
        if out is not None:
            raise NotImplementedError(f"out argument of {self}.accumulate()")
        (a,) = arrays(f"{self.__name__}.accumulate", a)
        a = lax.reshape(a, (1,)) if a.ndim == 0 else a
        if self.__name__.startswith("logical_") and dtype is None:
            dtype = np.dtype(np.bool_)
        if axis is not None or self._accumulate is None:
            check_one_axis(axis)
        dtype = _asked(dtype, self.__name__)
        if self._accumulate is not None:
            return self._accumulate(a, axis=axis, dtype=dtype)
        axis = canonical_axis(f"{self.__name__}.accumulate", axis, a.ndim)
        return _accumulated(self, a, axis, dtype)

    def _accumulate_by_loop(self, a: Any, axis: int, dtype: Any) -> Any:
        if dtype is not None:
            a = convert(a, dtype)
        if a.shape[axis] == 0:
            return a
        a = self._carried(a, dtype)
        first = lax.index_in_dim(a, 0, axis, keepdims=False)
        rest = lax.slice_in_dim(a, 1, a.shape[axis], axis=axis)
        rest = lax.transpose(rest, (axis, *(k for k in range(a.ndim) if k != axis)))

        def step(acc: Any, x: Any) -> Any:
            value = convert(self(acc, x), acc.dtype, acc.aval.weak_type)
            return value, value

        _, rows = lax.scan(step, first, rest)
        result = lax.concatenate([lax.expand_dims(first, (0,)), rows], 0)
        order = list(range(1, a.ndim))
        order.insert(axis, 0)
        return lax.transpose(result, tuple(order))

    # ---- at

    @api_boundary
    def at(self, a: Any, indices: Any, b: Any = None, /, *, inplace: bool = True) -> Any:
        """a with the function applied at the indices, once for each time an index occurs.

        Arrays are immutable, so that `inplace=False` must be given; NotImplementedError otherwise.
        """
        if inplace:
            raise NotImplementedError(
                f"JAX arrays are immutable; {self}.at() needs inplace=False and returns the new array."
            )
        if self._at is not None:
            return self._at(a, indices) if b is None else self._at(a, indices, b)
        return self._at_by_loop(a, indices, b)

    def _at_by_loop(self, a: Any, indices: Any, b: Any) -> Any:
        from pullback.numpy._index_update import index_update
        from pullback.numpy._indexing import index_get, rewriting_take

        check_arraylike(f"{self.__name__}.at", a)
        a = as_array(a)
        if self.nin == 1:
            return index_update(a, indices, self(rewriting_take(a, indices)), "set")
        (b,) = arrays(f"{self.__name__}.at", b)
        if b.dtype != a.dtype:
            a, b = promote_dtypes(a, b)
        # The number of every element of a, indexed the same way, tells which elements to visit, in order; a.size stands
        # for indices out of bounds, at which nothing happens.
        numbers = lax.reshape(lax.iota(np.dtype("int32"), a.size), a.shape)
        numbers = index_get(numbers, indices, mode="fill", fill_value=a.size)
        values = broadcast_to(b, numbers.shape)
        flat_numbers, flat_values = lax.reshape(numbers, (numbers.size,)), lax.reshape(values, (values.size,))

        def step(i: Any, flat: Any) -> Any:
            where = lax.dynamic_index_in_dim(flat_numbers, i, 0, keepdims=False)
            old = lax.dynamic_index_in_dim(flat, where, 0, keepdims=False)
            new = self(old, lax.dynamic_index_in_dim(flat_values, i, 0, keepdims=False))
            new = lax.select(lax.lt(where, np.int32(a.size)), convert(new, flat.dtype, flat.aval.weak_type), old)
            return lax.dynamic_update_index_in_dim(flat, new, where, 0)

        flat = convert(lax.reshape(a, (a.size,)), self._type_of_results(a, b))
        return lax.reshape(lax.fori_loop(0, numbers.size, step, flat), a.shape)

    # ---- reduceat

    @api_boundary
    def reduceat(self, a: Any, indices: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
        """Reduction over the slices a[indices[i]:indices[i+1]] along an axis; a[indices[i]] where
        that slice is empty.
        """
        self._check_binary("reduceat")
        if out is not None:
            raise NotImplementedError(f"out argument of {self}.reduceat()")
        if self._reduceat is not None:
            return self._reduceat(a, indices, axis=axis, dtype=dtype)
        a, indices = arrays(f"{self.__name__}.reduceat", a, indices)
        if a.ndim == 0:
            raise ValueError("reduceat: argument 'a' is a scalar; expected at least one axis")
        if indices.ndim != 1:
            raise ValueError(f"reduceat: argument 'indices' has shape {indices.shape}; expected a vector")
        if axis is None or isinstance(axis, (tuple, list)):
            raise ValueError("reduceat requires a single integer axis.")
        axis = canonical_axis(f"{self.__name__}.reduceat", axis, a.ndim)
        return _reduced_at(self, a, indices, axis, _asked(dtype, self.__name__))

    def _reduceat_by_loop(self, a: Any, indices: Any, axis: int, dtype: Any) -> Any:
        if dtype is not None:
            a = convert(a, dtype)
        if indices.shape[0] == 0:
            return lax.slice_in_dim(a, 0, 0, axis=axis)
        length = a.shape[axis]
        rows = lax.transpose(a, (axis, *(k for k in range(a.ndim) if k != axis)))
        last = lax.full((1,), length, indices.dtype)
        ends = lax.concatenate([lax.slice_in_dim(indices, 1, indices.shape[0]), last], 0)
        trailing = (1,) * (a.ndim - 1)
        out_shape = (indices.shape[0], *rows.shape[1:])
        from pullback.numpy._indexing import index_get

        start = index_get(rows, indices, mode="fill")  # out of bounds: what `take` fills in

        def step(i: Any, acc: Any) -> Any:
            inside = lax.bitwise_and(lax.gt(lax.full_like(indices, i), indices), lax.lt(lax.full_like(ends, i), ends))
            inside = broadcast_to(lax.reshape(inside, (indices.shape[0], *trailing)), out_shape)
            value = self(acc, broadcast_to(lax.dynamic_index_in_dim(rows, i, 0, keepdims=False), out_shape))
            return lax.select(inside, convert(value, acc.dtype), acc)

        start = self._carried(start, dtype)
        result = lax.fori_loop(0, length, step, convert(start, start.dtype))
        order = list(range(1, a.ndim))
        order.insert(axis, 0)
        return lax.transpose(result, tuple(order))

    # ---- outer

    @api_boundary
    def outer(self, A: Any, B: Any, /) -> Any:
        """The function applied to all pairs of elements; shape A.shape + B.shape."""
        if self.nin != 2:
            raise ValueError(f"outer only supported for functions with two inputs, but {self} has {self.nin}")
        A, B = arrays(f"{self.__name__}.outer", A, B)
        left = lax.reshape(A, A.shape + (1,) * B.ndim)
        return self(left, lax.reshape(B, (1,) * A.ndim + B.shape))


# Loops that are remembered, by the function, axes and types.
_reduced = eager(ufunc._reduce_by_loop, (0, 2, 3, 4))
_accumulated = eager(ufunc._accumulate_by_loop, (0, 2, 3))
_reduced_at = eager(ufunc._reduceat_by_loop, (0, 3, 4))


def _asked(dtype: Any, name: str) -> Any:
    return None if dtype is None else dtypes.check_user_dtype_supported(dtype, name)


def check_one_axis(axis: Any) -> None:
    """ValueError unless `accumulate` is to go along one axis."""
    if axis is None or isinstance(axis, (tuple, list)):
        raise ValueError(f"accumulate does not allow multiple axes, got axis={axis}")


def _named_ufunc(name: str) -> ufunc:
    """The public ufunc of that name, for pickle."""
    import pullback.numpy as jnp

    return getattr(jnp, name)


def frompyfunc(func: Callable[..., Any], /, nin: int, nout: int, *, identity: Any = None) -> ufunc:
    """ufunc made from a function of scalars that is traceable."""
    if not callable(func):
        raise TypeError(f"frompyfunc: argument 'func' must be callable, got {type(func).__name__}")
    nin, nout = static_int(nin, "frompyfunc: argument 'nin'"), static_int(nout, "frompyfunc: argument 'nout'")
    return ufunc(func, nin, nout, identity=identity)
