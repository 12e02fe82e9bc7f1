"""What each pass buys: programs timed with and without it, interleaved.

    python -m benchmarks.passes [--only NAME] [--page docs/performance.md]

A pass is left out by the switch `skip`; passes that others need can't be. The programs are some of each group, so that
each kind of work occurs, and those of which a pass says that they are its work. No code is taken from disk.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.page import write
from benchmarks.program import Program
from benchmarks.programs import groups
from benchmarks.report import mean
from benchmarks.sides import JaxLike

# Group: how many of its programs, evenly taken.
CHOSEN = {
    "elementwise": 3, "reductions": 3, "rowwise": 3, "movement": 3, "indexing": 2, "products": 2, "convolution": 2,
    "derivatives": 4, "loops": 3, "training": 2, "random": 2,
}  # fmt: skip
# Programs on which certain passes work, by group and the beginning of the name; beside those of CHOSEN.
OWN = {
    "motion": (("loops", ""),), "write_out": (("loops", "Lorenz"), ("linear algebra", "")),
    "split": (("movement", "concat"), ("movement", "pad"), ("ordering", "permutation 10000")),
    "counters": (("indexing", "searchsorted"), ("loops", "element writes"), ("loops", "Kalman")),
    "item_loops": (("products", "attention"),),
    "row_blocks": (("training", "PLN"), ("products", "relu(x")),
    "interchange": (("loops", "scan of 2,000 products"), ("loops", "Lorenz"), ("loops", "Mandelbrot")),
    "unroll": (("loops", "Lorenz"), ("linear algebra", "")), "tile": (("movement", "transpose"),),
    "rows": (("rowwise", ""),), "algebra": (("derivatives", "jacobian"), ("derivatives", "per-example")),
}  # fmt: skip
OF_EACH = 2  # of the programs that OWN names
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
    parser.add_argument("--page", type=Path, metavar="FILE", help="write the table here, between its markers")
    parser.add_argument("--minutes", type=float, default=8.0, help="after which no program is begun")
    options = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    side = JaxLike("pullback", "pullback")
    chosen = programs()
    ends = time.perf_counter() + 60 * options.minutes
    wanted = [name for name in names() if options.only in name]
    lines = [
        f"Run time without the pass per run time with it, and compile time alike: geometric means over some "
        f"{len(chosen)} programs.",
        "",
        "| pass | run time | compile time | most by it |",
        "| --- | --- | --- | --- |",
    ]
    print("\n".join(lines), flush=True)
    for number, name in enumerate(wanted):
        now = time.perf_counter()
        until = now + (ends - now) / (len(wanted) - number)
        runs, compiles, most = measure(side, name, distinct(own(name) + chosen), options.rounds, until)
        gains = ", ".join(f"{label} {ratio:.1f}x" for ratio, label in most)
        lines.append(f"| {name} | {mean(runs) or 1:.2f}x | {mean(compiles) or 1:.2f}x | {gains} |")
        print(lines[-1], flush=True)
    if options.page:
        write(options.page, "passes", lines)
    return 0


def names() -> list[str]:
    """Passes that can be left out."""
    from pullback.compiler.pipelines import JAXPR_PASSES, KEEPING_PASSES, LOOP_PASSES, ORDER_PASSES, PROGRAM_PASSES
    from pullback.loops.schedule.choose import FISSION, FORMS

    passes = (
        [p.name for p in (*JAXPR_PASSES, *KEEPING_PASSES) if not p.needed]
        + list(FUSION)
        + [p.name for p in (*ORDER_PASSES, *PROGRAM_PASSES, *LOOP_PASSES) if not p.needed]
        + [FISSION, *(kind.name for kind in FORMS), "vectorize", "tile", "parallelize"]
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


def own(name: str) -> list[tuple[str, Program]]:
    """The programs that are a pass's own work."""
    found = []
    everything = groups()
    for group, start in OWN.get(name, ()):
        jitted = [p for p in everything.get(group, []) if p.jit and p.name.startswith(start)]
        found += [(group, p) for p in jitted[:: max(1, len(jitted) // OF_EACH)][:OF_EACH]]
    return found


def distinct(programs: list[tuple[str, Program]]) -> list[tuple[str, Program]]:
    """Each program once."""
    return list({(group, program.name): (group, program) for group, program in programs}.values())


def measure(
    side: JaxLike, name: str, chosen: list[tuple[str, Program]], rounds: int, until: float
) -> tuple[list[float], list[float], list[tuple[float, str]]]:
    """(ratios of run times, ratios of compile times, the two programs that gain most)."""
    runs, compiles, gains = [], [], []
    for group, program in chosen:
        if time.perf_counter() > until:
            break
        side.set_x64(program.x64)
        try:
            inputs = side.inputs(program, program.inputs(np.random.default_rng(0)))
            with_it, without = (ready(side, program, inputs, skip) for skip in (frozenset(), frozenset({name})))
            if with_it is None or without is None:
                continue
            times = [(once(with_it[0]), once(without[0])) for _ in range(2 * rounds)]
            ratio = min(t for _, t in times) / min(t for t, _ in times)
            runs.append(ratio)
            compiles.append(without[1] / with_it[1])
            gains.append((ratio, f"{group}: {program.name}".replace("|", "\\|")))
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

    with tempfile.TemporaryDirectory() as folder, switches.set(skip=skip, cache_dir=folder):
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
