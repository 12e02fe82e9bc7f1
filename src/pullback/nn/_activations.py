"""Elementwise activations. Integers become floats where the formula is not an integer one."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback import lax
from pullback.api import custom_jvp, jit
from pullback.numpy._arguments import check_arraylike, is_integer, promote_dtypes_inexact, static_int
from pullback.util import dtypes
from pullback.util.warning import warn


def _inexact(x: Any) -> Any:
    x = jnp.asarray(x)
    return lax.convert_element_type(x, dtypes.to_inexact_dtype(x.dtype))


def _with_slope(slope: Callable[[Any], Any]) -> Callable[[Callable[[Any], Any]], Any]:
    """Decorator: a function of one array whose derivative is 1 where slope(x) and 0 elsewhere, kinks included."""

    def decorate(function: Callable[[Any], Any]) -> Any:
        public = custom_jvp(jit(function))

        @public.defjvp
        def jvp(primals: Any, tangents: Any) -> Any:
            (x,), (x_dot,) = primals, tangents
            return public(x), lax.select(slope(x), x_dot, lax.full_like(x_dot, 0))

        functools.update_wrapper(public, function)
        return public

    return decorate


@_with_slope(lambda x: x > 0)
def relu(x: Any) -> Any:
    """max(x, 0), with derivative 0 at 0."""
    return jnp.maximum(x, 0)


@_with_slope(lambda x: (x > 0) & (x < 6))
def relu6(x: Any) -> Any:
    """min(max(x, 0), 6), with derivative 0 at 0 and 6."""
    return jnp.minimum(jnp.maximum(x, 0), 6.0)


@jit
def identity(x: Any) -> Any:
    """x."""
    check_arraylike("identity", x)
    return jnp.asarray(x)


@jit
def squareplus(x: Any, b: Any = 4) -> Any:
    """(x + sqrt(x^2 + b)) / 2, a smooth relu."""
    return (x + jnp.sqrt(jnp.square(x) + b)) / 2.0


@jit
def softplus(x: Any) -> Any:
    """log(1 + exp(x))."""
    return jnp.logaddexp(x, 0)


@jit
def sparse_plus(x: Any) -> Any:
    """0 for x <= -1, (x + 1)^2 / 4 up to 1, then x."""
    check_arraylike("sparse_plus", x)
    x = jnp.asarray(x)
    return jnp.where(x <= -1.0, 0.0, jnp.where(x >= 1.0, x, (x + 1.0) ** 2 / 4))


@jit
def soft_sign(x: Any) -> Any:
    """x / (1 + |x|)."""
    check_arraylike("soft_sign", x)
    x = jnp.asarray(x)
    return x / (jnp.abs(x) + 1)


def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x)), of floats or complex numbers; TypeError for others."""
    check_arraylike("sigmoid", x)
    return lax.logistic(jnp.asarray(x))


@jit
def sparse_sigmoid(x: Any) -> Any:
    """(x + 1) / 2, clipped to [0, 1]: the derivative of sparse_plus."""
    return 0.5 * jnp.clip(x + 1.0, 0.0, 2.0)


@jit
def silu(x: Any) -> Any:
    """x sigmoid(x). Also called swish."""
    check_arraylike("silu", x)
    x = jnp.asarray(x)
    return x * sigmoid(x)


swish = silu


@jit
def mish(x: Any) -> Any:
    """x tanh(softplus(x))."""
    check_arraylike("mish", x)
    x = jnp.asarray(x)
    return x * jnp.tanh(softplus(x))


@jit
def log_sigmoid(x: Any) -> Any:
    """log(sigmoid(x)) = -softplus(-x)."""
    check_arraylike("log_sigmoid", x)
    return -softplus(-jnp.asarray(x))


@jit
def elu(x: Any, alpha: Any = 1.0) -> Any:
    """x for x > 0, else alpha (exp(x) - 1)."""
    check_arraylike("elu", x)
    x = jnp.asarray(x)
    return jnp.where(x > 0, x, alpha * jnp.expm1(jnp.where(x > 0, 0.0, x)))


@jit
def leaky_relu(x: Any, negative_slope: Any = 1e-2) -> Any:
    """x for x >= 0, else negative_slope x."""
    check_arraylike("leaky_relu", x)
    x = jnp.asarray(x)
    return jnp.where(x >= 0, x, negative_slope * x)


@jit
def hard_tanh(x: Any) -> Any:
    """x, clipped to [-1, 1]."""
    check_arraylike("hard_tanh", x)
    x = jnp.asarray(x)
    return jnp.where(x > 1, 1, jnp.where(x < -1, -1, x))


@jit
def celu(x: Any, alpha: Any = 1.0) -> Any:
    """max(x, 0) + alpha (exp(min(x, 0) / alpha) - 1)."""
    return jnp.maximum(x, 0.0) + alpha * jnp.expm1(jnp.minimum(x, 0.0) / alpha)


# The fixed point of mean 0 and variance 1. Klambauer and others, "Self-normalizing neural networks", 2017.
_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772, 1.0507009873554805


