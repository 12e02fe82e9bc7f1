"""One side of the benchmarks: answers 'names', 'prepare NAME' and 'time NAME' on standard input, in JSON lists."""

from __future__ import annotations

import json
import sys
import time

import numpy as np

from benchmarks.programs import programs

BATCH_SECONDS = 0.05


def main(backend: str) -> None:
    """Serve requests until the input ends."""
    if backend == "pullback":
        import pullback

        pullback.install_as_jax()
    table = programs(backend)
    calls: dict[str, object] = {}
    counts: dict[str, int] = {}
    for line in sys.stdin:
        request, *rest = json.loads(line)
        if request == "names":
            answer: object = list(table)
        elif request == "prepare":
            answer = prepare(table, rest[0], calls, counts)
        else:
            answer = {"seconds": timed(calls[rest[0]], counts[rest[0]])}
        print(json.dumps(answer), flush=True)


def prepare(table, name: str, calls, counts) -> dict:
    """Build and check a program; None where this side has none."""
    make = table.get(name)
    call = None if make is None else make()
    if call is None:
        return {"check": None, "first": None}
    start = time.perf_counter()
    result = call()
    first = time.perf_counter() - start
    call()
    start = time.perf_counter()
    call()
    once = max(time.perf_counter() - start, 1e-8)
    calls[name], counts[name] = call, max(1, min(100_000, int(BATCH_SECONDS / once)))
    leaves = result if isinstance(result, (tuple, list)) else [result]
    return {"check": float(sum(np.sum(np.asarray(x, np.float64)) for x in leaves)), "first": first}


def timed(call, count: int) -> float:
    """Mean time of a batch of calls."""
    start = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - start) / count


if __name__ == "__main__":
    main(sys.argv[1])
