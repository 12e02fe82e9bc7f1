"""ragged_dot_general: each mode beside a loop over groups in NumPy, with derivatives, maps and errors."""

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import lax

RNG = np.random.default_rng(0)


def numbers(cx, cy, bx, by, ragged, group):
    return lax.RaggedDotDimensionNumbers(((cx, cy), (bx, by)), ragged, group)


def groups_of(sizes):
    ends = np.cumsum(sizes)
    return [slice(e - s, e) for e, s in zip(ends, sizes)]


def free_with_batch(a, b, sizes):
    out = np.zeros((a.shape[0], a.shape[1], b.shape[-1]))
    for i in range(a.shape[0]):
        for g, rows in enumerate(groups_of(sizes[i] if np.ndim(sizes) > 1 else sizes)):
            out[i, rows] = a[i, rows] @ b[i, g]
    return out


def contracting(a, b, sizes):
    return np.stack([a[rows].T @ b[rows] for rows in groups_of(sizes)])


def contracting_with_batch(a, b, sizes):
    each = [contracting(x, y, s) for x, y, s in zip(a, b, np.broadcast_to(sizes, (len(a), np.shape(sizes)[-1])))]
    return np.stack(each, 1)


CASES = [
    ((2, 5, 3), (2, 2, 3, 4), [[2, 3], [1, 3]], numbers((2,), (2,), (0,), (0,), [1], [1]), free_with_batch),
    ((2, 5, 3), (2, 2, 3, 4), [2, 2], numbers((2,), (2,), (0,), (0,), [1], [1]), free_with_batch),
    ((5, 3), (5, 4), [2, 2], numbers((0,), (0,), (), (), [0], []), contracting),
    ((5, 3), (5, 4), [0, 5, 0], numbers((0,), (0,), (), (), [0], []), contracting),
    ((2, 5, 3), (2, 5, 4), [[2, 3], [4, 1]], numbers((1,), (1,), (0,), (0,), [1], []), contracting_with_batch),
    ((2, 5, 3), (2, 5, 4), [2, 1], numbers((1,), (1,), (0,), (0,), [1], []), contracting_with_batch),
    ((4, 5, 3), (4, 5, 2), [1, 3], numbers((1,), (1,), (0,), (0,), [0], []), lambda a, b, _: a.swapaxes(1, 2) @ b),
]


@pytest.mark.parametrize("a,b,sizes,dimensions,wanted", CASES)
def test_modes(a, b, sizes, dimensions, wanted):
    x, y = (RNG.integers(-4, 5, s).astype(np.float32) for s in (a, b))

    def f(x, y, sizes):
        return lax.ragged_dot_general(x, y, sizes, dimensions)

    expected = wanted(x, y, np.array(sizes))
    np.testing.assert_array_equal(f(x, y, np.array(sizes)), expected)
    np.testing.assert_array_equal(jax.jit(f)(x, y, np.array(sizes)), expected)
    # A product is linear in each operand: <df(x) dx, c> = <c, f(dx)>, so the gradient of <f, c> has f's values.
    c = RNG.integers(-4, 5, expected.shape).astype(np.float32)
    dx, dy = jax.grad(lambda x, y: jnp.vdot(f(x, y, jnp.array(sizes)), c), (0, 1))(x, y)
    assert np.vdot(dx, x) == np.vdot(dy, y) == np.vdot(expected, c)
    both = jax.vmap(f, (0, None, None))(np.stack([x, 2 * x]), y, np.array(sizes))
    np.testing.assert_array_equal(both, np.stack([expected, 2 * expected]))


def test_what_is_in_no_group_does_not_count_whatever_it_is():
    x, y = np.ones((5, 3), np.float32), np.ones((5, 4), np.float32)
    x[4], y[4] = np.nan, np.inf
    got = lax.ragged_dot_general(x, y, jnp.array([2, 2]), numbers((0,), (0,), (), (), [0], []))
    np.testing.assert_array_equal(got, np.full((2, 3, 4), 2.0))


def test_sizes_and_dimensions_that_do_not_fit():
    x, y = jnp.ones((5, 3)), jnp.ones((2, 3, 4))
    free = ((1,), (1,), (), ())
    for sizes, dimensions in [
        ([2, 3], numbers(*free, [0], [])),
        ([2, 3], numbers(*free, [0, 1], [0])),
        ([2, 3, 0], numbers(*free, [0], [0])),
        ([[2, 3]], numbers(*free, [0], [0])),
        ([2.0, 3.0], numbers(*free, [0], [0])),
    ]:
        with pytest.raises(TypeError):
            lax.ragged_dot_general(x, y, jnp.array(sizes), dimensions)


def test_no_groups_give_nothing():
    no_sizes = jnp.zeros(0, int)
    np.testing.assert_array_equal(lax.ragged_dot(jnp.ones((5, 3)), jnp.ones((0, 3, 4)), no_sizes), np.zeros((5, 4)))
    of_none = lax.ragged_dot_general(jnp.ones((5, 3)), jnp.ones((5, 4)), no_sizes, numbers((0,), (0,), (), (), [0], []))
    assert of_none.shape == (0, 3, 4)
