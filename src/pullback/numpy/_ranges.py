"""Numbers along a line (`arange`, `linspace`, ...), their powers, and functions of indices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback import lax
from pullback.core.dimensions import Dimension, is_symbolic, max_dim
from pullback.numpy._arguments import (
    arrays,
    as_array,
    broadcast_arrays,
    broadcast_to,
    canonical_axis,
    canonical_shape,
    check_arraylike,
    concrete_or_error,
    const,
    convert,
    make_array,
    shape_of_operands,
    static_int,
)
from pullback.numpy._creation import place
from pullback.numpy._exponentials import log10
from pullback.numpy._ufuncs import power
from pullback.util import config, dtypes
from pullback.util.static import check_flags
from pullback.util.warning import warn_if_real


def arange(
    start: Any, stop: Any = None, step: Any = None, dtype: Any = None, *, device: Any = None, out_sharding: Any = None
) -> Any:
    """Values start, start + step, ... below stop (above it for a negative step); from 0 if only one bound is given.

    The bounds must be concrete, since they give the shape: ConcretizationTypeError otherwise. ValueError unless they
    are real scalars, ZeroDivisionError for step 0.
    """
    if dtype is not None:
        dtype = dtypes.check_user_dtype_supported(dtype, "arange")
    check_arraylike("arange", *(x for x in (start, stop, step) if x is not None))
    if start is None and stop is not None:
        raise TypeError("arange: argument 'start' must be a real number, not None")
    given = {"start": start, "stop": stop, "step": step}
    if stop is None and step is None:
        given = {"stop": start}
    for which, value in given.items():
        if value is None:
            if which == "stop" and stop is None and step is None:
                raise TypeError("arange: argument 'stop' must be a real number, not None")
            continue
        if isinstance(value, Dimension):
            continue
        concrete = concrete_or_error(
            value, f"It arose in the jnp.arange argument '{which}'; mark what it comes from static (static_argnums)."
        )
        if np.ndim(concrete) != 0:
            raise ValueError(f"arange: arguments must be scalars; got {which}={value}")
        if np.iscomplexobj(np.asarray(concrete)):
            raise ValueError(f"arange: arguments must be real; got {which}={value}")
        given[which] = concrete
    if dtype is None:
        dtype = dtypes.result_type(*(v for v in given.values() if v is not None))
    dtype = np.dtype(dtype)
    if dtype == np.bool_:
        raise TypeError(
            "arange does not accept dtype bool. Accepted dtypes are subtypes of integer, floating, complexfloating."
        )
    number = {k: _number(v) for k, v in given.items() if v is not None}
    if any(isinstance(n, Dimension) for n in number.values()):
        return place(_symbolic_arange(number, dtype), device, out_sharding, "arange")
    if "start" not in number:
        if "stop" in number and len(number) == 1:
            length = max(0, math.ceil(number["stop"]))
            return place(lax.iota(dtype, length), device, out_sharding, "arange")
        number["start"] = 0
    if "stop" not in number:  # arange(start, None, step)
        number["start"], number["stop"] = 0, number["start"]
    by = number.get("step", 1)
    if by == 0:
        raise ZeroDivisionError("arange: argument 'step' is 0, with which 'stop' is never reached")
    length = max(0, math.ceil((number["stop"] - number["start"]) / by))
    result = lax.iota(dtype, length)
    if by != 1:
        result = lax.mul(make_array(np.asarray(by).astype(dtype), dtype), result)
    if number["start"] != 0 or dtype.kind not in "iu":
        if number["start"] != 0:
            result = lax.add(make_array(np.asarray(number["start"]).astype(dtype), dtype), result)
    return place(result, device, out_sharding, "arange")


def _number(x: Any) -> Any:
    return x if isinstance(x, (int, float, Dimension)) else np.asarray(x).item()


def _symbolic_arange(number: dict[str, Any], dtype: np.dtype) -> Any:
    """arange of symbolic dimensions and integers: ValueError for other numbers, which give no symbolic length."""
    if not all(isinstance(n, (int, Dimension)) for n in number.values()):
        raise ValueError(f"arange: with symbolic dimensions, all are dimensions or integers; got {number}")
    if number.keys() == {"start"}:
        number = {"stop": number["start"]}
    start, step = number.get("start", 0), number.get("step", 1)
    distance = number["stop"] - start if step > 0 else start - number["stop"]
    length = max_dim((distance + abs(step) - 1) // abs(step), 0)
    counted = lax.iota(dtype, length)
    if step != 1:
        counted = lax.mul(counted, make_array(step, dtype))
    return counted if isinstance(start, int) and start == 0 else lax.add(counted, make_array(start, dtype))


def _computed_in(start: Any, stop: Any, dtype: Any) -> Any:
    """The inexact type of both ends and of the one asked for. Who asks for one has said what to convert: then they are
    promoted whatever is set."""
    if dtype is None:
        return dtypes.to_inexact_dtype(dtypes.result_type(start, stop))
    with config.numpy_dtype_promotion("standard"):
        return dtypes.to_inexact_dtype(dtypes.result_type(start, stop, dtype))


def _real_ends(start: Any, stop: Any, dtype: Any) -> tuple[Any, Any]:
    """Both ends; their real parts, with a ComplexWarning, if the dtype that is asked for is real, which all is computed
    in."""
    if dtype is None or dtypes.issubdtype(dtype, np.complexfloating):
        return start, stop
    return _real_end(start, dtype), _real_end(stop, dtype)


def _real_end(x: Any, dtype: Any) -> Any:
    have = dtypes.dtype_of(x)
    if not dtypes.issubdtype(have, np.complexfloating):
        return x
    warn_if_real(np.dtype(have), np.dtype(dtype))
    return x.real if isinstance(x, complex) else lax.real(as_array(x))


def linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
    *,
    device: Any = None,
) -> Any:
    """`num` values from start to stop at equal distances, along a new axis; with `retstep` the distance, too.

    Start and stop may be arrays. Integer dtypes round down. Raises ValueError for a negative num.
    """
    check_flags("linspace", endpoint=endpoint, retstep=retstep)
    num = static_int(num, "'num' argument of jnp.linspace")
    axis = static_int(axis, "'axis' argument of jnp.linspace")
    if num < 0:
        raise ValueError(f"linspace: argument 'num' is {num}; expected at least 0")
    check_arraylike("linspace", start, stop)
    start, stop = _real_ends(start, stop, dtype)
    is_default = dtype is None
    if is_default:
        dtype = dtypes.to_inexact_dtype(dtypes.result_type(start, stop))
    dtype = np.dtype(dtypes.check_user_dtype_supported(dtype, "linspace"))
    work = np.dtype(dtypes.to_inexact_dtype(dtype))
    compute = work if is_default else _computed_in(start, stop, work)
    start, stop = broadcast_arrays("linspace", convert(start, compute), convert(stop, compute))
    shape = start.shape
    axis = canonical_axis("linspace", axis, start.ndim + 1)
    intervals = num - 1 if endpoint else num
    delta = lax.sub(stop, start)
    distance = lax.div(delta, const(delta, intervals)) if intervals > 0 else lax.full(shape, math.nan, compute)
    if num == 0:
        result = lax.full((0, *shape), 0, compute)
    elif intervals <= 0:  # one value, with endpoint
        result = lax.expand_dims(start, (0,))
    else:
        real = np.zeros((), compute).real.dtype if np.dtype(compute).kind == "c" else compute
        count = intervals if endpoint else num
        steps = lax.reshape(lax.iota(real, count), (count,) + (1,) * len(shape))
        result = _between(start, stop, steps, np.dtype(compute), axis == start.ndim)
        if endpoint:
            result = lax.concatenate([result, lax.expand_dims(stop, (0,))], 0)
    if axis != 0:
        order = list(range(1, result.ndim))
        order.insert(axis, 0)
        result = lax.transpose(result, tuple(order))
    if dtypes.issubdtype(dtype, np.integer) and not dtypes.issubdtype(compute, np.integer):
        result = lax.floor(result)
    result = place(convert(result, dtype), device)
    return (result, distance) if retstep else result


UNROLLED = 33  # steps of a loop that XLA writes out


def _between(start: Any, stop: Any, steps: Any, dtype: np.dtype, is_last: bool) -> Any:
    """start (1 - k / n) + stop k / n for each k of `steps`, rounded where XLA's CPU backend rounds it: bins begin where
    they begin in JAX, and linspace(0, n, n + 1) is arange(n + 1) for most n. `is_last`: the steps are along the last
    axis.
    """
    n = steps.shape[0]
    shape = (n, *start.shape)
    first, last = (broadcast_to(lax.expand_dims(x, (0,)), shape) for x in (start, stop))
    whole = broadcast_to(steps, shape)
    if dtype == dtypes.bfloat16:
        t = lax.div(whole, const(whole, n))
        return lax.add(lax.mul(first, lax.sub(const(t, 1), t)), lax.mul(last, t))
    if is_symbolic(n):
        one_step = lax.div(make_array(1, whole.dtype), make_array(n, whole.dtype))
    else:
        one_step = make_array(np.ones((), whole.dtype) / np.asarray(n, whole.dtype))
    t = lax.mul(whole, one_step)
    rest = lax.sub(const(t, 1), t)
    if dtype.kind == "c":
        return lax.add(lax.mul(first, convert(rest, dtype)), lax.mul(last, convert(t, dtype)))
    part = broadcast_to(lax.expand_dims(lax.mul(stop, convert(one_step, dtype)), (0,)), shape)
    if dtype == np.float16:
        return lax.add(lax.mul(first, rest), lax.mul(whole, part))
    if start.size != 1:
        if is_last:
            return lax.fma_p.bind(last, t, lax.mul(first, rest))
        return lax.fma_p.bind(first, rest, lax.mul(last, t))
    result = lax.fma_p.bind(whole, part, lax.mul(first, rest))
    if is_symbolic(n) or n > UNROLLED:
        return result
    # Written out, 1 * part is no product, and the other one becomes part of the addition.
    return lax.select(lax.eq(whole, const(whole, 1)), lax.fma_p.bind(first, rest, part), result)


def logspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: Any = 10.0, dtype: Any = None, axis: int = 0
) -> Any:
    """`num` values from base**start to base**stop, of equal ratios."""
    check_flags("logspace", endpoint=endpoint)
    num = static_int(num, "'num' argument of jnp.logspace")
    check_arraylike("logspace", start, stop, base)
    start, stop = _real_ends(start, stop, dtype)
    compute = _computed_in(start, stop, dtype)
    dtype = np.dtype(dtypes.check_user_dtype_supported(compute if dtype is None else dtype, "logspace"))
    exponents = linspace(convert(start, compute), convert(stop, compute), num, endpoint=endpoint, dtype=None, axis=axis)
    return convert(power(convert(base, compute), exponents), dtype)


def geomspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0) -> Any:
    """`num` values from start to stop, of equal ratios; both must be nonzero and, if real, of one sign."""
    check_flags("geomspace", endpoint=endpoint)
    num = static_int(num, "'num' argument of jnp.geomspace")
    check_arraylike("geomspace", start, stop)
    start, stop = _real_ends(start, stop, dtype)
    compute = _computed_in(start, stop, dtype)
    dtype = np.dtype(dtypes.check_user_dtype_supported(compute if dtype is None else dtype, "geomspace"))
    start, stop = convert(start, compute), convert(stop, compute)
    shape_of_operands("geomspace", [start.shape, stop.shape])
    start, stop = broadcast_arrays("geomspace", start, stop)
    axis = canonical_axis("geomspace", axis, start.ndim + 1)
    # Of the absolute value of start on; real numbers of one sign are positive then.
    turn = lax.div(start, convert(lax.abs(start), compute))
    first, last = log10(lax.div(start, turn)), log10(lax.div(stop, turn))
    result = lax.mul(logspace(first, last, num, endpoint=endpoint, axis=axis), lax.expand_dims(turn, (axis,)))
    if dtypes.issubdtype(dtype, np.integer):
        # exp(log(8)) may fall short of 8 by one rounding, which truncation would turn into 7.
        result = lax.floor(
            lax.add(result, lax.mul(const(result, 4 * float(dtypes.finfo(compute).eps)), lax.abs(result)))
        )
    return convert(result, dtype)


def vander(x: Any, N: int | None = None, increasing: bool = False) -> Any:
    """Matrix of the powers x**(N-1), ..., x, 1 of a vector as columns, or in increasing order; ValueError unless 1D."""
    check_flags("vander", increasing=increasing)
    (x,) = arrays("vander", x)
    if x.ndim != 1:
        raise ValueError(f"vander: argument 'x' has shape {x.shape}; expected a vector")
    n = x.shape[0] if N is None else static_int(N, "'N' argument of jnp.vander()")
    if n < 0:
        raise ValueError(f"vander: argument 'N' is {n}; expected at least 0")
    if x.dtype == np.bool_:
        raise TypeError("vander: of booleans there are no powers; convert them to integers")
    if dtypes.issubdtype(x.dtype, np.complexfloating):  # whose power by logarithms rounds even x**1
        ones = lax.full((x.shape[0], min(n, 1)), 1, x.dtype)
        factors = lax.broadcast_in_dim(x, (x.shape[0], max(n - 1, 0)), (0,))
        powers = lax.cumprod(lax.concatenate([ones, factors], 1), axis=1)
        return powers if increasing else lax.rev(powers, (1,))
    exponents = lax.iota(x.dtype, n)
    if not increasing:
        exponents = lax.rev(exponents, (0,))
    return power(lax.expand_dims(x, (1,)), lax.expand_dims(exponents, (0,)))


def fromfunction(function: Any, shape: Any, *, dtype: Any = float, **kwargs: Any) -> Any:
    """The array of function(i, j, ...) over all indices of the shape; the function is mapped, not called on arrays."""
    from pullback.api import vmap

    shape = canonical_shape(shape, "shape argument of jnp.fromfunction()")
    for axis in reversed(range(len(shape))):
        in_axes = [0 if axis == other else None for other in range(len(shape))]
        function = vmap(function, in_axes=tuple(in_axes))
    # Keyword arguments are closed over, so that they are not mapped.
    inner = function
    return (lambda *ids: _call_with(inner, ids, kwargs))(*(arange(n, dtype=dtype) for n in shape))


def _call_with(function: Any, ids: Any, kwargs: dict[str, Any]) -> Any:
    return function(*ids, **kwargs)
