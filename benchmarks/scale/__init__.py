"""What several processes cost and buy, on two processes of this machine: `python -m benchmarks scale`.

    python -m benchmarks scale                         # collectives against raw MPI, and the scaling of the examples
    python -m benchmarks scale --peer VENV             # beside JAX over gloo (VENV has jax, mpi4py and mpich)
    python -m benchmarks scale --page docs/scale.md --picture docs/scale.png

Collectives: raw MPI (raw.c, compiled by mpicc) and ours (ours.py) by turns, the least of all rounds of each. Examples:
one process with one thread against two, the least of the rounds; 'weak' doubles the work with the processes.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
SIZES = (4, 1024, 16384, 65536, 1 << 20, 1 << 22, 1 << 24)
# Name, the option that says how much work there is, and how much that is for one process.
EXAMPLES = (
    ("pln", "--repeat", 4),
    ("mlp", "--samples", 8192),
    ("water", "--size", 512),
    ("attention", "--length", 2048),
)
MORE = {"mlp": ("--hidden", "512"), "water": ("--steps", "100"), "pln": ("--iterations", "20")}


def launched(count: int, python: Path, *arguments: str) -> str:
    """What a program prints on so many processes, with one thread each."""
    environment = {**os.environ, "PULLBACK_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    environment["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
    mpiexec = python.parent / "mpiexec"
    command = [str(mpiexec), "-n", str(count), str(python), *arguments]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=600)
    if done.returncode:
        raise RuntimeError(
            f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout[-500:]}{done.stderr[-1500:]}"
        )
    return done.stdout


def times(text: str) -> dict[tuple[str, int], float]:
    """(operation, bytes) -> seconds of the lines that raw.c and ours.py print."""
    found = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) == 3 and words[1].isdigit():
            found[words[0], int(words[1])] = float(words[2])
    return found


def least(into: dict[Any, float], new: dict[Any, float]) -> None:
    """Keep the smaller figures."""
    for key, value in new.items():
        into[key] = min(value, into.get(key, value))


def collectives(python: Path, peer: Path | None, rounds: int) -> tuple[dict, dict, dict]:
    """(raw MPI's, ours, JAX's) seconds by (operation, bytes)."""
    raw: dict[Any, float] = {}
    ours: dict[Any, float] = {}
    jax: dict[Any, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "raw"
        source = Path(__file__).with_name("raw.c")
        subprocess.run([str(python.parent / "mpicc"), "-O3", str(source), "-o", str(program)], check=True)
        sizes = [str(n) for n in SIZES]
        for _ in range(rounds):
            done = subprocess.run(
                [str(python.parent / "mpiexec"), "-n", "2", str(program), "15", *sizes],
                capture_output=True, text=True, check=True,
            )  # fmt: skip
            least(raw, times(done.stdout))
            least(ours, times(launched(2, python, "-m", "benchmarks.scale.ours", "pullback", "15", *sizes)))
        if peer is not None:
            least(jax, times(launched(2, peer, "-m", "benchmarks.scale.ours", "jax", "5", *sizes)))
    return raw, ours, jax


def timed(count: int, python: Path, backend: str, name: str, option: str, amount: int) -> float:
    """Seconds of one run of an example's program."""
    arguments = ("-m", f"examples.distributed.{name}", "--backend", backend, "--time", "5", option, str(amount))
    text = launched(count, python, *arguments, *MORE.get(name, ()))
    return float(next(line.split()[1] for line in text.splitlines() if line.startswith("seconds")))


def scaling(python: Path, backend: str, rounds: int) -> dict[str, tuple[float, float, float, float]]:
    """Example -> seconds of (one process, two on the same work, two on twice the work, one on twice the work)."""
    found = {}
    for name, option, amount in EXAMPLES:
        figures = []
        for count, scale in ((1, 1), (2, 1), (2, 2), (1, 2)):
            size = amount * scale
            figures.append(min(timed(count, python, backend, name, option, size) for _ in range(rounds)))
        found[name] = (figures[0], figures[1], figures[2], figures[3])
    return found


