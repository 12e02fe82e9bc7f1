"""Index expressions: every combination against NumPy, reading and writing, eager and traced; what
is out of bounds; errors.
"""

import itertools

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import lax

Y = np.arange(60.0, dtype=np.float32).reshape(3, 4, 5)
ITEMS = [
    0, -1, slice(None), slice(1, None), slice(None, None, 2), slice(None, None, -1), slice(2, 2), None, Ellipsis,
    np.array([1, 0]), np.array([[2, -1]]), True, np.int32(1),
]  # fmt: skip


def _indices():
    yield from ((item,) for item in ITEMS)
    yield from itertools.product(ITEMS, repeat=2)
    triples = list(itertools.product(ITEMS, repeat=3))
    yield from (triples[k] for k in np.random.RandomState(0).permutation(len(triples))[:400])
    # An ellipsis of no axes keeps index arrays apart, too.
    inner = (np.array([1, 0]), 1, slice(1, None), None)
    for first, second, last in itertools.product(inner, repeat=3):
        yield first, second, Ellipsis, last, np.array([0, 1])
        yield slice(None), None, first, Ellipsis, last


def _valid():
    for index in _indices():
        try:
            yield index, Y[index]
        except IndexError:
            continue


def test_reading_and_writing_as_numpy():
    y = jnp.asarray(Y)
    for index, expected in _valid():
        ours = y[index]
        assert ours.shape == expected.shape, index
        np.testing.assert_array_equal(ours, expected, err_msg=str(index))
        values = 100 + np.arange(expected.size, dtype=np.float32).reshape(expected.shape)
        written = Y.copy()
        written[index] = values
        np.testing.assert_array_equal(y.at[index].set(values), written, err_msg=str(index))
        added = Y.copy()
        np.add.at(added, index, values)
        np.testing.assert_array_equal(y.at[index].add(values), added, err_msg=str(index))


def test_traced_indices():
    """Integers and integer arrays are arguments of the jitted function."""
    cases = list(_valid())
    for k in np.random.RandomState(1).permutation(len(cases))[:60]:
        index, expected = cases[k]
        traced = [i for i in index if isinstance(i, (int, np.ndarray, np.integer)) and not isinstance(i, bool)]

        def rebuild(values, index=index):
            values = iter(values)
            is_traced = lambda i: isinstance(i, (int, np.ndarray, np.integer)) and not isinstance(i, bool)
            return tuple(next(values) if is_traced(i) else i for i in index)

        read = pullback.jit(lambda y, *v, rebuild=rebuild: y[rebuild(v)])
        np.testing.assert_array_equal(read(Y, *traced), expected, err_msg=str(index))
        written = Y.copy()
        written[index] = 7.0
        write = pullback.jit(lambda y, *v, rebuild=rebuild: y.at[rebuild(v)].set(7.0))
        np.testing.assert_array_equal(write(Y, *traced), written, err_msg=str(index))


@pytest.mark.parametrize(
    "index", [(0,), (slice(None, None, 2), 1), (np.array([0, 0, 2]),), (Ellipsis, np.array([1, 1]))]
)
def test_gradients(index):
    y = jnp.asarray(Y)
    w = np.cos(np.arange(Y[index].size, dtype=np.float32)).reshape(Y[index].shape)
    expected = np.zeros_like(Y)
    np.add.at(expected, index, w)
    np.testing.assert_allclose(pullback.grad(lambda y: jnp.sum(y[index] * w))(y), expected, rtol=1e-6)
    kept = np.ones_like(Y)
    kept[index] = 0
    np.testing.assert_allclose(pullback.grad(lambda y: jnp.sum(y.at[index].set(0.0)))(y), kept)
    np.testing.assert_allclose(
        pullback.grad(lambda v: jnp.sum(y.at[index].add(v) * 2))(jnp.asarray(w)), np.full(w.shape, 2.0)
    )


