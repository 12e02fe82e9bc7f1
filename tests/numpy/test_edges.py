"""Edges of functions and weak types, as JAX 0.10.2 has them."""

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import lax, nn

INF, NAN = np.inf, np.nan


def test_the_counter_of_a_loop_is_weakly_typed_as_a_python_integer_is():
    for dtype in ("uint8", "int8", "uint32"):
        for lower, upper in ((jnp.int32(1), jnp.int32(5)), (1, np.int32(5)), (jnp.int16(1), jnp.int16(5)), (1, 5)):
            result = lax.fori_loop(lower, upper, lambda i, x: x + i, jnp.zeros(2, dtype))
            assert result.dtype == dtype and np.all(result == 10)
        traced = pullback.jit(lambda n, zeros: lax.fori_loop(1, n, lambda i, x: x + i, zeros))
        assert traced(jnp.int32(5), jnp.zeros(2, dtype)).dtype == dtype
    with pytest.raises(TypeError, match="equal types"):
        pullback.jit(lambda m, n: lax.fori_loop(m, n, lambda i, x: x + i, jnp.zeros(2, "int8")))(
            jnp.int32(1), jnp.int32(5)
        )


@pytest.mark.filterwarnings("ignore:scatter inputs")
def test_powers_at_places_of_booleans_are_integers():
    x = jnp.array([True, True, False])
    for exponent in (2, 2.5, jnp.array([2.0], jnp.float32)):
        result = x.at[jnp.array([1])].power(exponent)
        assert result.dtype == jnp.int32 and result.tolist() == [1, 1, 0]
    assert jnp.arange(3, dtype="int8").at[1].power(2).dtype == jnp.int8


@pytest.mark.parametrize("function, base", [(jnp.logaddexp, np.e), (jnp.logaddexp2, 2)])
def test_shares_of_sums_of_exponentials(function, base):
    cases = {
        (0.0, 0.0): (0.5, 0.5), (3.0, 1.0): (base**2 / (1 + base**2), 1 / (1 + base**2)), (INF, 1.0): (1, 0),
        (-INF, 1.0): (0, 1), (INF, -INF): (1, 0), (-INF, -INF): (NAN, NAN), (NAN, 1.0): (NAN, NAN),
        (1.0, NAN): (NAN, NAN), (NAN, INF): (NAN, NAN), (INF, INF): (1, 1), (1000.0, 0.0): (1, 0),
    }  # fmt: skip
    x, y = np.array(list(cases), np.float32).T
    for way in (lambda f: f, pullback.jit):
        shares = way(pullback.vmap(pullback.grad(function, (0, 1))))(x, y)
        np.testing.assert_allclose(np.stack(shares, -1), np.array(list(cases.values())), rtol=1e-6)


def test_shares_with_a_constant_under_transformations():
    slopes = pullback.jit(pullback.vmap(pullback.grad(nn.softplus)))(np.array([0, 1e3, -1e3, NAN], np.float32))
    np.testing.assert_allclose(slopes, [0.5, 1, 0, NAN])
    slope = pullback.jit(pullback.grad(lambda x: jnp.logaddexp2(np.float32(1), x)))(1.0)
    np.testing.assert_allclose(slope, 0.5)


def test_the_derivative_of_sinc_next_to_zero():
    x = np.array([1.4e-7, -1e-3, 0.05, 0.0999, 0.1001, 0.3], np.float32)
    y = np.pi * x.astype(np.float64)
    exact = np.where(abs(y) < 0.01, np.pi * (-y / 3 + y**3 / 30), np.pi * (y * np.cos(y) - np.sin(y)) / y**2)
    np.testing.assert_allclose(pullback.vmap(pullback.grad(jnp.sinc))(x), exact, rtol=2e-4)
    np.testing.assert_allclose(jnp.sinc(x), np.sinc(x.astype(np.float64)), rtol=3e-7)
    far = np.array([3e5, 1e8, -1e30], np.float32)  # where the series would be inf
    slopes = pullback.jvp(jnp.sinc, (far,), (np.ones_like(far),))[1]
    np.testing.assert_allclose(pullback.vmap(pullback.grad(jnp.sinc))(far), slopes, rtol=1e-5)


