"""`python -m benchmarks libraries`: times the libraries' work on pullback and on JAX and writes docs/libraries.md.

Each side is a process of its own, and only one of them works at a time; rounds alternate between them. Nothing is
kept on disk between runs, so that first calls trace and compile. What was measured is kept in out/libraries.json, so
that an interrupted run can be resumed and single pieces measured again.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.documents.command import processor
from benchmarks.libraries import networks, sampling, solvers  # noqa: F401  (they fill the list)
from benchmarks.libraries.work import ALL, Work

ROOT = Path(__file__).parents[2]
SIDES = ("pullback", "jax")
BATCH_SECONDS = 0.1
LIBRARIES = (
    "optax", "equinox", "flax", "dm-haiku", "distrax", "jraph", "diffrax", "lineax", "optimistix", "jaxopt", "tinygp",
    "blackjax", "numpyro", "orbax-checkpoint", "brax", "mujoco-mjx",
)  # fmt: skip


class Side:
    """A worker and its answers."""

    def __init__(self, name: str, python: Path, folder: Path) -> None:
        self.name, self.folder = name, folder
        paths = [str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(p for p in paths if p)}
        environment |= {"JAX_PLATFORMS": "cpu", "PULLBACK_CACHE_DIR": str(folder / "cache")}
        self.log = (folder / f"{name}.log").open("w")
        self.process = subprocess.Popen(
            [python, "-m", "benchmarks.libraries.worker", name, folder],
            env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True,
        )  # fmt: skip

    def ask(self, request: str) -> dict[str, Any]:
        """The answer to a request."""
        assert self.process.stdin is not None and self.process.stdout is not None
        try:
            self.process.stdin.write(request + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return {"error": "the process is gone"}
        answer = self.process.stdout.readline()
        return json.loads(answer) if answer else {"error": f"the process ended with {self.process.wait()}"}

    def end(self) -> None:
        """Let the worker go."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()
        self.log.close()


def main(argv: list[str] | None = None) -> int:
    """Measure and write; 1 if something failed or differs."""
    options = parse(argv)
    options.json.parent.mkdir(parents=True, exist_ok=True)
    known: dict[str, Any] = json.loads(options.json.read_text()) if options.json.exists() else {}
    chosen = [w for w in ALL if options.only in w.key]
    for piece in chosen:
        if options.resume and "ratio" in known.get(piece.key, {}):
            continue
        known[piece.key] = measure(piece, options)
        print(f"{piece.key}\n    {short(known[piece.key])}", flush=True)
        options.json.write_text(json.dumps(known, indent=1) + "\n")
    kept = {w.key: known[w.key] for w in ALL if w.key in known}
    options.page.write_text(document(kept, versions(options.peers)))
    return int(any("ratio" not in known[w.key] for w in chosen))


def parse(argv: list[str] | None) -> argparse.Namespace:
    """The options."""
    description = (__doc__ or "").split("\n\n")[0]
    parser = argparse.ArgumentParser(prog="python -m benchmarks libraries", description=description)
    parser.add_argument(
        "--peers", type=Path, metavar="VENV", required=True,
        help="an environment with JAX, the libraries and what pullback needs: .libraries/venv, by `make libraries`",
    )  # fmt: skip
    parser.add_argument("--only", default="", metavar="PART", help="work whose name contains this")
    parser.add_argument("--resume", action="store_true", help="keep what was measured")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, default=ROOT / "out" / "libraries.json", help="what was measured")
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "libraries.md")
    return parser.parse_args(argv)