def table(header: list[str], rows: list[list[str]]) -> str:
    """A table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def bytes_text(n: int) -> str:
    """4 B, 1 kB, 1 MB."""
    return f"{n >> 20} MB" if n >= 1 << 20 else f"{n >> 10} kB" if n >= 1024 else f"{n} B"


def report(raw: dict, ours: dict, jax: dict, own: dict, peer: dict) -> str:
    """The tables of all figures."""
    names = list(dict.fromkeys(name for name, _ in ours))
    rows = []
    for name in names:
        for n in SIZES:
            a, b, c = raw[name, n], ours[name, n], jax.get((name, n))
            rows.append([name, bytes_text(n), f"{a * 1e6:.2f}", f"{b * 1e6:.2f}", f"{a / b:.2f}"])
            if jax:
                rows[-1] += [f"{c * 1e6:.0f}", f"{c / b:.1f}"] if c else ["-", "-"]
    header = ["operation", "operand", "MPI, us", "ours, us", "MPI's time / ours"]
    text = table([*header, "JAX (gloo), us", "JAX's time / ours"] if jax else header, rows)
    rows = []
    for name, (one, two, weak, double) in own.items():
        row = [name, f"{one * 1e3:.1f}", f"{two * 1e3:.1f}", f"{weak * 1e3:.1f}"]
        row += [f"{one / two / 2:.2f}", f"{one / weak:.2f}", f"{double / weak / 2:.2f}"]
        if peer:
            row += [f"{peer[name][1] * 1e3:.1f}", f"{peer[name][1] / two:.1f}"] if name in peer else ["-", "-"]
        rows.append(row)
    header = ["example", "1 process, ms", "2, ms", "2, twice the work, ms", "strong", "weak", "strong, twice the work"]
    return text + "\n\n" + table([*header, "JAX on 2, ms", "JAX's time / ours"] if peer else header, rows) + "\n"


def draw(path: Path, raw: dict, ours: dict, jax: dict) -> None:
    """Time against bytes of each operation."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    names = list(dict.fromkeys(name for name, _ in ours))
    figure, axes = plt.subplots(1, len(names), figsize=(3 * len(names), 3), sharey=True, layout="constrained")
    for ax, name in zip(axes, names, strict=True):
        for label, found in (("MPI", raw), ("pullback", ours), ("JAX, gloo", jax)):
            points = [(n, found[name, n] * 1e6) for n in SIZES if (name, n) in found]
            if points:
                ax.loglog(*zip(*points, strict=True), marker="o", markersize=3, label=label)
        ax.set(title=name.replace("_", "-"), xlabel="bytes")
    axes[0].set_ylabel("microseconds")
    axes[0].legend()
    figure.savefig(path, dpi=110)


def into_page(page: Path, text: str) -> None:
    """Put the tables between the page's marks."""
    before, rest = page.read_text().split("<!-- figures -->\n", 1)
    after = rest.split("<!-- /figures -->", 1)[1]
    page.write_text(f"{before}<!-- figures -->\n{text}<!-- /figures -->{after}")


def main(argv: list[str] | None = None) -> int:
    """Time everything, print the tables, and write them to the page and the picture if they are asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks scale", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--peer", type=Path, metavar="VENV", help="an environment that has jax, mpi4py and mpich")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--page", type=Path, help="put the tables into this page")
    parser.add_argument("--picture", type=Path, help="draw the times of collectives here (PNG)")
    given = parser.parse_args(argv)
    python = Path(sys.executable)
    peer = None if given.peer is None else given.peer / "bin" / "python"
    raw, ours, jax = collectives(python, peer, given.rounds)
    own = scaling(python, "pullback", given.rounds)
    theirs = {}
    if peer is not None:
        for name, option, amount in EXAMPLES:
            try:
                seconds = timed(2, peer, "jax", name, option, amount)
            except RuntimeError as error:  # said, and left out of the table
                print(f"JAX: {name}: {str(error).splitlines()[-1]}", file=sys.stderr)
                continue
            theirs[name] = (0.0, seconds, 0.0, 0.0)
    text = report(raw, ours, jax, own, theirs)
    print(text)
    if given.page:
        into_page(given.page, text)
    if given.picture:
        draw(given.picture, raw, ours, jax)
    return 0


__all__ = ["main"]
