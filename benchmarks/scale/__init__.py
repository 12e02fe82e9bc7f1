"""What several processes cost and buy, on two processes of this machine: `python -m benchmarks scale`.

    python -m benchmarks scale                         # collectives against raw MPI, examples, programs, overlap
    python -m benchmarks scale --only programs         # one part of it
    python -m benchmarks scale --peer VENV             # beside JAX over gloo (VENV has jax, mpi4py and mpich)
    python -m benchmarks scale --page docs/scale.md --picture docs/scale.png

Collectives: raw MPI (raw.c, compiled by mpicc) and ours (ours.py) by turns, the least of all rounds of each. Examples:
one process with one thread against two, and against two copies of one that know nothing of each other, the least of the
rounds; 'weak' doubles the work with the processes. Programs: the examples and those of programs.py on two processes,
ours and JAX's by turns. Overlap: the program of tests/distributed with the pass and without. Model: what more hosts
would buy (model.py).
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pullback
from benchmarks.scale import model

ROOT = Path(__file__).parents[2]
PATH = os.pathsep.join([str(ROOT), str(Path(pullback.__file__).parents[1])])  # the package that runs this
SIZES = (4, 1024, 16384, 65536, 1 << 20, 1 << 22, 1 << 24)
# Name, the option that says how much work there is, how much that is for one process, and twice the work.
EXAMPLES = (
    ("pln", "--repeat", 4, 8),
    ("mlp", "--samples", 8192, 16384),
    ("water", "--size", 512, 724),
    ("attention", "--length", 2048, 2896),
)
PARTS = ("collectives", "examples", "programs", "overlap", "model")
PROGRAMS = ("fourier", "product", "kmeans", "embedding", "pipeline", "sort")
MORE = {"mlp": ("--hidden", "512"), "water": ("--steps", "100"), "pln": ("--iterations", "20")}


def launched(count: int, python: Path, *arguments: str, environment: dict[str, str] | None = None) -> str:
    """What a program prints on so many processes, with one thread each."""
    more = environment or {}
    environment = {**os.environ, "PULLBACK_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "PYTHONPATH": PATH, **more}
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


def copies(python: Path, backend: str, name: str, option: str, amount: int) -> float:
    """Seconds of the slower of two runs, of one process each, that know nothing of each other: what the machine's cores
    take from one another."""
    with ThreadPoolExecutor(2) as pool:
        return max(pool.map(lambda _: timed(1, python, backend, name, option, amount), range(2)))


def scaling(python: Path, backend: str, rounds: int) -> dict[str, tuple[float, ...]]:
    """Example -> seconds of (one process, two on the same work, two on twice the work, one on twice the work, two
    copies of one process at once); by turns, since a machine is not as fast at all times."""
    found: dict[str, tuple[float, ...]] = {}
    for name, option, once, twice in EXAMPLES:
        turns = []
        for _ in range(rounds):
            turn = [timed(n, python, backend, name, option, work) for n, work in ((1, once), (2, once), (2, twice))]
            turns.append(
                (*turn, timed(1, python, backend, name, option, twice), copies(python, backend, name, option, once))
            )
        found[name] = tuple(map(min, zip(*turns)))
    return found


def beside(python: Path, peer: Path | None, rounds: int) -> dict[str, tuple[float, float | None]]:
    """Program -> seconds on two processes (ours, JAX's), by turns; all results must agree."""
    found = {}
    commands = {name: ("-m", "benchmarks.scale.programs", name) for name in PROGRAMS}
    examples = {
        name: ("-m", f"examples.distributed.{name}", option, str(amount), *MORE.get(name, ()))
        for name, option, amount, _ in EXAMPLES
    }
    for name, command in (examples | commands).items():
        seconds: dict[str, float] = {}
        sums: dict[str, float] = {}
        for _ in range(rounds):
            for backend, where in (("pullback", python), ("jax", peer)):
                if where is None:
                    continue
                more = (backend, "20") if name in commands else ("--backend", backend, "--time", "10")
                lines = [line.split() for line in launched(2, where, *command, *more).splitlines()]
                new = {line[0]: float(line[1]) for line in lines if line and line[0] in ("seconds", "sum")}
                seconds[backend] = min(new["seconds"], seconds.get(backend, new["seconds"]))
                sums[backend] = new.get("sum", 0.0)
        if peer is not None and abs(sums["jax"] - sums["pullback"]) > 1e-4 * abs(sums["jax"]):
            raise RuntimeError(f"{name}: the results are {sums}")
        found[name] = seconds["pullback"], seconds.get("jax")
    return found


def overlapped(python: Path, rounds: int) -> dict[tuple[str, str], float]:
    """Seconds of programs whose processes have work at different times: (program, pass left out) -> seconds."""
    found: dict[tuple[str, str], float] = {}
    for _ in range(rounds):
        for skip in ("overlap", ""):
            environment = {"PULLBACK_SKIP": skip}
            text = launched(2, python, "tests/distributed/programs/overlap.py", "60", "10", environment=environment)
            words = text.split("seconds")[1].split()
            least(found, {(name, skip): float(words[k]) for name, k in (("turns", 0), ("relay", 2), ("early", 4))})
    return found


def table(header: list[str], rows: list[list[str]]) -> str:
    """A table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def bytes_text(n: int) -> str:
    """4 B, 1 kB, 1 MB."""
    return f"{n >> 20} MB" if n >= 1 << 20 else f"{n >> 10} kB" if n >= 1024 else f"{n} B"


def collectives_text(raw: dict, ours: dict, jax: dict) -> str:
    """The table of the collectives."""
    rows = []
    for name in dict.fromkeys(name for name, _ in ours):
        for n in SIZES:
            a, b, c = raw[name, n], ours[name, n], jax.get((name, n))
            rows.append([name, bytes_text(n), f"{a * 1e6:.2f}", f"{b * 1e6:.2f}", f"{a / b:.2f}"])
            if jax:
                rows[-1] += [f"{c * 1e6:.0f}", f"{c / b:.1f}"] if c else ["-", "-"]
    header = ["operation", "operand", "MPI, us", "ours, us", "MPI's time / ours"]
    return table([*header, "JAX (gloo), us", "JAX's time / ours"] if jax else header, rows)


def examples_text(own: dict[str, tuple[float, ...]]) -> str:
    """The table of the scaling of the examples."""
    rows = []
    for name, (one, two, weak, double, alone) in own.items():
        row = [name, *(f"{seconds * 1e3:.1f}" for seconds in (one, two, weak, alone))]
        ratios = (one / two / 2, one / weak, one / alone, double / weak / 2)
        rows.append([*row, *(f"{ratio:.2f}" for ratio in ratios)])
    times = ["1 process, ms", "2, ms", "2, twice the work, ms", "two copies of 1, ms"]
    return table(["example", *times, "strong", "weak", "two copies", "strong, twice the work"], rows)


def programs_text(found: dict[str, tuple[float, float | None]]) -> str:
    """The table of the programs beside JAX, with the geometric mean."""
    rows, ratios = [], []
    for name, (ours, jax) in found.items():
        theirs = [f"{jax * 1e3:.2f}", f"{jax / ours:.1f}"] if jax else ["-", "-"]
        rows.append([name, f"{ours * 1e3:.2f}", *theirs])
        ratios += [jax / ours] if jax else []
    if ratios:
        rows.append(["geometric mean", "", "", f"{math.prod(ratios) ** (1 / len(ratios)):.1f}"])
    return table(["program", "ours, ms", "JAX (gloo), ms", "JAX's time / ours"], rows)


def overlap_text(found: dict[tuple[str, str], float]) -> str:
    """The sentences on overlap."""

    def times(program: str) -> str:
        apart, beside = found[program, "overlap"] * 1e3, found[program, ""] * 1e3
        return f"{beside:.1f} ms, {apart:.1f} where each operation is waited for at once"

    return (
        "Two processes of which one has work before an all-reduce, the other after it: "
        f"{times('turns')}. One works twice as long beside an all-reduce, for which the other has to work before, and "
        f"with whose result it goes on: {times('relay')}. The same where that work stands before the operation in the "
        f"program: {times('early')}."
    )


def model_text(python: Path, rounds: int) -> str:
    """The tables of the model: what it says of this machine beside what is measured, and of more hosts."""
    ours: dict[Any, float] = {}
    for _ in range(rounds):
        least(ours, times(launched(2, python, "-m", "benchmarks.scale.ours", "pullback", "15", "4", str(1 << 22))))
    here = model.measured(ours)
    programs, seen = [], {}
    for name, option, once, twice in EXAMPLES:
        runs = ((1, once), (1, twice), (2, once), (4, once))
        found = [min(timed(p, python, "pullback", name, option, n) for _ in range(rounds)) for p, n in runs]
        programs.append(model.fitted(name, once, found[0], found[1]))
        seen |= {(name, 1): found[0], (name, 2): found[2], (name, 4): found[3]}
    cores = len(os.sched_getaffinity(0))
    check = model.check_rows(programs, here, seen, cores)
    said = model.prediction_rows(programs, here)
    figures = (
        f"Measured here: {here.latency * 1e6:.2f} us for a message and as much to post one, {here.rate / 1e9:.1f} "
        f"GB/s, sums of {here.adding / 1e9:.1f} GB/s; {cores} cores. Predicted / measured, ms:"
    )
    hosts = "Weak / strong efficiency on so many hosts, one process of one thread each:"
    columns = [f"{n} processes" for n in (2, 4)]
    return "\n\n".join(
        [
            figures,
            table(["example", "1 process", *columns], check),
            hosts,
            table(["example", "network", *map(str, model.HOSTS)], said),
        ]
    )


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


def into_page(page: Path, part: str, text: str) -> None:
    """Put a part's table between its marks in the page."""
    before, rest = page.read_text().split(f"<!-- {part} -->\n", 1)
    after = rest.split(f"<!-- /{part} -->", 1)[1]
    page.write_text(f"{before}<!-- {part} -->\n{text}\n<!-- /{part} -->{after}")


def main(argv: list[str] | None = None) -> int:
    """Time what is asked for, print the tables, and write them to the page and the picture if they are asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks scale", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--peer", type=Path, metavar="VENV", help="an environment that has jax, mpi4py and mpich")
    parser.add_argument("--only", choices=PARTS, nargs="+", default=PARTS, help="these parts alone")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--page", type=Path, help="put the tables into this page")
    parser.add_argument("--picture", type=Path, help="draw the times of collectives here (PNG)")
    given = parser.parse_args(argv)
    python = Path(sys.executable)
    peer = None if given.peer is None else given.peer / "bin" / "python"
    for part in given.only:
        if part == "collectives":
            raw, ours, jax = collectives(python, peer, given.rounds)
            text = collectives_text(raw, ours, jax)
            if given.picture:
                draw(given.picture, raw, ours, jax)
        elif part == "examples":
            text = examples_text(scaling(python, "pullback", given.rounds))
        elif part == "programs":
            text = programs_text(beside(python, peer, given.rounds))
        elif part == "model":
            text = model_text(python, given.rounds)
        else:
            text = overlap_text(overlapped(python, given.rounds))
        print(text, end="\n\n")
        if given.page:
            into_page(given.page, part, text)
    return 0


__all__ = ["main"]
