"""One side of the comparison, in a process of its own: both cannot be `jax` in one. Reads requests, answers in JSON.

python -m benchmarks.libraries.worker jax|pullback FOLDER
prepare KEY       makes the work, calls it for the first time, writes its results into the folder
run COUNT         seconds of a call, the mean over so many
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np


def main() -> None:
    """Answer requests until the input ends."""
    side, folder = sys.argv[1], Path(sys.argv[2])
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what libraries print is no answer
    warnings.simplefilter("ignore")
    if side == "pullback":
        import pullback

        pullback.install_as_jax()
    import jax

    from benchmarks.libraries import networks, sampling, solvers  # noqa: F401  (they fill the list)
    from benchmarks.libraries.work import ALL

    call: Callable[[], Any] = lambda: None
    for request in sys.stdin:
        what, _, argument = request.strip().partition(" ")
        try:
            if what == "prepare":
                chosen = next(w for w in ALL if w.key == argument)
                call = chosen.make()
                start = time.perf_counter()
                result = jax.block_until_ready(call())
                first = time.perf_counter() - start
                np.savez(folder / f"{side}.npz", *[np.asarray(x) for x in jax.tree.leaves(result)])
                start = time.perf_counter()
                jax.block_until_ready(call())
                answer = {"first": first, "second": time.perf_counter() - start}
            else:
                answer = {"seconds": _seconds(call, int(argument), jax.block_until_ready)}
        except Exception as error:
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {str(error)[:300]}"}
        answers.write(json.dumps(answer) + "\n")


def _seconds(call: Callable[[], Any], count: int, wait: Callable[[Any], Any]) -> float:
    gc.collect()
    gc.disable()
    try:
        start = time.perf_counter()
        for _ in range(count):
            wait(call())
        return (time.perf_counter() - start) / count
    finally:
        gc.enable()


if __name__ == "__main__":
    main()
