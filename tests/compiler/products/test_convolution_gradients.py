"""Gradients of convolutions: adjoint to the reference in float64, for every form; no array is moved to compute them."""

import numpy as np
import pytest

import pullback as jax
from pullback._ext import _core
from pullback.lax.products.conv import conv_general_dilated_p
from pullback.lax.products.conv_shapes import conv_dimension_numbers

LAST, MIXED = ("NHWC", "HWIO", "NHWC"), ("HNCW", "WOIH", "CWNH")


def case(x, w, strides=(1, 1), pads="SAME", x_dilation=(1, 1), dilation=(1, 1), numbers=None, groups=1, batches=1):
    return x, w, {
        "window_strides": strides,
        "padding": pads,
        "lhs_dilation": x_dilation,
        "rhs_dilation": dilation,
        "dimension_numbers": numbers,
        "feature_group_count": groups,
        "batch_group_count": batches,
    }  # fmt: skip


CROPPED = ((-1, 1), (1, -2))
CASES = {
    "dense": case((2, 5, 9, 10), (7, 5, 3, 3)),
    "dense, last": case((2, 9, 10, 5), (3, 2, 5, 7), (2, 1), numbers=LAST),
    "mixed": case((9, 2, 6, 10), (2, 8, 3, 3), (1, 2), CROPPED, numbers=MIXED, groups=2),
    "dilated": case((2, 3, 12, 11), (4, 3, 3, 2), (2, 2), ((2, 1), (1, 2)), (2, 3), (1, 2)),
    "groups": case((3, 12, 9, 21), (16, 6, 3, 3), groups=2),
    "many groups": case((3, 24, 18, 21), (32, 6, 3, 3), (1, 2), ((1, 1), (0, 2)), groups=4),
    "groups, last": case((3, 9, 21, 12), (3, 3, 6, 16), (2, 2), ((1, 1), (1, 1)), numbers=LAST, groups=2),
    "batch groups": case((6, 4, 9, 8), (6, 4, 3, 3), batches=3),
    "batch groups, mixed": case((9, 6, 4, 8), (3, 6, 4, 2), numbers=MIXED, pads=((1, 1), (1, 1)), batches=2),
    "depthwise": case((2, 6, 19, 37), (6, 1, 3, 3), groups=6),
    "depthwise, long": case((1, 2, 150, 40), (2, 1, 3, 3), groups=2),
    "depthwise, cropped": case((2, 6, 12, 21), (6, 1, 3, 2), (1, 2), CROPPED, groups=6),
    "depthwise, twice": case((2, 6, 12, 21), (12, 1, 5, 5), (2, 2), ((2, 2), (2, 2)), groups=6),
    "depthwise, last": case((2, 12, 21, 37), (3, 3, 1, 37), numbers=LAST, groups=37),
    "depthwise, last, strides": case((2, 12, 21, 70), (3, 5, 1, 140), (2, 3), "VALID", numbers=LAST, groups=70),
    "depthwise, last, dilated": case((2, 8, 9, 5), (3, 3, 1, 5), (1, 1), "VALID", (1, 1), (2, 2), LAST, 5),
    "depthwise, dilated x": case((2, 8, 9, 33), (3, 3, 1, 33), (1, 1), ((2, 2), (2, 1)), (2, 2), (1, 1), LAST, 33),
    "depthwise, one position": case((2, 1, 1, 33), (1, 1, 1, 33), numbers=LAST, groups=33),
    "depthwise, no position": case((2, 2, 4, 3), (3, 3, 1, 3), pads="VALID", numbers=LAST, groups=3),
    "depthwise, no image": case((0, 3, 4, 4), (3, 1, 3, 3), groups=3),
    "one channel": case((2, 1, 19, 20), (1, 1, 3, 3), pads="VALID"),
    "one channel to some": case((3, 1, 19, 20), (5, 1, 3, 3)),
    "few channels": case((2, 3, 40, 36), (20, 3, 3, 3)),
    "few channels, strides": case((2, 80, 73, 3), (5, 3, 3, 20), (2, 2), ((2, 1), (1, 2)), numbers=LAST),
    "few channels, many features": case((2, 3, 40, 36), (70, 3, 5, 3), (2, 1)),
    "few channels, many features, groups": case((2, 45, 36, 6), (5, 3, 3, 80), (2, 2), "SAME", numbers=LAST, groups=2),
    "few channels, many features, batch groups": case((4, 3, 40, 36), (70, 3, 5, 3), batches=2),
    "many channels, dilation": case((2, 64, 20, 19), (20, 64, 3, 3), pads=((2, 2), (3, 3)), dilation=(2, 3)),
    # Pieces of positions of which only every second meets an element; lines that none meets; phases without taps.
    "few channels, dilated x": case((2, 60, 16, 2), (1, 7, 2, 48), (1, 1), ((0, 2), (1, 1)), (2, 2), (2, 1), LAST),
    "few channels, dilated x, long": case((2, 2, 16, 60), (48, 2, 1, 7), (1, 1), ((1, 1), (0, 2)), (2, 2), (1, 2)),
    "holes between lines": case((2, 2, 31, 60), (100, 2, 5, 5), (3, 3), ((1, 0), (-1, 2)), (1, 3)),
    "holes between phases": case((1, 3, 33, 14), (16, 3, 1, 3), (3, 2), ((1, -1), (1, 0))),
    "holes between phases, many channels": case((1, 36, 33, 14), (16, 36, 1, 3), (3, 2), ((1, -1), (1, 0))),
    "groups, long": case((1, 6, 50, 60), (24, 3, 3, 3), groups=2),
    "line": case((2, 4, 300), (4, 1, 5), (1,), ((2, 2),), (1,), (1,), groups=4),
    "volume": case((1, 4, 5, 6, 18), (4, 1, 2, 3, 3), (1, 1, 2), "SAME", (1,) * 3, (1,) * 3, groups=4),
}
SOME = (
    "few channels, many features",
    "many channels, dilation",
    "dense, last",
    "many groups",
    "depthwise",
    "depthwise, last, strides",
)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [(n, "float32") for n in CASES] + [(n, d) for n in SOME for d in ("bfloat16", "complex64", "float64")],
)
def test_gradients_are_adjoint_to_the_reference(name, dtype):
    x_shape, w_shape, params = CASES[name]
    rng = np.random.default_rng(0)

    def drawn(shape, wide=False):
        value = rng.standard_normal(shape)
        if dtype == "complex64":
            return value + 1j * rng.standard_normal(shape)
        return value if wide else np.asarray(jax.numpy.asarray(value, dtype)).astype(np.float64)

    with jax.enable_x64(dtype == "float64"):
        x, w = drawn(x_shape), drawn(w_shape)

        def conv(a, k):
            return jax.lax.conv_general_dilated(a, k, **params)

        @jax.jit
        def bars(a, k, y):
            return jax.vjp(conv, a, k)[1](y)

        narrow = [jax.numpy.asarray(a, dtype) for a in (x, w)]
        out = jax.eval_shape(conv, *narrow)
        y = drawn(out.shape)
        got = [np.asarray(bar).astype(complex) for bar in bars(*narrow, jax.numpy.asarray(y, dtype))]
        given = conv_dimension_numbers(x_shape, w_shape, params["dimension_numbers"])
        pads = params["padding"]
        if isinstance(pads, str):
            sizes = [[shape[i] for i in spec[2:]] for shape, spec in ((x_shape, given[0]), (w_shape, given[1]))]
            sizes[1] = [(k - 1) * d + 1 for k, d in zip(sizes[1], params["rhs_dilation"])]
            pads = jax.lax.padtype_to_pads(*sizes, params["window_strides"], pads)
    exact = {**params, "padding": pads, "dimension_numbers": given, "precision": None, "preferred_element_type": None}
    scale = {"bfloat16": 2e-2, "float64": 1e-13}.get(dtype, 2e-6)
    for probe in range(3):
        for k, (bar, value) in enumerate(zip(got, (x, w))):
            at = drawn(value.shape, wide=True)
            if probe == 0 and at.size:  # one element by itself
                at = np.where(np.arange(at.size).reshape(at.shape) == at.size // 2, at, 0)
            image = conv_general_dilated_p.reference(*((at, w) if k == 0 else (x, at)), **exact)
            error = abs(np.sum(image * y) - np.sum(bar * at))
            assert bar.shape == value.shape
            assert error <= scale * (np.linalg.norm(image) * np.linalg.norm(y) + np.linalg.norm(bar * at) + 1e-30)


@pytest.mark.parametrize("name", ["dense, last", "mixed"])
def test_gradients_of_one_group_move_no_array(name):
    x_shape, w_shape, params = CASES[name]
    params = {**params, "feature_group_count": 1}
    if name == "mixed":
        w_shape = (2, 8, 6, 3)
    x, w = np.zeros(x_shape, np.float32), np.zeros(w_shape, np.float32)
    text = str(
        jax.make_jaxpr(jax.grad(lambda a, k: (jax.lax.conv_general_dilated(a, k, **params) ** 2).sum(), (0, 1)))(x, w)
    )
    assert "conv_general_dilated" in text and "transpose" not in text


def test_gradients_of_weights_do_not_depend_on_the_number_of_threads():
    rng = np.random.default_rng(0)
    names = ("many groups", "depthwise", "depthwise, last", "one channel to some")
    arrays = [rng.standard_normal(shape).astype(np.float32) for n in names for shape in CASES[n][:2]]

    def bars(*arrays):
        total = 0.0
        for n, x, w in zip(names, arrays[::2], arrays[1::2]):
            total += (jax.lax.conv_general_dilated(x, w, **CASES[n][2]) ** 2).sum()
        return total

    function, before, results = jax.jit(jax.grad(bars, tuple(range(len(arrays))))), _core.num_threads(), []
    try:
        for threads in (1, 2, 3):
            _core.set_num_threads(threads)
            results.append([np.asarray(r) for r in function(*arrays)])
    finally:
        _core.set_num_threads(before)
    for other in results[1:]:
        for first, again in zip(results[0], other):
            np.testing.assert_array_equal(first, again)
