"""What each pass buys: programs timed with and without it, interleaved.

    python -m benchmarks.passes [--only NAME] [--markdown FILE]

A pass is left out by the switch `skip`; passes that others need can't be. The programs are those of the groups whose
name or program contains one of PROGRAMS, chosen so that each kind of work occurs.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.program import Program
from benchmarks.programs import groups
from benchmarks.report import mean
from benchmarks.sides import JaxLike

# Group: how many of its programs, evenly taken.
CHOSEN = {
    "elementwise": 3, "reductions": 3, "rowwise": 3, "movement": 3, "indexing": 2, "products": 2, "convolution": 2,
    "derivatives": 4, "loops": 3, "training": 2, "random": 2,
}  # fmt: skip
FUSION = {
    "producers": "values computed where they are used, instead of stored",
    "siblings": "one loop nest for several results of one iteration space",
    "rows": "shared outer loops for groups that use one another's rows",
}
LONGEST = 2.0  # seconds of one call without a pass, after which the program is left out of its figures


def main(argv: list[str] | None = None) -> int:
    """Time and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.passes", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--only", default="", help="passes whose name contains this")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--markdown", type=Path, help="write the table here")
    options = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    side = JaxLike("pullback", "pullback")
    chosen = programs()
    lines = [
        f"Run time without the pass per run time with it, and compile time alike: means over {len(chosen)} programs.",
        "",
        "| pass | run time | compile time | most by it |",
        "| --- | --- | --- | --- |",
    ]
    print("\n".join(lines), flush=True)
    for name in names():
        if options.only not in name:
            continue
        runs, compiles, most = measure(side, name, chosen, options.rounds)
        gains = ", ".join(f"{label} {ratio:.1f}x" for ratio, label in most)
        lines.append(f"| {name} | {mean(runs) or 1:.2f}x | {mean(compiles) or 1:.2f}x | {gains} |")
        print(lines[-1], flush=True)
    if options.markdown:
        options.markdown.write_text("\n".join(lines) + "\n")
    return 0


def names() -> list[str]:
    """Passes that can be left out."""
    from pullback.pipelines import JAXPR_PASSES, LOOP_PASSES

    passes = (
        [p.name for p in JAXPR_PASSES if not p.needed] + list(FUSION) + [p.name for p in LOOP_PASSES if not p.needed]
    )
    return list(dict.fromkeys(passes))


def programs() -> list[tuple[str, Program]]:
    """Some programs of each group."""
    found = []
    everything = groups()
    for group, count in CHOSEN.items():
        jitted = [p for p in everything.get(group, []) if p.jit]
        step = max(1, len(jitted) // count)
        found += [(group, p) for p in jitted[::step][:count]]
    return found


def measure(
    side: JaxLike, name: str, chosen: list[tuple[str, Program]], rounds: int
) -> tuple[list[float], list[float], list[tuple[float, str]]]:
    """(ratios of run times, ratios of compile times, the two programs that gain most)."""
    runs, compiles, gains = [], [], []
    for group, program in chosen:
        side.set_x64(program.x64)
        try:
            inputs = side.inputs(program, program.inputs(np.random.default_rng(0)))
            with_it, without = (ready(side, program, inputs, skip) for skip in (frozenset(), frozenset({name})))
            if with_it is None or without is None:
                continue
            times = [min(once(call) for _ in range(rounds)) for call, _ in (with_it, without, with_it, without)]
            ratio = min(times[1], times[3]) / min(times[0], times[2])
            runs.append(ratio)
            compiles.append(without[1] / with_it[1])
            gains.append((ratio, f"{group}: {program.name}"))
        finally:
            side.set_x64(False)
    gains.sort(reverse=True)
    return runs, compiles, [g for g in gains[:2] if g[0] > 1.1]


def ready(
    side: JaxLike, program: Program, inputs: tuple, skip: frozenset[str]
) -> tuple[Callable[[], Any], float] | None:
    """(a call, seconds to compile it) without some passes; None if that does not work or takes too long."""
    import pullback
    from pullback.util.switches import switches

    with switches.set(skip=skip):
        pullback.clear_caches()
        function = side.jitted(program)
        start = time.perf_counter()
        try:
            compiled = function.lower(*inputs).compile()
        except NotImplementedError:
            return None
        seconds = time.perf_counter() - start
        dynamic = [x for k, x in enumerate(inputs) if k not in program.static]
        start = time.perf_counter()
        compiled(*dynamic)
        if time.perf_counter() - start > LONGEST:
            return None
        return (lambda: compiled(*dynamic)), seconds


def once(call: Callable[[], Any]) -> float:
    """Mean time of a few milliseconds' worth of calls."""
    start = time.perf_counter()
    call()
    count = max(1, int(0.01 / max(time.perf_counter() - start, 1e-7)))
    start = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - start) / count


if __name__ == "__main__":
    sys.exit(main())
