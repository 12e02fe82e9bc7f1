"""Convolutions by the indexed kernel against the reference: every order of the copy, phases, groups, short lanes."""

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest
from lowering_checks import for_thread_counts

import pullback as jax
from pullback._ext import _core
from pullback.lax.products.conv import conv_general_dilated_p
from pullback.lax.products.conv_shapes import conv_dimension_numbers
from pullback.loops.emit.cpu.target import host_target
from pullback.loops.schedule.machine import AVX512_SERVER, using
from pullback.util.switches import switches

NHWC = ("NHWC", "HWIO", "NHWC")
ONE, PAD = (1, 1), ((1, 1), (1, 1))


def case(x, w, strides=ONE, pads=PAD, x_dilation=ONE, dilation=ONE, numbers=None, groups=1, batches=1):
    return x, w, {
        "window_strides": strides,
        "padding": pads,
        "lhs_dilation": x_dilation,
        "rhs_dilation": dilation,
        "feature_group_count": groups,
        "batch_group_count": batches,
        "dimension_numbers": conv_dimension_numbers(x, w, numbers),
        "precision": None,
        "preferred_element_type": None,
    }  # fmt: skip


CASES = {
    "space": case((2, 3, 12, 11), (8, 3, 3, 3)),
    "space in place": case((2, 3, 40, 41), (8, 3, 3, 3), pads=((0, 0), (0, 0))),
    "strides": case((2, 3, 12, 11), (80, 3, 3, 3), (2, 3), ((1, 1), (1, 2))),
    "dilation": case((2, 3, 12, 11), (8, 3, 3, 2), pads=((2, 1), (1, 2)), dilation=(2, 3)),
    "dilated x": case((2, 3, 12, 11), (8, 3, 4, 4), pads=((2, 2), (2, 2)), x_dilation=(2, 2)),
    "phases without taps": case((2, 3, 12, 11), (8, 3, 2, 2), pads=((2, 1), (1, 2)), x_dilation=(3, 3)),
    "all dilated": case((2, 3, 12, 11), (8, 3, 3, 2), (2, 2), ((2, 1), (1, 2)), (2, 3), (1, 2)),
    "cropped": case((2, 3, 12, 11), (8, 3, 3, 2), (1, 2), ((-1, 1), (1, -2))),
    "groups": case((2, 6, 12, 11), (8, 3, 3, 3), groups=2),
    "depthwise": case((2, 6, 12, 11), (12, 1, 3, 3), (2, 2), groups=6),
    "depthwise, in place": case((2, 6, 22, 31), (12, 1, 3, 3), groups=6),
    "depthwise, cropped": case((2, 6, 22, 31), (6, 1, 3, 3), (1, 1), ((-2, 3), (2, -1)), groups=6),
    "depthwise, dilation": case((2, 6, 22, 31), (6, 1, 3, 3), pads=((2, 2), (5, 1)), dilation=(2, 3), groups=6),
    "depthwise, dilated x": case((2, 6, 12, 11), (6, 1, 3, 3), pads=((2, 1), (1, 2)), x_dilation=(2, 3), groups=6),
    "depthwise, all padding": case((2, 6, 2, 1), (6, 1, 3, 3), pads=((4, 5), (6, 2)), groups=6),
    "depthwise, five": case((2, 6, 50), (6, 1, 5), (1,), ((2, 2),), (1,), (1,), groups=6),
    "depthwise in place, features last": case((2, 22, 31, 32), (3, 3, 1, 32), numbers=NHWC, groups=32),
    "one feature": case((2, 40, 12, 11), (1, 40, 3, 3)),
    "one feature, large window": case((2, 4, 30, 31), (1, 4, 9, 9)),
    "batch groups": case((4, 6, 12, 11), (12, 6, 3, 3), batches=2),
    "features": case((2, 12, 11, 3), (3, 3, 3, 20), numbers=NHWC),
    "features, strides": case((2, 12, 11, 3), (3, 3, 3, 20), (2, 1), dilation=(1, 2), numbers=NHWC),
    "features, dilated x": case((2, 12, 11, 3), (3, 3, 3, 20), x_dilation=(2, 2), numbers=NHWC),
    "features, groups": case((2, 12, 11, 32), (3, 3, 16, 64), numbers=NHWC, groups=2),
    "depthwise, features last": case((2, 12, 11, 32), (3, 3, 1, 32), numbers=NHWC, groups=32),
    "no space": case((2, 4), (4, 4), (), (), (), ()),
    "no space, batch groups": case((4, 5), (60, 5), (), (), (), (), batches=2),
    "no space, groups": case((2, 6), (64, 3), (), (), (), (), groups=2),
    "batch": case((3, 5, 30, 31), (7, 5, 30, 30)),
    "batch, dilation": case((3, 5, 30, 31), (7, 5, 14, 15), pads=((0, 0), (0, 0)), dilation=(2, 2)),
    "batch, many": case((40, 5, 30, 31), (50, 5, 28, 29), pads=((0, 0), (0, 0))),
    "batch, pieces": case((3, 12, 30, 31), (60, 12, 28, 29), pads=((0, 0), (0, 0))),
    "long lines": case((1, 2, 3, 9000), (4, 2, 2, 2)),
    "one dimension": case((2, 3, 50), (5, 3, 7), (1,), ((3, 3),), (1,), (1,)),
    "short": case((2, 3, 5), (5, 3, 7), (1,), ((3, 3),), (1,), (1,)),
    "three dimensions": case((2, 3, 6, 7, 8), (5, 3, 3, 3, 3), (2, 1, 2), ((1, 1),) * 3, (1, 1, 1), (1, 1, 1)),
    "many features": case((2, 30, 6, 7), (700, 30, 3, 3)),
    "many features, in place": case((2, 30, 9, 10), (37, 30, 2, 3), (2, 3), ((0, 0), (0, 0))),
    "many features, dilated x": case((2, 30, 9, 10), (70, 30, 4, 3), pads=((2, 1), (1, 2)), x_dilation=(3, 2)),
    "many features, groups": case((4, 24, 9, 33), (96, 12, 3, 3), dilation=(1, 3), groups=2),
    "many features, batch groups": case((4, 24, 9, 13), (96, 24, 3, 3), batches=2),
    "many features, one dimension": case((2, 30, 900), (50, 30, 7), (1,), ((3, 5),), (1,), (1,)),
    "many features, three dimensions": case(
        (1, 9, 4, 5, 6), (34, 9, 2, 3, 3), (1, 2, 1), ((1, 1),) * 3, (1, 1, 2), (1, 1, 1)
    ),
    "many features, one result": case((2, 30, 3, 3), (70, 30, 2, 2), (2, 2), ((0, 0), (0, 0))),
    "many features, windows outside": case((2, 30, 5, 4), (40, 30, 3, 3), pads=((4, 5), (-1, 6))),
    "features, in place, strides": case((2, 12, 11, 24), (2, 3, 24, 40), (2, 3), ((0, 0), (0, 0)), numbers=NHWC),
}