def test_quantiles_of_nothing_have_no_derivative():
    x = np.full((2, 3), NAN, np.float32)
    x[1] = [2, NAN, 4]
    for q in (0.5, np.float32(0.5)):
        np.testing.assert_array_equal(jnp.nanquantile(x, q, axis=1), [NAN, 3])
        slopes = pullback.grad(lambda v, q: jnp.nansum(jnp.nanquantile(v, q, axis=1)))(x, q)
        np.testing.assert_array_equal(slopes, [[0, 0, 0], [0.5, 0, 0.5]])
    assert np.isnan(jnp.log10(-1.0)) and jnp.log10(0.0) == -INF and jnp.log10(INF) == INF
    both = jnp.nanquantile(x, np.array([0.0, 1.0]), axis=1, keepdims=True)
    np.testing.assert_array_equal(both, [[[NAN], [2]], [[NAN], [4]]])


def test_means_in_integers_wrap_as_in_numpy():
    x = np.array([100, 100, 100, -7, 33], np.int32)
    assert jnp.mean(x, dtype=np.int8) == np.mean(x, dtype=np.int8) == 14
    assert jnp.mean(np.array([1.9, 1.9, 1.9, 0.1], np.float32), dtype=int) == 0
    large = np.array([1768909019, 1076439043, -1965560586, -1034502537, -31511193, 367215203], np.int32)
    assert jnp.mean(large, dtype=np.int32) == np.mean(large.astype(np.int64), dtype=np.int64)


def test_weak_types_of_rounded_and_of_log1mexp():
    assert not jnp.round(jnp.arange(3) + 1.5, 1).weak_type and jnp.round(jnp.arange(3) + 1.5).weak_type
    assert jnp.round(jnp.asarray(1.5), 1).weak_type
    assert nn.log1mexp(1.0).weak_type and not nn.log1mexp(jnp.float32(1)).weak_type


def test_what_booleans_and_complex_numbers_cannot_be():
    b = jnp.array([True, False])
    for refused in (lambda: jnp.kron(b, b), lambda: jnp.vander(b), lambda: jnp.vander(b, 0)):
        with pytest.raises(TypeError, match="of booleans"):
            refused()
    assert jnp.kron(b, jnp.arange(2)).tolist() == [0, 1, 0, 0]
    for function in (jnp.gcd, jnp.lcm):
        with pytest.raises(ValueError, match="Incompatible shapes for broadcasting"):
            function(np.ones((0, 3), int), np.ones((2, 3), int))
    with pytest.raises(TypeError, match="cov: argument 'ddof' must be a real number, got 1j"):
        jnp.cov(np.eye(2), ddof=1j)
    with pytest.raises(TypeError, match=r"\.view\(\)"):
        lax.bitcast_convert_type(jnp.ones(2, "complex64"), "float32")


def test_einsum_of_booleans_is_any_where_it_sums():
    b, u = np.array([[True, False], [True, True]]), np.array([True, False])
    for way in (lambda f: f, pullback.jit):
        for text, operands in (("ii", (b,)), ("ij->i", (b,)), ("ij->", (b,)), ("ij,k->k", (b, u)), ("ij,j->i", (b, u))):
            found = way(lambda *x, text=text: jnp.einsum(text, *x))(*operands)
            want = np.einsum(text, *[o.astype(int) for o in operands])
            assert found.dtype == bool and np.array_equal(found, want > 0), text
            counted = way(lambda *x, text=text: jnp.einsum(text, *x, preferred_element_type=np.int32))(*operands)
            assert counted.dtype == np.int32 and np.array_equal(counted, want), text


