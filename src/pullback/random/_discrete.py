"""Discrete distributions: Poisson, binomial, multinomial, geometric, categorical; permutations and choices.

The rounds of a short permutation are sorted side by side, each on a thread, and applied one after the other; longer
ones sort one round after the other on all threads. See ext/sorting/radix_sort.h and packed_sort.h for what that takes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback import lax
from pullback.core import Tracer
from pullback.core.explain import type_shown
from pullback.lax.collectives.sharding import out_placed
from pullback.numpy._arguments import promote_dtypes_inexact
from pullback.random._arguments import batch_shape, check_parameters, float_dtype, int_dtype, shape_of
from pullback.random._continuous import Shape, gumbel_mode, gumbel_of
from pullback.random._generators import PRNGImpl
from pullback.random._jit import jitted
from pullback.random._keys import open_key, random_bits
from pullback.random._uniform import keys_of, randint_of, two_keys, uniform_of
from pullback.util import dtypes

# ------------------------------------------------------------------------------------------------------------ Poisson


def poisson(key: Any, lam: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Poisson with mean lam, of an integer `dtype`; lam broadcasts to `shape`.

    Raises ValueError if `dtype` is not an integer dtype, NotImplementedError for other generators than threefry2x32.
    """
    impl, words, _ = open_key("poisson", key)
    if impl.name != "threefry2x32":
        raise NotImplementedError(
            f"poisson: argument 'key' must be of the generator threefry2x32, got one of {impl.name}"
        )
    dtype = int_dtype("poisson", dtype)
    check_parameters("poisson", lam=lam)
    shape = batch_shape("poisson", shape, lam=np.shape(lam))
    return out_placed("poisson", _poisson(words, lam, impl=impl, shape=shape, dtype=dtype), out_sharding)


@jitted("impl", "shape", "dtype")
def _poisson(words: Any, lam: Any, *, impl: PRNGImpl, shape: Shape, dtype: np.dtype) -> Any:
    """Knuth's products of uniforms below 10, transformed rejection from there on; both loops run on all elements."""
    lam = jnp.broadcast_to(lax.convert_element_type(jnp.asarray(lam), np.float32), shape)
    small = jnp.logical_or(lax.ne(lam, lam), lax.lt(lam, lax.full_like(lam, 10)))
    by_products = _poisson_products(impl, words, lax.select(small, lam, lax.full_like(lam, 0)), dtype)
    by_rejection = _poisson_rejection(impl, words, lax.select(small, lax.full_like(lam, 1e5), lam), dtype)
    out = lax.select(small, by_products, by_rejection)
    return lax.select(lax.eq(lam, lax.full_like(lam, 0)), lax.full_like(out, 0), out)


def _poisson_products(impl: PRNGImpl, words: Any, lam: Any, dtype: np.dtype) -> Any:
    """The number of uniforms whose product stays above exp(-lam), less 1. Knuth, TAOCP 2, 3.4.1 F."""

    def above(log_product: Any) -> Any:
        return lax.gt(log_product, lax.neg(lam))

    def step(state: Any) -> Any:
        words, count, log_product = state
        words, drawn = two_keys(impl, words)
        count = lax.select(above(log_product), lax.add(count, lax.full_like(count, 1)), count)
        return words, count, lax.add(log_product, lax.log(uniform_of(impl, drawn, lam.shape, lam.dtype)))

    start = (words, lax.full(lam.shape, 0, dtype), lax.full_like(lam, 0))
    _, count, _ = lax.while_loop(lambda state: jnp.any(above(state[2])), step, start)
    return lax.sub(count, lax.full_like(count, 1))


