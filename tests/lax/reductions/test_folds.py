"""Reductions, running folds, windows and convolutions where records cannot reach."""

from __future__ import annotations

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import lax

WRAPS = [lambda f: f, pullback.jit]
RNG = np.random.default_rng(0)


def f32(*shape):
    return RNG.normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("wrap", WRAPS)
def test_reduce_by_any_computation(wrap):
    x = f32(3, 4)
    got = wrap(lambda x: lax.reduce(x, 1.0, lambda a, b: lax.mul(a, b), (0,)))(x)
    np.testing.assert_allclose(np.asarray(got), x.prod(0), rtol=1e-5)
    got = wrap(lambda x: lax.reduce(x, 0.5, lax.add, (0, 1)))(x)
    np.testing.assert_allclose(np.asarray(got), 0.5 + x.sum(), rtol=1e-5)

    def pair(a, b):  # the value of largest modulus, and how many there were
        return lax.select(lax.gt(lax.abs(a[0]), lax.abs(b[0])), a[0], b[0]), lax.add(a[1], b[1])

    value, count = wrap(lambda x: lax.reduce((x, lax.full_like(x, 1)), (0.0, 0.0), pair, (1,)))(x)
    np.testing.assert_allclose(np.asarray(value), np.take_along_axis(x, np.abs(x).argmax(1)[:, None], 1)[:, 0])
    assert np.asarray(count).tolist() == [4, 4, 4]


def test_reduce_by_mathematical_functions():
    """Partial results in lanes are combined by functions that are no instructions."""
    pairs = {
        "logaddexp": (lambda a, b: lax.max(a, b) + lax.log1p(lax.exp(-lax.abs(a - b))), -1e30),
        "norm": (lambda a, b: lax.sqrt(a * a + b * b), 0.0),
        "sinh": (lambda a, b: lax.asinh(lax.sinh(a) + lax.sinh(b)), 0.0),
    }
    wants = {
        "logaddexp": lambda x, axis: np.log(np.exp(x).sum(axis)),
        "norm": lambda x, axis: np.sqrt((x * x).sum(axis)),
        "sinh": lambda x, axis: np.arcsinh(np.sinh(x).sum(axis)),
    }
    x = RNG.normal(size=(37, 50))

    def all_of(x):
        return [lax.reduce(x, start, f, (axis,)) for f, start in pairs.values() for axis in (0, 1)]

    want = [f(x, axis) for f in wants.values() for axis in (0, 1)]
    for got, exact in zip(pullback.jit(all_of)(x.astype("f4")), want):
        np.testing.assert_allclose(got, exact, rtol=1e-4, atol=1e-4)
    z = (RNG.normal(size=(3, 40)) + 1j * RNG.normal(size=(3, 40))).astype(np.complex64)
    got = pullback.jit(
        lambda z: lax.reduce(z, np.complex64(-1e30), lambda a, b: lax.log(lax.exp(a) + lax.exp(b)), (1,))
    )(z)
    np.testing.assert_allclose(got, np.log(np.exp(z).sum(1)), rtol=1e-4)


def test_reduce_by_any_computation_has_a_derivative():
    x = f32(5)

    def smooth(a, b):
        return lax.add(lax.add(a, b), lax.mul(a, b))

    def direct(x):
        out = lax.full((), np.float32(0))
        for i in range(5):
            out = smooth(out, lax.index_in_dim(x, i, 0, False))
        return out

    got = pullback.grad(lambda x: lax.reduce(x, 0.0, smooth, (0,)))(x)
    np.testing.assert_allclose(np.asarray(got), np.asarray(pullback.grad(direct)(x)), rtol=1e-5)


def test_reduce_errors():
    with pytest.raises(ValueError, match=r"pytree .* but init_value"):
        lax.reduce((f32(2),), 0.0, lax.add, (0,))
    with pytest.raises(TypeError, match="must map"):
        lax.reduce(f32(2), 0.0, lambda a, b: lax.gt(a, b), (0,))
    with pytest.raises(ValueError, match="does not have all of the axes"):
        lax.reduce_sum(f32(2), (1,))
    with pytest.raises(ValueError, match="duplicate value in 'axes'"):
        lax.reduce_max(f32(2, 2), (0, 0))
    with pytest.raises(TypeError, match="must be of booleans or integers"):
        lax.reduce_and(f32(2), (0,))


