"""Reshaping, moving axes, joining, cutting, padding: against NumPy, eager and jitted."""

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import lax

X = np.arange(6.0, dtype=np.float32).reshape(2, 3)
Y = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)
V = np.arange(5, dtype=np.int32)

CASES = {
    "reshape": lambda m, x, y, v: (
        m.reshape(x, 6),
        m.reshape(x, (3, -1)),
        m.reshape(y, (4, 6), order="F"),
        x.reshape(3, 2),
    ),
    "ravel": lambda m, x, y, v: (m.ravel(y), m.ravel(x, "F"), x.flatten("F"), y.ravel()),
    "squeeze": lambda m, x, y, v: (m.squeeze(x[None, :, None]), m.squeeze(x[None], 0), m.expand_dims(x, (0, -1))),
    "atleast": lambda m, x, y, v: (
        m.atleast_1d(v[0]),
        m.atleast_2d(v),
        m.atleast_3d(v),
        m.atleast_3d(x),
        m.atleast_2d(x),
    ),
    "transpose": lambda m, x, y, v: (
        m.transpose(y),
        m.transpose(y, (1, 0, 2)),
        y.T,
        m.permute_dims(y, (2, 0, 1)),
        y.mT,
    ),
    "moveaxis": lambda m, x, y, v: (
        m.moveaxis(y, 0, -1),
        m.moveaxis(y, (0, 1), (2, 0)),
        m.rollaxis(y, 2),
        m.rollaxis(y, 0, 3),
    ),
    "swapaxes": lambda m, x, y, v: (m.swapaxes(y, 0, 2), m.matrix_transpose(y)),
    "broadcast": lambda m, x, y, v: (
        m.broadcast_to(x, (4, 2, 3)),
        m.broadcast_arrays(x, v[:3]),
        m.broadcast_shapes((2, 1), (3,)),
    ),
    "flip": lambda m, x, y, v: (m.flip(y), m.flip(y, (0, 2)), m.fliplr(x), m.flipud(x)),
    "rot90": lambda m, x, y, v: [m.rot90(y, k, axes=(0, 2)) for k in range(-1, 5)],
    "roll": lambda m, x, y, v: (
        m.roll(v, 2),
        m.roll(x, -1),
        m.roll(y, (1, 2), axis=(0, 2)),
        m.roll(x, 7, 1),
        m.roll(y, 1, (0, 1)),
    ),
    "tile": lambda m, x, y, v: (m.tile(x, 2), m.tile(x, (2, 1, 3)), m.tile(v, ()), m.tile(x, (0, 1))),
    "repeat": lambda m, x, y, v: (
        m.repeat(x, 2),
        m.repeat(x, 3, axis=0),
        m.repeat(x, np.array([1, 2]), axis=0),
        x.repeat(2, 1),
    ),
    "resize": lambda m, x, y, v: (m.resize(x, (2, 2)), m.resize(x, (4, 5)), m.resize(v, 0)),
    "concatenate": lambda m, x, y, v: (
        m.concatenate([x, x], 1),
        m.concatenate([x, x], None),
        m.concatenate([x, v[None, :3]]),
    ),
    "stack": lambda m, x, y, v: [m.stack([x, x * 2], axis=k) for k in (0, 1, 2, -1)],
    "stackers": lambda m, x, y, v: (
        m.vstack([v, v]),
        m.hstack([x, x]),
        m.hstack([v, v]),
        m.dstack([x, x]),
        m.column_stack([v, v]),
    ),
    "unstack": lambda m, x, y, v: list(m.unstack(y, axis=1)) if hasattr(m, "unstack") else list(np.moveaxis(y, 1, 0)),
    "split": lambda m, x, y, v: (
        m.split(y, 2, axis=2),
        m.split(v, [1, 3]),
        m.array_split(v, 3),
        m.hsplit(x, 3),
        m.vsplit(y, 2),
    ),
    "dsplit": lambda m, x, y, v: m.dsplit(y, [1, 3]),
    "append": lambda m, x, y, v: (m.append(x, v), m.append(x, x, axis=0)),
    "block": lambda m, x, y, v: (m.block([[x, x], [x, 2 * x]]), m.block([v, v]), m.block([[x, v[:2, None]]])),
    "delete": lambda m, x, y, v: (
        m.delete(v, 1),
        m.delete(v, slice(1, 3)),
        m.delete(x, 0, axis=1),
        m.delete(v, np.array([0, -1, 0])),
    ),
    "insert": lambda m, x, y, v: (
        m.insert(v, 1, 9),
        m.insert(v, np.array([0, 2, 2]), np.array([7, 8, 9])),
        m.insert(x, -1, 5, axis=1),
    ),
    "ix_": lambda m, x, y, v: m.ix_(v, v[:2]),
    "size": lambda m, x, y, v: (m.size(x), m.size(x, 1), m.ndim(y), m.shape(y)),
}