OTHER_TYPES = ("space", "features", "batch", "depthwise, in place", "strides", "many features, in place")


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32])
def test_convolution(name, dtype):
    x_shape, w_shape, params = CASES[name]
    if dtype != np.float32 and name not in OTHER_TYPES:
        return
    rng = np.random.default_rng(0)
    x, w = ((3 * rng.standard_normal(shape)).astype(dtype) for shape in (x_shape, w_shape))
    got = np.asarray(jax.jit(lambda x, w: conv_general_dilated_p.bind(x, w, **params))(x, w))
    want = conv_general_dilated_p.reference(x, w, **params)
    assert got.dtype == want.dtype and got.shape == want.shape
    np.testing.assert_allclose(
        got.astype(float), want.astype(float), rtol=2e-2 if dtype == np.float16 else 1e-3, atol=1e-2
    )


@pytest.mark.parametrize("name", CASES)
def test_convolutions_of_bfloat16(name):
    """By tiles, where the machine has them; then results do not depend on the number of threads either."""
    x_shape, w_shape, params = CASES[name]
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(shape).astype(ml_dtypes.bfloat16) for shape in (x_shape, w_shape))
    with switches.set(cpu="host"):
        function = jax.jit(lambda x, w: conv_general_dilated_p.bind(x, w, **params))
        results = for_thread_counts(function, x, w)
        loops = function.lower(x, w).compile().as_text("loops")
    np.testing.assert_array_equal(results[0], results[1])
    want = conv_general_dilated_p.reference(x.astype(np.float64), w.astype(np.float64), **params)
    np.testing.assert_allclose(results[0].astype(float), want, rtol=1e-2, atol=4e-3 * np.abs(want).max())
    if name.startswith("many features") and host_target().multiplies_tiles:
        assert "_tiles_indexed" in loops


def test_infinities_and_nans_of_bfloat16_stay_where_windows_have_them():
    x, w = np.ones((2, 3, 9, 9), ml_dtypes.bfloat16), np.ones((5, 3, 3, 3), ml_dtypes.bfloat16)
    x[0, 2, 4, 4], x[1, 0, 0, 0] = np.inf, np.nan
    with switches.set(cpu="host"):
        got = np.asarray(jax.jit(lambda x, w: jax.lax.conv_general_dilated(x, w, (1, 1), "SAME"))(x, w)).astype(float)
    assert np.isinf(got[0, :, 3:6, 3:6]).all() and np.isnan(got[1, :, :2, :2]).all()
    got[0, :, 3:6, 3:6] = got[1, :, :2, :2] = 0
    assert np.isfinite(got).all()