def test_vmap():
    rows = jnp.array([2, 0, 1])
    np.testing.assert_array_equal(pullback.vmap(lambda y, k: y[k])(Y[:, :3], rows), Y[np.arange(3), [2, 0, 1]])
    np.testing.assert_array_equal(pullback.vmap(lambda k: jnp.asarray(Y)[k, :, 1:3])(rows), Y[[2, 0, 1], :, 1:3])
    updated = pullback.vmap(lambda y, k: y.at[k].set(0.0))(Y[:, :3], rows)
    expected = Y[:, :3].copy()
    expected[np.arange(3), [2, 0, 1]] = 0
    np.testing.assert_array_equal(updated, expected)


def test_out_of_bounds():
    x = jnp.arange(6.0).reshape(2, 3)
    assert x[5].tolist() == [3, 4, 5] and x[-5].tolist() == [0, 1, 2]
    assert x[jnp.array([5, -5])].tolist() == [[3, 4, 5], [0, 1, 2]]
    assert pullback.jit(lambda x, k: x[k])(x, 9).tolist() == [3, 4, 5]
    assert jnp.isnan(x.at[5].get(mode="fill")).all()
    assert x.at[jnp.array([5, 0])].get(mode="fill", fill_value=9).tolist() == [[9, 9, 9], [0, 1, 2]]
    assert x.at[5].get(mode="clip").tolist() == [3, 4, 5]
    np.testing.assert_array_equal(x.at[5].set(9.0), x)
    np.testing.assert_array_equal(x.at[-5].set(9.0), x)
    np.testing.assert_array_equal(pullback.jit(lambda x, k: x.at[k].set(9.0))(x, 7), x)
    assert x.at[5].set(9.0, mode="clip").tolist() == [[0, 1, 2], [9, 9, 9]]
    np.testing.assert_array_equal(x.at[jnp.array([-7, 7])].add(1.0), x)
    assert x.at[-1].get(wrap_negative_indices=False).tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="Unknown gather mode"):
        x.at[0].set(1.0, mode="foo")
    np.testing.assert_array_equal(x.at[:0].add(1.0, mode="wrap"), x)


def test_update_methods():
    x = jnp.arange(1.0, 5.0)
    k = jnp.array([0, 0, 2])
    assert x.at[k].add(1.0).tolist() == [3, 2, 4, 4]
    assert x.at[k].subtract(1.0).tolist() == [-1, 2, 2, 4]
    assert x.at[k].multiply(2.0).tolist() == [4, 2, 6, 4]
    assert x.at[k].mul(2.0).tolist() == [4, 2, 6, 4]
    assert x.at[k].divide(2.0).tolist() == [0.25, 2, 1.5, 4]
    assert x.at[jnp.array([1, 2])].power(2.0).tolist() == [1, 4, 9, 4]
    assert x.at[k].min(0.5).tolist() == [0.5, 2, 0.5, 4]
    assert x.at[k].max(2.5).tolist() == [2.5, 2, 3, 4]
    assert x.at[k].apply(lambda v: v * 10).tolist() == [100, 2, 30, 4]
    assert x.at[1:3].add(jnp.array([1.0, 2.0])).tolist() == [1, 3, 5, 4]
    assert x.at[::2].set(0.0).tolist() == [0, 2, 0, 4]
    assert x.at[[True, False, False, True],].set(0.0).tolist() == [0, 2, 3, 0]
    assert "_IndexUpdateRef" in repr(x.at[0]) and "_IndexUpdateHelper" in repr(x.at)


def test_updates_keep_the_type():
    x = jnp.arange(3, dtype="int8")
    with pytest.warns(FutureWarning, match="incompatible types"):
        assert x.at[0].set(1.7).tolist() == [1, 1, 2]
    assert x.at[0].set(1000).tolist() == [-24, 1, 2]
    assert x.at[0].add(1).dtype == np.int8
    assert jnp.array([True, False]).at[1].set(True).tolist() == [True, True]


