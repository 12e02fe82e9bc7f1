"""Work beside a large operation: each process in turn has it before or after, and neither waits for the other.

In the relay the second process goes on with the sum of what it had, while the first works until the operation's end;
that work stands behind the operation in the program, or before it.
"""

import functools
import sys
import time

import numpy as np

import pullback as jax
import pullback.numpy as jnp
from pullback import lax
from pullback.sharding import NamedSharding
from pullback.sharding import PartitionSpec as P

jax.distributed.initialize()
n = jax.device_count()
mesh = jax.make_mesh((n,), ("i",))
ELEMENTS, STEPS = 1 << 17, int(sys.argv[1])


def work(x, w, times=1):
    return lax.fori_loop(0, times * STEPS, lambda _, x: jnp.tanh(x @ w), x)


def both(x, a, w):
    me = lax.axis_index("i")
    first = lax.cond(me == 0, lambda a: work(a, w), lambda a: a, a)
    total = lax.psum(jnp.concatenate([x, first.reshape(-1)]), "i")
    after = lax.cond(me == 1, lambda a: work(a, w), lambda a: a, a + 1)
    parts = lax.psum_scatter(x, "i", tiled=True)
    whole = lax.all_gather(parts * 2, "i", tiled=True)
    onwards = lax.ppermute(whole, "i", [(k, (k + 1) % n) for k in range(n)])
    changed = lax.all_to_all(x, "i", 0, 0, tiled=True)
    return total * 2 + 1, after, onwards, changed, lax.fori_loop(0, 3, lambda k, y: lax.psum(y, "i") / n + k, x)


def relay(x, a, w, before=False):
    me = lax.axis_index("i")

    def alone():
        return lax.cond(me == 0, lambda a: work(a, w, 2), lambda a: a, a + 1)

    first = lax.cond(me == 1, lambda a: work(a, w), lambda a: a, a)
    beside = alone() if before else None
    total = lax.psum(jnp.concatenate([x, first.reshape(-1)]), "i")
    beside = beside if before else alone()
    after = lax.cond(me == 1, lambda t: work(t, w), lambda t: t, total[-a.size :].reshape(a.shape))
    return total, beside, after


def over(function, *into):
    return jax.jit(jax.shard_map(function, mesh=mesh, in_specs=into, out_specs=P("i"), check_vma=False))


def cut(x, spec):
    return jax.make_array_from_callback(x.shape, NamedSharding(mesh, spec), lambda index: x[index])


rng = np.random.default_rng(0)
x = rng.normal(size=ELEMENTS * n).astype(np.float32)
a, w = rng.normal(size=(2, 256, 256)).astype(np.float32)
run, run_relay, run_early = (over(f, P("i"), P(), P()) for f in (both, relay, functools.partial(relay, before=True)))
arguments = cut(x, P("i")), cut(a, P()), cut(w / 16, P())
shards = [r.addressable_shards[0] for r in run(*arguments)]
results = [np.asarray(shard.data) for shard in shards]
rows = x.reshape(n, ELEMENTS)
me = list(mesh.devices.flat).index(shards[0].device)
np.testing.assert_allclose(results[0][:ELEMENTS], 2 * rows.sum(0) + 1, rtol=1e-5, atol=1e-5)
np.testing.assert_allclose(results[2], 2 * rows.sum(0), rtol=1e-5, atol=1e-5)
np.testing.assert_array_equal(results[3].reshape(n, -1), rows.reshape(n, n, -1)[:, me])
np.testing.assert_allclose(results[4], rows.mean(0) + 3, rtol=1e-5, atol=1e-5)

together = over(lambda x: lax.psum(x, "i"), P("i"))
one = cut(np.ones(n, np.float32), P("i"))


def least(run):
    """Seconds until all processes have done it."""
    found = np.inf
    for _ in range(int(sys.argv[2])):
        jax.block_until_ready(together(one))
        begin = time.perf_counter()
        jax.block_until_ready(run(*arguments))
        jax.block_until_ready(together(one))
        found = min(found, time.perf_counter() - begin)
    return found


total = np.asarray(run_relay(*arguments)[0].addressable_shards[0].data)
np.testing.assert_allclose(total[:ELEMENTS], rows.sum(0), rtol=1e-5, atol=1e-5)
for early, late in zip(run_early(*arguments), run_relay(*arguments)):
    np.testing.assert_array_equal(early.addressable_shards[0].data, late.addressable_shards[0].data)
digest = [float(np.abs(r).sum(dtype=np.float64)) for r in (results[0], total)]
# In one piece: the others write, too.
sys.stdout.write(f"results {digest} seconds {least(run)} relay {least(run_relay)} early {least(run_early)}\n")
