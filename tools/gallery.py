"""The pictures and times of the page docs/gallery.md: `python -m tools.gallery [NAME ...] --peers VENV`.

Each example runs on pullback and on JAX in turns, each time in a process of its own; the least times count. VENV has
JAX; what the libraries of the examples need is taken from the environment that this runs in.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "gallery"
TIMES = FOLDER / "times.json"
PRINTED = re.compile(r"([^\n:]*): ([\d.]+) (ms|s);\s.*?with compilation: ([\d.]+) s", re.S)
EXAMPLES = {  # what the time is of
    "nuts_regression": "4,000 draws by NUTS",
    "neural_ode": "a step of training, 64 paths",
    "waves": "an iteration: 5 simulations of 240 steps",
    "transformer": "a step of training, 32 x 64 letters",
    "gp_regression": "a fit: 60 steps of L-BFGS, 250 points",
    "digits": "an epoch: 1,348 pictures",
    "sinkhorn": "a step, 400 x 400 points",
}


def once(python: str, name: str, backend: str, *options: str, cores: int | None = None) -> tuple[float, float]:
    """(seconds of the work, seconds of the first time with compilation) that an example prints, on so many cores."""
    environment = dict(os.environ)
    if backend == "jax":
        environment["PYTHONPATH"] = str(Path(numpy.__file__).parents[1])
    else:  # compilation counts, so nothing is to come from disk
        environment["PULLBACK_CACHE_DIR"] = tempfile.mkdtemp()
    command = [] if cores is None else ["taskset", "-c", f"0-{cores - 1}"]
    command += [python, "-m", f"examples.{name}", "--backend", backend, *options]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    found = PRINTED.search(done.stdout)
    if done.returncode or not found:
        raise SystemExit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return float(found[2]) * (1e-3 if found[3] == "ms" else 1), float(found[4])


def table(times: dict[str, dict[str, list[float]]]) -> str:
    """The rows of the page."""
    lines = [
        "| example | time of | pullback | JAX | first time, with compilation |",
        "| --- | --- | ---: | ---: | --- |",
    ]
    show = lambda s: f"{1e3 * s:.3g} ms" if s < 1 else f"{s:.3g} s"
    for name, of in EXAMPLES.items():
        if name in times:
            (own, own_first), (theirs, their_first) = times[name]["pullback"], times[name]["jax"]
            lines.append(
                f"| [{name}](#{name.replace('_', '-')}) | {of} | {show(own)} | {show(theirs)} "
                f"| {own_first:.1f} s, JAX {their_first:.1f} s |"
            )
    return "\n".join(lines) + "\n"


def main() -> None:
    """The command."""
    options = argparse.ArgumentParser(prog="python -m tools.gallery", description=__doc__.split("\n\n")[0])
    options.add_argument("names", nargs="*", help="some of the examples (default: all)")
    options.add_argument("--peers", type=Path, help="an environment with JAX; without it, pictures only")
    options.add_argument("--cores", type=int, help="run on so many (default: all); one where others use the machine")
    options.add_argument("--rounds", type=int, default=3)
    given = options.parse_args()
    FOLDER.mkdir(exist_ok=True)
    times = json.loads(TIMES.read_text()) if TIMES.exists() else {}
    for name in given.names or EXAMPLES:
        drawn = ["--picture", str(FOLDER / f"{name}.png")]
        if name == "waves":
            drawn += ["--animation", str(FOLDER / "waves.gif")]
        once(sys.executable, name, "pullback", *drawn)
        if given.peers is None:
            continue
        runs: dict[str, list[tuple[float, float]]] = {"pullback": [], "jax": []}
        for _ in range(given.rounds):
            runs["pullback"].append(once(sys.executable, name, "pullback", cores=given.cores))
            runs["jax"].append(once(str(given.peers / "bin" / "python"), name, "jax", cores=given.cores))
        times[name] = {backend: [min(a for a, _ in found), min(b for _, b in found)] for backend, found in runs.items()}
        print(name, times[name], flush=True)
        TIMES.write_text(json.dumps(times, indent=1) + "\n")
    if times:
        (FOLDER / "times.txt").write_text(table(times))


if __name__ == "__main__":
    main()
