"""Resampling against stored values, a direct evaluation of the weights, and properties."""

from __future__ import annotations

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import image

RNG = np.random.default_rng(0)
METHODS = ["nearest", "linear", "cubic", "cubic-pytorch", "lanczos3", "lanczos5", "area"]


# Columns: what JAX 0.10.2 gives for jax.image.resize(eye(n), (n, m), method, antialias), transposed.
KNOWN = [
    ("area", True, 7, 3, [[3, 3, 1, 0, 0, 0, 0], [0, 0, 2, 3, 2, 0, 0], [0, 0, 0, 0, 1, 3, 3]], 7),
    ("area", True, 3, 7, [[3, 0, 0], [3, 0, 0], [1, 2, 0], [0, 3, 0], [0, 2, 1], [0, 0, 3], [0, 0, 3]], 3),
    (
        "cubic-pytorch", True, 7, 3,
        [[.38306, .43952, .21371, 0, -.03226, -.00403, 0],
         [-.03053, .04518, .27595, .4188, .27595, .04518, -.03053],
         [0, -.00403, -.03226, 0, .21371, .43952, .38306]], 1,
    ),
    (
        "cubic-pytorch", False, 7, 3,
        [[.31481, .7963, -.11111, 0, 0, 0, 0], [0, 0, 0, 1, 0, 0, 0], [0, 0, 0, 0, -.11111, .7963, .31481]], 1,
    ),
    (
        "cubic-pytorch", False, 4, 8,
        [[1.10547, -.10547, 0, 0], [.77344, .26172, -.03516, 0], [.22656, .87891, -.10547, 0],
         [-.10547, .87891, .26172, -.03516], [-.03516, .26172, .87891, -.10547], [0, -.10547, .87891, .22656],
         [0, -.03516, .26172, .77344], [0, 0, -.10547, 1.10547]], 1,
    ),
    (
        "cubic", True, 4, 8,
        [[1.08824, -.08824, 0, 0], [.81022, .21168, -.0219, 0], [.22137, .84733, -.0687, 0],
         [-.07031, .86719, .22656, -.02344], [-.02344, .22656, .86719, -.07031], [0, -.0687, .84733, .22137],
         [0, -.0219, .21168, .81022], [0, 0, -.08824, 1.08824]], 1,
    ),
]  # fmt: skip


@pytest.mark.parametrize("method, antialias, n, m, want, over", KNOWN)
def test_weights(method, antialias, n, m, want, over):
    got = image.resize(np.eye(n, dtype=np.float32), (n, m), method, antialias)
    np.testing.assert_allclose(np.asarray(got).T, np.array(want) / over, atol=1e-5)


KERNELS = {
    "linear": lambda x: max(0, 1 - x),
    "lanczos3": lambda x: np.sinc(x) * np.sinc(x / 3) if x < 3 else 0,
    "lanczos5": lambda x: np.sinc(x) * np.sinc(x / 5) if x < 5 else 0,
    "cubic": lambda x: 1.5 * x**3 - 2.5 * x**2 + 1 if x < 1 else -0.5 * x**3 + 2.5 * x**2 - 4 * x + 2 if x < 2 else 0,
}


@pytest.mark.parametrize("method", KERNELS)
@pytest.mark.parametrize("antialias", [True, False])
@pytest.mark.parametrize("n, m, scale, shift", [(7, 3, None, 0), (4, 9, None, 0), (6, 8, 0.7, 1.5), (6, 8, 1.4, -2)])
def test_against_the_formula(method, antialias, n, m, scale, shift):
    x = RNG.normal(size=(2, n)).astype(np.float32)
    size = m / n if scale is None else scale
    width = max(1 / size, 1) if antialias else 1
    weights = np.zeros((n, m))
    for j in range(m):
        p = (j + 0.5 - shift) / size - 0.5
        column = np.array([KERNELS[method](abs(p - i) / width) for i in range(n)])
        weights[:, j] = column / column.sum() if -0.5 <= p <= n - 0.5 and abs(column.sum()) > 1e-4 else 0
    if scale is None:
        got = image.resize(x, (2, m), method, antialias)
    else:
        one = np.array([scale], np.float32)
        got = image.scale_and_translate(x, (2, m), (1,), one, np.array([shift], np.float32), method, antialias)
    np.testing.assert_allclose(got, x @ weights, atol=2e-5)


