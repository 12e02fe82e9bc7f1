"""Elements that take turns in memory: repeated ones, those of a short last axis, every second one."""

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback.loops.ir import Builder
from pullback.loops.passes.unroll import _stores_of_one, is_little

RNG = np.random.default_rng(0)


def rows(*shape, dtype="f4"):
    return (10 * RNG.standard_normal(shape)).astype(dtype)


def nests(f, *args):
    return pullback.jit(f).lower(*args).as_text("nests")


@pytest.mark.parametrize("dtype", ["f4", "f8", "i1", "bool", "c8"])
@pytest.mark.parametrize("times", [2, 3, 4, 5, 6, 7])
@pytest.mark.parametrize("n", [0, 1, 7, 64, 1001])
def test_repeated_elements(times, n, dtype):
    x = rows(n, dtype="f4").astype(dtype)
    with pullback.enable_x64(dtype == "f8"):
        np.testing.assert_array_equal(pullback.jit(lambda x: jnp.repeat(x, times))(x), np.repeat(x, times))


def test_repeated_elements_are_stored_by_whole_vectors():
    text = nests(lambda x: jnp.repeat(x, 3) * 2, rows(5000))
    assert "floordiv" not in text and "vector" in text


@pytest.mark.parametrize("n", [35, 512, 1003])
def test_elements_chosen_by_division_where_some_are_left_over(n):
    x = rows(n + 5)

    def f(x):
        i = jnp.arange(n)
        return x[i // 2] + 10 * x[(i + 1) // 3] - x[i % 2]

    i = np.arange(n)
    np.testing.assert_allclose(pullback.jit(f)(x), x[i // 2] + 10 * x[(i + 1) // 3] - x[i % 2], rtol=1e-5, atol=1e-4)


def test_repeated_within_tiles():
    x = rows(600)
    want = np.tile(x, 2) * np.repeat(x, 2)
    np.testing.assert_allclose(pullback.jit(lambda x: jnp.tile(x, 2) * jnp.repeat(x, 2))(x), want, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["f4", "f8", "i2", "c8"])
@pytest.mark.parametrize("last", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("n", [0, 1, 5, 8, 100, 1003])
def test_short_last_axis(n, last, dtype):
    x, s = rows(n, last).astype(dtype), rows(n).astype(dtype)

    def f(x, s):
        return x * s[:, None], (x + s[:, None])[:, ::-1], jnp.where(s[:, None].real > 0, x, -x)

    want = x * s[:, None], (x + s[:, None])[:, ::-1], np.where(s[:, None].real > 0, x, -x)
    with pullback.enable_x64(dtype == "f8"):
        for ours, other in zip(pullback.jit(f)(x, s), want):
            np.testing.assert_allclose(ours, other, rtol=1e-5, atol=1e-4)


def test_lanes_take_many_elements_of_a_short_axis():
    text = nests(lambda x, s: x * s[:, None], rows(5000, 3), rows(5000))
    (loop,) = [line for line in text.splitlines() if "vector" in line]
    assert "< 3 {" not in loop
    x, y = rows(300, 3), rows(200, 3)
    f = lambda x, y: x[:, None] - y[None]
    np.testing.assert_array_equal(pullback.jit(f)(x, y), f(x, y))


@pytest.mark.parametrize("dtype", ["u1", "i2", "f2", "f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("last", [2, 3, 4, 5, 6, 7, 8])
def test_rows_of_few_elements_are_moved(last, dtype):
    x = rows(37, 45, last).astype(dtype)
    moves = [
        lambda x: x.transpose(1, 0, 2),
        lambda x: x[:, ::-1],
        lambda x: x[::-1, ::2],
        lambda x: jnp.concatenate([x, x[..., :1], x], -1),
        lambda x: jnp.concatenate([x[..., :3], jnp.ones_like(x[..., :1])], -1),
    ]
    with pullback.enable_x64(dtype in ("f8", "c16")):
        for f in moves:
            np.testing.assert_array_equal(pullback.jit(f)(x), f(jnp.asarray(x)))
    want = x.transpose(1, 0, 2), x[:, ::-1], x[::-1, ::2]
    for f, expected in zip(moves, want):
        np.testing.assert_array_equal(f(x), expected)


@pytest.mark.parametrize("dtype", ["u1", "i2", "i4", "f4", "f8"])
@pytest.mark.parametrize("n", [3, 4, 5, 7])
def test_small_matrices_are_made_of_rows_in_lanes(n, dtype):
    x, y = rows(203, n).astype(dtype), rows(203, n).astype(dtype)
    fs = [
        lambda x, y: (x[:, :, None] * y[:, None], x[:, :, None] - x[:, None]),
        lambda x, y: (x[:, :, None] * jnp.eye(n, dtype=dtype), x[:, :, None] * jnp.tri(n, dtype=dtype)),
        lambda x, y: (jnp.tile(x, (1, 3)), jnp.broadcast_to(x[:, None], (203, 3, n)).reshape(-1, n)),
        lambda x, y: ((x[:, :, None] + y[:, None]).swapaxes(1, 2), (x[:, :, None] * y[:, None]).sum(1)),
    ]
    with pullback.enable_x64(dtype == "f8"):
        for f in fs:
            for ours, want in zip(pullback.jit(f)(x, y), f(jnp.asarray(x), jnp.asarray(y))):
                np.testing.assert_allclose(ours, want, rtol=1e-6, atol=1e-4)


def test_rows_that_lie_far_apart_are_moved_as_numbers_and_others_by_whole_vectors():
    x = rows(200, 300, 4).astype("u1")
    assert "vector i2 < 4" in nests(lambda x: x.transpose(1, 0, 2), x)
    assert "< 3 {" not in nests(lambda x: x[:, ::-1], x[..., :3])
    assert "< 3 {" not in nests(lambda x: jnp.concatenate([x, x[..., :1]], -1), x[..., :3])


@pytest.mark.parametrize("rows_of", [9, 16])
def test_four_numbers_of_each_row_are_moved_by_one_register(rows_of):
    x = rows(1000, rows_of)
    text = pullback.jit(lambda x: x[:, 1:5]).lower(x).as_text("llvm")
    assert "load <4 x float>" in text and "insertelement" not in text
    np.testing.assert_array_equal(pullback.jit(lambda x: x[:, 1:5])(x), x[:, 1:5])


def test_an_axis_whose_elements_are_read_after_others_are_stored():
    x = rows(400, 3)

    def f(x):
        y = x - x.mean(-1, keepdims=True)
        return y / jnp.sqrt((y * y).sum(-1, keepdims=True) + 1), jnp.cumsum(y, -1)

    y = x - x.mean(-1, keepdims=True)
    for ours, other in zip(pullback.jit(f)(x), (y / np.sqrt((y * y).sum(-1, keepdims=True) + 1), np.cumsum(y, -1))):
        np.testing.assert_allclose(ours, other, rtol=2e-5, atol=1e-4)


@pytest.mark.parametrize("shape", [(3, 8, 40), (2, 64, 64), (1, 17, 33)])
def test_gradients_of_pooled_pixels(shape):
    x = rows(*shape)
    rest = tuple(n // 2 * 2 for n in shape[1:])

    def windows(x):
        return pullback.lax.reduce_window(x, 0.0, pullback.lax.add, (1, 2, 2), (1, 2, 2), "VALID")

    def slices(x):
        x = x[:, : rest[0], : rest[1]]
        return x[:, ::2, ::2] + x[:, 1::2, ::2] + x[:, ::2, 1::2] + x[:, 1::2, 1::2]

    inside = x[:, : rest[0], : rest[1]].reshape(shape[0], rest[0] // 2, 2, rest[1] // 2, 2).sum((2, 4))
    want = np.zeros(shape, "f4")
    want[:, : rest[0], : rest[1]] = np.repeat(np.repeat(2 * inside, 2, 1), 2, 2)
    for f in (windows, slices):
        slope = pullback.jit(pullback.grad(lambda x, f=f: (f(x) ** 2).sum()))(x)
        np.testing.assert_allclose(slope, want, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("step", [2, 3, 5])
def test_dilated_arrays(step):
    x = rows(7, 50)
    config = ((1, 2, step - 1), (step, 0, step - 1))
    ours = pullback.jit(lambda x: pullback.lax.pad(x, np.float32(3), config) * 2)(x)
    want = np.full((7 * step - step + 1 + 3, 50 * step - step + 1 + step), 6.0, "f4")
    want[1 : 1 + 7 * step : step, step::step] = 2 * x
    np.testing.assert_array_equal(ours, want)


@pytest.mark.parametrize("dtype", ["f4", "f8", "i2", "u1", "?"])
@pytest.mark.parametrize("step", [2, 3, 4, 5, 6, 7, 8, 10, 13])
def test_elements_of_so_many_kinds_take_turns(step, dtype):
    """Read apart, and stored in turns, whatever the number of rows leaves to shorter vectors."""
    x = (RNG.standard_normal((203, step)) * 50).astype(dtype)

    def turned(x):
        columns = [x[:, k] for k in range(step)]
        return jnp.stack([c ^ True if dtype == "?" else c + c for c in columns[::-1]], -1), x.reshape(-1)[::step]

    with pullback.enable_x64(True):
        y, every = pullback.jit(turned)(x)
    np.testing.assert_array_equal(y, (~x if dtype == "?" else x + x)[:, ::-1])
    np.testing.assert_array_equal(every, x[:, 0])


def test_every_second_pixel_of_three_colours():
    x = RNG.standard_normal((26, 70, 3)).astype("f4")
    half = pullback.jit(lambda x: x[::2, ::2] + x[1::2, ::2] + x[::2, 1::2] + x[1::2, 1::2])
    np.testing.assert_array_equal(half(x), x[::2, ::2] + x[1::2, ::2] + x[::2, 1::2] + x[1::2, 1::2])


@pytest.mark.parametrize("dtype", ["u1", "f2", "f4", "f8"])
@pytest.mark.parametrize("kinds", [2, 3, 4, 5, 7, 8])
def test_kinds_whose_number_is_a_variable_take_turns_to_the_last_element(kinds, dtype):
    """Lanes read no further than to the last element that they want."""
    x = (RNG.standard_normal((3, 130, kinds)) * 50).astype(dtype)
    found = pullback.jit(lambda x: ((x > 60).any(1), (x[:, ::-1] > 60).argmax(1)))
    with pullback.enable_x64(True):
        some, first = found(x)
        text = found.lower(x).as_text("asm")
    np.testing.assert_array_equal(some, (x > 60).any(1))
    np.testing.assert_array_equal(first, (x[:, ::-1] > 60).argmax(1))
    assert text.count("pinsrb") < 16


@pytest.mark.parametrize("dtype", ["?", "u1", "i2", "f2"])
@pytest.mark.parametrize("kinds", [9, 10, 11, 13, 14, 15])
def test_sides_of_many_narrow_kinds(kinds, dtype):
    """Reductions of rows, and one kind of many, as far as to the last row."""
    x = (RNG.standard_normal((131, kinds)) * 50).astype(dtype)
    f = lambda x: (x.max(1), x.argmax(1), (x > 0).all(1), x.sum(1), x[:, -1], x.T, x[:, ::-1].T)
    for ours, want in zip(pullback.jit(f)(x), f(jnp.asarray(x))):
        np.testing.assert_array_equal(ours, want) if ours.dtype.kind != "f" else np.testing.assert_allclose(ours, want)
    text = pullback.jit(lambda x: x.max(1)).lower(x).as_text("asm")
    assert "pinsrb" not in text or kinds > 14


@pytest.mark.parametrize("dtype", ["?", "u1", "i2", "f2", "f4", "f8", "c8"])
@pytest.mark.parametrize("n", [2, 5, 16, 23, 33])
def test_columns_in_a_known_order(n, dtype):
    x = (RNG.standard_normal((40, n)) * 50).astype(dtype)
    order = RNG.permutation(n)
    twice = RNG.integers(-n, n, 2 * n + 1)
    with pullback.enable_x64(dtype == "f8"):
        moved, some, flat = pullback.jit(lambda x: (x[:, order], x[:, twice], x.reshape(-1)[twice + n]))(x)
    np.testing.assert_array_equal(moved, x[:, order])
    np.testing.assert_array_equal(some, x[:, twice])
    np.testing.assert_array_equal(flat, x.reshape(-1)[twice + n])


def test_columns_in_a_known_order_are_shuffled():
    order = RNG.permutation(11)
    text = pullback.jit(lambda x: x[:, order]).lower(np.ones((40, 11), "i2")).as_text("asm")
    assert "pinsrw" not in text


@pytest.mark.parametrize("order", [[0, 1, 1, 0, 2, 1], [2, 0], [-1, -2, -3]])
def test_a_known_order_of_few_columns_is_known_in_straight_code(order):
    x = rows(500, 3).astype("u1")
    f = pullback.jit(lambda x: x[:, np.array(order)] * 2)
    np.testing.assert_array_equal(f(x), x[:, order] * 2)
    assert "c[" not in f.lower(x).as_text("nests")


@pytest.mark.parametrize("part", [16, 33, 64])
def test_reductions_of_rows_whose_places_are_divided_are_taken_apart(part):
    """Each row of a Kronecker product: lanes go along the parts, with no gather."""
    a, b = (np.random.default_rng(0).normal(size=n).astype("f4") for n in ((40, 20), (40, part)))
    flat = lambda a, b: (a[:, :, None] * b[:, None]).reshape(40, -1)
    for f in (lambda a, b: (flat(a, b) ** 2).sum(1), lambda a, b: abs(flat(a, b)).max(1)):
        nests = pullback.jit(f).lower(a, b).as_text("nests")
        assert "floordiv" not in nests and "floormod" not in nests
        np.testing.assert_allclose(pullback.jit(f)(a, b), f(a.astype("f8"), b.astype("f8")), rtol=1e-5)


def sorted_by_exchanges(x):
    """A row in order, by exchanges of neighbours that are set in place."""
    for turn in range(x.shape[0]):
        for k in range(turn % 2, x.shape[0] - 1, 2):
            a, b = x[k], x[k + 1]
            x = x.at[k].set(jnp.minimum(a, b)).at[k + 1].set(jnp.maximum(a, b))
    return x


@pytest.mark.parametrize("last", [9, 10, 16, 20])
def test_what_all_elements_of_a_row_need_is_computed_in_lanes_of_rows(last):
    x = rows(501, last)
    text = nests(pullback.vmap(sorted_by_exchanges), x)
    assert f"< {last}" not in text
    np.testing.assert_array_equal(pullback.jit(pullback.vmap(sorted_by_exchanges))(x), np.sort(x, 1))


def test_what_differs_along_either_of_two_short_axes_counts():
    """Products of stacks of 3 x 3 matrices by an associative scan were 512 lines, now 360, and take 0.8 of the time."""
    b = Builder()
    x, y = b.input("x", "f32", 3), b.output("y", "f32", 9)
    with b.loop(3, "parallel") as i, b.loop(3, "parallel") as j:
        value = b.load(x, i)
        for _ in range(6):
            value = value * value + value
        b.store(y, i * 3 + j, value)
    (loop,) = b.function("f").body
    (row,) = loop.body
    assert _stores_of_one([loop], 16) is None
    assert _stores_of_one([row], 16) is not None  # of which only the place differs
    assert not is_little(row, 9)  # loops that are no rows repeat all


def scaled(x, a):
    """Elements of rows, with three numbers of each row that take some time."""
    s, t, r = (1 / (1 - a * a))[:, None], (a * a * a / (a + 3))[:, None], (a / (a * a + 2))[:, None]
    return (x * t * s + r) * s + t * (x * r)


def test_rows_whose_numbers_are_computed_in_lanes_before_them_stay_rows():
    """2003 rows of 10 took 4.3 us, written out 7.4."""
    x, a = rows(2003, 10), 2 + abs(rows(2003))
    assert "< 10 " in nests(scaled, x, a)
    np.testing.assert_allclose(pullback.jit(scaled)(x, a), scaled(x.astype("f8"), a.astype("f8")), rtol=1e-4)


def turned(x):
    return x.T * 2 + 1


@pytest.mark.parametrize("count, written_out", [(20, False), (2003, True)])
def test_rows_are_written_out_where_all_of_them_gain_what_it_takes_to_compile(count, written_out):
    x = rows(10, count)
    assert ("< 10 " not in nests(turned, x)) == written_out
    np.testing.assert_array_equal(pullback.jit(turned)(x), turned(x))


def test_rows_are_written_out_among_steps():
    x = rows(1000, 10, 20)
    text = nests(lambda x: pullback.lax.scan(lambda c, row: (jnp.tanh(c + row.sum()), turned(row)), x[0, 0, 0], x), x)
    assert "sequential" in text and "< 20 " in text and "< 10 " not in text


@pytest.mark.parametrize("n", [64, 65, 67])
def test_elements_that_take_turns_are_summed_while_they_are_stored(n):
    even, odd = rows(40, (n + 1) // 2), rows(40, n // 2)

    def f(even, odd):
        left = [n - (2 * x.shape[1] - 1 + at) for at, x in enumerate((even, odd))]
        parts = [
            pullback.lax.pad(jnp.sin(x), jnp.float32(0), ((0, 0, 0), (at, left[at], 1)))
            for at, x in enumerate((even, odd))
        ]
        y = parts[0] + parts[1]
        return y, y.sum(1), (y * y).max(1)

    assert "floormod" not in nests(f, even, odd)
    y, total, largest = pullback.jit(f)(even, odd)
    want = np.zeros((40, n), "f4")
    want[:, ::2], want[:, 1::2] = np.sin(even), np.sin(odd)
    np.testing.assert_allclose(y, want, rtol=1e-6)
    np.testing.assert_allclose(total, want.sum(1, dtype="f8"), rtol=1e-5, atol=1e-4)
    np.testing.assert_array_equal(largest, (np.asarray(y) ** 2).max(1))