def _poisson_rejection(impl: PRNGImpl, words: Any, lam: Any, dtype: np.dtype) -> Any:
    """The algorithm PTRS of Hoermann, "The transformed rejection method for generating Poisson random variables", 1993.

    An element that is accepted again while others still wait takes its latest value, so that all stay independent of
    order.
    """
    log_lam, b = jnp.log(lam), 0.931 + 2.53 * jnp.sqrt(lam)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    v_r = 0.9277 - 3.6224 / (b - 2)

    def step(state: Any) -> Any:
        words, out, accepted = state
        words, first, second = keys_of(impl, words, 3)
        u = uniform_of(impl, first, lam.shape, lam.dtype) - 0.5
        v = uniform_of(impl, second, lam.shape, lam.dtype)
        us = 0.5 - jnp.abs(u)
        k = jnp.floor((2 * a / us + b) * u + lam + 0.43)
        s = jnp.log(v * inverse_alpha / (a / (us * us) + b))
        bound = -lam + k * log_lam - lax.lgamma(k + 1)
        at_once = (us >= 0.07) & (v <= v_r)
        never = (k < 0) | ((us < 0.013) & (v > us))
        accept = at_once | (~never & (s <= bound))
        return words, lax.select(accept, k, out), accepted | accept

    start = (words, lax.full_like(lam, -1), lax.full(lam.shape, False, np.dtype(bool)))
    _, out, _ = lax.while_loop(lambda state: jnp.any(~state[2]), step, start)
    return lax.convert_element_type(out, dtype)


# ----------------------------------------------------------------------------------------------------------- binomial


def _tail(k: int) -> float:
    """log k! less Stirling's formula log sqrt(2 pi) + (k + 1/2) log(k + 1) - (k + 1)."""
    return math.lgamma(k + 1) - (0.5 * math.log(2 * math.pi) + (k + 0.5) * math.log(k + 1) - (k + 1))


_TAILS = [_tail(k) for k in range(10)]


def _stirling_tail(k: Any) -> Any:
    """The tail: from a table up to 9, and for more the series at 9, as the numbers of JAX have it (it is below
    0.0084)."""
    table = jnp.asarray(np.array(_TAILS), dtype=k.dtype)
    clipped = jnp.clip(k, 0, 9)
    x = clipped + 1
    square = x * x
    series = (1 / 12 - (1 / 360 - 1 / 1260 / square) / square) / x
    return jnp.where(k <= 9, table[jnp.floor(clipped).astype(np.int32)], series)


def binomial(key: Any, n: Any, p: Any, shape: Any = None, dtype: Any = None) -> Any:
    """Number of successes in n trials of probability p, as a float of `dtype`; nan for n < 0 or p outside [0, 1].

    n and p broadcast to `shape`; ValueError if not, or if `dtype` is not a float dtype.
    """
    impl, words, _ = open_key("binomial", key)
    dtype = float_dtype("binomial", dtype)
    check_parameters("binomial", n=n, p=p)
    return _binomial(
        words, n, p, impl=impl, shape=batch_shape("binomial", shape, n=np.shape(n), p=np.shape(p)), dtype=dtype
    )


@jitted("impl", "shape", "dtype")
def _binomial(words: Any, n: Any, p: Any, *, impl: PRNGImpl, shape: Shape, dtype: np.dtype) -> Any:
    n, p = promote_dtypes_inexact(n, p)  # which is the type that is drawn in, as in JAX, whatever is asked for
    n, p = (jnp.broadcast_to(x, shape) for x in (n, p))
    return lax.convert_element_type(binomial_of(impl, words, n, p), dtype)


def binomial_of(impl: PRNGImpl, words: Any, n: Any, p: Any) -> Any:
    """Sums of geometric variables where n p <= 10, transformed rejection elsewhere; p > 1/2 by counting failures."""
    below_half = p < 0.5
    q = jnp.where(below_half, p, 1 - p)
    bad_n, bad_q, infinite = jnp.isnan(n) | (n < 0), jnp.isnan(q) | (q < 0), jnp.isinf(n)
    q_used = jnp.where(bad_q, 0.01, q).astype(p.dtype)
    few = bad_n | (n * q_used <= 10)
    whole = jnp.floor(n)
    by_sums = _binomial_sums(impl, words, jnp.where(few, whole, 0), q_used)
    by_rejection = _binomial_rejection(impl, words, jnp.where(few, 1e4, whole), jnp.where(few, 0.5, q_used))
    out = jnp.where(few, by_sums, by_rejection)
    invalid = bad_q | bad_n
    out = jnp.where(invalid, np.nan, out)
    out = jnp.where(infinite & ~invalid, np.inf, out)
    return jnp.where(below_half | bad_n | bad_q | infinite, out, whole - out).astype(p.dtype)


