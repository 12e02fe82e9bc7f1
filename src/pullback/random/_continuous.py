"""Continuous distributions made from uniform or normal variables in closed form.

Each section gives the formula; u is uniform on [0, 1) unless said, z standard normal, e exponential, tiny the least
normal number.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback import lax
from pullback.lax.collectives.sharding import out_placed
from pullback.random._arguments import (
    above,
    as_dtype,
    batch_shape,
    check_casts,
    check_parameters,
    float_dtype,
    inexact_dtype,
    shape_of,
    smallest_normal,
)
from pullback.random._generators import PRNGImpl
from pullback.random._jit import jitted, named
from pullback.random._keys import open_key
from pullback.random._uniform import normal_of, rademacher_of, two_keys, uniform_of
from pullback.util import config, dtypes

Shape = tuple[int, ...]


def _shape_only(doc: str, sample: Callable[[PRNGImpl, Any, Shape, np.dtype], Any]) -> Callable[..., Any]:
    """The public function of a distribution without parameters."""
    name = sample.__name__.removesuffix("_of")

    @jitted("impl", "shape", "dtype")
    @named(f"_{name}")
    def compiled(words: Any, *, impl: PRNGImpl, shape: Shape, dtype: np.dtype) -> Any:
        return sample(impl, words, shape, dtype)

    def public(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Any:
        impl, words, _ = open_key(name, key)
        return out_placed(
            name, compiled(words, impl=impl, shape=shape_of(name, shape), dtype=float_dtype(name, dtype)), out_sharding
        )

    public.__name__ = public.__qualname__ = name
    public.__module__ = "pullback.random"
    public.__doc__ = (
        f"{doc}\n\n    Raises ValueError if `dtype` is not a float dtype, or `key` holds several keys.\n    "
    )
    return public


def exponential_of(impl: PRNGImpl, words: Any, shape: Shape, dtype: np.dtype) -> Any:
    """-log(1 - u)"""
    return lax.neg(lax.log1p(lax.neg(uniform_of(impl, words, shape, dtype))))


def cauchy_of(impl: PRNGImpl, words: Any, shape: Shape, dtype: np.dtype) -> Any:
    """tan(pi (u - 1/2)), u on [eps, 1)"""
    u = uniform_of(impl, words, shape, dtype, dtypes.finfo(dtype).eps, 1.0)
    return lax.tan(lax.mul(lax.full(shape, math.pi, dtype), lax.sub(u, lax.full(shape, 0.5, dtype))))


def laplace_of(impl: PRNGImpl, words: Any, shape: Shape, dtype: np.dtype) -> Any:
    """sign(u) log(1 - |u|), u on (-1, 1)"""
    u = uniform_of(impl, words, shape, dtype, above(-1, dtype), 1.0)
    return lax.mul(lax.sign(u), lax.log1p(lax.neg(lax.abs(u))))


def logistic_of(impl: PRNGImpl, words: Any, shape: Shape, dtype: np.dtype) -> Any:
    """log u - log(1 - u), u on [tiny, 1)"""
    u = uniform_of(impl, words, shape, dtype, smallest_normal(dtype), 1.0)
    return lax.sub(lax.log(u), lax.log1p(lax.neg(u)))


def maxwell_of(impl: PRNGImpl, words: Any, shape: Shape, dtype: np.dtype) -> Any:
    """The length of a vector of three z"""
    z = normal_of(impl, words, (*shape, 3), dtype)
    return lax.sqrt(jnp.sum(lax.mul(z, z), axis=-1))


exponential = _shape_only("Exponential of rate 1: density exp(-x), x > 0.", exponential_of)
cauchy = _shape_only("Cauchy: density 1 / (pi (1 + x^2)).", cauchy_of)
laplace = _shape_only("Laplace: density exp(-|x|) / 2.", laplace_of)
logistic = _shape_only("Logistic: density exp(-x) / (1 + exp(-x))^2.", logistic_of)
maxwell = _shape_only("Maxwell: density sqrt(2/pi) x^2 exp(-x^2/2), x > 0.", maxwell_of)


# ------------------------------------------------------------------------------------------------------------- Gumbel


def gumbel(key: Any, shape: Any = (), dtype: Any = None, mode: str | None = None, *, out_sharding: Any = None) -> Any:
    """Gumbel: density exp(-x - exp(-x)). `mode='high'` draws more bits, for a finer upper tail.

    Raises ValueError if `dtype` is not a float dtype, or for a mode other than None, 'low' and 'high'.
    """
    impl, words, _ = open_key("gumbel", key)
    return out_placed(
        "gumbel",
        _gumbel(
            words,
            impl=impl,
            shape=shape_of("gumbel", shape),
            dtype=float_dtype("gumbel", dtype),
            mode=gumbel_mode("gumbel", mode),
        ),
        out_sharding,
    )


def gumbel_mode(name: str, mode: str | None) -> str:
    """The mode of a Gumbel draw, by default the configuration's; ValueError for one that is none."""
    if mode is None:
        mode = "high" if config.value_of("jax_high_dynamic_range_gumbel") else "low"
    if mode not in ("low", "high"):
        raise ValueError(f"{name}: argument 'mode' is 'low', 'high' or None, got {mode!r}")
    return mode


