"""F4: the Poisson log-normal model at five levels, each library in processes of its own."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from examples import _common as common
from examples import pln

from benchmarks.documents.section import TITLES, Section, Setting, faster, spread
from benchmarks.report import times
from benchmarks.timing import Figures

ROUNDS = 2
SECONDS = 100  # for a process
UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


def measure(setting: Setting) -> Iterator[Figures]:
    """The example's table, by each library in turn; the least of two runs."""
    size = ["--repeat", "1", "--iterations", "4", "--chunk", "2"]
    if not setting.quick:
        size = ["--repeat", "100", "--iterations", "9", "--chunk", "3"]
    found: dict[str, Figures] = {}
    for turn in range(1 if setting.quick else ROUNDS):
        for side in ("pullback", "jax"):
            common.progress(f"F4, run {turn + 1} by {TITLES[side]}: {pln.__name__}")
            python = sys.executable if side == "pullback" or setting.peers is None else setting.peers / "bin" / "python"
            message = ""
            try:
                command = [python, "-m", "examples.pln", "--backend", side, *size]
                done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=SECONDS, check=False)
                if done.returncode:
                    message = f"the example ended with {done.returncode}"
            except subprocess.TimeoutExpired:
                message = f"not done after {SECONDS} s"
            for level in pln.LEVELS:
                figures = found.setdefault(level, Figures("F4", level))
                if message:
                    figures.failed[side] = message
                    continue
                row = re.search(rf"\| {level} +\| +([\d.]+) (\w+) \| +(\S+) \|", done.stdout)
                assert row, done.stdout
                seconds = float(row[1]) * UNITS[row[2]]
                figures.seconds[side] = min(seconds, figures.seconds.get(side, seconds))
                figures.values[side] = float(row[3])
    yield from found.values()


def render(figures: Sequence[Figures], folder: Path) -> list[str]:
    """A row for each level."""
    sides = [s for s in ("pullback", "jax") if any(s in f.seconds for f in figures)]
    eager, compiled = figures[0], figures[1:]

    def gain(side: str) -> str:
        if side not in eager.seconds:
            return spread([])
        return spread(eager.seconds[side] / f.seconds[side] for f in compiled if side in f.seconds)

    fitted = [v for f in figures for v in f.values.values()]
    apart = max(1e-6, (max(fitted) - min(fitted)) / abs(max(fitted))) if fitted else float("nan")  # printed: 7 digits
    rows = []
    for f in figures:
        values = [f"{f.values[s]:.6e}" if s in f.values else "-" for s in sides]
        rows.append([f.name, *(f.seconds.get(s) for s in sides), times(f.ratio("jax")), *values])
    header = ["level, an iteration", *(TITLES[s] for s in sides), "JAX / pullback"]
    header += [f"ELBO, {TITLES[s]}" for s in sides]
    return [
        f"**JAX today.** Compiled iterations are faster than eager ones by {gain('jax')}.",
        f"**pullback.** An eager iteration is faster than JAX's by {faster([eager], 'jax')}, compiled ones by "
        f"{faster(compiled, 'jax')}. The fitted ELBO of all levels and libraries agrees to {apart:.0e} of its value.",
        common.table(header, rows),
    ]


SECTION = Section(
    "F4",
    "The Poisson log-normal model at five levels",
    "fits the PLN model to the oak data by variational inference with RAdam: eagerly, with a jitted step in a "
    "Python loop, by `lax.scan` compiled ahead of time, with its state in a `NamedTuple`, and in a registered class "
    "with methods; all levels compute one curve, and staging the loop makes it fast. Counts are repeated to 11,600 x "
    "114, float32; here 9 iterations in place of 1,000; [examples/pln.py](../examples/pln.py).",
    measure,
    render,
)
