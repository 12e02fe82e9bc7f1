"""Initial values of weights: functions `init(key, shape, dtype=...)`, and functions that make them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any, Protocol

import numpy as np

import pullback.numpy as jnp
from pullback import lax, random
from pullback.core import Tracer
from pullback.core.explain import check, explained
from pullback.core.explain import explain_all as _explain_all
from pullback.core.kinds import INTEGERS, NESTED
from pullback.lax.collectives.sharding import out_placed
from pullback.manual import add_pages as _add_pages
from pullback.manual.nn.initializers import PAGES as _PAGES
from pullback.nn._parameters import INITIALIZERS
from pullback.util import dtypes
from pullback.util.absent import listed as _listed
from pullback.util.errors import ArgumentError

__all__ = [
    "Initializer",
    "constant",
    "delta_orthogonal",
    "glorot_normal",
    "glorot_uniform",
    "he_normal",
    "he_uniform",
    "kaiming_normal",
    "kaiming_uniform",
    "lecun_normal",
    "lecun_uniform",
    "normal",
    "ones",
    "orthogonal",
    "truncated_normal",
    "uniform",
    "variance_scaling",
    "xavier_normal",
    "xavier_uniform",
    "zeros",
]


class Initializer(Protocol):
    """init(key, shape, dtype, out_sharding) -> array."""

    def __call__(self, key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Any: ...


def _dtype(dtype: Any, default: Any = None) -> Any:
    dtype = default if dtype is None else dtype
    return dtypes.check_user_dtype_supported(float if dtype is None else dtype, "initializer")


def zeros(key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Any:
    """Zeros; `key` is not used."""
    return out_placed("zeros", jnp.zeros(shape, _dtype(dtype)), out_sharding)


def ones(key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Any:
    """Ones; `key` is not used."""
    return out_placed("ones", jnp.ones(shape, _dtype(dtype)), out_sharding)


def constant(value: Any, dtype: Any = None) -> Initializer:
    """Makes an initializer that fills with `value`, broadcast."""

    def init(key: Any, shape: Any, dtype: Any = dtype, out_sharding: Any = None) -> Any:
        return out_placed("init", jnp.full(shape, value, dtype=_dtype(dtype)), out_sharding)

    return explained(init, INITIALIZERS, "constant")


def uniform(scale: Any = 1e-2, dtype: Any = None) -> Initializer:
    """Makes an initializer of uniform numbers in [0, scale)."""

    def init(key: Any, shape: Any, dtype: Any = dtype, out_sharding: Any = None) -> Any:
        kind = _dtype(dtype)
        return out_placed("init", random.uniform(key, shape, kind) * jnp.asarray(scale, kind), out_sharding)

    return explained(init, INITIALIZERS, "uniform")


def normal(stddev: Any = 1e-2, dtype: Any = None) -> Initializer:
    """Makes an initializer of normal numbers of mean 0 and the given standard deviation."""

    def init(key: Any, shape: Any, dtype: Any = dtype, out_sharding: Any = None) -> Any:
        kind = _dtype(dtype)
        return out_placed("init", random.normal(key, shape, kind) * jnp.asarray(stddev, kind), out_sharding)

    return explained(init, INITIALIZERS, "normal")


def truncated_normal(stddev: Any = 1e-2, dtype: Any = None, lower: Any = -2.0, upper: Any = 2.0) -> Initializer:
    """Makes an initializer of normal numbers restricted to (lower, upper), times stddev (which is not corrected)."""

    def init(key: Any, shape: Any, dtype: Any = dtype, out_sharding: Any = None) -> Any:
        kind = _dtype(dtype)
        return out_placed(
            "init", random.truncated_normal(key, lower, upper, shape, kind) * jnp.asarray(stddev, kind), out_sharding
        )

    return explained(init, INITIALIZERS, "truncated_normal")


def _axes(axes: int | Sequence[int]) -> tuple[int, ...]:
    return (axes,) if isinstance(axes, int) else tuple(axes)


def _fans(shape: Sequence[int], in_axis: Any, out_axis: Any, batch_axis: Any) -> tuple[float, float]:
    """How many inputs feed an output, and outputs an input: sizes of these axes times those of the rest but batch
    axes."""
    axes = (*_axes(in_axis), *_axes(out_axis), *_axes(batch_axis))
    if in_axis == -2 and len(shape) <= 1:
        raise ValueError(
            f"weights of shape {tuple(shape)} have no axis -2, which in_axis says is that of the inputs; give them two "
            "dimensions or more, or make the initializer with another in_axis"
        )
    if not all(-len(shape) <= a < len(shape) for a in axes):
        raise IndexError(f"axes {axes} of inputs, outputs and batches do not exist in weights of shape {tuple(shape)}")
    size = [math.prod(shape[a] for a in _axes(axes)) for axes in (in_axis, out_axis, batch_axis)]
    window = math.prod(shape) / size[0] / size[1] / size[2] if math.prod(shape) else 0.0
    return size[0] * window, size[1] * window


def _root(x: Any) -> Any:
    return jnp.sqrt(x) if isinstance(x, Tracer) else math.sqrt(x)


def _complex_uniform(key: Any, shape: Any, dtype: Any) -> Any:
    """Uniform in the unit disk: radius sqrt(u), angle 2 pi u'."""
    of_radius, of_angle = random.split(key)
    real = dtypes.finfo(dtype).dtype
    radius = jnp.sqrt(2 * random.uniform(of_radius, shape, real)).astype(dtype)
    angle = 2 * np.pi * random.uniform(of_angle, shape, real).astype(dtype)
    return radius * jnp.exp(1j * angle)