def gumbel_of(impl: PRNGImpl, words: Any, shape: Shape, dtype: np.dtype, mode: str) -> Any:
    """low: -log(-log u), u on [tiny, 1); high: -log(-log(1 - v)), v = u_0 below 1/2 and u_0 + eps u_1 + tiny above
    it"""
    tiny = smallest_normal(dtype)
    if mode == "low":
        return lax.neg(lax.log(lax.neg(lax.log(uniform_of(impl, words, shape, dtype, tiny, 1.0)))))
    both = uniform_of(impl, words, (2, *shape), dtype)
    first, second = (lax.index_in_dim(both, i, 0, keepdims=False) for i in (0, 1))
    fine = lax.add(first, lax.mul(lax.full(shape, dtypes.finfo(dtype).eps, dtype), second))
    fine = lax.add(fine, lax.full(shape, tiny, dtype))
    v = lax.select(lax.ge(first, lax.full(shape, 0.5, dtype)), first, fine)
    return lax.neg(lax.log(lax.neg(lax.log1p(lax.neg(v)))))


@jitted("impl", "shape", "dtype", "mode")
def _gumbel(words: Any, *, impl: PRNGImpl, shape: Shape, dtype: np.dtype, mode: str) -> Any:
    return gumbel_of(impl, words, shape, dtype, mode)


# ------------------------------------------------------------------------ distributions with parameters, by one mould