@pytest.mark.parametrize("name", sorted(CASES))
def test_against_numpy(same, name):
    same(CASES[name], X, Y, V)


PADS = [
    ("constant", {}),
    ("constant", {"constant_values": 5}),
    ("constant", {"constant_values": (1, 2)}),
    ("edge", {}),
    ("reflect", {}),
    ("symmetric", {}),
    ("wrap", {}),
    ("reflect", {"reflect_type": "odd"}),
    ("symmetric", {"reflect_type": "odd"}),
    ("linear_ramp", {"end_values": 3.0}),
    ("maximum", {}),
    ("mean", {}),
    ("median", {}),
    ("minimum", {"stat_length": 2}),
]


@pytest.mark.parametrize(("mode", "options"), PADS)
@pytest.mark.parametrize("width", [1, (1, 2), ((2, 0), (1, 3)), 7])
def test_pad(same, mode, options, width):
    same(lambda m, x: m.pad(x, width, mode=mode, **options), X, jit=width != 7)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32])
def test_ramps_of_integers_are_rounded_downwards(same, dtype):
    x = np.arange(10).astype(dtype).reshape(2, 5)
    same(lambda m, x: m.pad(x, 3, mode="linear_ramp", end_values=(5, 7)), x)
    same(lambda m, x: m.pad(x, (2, 3), mode="linear_ramp", end_values=-4 if np.dtype(dtype).kind == "i" else 9), x)


def test_pad_by_a_function():
    def fill(vector, width, axis, options):
        return vector.at[: width[0]].set(10.0).at[-width[1] :].set(options["value"])

    assert jnp.pad(jnp.arange(3.0), 1, fill, value=7.0).tolist() == [10, 0, 1, 2, 7]


def test_repeat_with_traced_numbers():
    f = pullback.jit(lambda x, r: jnp.repeat(x, r, axis=0, total_repeat_length=4))
    assert f(jnp.arange(2), jnp.array([1, 2])).tolist() == [0, 1, 1, 1]
    assert f(jnp.arange(2), jnp.array([3, 5])).tolist() == [0, 0, 0, 1]
    with pytest.raises(pullback.errors.ConcretizationTypeError, match="total_repeat_length"):
        pullback.jit(jnp.repeat)(jnp.arange(2), jnp.array([1, 2]))


@pytest.mark.parametrize("dtype", ["i4", "i1", "u1", "u4", "?"])
@pytest.mark.parametrize("total", [0, 1, 60, 400])
def test_repeat_with_traced_numbers_is_cut_or_filled(dtype, total):
    x = np.arange(7.0, dtype="f4")
    counts = np.array([0, 90, 0, 3, 100, 120, 0]).astype(dtype)
    full = np.repeat(x, counts.astype(int))
    expected = np.concatenate([full, np.full(400, x[-1])])[:total]
    f = pullback.jit(lambda x, r: jnp.repeat(x, r, total_repeat_length=total))
    np.testing.assert_array_equal(f(x, counts), expected)
    both = pullback.vmap(f, (None, 0))(x, np.stack([counts, counts[::-1]]))
    np.testing.assert_array_equal(both[0], expected)


@pytest.mark.parametrize("repeats", [2, np.zeros(0, int), jnp.zeros(1, int)])
def test_repeat_of_nothing_has_no_last_element_to_fill_with(repeats):
    repeat = lambda r: jnp.repeat(jnp.zeros((0, 4)), r, 0, total_repeat_length=5)
    assert repeat(repeats).shape == pullback.jit(repeat)(repeats).shape == (0, 4)


def test_repeat_with_traced_numbers_compares_no_pairs():
    f = pullback.jit(lambda x, r: jnp.repeat(x, r, total_repeat_length=4000))
    text = str(pullback.make_jaxpr(f)(np.arange(3000.0, dtype="f4"), np.ones(3000, "i4")))
    assert "4000,3000" not in text and "3000,4000" not in text


def test_roll_by_a_traced_number():
    f = pullback.jit(lambda x, k: jnp.roll(x, k, axis=1))
    for k in (-4, 0, 1, 5):
        np.testing.assert_array_equal(f(X, k), np.roll(X, k, axis=1))


