"""Updates of one element of each row are choices where the rows are computed, and mean what scatters mean."""

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import lax

rng = np.random.default_rng(0)
ROWS, COLUMNS = 7, 5
PLACES = {
    "int32": np.array([3, 0, 4, 4, 1, 2, 0], "i4"),
    "uint8": np.array([3, 0, 4, 4, 1, 255, 5], "u1"),
    "outside": np.array([0, -1, 4, 5, -5, -6, 99], "i8"),
}


def scatters(f, *args):
    return "scatter" in pullback.jit(f).lower(*args).as_text("jaxpr")


def same(f, *args):
    """The compiled program gives what the equations give one by one, and has no scatter."""
    args = [jnp.asarray(a) for a in args]
    assert not scatters(f, *args)
    for got, want in zip(pullback.tree.leaves(pullback.jit(f)(*args)), pullback.tree.leaves(f(*args))):
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("mode", [None, "clip", "drop"])
@pytest.mark.parametrize("places", PLACES)
@pytest.mark.parametrize("dtype", ["float32", "int32", "complex64", "uint8"])
def test_updates_of_one_element_a_row(dtype, places, mode):
    x, u = ((3 * rng.standard_normal(s)).astype(dtype) for s in ((ROWS, COLUMNS), (ROWS,)))
    names = ["set", "add", "subtract", "multiply", "min", "max"][: 4 if dtype == "complex64" else 6]

    def update(x, u, i):
        return [getattr((x + x).at[jnp.arange(ROWS), i], name)(u, mode=mode) for name in names]

    same(update, x, u, PLACES[places])


def _loss(pick):
    return pullback.grad(lambda x, i: jnp.sum(jnp.sin(pick(jnp.exp(x), i))))


@pytest.mark.parametrize(
    "pick, shape",
    [
        (lambda x, i: jnp.take_along_axis(x, i[..., None], 2), (4, 6)),
        (lambda x, i: jnp.take_along_axis(x, i[:, None], 1), (4, 5)),
        (lambda x, i: x[jnp.arange(4)[:, None], jnp.arange(6), i], (4, 6)),
        (lambda x, i: x[jnp.arange(4), i], (4,)),
        (lambda x, i: x[jnp.arange(4), i, i // 2], (4,)),
        (lambda x, i: x[i, :, jnp.arange(5)], (5,)),
        (lambda x, i: pullback.vmap(lambda row, k: row[k])(x, i), (4,)),
        (lambda x, i: pullback.vmap(pullback.vmap(lambda row, k: row[k]))(x, i), (4, 6)),
    ],
)
def test_gradients_of_one_element_of_each_row(pick, shape):
    rng = np.random.default_rng(0)  # of its own: cosines near zero keep few digits
    same(_loss(pick), rng.standard_normal((4, 6, 5)).astype("f4"), rng.integers(0, 4, shape))


def test_scalars_rows_and_windows():
    x, i = rng.standard_normal((6, 5)).astype("f4"), rng.integers(0, 5, 6)
    same(lambda x, i: (2 * x).at[i[0]].set(x[1]), x, i)
    same(lambda x, i: (2 * x).at[i[0], i[1]].add(1.0), x, i)
    same(lambda x, i: (2 * x).at[jnp.arange(6), i].set(jnp.nan), x, i)
    same(lambda x, i: jnp.zeros((6, 5), bool).at[jnp.arange(6), i].set(True), x, i)
    same(lambda x, i: pullback.vmap(lambda r, k: lax.dynamic_update_slice(2 * r, r[:1], (k,)))(x, i), x, i)
    same(lambda x, i: lax.fori_loop(0, 5, lambda k, c: (c / 2).at[jnp.arange(6), i].add(1.0), x), x, i)


def test_what_may_meet_or_is_given_stays_a_scatter():
    x, i = jnp.asarray(rng.standard_normal((6, 5)).astype("f4")), jnp.asarray(rng.integers(0, 5, 6))
    assert scatters(lambda x, i: (2 * x).at[i, i].add(1.0), x, i)
    assert scatters(lambda x, i: (2 * x).at[jnp.arange(5), i[:5]].add(1.0), x, i)
    assert scatters(lambda x, i: x.at[jnp.arange(6), i].add(1.0), x, i)
    assert scatters(lambda x, i: lax.fori_loop(0, 5, lambda k, c: c.at[jnp.arange(6), i].add(1.0), x), x, i)