def test_assignment_says_what_to_write():
    x = jnp.zeros((2, 2))
    with pytest.raises(TypeError, match=r"x\.at\[idx\]\.set\(y\)"):
        x[0, 0] = 2
    with pytest.raises(TypeError, match=r"x\.at\[idx\]\.set\(y\)"):
        pullback.jit(lambda x: x.__setitem__(0, 1))(x)


@pytest.mark.parametrize(
    ("index", "error", "text"),
    [
        ((0, 0, 0), IndexError, "Too many indices: 3 for an array with 2 axes"),
        ("a", TypeError, "string indexing; got idx='a'"),
        (1.5, TypeError, "integer or boolean type, got float64"),
        ([0, 1], TypeError, "Using a non-tuple sequence"),
        (np.array(1.0), TypeError, "type, got float64"),
        ((Ellipsis, Ellipsis), IndexError, "single ellipsis"),
        (
            np.ones(3, bool),
            IndexError,
            r"boolean index 0 has shape \(3,\), .* shape \(2,\)",
        ),
        (slice(None, None, 0), ValueError, "slice step cannot be zero"),
        (object(), IndexError, "valid indices"),
        ((np.arange(2), np.arange(3)), ValueError, r"Incompatible shapes for broadcasting: shapes=\[\(2,\), \(3,\)\]"),
        ((np.arange(2), np.arange(0)), ValueError, r"Incompatible shapes for broadcasting: shapes=\[\(2,\), \(0,\)\]"),
    ],
)
def test_errors(index, error, text):
    x = jnp.zeros((2, 3))
    with pytest.raises(error, match=text):
        x[index]
    with pytest.raises(error, match=text):
        x.at[index].set(0.0)


def test_errors_of_updates_and_traces():
    x = jnp.zeros((2, 3))
    with pytest.raises(ValueError, match="Incompatible types for broadcasting"):
        x.at[0].set(jnp.ones(5))
    with pytest.raises(ValueError, match="fewer dimensions"):
        x.at[0, 0].set([1.0])
    with pytest.raises(pullback.errors.NonConcreteBooleanIndexError):
        pullback.jit(lambda x: x[x > 0])(x)
    with pytest.raises(IndexError, match="Slice entries must be static integers"):
        pullback.jit(lambda x, k: x[:k])(x, 1)
    with pytest.raises(IndexError, match="Too many indices"):
        jnp.float32(1)[0]


# ---- functions that index


X = np.arange(6.0, dtype=np.float32).reshape(2, 3) - 2
K = np.array([[0, 2], [1, 0]])