def test_roll_by_several_traced_numbers_of_any_integer_type():
    both = pullback.jit(lambda x, k, n: jnp.roll(x, (k, n), axis=(0, 1)))
    np.testing.assert_array_equal(both(X, 1, -2), np.roll(X, (1, -2), (0, 1)))
    np.testing.assert_array_equal(pullback.jit(lambda x, k: jnp.roll(x, [k, 1], axis=1))(X, 2), np.roll(X, 3, 1))
    roll = pullback.jit(lambda x, k: jnp.roll(x, k))
    for k in (np.uint8(250), np.int8(-128), np.uint32(2**32 - 1), np.bool_(True)):
        np.testing.assert_array_equal(roll(X, k), np.roll(X, int(k)))
    with pullback.enable_x64(True):
        for k in (2**40 + 1, -(2**63), np.uint64(2**64 - 1)):
            np.testing.assert_array_equal(roll(X, k), np.roll(X, int(k) % X.size))


def test_insert_and_delete_at_traced_places():
    insert = pullback.jit(lambda x, k, v: jnp.insert(x, k, v))
    assert insert(jnp.arange(3), jnp.array([0, 2]), jnp.array([7, 8])).tolist() == [7, 0, 1, 8, 2]
    delete = pullback.jit(lambda x, k: jnp.delete(x, k, assume_unique_indices=True))
    assert delete(jnp.arange(5), jnp.array([1, -1])).tolist() == [0, 2, 3]
    assert jnp.delete(jnp.arange(5), np.array([1, 1]), assume_unique_indices=True).size == 3


def test_stack_of_scalars_stays_weakly_typed():
    assert jnp.stack([1, 2]).weak_type and not jnp.array([1, 2]).weak_type


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda: jnp.reshape(X, (4, 4)),
            ValueError,
            r"cannot reshape array of shape \(2, 3\) into shape \(4, 4\): 6 elements for 16 places",
        ),
        (lambda: jnp.reshape(X, (4, -1)), ValueError, "4, which does not divide the 6 elements"),
        (lambda: jnp.reshape(X, (-1, -1)), ValueError, "at most one can be worked out"),
        (lambda: jnp.reshape(X, (3, 2), order="K"), ValueError, "order"),
        (lambda: jnp.ravel(X, "K"), NotImplementedError, "order='K'"),
        (lambda: jnp.squeeze(X, 0), ValueError, "only axes of length 1"),
        (lambda: jnp.transpose(X, (0,)), TypeError, "isn't a permutation"),
        (lambda: jnp.swapaxes(X, 0, 5), IndexError, "out of bounds"),
        (lambda: jnp.moveaxis(X, (0, 1), (1,)), ValueError, "Inconsistent number of elements: 2 vs 1"),
        (lambda: jnp.expand_dims(X, (0, 0)), ValueError, "repeated axis"),
        (lambda: jnp.broadcast_to(X, (3, 3)), ValueError, "Incompatible"),
        (lambda: jnp.broadcast_to(X, 3), ValueError, "fewer dimensions"),
        (lambda: jnp.concatenate([]), ValueError, "at least one array"),
        (lambda: jnp.concatenate([1, 2]), ValueError, "Zero-dimensional"),
        (lambda: jnp.concatenate([X, V]), TypeError, "Cannot concatenate arrays of different ranks"),
        (lambda: jnp.concatenate([X, [[1, 2, 3]]]), TypeError, "list"),
        (lambda: jnp.concatenate([X, Y[0]]), TypeError, "equal lengths of all other axes"),
        (lambda: jnp.concatenate(3), TypeError, "iterable"),
        (lambda: jnp.stack([]), ValueError, "at least one array"),
        (lambda: jnp.stack([X, V]), ValueError, "stack: .* ranks differ"),
        (lambda: jnp.split(X, 2, axis=1), ValueError, "equal division: rest is 1"),
        (lambda: jnp.block([X, [X]]), ValueError, "Mismatched list depths"),
        (lambda: jnp.pad(X, -1), ValueError, "negative"),
        (lambda: jnp.pad(X, 1.5), TypeError, "integral"),
        (lambda: jnp.pad(X, 1, mode="foo"), NotImplementedError, "'foo'"),
        (lambda: jnp.pad(X, 1, foo=1), ValueError, "unsupported keyword"),
        (lambda: jnp.pad(X, [1, 2, 3]), ValueError, "unsupported shape"),
        (lambda: jnp.rot90(X, 1, (0, 0)), ValueError, "different"),
        (lambda: jnp.fliplr(V), ValueError, "axis 1 is out of bounds"),
        (lambda: jnp.delete(V, 9), ValueError, "out of bounds"),
        (lambda: jnp.repeat(X, np.array([1, 2, 3]), axis=0), ValueError, "could not be broadcast"),
    ],
)
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_gradient_and_vmap():
    f = lambda x: jnp.sum(jnp.pad(jnp.roll(x, 1, 0), 1, mode="reflect") ** 2)
    gradient = pullback.grad(f)(jnp.asarray(X))
    step = 1e-2
    for k in range(6):
        e = np.zeros(6, np.float32)
        e[k] = step
        d = (f(X + e.reshape(2, 3)) - f(X - e.reshape(2, 3))) / (2 * step)
        np.testing.assert_allclose(gradient.ravel()[k], d, rtol=1e-2, atol=1e-2)
    g = lambda x: jnp.concatenate([jnp.tile(x, 2), jnp.repeat(x, 2), jnp.flip(x)])
    np.testing.assert_array_equal(pullback.vmap(g)(X), np.stack([g(row) for row in X]))