def test_maximum_splits_its_derivative_among_ties():
    x = np.array([1.0, 3.0, 3.0, 2.0], np.float32)
    assert np.asarray(pullback.grad(lambda x: lax.reduce_max(x, (0,)))(x)).tolist() == [0, 0.5, 0.5, 0]
    assert np.asarray(pullback.grad(lambda x: lax.max(x, np.float32(1)))(np.float32(1))) == 0.5


def test_product_has_a_derivative_at_zeros():
    for x in ([0.0, 2.0, 3.0], [0.0, 0.0, 3.0]):
        x = np.array(x, np.float32)
        want = [np.prod(np.delete(x, i)) for i in range(3)]
        assert np.asarray(pullback.grad(lambda x: lax.reduce_prod(x, (0,)))(x)).tolist() == want
        assert np.isfinite(np.asarray(pullback.hessian(lambda x: lax.reduce_prod(x, (0,)))(x))).all()


@pytest.mark.parametrize("wrap", WRAPS)
def test_positions_of_extrema(wrap):
    x = np.array([[1, np.nan, 2, np.nan], [3, 3, 1, 3]], np.float32)
    assert np.asarray(wrap(lambda x: lax.argmax(x, 1, np.int32))(x)).tolist() == [1, 0]
    assert np.asarray(wrap(lambda x: lax.argmin(x, 1, np.int32))(x)).tolist() == [1, 2]
    assert np.asarray(wrap(lambda x: lax.argmax(x, 0, np.uint8))(np.full((3, 2), -np.inf, np.float32))).tolist() == [
        0,
        0,
    ]


@pytest.mark.parametrize("wrap", WRAPS)
def test_cumlogsumexp_at_infinities(wrap):
    x = np.array([-np.inf, -np.inf, 0.0, 1000.0, np.inf], np.float32)
    got = np.asarray(wrap(lax.cumlogsumexp)(x))
    assert np.array_equal(got, np.array([-np.inf, -np.inf, 0, 1000, np.inf], np.float32))
    for axis, message in ((1, "out of bounds"), (-1, "must not be negative")):
        with pytest.raises(ValueError, match=message):
            lax.cumsum(x, axis)


@pytest.mark.parametrize("wrap", WRAPS)
def test_reduce_window_by_any_computation(wrap):
    x = f32(5, 4)
    got = wrap(lambda x: lax.reduce_window(x, 1.0, lax.mul, (2, 3), (1, 1), "SAME"))(x)
    padded = np.pad(x, ((0, 1), (1, 1)), constant_values=1)
    want = np.lib.stride_tricks.sliding_window_view(padded, (2, 3)).prod((-1, -2))
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-5)


def test_pooling_gradient_goes_to_the_maximum():
    x = np.array([[1.0, 5.0, 2.0, 0.0], [3.0, 4.0, 7.0, 6.0]], np.float32)
    got = pullback.grad(
        lambda x: lax.reduce_sum(lax.reduce_window(x, -np.inf, lax.max, (2, 2), (2, 2), "VALID"), (0, 1))
    )(x)
    assert np.asarray(got).tolist() == [[0, 1, 0, 0], [0, 0, 1, 0]]


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("stride, kernel", [(1, 3), (2, 3), (2, 2), (3, 2)])
def test_transposed_convolution_is_the_gradient(padding, stride, kernel):
    w = f32(kernel, kernel, 2, 3)  # HWIO of the forward convolution
    n = 4 * stride + (max(kernel - stride, 0) if padding == "VALID" else 0)
    y = f32(1, 4, 4, 3)
    numbers = ("NHWC", "HWIO", "NHWC")

    def forward(x):
        return lax.conv_general_dilated(x, w, (stride, stride), padding, dimension_numbers=numbers)

    out, pull = pullback.vjp(forward, np.zeros((1, n, n, 2), np.float32))
    assert out.shape == y.shape
    (want,) = pull(y)
    got = lax.conv_transpose(y, w, (stride, stride), padding, dimension_numbers=numbers, transpose_kernel=True)
    np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-4, atol=1e-5)