def test_integers_that_no_integer_type_holds_become_what_is_asked_for():
    for dtype, want in ((np.float32, 2.0**70), (np.float16, np.inf), (np.complex64, 2.0**70), (bool, True)):
        for made in (jnp.array([1, 2**70], dtype), jnp.asarray([[1], [2**70]], dtype), jnp.array((1, 2**70), dtype)):
            assert made.dtype == dtype and np.array_equal(np.ravel(made), [1, want])
    assert jnp.array([1.5, 2**70]).dtype == jnp.array([1.5]).dtype
    assert np.array_equal(jnp.full_like(jnp.zeros(2), -(2**70)), [-(2.0**70)] * 2)
    for given in (lambda: jnp.array([2**70]), lambda: jnp.array([2**70], np.int32), lambda: jnp.array([2**70, True])):
        with pytest.raises(OverflowError):
            given()


def test_values_that_are_put_along_an_axis_have_the_shape_of_their_places():
    x = np.zeros((4, 5), np.int32)
    for places, values, axis in (((1, 4), (4, 1), 1), ((4, 1), (5,), 0), ((1, 1), (4, 1), 1), ((1, 4), (4,), None)):
        with pytest.raises(ValueError, match="put_along_axis"):
            jnp.put_along_axis(x, np.zeros(places, int), np.ones(values, np.int32), axis=axis, inplace=False)
    assert int(jnp.put_along_axis(x, np.zeros((4, 1), int), np.ones((1, 1), np.int32), 1, inplace=False).sum()) == 4


def test_masks_of_sets_that_are_traced_are_named():
    a, b = np.array([3, 1, 2]), np.array([[1, 5], [2, 3]])
    for name in ("setdiff1d", "intersect1d", "setxor1d"):
        for way in (pullback.jit, lambda f: pullback.vmap(f)):
            with pytest.raises(pullback.errors.NonConcreteBooleanIndexError):
                way(lambda y, name=name: getattr(jnp, name)(a, y, assume_unique=True))(b)
    with pytest.raises(pullback.errors.NonConcreteBooleanIndexError):
        pullback.vmap(lambda y: jnp.setdiff1d(a, y))(b)


def test_variances_of_narrow_types_in_a_wider_one():
    for of in ("int4", "uint2", "float8_e4m3fn", "float8_e5m2", "int8", "float32"):
        x = jnp.array([1, 2, 0, 1]).astype(of)
        for dtype in (jnp.float32, jnp.bfloat16, jnp.float8_e5m2):
            for f in (jnp.var, jnp.nanvar):
                assert f(x, dtype=dtype).dtype == dtype
                assert float(f(x, dtype=dtype)) == 0.5


@pytest.mark.parametrize("of", ["float32", "int32"])
def test_variances_asked_for_as_integers_are_computed_in_these(of):
    x = jnp.array([1, 2, 3, 5]).astype(of)  # the mean is cut to 2, the sum of squares is 11
    for f in (jnp.var, pullback.jit(jnp.var, static_argnames="dtype")):
        assert float(f(x, dtype="int32")) == 2.0 and f(x, dtype="int32").dtype == np.float32
    assert float(jnp.var(x, dtype="int32", ddof=1)) == 3.0
    found = jnp.nanvar(x, dtype="int8")
    assert found.dtype == np.int8 and int(found) == 2
    found = jnp.nanvar(jnp.array([44, 2, 5]).astype(of), dtype="int8")  # from 17: 27, -15, -12, whose squares wrap
    assert int(found) == -60


def test_variances_of_complex_numbers_as_booleans_are_a_value_error():
    for f in (jnp.var, jnp.nanvar, jnp.nanstd):
        with pytest.raises(ValueError, match="complex"):
            f(jnp.ones(2, "complex64"), dtype=bool)


@pytest.mark.parametrize("f", [jnp.ndim, jnp.shape, jnp.size])
def test_shapes_of_sequences_are_deprecated(f):
    with pytest.warns(DeprecationWarning, match="list"):
        assert f([1, 2]) == getattr(np, f.__name__)([1, 2])


def test_one_hot_of_floats_is_deprecated():
    with pytest.warns(DeprecationWarning, match="integers"):
        pullback.nn.one_hot(jnp.ones(2), 3)


