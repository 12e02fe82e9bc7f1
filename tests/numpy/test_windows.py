"""`jax.ds`: windows of computed starts, read, written, mixed with other indices."""

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp

X, M = np.arange(10.0, dtype=np.float32), np.arange(12.0, dtype=np.float32).reshape(3, 4)


@pytest.mark.parametrize("start", [2, 8, -3, -20, np.int8(-1)])
def test_read_and_written(start):
    """A negative start counts from the end where it is read; it is not inside where it is written or filled."""
    first = int(start) + (10 if start < 0 else 0)
    inside = 0 <= start <= 7
    near = min(max(first, 0), 7)
    clipped = min(max(int(start), 0), 7)
    written, moved, filled = X.copy(), X.copy(), np.full(3, -1.0)
    if inside:
        written[start : start + 3] = 5
        filled = X[start : start + 3]
    moved[clipped : clipped + 3] = 5
    x = jnp.asarray(X)
    for run in (lambda f: f(start), lambda f: jax.jit(f)(start), lambda f: jax.vmap(f)(jnp.asarray([start]))[0]):
        np.testing.assert_array_equal(run(lambda i: x[jax.ds(i, 3)]), X[near : near + 3])
        np.testing.assert_array_equal(run(lambda i: x.at[jax.ds(i, 3)].get()), X[near : near + 3])
        np.testing.assert_array_equal(run(lambda i: x.at[jax.ds(i, 3)].get(mode="fill", fill_value=-1)), filled)
        np.testing.assert_array_equal(run(lambda i: x.at[jax.ds(i, 3)].set(5)), written)
        np.testing.assert_array_equal(run(lambda i: x.at[jax.ds(i, 3)].set(5, mode="clip")), moved)
        np.testing.assert_array_equal(run(lambda i: x.at[jax.ds(i, 3)].apply(lambda v: v * 0 + 5)), written)
    slope = jax.grad(lambda x: (x.at[jax.ds(start, 3)].mul(2)[jax.ds(start, 3)]).sum())(X)
    want = np.zeros(10)
    want[near : near + 3] = 2 if inside else 1
    np.testing.assert_array_equal(slope, want)


def test_beside_other_indices():
    i, ds = jnp.int32(1), jax.ds
    for f, want in [
        (lambda m, i: m[i, ds(i, 2)], M[1, 1:3]),
        (lambda m, i: m[ds(i, 2), ds(i, 2)], M[1:3, 1:3]),
        (lambda m, i: m[np.array([0, 1]), ds(i, 2)], M[:2, 1:3]),
        (lambda m, i: m[..., None, ds(i, 2)], M[:, None, 1:3]),
        (lambda m, i: m[1:, ds(i, 2)], M[1:, 1:3]),
        (lambda m, i: m[np.array([True, False, True]), ds(2)], M[::2, :2]),
        (lambda m, i: m[0, ds(i, 2, 2)], M[0, 1::2]),
        (lambda m, i: m[ds(i, 0)], M[:0]),
        (lambda m, i: m[ds(i, 2, 2), np.array([0, 1])], M[1:, :2]),  # the second row of the window is the last there is
        (lambda m, i: m[ds(i, 3), np.array([0, 1])], M[:, :2]),
        (lambda m, i: m[ds(i - 3, 2), np.array([0, 1])], M[:2, :2]),  # beside arrays, -2 is out of bounds
        (lambda m, i: m[ds(i - 3, 2), ::2], M[:2, ::2]),
        (lambda m, i: m[ds(i - 3, 2), ::-1], M[1:, ::-1]),
        (lambda m, i: m[ds(i - 3, 2), 9], M[1:, 3]),
        (lambda m, i: m[None, ds(i, 2), ..., True], M[None, 1:, :, None]),
        (lambda m, i: m.at[ds(i, 1), ds(i, 2)].set(0)[1, 1:3], np.zeros(2)),
        (lambda m, i: m.at[np.array([0, 2]), ds(0, 3, 2)].set(0)[2], np.array([0, 9, 0, 11])),
    ]:
        np.testing.assert_array_equal(f(jnp.asarray(M), 1), want)
        np.testing.assert_array_equal(f(jnp.asarray(M), i), want)
        np.testing.assert_array_equal(jax.jit(f)(M, i), want)
    added = M.copy()
    added[1, 1:3] += 7
    np.testing.assert_array_equal(jax.jit(lambda i: jnp.asarray(M).at[i, ds(i, 2)].add(7))(1), added)
    np.testing.assert_array_equal(jnp.asarray(M).at[1, ds(1, 2)].apply(lambda x: x + 7), added)


def test_what_is_wrong():
    x = jnp.asarray(X)
    for bad, error in [
        (lambda: x[jax.ds(0, 11)], TypeError),
        (lambda: x[jax.ds(jnp.arange(2), 3)], TypeError),
        (lambda: x[jax.ds(1.5, 3)], TypeError),
        (lambda: jax.jit(lambda n: x[jax.ds(0, n)])(2), TypeError),
        (lambda: jax.ds(0, 2, -1), ValueError),
        (lambda: x[0, jax.ds(0, 2)], IndexError),
        (lambda: x[jax.ds(0, -1)], TypeError),
        (lambda: x.at[jax.ds(-1, 2)].get(wrap_negative_indices=False), ValueError),
    ]:
        with pytest.raises(error):
            bad()
    assert jax.tree.leaves(jax.ds(1, 2)) == [] and jax.tree.leaves(jax.ds(3.0, 2)) == [3.0]
    r = jax.new_ref(x)
    r[jax.ds(2, 3)] = jnp.zeros(3)
    np.testing.assert_array_equal(r[jax.ds(1, 4)], [1, 0, 0, 0])