def _complex_truncated_normal(key: Any, upper: float, shape: Any, dtype: Any) -> Any:
    """Complex normal, the modulus restricted to below `upper`."""
    of_radius, of_angle = random.split(key)
    real = dtypes.finfo(dtype).dtype
    covered = (1 - jnp.exp(jnp.asarray(-(upper**2), dtype))).real
    u = covered * random.uniform(of_radius, shape, real)
    radius = jnp.sqrt(-jnp.log(1 - u)).astype(dtype)
    angle = 2 * np.pi * random.uniform(of_angle, shape, real).astype(dtype)
    return radius * jnp.exp(1j * angle)


# Standard deviations of the normal distribution cut at -2 and 2, and of the complex one cut at modulus 2.
_CUT_REAL, _CUT_COMPLEX = 0.87962566103423978, 0.95311164380491208


def variance_scaling(
    scale: Any,
    mode: str,
    distribution: str,
    in_axis: int | Sequence[int] = -2,
    out_axis: int | Sequence[int] = -1,
    batch_axis: int | Sequence[int] = (),
    dtype: Any = None,
) -> Initializer:
    """Makes an initializer of variance scale / n.

    n is, by `mode`, the number of inputs of an output ('fan_in'), of outputs ('fan_out'), or their arithmetic or
    geometric mean ('fan_avg', 'fan_geo_avg'); `distribution` is 'normal', 'truncated_normal' (at two standard
    deviations) or 'uniform'.
    Raises ValueError, when it is used, for others and for vectors without `in_axis`, IndexError for shapes without
    these axes.
    """
    return _by_variance("variance_scaling", scale, mode, distribution, in_axis, out_axis, batch_axis, dtype)


def _by_variance(
    name: str, scale: Any, mode: str, distribution: str, in_axis: Any, out_axis: Any, batch_axis: Any, dtype: Any
) -> Initializer:
    """As `variance_scaling`, for the function of that name."""

    def init(key: Any, shape: Any, dtype: Any = dtype, out_sharding: Any = None) -> Any:
        kind = _dtype(dtype)
        axes = [tuple(a) if isinstance(a, Set | Mapping) else a for a in (in_axis, out_axis, batch_axis)]
        check(name, INTEGERS, **dict(zip(("in_axis", "out_axis", "batch_axis"), axes)))
        check(name, NESTED, scale=scale)
        if not isinstance(mode, str):
            raise ArgumentError(f"{name}: argument 'mode' must be a string, got {mode!r}")
        fan_in, fan_out = _fans(shape, *axes)
        fans = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2,
                "fan_geo_avg": _root(fan_in * fan_out)}  # fmt: skip
        if mode not in fans:
            raise ValueError(f"{name}: argument 'mode' is one of {', '.join(fans)}, got {mode!r}")
        is_complex = dtypes.issubdtype(kind, np.complexfloating)
        fan = fans[mode]
        if isinstance(fan, Tracer):  # of symbolic dimensions, which are 1 at least
            variance = (scale / fan).astype(kind)
        else:
            variance = jnp.asarray(scale / max(fan, 1e-300 if fan else math.inf), kind)
        if not isinstance(distribution, str):
            raise ArgumentError(f"{name}: argument 'distribution' must be a string, got {distribution!r}")
        if distribution == "normal":
            return out_placed("init", random.normal(key, shape, kind) * jnp.sqrt(variance), out_sharding)
        if distribution == "uniform":
            if is_complex:
                return out_placed("init", _complex_uniform(key, shape, kind) * jnp.sqrt(variance), out_sharding)
            return out_placed("init", random.uniform(key, shape, kind, -1) * jnp.sqrt(3 * variance), out_sharding)
        if distribution == "truncated_normal":
            if is_complex:
                deviation = jnp.sqrt(variance) / jnp.asarray(_CUT_COMPLEX, kind)
                return out_placed("init", _complex_truncated_normal(key, 2, shape, kind) * deviation, out_sharding)
            deviation = jnp.sqrt(variance) / jnp.asarray(_CUT_REAL, kind)
            return out_placed("init", random.truncated_normal(key, -2, 2, shape, kind) * deviation, out_sharding)
        raise ValueError(
            f"{name}: argument 'distribution' is normal, truncated_normal or uniform, got {distribution!r}"
        )

    return explained(init, INITIALIZERS, name)