def _binomial_sums(impl: PRNGImpl, words: Any, n: Any, p: Any) -> Any:
    """How many geometric variables fit into n. Devroye, "Non-uniform random variate generation", 1986, X.4.1."""
    log_miss = jnp.log1p(-p)

    def step(state: Any) -> Any:
        words, count, total = state
        drawn, words = two_keys(impl, words)
        count = jnp.where(total <= n, count + 1, count)
        return words, count, total + jnp.ceil(jnp.log(uniform_of(impl, drawn, n.shape, n.dtype)) / log_miss)

    start = (words, lax.full_like(n, 0), lax.full_like(n, 0))
    _, count, _ = lax.while_loop(lambda state: jnp.any(state[2] <= n), step, start)
    return count - 1


def _binomial_rejection(impl: PRNGImpl, words: Any, n: Any, p: Any) -> Any:
    """The algorithm BTRS of Hoermann, "The generation of binomial random variates", 1993."""
    deviation = jnp.sqrt(n * p * (1 - p))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p
    c, v_r, r = n * p + 0.5, 0.92 - 4.2 / b, p / (1 - p)
    alpha, m = (2.83 + 5.1 / b) * deviation, jnp.floor((n + 1) * p)

    def step(state: Any) -> Any:
        words, out, accepted = state
        words, first, second = keys_of(impl, words, 3)
        u = uniform_of(impl, first, n.shape, n.dtype) - 0.5
        v = uniform_of(impl, second, n.shape, n.dtype)
        us = 0.5 - jnp.abs(u)
        at_once = (us >= 0.07) & (v <= v_r)
        k = jnp.floor((2 * a / us + b) * u + c)
        outside = (k < 0) | (k > n)
        log_v = jnp.log(v * alpha / (a / (us * us) + b))
        bound = (
            (m + 0.5) * jnp.log((m + 1) / (r * (n - m + 1)))
            + (n + 1) * jnp.log((n - m + 1) / (n - k + 1))
            + (k + 0.5) * jnp.log(r * (n - k + 1) / (k + 1))
            + _stirling_tail(m)
            + _stirling_tail(n - m)
            - _stirling_tail(k)
            - _stirling_tail(n - k)
        )
        accept = at_once | (~outside & (log_v <= bound))
        return words, jnp.where(accept, k, out), accepted | accept

    start = (words, lax.full_like(n, -1), lax.full(n.shape, False, np.dtype(bool)))
    _, out, _ = lax.while_loop(lambda state: jnp.any(~state[2]), step, start)
    return out


def multinomial(key: Any, n: Any, p: Any, *, shape: Any = None, dtype: Any = None, unroll: int | bool = 1) -> Any:
    """Counts of n draws among k categories of probabilities p[..., k]: f[*batch, k], as floats of `dtype`.

    n broadcasts against p.shape[:-1]; `shape`, if given, is that of the result. `unroll` as in lax.scan.
    """
    impl, words, _ = open_key("multinomial", key)
    dtype = (
        float_dtype("multinomial", None)
        if dtype is None
        else np.dtype(dtypes.check_user_dtype_supported(dtype, "multinomial"))
    )
    check_parameters("multinomial", n=n, p=p)
    n_shape, p_shape = np.shape(n), np.shape(p)
    if not p_shape:
        raise ValueError("multinomial requires p.ndim >= 1, got p.ndim == 0")
    whole = (*lax.broadcast_shapes(n_shape, p_shape[:-1]), p_shape[-1])
    if shape is not None:
        shape = shape_of("multinomial", shape)
        whole = batch_shape("multinomial", shape, **{"n.shape + (1,)": (*n_shape, 1), "p": p_shape})
    counts = _multinomial(words, n, p, impl=impl, shape=whole, unroll=unroll)
    return lax.convert_element_type(counts, dtype)


@jitted("impl", "shape", "unroll")
def _multinomial(words: Any, n: Any, p: Any, *, impl: PRNGImpl, shape: Shape, unroll: int | bool) -> Any:
    """Category by category: a binomial of what is left, with the probability among the categories that are left."""
    n, p = promote_dtypes_inexact(jnp.asarray(n), jnp.asarray(p))  # the type that is drawn in, as of `binomial`
    n = jnp.broadcast_to(n, shape[:-1])
    p = jnp.broadcast_to(p, shape)
    p = jnp.moveaxis(p, -1, 0)
    left = lax.cumsum(p, axis=0, reverse=True)
    ratios = p / jnp.where(left == 0, 1, left)
    keys = impl.split(words, (shape[-1],))

    def step(remaining: Any, drawn: Any) -> Any:
        ratio, words = drawn
        count = binomial_of(impl, words, remaining, jnp.clip(ratio, 0, 1))
        return remaining - count, count

    _, counts = lax.scan(step, n, (ratios, keys), unroll=unroll)
    return jnp.moveaxis(counts, 0, -1)