def test_negative_paddings():
    """Up to the size of the operand, after it is dilated."""
    for pad, by in (((-6, 0), 1), ((0, -6), 1), ((-3, -3), 1), ((-9, -1), 2)):
        with pytest.raises(ValueError, match="negative padding"):
            lax.conv_general_dilated(f32(1, 1, 5), f32(1, 1, 2), (1,), [pad], lhs_dilation=(by,))
    for pad, by in (((-5, 0), 1), ((-3, -2), 1), ((-8, -1), 2)):
        assert lax.conv_general_dilated(f32(1, 1, 5), f32(1, 1, 2), (1,), [pad], lhs_dilation=(by,)).size == 0


def test_paddings_of_transposed_convolutions_by_name():
    """Without strides all those of convolutions; with strides two."""
    x, w = f32(1, 6, 5, 2), f32(3, 2, 2, 2)
    for padding in ("same", "valid", "SAME_LOWER"):
        got = lax.conv_transpose(x, w, (1, 1), padding)
        want = lax.conv_general_dilated(x, w, (1, 1), padding, dimension_numbers=("NHWC", "HWIO", "NHWC"))
        np.testing.assert_array_equal(got, want)
        with pytest.raises(ValueError, match="padding"):
            lax.conv_transpose(x, w, (2, 1), padding)


