"""Folds over windows that lie side by side."""

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import lax

RNG = np.random.default_rng(0)
FOLDS = {"sum": (lax.add, 0), "max": (lax.max, -100), "min": (lax.min, 100)}


def pooled(x, fold, window, padding="VALID"):
    op, init = FOLDS[fold]
    init = {"max": -np.inf, "min": np.inf, "sum": 0}[fold] if x.dtype.kind == "f" else init
    return lax.reduce_window(x, np.asarray(init, x.dtype), op, window, window, padding)


@pytest.mark.parametrize("fold", FOLDS)
def test_windows_side_by_side_are_blocks(fold):
    x = RNG.standard_normal((8, 32, 32, 3)).astype("f4")

    def f(x):
        return pooled(jnp.maximum(2 * x + 1, 0), fold, (1, 2, 2, 1)) * 2

    text = pullback.jit(f).lower(x).as_text("nests")
    assert "temporary" not in text, text  # neither what is pooled nor what is made of it
    wide = np.maximum(2 * x + 1, 0).reshape(8, 16, 2, 16, 2, 3)
    want = 2 * getattr(wide, fold)((2, 4))
    np.testing.assert_allclose(pullback.jit(f)(x), want, rtol=1e-5)


@pytest.mark.parametrize("fold", FOLDS)
@pytest.mark.parametrize("dtype", ["f4", "f2", "i4", "i1"])
@pytest.mark.parametrize("padding", ["VALID", "SAME", ((1, 0), (0, 2))])
@pytest.mark.parametrize("shape, window", [((9, 11), (2, 3)), ((4, 6), (4, 1)), ((2, 5), (3, 2)), ((0, 4), (2, 2))])
def test_of_any_shape(shape, window, padding, dtype, fold):
    x = (10 * RNG.standard_normal(shape)).astype(dtype)
    with pullback.disable_jit():
        want = pooled(-jnp.asarray(x), fold, window, padding)
    for f in (lambda x: pooled(-x, fold, window, padding), lambda x: pooled(x, fold, window, padding)):
        found = pullback.jit(f)(x)
        assert found.dtype == want.dtype
        # Sums of six numbers up to 40, each of which is rounded to 1/16 where it is more than 64.
        np.testing.assert_allclose(found, want, rtol=1e-5, atol=0.4 if dtype == "f2" else 1e-5)
        x = -x


def test_not_a_number_is_the_largest():
    x = np.array([[1, np.nan, 3, 4]], "f4")
    np.testing.assert_array_equal(pullback.jit(lambda x: pooled(x, "max", (1, 2)))(x), [[np.nan, 4]])
