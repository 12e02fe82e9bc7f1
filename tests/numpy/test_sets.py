"""Sets: unique, union1d, intersect1d, setdiff1d, setxor1d, isin."""

from __future__ import annotations

import numpy as np
import pytest
from against_numpy import assert_same, check

import pullback
import pullback.numpy as jnp
from pullback.errors import ConcretizationTypeError

DTYPES = [np.int32, np.uint8, np.float32, np.bool_, np.complex64]


@pytest.fixture(params=[False, True], ids=["x32", "x64"])
def x64(request):
    with pullback.enable_x64(request.param):
        yield request.param


def numbers(shape, dtype, seed=0):
    values = np.random.default_rng(seed).integers(0, 6, size=shape)
    if dtype is np.complex64:
        return (values // 2 + 1j * (values % 2)).astype(dtype)
    return values.astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (1,), (12,), (3, 4)])
def test_unique(shape, dtype, x64):
    x = numbers(shape, dtype)
    got = check(lambda x: jnp.unique(x, True, True, True), lambda x: np.unique(x, True, True, True), x, compiled=False)
    assert got[0].dtype == dtype
    assert got[1].dtype == got[2].dtype == got[3].dtype == jnp.arange(1).dtype
    check(jnp.unique, np.unique, x, compiled=False)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_unique_along_an_axis(axis):
    x = np.array([[1, 2, 1], [1, 2, 1], [0, 5, 0], [1, 2, 1]], np.int32)
    check(
        lambda x: jnp.unique(x, True, True, True, axis=axis),
        lambda x: np.unique(x, True, True, True, axis=axis),
        x,
        compiled=False,
    )


@pytest.mark.parametrize("equal_nan", [True, False])
def test_unique_of_nan_and_signed_zeros(equal_nan):
    x = np.array([np.nan, 1, np.nan, -0.0, 0.0], np.float32)
    got = check(
        lambda x: jnp.unique(x, True, True, True, equal_nan=equal_nan),
        lambda x: np.unique(x, True, True, True, equal_nan=equal_nan),
        x,
        compiled=False,
    )
    assert np.signbit(got[0][0])  # the first of the equal zeros


@pytest.mark.parametrize("fill_value", [None, 9])
@pytest.mark.parametrize("size", [0, 1, 3, 4, 7])
def test_unique_of_a_static_size(size, fill_value, x64):
    x = np.array([3, 1, 2, 1, 3, 7], np.int32)
    values, first, inverse, counts = np.unique(x, True, True, True)
    more = max(0, size - 4)
    expected = (
        np.concatenate([values[:size], np.full(more, 1 if fill_value is None else fill_value)]),
        np.concatenate([first[:size], np.full(more, 1)]),
        inverse,
        np.concatenate([counts[:size], np.zeros(more, int)]),
    )
    check(lambda x: jnp.unique(x, True, True, True, size=size, fill_value=fill_value), lambda x: expected, x)


def test_unique_rows_of_a_static_size():
    x = np.array([[1, 2], [1, 2], [0, 5]], np.int32)
    check(
        lambda x: jnp.unique(x, axis=0, size=4, fill_value=jnp.array([7, 8])),
        lambda x: np.array([[0, 5], [1, 2], [7, 8], [7, 8]]),
        x,
    )


def test_unique_maps_over_rows():
    x = np.array([[3, 1, 1], [2, 2, 2]], np.int32)
    got = pullback.vmap(lambda row: jnp.unique(row, size=3, fill_value=0))(jnp.asarray(x))
    assert_same(got, np.array([[1, 3, 0], [2, 0, 0]]))


def test_gradient_of_unique():
    def total(x):
        return jnp.sum(jnp.unique(x, size=3, fill_value=0) * jnp.array([1.0, 10.0, 100.0]))

    assert_same(pullback.grad(total)(jnp.array([3.0, 1.0, 3.0, 2.0])), np.array([100.0, 1.0, 0.0, 10.0]))


def test_tuples_of_the_array_api():
    x = np.array([2, 1, 2, 5], np.int32)
    for name in ("unique_all", "unique_counts", "unique_inverse"):
        got, expected = getattr(jnp, name)(jnp.asarray(x)), getattr(np, name)(x)
        assert got._fields == expected._fields
        assert_same(tuple(got), tuple(expected))
    nans = np.array([np.nan, 1, np.nan], np.float32)
    assert_same(jnp.unique_values(jnp.asarray(nans)), np.array([1, np.nan, np.nan]))