def test_matrix_rank_takes_one_tolerance():
    with pytest.raises(ValueError, match="only one of tol and rtol"):
        jnp.linalg.matrix_rank(jnp.eye(2), 0.1, tol=0.1)


def test_numbers_and_narrow_floats_as_jax_has_them():
    assert jnp.cumsum(3, axis=0).tolist() == jnp.cumprod(3, axis=-1).tolist() == [3]
    assert jnp.nancumsum(jnp.nan, axis=0).tolist() == [0.0]
    for function in (jnp.cumsum, jnp.cumprod, jnp.nancumsum, jnp.nancumprod):
        assert function(jnp.asarray(3), axis=0).tolist() == [3]
        assert pullback.jit(function, static_argnames="axis")(3, axis=-1).tolist() == [3]
        for strong in (np.int64(3), jnp.int32(3), jnp.float32(3)):
            with pytest.raises(ValueError, match="out of bounds"):
                function(strong, axis=0)
    for number, axis in [(3, 1), (True, 0), (jnp.asarray(3), 1)]:  # what is not weakly typed has no axes
        with pytest.raises(ValueError, match="out of bounds"):
            jnp.cumsum(number, axis=axis)
    assert jnp.sum(jnp.array([True, True]), promote_integers=False) == 2
    assert round(jnp.array([1, 2], jnp.int8)).dtype == jnp.int32
    assert round(jnp.array([1, 2], jnp.int8), 0).dtype == jnp.int8
    assert jnp.i0(jnp.ones(2, jnp.float8_e4m3fn)).tolist() == [1.25, 1.25]
    assert jnp.fft.rfft(jnp.ones(4, jnp.float8_e5m2)).dtype == jnp.complex64
    with pytest.warns(DeprecationWarning, match="Casting from complex"):
        assert jnp.array([1 + 2j]).astype(float).tolist() == [1.0]


def test_spacing_of_half_floats():
    x = np.array([1, -3, 4.5, -0.3, -0.0, 0, 65504, -65504, -1e-7, np.inf, np.nan], np.float16)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(jnp.spacing(x), np.spacing(x))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_spacing_that_is_subnormal(dtype):
    """The difference of neighbours is subnormal below 2**-103 (float32), and arithmetic gives 0 for it.

    That of -0.0 has its sign, as in JAX; in NumPy it has not.
    """
    least = np.finfo(dtype).smallest_subnormal
    x = least * np.array([0, 1, 2, 3, 1e3, 1e7, 1e8, 1e15, 1e16, 1e17], dtype)
    x = np.concatenate([x, -x[1:]])
    with pullback.enable_x64(True):
        assert jnp.spacing(dtype(-0.0)) == -least
        np.testing.assert_array_equal(jnp.spacing(x), np.spacing(x))
        np.testing.assert_array_equal(pullback.jit(jnp.spacing)(x), np.spacing(x))


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e8m0fnu", "float4_e2m1fn"])
def test_signs_and_spacing_of_narrow_floats(name):
    """Where a type has no infinity, the largest number has no neighbour away from 0."""
    dtype = np.dtype(name)
    x = np.arange(16 if name == "float4_e2m1fn" else 256, dtype=np.uint8).view(dtype)
    numbers = x.astype(np.float32)
    np.testing.assert_array_equal(jnp.signbit(x)[~np.isnan(numbers)], np.signbit(numbers)[~np.isnan(numbers)])
    with np.errstate(all="ignore"):
        normal = numbers >= np.finfo(np.float32).smallest_normal if name == "float8_e8m0fnu" else slice(None)
        np.testing.assert_array_equal(
            jnp.spacing(x)[normal].astype(np.float32), np.spacing(x)[normal].astype(np.float32)
        )


