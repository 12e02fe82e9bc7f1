"""Cotangents of extrema over windows reach the elements that the windows chose, compiled as by the reference."""

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import lax

rng = np.random.default_rng(0)
CASES = {
    "apart": ((6, 7), (2, 3), (2, 3), "VALID"),
    "gaps between windows": ((9, 11), (2, 1), (3, 4), "SAME"),
    "over each other": ((7, 6), (3, 4), (1, 2), "SAME"),
    "strides that do not divide": ((10, 9), (5, 3), (3, 2), [(2, 1), (0, 3)]),
    "less than the operand": ((9, 8), (2, 3), (2, 1), [(-1, -2), (-3, 0)]),
    "padding alone": ((3, 2), (2, 2), (2, 2), [(4, 3), (2, 2)]),
    "one window": ((4, 3), (4, 3), (1, 1), "VALID"),
    "images": ((2, 5, 6, 17), (1, 3, 2, 1), (1, 2, 2, 1), "SAME"),
    "channels first": ((2, 3, 9, 8), (1, 1, 3, 3), (1, 1, 2, 2), "SAME"),
}
DILATED = [((2, 1), (1, 1)), ((1, 3), (1, 1)), ((1, 1), (2, 2)), ((3, 2), (2, 1))]


def routed(x, window, strides, padding, select, dilations=None):
    """The gradient, and the tangent, of the weighted extrema of windows."""
    start, fold = (-np.inf, lax.max) if select == "max" else (np.inf, lax.min)
    how = {} if dilations is None else dict(zip(("base_dilation", "window_dilation"), dilations))
    f = lambda x: lax.reduce_window(x, np.asarray(start, x.dtype), fold, window, strides, padding, **how)
    weights = jnp.arange(1, 1 + f(x).size, dtype=x.dtype).reshape(f(x).shape)
    return pullback.grad(lambda x: (weights * f(x)).sum())(x), pullback.jvp(f, (x,), (jnp.sin(5 * x),))[1]


def same(x, *args):
    for compiled, reference in zip(pullback.jit(lambda x: routed(x, *args))(x), routed(x, *args)):
        np.testing.assert_allclose(np.asarray(compiled, "f8"), np.asarray(reference, "f8"), rtol=1e-6, equal_nan=True)


@pytest.mark.parametrize("select", ["max", "min"])
@pytest.mark.parametrize("name", CASES)
def test_every_kind_of_window(name, select):
    shape, *how = CASES[name]
    x = rng.integers(-4, 4, shape).astype("f4")  # many are equal: the first is chosen
    same(jnp.asarray(x), *how, select)
    x.ravel()[:: x.size // 3] = [np.nan, np.inf, -np.inf, np.nan][: len(x.ravel()[:: x.size // 3])]
    same(jnp.asarray(x), *how, select)


@pytest.mark.parametrize("dilations", DILATED, ids=str)
def test_windows_and_operands_with_gaps(dilations):
    same(jnp.asarray(rng.normal(size=(6, 7)).astype("f4")), (2, 3), (2, 1), ((1, 2), (0, 1)), "max", dilations)


@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16])
def test_narrow_types(dtype):
    same(jnp.asarray(rng.normal(size=(5, 18))).astype(dtype), (2, 2), (1, 1), "SAME", "max")


@pytest.mark.parametrize("fold", [lax.add, lax.max, lax.mul, lambda a, b: a + b])
def test_padding_by_name_is_of_the_operand_without_gaps(fold):
    x = jnp.ones((2, 6))
    how = {"window_dilation": (1, 2)}
    assert lax.reduce_window(x, np.float32(0), fold, (2, 3), (2, 1), "SAME", (2, 1)).shape == (1, 6)
    assert lax.reduce_window(x, np.float32(0), fold, (2, 3), (1, 2), "SAME_LOWER", (2, 3), **how).shape == (3, 8)