def test_patches_and_local_convolution():
    x = f32(2, 3, 5, 5)
    patches = np.asarray(lax.conv_general_dilated_patches(x, (2, 2), (1, 1), "VALID"))
    view = np.lib.stride_tricks.sliding_window_view(x, (2, 2), (2, 3))
    want = np.moveaxis(view, (4, 5), (2, 3)).reshape(2, 12, 4, 4)
    np.testing.assert_allclose(patches, want, rtol=1e-6)
    blocks = np.asarray(lax.conv_general_dilated_patches(x, (2, 2), (2, 2), "VALID"))
    np.testing.assert_array_equal(blocks, patches[:, :, ::2, ::2])
    w = f32(4, 12, 4, 4)
    got = lax.conv_general_dilated_local(x, w, (1, 1), "VALID", (2, 2))
    np.testing.assert_allclose(np.asarray(got), np.einsum("ncij,ocij->noij", want, w), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("window", [(3, 2), (9, 9)])
def test_patches_are_moved_not_multiplied(window):
    x = f32(1, 2, 7, 6)
    x[0, 1, 3, 3] = np.inf
    got = np.asarray(lax.conv_general_dilated_patches(x, window, (1, 2), [(4, 5), (3, 5)], (1, 2), (1, 1)))
    spread = np.zeros((1, 2, 7, 11), "f4")
    spread[..., ::2] = x
    view = np.lib.stride_tricks.sliding_window_view(np.pad(spread, [(0, 0), (0, 0), (4, 5), (3, 5)]), window, (2, 3))
    want = np.moveaxis(view[:, :, :, ::2], (4, 5), (2, 3))
    np.testing.assert_array_equal(got, want.reshape(1, -1, *want.shape[4:]))


@pytest.mark.parametrize(
    "call, error, message",
    [
        (
            lambda: lax.conv(f32(1, 2, 4), f32(1, 3, 2), (1,), "SAME"),
            ValueError,
            "lhs has 2 features, .* of rhs take 3",
        ),
        (lambda: lax.conv(f32(1, 2, 4), f32(1, 2, 2), (1,), "SOME"), RuntimeError, "Unrecognized padding type"),
        (
            lambda: lax.conv_general_dilated(
                f32(1, 2, 4), f32(1, 2, 2), (1,), "SAME", dimension_numbers=("NCC", "OIH", "NCH")
            ),
            TypeError,
            "must have one 'N' and one 'C'",
        ),
        (lambda: lax.conv(f32(1, 2, 4), f32(1, 2, 2, 2), (1,), "SAME"), TypeError, "must be of one rank"),
    ],
)
def test_convolution_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_sort_keeps_the_order_of_equal_keys():
    keys, values = np.array([2, 1, 2, 1, 2], np.int32), np.arange(5, dtype=np.float32)
    for wrap in WRAPS:
        assert np.asarray(wrap(lax.sort_key_val)(keys, values)[1]).tolist() == [1, 3, 0, 2, 4]
    assert np.signbit(np.asarray(lax.sort(np.array([0.0, -0.0, -1.0], np.float32)))).tolist() == [True, False, True]
    values, places = lax.top_k(np.array([1.0, np.nan, 3.0, 3.0], np.float32), 3)
    assert np.isnan(np.asarray(values)[0]) and np.asarray(places).tolist() == [1, 2, 3]


@pytest.mark.parametrize("wrap", WRAPS)
def test_windows_begin_with_a_value_and_padding_is_no_element(wrap):
    x = np.array([[1.0, 2.0, 4.0], [8.0, 16.0, 32.0]], np.float32)
    pads = ((0, 1), (0, 1))

    def fold(op, init):
        return wrap(lambda x, i: lax.reduce_window(x, i, op, (2, 2), (1, 1), pads))(x, np.float32(init))

    np.testing.assert_array_equal(fold(lax.add, 0.5), [[27.5, 54.5, 36.5], [24.5, 48.5, 32.5]])
    np.testing.assert_array_equal(fold(lax.max, 20.0), [[20, 32, 32], [20, 32, 32]])
    np.testing.assert_array_equal(fold(lax.min, 3.0), [[1, 2, 3], [3, 3, 3]])
    np.testing.assert_array_equal(fold(lax.mul, 2.0), [[512, 8192, 256], [256, 1024, 64]])
    np.testing.assert_array_equal(fold(lambda a, b: a + 2 * b, 0.5), [[54.5, 108.5, 72.5], [48.5, 96.5, 64.5]])


def test_windows_with_a_start_value_have_derivatives_and_maps():
    x = f32(4, 5)

    def total(x, init):
        return lax.reduce_window(x, init, lax.add, (2, 2), (2, 2), "SAME").sum()

    dx, di = pullback.grad(total, (0, 1))(x, np.float32(0.5))
    np.testing.assert_array_equal(dx, np.ones((4, 5)))
    assert di == 6
    starts = np.array([0.0, 1.0], np.float32)
    found = pullback.vmap(total, (None, 0))(x, starts)
    np.testing.assert_allclose(found, x.sum() + 6 * starts, rtol=1e-5)


@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize(
    "strides, pads, base, dilation",
    [
        ((1, 1), "VALID", (1, 1), (1, 1)),
        ((2, 3), ((1, 2), (0, 3)), (1, 2), (2, 1)),
        ((1, 1), ((-1, 0), (0, -2)), (1, 1), (1, 1)),
        ((1, 1), ((9, 0), (0, 0)), (1, 1), (1, 1)),  # some windows have nothing but padding
    ],
)
def test_windows_of_any_computation_have_derivatives(wrap, strides, pads, base, dilation):
    x, dx, init = f32(4, 5), f32(4, 5), np.float32(1.5)

    def products(x, init):
        return wrap(lambda *a: lax.reduce_window(*a, lax.mul, (2, 3), strides, pads, base, dilation))(x, init)

    out, found = pullback.jvp(products, (x, init), (dx, np.float32(0.25)))
    near = [np.asarray(products(x + e * dx, init + e * np.float32(0.25)), "f8") for e in (-1e-2, 1e-2)]
    np.testing.assert_array_equal(out, products(x, init))
    np.testing.assert_allclose(found, (near[1] - near[0]) / 2e-2, atol=2e-2)
    weights = f32(*out.shape)
    _, pull = pullback.vjp(products, x, init)
    x_bar, init_bar = pull(weights)
    np.testing.assert_allclose((x_bar * dx).sum() + init_bar * 0.25, (weights * found).sum(), rtol=1e-4, atol=1e-4)


def test_start_values_have_the_types_of_what_is_folded_unless_they_are_neutral():
    x = np.ones(3, np.uint8)
    for wrong in (1.5, 2, 1j, np.int32(1)):
        for fold in (
            lambda init: lax.reduce(x, init, lax.add, (0,)),
            lambda init: lax.reduce(x, init, lambda a, b: a + b * 2, (0,)),
            lambda init: lax.reduce_window(x, init, lax.add, (1,), (1,), "VALID"),
        ):
            with pytest.raises(TypeError, match="init_values must have the dtypes"):
                fold(wrong)
    assert lax.reduce(x, 0.0, lax.add, (0,)) == 3 and lax.reduce(x, -np.inf, lax.max, (0,)) == 1
    assert lax.reduce(x, np.uint8(2), lax.add, (0,)) == 5
    assert np.array_equal(lax.reduce_window(x, 0, lax.add, (2,), (1,), "VALID"), [2, 2])


@pytest.mark.parametrize("dtype, rtol", [(np.complex64, 3e-6), (np.complex128, 1e-13)])
def test_cumlogsumexp_of_complex_numbers(dtype, rtol):
    """The logarithm with an angle of at most pi, of the first element, too; far out nothing overflows."""
    rng = np.random.default_rng(0)
    x = (rng.normal(size=(40, 3)) * 2 + 1j * rng.uniform(-9, 9, (40, 3))).astype(dtype)
    with pullback.enable_x64(True):
        for shift in (0, 3000, -3000):
            moved = (x + shift).astype(dtype)
            true = np.log(np.cumsum(np.exp((moved - shift).astype(np.clongdouble)), 0)) + shift
            for function in (lax.cumlogsumexp, pullback.jit(lax.cumlogsumexp), pullback.vmap(lax.cumlogsumexp, 1, 1)):
                found = function(moved)
                assert found.dtype == dtype
                np.testing.assert_allclose(found, true, rtol=rtol)
            np.testing.assert_allclose(lax.cumlogsumexp(moved[::-1], reverse=True), true[::-1], rtol=rtol)
        weights = rng.normal(size=40).astype(dtype)
        for way in (lambda f: f, pullback.jit):
            out, slope = way(lambda v, t: pullback.jvp(lax.cumlogsumexp, (v,), (t,)))(x[:, 0], weights)
            true = np.log(np.cumsum(np.exp(x[:, 0])))
            np.testing.assert_allclose(out, true, rtol=rtol)
            np.testing.assert_allclose(slope, np.cumsum(weights * np.exp(x[:, 0])) / np.exp(true), rtol=10 * rtol)
            edges = np.array([-np.inf, -np.inf, 1 + 2j, -np.inf, np.inf, 1], dtype)
            np.testing.assert_array_equal(way(lax.cumlogsumexp)(edges)[:4], [-np.inf, -np.inf, 1 + 2j, 1 + 2j])
            np.testing.assert_array_equal(way(lax.cumlogsumexp)(edges)[4:].real, [np.inf, np.inf])


_LARGER = pullback.jit(lambda x, y: jnp.where(jnp.abs(x) > jnp.abs(y), x, y))


@pytest.mark.parametrize(
    ("dtype", "computation", "start"),
    [
        ("bool", lax.bitwise_or, False),
        ("bool", lax.bitwise_and, True),
        ("bool", lax.bitwise_xor, False),
        ("u1", lax.bitwise_and, 255),
        ("i4", lax.bitwise_xor, 0),
        ("f4", lax.mul, 1),
        ("c8", lax.mul, 1),
        ("f4", _LARGER, 0),
        ("f4", lambda x, y: jnp.where(x > 2, x, y + 1), 0),
    ],
)
def test_windows_of_any_elementwise_computation_lie_in_lanes(dtype, computation, start):
    x = (np.random.default_rng(0).standard_normal((9, 40)) * 2).astype("i4").astype(dtype)
    start = x.dtype.type(start)

    def folded(x):
        return lax.reduce_window(x, start, computation, (3, 2), (1, 2), ((2, 0), (-1, 3)), (1, 1), (1, 2))

    program = pullback.jit(folded)
    assert "vector" in program.lower(x).as_text("nests")
    want = np.empty(program(x).shape, dtype)
    for i, j in np.ndindex(want.shape):
        places = [(i + a - 2, 2 * j + 2 * b + 1) for a in range(3) for b in range(2)]
        value = start
        for row, column in places:
            if row in range(9) and column in range(40):
                value = np.asarray(computation(jnp.asarray(value), jnp.asarray(x[row, column])))
        want[i, j] = value
    np.testing.assert_allclose(program(x), want, rtol=1e-5)


@pytest.mark.parametrize("axis", [0, 1])
def test_pairs_are_folded_in_lanes(axis):
    x = np.random.default_rng(0).integers(0, 9, (30, 40)).astype("f4")

    def first_largest(x):
        def larger(a, b):
            keep = (a[0] > b[0]) | ((a[0] == b[0]) & (a[1] < b[1]))
            return jnp.where(keep, a[0], b[0]), jnp.where(keep, a[1], b[1])

        numbers = lax.broadcasted_iota("i4", x.shape, axis)
        return lax.reduce((x, numbers), (np.float32(-np.inf), np.int32(100)), larger, (axis,))

    program = pullback.jit(first_largest)
    assert "vector" in program.lower(x).as_text("nests")
    largest, number = program(x)
    np.testing.assert_array_equal(largest, x.max(axis))
    np.testing.assert_array_equal(number, x.argmax(axis))
    for shape in ((0, 40), (30, 0)):
        largest, number = program(x[: shape[0], : shape[1]])
        assert largest.shape == (shape[1 - axis],)
        assert (largest == -np.inf).all() and (number == 100).all()


@pytest.mark.parametrize("fold, ufunc", [(lax.add, np.add), (lax.max, np.maximum), (lax.min, np.minimum)])
def test_large_windows_are_folded_along_one_dimension_after_the_other(fold, ufunc):
    x = np.maximum(np.random.default_rng(0).integers(-3, 4, (2, 11, 13, 3)), 0).astype("f4")

    def f(x):
        return lax.reduce_window(x, np.float32(0), fold, (1, 5, 6, 1), (1, 2, 1, 1), "VALID")

    equations = [eqn for eqn in pullback.make_jaxpr(f)(x).eqns if "window_dimensions" in eqn.params]
    assert [eqn.params["window_dimensions"] for eqn in equations] == [(1, 1, 6, 1), (1, 5, 1, 1)]
    view = np.lib.stride_tricks.sliding_window_view(x, (5, 6), (1, 2))[:, ::2]
    want = ufunc.reduce(view, axis=(-2, -1), initial=np.float32(0))
    np.testing.assert_allclose(np.asarray(f(jnp.asarray(x))), want, rtol=1e-6)
    np.testing.assert_array_equal(np.asarray(pullback.jit(f)(x)), np.asarray(f(jnp.asarray(x))))


def test_the_first_of_equal_maxima_in_large_windows_has_the_slope():
    x = np.maximum(np.random.default_rng(1).integers(-3, 3, (9, 10)), 0).astype("f4")
    weights = np.arange(5 * 6, dtype="f4").reshape(5, 6)
    got = pullback.grad(lambda x: (lax.reduce_window(x, -np.inf, lax.max, (5, 5), (1, 1), "VALID") * weights).sum())(x)
    want = np.zeros_like(x)
    for i in range(5):
        for j in range(6):
            first = np.unravel_index(x[i : i + 5, j : j + 5].argmax(), (5, 5))
            want[i + first[0], j + first[1]] += weights[i, j]
    np.testing.assert_array_equal(np.asarray(got), want)


def test_small_windows_are_folded_at_once():
    def f(x):
        return lax.reduce_window(x, np.float32(0), lax.add, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")

    assert len([eqn for eqn in pullback.make_jaxpr(f)(f32(1, 8, 8, 2)).eqns if "window_dimensions" in eqn.params]) == 1
