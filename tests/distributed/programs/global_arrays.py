"""Devices, meshes, arrays over several processes, and what processes do together."""

import sys

import numpy as np

import pullback as jax
import pullback.numpy as jnp
from pullback.experimental import multihost_utils as together
from pullback.experimental.custom_partitioning import custom_partitioning
from pullback.experimental.mesh_utils import create_hybrid_device_mesh
from pullback.sharding import NamedSharding
from pullback.sharding import PartitionSpec as P


def raises(kind, function, text):
    try:
        function()
    except kind as error:
        assert text in str(error), str(error)
        return
    raise AssertionError(f"no {kind.__name__}")


def whole(x):
    return together.process_allgather(x, tiled=True)


jax.distributed.initialize()
rank, count = jax.process_index(), jax.process_count()
devices = jax.devices()
local = jax.local_device_count()
assert jax.distributed.is_initialized()
assert jax.device_count() == len(devices) == local * count
assert [d.process_index for d in devices] == [k // local for k in range(len(devices))]
assert [d.id for d in devices] == list(range(len(devices)))
assert jax.local_devices() == [d for d in devices if d.process_index == rank] == jax.local_devices(rank)
assert jnp.ones(2).devices() == {jax.local_devices()[0]} and jnp.ones(2).is_fully_addressable
assert list(jax.process_indices()) == list(range(count))
raises(RuntimeError, jax.distributed.initialize, "only be called once")

n = len(devices)
mesh = jax.make_mesh((n,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
assert mesh.is_multi_process == (count > 1) and mesh.local_mesh.size == local and len(mesh.local_devices) == local
rows, everywhere = NamedSharding(mesh, P("i")), NamedSharding(mesh, P())
assert rows.addressable_devices == set(jax.local_devices()) and rows.is_fully_addressable == (count == 1)

# Making arrays.
table = np.arange(6.0 * n, dtype=np.float32).reshape(2 * n, 3)
x = jax.make_array_from_callback((2 * n, 3), rows, lambda index: table[index])
assert isinstance(x, jax.Array) and x.shape == (2 * n, 3) and x.dtype == np.float32 and x.sharding == rows
assert x.is_fully_addressable == (count == 1) and x.is_fully_replicated == (n == 1)
assert len(x.addressable_shards) == local and len(x.global_shards) == n and x.devices() == set(devices)
for shard in x.addressable_shards:
    assert np.array_equal(shard.data, table[shard.index]) and shard.replica_id == 0
    assert shard.data.devices() == {shard.device}
assert sum(shard.data is None for shard in x.global_shards) == n - local
assert np.array_equal(x.addressable_data(0), table[2 * local * rank : 2 * local * rank + 2])
assert np.array_equal(whole(x), table)
if count > 1:
    not_here = "spans non-addressable"
    raises(RuntimeError, lambda: np.asarray(x), not_here)
    raises(RuntimeError, lambda: float(x[:1, 0:1].sum(keepdims=True) + x), not_here)
    raises(RuntimeError, lambda: jax.device_get(x), not_here)
    raises(RuntimeError, lambda: x.tolist(), not_here)
    raises(ValueError, lambda: together.process_allgather(x), "is whole already")

mine = jax.make_array_from_process_local_data(rows, np.full((2 * local, 3), rank))
assert np.array_equal(whole(mine)[:, 0], np.repeat(np.arange(count), 2 * local))
keys = jax.make_array_from_process_local_data(rows, jax.random.split(jax.random.key(rank), local))
assert keys.shape == (n,) and keys.dtype == jax.random.key(0).dtype
full = jax.make_array_from_process_local_data(rows, table, table.shape)
assert np.array_equal(whole(full), table)
tree = jax.make_array_from_process_local_data({"a": rows, "b": everywhere}, {"a": np.ones(local), "b": np.ones(3)})
assert tree["a"].shape == (n,) and tree["b"].is_fully_replicated and np.array_equal(tree["b"], np.ones(3))
if count > 1:
    wrong = np.ones(2 * local + 1)
    raises(ValueError, lambda: jax.make_array_from_process_local_data(rows, wrong, (2 * n,)), "or gives all")
single = [jax.device_put(np.full((1,), d.id, np.int32), d) for d in jax.local_devices()]
parts = jax.make_array_from_single_device_arrays((n,), rows, single)
assert np.array_equal(whole(parts), np.arange(n))
raises(ValueError, lambda: jax.make_array_from_single_device_arrays((n + n,), rows, single), "Expected shard shape")

# Moving them.
put = jax.device_put(table, rows)
assert np.array_equal(whole(put), table) and put.sharding == rows
gathered = jax.device_put(put, everywhere)
assert gathered.is_fully_replicated and np.array_equal(gathered, table)
columns = jax.device_put(np.arange(4.0 * n).reshape(4, n), NamedSharding(mesh, P(None, "i")))
assert np.array_equal(whole(jax.device_put(columns, NamedSharding(mesh, P()))), np.arange(4.0 * n).reshape(4, n))
if count > 1:
    raises(AssertionError, lambda: jax.device_put(np.full(n, rank), rows), "not the same in all processes")

# Computing with them.
assert np.array_equal(whole(put * 2 + 1), table * 2 + 1) and (put * 2).sharding == rows
assert float(jnp.sum(put)) == table.sum() and np.array_equal(jnp.max(put, axis=0), table.max(0))
assert np.array_equal(whole(jnp.sum(put, axis=1)), table.sum(1))
product = put @ np.ones(3, np.float32)
assert np.array_equal(product if product.is_fully_replicated else whole(product), table.sum(1))


@jax.jit
def mixed(x, y):
    return jnp.sort(x, axis=0)[::-1] + y, jnp.tanh(x), x.mean()


a, b, c = mixed(put, 1.0)
assert np.array_equal(whole(a) if not a.is_fully_replicated else a, table[::-1] + 1)
np.testing.assert_allclose(whole(b), np.tanh(table), rtol=1e-6)
np.testing.assert_allclose(c, table.mean(), rtol=1e-6)
slope = jax.grad(lambda w: jnp.sum((put * w) ** 2))(2.0)
np.testing.assert_allclose(slope, 4 * (table**2).sum(), rtol=1e-6)
laid = jax.jit(lambda x: x + 1, in_shardings=everywhere, out_shardings=rows)(table)
assert laid.sharding.is_equivalent_to(rows, 2) and np.array_equal(whole(laid), table + 1)
assert np.array_equal(whole(jax.jit(lambda: put[1:3] + 0)()), table[1:3])

# Together.
assert np.array_equal(together.process_allgather(np.array([rank])), np.arange(count)[:, None])
assert np.array_equal(together.process_allgather({"r": np.array([rank])}, tiled=True)["r"], np.arange(count))
assert together.broadcast_one_to_all(np.array(rank)) == 0
assert together.broadcast_one_to_all(np.array(rank), is_source=rank == count - 1) == count - 1
together.sync_global_devices("here")
together.assert_equal({"a": np.ones(3), "b": 2})
if count > 1:
    raises(AssertionError, lambda: together.assert_equal(rank, "ranks differ"), "ranks differ")
    raises(AssertionError, lambda: together.sync_global_devices(f"at {rank}"), "name mismatch")
joined = together.host_local_array_to_global_array(np.full((2 * local, 2), rank), mesh, P("i"))
assert joined.shape == (2 * n, 2)
assert np.array_equal(together.global_array_to_host_local_array(joined, mesh, P("i")), np.full((2 * local, 2), rank))
assert together.global_array_to_host_local_array(joined, mesh, P()).shape == (2 * n, 2)

# Programs ahead of time, donation, types, keys, what is shown, and where shard_map's results lie.
compiled = jax.jit(lambda x: 2 * x, in_shardings=rows, out_shardings=rows).lower(x).compile()
assert np.array_equal(whole(compiled(x)), 2 * table)
given = jax.make_array_from_callback((2 * n, 3), rows, lambda index: table[index])
assert np.array_equal(whole(jax.jit(lambda x: x + 1, donate_argnums=0)(given)), table + 1) and given.is_deleted()
ring = [(k, (k + 1) % n) for k in range(n)]
turn = jax.shard_map(lambda x: jax.lax.ppermute(x, "i", ring), mesh=mesh, in_specs=P("i"), out_specs=P("i"))
moved = jax.jit(turn)(x)
assert moved.sharding.is_equivalent_to(rows, 2) and moved.addressable_data(0).shape == (2, 3)
assert np.array_equal(whole(moved), np.roll(table, 2, 0))
explicit = jax.make_mesh((n,), ("i",), axis_types=(jax.sharding.AxisType.Explicit,))
with jax.set_mesh(explicit):
    typed = jax.make_array_from_callback((2 * n, 3), NamedSharding(explicit, P("i")), lambda index: table[index])
    assert jax.typeof(typed).sharding.spec == P("i", None)
    assert np.array_equal(whole(jax.grad(lambda x: (x**2).sum())(typed)), 2 * table)  # eager, as on one process
    raises(jax.errors.ShardingTypeError, lambda: jnp.sort(typed, 0), "is cut along dimension 0")
zeros = jnp.zeros_like(typed)  # where the array lies, with no mesh in force
assert jax.typeof(zeros).sharding.spec == P("i", None) and zeros.addressable_data(0).shape == (2, 3)
key = jax.random.key(0)
normal = jax.jit(lambda key: jax.random.normal(key, (n,)), out_shardings=rows)
assert np.array_equal(whole(normal(key)), jax.random.normal(key, (n,)))
assert np.array_equal(whole(normal(jax.device_put(key, everywhere))), jax.random.normal(key, (n,)))
keys = jax.random.split(key, n)
made = jax.jit(lambda key: jax.random.split(key, n), out_shardings=rows)(key)
for there in (made, jax.device_put(keys, rows)):
    assert there.shape == (n,) and there.sharding.spec == P("i") and len(there.addressable_shards) == local
    assert np.array_equal(whole(jax.random.key_data(there)), jax.random.key_data(keys))
    drawn = jax.jit(lambda keys, x: jax.vmap(jax.random.uniform)(keys) + x.sum())(there, x)
    assert np.allclose(whole(drawn), jax.vmap(jax.random.uniform)(keys) + table.sum())
seen = []
jax.jit(lambda x: (jax.debug.callback(seen.append, x.sum()), x * 2)[1])(x).block_until_ready()
jax.effects_barrier()
assert [float(s) for s in seen] == ([table.sum()] if rank == 0 else [])
if count > 1:
    raises(ValueError, lambda: jax.jit(lambda x: x, in_shardings=rows)(table), "non-trivial shardings for numpy inputs")
    raises(ValueError, lambda: x + jax.device_put(table, jax.local_devices()[0]), "incompatible devices")
for found, wanted in [  # what makes sizes of values: all processes get the values
    (jax.numpy.nonzero(x > 2)[0], np.nonzero(table > 2)[0]),
    (jax.numpy.unique(x % 2), np.unique(table % 2)),
    (x[x[:, 0] > 2], table[table[:, 0] > 2]),
]:
    assert np.array_equal(found if found.is_fully_addressable else whole(found), wanted)
if count > 1:  # on the devices of all processes but the last, which runs the same programs and has no part of results
    some = jax.make_mesh((n - local,), ("i",), (jax.sharding.AxisType.Auto,), devices=devices[:-local])
    few = table[: 2 * (n - local)]
    for spec in (P("i"), P()):
        part = jax.device_put(few, NamedSharding(some, spec))
        mean, grown = jax.jit(lambda x: (x.mean(), jnp.concatenate([x, x + 1])))(part)
        assert grown.shape == (len(few) * 2, 3) and part.is_fully_replicated == (spec == P() or n - local == 1)
        assert len(part.addressable_shards) == len(grown.addressable_shards) == (local if rank < count - 1 else 0)
        if rank < count - 1:
            assert np.isclose(float(mean), few.mean())
        else:
            assert repr(mean) == "Array(shape=(), dtype=float32)" and mean.on_device_size_in_bytes() == 0
            raises(RuntimeError, lambda mean=mean: np.asarray(mean), "non-addressable")
with jax.set_mesh(explicit):  # the gradient of what is reduced is a term on each process
    weights = jax.device_put(np.ones((3, 2), np.float32), P(None, None, reduced={"i"}))
    rows = jax.device_put(table, P("i", None))
    gradient = jax.jit(jax.grad(lambda w: jnp.sum(jnp.tanh(rows @ w) * 2)))(weights)
    assert gradient.sharding.spec == P(None, None, unreduced={"i"})
    gradient = jax.jit(lambda g: jax.sharding.reshard(g, P(None, None)))(gradient)
    given = jax.device_put(table[:2], P(None, None, unreduced={"i"}))  # the first device has the value, others zeros
    for shard in given.addressable_shards:
        assert np.array_equal(shard.data, table[:2] * (shard.device == devices[0]))
    assert np.array_equal(jax.jit(lambda x: jax.sharding.reshard(x + x, P()))(given), 2 * table[:2])
plain = jax.grad(lambda w: jnp.sum(jnp.tanh(table @ w) * 2))(np.ones((3, 2), np.float32))
assert np.allclose(gradient, plain, rtol=1e-5)  # sums have another order
for spec in (P("i", None), P(None, None)) if count > 1 else ():  # results lie as users say it, in their words
    place = NamedSharding(mesh, spec)
    for said in (
        jax.jit(lambda x: x * 2, out_shardings=place)(x),
        jax.jit(lambda x: x * 2)(jax.device_put(table, place)),
    ):
        assert tuple(said.sharding.spec) == tuple(spec), said.sharding
# Functions that say how they are cut: each device computes its part by the user's function.
by_parts = custom_partitioning(lambda x: x)
by_parts.def_partition(
    lambda mesh, args, result: (mesh, lambda part: part + jax.lax.axis_index("i"), result.sharding, (result.sharding,)),
    sharding_rule="a b -> a b",
)
if n > 1:
    assert np.array_equal(whole(jax.jit(by_parts)(x)), table + np.repeat(np.arange(n), 2)[:, None])
hybrid = create_hybrid_device_mesh((local,), (count,), process_is_granule=True)
assert list(hybrid) == devices

# pmap: each process maps over its own devices.
summed = jax.pmap(lambda x: (jax.lax.psum(x, "i"), jax.lax.axis_index("i")), "i")
for _ in range(3):
    total, place = summed(np.full((local, 2), rank + 1.0))
    assert np.array_equal(total, np.full((local, 2), local * count * (count + 1) / 2))
    assert list(place) == list(range(rank * local, (rank + 1) * local))
if count > 1:
    raises(ValueError, lambda: summed(np.ones((local + 1, 2))), "each maps over all of its own")

jax.distributed.shutdown()
assert not jax.distributed.is_initialized()
sys.stdout.write("done\n")  # in one piece: the others write, too
