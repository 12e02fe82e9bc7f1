"""The gamma distribution and those made from it.

Gamma variables come from Marsaglia and Tsang, "A simple method for generating gamma variables", 2000: with d = a -
1/3 and c = 1 / (3 sqrt d), draw a normal x until v = 1 + c x > 0, and a uniform u; accept d v^3 unless u >= 1 - 0.0331
x^4 and log u >= x^2/2 + d (1 - v^3 + log v^3). For a < 1 a variable of a + 1 is multiplied by w^(1/a), w uniform. Each
element has a key of its own, so a result does not depend on the others.

The derivative by a is the implicit one, -(dF/da) / (dF/dx) of the distribution function F (`lax.random_gamma_grad`).
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback import lax
from pullback.api import custom_jvp
from pullback.core import typeof
from pullback.core.types import cut_as
from pullback.lax.collectives.sharding import out_placed
from pullback.numpy._arguments import static_int
from pullback.random._arguments import as_dtype, batch_shape, check_parameters, float_dtype, shape_of, smallest_normal
from pullback.random._continuous import Shape, exponential_of, with_parameters
from pullback.random._generators import PRNGImpl, threefry
from pullback.random._jit import jitted
from pullback.random._keys import on_words, open_key
from pullback.random._threefry_gamma import threefry_gamma_p
from pullback.random._uniform import normal_of, rademacher_of, two_keys, uniform_of
from pullback.util import config


def _rows(x: Any) -> Any:
    """A mask [n] against the words of keys [n, k]."""
    return lax.expand_dims(x, (1,))


def _split_each(impl: PRNGImpl, words: Any, n: int) -> list[Any]:
    """Keys [m, k] -> n times new keys [m, k]."""
    new = impl.split(words, (n,))
    return [lax.index_in_dim(new, i, 1, keepdims=False) for i in range(n)]


def _keep(mask: Any, new: Any, old: Any) -> Any:
    """`new` where the mask [n] is set, else `old`; for the words of keys too."""
    if new.ndim > mask.ndim:
        mask = jnp.broadcast_to(_rows(mask), new.shape)
    return lax.select(mask, new, old)


def _positive_v(impl: PRNGImpl, words: Any, c: Any, wanted: Any) -> tuple[Any, Any]:
    """(x, v): for each element that is wanted, the first normal x whose v = 1 + c x is positive."""

    def missing(v: Any) -> Any:
        return jnp.logical_and(wanted, lax.le(v, lax.full_like(v, 0)))

    def another(state: Any) -> Any:
        words, x, v = state
        again = missing(v)
        following, drawn = _split_each(impl, words, 2)
        z = normal_of(impl, drawn, (), c.dtype)
        return (
            _keep(again, following, words),
            lax.select(again, z, x),
            lax.select(again, lax.add(lax.full_like(c, 1), lax.mul(z, c)), v),
        )

    start = (words, lax.full_like(c, 0), lax.full_like(c, -1))
    _, x, v = lax.while_loop(lambda state: jnp.any(missing(state[2])), another, start)
    return x, v


def _marsaglia_tsang(impl: PRNGImpl, words: Any, a: Any, log_space: bool) -> Any:
    """Gamma variables of shape parameters a[n] from keys [n, k], or their logarithms."""
    dtype, one, third = a.dtype, lax.full_like(a, 1), lax.full_like(a, 1 / 3)
    large = lax.ge(a, one)
    d = lax.sub(lax.select(large, a, lax.add(a, one)), third)
    c = lax.div(third, lax.sqrt(d))
    words, boost_key = _split_each(impl, words, 2)

    def rejected(x2: Any, v3: Any, u: Any) -> Any:
        squeeze = lax.sub(one, lax.mul(lax.full_like(a, 0.0331), lax.mul(x2, x2)))
        bound = lax.add(lax.mul(x2, lax.full_like(a, 0.5)), lax.mul(d, lax.add(lax.sub(one, v3), lax.log(v3))))
        return jnp.logical_and(lax.ge(u, squeeze), lax.ge(lax.log(u), bound))

    def another(state: Any) -> Any:
        words, x2, v3, u = state
        again = rejected(x2, v3, u)
        following, x_key, u_key = _split_each(impl, words, 3)
        x, v = _positive_v(impl, x_key, c, again)
        fresh = (following, lax.mul(x, x), lax.mul(lax.mul(v, v), v), uniform_of(impl, u_key, (), dtype))
        return tuple(_keep(again, new, old) for new, old in zip(fresh, state, strict=True))

    start = (words, lax.full_like(a, 0), one, lax.full_like(a, 2))
    _, _, v3, _ = lax.while_loop(lambda state: jnp.any(rejected(*state[1:])), another, start)
    if log_space:
        log_w = lax.neg(exponential_of(impl, boost_key, (), dtype))
        no_boost = jnp.logical_or(large, lax.eq(log_w, lax.full_like(a, 0)))
        boost = lax.select(no_boost, lax.full_like(a, 0), lax.mul(log_w, lax.div(one, a)))
        return lax.add(lax.add(lax.log(d), lax.log(v3)), boost)
    w = lax.sub(one, uniform_of(impl, boost_key, (), dtype))
    boost = lax.select(large, one, lax.pow(w, lax.div(one, a)))
    return lax.mul(lax.mul(d, v3), boost)


@partial(custom_jvp, nondiff_argnums=(0, 1))
def _standard_gamma(impl: PRNGImpl, log_space: bool, words: Any, a: Any) -> Any:
    """Gamma variables of the shape parameters a[...] from one key; whole, where explicit axes cut a."""
    a = cut_as(a, typeof(a).untyped)
    if impl is threefry and config.value_of("jax_threefry_partitionable") and a.dtype in (np.float32, np.float64):
        return lax.reshape(threefry_gamma_p.bind(words, lax.reshape(a, (a.size,)), log_space=log_space), a.shape)
    keys = impl.split(words, (math.prod(a.shape),))
    return lax.reshape(_marsaglia_tsang(impl, keys, lax.reshape(a, (a.size,)), log_space), a.shape)


@_standard_gamma.defjvp
def _standard_gamma_jvp(impl: PRNGImpl, log_space: bool, primals: Any, tangents: Any) -> Any:
    out = _standard_gamma(impl, log_space, *primals)
    (_, a), (_, a_dot) = primals, tangents
    if not log_space:
        return out, lax.mul(lax.random_gamma_grad(a, out), a_dot)
    sample = lax.exp(out)  # d log x / da = (dx / da) / x
    sample = lax.select(
        lax.eq(sample, lax.full_like(sample, 0)), lax.full_like(sample, smallest_normal(a.dtype)), sample
    )
    return out, lax.mul(lax.div(lax.random_gamma_grad(a, sample), sample), a_dot)


def gamma_of(impl: PRNGImpl, words: Any, shape: Shape, a: Any, log_space: bool = False) -> Any:
    """Gamma variables of parameters a, of a shape, or their logarithms."""
    impl, words = on_words(impl, words)
    return _standard_gamma(impl, log_space, words, jnp.broadcast_to(a, shape))


@with_parameters("a", lists=True, doc="Gamma: density x^(a-1) exp(-x) / Gamma(a), x > 0. Differentiable by a.")
def gamma(impl: PRNGImpl, words: Any, shape: Shape, _dtype: np.dtype, a: Any) -> Any:
    return gamma_of(impl, words, shape, a)


@with_parameters(
    "a",
    lists=True,
    doc="The logarithm of a gamma variable, accurate where the variable itself would underflow (small a).",
)
def loggamma(impl: PRNGImpl, words: Any, shape: Shape, _dtype: np.dtype, a: Any) -> Any:
    return gamma_of(impl, words, shape, a, log_space=True)


@with_parameters("a", "b", doc="Beta: density x^(a-1) (1-x)^(b-1) / B(a, b), 0 < x < 1.")
def beta(impl: PRNGImpl, words: Any, shape: Shape, _dtype: np.dtype, a: Any, b: Any) -> Any:
    """g_a / (g_a + g_b), from logarithms, so that both may be tiny"""
    first, second = two_keys(impl, words)
    log_a, log_b = gamma_of(impl, first, shape, a, True), gamma_of(impl, second, shape, b, True)
    largest = lax.max(log_a, log_b)
    g_a, g_b = lax.exp(lax.sub(log_a, largest)), lax.exp(lax.sub(log_b, largest))
    return lax.div(g_a, lax.add(g_a, g_b))


def chisquare_of(impl: PRNGImpl, words: Any, shape: Shape, df: Any) -> Any:
    """Chi-squared variables of df degrees of freedom, of a shape."""
    half = lax.div(df, lax.full_like(df, 2))
    return lax.mul(lax.exp(gamma_of(impl, words, shape, half, True)), lax.full(shape, 2, df.dtype))


@with_parameters("df", doc="Chi-squared with df degrees of freedom: twice a gamma variable of df/2.")
def chisquare(impl: PRNGImpl, words: Any, shape: Shape, _dtype: np.dtype, df: Any) -> Any:
    return chisquare_of(impl, words, shape, df)


@with_parameters("dfnum", "dfden", doc="F: the ratio of two chi-squared variables, each over its degrees of freedom.")
def f(impl: PRNGImpl, words: Any, shape: Shape, _dtype: np.dtype, dfnum: Any, dfden: Any) -> Any:
    of_den, of_num = two_keys(impl, words)
    num = lax.div(chisquare_of(impl, of_num, shape, dfnum), jnp.broadcast_to(dfnum, shape))
    den = lax.div(chisquare_of(impl, of_den, shape, dfden), jnp.broadcast_to(dfden, shape))
    return lax.div(num, den)


@with_parameters("df", doc="Student's t with df degrees of freedom.")
def t(impl: PRNGImpl, words: Any, shape: Shape, dtype: np.dtype, df: Any) -> Any:
    """z sqrt((df/2) / g), g a gamma variable of df/2"""
    first, second = two_keys(impl, words)
    z = normal_of(impl, first, shape, dtype)
    half = lax.div(df, lax.full_like(df, 2))
    g = gamma_of(impl, second, shape, half)
    return lax.mul(z, lax.sqrt(lax.div(jnp.broadcast_to(half, shape), g)))


def generalized_normal_of(impl: PRNGImpl, words: Any, p: Any, shape: Shape, dtype: np.dtype) -> Any:
    """s g^(1/p), s = -1 or 1, g a gamma variable of 1/p"""
    first, second = two_keys(impl, words)
    inverse = lax.div(lax.full_like(p, 1), p)
    g = gamma_of(impl, first, shape, inverse)
    return lax.mul(rademacher_of(impl, second, shape, dtype), lax.pow(g, jnp.broadcast_to(inverse, shape)))


def generalized_normal(key: Any, p: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Generalized normal: density p exp(-|x|^p) / (2 Gamma(1/p)). ValueError if `dtype` is not a float dtype."""
    impl, words, _ = open_key("generalized_normal", key)
    dtype = float_dtype("generalized_normal", dtype)
    check_parameters("generalized_normal", real=False, p=p)
    return out_placed(
        "generalized_normal",
        _generalized_normal(words, p, impl=impl, shape=shape_of("generalized_normal", shape), dtype=dtype),
        out_sharding,
    )