def measure(piece: Work, options: argparse.Namespace) -> dict[str, Any]:
    """First call and time of a call on both sides, and whether the results are equal."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sides = [Side(side, options.peers / "bin" / "python", folder) for side in SIDES]
        try:
            found: dict[str, Any] = {"first": {}, "seconds": {}}
            counts = {}
            for side in sides:
                answer = side.ask(f"prepare {piece.key}")
                if "error" in answer:
                    return {"error": f"{side.name}: {answer['error']}"}
                found["first"][side.name] = answer["first"]
                counts[side.name] = max(1, min(1000, int(BATCH_SECONDS / max(answer["second"], 1e-6))))
            difference = compare(folder, piece.tolerance)
            if difference:
                return {"error": difference}
            for _ in range(options.rounds):
                for side in sides:
                    seconds = side.ask(f"run {counts[side.name]}")["seconds"]
                    found["seconds"][side.name] = min(seconds, found["seconds"].get(side.name, seconds))
        finally:
            for side in sides:
                side.end()
    found["ratio"] = found["seconds"]["jax"] / found["seconds"]["pullback"]
    found["first_ratio"] = found["first"]["jax"] / found["first"]["pullback"]
    return found


def compare(folder: Path, tolerance: float) -> str:
    """What is unequal, in words; empty if nothing is."""
    with np.load(folder / "pullback.npz") as here, np.load(folder / "jax.npz") as there:
        if len(here.files) != len(there.files):
            return f"{len(here.files)} results, not {len(there.files)}"
        for name in there.files:
            a, b = here[name].astype(np.float64), there[name].astype(np.float64)
            if a.shape != b.shape:
                return f"result {name} has shape {a.shape}, not {b.shape}"
            largest = float(np.abs(b[np.isfinite(b)]).max(initial=0.0))
            if not np.allclose(a, b, rtol=0, atol=tolerance * largest + 1e-6, equal_nan=True):
                return f"result {name} differs by {float(np.nanmax(np.abs(a - b))):.3g} of {largest:.3g}"
    return ""


def short(found: dict[str, Any]) -> str:
    """One line of what was measured."""
    if "error" in found:
        return found["error"]
    s, f = found["seconds"], found["first"]
    return (
        f"{time_of(s['pullback'])}, JAX {time_of(s['jax'])}: {found['ratio']:.2f} times as fast; "
        f"first call {time_of(f['pullback'])}, JAX {time_of(f['jax'])}: {found['first_ratio']:.2f}"
    )


def time_of(seconds: float) -> str:
    """Three digits with a unit."""
    for unit, size in (("s", 1), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def mean(ratios: list[float]) -> float:
    """The geometric mean."""
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else float("nan")


def versions(peers: Path) -> dict[str, str]:
    """Of the libraries that were timed."""
    names = ("jax", *LIBRARIES)
    code = f"import importlib.metadata as m, json; print(json.dumps({{k: m.version(k) for k in {names!r}}}))"
    done = subprocess.run([peers / "bin" / "python", "-c", code], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def document(known: dict[str, Any], found: dict[str, str]) -> str:
    """The page."""
    timed = {k: v for k, v in known.items() if "ratio" in v}
    lines = [
        "# Libraries",
        "Libraries written for JAX run on pullback as they stand: `pullback.install_as_jax()` before they are "
        "imported, or `python -m pullback run program.py`. Here is real work of each, timed on pullback and on JAX, "
        "with equal results (for chains of samplers: equal means). This page is written by "
        "`python -m benchmarks libraries --peers VENV`.",
        f"Machine: {len(os.sched_getaffinity(0))} cores of {processor()}; numpy {importlib.metadata.version('numpy')}, "
        + ", ".join(f"{k} {v}" for k, v in found.items())
        + ". Each side in a process of its own, rounds alternate; a time is the least mean of a batch of calls; the "
        "first call traces, compiles and runs, with nothing kept on disk.",
        f"Over {len(timed)} pieces of work pullback takes 1/{mean([v['ratio'] for v in timed.values()]):.2f} of JAX's "
        f"time (geometric mean), and 1/{mean([v['first_ratio'] for v in timed.values()]):.2f} for the first call.",
        "\n".join(
            [
                "| library | work | pullback | JAX | times as fast | first call | JAX's | times as fast |",
                "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
                *(row(key, v) for key, v in timed.items()),
            ]
        ),
    ]
    slower = [k for k, v in timed.items() if v["ratio"] < 1]
    lines.append(f"Slower than on JAX: {', '.join(slower) if slower else 'none'}.")
    failed = [f"- {k}: {v['error']}" for k, v in known.items() if "error" in v]
    if failed:
        lines += ["What failed or differs:", "\n".join(failed)]
    reasons = [f"- {w.key}: within {w.tolerance:g} of the largest number: {w.why}." for w in ALL if w.why]
    lines += ["Results that are compared loosely, and why:", "\n".join(reasons)]
    return "\n\n".join(lines) + "\n"


def row(key: str, v: dict[str, Any]) -> str:
    """A row of the table."""
    library, name = key.split(": ", 1)
    cells = [library, name]
    for times, ratio in ((v["seconds"], v["ratio"]), (v["first"], v["first_ratio"])):
        cells += [time_of(times["pullback"]), time_of(times["jax"]), f"{ratio:.2f}"]
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    sys.exit(main())
