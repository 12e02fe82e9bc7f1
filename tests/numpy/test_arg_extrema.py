"""Places of extrema: compiled against NumPy, with ties, infinities and NaN."""

import numpy as np
import pytest

import pullback as jax
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
