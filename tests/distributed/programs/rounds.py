"""Sums and gathers of many processes, which meet in rounds; the number may have no small factors."""

import sys

import numpy as np

import pullback as jax
from pullback import lax
from pullback.experimental import multihost_utils as together
from pullback.sharding import PartitionSpec as P

jax.distributed.initialize()
n = jax.device_count()
me = jax.process_index()
mesh = jax.make_mesh((n,), ("i",))
rng = np.random.default_rng(0)


def sums(v):
    v = v[0]
    parts = lax.psum_scatter(v[: len(v) // n * n], "i", tiled=True)
    return lax.psum(v, "i")[None], parts[None], lax.all_gather(parts, "i")[None], lax.pmax(v[:3], "i")[None]


run = jax.jit(jax.shard_map(sums, mesh=mesh, in_specs=P("i"), out_specs=P("i"), check_vma=False))
digests = []
for count in (n, 40, 5003):  # whole, whole, in parts
    x = rng.normal(size=(n, count)).astype(np.float32)
    cut = jax.make_array_from_callback(x.shape, jax.NamedSharding(mesh, P("i")), lambda index, x=x: x[index])
    got = [np.asarray(y.addressable_shards[0].data)[0] for y in run(cut)]
    total = x.sum(0, dtype=np.float64)
    rows = total[: count // n * n].reshape(n, -1)
    place = list(mesh.devices.flat).index(cut.addressable_shards[0].device)
    for y, want in zip(got, (total, rows[place], rows, x[:, :3].max(0)), strict=True):
        np.testing.assert_allclose(y, want, rtol=1e-5, atol=1e-5)
    again = [np.asarray(y.addressable_shards[0].data)[0] for y in run(cut)]
    assert all(np.array_equal(a, b) for a, b in zip(got, again, strict=True))  # the same bits
    digests.append(np.array([got[0].view(np.int32).sum(), got[2].view(np.int32).sum()]))
together.assert_equal(np.stack(digests))  # on all
sys.stdout.write("done\n")
