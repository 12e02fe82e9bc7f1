"""linspace, bit for bit as JAX 0.10.2 on a CPU gives it, and what is made of it: bins begin where they begin there."""

import zlib

import numpy as np
import pytest

import pullback as pb
import pullback.numpy as jnp

PAIR = np.float32([0.1, -3.3]), np.float32([7.3, 2.2])
# Checksums of JAX's results.
CASES = [
    ((0.1, 7.3, 6), 278317949),
    ((-2.7, 31.9, 5, False), 4050885544),
    ((0.1, 7.3, 50), 34312884),
    ((*PAIR, 5), 1206469129),
    ((*PAIR, 5, True, False, None, 1), 3920145294),
    ((np.float16(0.3), np.float16(7.1), 7), 3638548631),
    ((jnp.bfloat16(0.3), jnp.bfloat16(7.1), 7), 3019343479),
    ((0.3 - 1j, 7.1 + 2j, 4), 1302305204),
]


@pytest.mark.parametrize("arguments, wanted", CASES)
def test_linspace_has_the_bits_of_jax(arguments, wanted):
    start, stop, *others = arguments
    for way in (jnp.linspace, pb.jit(jnp.linspace, static_argnums=range(2, 7))):
        for _ in range(2):  # once by references, then as a plan
            assert zlib.crc32(np.asarray(way(start, stop, *others)).tobytes()) == wanted


def test_most_whole_numbers_are_exact():
    for n in (*range(1, 41), 50, 100):
        assert np.array_equal(jnp.linspace(0, n, n + 1), np.arange(n + 1))
    for n in (5, 13, 49):
        assert np.array_equal(pb.jit(lambda x, n=n: jnp.linspace(0 * x, x, n + 1))(float(n)), np.arange(n + 1))


def test_values_on_edges_fall_where_numpy_puts_them():
    x = jnp.array([1, 2, 3, 10, 11, 15, 19, 25])
    for way in (jnp.histogram, pb.jit(jnp.histogram, static_argnames=("bins", "range"))):
        counts, edges = way(x, bins=5, range=(0, 25))
        assert counts.tolist() == [3, 0, 2, 2, 1] and edges.tolist() == [0, 5, 10, 15, 20, 25]


def test_linspace_has_derivatives_in_both_ends():
    first, last = pb.jacobian(lambda a, b: jnp.linspace(a, b, 5), argnums=(0, 1))(1.5, 4.0)
    assert np.allclose(first, [1, 0.75, 0.5, 0.25, 0]) and np.allclose(last, [0, 0.25, 0.5, 0.75, 1])


def test_geomspace_goes_by_logarithms_and_has_none_of_zero():
    assert np.allclose(jnp.geomspace(-1, -8, 4), [-1, -2, -4, -8])
    assert np.isnan(jnp.geomspace(0, 1, 4)).all()
    assert np.array_equal(jnp.geomspace(1, 0, 4), [np.nan, 0, 0, 0], equal_nan=True)
    assert np.allclose(jnp.geomspace(1j, -1j, 3), [1j, -1, -1j], atol=1e-6)


@pytest.mark.parametrize("dtype", ["int32", "float32", "float16", "float64"])
def test_quantiles_have_the_type_of_the_values(dtype):
    with pb.enable_x64(True):
        x = jnp.arange(5).astype(dtype)
        wanted = jnp.dtype("float32" if dtype == "int32" else dtype)
        for q in (0.5, np.float64(0.5), jnp.array([0.5]), jnp.float32(0.5)):
            assert jnp.quantile(x, q).dtype == jnp.percentile(x, q).dtype == wanted


def test_frequencies_of_numbers_that_are_not_whole():
    for n, both, one in [
        (2.5, [0, 1, -0.5], [0]),
        (4.5, [0, 1, 2, -1.5, -0.5], [0, 1]),
        (0.5, [0], []),
        (-1.5, [], []),
    ]:
        assert np.allclose(jnp.fft.fftfreq(n) * n, both) and np.allclose(jnp.fft.rfftfreq(n) * n, one)
    for n in range(1, 9):
        assert np.allclose(jnp.fft.fftfreq(n), np.fft.fftfreq(n)) and np.allclose(
            jnp.fft.rfftfreq(n), np.fft.rfftfreq(n)
        )
    for wrong, error in [
        (lambda: jnp.fft.fftfreq("a"), TypeError),
        (lambda: jnp.fft.fftfreq(4, d="a"), ValueError),
        (lambda: jnp.fft.fftshift(jnp.arange(4), axes=5), IndexError),
    ]:
        with pytest.raises(error):
            wrong()


def test_quantiles_of_scalars_keep_one_axis():
    for f in (
        jnp.median,
        jnp.nanmedian,
        lambda x, **kw: jnp.quantile(x, 0.5, **kw),
        lambda x, **kw: jnp.percentile(x, 5, **kw),
    ):
        assert f(3.0, keepdims=True).tolist() == [3] and f(jnp.float32(3.0)).shape == ()
    assert jnp.quantile(3.0, jnp.array([0.5, 0.2]), keepdims=True).shape == (2, 1)


def test_negative_numbers_count_as_zero():
    assert jnp.bincount(jnp.array([-1])).tolist() == [1]
    assert jnp.bincount(jnp.array([-5, -1, 0, 3])).tolist() == [3, 0, 0, 1]
    assert jnp.bincount(jnp.array([-5, -1]), minlength=3).tolist() == [2, 0, 0]
    assert jnp.bincount(jnp.array([], int)).shape == (0,)


def test_remainder_of_truth_values():
    values = jnp.array([True, True, False, False]), jnp.array([True, False, True, False])
    assert jnp.fmod(*values).tolist() == [0, 1, 0, 0] == pb.jit(jnp.fmod)(*values).tolist()
    assert jnp.fmod(jnp.array([7, -7]), jnp.array([0, 2])).tolist() == [0, -1]


@pytest.mark.parametrize("name", ["linspace", "logspace", "geomspace"])
def test_who_asks_for_a_type_may_give_ends_of_others(name):
    function = getattr(jnp, name)
    with pb.numpy_dtype_promotion("strict"):
        ends = (1, np.int64(4)), (jnp.int8(1), jnp.float32(4)), (1.0, np.int64(4)), (jnp.uint8(1), jnp.int32(4))
        for start, stop in ends:
            for dtype in ("float32", "int32", "float16"):
                found = function(start, stop, 4, dtype=dtype)
                assert found.dtype == dtype
                np.testing.assert_allclose(found, getattr(np, name)(1, 4, 4).astype(dtype), rtol=1e-2)
        with pytest.raises(ValueError, match="promotion"):
            function(jnp.int8(1), jnp.float32(4), 4)


@pytest.mark.parametrize("dtype", ["int32", "float32", "bool"])
@pytest.mark.parametrize("name", ["linspace", "logspace", "geomspace"])
def test_of_complex_ends_real_ranges_have_the_real_parts(name, dtype):
    between = getattr(jnp, name)
    for ends in [(1 + 2j, 7.5 - 1j), (jnp.asarray([1j + 1]), 4), (np.complex64(2 + 1j), np.ones((2, 1), "c8"))]:
        with pytest.warns(np.exceptions.ComplexWarning):
            found = between(*ends, 4, dtype=dtype)
        np.testing.assert_array_equal(found, between(*(jnp.real(end) for end in ends), 4, dtype=dtype))
    assert found.dtype == dtype