@jitted("impl", "shape", "dtype")
def _generalized_normal(words: Any, p: Any, *, impl: PRNGImpl, shape: Shape, dtype: np.dtype) -> Any:
    return generalized_normal_of(impl, words, as_dtype(p, dtype), shape, dtype)


def ball(key: Any, d: int, p: Any = 2, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Uniform in the unit ball of the p-norm in d dimensions: f[*shape, d].

    Barthe, Guedon, Mendelson, Naor, "A probabilistic approach to the geometry of the l_p^n ball", 2005.
    """
    impl, words, _ = open_key("ball", key)
    check_parameters("ball", real=False, p=p)
    dimensions = static_int(d, "ball: argument 'd'")
    if dimensions < 0:
        raise ValueError(f"ball: argument 'd' is {d}; dimensions must not be negative")
    dtype, shape = float_dtype("ball", dtype), shape_of("ball", shape)
    return out_placed("ball", _ball(words, p, impl=impl, d=dimensions, shape=shape, dtype=dtype), out_sharding)


@jitted("impl", "d", "shape", "dtype")
def _ball(words: Any, p: Any, *, impl: PRNGImpl, d: int, shape: Shape, dtype: np.dtype) -> Any:
    """g / (sum |g|^p + e)^(1/p), g generalized normal, e exponential"""
    first, second = two_keys(impl, words)
    p = as_dtype(p, dtype)
    g = generalized_normal_of(impl, first, p, (*shape, d), dtype)
    e = exponential_of(impl, second, shape, dtype)
    total = lax.add(jnp.sum(lax.pow(lax.abs(g), jnp.broadcast_to(p, g.shape)), axis=-1), e)
    norm = lax.pow(total, jnp.broadcast_to(lax.div(lax.full_like(p, 1), p), shape))
    return lax.div(g, jnp.broadcast_to(lax.expand_dims(norm, (norm.ndim,)), g.shape))


def dirichlet(key: Any, alpha: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Dirichlet with concentrations alpha[..., k]: f[*shape, k], each of sum 1.

    Raises ValueError if alpha is a scalar, or its leading dimensions do not broadcast to `shape`.
    """
    impl, words, _ = open_key("dirichlet", key)
    dtype = float_dtype("dirichlet", dtype)
    if np.ndim(alpha) < 1:
        raise ValueError("dirichlet: argument 'alpha' must be a vector or several, got a scalar")
    shape = batch_shape("dirichlet", shape, **{"alpha.shape[:-1]": np.shape(alpha)[:-1]})
    return out_placed("dirichlet", _dirichlet(words, alpha, impl=impl, shape=shape, dtype=dtype), out_sharding)


@jitted("impl", "shape", "dtype")
def _dirichlet(words: Any, alpha: Any, *, impl: PRNGImpl, shape: Shape, dtype: np.dtype) -> Any:
    """The softmax of log-gamma variables"""
    if np.shape(alpha)[-1] == 0:
        return lax.full((*shape, 0), 0, dtype)
    logs = gamma_of(impl, words, (*shape, np.shape(alpha)[-1]), as_dtype(alpha, dtype), True)
    parts = lax.exp(lax.sub(logs, lax.stop_gradient(jnp.max(logs, axis=-1, keepdims=True))))
    return lax.div(parts, jnp.sum(parts, axis=-1, keepdims=True))


__all__ = ["ball", "beta", "chisquare", "dirichlet", "f", "gamma", "generalized_normal", "loggamma", "t"]