@pytest.mark.parametrize("name", ["depthwise", "depthwise, in place", "depthwise, dilated x", "depthwise, five"])
def test_small_windows_of_one_channel_need_no_padded_copy(name):
    x_shape, w_shape, params = CASES[name]
    x, w = np.zeros(x_shape, np.float32), np.zeros(w_shape, np.float32)
    loops = jax.jit(lambda x, w: conv_general_dilated_p.bind(x, w, **params)).lower(x, w).compile().as_text("loops")
    assert "padded" not in loops


def test_windows_are_not_written():
    x, w, params = case((2, 8, 40, 40), (16, 8, 5, 5), pads=((2, 2), (2, 2)))
    function = jax.jit(lambda x, w: conv_general_dilated_p.bind(x, w, **params))
    stats = function.lower(np.zeros(x, np.float32), np.zeros(w, np.float32)).compile().memory_analysis()
    assert stats.temp_size_in_bytes < 2 * 4 * np.prod(x)


@pytest.mark.parametrize(
    "padding", [((1, 1), (1, 1)), ((0, 0), (2, 1)), ((2, 0), (0, 0)), ((-1, 2), (3, -2)), ((9, 0), (0, 9))]
)
def test_rows_with_features_last_are_padded_whole(padding):
    """Not by a choice for each element, which is taken apart into a nest for each edge."""
    rng = np.random.default_rng(0)
    x, w = rng.integers(-9, 9, (2, 5, 6, 24)).astype("f4"), rng.integers(-9, 9, (3, 2, 24, 64)).astype("f4")

    def convolved(x, w):
        return jax.lax.conv_general_dilated(x, w, (1, 1), padding, dimension_numbers=("NHWC", "HWIO", "NHWC"))

    lowered = jax.jit(convolved).lower(x, w)
    assert "select" not in lowered.as_text("loops")
    grown = [(0, 0), *((max(low, 0), max(high, 0)) for low, high in padding), (0, 0)]
    cut = [slice(max(-low, 0), -max(-high, 0) or None) for low, high in padding]
    whole = np.pad(x, grown)[:, cut[0], cut[1]]
    windows = np.lib.stride_tricks.sliding_window_view(whole, (3, 2), (1, 2))
    np.testing.assert_array_equal(lowered.compile()(x, w), np.einsum("nhwcij,ijcf->nhwf", windows, w))


def test_results_do_not_depend_on_the_number_of_threads():
    rng = np.random.default_rng(0)
    shapes = ((4, 16, 33, 35), (53, 16, 3, 3), (301, 500), (500, 333))
    x, w, a, c = (rng.standard_normal(shape).astype(np.float32) for shape in shapes)
    function = jax.jit(lambda x, w, a, c: (jax.lax.conv_general_dilated(x, w, (1, 1), "SAME"), a @ c))
    before, results = _core.num_threads(), []
    try:
        for threads in (1, 2, 3):
            _core.set_num_threads(threads)
            results.append([np.asarray(r) for r in function(x, w, a, c)])
    finally:
        _core.set_num_threads(before)
    for other in results[1:]:
        for first, again in zip(results[0], other):
            np.testing.assert_array_equal(first, again)


def test_words_for_padding_do_not_say_how_much_between_holes():
    x, k = np.ones((1, 2, 6, 7), np.float32), np.ones((3, 2, 3, 2), np.float32)
    with pytest.raises(ValueError, match="lhs_dilation"):
        jax.lax.conv_general_dilated(x, k, (1, 1), "SAME", lhs_dilation=(1, 2))


@pytest.mark.parametrize("second", [1 << 18, 1 << 21, 1 << 23])
def test_tiles_fit_on_a_threads_stack(second):
    """Of machines with large caches they were too large: the first layer of a ResNet could not be compiled."""
    machine = replace(AVX512_SERVER, second=replace(AVX512_SERVER.second, bytes=second))
    x = np.random.default_rng(0).normal(size=(8, 3, 224, 224)).astype(np.float32)
    w = np.random.default_rng(1).normal(size=(64, 3, 7, 7)).astype(np.float32)
    scale = second.bit_length()  # a program of its own for each machine
    with using(machine):
        found = np.asarray(jax.jit(lambda x, w: jax.lax.conv(x, w, (2, 2), "SAME") + scale)(x, w))
    padded = np.pad(x, ((0, 0), (0, 0), (2, 3), (2, 3)))
    for n, f, i, j in ((0, 0, 0, 0), (7, 63, 111, 111), (3, 20, 50, 17), (5, 33, 111, 0)):
        window = padded[n, :, 2 * i : 2 * i + 7, 2 * j : 2 * j + 7]
        np.testing.assert_allclose(found[n, f, i, j] - scale, np.sum(window * w[f]), 1e-4, 1e-3)