def _scaled(name: str, scale: float, mode: str, distribution: str, doc: str) -> Callable[..., Initializer]:
    def make(
        in_axis: int | Sequence[int] = -2,
        out_axis: int | Sequence[int] = -1,
        batch_axis: int | Sequence[int] = (),
        dtype: Any = None,
    ) -> Initializer:
        return _by_variance(name, scale, mode, distribution, in_axis, out_axis, batch_axis, dtype)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"{doc} `variance_scaling({scale}, {mode!r}, {distribution!r})`."
    return make


_GLOROT = "Glorot and Bengio, 2010:"
_LECUN = "LeCun and others, 1998:"
_HE = "He and others, 2015:"
glorot_uniform = xavier_uniform = _scaled("glorot_uniform", 1.0, "fan_avg", "uniform", _GLOROT)
glorot_normal = xavier_normal = _scaled("glorot_normal", 1.0, "fan_avg", "truncated_normal", _GLOROT)
lecun_uniform = _scaled("lecun_uniform", 1.0, "fan_in", "uniform", _LECUN)
lecun_normal = _scaled("lecun_normal", 1.0, "fan_in", "truncated_normal", _LECUN)
he_uniform = kaiming_uniform = _scaled("he_uniform", 2.0, "fan_in", "uniform", _HE)
he_normal = kaiming_normal = _scaled("he_normal", 2.0, "fan_in", "truncated_normal", _HE)


def orthogonal(scale: Any = 1.0, column_axis: int = -1, dtype: Any = None) -> Initializer:
    """Makes an initializer of uniformly distributed orthogonal matrices times scale.

    Rows are all axes but `column_axis`. Raises ValueError, when it is used, for fewer than two dimensions.
    """

    def init(key: Any, shape: Any, dtype: Any = dtype, out_sharding: Any = None) -> Any:
        if len(shape) < 2:
            raise ValueError(f"orthogonal: weights have two dimensions or more, got shape {tuple(shape)}")
        columns = shape[column_axis]
        rows = math.prod(shape) // columns if columns else 0
        kind = _dtype(dtype)
        q = random.orthogonal(key, rows, (), kind, columns)
        rest = tuple(np.delete(shape, column_axis).tolist())
        return out_placed(
            "init",
            jnp.asarray(scale, kind) * jnp.moveaxis(lax.reshape(q, (*rest, columns)), -1, column_axis),
            out_sharding,
        )

    return explained(init, INITIALIZERS, "orthogonal")


def delta_orthogonal(scale: Any = 1.0, column_axis: int = -1, dtype: Any = None) -> Initializer:
    """Makes an initializer of convolution kernels that are orthogonal at their centre and 0 elsewhere.

    Shapes are [..., in, out] with 1 to 3 window dimensions and in <= out; ValueError, when it is used, for others.
    Xiao and others, "Dynamical isometry and a mean field theory of CNNs", 2018.
    """

    def init(key: Any, shape: Any, dtype: Any = dtype, out_sharding: Any = None) -> Any:
        if len(shape) not in (3, 4, 5):
            raise ValueError(f"delta_orthogonal: weights have 3, 4 or 5 dimensions, got shape {tuple(shape)}")
        if shape[-1] < shape[-2]:
            raise ValueError(
                f"delta_orthogonal: shape {tuple(shape)} has more inputs (its axis -2) than outputs (its last)"
            )
        kind = _dtype(dtype)
        centre = tuple((k - 1) // 2 for k in shape[:-2])
        matrix = orthogonal(scale, column_axis, kind)(key, shape[-2:])
        return out_placed("init", jnp.zeros(shape, kind).at[centre].set(matrix), out_sharding)

    return explained(init, INITIALIZERS, "delta_orthogonal")


_explain_all(globals(), INITIALIZERS, {})
_add_pages(globals(), _PAGES)

__dir__ = _listed(__name__)