def test_rare_forms_of_arguments():
    """As JAX takes them: repeats of any rank, rows of an array as conditions, lengths of windows that are floats."""
    x = jnp.arange(12.0).reshape(3, 4)
    many = np.arange(12).reshape(2, 6) % 3
    np.testing.assert_array_equal(jnp.repeat(x, many), np.repeat(np.arange(12.0), many.ravel()))
    total = int(many.sum())
    traced = pullback.jit(lambda r: jnp.repeat(x, r, total_repeat_length=total))(many)
    np.testing.assert_array_equal(traced, jnp.repeat(x, many))
    conditions = jnp.stack([x > 5, x > 2])
    np.testing.assert_array_equal(jnp.select(conditions, [1, 2]), np.select([x > 5, x > 2], [1, 2]))
    np.testing.assert_array_equal(jnp.select(conditions, jnp.stack([x, -x])), np.select([x > 5, x > 2], [x, -x]))
    np.testing.assert_array_equal(jnp.blackman(5.5), jnp.blackman(5))
    applied = jnp.arange(3.0).at[jnp.array([1, 7])].apply(lambda v: v + 5, mode="one_hot")
    np.testing.assert_array_equal(applied, [0, 6, 2])


@pytest.mark.parametrize("given", [((1,), (2,)), [[1], [2]], ((1, 2), (3, 4), (5, 6))])
def test_pads_of_other_shapes(given):
    with pytest.raises(ValueError, match="pad_width"):
        jnp.pad(jnp.ones((2, 3)), given)
    if len(given) == 3:
        with pytest.raises(ValueError, match="3 pairs for 2 axes"):
            jnp.pad(jnp.ones((2, 3)), 1, constant_values=given)
    with pytest.raises(TypeError, match="of one shape"):
        jnp.pad(jnp.ones((2, 3)), ((1, 2), (1,)))


def test_closeness_of_bools_and_infinities():
    a, b = jnp.array([False, True, False]), jnp.array([True, True, False])
    assert jnp.isclose(a, b).tolist() == [False, True, True]
    assert jnp.isclose(a, b, atol=1).all() and jnp.allclose(a, b, rtol=1)
    x, y = jnp.array([np.inf, np.inf, -np.inf, 1, np.nan]), jnp.array([np.inf, 1, np.inf, np.inf, np.nan])
    assert jnp.isclose(x, y).tolist() == [True, False, False, False, False]
    assert jnp.isclose(x, y, atol=np.inf).tolist() == [True, True, False, False, False]
    assert jnp.isclose(x, y, equal_nan=True).tolist() == [True, False, False, False, True]


def test_types_of_errors_and_spellings():
    for bad, error in (
        (lambda: jnp.trapezoid(jnp.zeros((2, 0))), IndexError),
        (lambda: jnp.flip(jnp.ones((2, 2)), (0, -2)), TypeError),
        (lambda: jnp.hstack([]), IndexError),
        (lambda: jnp.array([jnp.ones(2), 1.0]), TypeError),
        (lambda: jnp.fft.irfft(jnp.ones((2, 1)), norm="x"), ValueError),
        (lambda: jnp.iinfo(float), ValueError),
    ):
        with pytest.raises(error):
            bad()
    assert float(jnp.trunc(x=-1.5)) == -1
    assert jnp.compress(jnp.array([True]), jnp.ones(3), size=0).shape == (0,)
    for kind, dtype in ((jnp.finfo, "float32"), (jnp.iinfo, "int8"), (jnp.iinfo, "int4")):
        assert isinstance(kind, type) and isinstance(kind(dtype), kind) and kind(dtype).dtype == dtype
    assert pullback.scipy.special.spence([1.0]).shape == pullback.scipy.special.hyp1f1([1.0], 2.0, 3.0).shape == (1,)


@pytest.mark.parametrize(
    "of",
    [
        lambda x, n: jnp.split(x, [n]),
        lambda x, n: jnp.array_split(x, (1, n)),
        lambda x, n: jnp.pad(x, (n, 1)),
        lambda x, n: jnp.histogram(x, bins=n),
    ],
    ids=["split", "array_split", "pad", "histogram"],
)
def test_traced_numbers_that_decide_shapes_are_refused_in_lists_too(of):
    with pytest.raises(pullback.errors.ConcretizationTypeError):
        pullback.jit(of)(jnp.arange(6.0), 2)
    assert of(jnp.arange(6.0), jnp.int32(2)) is not None
