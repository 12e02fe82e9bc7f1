"""Ring attention: attention over a sequence of which no device has more than a part.

Each device has the queries, keys and values of its part of the sequence. Keys and values go around the ring; at each
stop their part of the softmax is added to what is known so far, with the largest logit kept beside, so that nothing
overflows (Liu, Zaharia, Abbeel, "Ring Attention with Blockwise Transformers for Near-Infinite Context", 2023).

    mpiexec -n 4 python -m examples.distributed.attention
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from examples.distributed import _start as common


def make(jax: Any, mesh: Any) -> Any:
    """(queries, keys, values), each [length, heads, size] -> [length, heads, size]."""
    jnp, lax = jax.numpy, jax.lax
    count = mesh.shape["ring"]
    P = jax.sharding.PartitionSpec
    onwards = [(k, (k + 1) % count) for k in range(count)]

    def attend(q, k, v):
        scale = q.shape[-1] ** -0.5

        def add(k, v, top, total, weighted):
            logits = jnp.einsum("qhd,khd->hqk", q, k) * scale
            new = jnp.maximum(top, logits.max(-1))
            weights = jnp.exp(logits - new[..., None])
            shrink = jnp.exp(top - new)
            total = total * shrink + weights.sum(-1)
            weighted = weighted * shrink[..., None] + jnp.einsum("hqk,khd->hqd", weights, v)
            return new, total, weighted

        def stop(_, carry):
            k, v, *known = carry
            known = add(k, v, *known)
            return lax.ppermute(k, "ring", onwards), lax.ppermute(v, "ring", onwards), *known

        length, heads, size = q.shape
        zeros = jnp.zeros((heads, length), q.dtype) + 0 * q[0, 0, 0]  # it differs from device to device
        known = (zeros - jnp.inf, zeros, jnp.zeros((heads, length, size), q.dtype) + 0 * q[0, 0, 0])
        k, v, *known = lax.fori_loop(0, count - 1, stop, (k, v, *known))
        _, total, weighted = add(k, v, *known)
        return jnp.transpose(weighted / total[..., None], (1, 0, 2))

    ring = P("ring")
    return jax.jit(jax.shard_map(attend, mesh=mesh, in_specs=(ring,) * 3, out_specs=ring))


def directly(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    """The same by NumPy, in float64."""
    logits = np.einsum("qhd,khd->hqk", q, k, dtype=np.float64) * q.shape[-1] ** -0.5
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    return np.einsum("hqk,khd->qhd", weights / weights.sum(-1, keepdims=True), v)


def main(argv: list[str] | None = None) -> int:
    """Attend, and compare with NumPy's result."""
    options = common.options("attention", __doc__)
    options.add_argument("--length", type=int, default=512)
    options.add_argument("--heads", type=int, default=4)
    options.add_argument("--size", type=int, default=16)
    given = options.parse_args(argv)
    jax = common.start(given.backend)
    P, NamedSharding = jax.sharding.PartitionSpec, jax.sharding.NamedSharding
    mesh = common.mesh(jax, (jax.device_count(),), ("ring",))
    place = NamedSharding(mesh, P("ring"))
    rng = np.random.default_rng(0)
    whole = [rng.normal(size=(given.length, given.heads, given.size)).astype(np.float32) for _ in range(3)]
    parts = [jax.make_array_from_callback(x.shape, place, lambda index, x=x: x[index]) for x in whole]
    run = make(jax, mesh)
    found = common.whole(jax, run(*parts))
    common.say_seconds(jax, lambda: run(*parts), given.time)
    wrong = float(np.abs(found - directly(*whole)).max())
    common.say(jax, f"sum {float(np.abs(found).sum(dtype=np.float64)):.5f}")
    common.say(jax, f"largest difference from NumPy {wrong:.1e}")
    return int(wrong > 1e-5)


if __name__ == "__main__":
    sys.exit(main())
