"""Sums, extrema, truth, means, variances, running sums: against NumPy, with masks, initial values and empty axes."""

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp

RNG = np.random.RandomState(1)
X = RNG.randn(2, 3, 4).astype(np.float32)
I = RNG.randint(-5, 6, (2, 3, 4)).astype(np.int32)
B = X > 0
C = (X + 1j * X[::-1]).astype(np.complex64)
N = np.where(RNG.rand(2, 3, 4) < 0.3, np.nan, X).astype(np.float32)
N[0, 0] = np.nan

AXES = [None, 0, -1, (0, 2), (0, 1, 2), ()]


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "all", "any", "mean", "var", "std", "ptp"])
def test_reducers(same, name, axis):
    if axis == () and name == "ptp":
        axis = 1
    same(lambda m, x: getattr(m, name)(x, axis=axis), X)
    same(lambda m, x: getattr(m, name)(x, axis=axis, keepdims=True), I, tolerance=1e-4)


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "var", "std", "all"])
def test_reducers_of_complex_and_bool(same, name):
    same(lambda m, x: getattr(m, name)(x, axis=1), C, tolerance=1e-4)
    same(lambda m, x: getattr(m, name)(x, axis=1), B)


@pytest.mark.parametrize("axis", [None, 1, (0, 2)])
@pytest.mark.parametrize("name", ["nansum", "nanprod", "nanmax", "nanmin", "nanmean", "nanvar", "nanstd", "nanmedian"])
@pytest.mark.filterwarnings("ignore")
def test_without_nan(same, name, axis):
    same(lambda m, x: getattr(m, name)(x, axis=axis), N, tolerance=1e-4)
    same(lambda m, x: getattr(m, name)(x, axis=axis, keepdims=True), N, tolerance=1e-4)


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min"])
def test_where_and_initial(same, name):
    same(lambda m, x, b: getattr(m, name)(x, axis=1, where=b, initial=0.5), X, B)
    same(lambda m, x, b: getattr(m, name)(x, axis=1, where=b[:, :, :1], initial=2), I, B)
    same(lambda m, x: getattr(m, name)(x, initial=1.5), X)


@pytest.mark.parametrize("name", ["mean", "var", "std", "all", "any"])
def test_where(same, name):
    mask = np.array([True, False, True, True])
    same(lambda m, x, b: getattr(m, name)(x, axis=(1, 2), where=b), X, mask)


def test_variance_arguments(same):
    same(lambda m, x: m.var(x, axis=0, ddof=1), X)
    same(lambda m, x: m.std(x, ddof=2), X)
    same(lambda m, x: m.var(x, axis=1, mean=m.mean(x, axis=1, keepdims=True)), X)
    same(lambda m, x: m.var(x, axis=1, correction=1), X)
    with pytest.raises(ValueError, match="another name of"):
        jnp.var(X, ddof=1, correction=1)


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_positions(same, name):
    ties = I % 3
    for x in (X, ties, N, B):
        same(lambda m, x: getattr(m, name)(x), x)
        same(lambda m, x: getattr(m, name)(x, axis=1), x)
        same(lambda m, x: getattr(m, name)(x, axis=-1, keepdims=True), x)
    same(lambda m, x: getattr(m, "nan" + name)(x, axis=0), np.where(np.isnan(N[0]), X[0], N[0]))
    assert getattr(jnp, "nan" + name)(jnp.array([jnp.nan, jnp.nan])) == -1


@pytest.mark.parametrize("axis", [None, 0, -1])
@pytest.mark.parametrize("name", ["cumsum", "cumprod", "nancumsum", "nancumprod"])
def test_running(same, name, axis):
    same(lambda m, x: getattr(m, name)(x, axis=axis), N if name.startswith("nan") else X, tolerance=1e-4)
    if not name.startswith("nan"):
        assert getattr(jnp, name)(I.astype("int8"), axis=axis).dtype == np.int8


def test_cumulative_functions(same):
    same(lambda m, x: m.cumulative_sum(x, axis=1, include_initial=True), X)
    same(lambda m, x: m.cumulative_prod(x, axis=0), X)
    assert jnp.cumulative_sum(jnp.ones(3, "int8")).dtype == np.int32
    with pytest.raises(ValueError, match="cumulative_sum: pass 'axis'"):
        jnp.cumulative_sum(X)


def test_count_nonzero(same):
    same(lambda m, x: m.count_nonzero(x, axis=1), I % 2)
    same(lambda m, x: m.count_nonzero(x, keepdims=True), I % 2)


@pytest.mark.parametrize(
    ("dtype", "summed", "largest", "averaged"),
    [
        ("bool", "int32", "bool", "float32"),
        ("int8", "int32", "int8", "float32"),
        ("uint8", "uint32", "uint8", "float32"),
        ("int32", "int32", "int32", "float32"),
        ("float16", "float16", "float16", "float16"),
        ("bfloat16", "bfloat16", "bfloat16", "bfloat16"),
        ("complex64", "complex64", "complex64", "complex64"),
    ],
)
def test_result_types(dtype, summed, largest, averaged):
    x = jnp.ones(3, dtype)
    assert [jnp.sum(x).dtype, jnp.max(x).dtype, jnp.mean(x).dtype] == [summed, largest, averaged]
    assert jnp.sum(x, dtype="complex64").dtype == np.complex64


def test_x64_sums(x64):
    assert jnp.sum(jnp.ones(2, "int32")).dtype == np.int64
    assert jnp.mean(jnp.ones(2, "int32")).dtype == np.float32
    assert jnp.argmax(jnp.ones(3)).dtype == np.int64


