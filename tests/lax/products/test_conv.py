"""Derivatives of convolutions whose results have another type than their operands."""

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import lax

rng = np.random.default_rng(0)
X, W = rng.standard_normal((1, 2, 5, 5)), rng.standard_normal((3, 2, 2, 2))


@pytest.mark.parametrize(
    ("dtype", "wanted"),
    [("bfloat16", "float32"), ("float16", "float32"), ("float32", "float64"), ("complex64", "complex128")],
)
@pytest.mark.parametrize("options", [{}, {"window_strides": (2, 1)}, {"rhs_dilation": (1, 2)}])
def test_cotangents_of_wider_results(dtype, wanted, options):
    options = {"window_strides": (1, 1), "padding": "SAME", **options}

    def loss(x, w, wanted=None):
        out = lax.conv_general_dilated(x, w, preferred_element_type=wanted, **options)
        return (out * out).sum().real

    with jax.enable_x64(True):
        x, w = (jnp.asarray(a).astype(dtype) for a in (X, W))
        wide = [a.astype(wanted) for a in (x, w)]
        for run in (jax.grad(loss, (0, 1)), jax.jit(jax.grad(loss, (0, 1)), static_argnums=2)):
            for found, want, operand in zip(run(x, w, wanted), jax.grad(loss, (0, 1))(*wide), (x, w)):
                assert found.dtype == operand.dtype
                kind = np.complex128 if dtype == "complex64" else np.float64
                bound = 2 * float(jnp.finfo(dtype).eps)  # of their rounding to the operands' type, and of sums
                np.testing.assert_allclose(found.astype(kind), want.astype(kind), rtol=bound, atol=8 * bound)


@pytest.mark.parametrize("window", [(0, 2), (2, 0), (0, 0)])
def test_windows_are_not_empty(window):
    x = jnp.ones((1, 2, 4, 4))
    with pytest.raises(ValueError, match="windows that are not empty"):
        lax.conv_general_dilated(x, jnp.ones((3, 2, *window)), (1, 1), "VALID")
    with pytest.raises(ValueError, match="windows that are not empty"):
        jax.jit(lambda x: lax.conv_general_dilated_patches(x, window, (1, 1), "SAME"))(x)
