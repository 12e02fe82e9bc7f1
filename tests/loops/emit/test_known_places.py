"""Places of elements that are known while code is written, from indices and constants."""

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp


@pytest.mark.parametrize("count, more, size", [(8, 8, 40), (4, 4, 7), (12, 4, 16)])
@pytest.mark.parametrize("form", ["joined", "chosen"])
def test_places_in_tables_that_are_not_read_may_lie_outside(count, more, size, form):
    """A choice between a table and something else asks for the table's elements at places that it has not."""
    table = np.random.default_rng(0).integers(0, size, count)
    x = np.arange(size, dtype=np.float32)
    along = np.arange(count + more)

    def joined(x):
        return 2 * x[jnp.concatenate([jnp.asarray(table), jnp.arange(more) % size])]

    def chosen(x):
        return jnp.where(along < count, x[jnp.asarray(table)[jnp.minimum(jnp.arange(count + more), count - 1)]], 0.0)

    want = {
        "joined": 2 * x[np.concatenate([table, np.arange(more) % size])],
        "chosen": np.where(along < count, x[table[np.minimum(along, count - 1)]], 0),
    }
    np.testing.assert_array_equal(jax.jit({"joined": joined, "chosen": chosen}[form])(x), want[form])


@pytest.mark.parametrize("dtype", ["f4", "i4", "i2"])
@pytest.mark.parametrize("n", [130, 150, 40])
def test_rows_at_places_that_ascend_unevenly(n, dtype):
    """In straight code, a register of them by contiguous loads and a shuffle; long enough rows need many turns."""
    rows = np.random.default_rng(0).standard_normal((9, 100)).astype("f4")
    rows = (100 * rows).astype(dtype)
    places = (np.arange(n) * 64 // n) + np.arange(n) % 2
    taken = jax.jit(lambda x: 2 * x[:, places] - x[:, places + 3])
    np.testing.assert_array_equal(taken(rows), 2 * rows[:, places] - rows[:, places + 3])