@pytest.mark.parametrize("name", ["union1d", "intersect1d", "setdiff1d", "setxor1d"])
@pytest.mark.parametrize("dtypes", [(np.int32, np.int32), (np.float32, np.int32), (np.uint8, np.uint8)])
@pytest.mark.parametrize(
    "shapes", [((12,), (5,)), ((3, 4), (5,)), ((0,), (4,)), ((4,), (0,)), ((0,), (0,)), ((1,), (1,))]
)
def test_two_sets(name, shapes, dtypes):
    a, b = (numbers(s, d, seed) for seed, (s, d) in enumerate(zip(shapes, dtypes)))
    b = (b + np.asarray(2, b.dtype)).astype(b.dtype)
    ours, theirs = getattr(jnp, name), getattr(np, name)
    # NumPy compares what it promotes the arrays to, which is wider than our common type.
    expected = np.asarray(theirs(a.ravel(), b.ravel()))
    check(ours, lambda a, b: expected, a, b, compiled=False)
    if name == "union1d" and not a.size + b.size:
        return
    if dtypes == (np.uint8, np.uint8) and shapes != ((12,), (5,)):
        return
    fill = 77
    for size in (1, 12):
        filled = np.concatenate([expected[:size], np.full(max(0, size - expected.size), fill)])
        check(lambda a, b, size=size: ours(a, b, size=size, fill_value=fill), lambda a, b, f=filled: f, a, b)


@pytest.mark.parametrize("name", ["intersect1d", "setdiff1d", "setxor1d"])
def test_two_sets_assumed_unique(name, x64):
    a, b = np.array([5, 1, 2, 4], np.int32), np.array([4, 1, 8], np.int32)
    ours, theirs = getattr(jnp, name), getattr(np, name)
    check(lambda a, b: ours(a, b, True), lambda a, b: theirs(a, b, True), a, b, compiled=False)


def test_intersection_with_positions(x64):
    a, b = np.array([3, 1, 2, 1, 3, 7], np.int32), np.array([2, 3, 3, 9], np.int32)
    check(
        lambda a, b: jnp.intersect1d(a, b, return_indices=True),
        lambda a, b: np.intersect1d(a, b, return_indices=True),
        a,
        b,
        compiled=False,
    )
    check(
        lambda a, b: jnp.intersect1d(a, b, return_indices=True, size=4),
        lambda a, b: (np.array([2, 3, 2, 2]), np.array([2, 0, 6, 6]), np.array([0, 1, 4, 4])),
        a,
        b,
    )