def with_parameters(
    *names: str, doc: str, fixed_shape: bool = False, lists: bool = False, per_parameters: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make `sample(impl, words, shape, dtype, *parameters)` the public `name(key, *parameters, shape, dtype)`.

    The parameters arrive as arrays of `dtype`; `fixed_shape`: the draws have this shape, () by default, and broadcast
    with the parameters; `per_parameters`: there are as many for each of the parameters;
    `lists`: lists are taken for arrays.
    """

    def decorate(sample: Callable[..., Any]) -> Callable[..., Any]:
        name = sample.__name__

        @jitted("impl", "shape", "dtype")
        @named(f"_{name}")
        def compiled(words: Any, *parameters: Any, impl: PRNGImpl, shape: Shape, dtype: np.dtype) -> Any:
            return sample(impl, words, shape, dtype, *[as_dtype(p, dtype) for p in parameters])

        def run(key: Any, parameters: tuple[Any, ...], shape: Any, dtype: Any, out_sharding: Any) -> Any:
            impl, words, _ = open_key(name, key)
            if lists:
                parameters = tuple([jnp.asarray(p) if isinstance(p, (list, tuple)) else p for p in parameters])
            check_parameters(name, not (lists or fixed_shape), **dict(zip(names, parameters, strict=True)))
            kind = float_dtype(name, dtype)
            if not (lists or fixed_shape):
                check_casts(name, kind, **dict(zip(names, parameters, strict=True)))
            shapes = {n: np.shape(p) for n, p in zip(names, parameters, strict=True)}
            whole = shape_of(name, shape) if fixed_shape else batch_shape(name, shape, **shapes)
            if fixed_shape:
                common = batch_shape(name, None, **shapes)
                if per_parameters:
                    whole = (whole or common) + common
                else:
                    batch_shape(name, None, draws=whole, **shapes)
            return out_placed(name, compiled(words, *parameters, impl=impl, shape=whole, dtype=kind), out_sharding)

        public = _signature(name, names, run, () if fixed_shape else None)
        public.__doc__ = (
            f"{doc}\n\n    The parameters broadcast to `shape`. Raises ValueError if they do not, "
            "or if `dtype` is not a float dtype.\n    "
        )
        public.__module__ = "pullback.random"
        return public

    return decorate


def _signature(name: str, names: tuple[str, ...], run: Callable[..., Any], default: Any) -> Callable[..., Any]:
    """A function (key, <names>, shape, dtype, *, out_sharding) that calls `run`, so that help() shows the true
    names."""
    source = (
        f"def {name}(key, {', '.join(names)}, shape=default, dtype=None, *, out_sharding=None):\n"
        f"    return run(key, ({', '.join(names)},), shape, dtype, out_sharding)\n"
    )
    scope: dict[str, Any] = {"run": run, "default": default}
    exec(compile(source, f"{__file__}: {name}", "exec"), scope)
    return scope[name]


@with_parameters("lower", "upper", lists=True, doc="Normal, restricted to (lower, upper).")
def truncated_normal(impl: PRNGImpl, words: Any, shape: Shape, dtype: np.dtype, lower: Any, upper: Any) -> Any:
    """sqrt(2) erfinv(v), v uniform between erf(lower / sqrt 2) and erf(upper / sqrt 2), kept inside the open
    interval"""
    root2 = np.sqrt(2).astype(dtype)
    a, b = (lax.erf(lax.div(x, lax.full_like(x, root2))) for x in (lower, upper))
    out = lax.mul(lax.full(shape, root2, dtype), lax.erf_inv(uniform_of(impl, words, shape, dtype, a, b)))
    lower, upper = lax.stop_gradient(lower), lax.stop_gradient(upper)
    least = lax.nextafter(lower, lax.full_like(lower, np.inf))
    most = lax.nextafter(upper, lax.full_like(upper, -np.inf))
    return lax.min(jnp.broadcast_to(most, shape), lax.max(jnp.broadcast_to(least, shape), out))


@with_parameters("b", doc="Pareto: density b / x^(b+1), x > 1.")
def pareto(impl: PRNGImpl, words: Any, shape: Shape, dtype: np.dtype, b: Any) -> Any:
    """exp(e / b)"""
    return lax.exp(lax.div(exponential_of(impl, words, shape, dtype), jnp.broadcast_to(b, shape)))


@with_parameters("scale", doc="Rayleigh: density (x / scale^2) exp(-x^2 / (2 scale^2)), x > 0.")
def rayleigh(impl: PRNGImpl, words: Any, shape: Shape, dtype: np.dtype, scale: Any) -> Any:
    """scale sqrt(-2 log u)"""
    log_u = lax.log(uniform_of(impl, words, shape, dtype))
    return lax.mul(jnp.broadcast_to(scale, shape), lax.sqrt(lax.mul(log_u, lax.full(shape, -2, dtype))))


@with_parameters(
    "mean",
    doc="Wald (inverse Gaussian) of scale 1: density sqrt(1 / (2 pi x^3)) exp(-(x - mean)^2 / (2 mean^2 x)), x > 0.",
)
def wald(impl: PRNGImpl, words: Any, shape: Shape, dtype: np.dtype, mean: Any) -> Any:
    """The smaller root x of the quadratic in z^2 with probability mean / (mean + x), else mean^2 / x.

    Michael, Schucany, Haas, "Generating random variates using transformations with multiple roots", 1976.
    """
    first, second = two_keys(impl, words)
    mean = jnp.broadcast_to(mean, shape)
    z = normal_of(impl, first, shape, dtype)
    u = uniform_of(impl, second, shape, dtype)
    y, square = lax.integer_pow(z, 2), lax.integer_pow(mean, 2)
    two, four = lax.full(shape, 2, dtype), lax.full(shape, 4, dtype)
    root = lax.sqrt(lax.add(lax.mul(lax.mul(four, mean), y), lax.mul(square, lax.integer_pow(y, 2))))
    x = lax.sub(lax.add(mean, lax.div(lax.mul(square, y), two)), lax.mul(lax.div(mean, two), root))
    return lax.select(lax.le(u, lax.div(mean, lax.add(mean, x))), x, lax.div(square, x))


@with_parameters("left", "mode", "right", doc="Triangular, on [left, right] with its peak at `mode`.")
def triangular(impl: PRNGImpl, words: Any, shape: Shape, dtype: np.dtype, left: Any, mode: Any, right: Any) -> Any:
    """The inverse of the two parabolas that make the distribution function"""
    left, mode, right = (jnp.broadcast_to(x, shape) for x in (left, mode, right))
    u, width = uniform_of(impl, words, shape, dtype), lax.sub(right, left)
    rising = lax.sub(mode, left)
    below = lax.add(left, lax.sqrt(lax.mul(lax.mul(u, width), rising)))
    rest = lax.mul(lax.mul(lax.sub(lax.full(shape, 1, dtype), u), width), lax.sub(right, mode))
    return lax.select(lax.lt(u, lax.div(rising, width)), below, lax.sub(right, lax.sqrt(rest)))


@with_parameters(
    "scale",
    "concentration",
    fixed_shape=True,
    doc="Weibull: density (c/s) (x/s)^(c-1) exp(-(x/s)^c), x > 0, c the concentration, s the scale.",
)
def weibull_min(impl: PRNGImpl, words: Any, shape: Shape, dtype: np.dtype, scale: Any, concentration: Any) -> Any:
    """scale e^(1 / concentration)"""
    power = lax.div(lax.full_like(concentration, 1), concentration)
    e = exponential_of(impl, words, shape, dtype)
    return jnp.multiply(jnp.power(e, power), scale)


@with_parameters(
    "loc",
    "scale",
    fixed_shape=True,
    per_parameters=True,
    doc="Double-sided Maxwell: loc + scale x, where |x| is Maxwell and the sign is random.",
)
def double_sided_maxwell(impl: PRNGImpl, words: Any, shape: Shape, dtype: np.dtype, loc: Any, scale: Any) -> Any:
    """loc + scale s m, s = -1 or 1"""
    first, second = two_keys(impl, words)
    m = maxwell_of(impl, first, shape, dtype)
    signed = lax.mul(rademacher_of(impl, second, shape, dtype), m)
    return lax.add(lax.mul(signed, jnp.broadcast_to(scale, shape)), jnp.broadcast_to(loc, shape))


# A float32 scalar, not a Python number, because the signature that users see has it.
def lognormal(
    key: Any, sigma: Any = np.float32(1), shape: Any = None, dtype: Any = None, *, out_sharding: Any = None
) -> Any:
    """Log-normal: exp(sigma z). `sigma` broadcasts to `shape`; ValueError if not, or if `dtype` is neither a float nor
    a complex dtype."""
    impl, words, _ = open_key("lognormal", key)
    dtype = inexact_dtype("lognormal", dtype)
    check_parameters("lognormal", sigma=sigma)
    check_casts("lognormal", dtype, sigma=sigma)
    return out_placed(
        "lognormal",
        _lognormal(words, sigma, impl=impl, shape=batch_shape("lognormal", shape, sigma=np.shape(sigma)), dtype=dtype),
        out_sharding,
    )


@jitted("impl", "shape", "dtype")
def _lognormal(words: Any, sigma: Any, *, impl: PRNGImpl, shape: Shape, dtype: np.dtype) -> Any:
    z = normal_of(impl, words, shape, dtype)
    return lax.exp(lax.mul(z, jnp.broadcast_to(as_dtype(sigma, dtype), shape)))
