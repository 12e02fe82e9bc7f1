"""How good the schedule is: what nests are expected to take against what they take, and each choice against others.

    python -m benchmarks regret [--only NAME] [--sample N] [--json FILE] [--minutes M]

For every program: the time that the model expects (as_text("schedule")), the measured one, and the measured times of
the program in each form that one of its nests could have (PULLBACK_FORM), as it is written, and without the other
passes that decide something. Printed are the rank correlation of expected and measured times over the programs that
are loops alone, and the regret: measured time over the best of the candidates.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import report
from benchmarks.program import Program
from benchmarks.programs import groups
from benchmarks.sides import JaxLike
from pullback import block_until_ready
from pullback.util.switches import switches

CANDIDATES = ("rows", "siblings", "vectorize", "tile", "split", "unroll", "interchange", "parallelize")
ROUNDS, LEAST = 5, 0.004  # of each measurement: rounds, and seconds of one
NOISE = 0.03  # share of a time that measurements differ by, on a quiet machine


def main(argv: list[str] | None = None) -> int:
    """Measure and print; always 0."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks regret", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--only", default="", help="groups or programs whose name contains this")
    parser.add_argument("--sample", type=int, metavar="N", help="at most N programs of each group, evenly taken")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here")
    parser.add_argument("--minutes", type=float, default=30.0, help="after which no program is begun")
    options = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    end = time.monotonic() + 60 * options.minutes
    found: list[dict[str, Any]] = []
    for group, programs in groups().items():
        chosen = [p for p in programs if options.only in group or options.only in report.title(p)]
        if options.sample and chosen:
            count = min(options.sample, len(chosen))
            chosen = [chosen[k * len(chosen) // count] for k in range(count)]
        for program in chosen:
            if time.monotonic() > end:
                break
            figures = _measure(program)
            if figures is not None:
                found.append(figures)
                print(_line(figures), flush=True)
                if options.json:
                    options.json.write_text(json.dumps(found, indent=1))
    print("\n" + "\n".join(summary(found)))
    return 0


def _measure(program: Program) -> dict[str, Any] | None:
    """Expected and measured times of a program, in seconds; None if it is no function of arrays that can be lowered."""
    from pullback.compiler import pipelines
    from pullback.runtime.programs.schedule_report import choices, expected

    side = JaxLike("pullback", "pullback")
    if not program.jit or program.x64:
        return None
    try:
        given = side.inputs(program, program.inputs(np.random.default_rng(0)))
        lowered = side.jitted(program).lower(*given)
        ordered = pipelines.order_loops(lowered.compiler_ir("loops"))
        found, whole = choices(ordered), expected(ordered)
    except Exception as error:
        print(f"{report.title(program)[:48]:48} left out: {type(error).__name__}: {str(error)[:60]}")
        return None
    calls = lowered.as_text("loops").count("call ") + sum(nest.choice.price.calls for nest in found)
    forms = {choice.form for nest in found for choice in (nest.choice, *nest.choice.others)}
    variants: dict[str, dict[str, Any]] = {"": {}}
    if len(forms) > 1:
        variants |= {form: {"form": form} for form in sorted(forms)}
    variants |= {f"without {name}": {"skip": frozenset([name])} for name in CANDIDATES}
    own: dict[str, tuple[dict[str, Any], Any]] = {}
    texts: set[str] = set()
    for name, values in variants.items():
        with switches.set(**values):
            again = side.jitted(program)
            text = again.lower(*given).as_text("nests")
            if text not in texts:
                texts.add(text)
                again(*given)
                own[name] = values, again
    times = _times(own, given)
    return {
        "name": report.title(program),
        "expected": whole / 1e9,
        "calls": calls,
        "times": times,
        "regret": times[""] / min(times.values()),
    }


def _times(variants: dict[str, tuple[dict[str, Any], Any]], arguments: tuple) -> dict[str, float]:
    """Seconds of each, the best of rounds that take turns, each with its switches."""
    best = dict.fromkeys(variants, float("inf"))
    for _ in range(ROUNDS):
        for name, (values, call) in variants.items():
            with switches.set(**values):
                started, count = time.perf_counter(), 0
                while time.perf_counter() - started < LEAST or not count:
                    begin = time.perf_counter()
                    block_until_ready(call(*arguments))
                    best[name] = min(best[name], time.perf_counter() - begin)
                    count += 1
    return best


def _line(figures: dict[str, Any]) -> str:
    times = figures["times"]
    best = min(times, key=times.__getitem__)
    other = best if best and figures["regret"] > 1 + NOISE else ""
    return (
        f"{figures['name'][:48]:48} expected {report.readable(figures['expected']):>9}"
        f" measured {report.readable(times['']):>9}  regret {figures['regret']:5.2f} {other}"
    )


def summary(found: list[dict[str, Any]]) -> list[str]:
    """The correlation of ranks, and the regret at the median and near the end."""
    if not found:
        return ["no programs"]
    loops = [f for f in found if not f["calls"]]
    regrets = np.sort([f["regret"] for f in found])
    median, high = np.quantile(regrets, [0.5, 0.95])
    lines = [f"{len(found)} programs, {len(loops)} of loops alone"]
    if len(loops) > 2:
        expected, measured = (
            np.argsort(np.argsort([value(f) for f in loops]))
            for value in (lambda f: f["expected"], lambda f: f["times"][""])
        )
        ratios = np.log([f["expected"] / f["times"][""] for f in loops if f["expected"] > 0])
        agreement = np.corrcoef(expected, measured)[0, 1]
        middle, spread = np.exp(np.median(ratios)), np.exp(np.std(ratios))
        lines.append(f"rank correlation of expected and measured times {agreement:.3f}")
        lines.append(f"expected over measured {middle:.2f} in the median, {spread:.2f} times off typically")
    lines.append(f"regret {median:.3f} in the median, {high:.2f} at the 95th percentile, {regrets[-1]:.2f} at most")
    return lines


if __name__ == "__main__":
    sys.exit(main())
