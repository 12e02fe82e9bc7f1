"""gather and scatter where records cannot reach: repeated places, their derivatives, modes, functions, compositions."""

from __future__ import annotations

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import lax
from pullback._ext import _core
from pullback.lax import GatherDimensionNumbers, GatherScatterMode, ScatterDimensionNumbers

ROWS = ScatterDimensionNumbers((1,), (0,), (0,))
POINTS = ScatterDimensionNumbers((), (0,), (0,))
WRAPS = [lambda f: f, pullback.jit]


@pytest.mark.parametrize("wrap", WRAPS)
def test_the_last_of_several_updates_stays(wrap):
    x, places, updates = (
        np.zeros(4, np.float32),
        np.array([[1], [1], [3], [1]], np.int32),
        np.arange(1.0, 5.0, dtype=np.float32),
    )
    out = wrap(lambda x, u: lax.scatter(x, places, u, POINTS))(x, updates)
    assert np.asarray(out).tolist() == [0, 4, 0, 3]


@pytest.mark.parametrize("wrap", WRAPS)
def test_only_what_stays_has_a_derivative(wrap):
    places = np.array([[1], [1], [3], [9]], np.int32)
    weights = np.array([1.0, 2.0, 3.0, 4.0], np.float32)

    def loss(x, u):
        return lax.reduce_sum(lax.mul(lax.scatter(x, places, u, POINTS), weights), (0,))

    x_bar, u_bar = wrap(pullback.grad(loss, (0, 1)))(np.zeros(4, np.float32), np.ones(4, np.float32))
    assert np.asarray(x_bar).tolist() == [1, 0, 3, 0]
    assert np.asarray(u_bar).tolist() == [0, 2, 4, 0]


@pytest.mark.parametrize("wrap", WRAPS)
def test_modes(wrap):
    x, places = np.arange(4.0, dtype=np.float32), np.array([[-1], [2], [7]], np.int32)
    numbers = GatherDimensionNumbers((), (0,), (0,))

    def take(mode, fill=None):
        return np.asarray(wrap(lambda x: lax.gather(x, places, numbers, (1,), mode=mode, fill_value=fill))(x)).tolist()

    assert take("clip") == [0, 2, 3]
    assert take("fill", 9.0) == [9, 2, 9]
    assert np.isnan(take("fill")[0]) and take("fill")[1] == 2
    assert np.isfinite(take("promise_in_bounds")).all()
    out = wrap(lambda x: lax.scatter_add(x, places, np.ones(3, np.float32), POINTS, mode="clip"))(x)
    assert np.asarray(out).tolist() == [1, 1, 3, 4]
    out = wrap(lambda x: lax.scatter_add(x, places, np.ones(3, np.float32), POINTS))(x)
    assert np.asarray(out).tolist() == [0, 1, 3, 3]
    with pytest.raises(ValueError, match='Unknown gather mode "wrap"'):
        take("wrap")


def test_integer_fill_values():
    places, numbers = np.array([[5]], np.int32), GatherDimensionNumbers((), (0,), (0,))
    for dtype, fill in [(np.int8, -128), (np.uint8, 255), (bool, True)]:
        assert np.asarray(lax.gather(np.zeros(2, dtype), places, numbers, (1,), mode="fill")).tolist() == [fill]
        assert np.asarray(lax.gather(np.zeros(2, dtype), places, numbers, (1,))).tolist() == [0]


@pytest.mark.parametrize("wrap", WRAPS)
def test_a_function_is_applied_once_per_occurrence(wrap):
    places = np.array([[1], [1], [0]], np.int32)
    out = wrap(lambda x: lax.scatter_apply(x, places, lambda v: lax.mul(v, np.float32(2)), POINTS, update_shape=(3,)))(
        np.ones(3, np.float32)
    )
    assert np.asarray(out).tolist() == [2, 4, 1]