@pytest.mark.parametrize("method", METHODS)
def test_properties(method):
    x = RNG.normal(size=(3, 5, 6, 2)).astype(np.float32)
    np.testing.assert_array_equal(image.resize(x, x.shape, method), x)
    larger = image.resize(x, (3, 10, 4, 2), method)
    assert larger.shape == (3, 10, 4, 2) and larger.dtype == np.float32
    one = image.resize(np.full((5, 5), 2.5, np.float32), (7, 3), method)
    np.testing.assert_allclose(one, np.full((7, 3), 2.5), rtol=1e-6)
    np.testing.assert_allclose(larger, pullback.vmap(lambda x: image.resize(x, (10, 4, 2), method))(x), atol=1e-5)
    np.testing.assert_allclose(pullback.jit(lambda x: image.resize(x, (3, 10, 4, 2), method))(x), larger, atol=1e-5)
    slope = pullback.grad(lambda x: jnp.sum(image.resize(x, (3, 10, 4, 2), method)))(x)
    assert slope.shape == x.shape and np.isfinite(np.asarray(slope)).all()
    assert image.resize(x.astype(jnp.bfloat16), (3, 2, 6, 2), method).dtype == jnp.bfloat16


def test_types_and_names():
    assert image.resize(np.arange(6), (3,), "linear").dtype == np.float32
    assert image.resize(np.arange(6, dtype=np.uint8), (3,), "nearest").dtype == np.uint8
    np.testing.assert_array_equal(image.resize(np.arange(6), (3,), "nearest"), [1, 3, 5])
    # 20.5 * (4 / 41) is a hair less than 2: of samples equally near, rounding chooses, as in JAX.
    assert image.resize(np.arange(4), (41,), "nearest")[20] == 1
    x = np.arange(300 * 9, dtype="f4").reshape(300, 9)
    text = pullback.jit(lambda x: image.resize(x, (600, 9), "nearest")).lower(x).as_text("nests")
    assert "constant" not in text, text  # where samples lie is known, and that they are repeated
    np.testing.assert_array_equal(pullback.jit(lambda x: image.resize(x, (600, 9), "nearest"))(x), np.repeat(x, 2, 0))
    np.testing.assert_array_equal(image.resize(np.arange(3), (6,), image.ResizeMethod.NEAREST), [0, 0, 1, 1, 2, 2])
    x = RNG.normal(size=(4, 4)).astype(np.float32)
    for name in ("bilinear", "trilinear", "triangle", image.ResizeMethod.LINEAR):
        np.testing.assert_array_equal(image.resize(x, (3, 5), name), image.resize(x, (3, 5), "linear"))


def test_movement_is_differentiable():
    x = np.arange(8, dtype=np.float32) ** 2

    def moved(t):
        return image.scale_and_translate(x, (8,), (0,), np.ones(1, np.float32), t, "linear")[4]

    assert float(moved(np.array([0.5], np.float32))) == 12.5
    assert float(pullback.grad(lambda t: moved(t))(np.array([0.5], np.float32))[0]) == -7.0


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda x: image.resize(x, (3, 3), "foo"), 'Unknown resize method "foo"; expected one of'),
        (lambda x: image.resize(x, (3,), "linear"), "1 sizes; the image"),
        (
            lambda x: image.scale_and_translate(x, (2, 2), (0,), np.ones(1), np.ones(1), "nearest"),
            "one that interpolates",
        ),
        (lambda x: image.scale_and_translate(x, (2, 2), (0,), np.ones(2), np.ones(1), "linear"), "'scale' has shape"),
        (lambda x: image.scale_and_translate(x, (2, 2), (5,), np.ones(1), np.ones(1), "linear"), "'spatial_dims' is"),
        (lambda x: image.scale_and_translate(x, (2, 3), (0,), np.ones(1), np.ones(1), "linear"), "change their sizes"),
    ],
)
def test_errors(call, text):
    with pytest.raises(ValueError, match=text.replace("(", r"\(")):
        call(np.ones((2, 2), np.float32))
