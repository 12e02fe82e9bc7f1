"""Ragged exchanges: rows of each device's operand that others have afterwards."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import lax
from pullback.sharding import AxisType
from pullback.sharding import PartitionSpec as P

N = 4
MESH = jax.make_mesh((N,), ("i",), axis_types=(AxisType.Auto,))
SENT = np.random.default_rng(0).integers(0, 3, (N, N))  # SENT[i, j] rows go from i to j
X = np.random.default_rng(1).standard_normal((N, 12, 2)).astype(np.float32)
BEFORE = -np.ones((N, 10, 2), np.float32)
VECTORS = [np.cumsum(SENT, 1) - SENT, SENT, np.cumsum(SENT, 0) - SENT, SENT.T]


def exchange(x, out, *vectors):
    return lax.ragged_all_to_all(x, out, *vectors, axis_name="i")


def wanted():
    after = BEFORE.copy()
    starts, _, places, _ = VECTORS
    for i, j in np.ndindex(N, N):
        after[j, places[i, j] :][: SENT[i, j]] = X[i, starts[i, j] :][: SENT[i, j]]
    return after


@pytest.mark.parametrize("check_vma", [True, False])
def test_rows_go_where_their_device_says(check_vma):
    over = jax.shard_map(exchange, mesh=MESH, in_specs=(P("i"),) * 6, out_specs=P("i"), check_vma=check_vma)
    flat = [a.reshape(-1, *a.shape[2:]) for a in (X, BEFORE, *VECTORS)]
    np.testing.assert_array_equal(jax.jit(over)(*flat), wanted().reshape(-1, 2))
    found = jax.grad(lambda x: (over(x, *flat[1:]) ** 2).sum())(flat[0]).reshape(X.shape)
    goes = np.arange(12)[None, :, None] < SENT.sum(1)[:, None, None]
    np.testing.assert_array_equal(found, np.where(goes, 2 * X, 0))


def test_several_parts_for_each():
    starts, sizes, places, comes = (np.stack([v, v], 2).reshape(N, 2 * N) for v in VECTORS)
    sizes[:, 1::2] = comes[:, 1::2] = 0
    found = jax.vmap(exchange, axis_name="i")(X, BEFORE, starts, sizes, places, comes)
    np.testing.assert_array_equal(found, wanted())


@pytest.mark.parametrize(
    "at, value, text",
    [
        (2, jnp.zeros((N, N)), "input_offsets must be integer type"),
        (3, np.zeros((N, N, 1), int), "send_sizes must be a vector"),
        (4, np.zeros((N, 3), int), "output_offsets has 3 entries, for 4 devices"),
        (1, jnp.zeros((N, 10, 3)), "rows of one shape"),
    ],
)
def test_what_is_no_exchange(at, value, text):
    args = [X, BEFORE, *VECTORS]
    args[at] = value
    with pytest.raises(ValueError, match=text):
        jax.vmap(exchange, axis_name="i")(*args)