def test_scatter_mul_derivatives():
    places = np.array([[2], [0]], np.int32)
    x, u = np.array([2.0, 3.0, 5.0], np.float32), np.array([7.0, 11.0], np.float32)

    def loss(x, u):
        return lax.reduce_sum(lax.scatter_mul(x, places, u, POINTS, unique_indices=True), (0,))

    x_bar, u_bar = pullback.grad(loss, (0, 1))(x, u)
    assert np.asarray(x_bar).tolist() == [11, 1, 7] and np.asarray(u_bar).tolist() == [5, 2]
    with pytest.raises(NotImplementedError, match="unique_indices=True"):
        pullback.grad(lambda u: lax.reduce_sum(lax.scatter_mul(x, places, u, POINTS), (0,)))(u)


def test_scatter_max_splits_ties():
    places = np.array([[1], [1]], np.int32)
    x, u = np.array([0.0, 5.0, 0.0], np.float32), np.array([5.0, 1.0], np.float32)
    x_bar, u_bar = pullback.grad(
        lambda x, u: lax.index_in_dim(lax.scatter_max(x, places, u, POINTS), 1, 0, False), (0, 1)
    )(x, u)
    assert np.asarray(x_bar).tolist() == [0, 0.5, 0] and np.asarray(u_bar).tolist() == [0.5, 0]


@pytest.mark.parametrize("wrap", WRAPS)
def test_dynamic_slices_under_vmap_with_starts_of_their_own(wrap):
    x, starts = np.arange(12.0, dtype=np.float32).reshape(3, 4), np.array([0, 5, -1], np.int32)
    got = wrap(pullback.vmap(lambda r, s: lax.dynamic_slice(r, (s,), (2,))))(x, starts)
    assert np.asarray(got).tolist() == [[0, 1], [6, 7], [10, 11]]
    got = wrap(pullback.vmap(lambda r, s: lax.dynamic_update_slice(r, np.zeros(2, np.float32), (s,))))(x, starts)
    assert np.asarray(got).tolist() == [[0, 0, 2, 3], [4, 5, 0, 0], [8, 9, 0, 0]]
    got = wrap(pullback.vmap(lambda s: lax.dynamic_index_in_dim(x, s, 0, False)))(starts)
    assert np.array_equal(np.asarray(got), x[[0, 2, 2]])


def test_negative_starts_count_from_the_end_unless_told():
    x = np.arange(4.0, dtype=np.float32)
    assert np.asarray(lax.dynamic_slice(x, (-1,), (1,))).tolist() == [3]
    assert np.asarray(lax.dynamic_slice(x, (jnp.int32(-1),), (1,), allow_negative_indices=False)).tolist() == [0]
    assert lax.dynamic_index_in_dim(x, -1, keepdims=False, allow_negative_indices=False) == x[0]
    assert lax.dynamic_update_index_in_dim(x, np.float32(9), -1, 0, allow_negative_indices=False)[0] == 9
    for known in (-1, np.int32(-1)):
        with pytest.raises(ValueError, match="index -1 is negative"):
            lax.dynamic_slice(x, (known,), (1,), allow_negative_indices=False)
    assert np.asarray(lax.dynamic_slice(x, (lax.full((), -1, np.int32),), (1,))).tolist() == [3]


