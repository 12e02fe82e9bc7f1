"""Times collective operations of compiled programs: one line "name bytes seconds" each, the least of some rounds.

A program does the operation eight times in a row, each on what the one before gave (large reduce-scatters, which give
less, on an operand each); of small operands 50 times that. A time is that of the program, less that of one which does
nothing, for each operation. It runs on pullback or on JAX.

    mpiexec -n 2 python -m benchmarks.scale.ours pullback 15 4 1048576
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np
from examples.distributed import _start

BUFFERS, TIMES = 8, 50


def operations(jax: Any, count: int) -> dict[str, Any]:
    """Operation -> function of the part of a vector; it gives one as long."""
    lax, jnp = jax.lax, jax.numpy
    onwards = [(k, (k + 1) % count) for k in range(count)]
    return {
        "all_reduce": lambda x: lax.psum(x, "i"),
        "all_gather": lambda x: lax.all_gather(x[: x.shape[0] // count], "i", tiled=True),
        "reduce_scatter": lambda x: jnp.concatenate([lax.psum_scatter(x, "i", tiled=True)] * count),
        "all_to_all": lambda x: lax.all_to_all(x, "i", 0, 0, tiled=True),
        "permute": lambda x: lax.ppermute(x, "i", onwards),
    }


def main(argv: list[str]) -> int:
    """`backend rounds bytes...`"""
    backend, rounds, sizes = argv[0], int(argv[1]), [int(n) for n in argv[2:]]
    jax = _start.start(backend)
    count = jax.device_count()
    P = jax.sharding.PartitionSpec
    mesh = _start.mesh(jax, (count,), ("i",))
    place = jax.sharding.NamedSharding(mesh, P("i"))

    def seconds(run: Any, *xs: Any) -> float:
        f = jax.jit(jax.shard_map(run, mesh=mesh, in_specs=P("i"), out_specs=P("i"), check_vma=False))
        least = np.inf
        for r in range(rounds + 2):
            begin = time.perf_counter()
            jax.block_until_ready(f(*xs))
            least = min(least, time.perf_counter() - begin) if r >= 2 else least
        return least

    def in_turn(body: Any, times: int) -> Any:
        def several(x):
            for _ in range(BUFFERS):
                x = body(x)
            return x

        return several if times == 1 else lambda x: jax.lax.fori_loop(0, times, lambda _, x: several(x), x)

    for nbytes in sizes:
        whole = np.zeros(max(nbytes // 4, count) * count, np.float32)

        def made(whole=whole):
            return jax.make_array_from_callback(whole.shape, place, lambda index: whole[index])

        x = made()
        times = TIMES if nbytes < 100_000 else 1
        nothing = seconds(lambda x: x, x)
        for name, body in operations(jax, count).items():
            if name == "reduce_scatter" and times == 1:
                operands = [made() for _ in range(BUFFERS)]
                found = seconds(lambda *xs: [jax.lax.psum_scatter(x, "i", tiled=True) for x in xs], *operands)
            else:
                found = seconds(in_turn(body, times), x)
            found = (found - nothing) / BUFFERS / times
            _start.say(jax, f"{name} {nbytes} {max(found, 1e-9):.9g}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
