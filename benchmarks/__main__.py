"""Times programs on pullback and, in a second process, on JAX, interleaved round by round; prints a table with ratios.

    python -m benchmarks                                  # pullback and NumPy
    python -m benchmarks --jax /path/to/python-with-jax   # JAX as well, by that interpreter
    python -m benchmarks --only matmul --rounds 9

Each side is one process that answers rounds on request, so that both see the same machine; a figure is the minimum over
rounds of the mean time of a batch of calls. Inputs are equal; results are compared before anything is timed.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


class Side:
    """A worker process that times programs by name."""

    def __init__(self, name: str, python: str):
        self.name = name
        self.process = subprocess.Popen(
            [python, "-m", "benchmarks.worker", name],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, *words: str):
        """The worker's answer to a request."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps(words) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the {self.name} worker stopped; see its message above")
        return json.loads(line)

    def close(self) -> None:
        """End the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def readable(seconds: float | None) -> str:
    """A time in a unit that suits it."""
    if seconds is None:
        return "-"
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def main(argv: list[str] | None = None) -> int:
    """Run the benchmarks and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.split("\n\n")[0])
    parser.add_argument("--jax", metavar="PYTHON", help="an interpreter that has JAX installed")
    parser.add_argument("--only", default="", help="programs whose name contains this")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", type=Path, help="write the figures here")
    options = parser.parse_args(argv)

    sides = [Side("pullback", sys.executable), Side("numpy", sys.executable)]
    if options.jax:
        sides.append(Side("jax", options.jax))
    names = [n for n in sides[0].ask("names") if options.only in n]
    figures: dict[str, dict[str, float | None]] = {}
    print(f"{'program':<40}" + "".join(f"{s.name:>12}" for s in sides) + f"{'jax/ours':>10}{'numpy/ours':>11}")
    for name in names:
        checks = [side.ask("prepare", name) for side in sides]
        values = [c["check"] for c in checks if c["check"] is not None]
        if any(not math.isclose(v, values[0], rel_tol=2e-3, abs_tol=1e-3) for v in values):
            print(f"{name}: results differ: {values}", file=sys.stderr)
            return 1
        best: dict[str, float | None] = {side.name: None for side in sides}
        for _ in range(options.rounds):
            for side, check in zip(sides, checks):
                if check["check"] is None:
                    continue
                time = side.ask("time", name)["seconds"]
                old = best[side.name]
                best[side.name] = time if old is None else min(old, time)
        figures[name] = best | {f"{s.name} first call": c["first"] for s, c in zip(sides, checks)}
        ours = best["pullback"]
        ratios = [f"{best[p] / ours:.1f}" if best.get(p) else "-" for p in ("jax", "numpy")]
        times = "".join(f"{readable(best[s.name]):>12}" for s in sides)
        print(f"{name:<40}{times}{ratios[0]:>10}{ratios[1]:>11}", flush=True)
    for peer in ("jax", "numpy"):
        logs = [math.log(f[peer] / f["pullback"]) for f in figures.values() if f.get(peer)]
        if logs:
            print(f"geometric mean of {peer}/ours: {math.exp(sum(logs) / len(logs)):.2f} over {len(logs)} programs")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1))
    for side in sides:
        side.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