def test_results_are_not_weakly_typed():
    assert not jnp.sum(1).weak_type
    assert not jnp.max(1.0).weak_type


def test_half_precision_is_summed_in_single_precision():
    # In float16 the sum would stay at 2048, where adding 1 changes nothing.
    assert jnp.sum(jnp.ones(5000, "float16")) == 5000
    assert jnp.mean(jnp.full(5000, 3.0, "bfloat16")) == 3.0


def test_empty():
    x = jnp.zeros((0, 3))
    assert jnp.sum(x) == 0 and jnp.prod(x) == 1 and bool(jnp.all(x)) and not bool(jnp.any(x))
    assert jnp.sum(x, axis=0).tolist() == [0, 0, 0]
    assert jnp.max(x, axis=1).shape == (0,)
    assert jnp.isnan(jnp.mean(x))
    assert jnp.max(x, initial=3.0) == 3


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: jnp.sum([1, 2]), TypeError, "sum requires ndarray or scalar arguments, got <class 'list'>"),
        (
            lambda: jnp.sum(X, axis=3),
            ValueError,
            r"axis 3 is out of bounds for sum, .* rank 3 .*expected -3 to 2",
        ),
        (lambda: jnp.sum(X, axis=(0, 0)), ValueError, "duplicate value in 'axis'"),
        (lambda: jnp.sum(X, out=X), NotImplementedError, "The 'out' argument to jnp.sum is not supported"),
        (
            lambda: jnp.max(np.zeros((0,))),
            ValueError,
            r"max: axes .* of a zero-size array \(0,\) .* no identity",
        ),
        (lambda: jnp.max(X, where=B), ValueError, "max: pass 'initial' beside 'where'"),
        (lambda: jnp.argmax(np.zeros((0,))), ValueError, "attempt to get argmax of an empty sequence"),
        (lambda: jnp.argmax(X, axis=(0, 1)), TypeError, "tuple"),
        (lambda: jnp.sum(X, initial=np.ones(2)), ValueError, "must be a scalar"),
        (lambda: jnp.cumsum(X, axis=5), ValueError, "axis 5 is out of bounds"),
        (lambda: jnp.ptp(B), TypeError, "bool"),
        (lambda: jnp.var(C, dtype="float32"), ValueError, "complex"),
    ],
)
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_gradients():
    x = jnp.array([1.0, 1.0, 0.0])
    assert pullback.grad(jnp.max)(x).tolist() == [0.5, 0.5, 0.0]
    np.testing.assert_allclose(pullback.grad(jnp.prod)(jnp.array([2.0, 3.0, 0.0])), [0, 0, 6])
    np.testing.assert_allclose(pullback.grad(jnp.var)(jnp.arange(3.0)), [-2 / 3, 0, 2 / 3], atol=1e-6)
    np.testing.assert_allclose(pullback.grad(lambda x: 2 * jnp.nansum(x))(jnp.array([1.0, jnp.nan])), [2.0, 0.0])


@pytest.mark.parametrize("x", [[2.5, 0.0, np.nan], [-1, 0, 3], [True, False, True]])
def test_sums_and_products_in_booleans_are_disjunctions_and_conjunctions(x):
    x = np.array(x)
    for name, want in (("sum", True), ("nansum", True), ("prod", False), ("nanprod", False)):
        assert getattr(jnp, name)(x, dtype=bool) == want, name
    for name, want in (("cumsum", [1, 1, 1]), ("cumprod", [1, 0, 0])):
        for running in (getattr(jnp, name), getattr(jnp, f"nan{name}")):
            found = running(x, dtype=bool)
            assert found.dtype == bool and found.tolist() == [bool(k) for k in want], name
    where = np.array([False, True, True])
    assert jnp.sum(x[:2], dtype=bool, where=where[:2], initial=False).item() is False
    assert jnp.add.accumulate(x, dtype=bool).all() and jnp.trace(jnp.diag(x), dtype=bool)
    with pytest.raises(TypeError, match="booleans"):
        jnp.mean(x, dtype=bool)


def test_variances_asked_for_as_complex_and_running_products_keep_their_types():
    for f in (jnp.var, jnp.std, jnp.nanvar, jnp.nanstd):
        assert f(np.arange(3.0), dtype=np.complex64).dtype == np.complex64
    assert jnp.cumulative_prod(np.ones(3, np.int8)).dtype == np.int8


@pytest.mark.parametrize("dtype", ["uint32", "int32", "uint8"])
def test_masked_extremes_of_every_integer(dtype):
    x = np.array([[3, 1], [2, 5]], dtype)
    mask = np.array([[True, False], [False, False]])
    for run in (lambda f: f, pullback.jit):
        np.testing.assert_array_equal(run(lambda x: jnp.min(x, 1, where=mask, initial=4))(x), [3, 4])
        np.testing.assert_array_equal(run(lambda x: jnp.max(x, 1, where=mask, initial=False))(x), [3, 0])


@pytest.mark.parametrize("name", ["var", "std", "nanvar", "nanstd"])
def test_variances_take_a_type_where_nothing_is_promoted(name):
    x = np.array([[1.0, 2, 4], [0, 3, 5]], "float32")
    with pullback.numpy_dtype_promotion("strict"):
        for given, dtype in (("float32", "bfloat16"), ("float16", "float32"), ("int32", "float32")):
            found = getattr(jnp, name)(x.astype(given), axis=0, dtype=dtype)
            assert found.dtype == jnp.zeros(0, dtype).dtype
            np.testing.assert_allclose(found.astype("float32"), getattr(np, name)(x, axis=0), rtol=0.01)