def geometric(key: Any, p: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Number of trials of probability p up to the first success: 1, 2, ... of an integer `dtype`.

    p broadcasts to `shape`; ValueError if not, or if `dtype` is not an integer dtype.
    """
    impl, words, _ = open_key("geometric", key)
    dtype = int_dtype("geometric", dtype)
    check_parameters("geometric", p=p)
    return out_placed(
        "geometric",
        _geometric(words, p, impl=impl, shape=batch_shape("geometric", shape, p=np.shape(p)), dtype=dtype),
        out_sharding,
    )


@jitted("impl", "shape", "dtype")
def _geometric(words: Any, p: Any, *, impl: PRNGImpl, shape: Shape, dtype: np.dtype) -> Any:
    """floor(log u / log(1 - p)) + 1"""
    p = jnp.asarray(p)
    p = lax.convert_element_type(p, dtypes.to_inexact_dtype(p.dtype))
    u = uniform_of(impl, words, shape, p.dtype)
    log_u = lax.log(lax.select(lax.eq(u, lax.full_like(u, 0)), lax.full_like(u, 1), u))
    trials = lax.floor(lax.div(log_u, jnp.broadcast_to(lax.log1p(lax.neg(p)), shape)))
    return lax.convert_element_type(lax.add(trials, lax.full_like(trials, 1)), dtype)


# ---------------------------------------------------------------------------------------- categories and permutations


def categorical(
    key: Any,
    logits: Any,
    axis: int = -1,
    shape: Any = None,
    replace: bool = True,
    mode: str | None = None,
    *,
    out_sharding: Any = None,
) -> Any:
    """Indices along `axis` of logits, drawn with the probabilities softmax(logits): i32[*shape].

    `shape` must end with the shape of logits without `axis` (its default). Without `replace`, the draws along the
    dimensions that `shape` adds differ. Raises ValueError if shapes do not fit, or there are fewer categories than such
    draws.
    """
    impl, words, _ = open_key("categorical", key)
    check_parameters("categorical", logits=logits)
    logits_shape, kind = np.shape(logits), dtypes.dtype_of(jnp.asarray(logits))
    if not dtypes.issubdtype(kind, np.floating):
        raise ValueError(f"categorical: argument 'logits' must be of a float dtype, got {kind}")
    if not -len(logits_shape) <= axis < len(logits_shape):
        raise IndexError(f"categorical: argument 'axis' is {axis}, but logits have shape {logits_shape}")
    axis %= len(logits_shape)
    batch = logits_shape[:axis] + logits_shape[axis + 1 :]
    shape = batch_shape("categorical", shape, **{"logits without axis": batch})
    mode = gumbel_mode("categorical", mode)
    prefix = shape[: len(shape) - len(batch)]
    if not replace and math.prod(prefix) > logits_shape[axis]:
        raise ValueError(
            f"categorical: {math.prod(prefix)} draws for argument 'shape', but {logits_shape[axis]} categories to draw "
            "without replacement"
        )
    return out_placed(
        "categorical",
        _categorical(words, logits, impl=impl, axis=axis, shape=shape, replace=bool(replace), mode=mode),
        out_sharding,
    )


@jitted("impl", "axis", "shape", "replace", "mode")
def _categorical(words: Any, logits: Any, *, impl: PRNGImpl, axis: int, shape: Shape, replace: bool, mode: str) -> Any:
    """The largest of logits plus Gumbel variables; the k largest for k draws without replacement"""
    logits = jnp.asarray(logits)
    logits = lax.convert_element_type(logits, dtypes.to_inexact_dtype(logits.dtype))
    extra = len(shape) - (logits.ndim - 1)
    prefix, inner = shape[:extra], shape[extra:]
    if replace:
        full = (*prefix, *inner[:axis], logits.shape[axis], *inner[axis:])
        g = gumbel_of(impl, words, full, logits.dtype, mode)
        return jnp.argmax(lax.add(g, jnp.broadcast_to(logits, full)), axis=axis + extra)
    noisy = lax.add(logits, gumbel_of(impl, words, logits.shape, logits.dtype, mode))
    _, indices = lax.top_k(jnp.moveaxis(noisy, axis, -1), math.prod(prefix))
    return lax.reshape(jnp.moveaxis(indices, -1, 0), shape)


def permutation(key: Any, x: Any, axis: int = 0, independent: bool = False, *, out_sharding: Any = None) -> Any:
    """A random permutation of range(x), for an integer x, or of an array along `axis`.

    `independent`: each vector along the axis gets its own. Raises TypeError if x is neither, ValueError for a bad axis.
    """
    impl, words, _ = open_key("permutation", key)
    if isinstance(x, Sequence):
        raise TypeError(f"permutation requires ndarray or scalar arguments: argument 'x' is {type_shown(x)}")
    ndim = np.ndim(x)
    axis = _axis("permutation", axis, max(ndim, 1))
    if ndim == 0:
        if not dtypes.issubdtype(dtypes.dtype_of(x), np.integer):
            raise TypeError(
                f"permutation: argument 'x' is an integer or an array with axes, got a scalar of "
                f"dtype {dtypes.dtype_of(x)}"
            )
        return out_placed(
            "permutation",
            _shuffled_range(words, impl=impl, n=max(int(x), 0), dtype=dtypes.canonicalize_dtype(np.int64)),
            out_sharding,
        )
    return out_placed(
        "permutation", _permutation(words, x, impl=impl, axis=axis, independent=bool(independent)), out_sharding
    )


def _axis(name: str, axis: int, ndim: int) -> int:
    if not -ndim <= axis < ndim:
        raise ValueError(f"{name}: argument 'axis' is {axis}, but the array has {ndim} dimensions")
    return axis % ndim


@jitted("impl", "n", "dtype")
def _shuffled_range(words: Any, *, impl: PRNGImpl, n: int, dtype: np.dtype) -> Any:
    return shuffle(impl, words, lax.iota(dtype, n), 0)


@jitted("impl", "axis", "independent")
def _permutation(words: Any, x: Any, *, impl: PRNGImpl, axis: int, independent: bool) -> Any:
    return permutation_of(impl, words, jnp.asarray(x), axis, independent)


def permutation_of(impl: PRNGImpl, words: Any, x: Any, axis: int, independent: bool = False) -> Any:
    """x in random order along an axis, slices whole unless `independent`."""
    if independent or x.ndim == 1:
        return shuffle(impl, words, x, axis)
    order = shuffle(impl, words, lax.iota(dtypes.canonicalize_dtype(np.int64), x.shape[axis]), 0)
    return jnp.take(x, order, axis=axis, unique_indices=True)


def shuffle(impl: PRNGImpl, words: Any, x: Any, axis: int) -> Any:
    """Sort by random words; as equal words leave a trace of the old order, as often as it takes for that to be
    negligible: the exponent of the number of elements is 3 per 32 bits.

    The orders of several rounds do not depend on each other. Short ones are sorted side by side, each on a thread, and
    applied one after the other; in longer ones all threads sort a round, which moves what the one before it gave.
    """
    if not isinstance(x.size, int):
        raise NotImplementedError(f"permutation: it needs to know how many elements there are, of shape {x.shape}")
    rounds = math.ceil(3 * math.log(max(1, x.size)) / math.log(2**32 - 1))
    drawn = []
    for _ in range(rounds):
        words, key = two_keys(impl, words)
        drawn.append(random_bits(impl, key, 32, tuple(x.shape)))
    if rounds <= 1 or x.shape[axis] > _SIDE_BY_SIDE:
        direct = rounds <= 1 or x.dtype in _PAYLOADS
        moved = x if direct else lax.broadcasted_iota(np.int32, x.shape, axis)
        for keys in drawn:
            moved = lax.sort((keys, moved), dimension=axis, num_keys=1)[1]
        return moved if direct else _taken(x, moved, axis)
    places = lax.broadcasted_iota(np.int32, (rounds, *x.shape), axis + 1)
    bits = lax.concatenate([lax.expand_dims(words, (0,)) for words in drawn], 0)
    _, orders = lax.sort((bits, places), dimension=axis + 1, num_keys=1)
    for k in range(rounds):
        x = _taken(x, lax.index_in_dim(orders, k, 0, keepdims=False), axis)
    return x


# Elements up to which a sort is no work for two threads (ext/sorting/packed_sort.h).
_SIDE_BY_SIDE = 1 << 14
# What a sort moves along with its keys.
_PAYLOADS = tuple(map(np.dtype, ("int32", "uint32", "float32", "int64", "uint64", "float64")))


def _taken(x: Any, order: Any, axis: int) -> Any:
    return jnp.take_along_axis(x, order, axis, mode="promise_in_bounds", wrap_negative_indices=False)


def choice(
    key: Any, a: Any, shape: Any = (), replace: bool = True, p: Any = None, axis: int = 0, mode: str | None = None
) -> Any:
    """Random draws from range(a), for an integer a, or of slices of an array along `axis`, in whose place `shape`
    comes.

    `p`: probabilities, 1-d; without `replace` all draws differ. Raises ValueError for a sample larger than the
    population without replacement, for an empty population, and if p does not fit; TypeError if `shape` is not a
    sequence.
    """
    impl, words, _ = open_key("choice", key)
    if not isinstance(shape, Sequence):
        raise TypeError(f"choice: argument 'shape' must be a sequence of integers, got {shape!r}")
    shape = shape_of("choice", shape)
    for name, value in (("a", a), ("p", p)):
        if isinstance(value, Sequence):
            raise TypeError(f"choice requires ndarray or scalar arguments: argument '{name}' is {type_shown(value)}")
    scalar = np.ndim(a) == 0
    if scalar and isinstance(a, Tracer):
        a = int(a)  # raises: the population must be known while tracing
    axis = 0 if scalar else _axis("choice", axis, np.ndim(a))
    population = int(a) if scalar else np.shape(a)[axis]
    draws = math.prod(shape)
    if population <= 0 and draws > 0:
        raise ValueError(f"choice: argument 'a' is {population}, from which {draws} samples cannot be drawn")
    if not replace and draws > population:
        raise ValueError(
            f"choice: {draws} samples without replacement from a population of {population}; use replace=True"
        )
    if p is not None and np.shape(p) != (population,):
        raise ValueError(
            f"choice: argument 'p' gives each of the {population} elements a probability, so its shape is "
            f"{(population,)}; got {np.shape(p)}"
        )
    if draws == 0:  # of this shape alone, as JAX has it
        return jnp.zeros(shape, dtypes.dtype_of(a))
    return _choice(
        words,
        None if scalar else a,
        p,
        impl=impl,
        n=population,
        shape=shape,
        replace=bool(replace),
        axis=axis,
        mode=gumbel_mode("choice", mode),
    )


@jitted("impl", "n", "shape", "replace", "axis", "mode")
def _choice(
    words: Any, a: Any, p: Any, *, impl: PRNGImpl, n: int, shape: Shape, replace: bool, axis: int, mode: str
) -> Any:
    whole, draws = dtypes.canonicalize_dtype(np.int64), math.prod(shape)
    if p is None and not replace:
        taken = permutation_of(impl, words, lax.iota(whole, n) if a is None else jnp.asarray(a), axis)
        return _in_place(lax.slice_in_dim(taken, 0, draws, axis=axis), shape, axis)
    if p is None:
        index = randint_of(impl, words, shape, 0, n, whole)
    else:
        p = jnp.asarray(p)
        p = lax.convert_element_type(p, dtypes.to_inexact_dtype(p.dtype))
        if replace:
            total = lax.cumsum(p, axis=0)
            u = uniform_of(impl, words, shape, p.dtype)
            level = lax.mul(jnp.broadcast_to(total[-1], shape), lax.sub(lax.full_like(u, 1), u))
            index = jnp.searchsorted(total, level).astype(whole)
        else:
            g = gumbel_of(impl, words, (n,), p.dtype, mode)
            _, index = lax.top_k(lax.add(g, lax.log(p)), draws)
            index = lax.reshape(index, shape).astype(whole)
    if a is None:
        return index
    taken = jnp.take(jnp.asarray(a), lax.reshape(index, (draws,)), axis=axis)
    return _in_place(taken, shape, axis)


def _in_place(taken: Any, shape: Shape, axis: int) -> Any:
    """The draws along `axis` in the given shape."""
    return lax.reshape(taken, (*taken.shape[:axis], *shape, *taken.shape[axis + 1 :]))