CASES = {
    "take": lambda m, x, k: (m.take(x, k), m.take(x, k[0], axis=1), m.take(x, 1, axis=0), m.take(x, k, mode="clip")),
    "take_along_axis": lambda m, x, k: (
        m.take_along_axis(x, k, 1),
        m.take_along_axis(x, k[:1], 1),
        m.take_along_axis(x, k[0], None),
    ),
    "where": lambda m, x, k: (
        m.where(x > 0, x, 0),
        m.where(x > 0, 1.0, x),
        m.where(k[:, :1] > 0, x, -x),
        m.where(True, x, x * 2),
    ),
    "select": lambda m, x, k: m.select([x > 2, x < -1], [x * 2, -x], 7.0),
    "piecewise": lambda m, x, k: m.piecewise(x, [x < 0, x >= 2], [-1.0, lambda v: v * 2, 0.5]),
    "choose": lambda m, x, k: m.choose(k % 2, [x[:, :2], x[:, 1:]], mode="clip"),
    "clip": lambda m, x, k: (m.clip(x, -1, 2), m.clip(x, None, 1), x.clip(0)),
    "unravel_index": lambda m, x, k: (
        m.unravel_index(k, (2, 3)),
        m.ravel_multi_index((k // 2, k), (2, 3), mode="clip"),
    ),
    "unravel_index of floats": lambda m, x, k: [
        m.floor(p) for p in m.unravel_index(k % 6 if m is np else (k % 6).astype("float32") + 0.5, (2, 3))
    ],
    "diagonal indices": lambda m, x, k: (
        m.diag_indices(3),
        m.tril_indices(3, -1),
        m.triu_indices(2, 0, 4),
        m.tril_indices_from(x),
    ),
    "isclose": lambda m, x, k: (m.isclose(x, x + 1e-7), m.allclose(x, x), m.array_equal(x, x), m.array_equiv(x, x[0])),
}


@pytest.mark.parametrize("name", sorted(CASES))
def test_functions(same, name):
    same(CASES[name], X, K)


CONCRETE = {
    "nonzero": lambda m, x, k: (m.nonzero(x), m.flatnonzero(x), m.argwhere(x), m.where(x > 0), x.nonzero()),
    "extract": lambda m, x, k: (
        m.extract(x > 0, x),
        m.compress(np.array([False, True]), x, axis=0),
        x[x > 0],
        x[:, x[0] > -2],
    ),
    "mask_indices": lambda m, x, k: m.mask_indices(3, m.triu),
}


@pytest.mark.parametrize("name", sorted(CONCRETE))
def test_shapes_that_depend_on_values(same, name):
    same(CONCRETE[name], X, K, jit=False)


def test_static_size():
    f = pullback.jit(lambda x: jnp.nonzero(x > 0, size=4, fill_value=-1))
    assert [p.tolist() for p in f(X)] == [[1, 1, 1, -1], [0, 1, 2, -1]]
    assert pullback.jit(lambda x: jnp.argwhere(x, size=2))(X).tolist() == [[0, 0], [0, 1]]
    assert pullback.jit(lambda x: jnp.extract(x > 0, x, size=5, fill_value=9))(X).tolist() == [1, 2, 3, 9, 9]
    with pytest.raises(pullback.errors.ConcretizationTypeError, match=r"jnp\.nonzero: the number of elements found"):
        pullback.jit(jnp.nonzero)(X)
    with pytest.raises(pullback.errors.ConcretizationTypeError, match=r"jnp\.nonzero: the number of elements found"):
        pullback.jit(lambda x: jnp.where(x))(X)


def test_complex_fill_values_do_not_become_real_ones():
    at = jnp.array([1, 9])
    for x in (jnp.arange(4.0), jnp.arange(4)):
        for name, read in (
            ("take", lambda x, **k: jnp.take(x, at, **k)),
            ("take_along_axis", lambda x, **k: jnp.take_along_axis(x, at, 0, **k)),
            ("get", lambda x, **k: x.at[at].get(**k)),
            ("get", lambda x, **k: x.at[1].get(**k)),
        ):
            for value in (1j, np.complex64(2), jnp.complex64(2)):
                with pytest.raises(TypeError, match=rf"{name}: argument 'fill_value' .* cannot become {x.dtype}"):
                    read(x, mode="fill", fill_value=value)
            with pytest.raises(ValueError, match="must be a scalar"):
                read(x, mode="fill", fill_value=np.ones(1))
            read(x, mode="clip", fill_value=1j)  # nothing is filled in
    with pytest.warns(np.exceptions.ComplexWarning):
        assert jnp.take(jnp.arange(4) > 2, at, fill_value=1j).tolist() == [False, True]


def test_out_of_bounds_of_take():
    x = jnp.arange(3.0)
    assert jnp.isnan(jnp.take(x, 7)) and jnp.take(x, 7, mode="wrap") == 1 and jnp.take(x, 7, mode="clip") == 2
    assert jnp.take(jnp.arange(3), 7) == np.iinfo(np.int32).min
    assert jnp.take(x, jnp.array([-1, -9]), fill_value=5.0).tolist() == [2, 5]
    with pytest.raises(NotImplementedError, match="mode 'raise'"):
        jnp.take(x, 0, mode="raise")
    with pytest.raises(TypeError, match="list"):
        jnp.take(x, [0])
    with pytest.raises(ValueError, match="integer"):
        jnp.take(x, 1.0)


def test_functions_that_write():
    x = jnp.asarray(X)
    expected = X.copy()
    np.put_along_axis(expected, K, 9.0, 1)
    np.testing.assert_array_equal(jnp.put_along_axis(x, K, 9.0, 1, inplace=False), expected)
    expected = X.copy()
    np.put(expected, [0, 4], [7.0])
    np.testing.assert_array_equal(jnp.put(x, np.array([0, 4]), 7.0, inplace=False), expected)
    expected = X.copy()
    np.place(expected, X > 0, [8.0, 9.0])
    for mask in (x > 0, (x > 0).astype(int), (x > 0) * 2.5):
        np.testing.assert_array_equal(jnp.place(x, mask, jnp.array([8.0, 9.0]), inplace=False), expected)
    expected = X.copy()
    np.fill_diagonal(expected, 5.0)
    np.testing.assert_array_equal(jnp.fill_diagonal(x, 5.0, inplace=False), expected)
    for call in (lambda: jnp.put(x, 0, 1.0), lambda: jnp.place(x, x > 0, x[0])):
        with pytest.raises(ValueError, match="inplace=False"):
            call()
    with pytest.raises(NotImplementedError, match="inplace=False"):
        jnp.fill_diagonal(x, 1.0)


def test_empty_indices_into_axes_of_size_0():
    x, none = np.zeros((0, 3), np.float32), np.zeros(0, int)
    indices = none, (none, None), (none, slice(1, None)), (none[None], np.arange(2)[:, None])
    for index in indices:
        assert jnp.asarray(x)[index].shape == x[index].shape
        assert pullback.jit(lambda x, index=index: x[index])(x).shape == x[index].shape
    np.testing.assert_array_equal(pullback.grad(lambda x: x[none].sum())(x), x)
    with pytest.raises(IndexError, match="size 0"):
        jnp.asarray(x)[np.zeros(1, int)]
    with pytest.raises(TypeError, match="size 0"):  # as JAX's, where the place is an array
        jnp.zeros((3, 0))[np.zeros(1, int), 0]


def test_places_outside_of_empty_axes_give_empty_results():
    """What has no elements is out of no bounds, once there is an array in the index."""
    x, some = jnp.zeros((3, 0, 0)), np.array([True, False, True])
    for index, shape in [((some, np.int64(0), None), (2, 1, 0)), ((slice(0, 0), jnp.array([4])), (0, 1, 0))]:
        assert x[index].shape == shape
        assert pullback.jit(lambda x, index=index: x[index])(x).shape == shape
        assert pullback.grad(lambda x, index=index: x[index].sum())(x).shape == x.shape
    assert jnp.zeros((0, 3, 0))[0, jnp.array([1])].shape == (1, 0)
    with pytest.raises(IndexError, match="has no elements"):
        x[:, 0]


def test_long_masks_and_index_arrays_go_in_parts():
    """What is taken in parts is what is taken at once: masks of any rank, rows of any length, negative indices."""
    n = 5_000_000
    mask = np.arange(n) % 1000 == 3
    x = np.arange(n, dtype=np.int32)
    np.testing.assert_array_equal(jnp.asarray(x)[mask], x[mask])
    for shape in ((1, n), (n // 2, 2), (5, n // 5)):
        found = jnp.nonzero(jnp.asarray(mask.reshape(shape)))
        for got, expected in zip(found, np.nonzero(mask.reshape(shape))):
            np.testing.assert_array_equal(got, expected.astype(got.dtype))
        np.testing.assert_array_equal(
            jnp.asarray(x.reshape(shape))[mask.reshape(shape)], x.reshape(shape)[mask.reshape(shape)]
        )
    where = np.random.default_rng(0).integers(-n, n, 3_000_000)
    np.testing.assert_array_equal(jnp.asarray(x)[where.astype(np.int32)], x[where])
    rows = x.reshape(-1, 10)
    np.testing.assert_array_equal(
        jnp.asarray(rows)[where[:400_000] % rows.shape[0]], rows[where[:400_000] % rows.shape[0]]
    )
    np.testing.assert_array_equal(jnp.asarray(np.tile(x, 8))[::2], np.tile(x, 8)[::2])


def test_boolean_indices_of_length_0_take_nothing():
    x, v = jnp.arange(24.0).reshape(2, 3, 4), jnp.arange(5)
    for shape, wanted in [((0,), (0, 3, 4)), ((0, 3), (0, 4)), ((2, 0), (0, 4)), ((0, 0), (0, 4)), ((2, 3, 0), (0,))]:
        mask = np.zeros(shape, bool)
        assert x[mask].shape == wanted
        assert pullback.jit(lambda x, m=mask: x[m])(x).shape == wanted
        np.testing.assert_array_equal(x.at[mask].set(9.0), x)
    assert v[np.array([], bool)].shape == (0,)
    for shape in [(3, 0), (0, 5), (1,), (2, 3, 4, 0)]:
        with pytest.raises(IndexError):
            x[np.zeros(shape, bool)]


def test_a_single_index_into_an_axis_without_elements_is_an_error_in_every_mode():
    empty = jnp.zeros((0, 3))
    for index in (0, -1, 1, jnp.array(0), (0, 1), (0, None)):
        for mode in (None, "drop", "fill", "clip", "promise_in_bounds"):
            for name in ("set", "add", "get"):
                with pytest.raises(IndexError):
                    getattr(empty.at[index], name)(*[1.0] * (name != "get"), mode=mode)
    assert empty.at[:, 0].set(1.0).shape == (0, 3) and empty.at[jnp.array([0])].set(1.0).shape == (0, 3)


def test_put_clips_negative_numbers_too_where_it_is_told_to():
    a, numbers, values = np.arange(12.0).reshape(3, 4), [5, 99, -1, -99], [105.0, 106.0, 107.0, 108.0]
    for mode in ("clip", "wrap"):
        wanted = a.copy()
        np.put(wanted, numbers, values, mode=mode)
        np.testing.assert_array_equal(
            jnp.put(a, jnp.array(numbers), jnp.array(values), mode=mode, inplace=False), wanted
        )
    assert jnp.put(a, jnp.array([-1]), 107.0, inplace=False)[-1, -1] == 107


def test_one_hot_updates_are_updates():
    x = jnp.arange(5.0)
    np.testing.assert_array_equal(x.at[jnp.array([0, 7])].add(2.0, mode="one_hot"), [2, 1, 2, 3, 4])


@pytest.mark.parametrize("op", ["add", "subtract", "multiply", "divide", "power"])
def test_booleans_are_not_combined_out_of_bounds(op):
    x = jnp.array([True, False])
    for index in (0, 5, -9):
        for way in (lambda f: f, pullback.jit):
            with pytest.raises(TypeError, match="does not accept dtype bool"):
                way(lambda x, index=index: getattr(x.at[index], op)(True))(x)


def test_iteration_over_rows_of_arrays_and_of_traced_ones():
    x = np.arange(6.0, dtype=np.float32).reshape(3, 2)
    first, *others = jnp.asarray(x)
    assert first.tolist() == [0, 1] and len(others) == 2
    assert [row.tolist() for row in reversed(jnp.asarray(x))] == [[4, 5], [2, 3], [0, 1]]
    with pytest.raises(TypeError, match="0-d"):
        reversed(jnp.float32(1))

    def added(x):
        return sum(k * row for k, row in enumerate(x))

    for function in (added, pullback.jit(added), pullback.jit(pullback.vmap(added, 1, 0)), pullback.vmap(added, 1)):
        np.testing.assert_array_equal(function(x), added(x))
    np.testing.assert_array_equal(pullback.grad(lambda x: added(x).sum())(x), [[0, 0], [1, 1], [2, 2]])


def test_places_beyond_32_bits():
    """In programs of arrays that no test has memory for."""
    n = 2**31 + 77
    x = pullback.ShapeDtypeStruct((n,), np.int8)

    def text(f, *types):
        return str(pullback.make_jaxpr(f)(x, *[pullback.ShapeDtypeStruct((), t) for t in types]))

    def spread(x):
        return x.at[n - 9 : n : 4].add(1)

    with pullback.enable_x64(True):
        assert f"{n - 3}:i64[]" in text(lambda x: x.at[n - 3].set(5))
        assert f"{n - 3}:i64[]" in text(lambda x: x.at[-3].set(5))
        assert f"{n - 3}:i64[]" in text(lambda x: pullback.lax.dynamic_slice(x, (n - 3,), (2,)))
        (places,) = pullback.make_jaxpr(spread)(x).consts
        assert np.ravel(places).tolist() == [n - 9, n - 5, n - 1]
        assert f"min b {2**63 - 1}:u64[]" in text(lambda x, i: x[i], np.uint64)
        assert "new_dtype=int64" in text(lambda x, i: x[i], np.uint32)
        assert f"{n}:i64[]" in text(lambda x, i: x[i], np.int32)
    with pullback.enable_x64(False):  # the places alone are of 64 bits
        (places,) = pullback.make_jaxpr(spread)(x).consts
        assert np.ravel(places).tolist() == [n - 9, n - 5, n - 1]
        assert f"{n - 3}:i64[]" in text(lambda x: x.at[n - 3].set(5))


@pytest.mark.parametrize("i", [2**31, -(2**31) - 1, 2**40])
def test_indices_that_the_default_integer_does_not_hold_are_refused(i):
    x = jnp.arange(6.0).reshape(3, 2)
    reads = [lambda x: x[i], lambda x: x[0, i], lambda x: x.at[i].get(), lambda x: x.at[i].set(1), lambda x: x[0][i]]
    for read in reads[2:4]:
        with pytest.raises(OverflowError, match="too large to convert to int32"):
            read(x)
    for read in reads:
        with pytest.raises(OverflowError, match="too large to convert to int32"):
            pullback.jit(read)(x)
    assert x[:i].shape == ((3, 2) if i > 0 else (0, 2)) and x[-(2**31)][0] == x[0, 0]
    with pullback.enable_x64(True):
        assert jnp.arange(3.0)[i] == (2.0 if i > 0 else 0.0)


@pytest.mark.parametrize("mask", [[True, False, True], True])
def test_masks_made_in_a_program_have_no_known_number_of_elements(mask):
    x = jnp.arange(3.0)
    for use in (lambda x: x[jnp.array(mask)], lambda x: x.at[jnp.array(mask)].set(1)):
        with pytest.raises(pullback.errors.NonConcreteBooleanIndexError):
            pullback.jit(use)(x)
    with pytest.raises(IndexError, match="static"):
        pullback.jit(lambda x: x[: jnp.int32(2)])(x)
    assert pullback.jit(lambda x: x[np.array([True, False, True])])(x).tolist() == [0, 2]


HUGE = 1 << 40


@pytest.mark.parametrize(
    "index", [HUGE, -HUGE, 2**31, 2**70, (0, HUGE), (slice(1, 2), HUGE), (..., HUGE), (HUGE, None)]
)
def test_integers_that_the_default_does_not_hold(index):
    x = jnp.arange(12.0).reshape(3, 4)
    for get in (lambda x: x[index], pullback.jit(lambda x: x[index]), lambda x: x.at[index].get()):
        for _ in range(3):
            with pytest.raises(OverflowError, match="too large to convert to int32"):
                get(x)
    with pytest.raises(OverflowError):
        x.at[index].set(1.0)


def test_what_is_far_out_of_bounds_stays_so():
    x = jnp.arange(12.0).reshape(3, 4)
    np.testing.assert_array_equal(x[np.int64(HUGE)], x[2])
    np.testing.assert_array_equal(x[np.array([0, HUGE, -HUGE])], x[np.array([0, 2, 0])])
    np.testing.assert_array_equal(x[-HUGE:HUGE], x)
    np.testing.assert_array_equal(x[:: 2**70], x[:1])
    for call in (lambda f: f, pullback.jit):
        np.testing.assert_array_equal(call(lambda x: lax.dynamic_slice(x, (HUGE, -HUGE), (1, 2)))(x), x[2:, :2])
        np.testing.assert_array_equal(call(lambda x: lax.dynamic_index_in_dim(x, 2**70, 0))(x), x[2:])
        updated = call(lambda x: lax.dynamic_update_slice(x, jnp.ones((1, 2)), (HUGE, 0)))(x)
        np.testing.assert_array_equal(updated[2, :2], 1)


@pytest.mark.parametrize(
    "index",
    [
        *(
            lambda n: np.array([n - 3]),
            lambda n: np.int64(n - 3),
            lambda n: n - 3,
            lambda n: -3,
            lambda n: np.array([-3]),
        ),
        *(lambda n: jnp.array([-3]), lambda n: pullback.ds(n - 3, 1)),
    ],
)
def test_arrays_that_32_bits_cannot_number(index):
    """Without x64, and without the array: numbers modulo 2^32 that are counted where they are read."""
    n = 2**31 + 10
    for read in (lambda x, i: x[i], lambda x, i: x.at[i].get(), lambda x, i: jnp.broadcast_to(x, (2, n))[1, i]):
        got = pullback.jit(lambda read=read: read(lax.iota(jnp.uint32, n), index(n)))()
        assert np.asarray(got).item() == n - 3


def test_take_clips_no_booleans():
    with pytest.raises(ValueError, match="integer type"):
        jnp.take(jnp.arange(3), jnp.array([True, False]), mode="clip")


def test_put_and_take_by_narrow_and_boolean_numbers():
    """The size of the array need not fit the indices' type, and bools are the numbers 0 and 1."""
    for mode in (None, "clip", "wrap"):
        ones = jnp.put(jnp.zeros(300), jnp.array([3, 127], "int8"), 1.0, mode=mode, inplace=False)
        assert np.flatnonzero(ones).tolist() == [3, 127]
    mask = jnp.array([True, False, True])
    assert jnp.put(jnp.zeros((2, 2)), mask, 9.0, inplace=False).tolist() == [[9, 9], [0, 0]]
    assert lax.index_take(jnp.arange(3.0), (mask,), (0,)).tolist() == [1, 0, 1]


def test_traced_rows_are_recorded_when_they_are_asked_for():
    def count(f):
        return len(pullback.make_jaxpr(f)(jnp.ones((5, 2))).eqns)

    assert count(lambda x: next(iter(x))) == count(lambda x: x[0]) < count(list)
    names = [eqn.primitive.name for eqn in pullback.make_jaxpr(sum)(jnp.ones(3)).eqns]
    assert names == ["slice", "squeeze", "add"] * 3


def test_positions_in_a_shape_that_is_traced():
    places = np.arange(-8, 9)
    found = pullback.jit(lambda k, n, m: jnp.unravel_index(k, (n, m)))(places, 2, 3)
    for a, b in zip(found, jnp.unravel_index(places, (2, 3))):
        np.testing.assert_array_equal(a, b)


def test_unravel_index_takes_types_and_values_of_lengths():
    def types(shape, k=3):
        return [(str(p.dtype), p.weak_type, int(p)) for p in jnp.unravel_index(k, shape)]

    assert types((2, 2)) == [("int32", True, 1)] * 2
    assert types(np.array([2, 2])) == types((2, jnp.int32(2))) == [("int32", False, 1)] * 2
    assert types((np.int8(2), 2)) == [("int8", False, 1), ("int32", True, 1)]
    assert types(np.int32(4)) == [("int32", False, 3)] and types(()) == []
    assert types((2, 2), 9) == [("int32", True, 1)] * 2 and types((2, 2), -9) == [("int32", True, 0)] * 2
    traced = pullback.jit(lambda shape: jnp.unravel_index(5, shape))
    np.testing.assert_array_equal(traced(jnp.array([2, 3])), (1, 2))
    assert traced((3, 2)) == (2, 1)
    with pytest.raises(ValueError, match="a number or a sequence of numbers"):
        jnp.unravel_index(3, np.array([[2, 2]]))