@pytest.mark.parametrize("method", ["auto", "compare_all", "binary_search", "sort"])
@pytest.mark.parametrize("invert", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_isin(method, invert, dtype):
    for tests_shape in ((3,), (0,), (40,)):
        x, tests = numbers((3, 4), dtype), numbers(tests_shape, dtype, 5)
        check(
            lambda x, t: jnp.isin(x, t, invert=invert, method=method),
            lambda x, t: np.isin(x, t, invert=invert),
            x,
            tests,
        )


def test_nan_is_in_nothing():
    x = np.array([np.nan, 1.0, 2.0], np.float32)
    for method in ("compare_all", "binary_search", "sort"):
        check(lambda x, m=method: jnp.isin(x, x, method=m), lambda x: np.array([False, True, True]), x)


def test_mistakes():
    x = jnp.array([1, 2])
    with pytest.raises(TypeError, match="unique requires ndarray or scalar arguments, got <class 'list'>"):
        jnp.unique([1, 2])
    with pytest.raises(ValueError, match="axis 2 is out of bounds"):
        jnp.unique(x, axis=2)
    with pytest.raises(ValueError, match="pass 'fill_value'"):
        jnp.unique(jnp.zeros(0), size=2)
    with pytest.raises(ValueError, match="argument 'method' is 'foo'; accepted are"):
        jnp.isin(x, x, method="foo")
    for function in (
        jnp.unique,
        *(lambda x, f=f: f(x, x) for f in (jnp.union1d, jnp.setdiff1d, jnp.setxor1d, jnp.intersect1d)),
    ):
        with pytest.raises(ConcretizationTypeError):
            pullback.jit(function)(x)


def test_rows_with_nan_are_equal_if_asked_for():
    """As in JAX, with and without a size; and NaN that lie along an axis."""
    x = np.array([[np.nan, 1], [np.nan, 1], [0, 2]], np.float32)
    for size in (None, 4):
        values, first, inverse, counts = jnp.unique(x, True, True, True, axis=0, size=size)
        assert first[:2].tolist() == [2, 0] and inverse.tolist() == [1, 1, 0] and counts[:2].tolist() == [1, 2]
        assert_same(values[:2], x[[2, 0]])
        _, first, inverse, counts = jnp.unique(x, True, True, True, axis=0, size=size, equal_nan=False)
        assert first[:3].tolist() == [2, 0, 1] and inverse.tolist() == [1, 2, 0] and counts[:3].tolist() == [1] * 3
        nan = np.array([np.nan, np.nan, 1], np.float32)
        assert jnp.unique(nan, True, axis=0, size=size, equal_nan=False)[1][:3].tolist() == [2, 0, 1]


def test_common_elements_and_where_they_are():
    a, b = np.array([5, 1, 1, 3, 9], np.int32), np.array([3, 3, 7, 5, 2], np.int32)
    for assume_unique, x, y in ((False, a, b), (True, a[2:], b[1:]), (False, a[:0], b), (True, a[:0], b[:0])):
        check(
            lambda x, y: jnp.intersect1d(x, y, assume_unique, return_indices=True),  # noqa: B023
            lambda x, y: np.intersect1d(x, y, assume_unique, return_indices=True),  # noqa: B023
            *(x, y),
            compiled=False,
        )


def test_an_intersection_of_nothing_is_filled_up_with_zeros():
    for b in (jnp.array([9, 8]), jnp.array([1.5, jnp.nan])):
        np.testing.assert_array_equal(jnp.intersect1d(jnp.array([3, 1, 2]), b, size=3), np.zeros(3))
    np.testing.assert_array_equal(jnp.intersect1d(jnp.array([3, 1, 2]), jnp.array([2, 3]), size=3), [2, 3, 2])


def test_the_fill_value_of_differences_may_be_traced():
    f = pullback.jit(lambda a, fill: jnp.setdiff1d(a, jnp.array([3]), size=4, fill_value=fill))
    for fill in (0, 7.5):
        np.testing.assert_array_equal(f(jnp.array([1, 2, 3, 2]), fill), [1, 2, int(fill), int(fill)])


def test_derivatives_of_what_is_common():
    a, b = jnp.array([3.0, 1.0, 2.0, 1.0]), np.array([1.0, 3.0, 5.0], np.float32)
    f = lambda a: (jnp.intersect1d(a, b) ** 2).sum()
    np.testing.assert_array_equal(pullback.grad(f)(a), [6, 2, 0, 0])
    np.testing.assert_array_equal(pullback.jacfwd(lambda a: jnp.intersect1d(a, b))(a), [[0, 1, 0, 0], [1, 0, 0, 0]])
    values, i, j = pullback.grad(lambda a: (f(a), jnp.intersect1d(a, b, return_indices=True)), has_aux=True)(a)[1]
    np.testing.assert_array_equal([values, i, j], [[1, 3], [1, 0], [0, 1]])


def test_unique_of_weakly_typed_numbers():
    assert jnp.unique(2.0).weak_type and jnp.compress(np.array([True]), jnp.asarray(2)[None]).weak_type
    assert not jnp.unique(1j).weak_type and not jnp.unique(1j, size=1).weak_type


def test_what_fills_a_set_up_makes_its_type_known():
    numbers = jnp.asarray([1, 2]) + 1.5
    assert numbers.weak_type and jnp.unique(numbers, size=3).weak_type
    assert not jnp.unique(numbers, size=3, fill_value=0).weak_type
    assert not jnp.union1d(numbers, numbers, size=3, fill_value=0).weak_type


def test_sets_of_nothing_are_typed_as_what_they_come_from():
    nothing = jnp.asarray(np.empty(0, int)) + 1.5
    sets = [jnp.unique(nothing), jnp.unique(nothing, size=2, fill_value=0), jnp.union1d(nothing, nothing)]
    sets += [jnp.setdiff1d(nothing, jnp.ones(2)), jnp.setdiff1d(nothing, 1.0, size=2)]
    sets += [jnp.intersect1d(nothing, nothing), jnp.setxor1d(nothing, nothing)]
    assert all(found.weak_type for found in sets)
    assert not jnp.unique(nothing * np.float32(1)).weak_type