def test_scalars_have_no_zeros_to_trim():
    for x in (np.float32(0), np.float32(2)):
        np.testing.assert_array_equal(jnp.trim_zeros(x), x)


def test_empty_vectors_of_ix_are_indices():
    rows, columns = jnp.ix_(jnp.array([]), jnp.zeros(0, "int8"))
    assert rows.shape == (0, 1) and columns.shape == (1, 0)
    assert rows.dtype == columns.dtype == jnp.zeros(0, int).dtype
    assert jnp.ones((2, 3))[rows, columns].shape == (0, 0)


def test_reshaped_arrays_of_numpy_are_known_while_traced():
    given, seen = np.arange(4.0), []

    def f():
        seen.append(jnp.reshape(given, (2, -1)))
        seen.append(jnp.reshape(given, (2, 2), order="F", copy=True))
        with pytest.raises(ValueError, match="into shape"):
            jnp.reshape(given, (3,))
        return jnp.sum(seen[0]), jnp.reshape(np.float32(3), 1)

    assert pullback.jit(f)() == (6, 3)
    assert all(type(x) is np.ndarray and x.dtype == np.float64 for x in seen)
    assert np.shares_memory(seen[0], given) and not np.shares_memory(seen[1], given)
    np.testing.assert_array_equal(seen[1], [[0, 2], [1, 3]])
    assert isinstance(jnp.reshape(given, (2, 2)), pullback.Array)


def test_shapes_that_are_none_are_wrong_values_too():
    for shape in ((2, -3), (-2, 3)):
        for error in (TypeError, ValueError):
            with pytest.raises(error, match="lengths of at least 0"):
                jnp.broadcast_to(jnp.ones(3), shape)
    for padding in ((), ((1, 1), (1, 1))):
        with pytest.raises(ValueError, match="padding must have one entry per dimension"):
            lax.reduce_window(jnp.arange(4.0), 0.0, lax.add, (2,), (1,), padding)


@pytest.mark.parametrize("obj", [0, np.array([], int), slice(0, 0)], ids=str)
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_insert_of_nothing_asks_for_no_fitting_values(obj, axis):
    x = jnp.arange(6.0).reshape(3, 2)
    shape = {None: (0, 2), 0: (0, 3), 1: (5, 0)}[axis]
    values = jnp.zeros(shape[::-1]) if axis == 1 and isinstance(obj, int) else jnp.zeros(shape)
    got = jnp.insert(x, obj, values, axis=axis)
    np.testing.assert_array_equal(got, x.ravel() if axis is None else x)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda x, y: jnp.cross(x[:, None] + jnp.ones(3), y[:, None] + jnp.ones(3)), TypeError),
        (lambda x, y: jnp.ldexp(x, y.astype(int)), TypeError),
        (lambda x, y: jnp.geomspace(x, y + 1, 3), TypeError),
        (jnp.copysign, ValueError),
        (jnp.heaviside, ValueError),
        (jnp.hypot, TypeError),
    ],
)
def test_operands_of_one_rank_that_do_not_go_together(call, error):
    with pytest.raises(error, match=r"(?i)incompatible shapes"):
        call(jnp.ones(3), jnp.ones(2))


@pytest.mark.parametrize("axes", [(-1, 0, 1), (0, 1), (0, 1, 3), (0, 0, 1), None])
def test_permute_dims_takes_axes_counted_from_0(axes):
    with pytest.raises(TypeError):
        jnp.permute_dims(jnp.ones((2, 3, 4)), axes)