@pytest.mark.parametrize(
    "call, error, message",
    [
        (
            lambda: lax.gather(np.ones(3), np.zeros((1, 2), np.int32), GatherDimensionNumbers((), (0,), (0,)), (1,)),
            TypeError,
            "has 2 components, but start_index_map has 1",
        ),
        (
            lambda: lax.gather(np.ones(3), np.zeros((1, 1), np.int32), GatherDimensionNumbers((), (0,), (0,)), (4,)),
            TypeError,
            r"slice_sizes\[0\] must be from 0 to 3.* got 4",
        ),
        (
            lambda: lax.gather(np.ones(3), np.zeros((1, 1), np.float32), GatherDimensionNumbers((), (0,), (0,)), (1,)),
            ValueError,
            "integer type",
        ),
        (
            lambda: lax.scatter(np.ones((3, 2)), np.zeros((1, 1), np.int32), np.ones((1, 3)), ROWS),
            TypeError,
            "windows larger than the operand",
        ),
        (
            lambda: lax.scatter(
                np.ones((3, 2), np.float32), np.zeros((1, 1), np.int32), np.ones((1, 2), np.int32), ROWS
            ),
            TypeError,
            "of one dtype",
        ),
        (lambda: lax.dynamic_slice(np.ones(3), (0,), (4,)), TypeError, "'slice_sizes' is .* larger than the operand"),
        (lambda: lax.dynamic_slice(np.ones(3), (0, 0), (1,)), ValueError, "has 2 indices; expected one for each axis"),
        (lambda: lax.dynamic_slice(np.ones(3), (1.0,), (1,)), TypeError, "must hold integers of one dtype"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_modes_have_names():
    assert GatherScatterMode.from_any("drop") is GatherScatterMode.FILL_OR_DROP
    assert GatherScatterMode.from_any(None) is GatherScatterMode.FILL_OR_DROP


@pytest.mark.parametrize("dtype", ["f4", "f2", "i4", "u1", "c8"])
@pytest.mark.parametrize("places, window", [(1000, ()), (50, (7,)), (1, ())])
def test_many_updates_of_few_places(dtype, places, window):
    """Sums of parts: ragged ones, places outside, zeros that keep their sign; the same for any number of threads."""
    rng = np.random.default_rng(2)
    count = 100_003 // max(1, int(np.prod(window)))
    start = np.full((places, *window), -0.0 if dtype[0] in "fc" else 3, dtype)
    index = rng.integers(-places - 5, places + 5, count).astype("i4")
    index[index % places == places // 2] = places + 1
    updates = rng.integers(-3, 4, (count, *window)).astype(dtype)  # whose sums are exact
    for mode in ("drop", "clip"):
        add = pullback.jit(lambda x, i, u, mode=mode: x.at[i].add(u, mode=mode))
        expected, at = start.copy(), np.where(index < 0, index + places, index)
        held = (at >= 0) & (at < places)
        if mode == "clip":
            np.add.at(expected, np.clip(at, 0, places - 1), updates)
        else:
            np.add.at(expected, at[held], updates[held])
        results = []
        before = _core.num_threads()
        for threads in (1, 3):
            _core.set_num_threads(threads)
            results.append(np.asarray(add(start, index, updates)))
        _core.set_num_threads(before)
        np.testing.assert_array_equal(results[0], expected)
        np.testing.assert_array_equal(np.signbit(results[0].real), np.signbit(expected.real))
        np.testing.assert_array_equal(results[0].tobytes(), results[1].tobytes())


def test_many_updates_of_few_places_are_summed_on_threads():
    def text(places, updates):
        add = pullback.jit(lambda x, i, u: x.at[i].add(u))
        return add.lower(np.zeros(places, "f4"), np.zeros(updates, "i4"), np.ones(updates, "f4")).as_text()

    parts, ragged, wide = text(1000, 100_000), text(1000, 100_003), text(50_000, 100_000)
    assert "< 4 {" in parts and parts.count("sequential ") == 1
    assert "< 4 {" in ragged and ragged.count("sequential ") == 2  # with what is left of the parts
    assert "< 4 {" not in wide  # too many places


@pytest.mark.parametrize("wrap", WRAPS)
def test_booleans_are_not_added_nor_multiplied_at_places(wrap):
    x, places, updates = np.array([True, False]), np.array([[1], [1]]), np.array([True, True])
    for scatter, name in ((lax.scatter_add, "add"), (lax.scatter_sub, "sub"), (lax.scatter_mul, "mul")):
        with pytest.raises(TypeError, match=f"{name} does not accept dtype bool at position 0"):
            wrap(lambda x, u, scatter=scatter: scatter(x, places, u, POINTS))(x, updates)
    for method in ("add", "multiply", "divide", "power"):
        with pytest.raises(TypeError, match="does not accept dtype bool"):
            wrap(lambda x, u, m=method: getattr(jnp.asarray(x).at[places[:, 0]], m)(u))(x, updates)
    assert np.asarray(wrap(lambda x, u: lax.scatter_max(x, places, u, POINTS))(x, updates)).tolist() == [True, True]


def test_no_tangent_wins_where_an_extremum_is_nan():
    x = np.array([np.nan, 3.0, 1.0], np.float32)

    def least(x):
        return x.at[np.array([0, 0, 1])].min(np.array([0.0, np.nan, 2.0], np.float32)).sum()

    for grad in (pullback.grad(least), pullback.jit(pullback.grad(least))):
        np.testing.assert_array_equal(grad(x), [0, 0, 1])
