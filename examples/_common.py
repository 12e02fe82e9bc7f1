"""What the examples share: the choice of an implementation of JAX's API, options, timing, tables and pictures."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks import timing
from benchmarks.report import readable

PARTS = ("numpy", "lax", "nn", "random", "scipy.special", "tree_util")


def backend(name: str, as_jax: bool = False) -> Any:
    """The module `jax` or `pullback` with its usual parts; as_jax: libraries that import jax get it, too."""
    if as_jax and name == "pullback":
        importlib.import_module("pullback").install_as_jax()
    for part in PARTS:
        importlib.import_module(f"{name}.{part}")
    return importlib.import_module(name)


def parser(example: str, description: str, picture: bool = True) -> argparse.ArgumentParser:
    """The options that all examples have, and that for a picture; the description is a docstring's first paragraph."""
    made = argparse.ArgumentParser(prog=f"python -m examples.{example}", description=description.split("\n\n")[0])
    made.add_argument("--backend", choices=("pullback", "jax"), default="pullback", help="whose JAX API to run on")
    if picture:
        made.add_argument("--picture", type=Path, metavar="PNG", help="draw the result here")
    return made


def add_rounds(options: argparse.ArgumentParser) -> None:
    """The option of the examples that time something."""
    options.add_argument("--rounds", type=int, default=5, help="a time is the least of so many (default: %(default)s)")


def seconds(jax: Any, calls: Mapping[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """The least time of each call over interleaved rounds, with the wait for its result."""

    def waiting(call: Callable[[], Any]) -> Callable[[], Any]:
        return lambda: jax.block_until_ready(call())

    return timing.fastest({name: waiting(call) for name, call in calls.items()}, rounds)


def difference(result: Any, expected: Any) -> float:
    """The largest absolute difference, relative to the largest expected value."""
    result, expected = np.asarray(result), np.asarray(expected)
    if result.shape != expected.shape:
        raise ValueError(f"shapes differ: {result.shape}, expected {expected.shape}")
    return float(np.max(np.abs(result - expected)) / np.max(np.abs(expected)))


def table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """An aligned table in Markdown; the first column is text, the others are flush right, and floats are seconds."""
    cells = [list(header)]
    cells += [[readable(x) if isinstance(x, float) or x is None else str(x) for x in row] for row in rows]
    widths = [max(len(row[k]) for row in cells) for k in range(len(header))]

    def line(row: Sequence[str]) -> str:
        return "| " + " | ".join(f"{x:{'>' if k else '<'}{widths[k]}}" for k, x in enumerate(row)) + " |"

    rule = "| " + " | ".join("-" * (w - 1) + (":" if k else "-") for k, w in enumerate(widths)) + " |"
    return "\n".join([line(cells[0]), rule, *map(line, cells[1:])])


def progress(text: str) -> None:
    """One line on stderr that the next replaces."""
    print(f"\r{text:<78}", end="", file=sys.stderr, flush=True)


@contextlib.contextmanager
def picture(path: Path, rows: int = 1, columns: int = 1, **subplots: Any) -> Iterator[Any]:
    """Axes to draw on, or a grid [row][column] of them if there are several, written to a PNG at the end."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    one = rows == columns == 1
    size = (7, 4.5) if one else (4 * columns, 1 + 2.8 * rows)
    figure, axes = pyplot.subplots(rows, columns, layout="constrained", figsize=size, squeeze=False, **subplots)
    yield axes[0][0] if one else axes
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
    print(f"drawn: {path}", file=sys.stderr)