@jit
def selu(x: Any) -> Any:
    """scale elu(x, alpha), with the constants that keep mean 0 and variance 1."""
    check_arraylike("selu", x)
    return _SELU_SCALE * elu(x, _SELU_ALPHA)


@functools.partial(jit, static_argnames=("approximate",), inline=True)
def gelu(x: Any, approximate: bool = True) -> Any:
    """x Phi(x), Phi the normal distribution function.

    `approximate`: x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), else by erfc. Hendrycks and Gimpel, 2016.
    """
    check_arraylike("gelu", x)
    x = _inexact(x)
    if approximate:
        inner = math.sqrt(2 / math.pi) * (x + 0.044715 * (x**3))
        return x * (0.5 * (1.0 + jnp.tanh(inner)))
    return 0.5 * x * lax.erfc(-x * math.sqrt(0.5))


@functools.partial(jit, static_argnames=("axis",))
def glu(x: Any, axis: int = -1) -> Any:
    """a sigmoid(b), a and b the halves of x along `axis`, whose size must be even (AssertionError).

    AxisError, an IndexError, if x has no such axis.
    """
    check_arraylike("glu", x)
    x = jnp.asarray(x)
    if not -x.ndim <= axis < x.ndim:
        raise np.exceptions.AxisError(f"glu: argument 'axis' is {axis}, but x is {x.aval.short()}")
    size = x.shape[axis]
    if size % 2:
        raise AssertionError(f"glu: axis size must be divisible by 2, got {size} along axis {axis} of {x.aval.short()}")
    first, second = jnp.split(x, 2, axis)
    return first * sigmoid(second)


@jit
def hard_sigmoid(x: Any) -> Any:
    """relu6(x + 3) / 6."""
    check_arraylike("hard_sigmoid", x)
    return relu6(jnp.asarray(x) + 3.0) / 6.0


@jit
def hard_silu(x: Any) -> Any:
    """x hard_sigmoid(x). Also called hard_swish."""
    check_arraylike("hard_silu", x)
    x = jnp.asarray(x)
    return x * hard_sigmoid(x)


hard_swish = hard_silu


def _log1mexp(x: Any) -> Any:
    """log(1 - exp(-x)), x > 0, accurate for small and large x.

    Maechler, "Accurately computing log(1 - exp(-|a|))", 2012.
    """
    check_arraylike("log1mexp", x)
    if dtypes.kind_of(dtypes.dtype_of(x)) == "b":
        raise TypeError("log1mexp does not accept dtype bool; accepted are numbers")
    (x,) = promote_dtypes_inexact(x)
    small = x < math.log(2)
    return jnp.where(small, jnp.log(-jnp.expm1(-x)), jnp.log1p(-jnp.exp(-x)))


log1mexp = custom_jvp(jit(_log1mexp))


@log1mexp.defjvp
def _log1mexp_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (x_dot,) = primals, tangents
    return log1mexp(x), x_dot / jnp.expm1(x)


functools.update_wrapper(log1mexp, _log1mexp)
log1mexp.__name__ = log1mexp.__qualname__ = "log1mexp"


@functools.partial(jit, static_argnames=("num_classes", "dtype", "axis"))
def _one_hot(x: Any, *, num_classes: int, dtype: Any, axis: int) -> Any:
    shape = [1] * (x.ndim + 1)
    shape[axis] = num_classes
    hit = lax.expand_dims(x, (axis,)) == lax.broadcasted_iota(x.dtype, tuple(shape), axis % len(shape))
    return lax.convert_element_type(hit, dtype)


@functools.partial(jit, static_argnames=("dtype",))
def _is_at(x: Any, place: Any, *, dtype: Any) -> Any:
    return lax.convert_element_type(lax.eq(x, lax.full_like(x, lax.convert_element_type(place, x.dtype))), dtype)


def one_hot(x: Any, num_classes: int, *, dtype: Any = None, axis: Any = -1) -> Any:
    """1 where the new `axis` of size num_classes has the index x, else 0; all 0 where x is out of range.

    The name of a mapped axis of that size may be given: there is no new axis then, and each instance has its own place.

    Raises TypeError if num_classes is not a static integer, ValueError for a bad axis or one of another size, NameError
    for a name that is not bound.
    """
    num_classes = static_int(num_classes, "one_hot: argument 'num_classes'")
    kind = dtypes.check_user_dtype_supported(float if dtype is None else dtype, "one_hot")
    x = jnp.asarray(x)
    if dtypes.kind_of(x.dtype) in "fc":
        warn(f"one_hot of {x.dtype} will be an error; convert x to integers", DeprecationWarning)
    if not is_integer(axis):
        size = lax.axis_size(axis)
        if num_classes != size:
            raise ValueError(
                f"one_hot: argument 'num_classes' is {num_classes}, but the mapped axis '{axis}' has {size} places"
            )
        return _is_at(x, lax.axis_index(axis), dtype=kind)
    ndim = x.ndim + 1
    if not -ndim <= axis < ndim:
        raise ValueError(f"one_hot: argument 'axis' is {axis}, but the result has {ndim} dimensions")
    return _one_hot(x, num_classes=num_classes, dtype=kind, axis=axis % ndim)
