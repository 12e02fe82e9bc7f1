"""Places of extrema: compiled against NumPy, with ties, infinities and NaN."""

import numpy as np
import pytest

import pullback as jax
from pullback import lax
from pullback import numpy as jnp


def _values(kind, dtype, shape):
    rng = np.random.default_rng(0)
    if kind == "ties":
        return rng.integers(0, 3, shape).astype(dtype)
    x = rng.integers(-100, 100, shape).astype(dtype)
    if kind == "nan":
        x.reshape(-1)[[x.size // 3, x.size // 2, x.size - 1]] = np.nan
    if kind == "infinite":
        x[...] = -np.inf
    if kind == "least":
        x[...] = np.iinfo(dtype).min if np.dtype(dtype).kind == "i" else False
    return x


@pytest.mark.parametrize("shape", [(1,), (15,), (17,), (1000,), (40_003,), (33, 70), (5, 3), (3, 500), (100_000, 3)])
@pytest.mark.parametrize(
    ("kind", "dtype"),
    [("ties", "f4"), ("random", "f4"), ("nan", "f4"), ("infinite", "f4"), ("random", "i4"), ("least", "i4"),
     ("ties", "i1"), ("ties", "?"), ("least", "?"), ("nan", "f2")],
)  # fmt: skip
def test_places_of_extrema(kind, dtype, shape):
    x = _values(kind, dtype, shape)
    for axis in (None, *range(len(shape))):
        for name, sign in (("argmax", x), ("argmin", ~x if dtype == "?" else x if kind == "nan" else -1 - x)):
            got = jax.jit(getattr(jnp, name), static_argnames="axis")(sign, axis=axis)
            np.testing.assert_array_equal(got, getattr(np, name)(sign, axis))


@pytest.mark.parametrize(
    "f", [jnp.argmax, jnp.argmin, jnp.argsort, lambda x: lax.top_k(x, 2), lambda x: jnp.nonzero(x, size=2)]
)
def test_places_that_do_not_fit_into_32_bits_are_refused(f):
    long = jax.ShapeDtypeStruct((2**31 + 1,), np.int8)
    with pytest.raises(ValueError, match="2147483649 elements do not fit into int32; jax_enable_x64"):
        jax.eval_shape(f, long)
    jax.eval_shape(f, jax.ShapeDtypeStruct((2**31,), np.int8))


def test_places_as_small_types():
    assert lax.argmax(jnp.arange(128.0), 0, np.int8) == 127
    with pytest.raises(ValueError, match="argmax: places along an axis of 129"):
        lax.argmax(jnp.arange(129.0), 0, np.int8)
