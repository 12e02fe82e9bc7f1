"""Convolutions with equal weights are sums over windows, whatever their layout."""

import numpy as np
import pytest

import pullback as pb
from pullback import lax
from pullback import numpy as jnp
from pullback.compiler.pipelines import optimize_jaxpr

X = np.random.default_rng(0).standard_normal((2, 3, 17, 19)).astype("f4")


def names(f, *args):
    return str(optimize_jaxpr(pb.make_jaxpr(f)(*args)))


def convolution(weights, groups=3, layout=("NCHW", "OIHW", "NCHW"), **how):
    order = [layout[0].index(c) for c in "NCHW"]

    def f(x):
        x = jnp.transpose(x, np.argsort(order))
        how_ = {"window_strides": (1, 1), "padding": "SAME"} | how
        return lax.conv_general_dilated(x, weights, dimension_numbers=layout, feature_group_count=groups, **how_)

    return f


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"window_strides": (2, 3), "padding": "VALID"},
        {"rhs_dilation": (2, 1), "padding": [(3, 0), (1, 5)]},
        {"layout": ("NHWC", "OIHW", "NHWC")},
        {"layout": ("HWNC", "OIHW", "CNHW")},
    ],
)
def test_sums_over_windows(how):
    rng = np.random.default_rng(1)
    for weight in (1.0, -0.25):
        f = convolution(jnp.full((3, 1, 5, 4), weight), **how)
        text = names(f, X)
        assert "conv" not in text and "reduce_window_sum" in text
        other = np.full((3, 1, 5, 4), weight, "f4") + rng.standard_normal((3, 1, 5, 4)).astype("f4") * 1e-9
        other[0, 0, 0, 0] += 1e-6  # not equal any more
        want = pb.jit(convolution(jnp.asarray(other), **how))(X)
        np.testing.assert_allclose(pb.jit(f)(X), want, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(f(X), want, rtol=1e-4, atol=1e-4)


def test_means_and_their_gradients():
    x = X[0, 0]
    f = lambda x: jnp.convolve(x.reshape(-1), jnp.ones(31) / 31, "same")
    np.testing.assert_allclose(pb.jit(f)(x), np.convolve(x.reshape(-1), np.ones(31) / 31, "same"), rtol=1e-4, atol=1e-5)
    assert "conv" not in names(f, x)
    weights = np.random.default_rng(2).standard_normal(x.size).astype("f4")
    slopes = pb.jit(pb.grad(lambda x: f(x) @ weights))(x)
    want = np.convolve(weights, np.ones(31) / 31, "same").reshape(x.shape)
    np.testing.assert_allclose(slopes, want, rtol=1e-4, atol=1e-5)


def test_whole_numbers_and_what_stays_a_convolution():
    x = np.arange(200, dtype="i4")
    f = lambda x: jnp.convolve(x, jnp.full(20, 3, "i4"), "valid")
    np.testing.assert_array_equal(pb.jit(f)(x), np.convolve(x, np.full(20, 3), "valid"))
    assert "reduce_window_sum" in names(f, x)
    for other in (
        convolution(jnp.full((3, 3, 5, 4), 0.5), groups=1),  # sums over channels, too
        convolution(jnp.full((6, 1, 5, 4), 0.5)),  # several features of each channel
        convolution(jnp.full((3, 1, 5, 4), jnp.inf)),
    ):
        assert "reduce_window_sum" not in names(other, X)
