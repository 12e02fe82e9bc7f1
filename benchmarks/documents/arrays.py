"""F1: dot, einsum and eig from tiny to large arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from examples import _common as common
from examples import dot_einsum

from benchmarks.documents.section import TITLES, Section, Setting, run, spread
from benchmarks.program import Program
from benchmarks.report import times
from benchmarks.timing import Figures

PICTURE = "documents-arrays.png"
LEVELS = ("eager, own arrays", "jitted, own arrays", "eager, NumPy arrays", "jitted, NumPy arrays")
SMALL = 10


def torch_operations(torch: Any) -> dict[str, Callable]:
    """The three operations in PyTorch's words."""
    return {
        "dot": torch.dot,
        "einsum": lambda x, y: torch.einsum("ni,ni->ni", x, y),
        "eig": torch.linalg.eig,
    }


def programs(quick: bool) -> list[Program]:
    """A program for each operation, size and level; the libraries without levels are timed with the first."""

    def of(name: str, n: int, level: str) -> Program:
        first = level == LEVELS[0]
        by_numpy = dot_einsum.operations(np)[name]
        return Program(
            f"{name}, n = {n}: {level}",
            inputs=lambda rng: dot_einsum.inputs(name, n),
            jax=lambda jax: dot_einsum.levels(jax, name)[level],
            numpy=by_numpy if first else None,
            torch=(lambda torch: torch_operations(torch)[name]) if first else None,
            autograd=(lambda autograd, anp: dot_einsum.operations(anp)[name]) if first else None,
            jit=False,
            as_numpy="NumPy" in level,
            tolerance=None if name == "eig" else 1e-4,  # eigenvectors are not unique
        )

    sizes = (5, 100) if quick else dot_einsum.SIZES
    cells = [(name, n) for name in dot_einsum.operations(np) for n in dot_einsum.sizes_of(name, sizes)]
    return [of(name, n, level) for name, n in cells for level in LEVELS]


def measure(setting: Setting) -> Iterator[Figures]:
    """All libraries."""
    return run("F1", programs(setting.quick), ("pullback", "jax", "numpy", "autograd", "torch"), setting)


def render(figures: Sequence[Figures], folder: Path) -> list[str]:
    """Two tables and a picture."""
    cells: dict[str, dict[str, Figures]] = {}
    for f in figures:
        cell, level = f.name.split(": ")
        cells.setdefault(cell, {})[level] = f

    def seconds(cell: str, level: str, side: str) -> float | None:
        return cells[cell][level].seconds.get(side) if level in cells[cell] else None

    def by_numpy(cell: str) -> float | None:
        return seconds(cell, LEVELS[0], "numpy")

    def table(eager: str, jitted: str, plain: Sequence[str]) -> str:
        columns = [(LEVELS[0], side) for side in plain]
        columns += [(level, side) for side in ("jax", "pullback") for level in (eager, jitted)]
        header = [TITLES[s] + ("" if s in plain else f", {level.split(',')[0]}") for level, s in columns]
        rows = [[cell, *(seconds(cell, level, side) for level, side in columns)] for cell in cells]
        return common.table(["operation", *header], rows)

    def against_numpy(side: str, level: str, small: bool) -> str:
        chosen = [c for c in cells if (int(c.split()[-1]) <= SMALL) == small and not c.startswith("eig")]
        found = [(seconds(c, level, side), by_numpy(c)) for c in chosen]
        return spread(a / b for a, b in found if a and b)

    draw(cells, folder / PICTURE)
    losing = [
        f"{cell}, {level} ({times(ours / theirs)})"
        for cell in cells
        for level in LEVELS
        if (ours := seconds(cell, level, "pullback")) and (theirs := by_numpy(cell)) and ours > 1.1 * theirs
    ]
    return [
        f"**JAX today.** At n <= {SMALL}, dot and einsum on JAX's own arrays take "
        f"{against_numpy('jax', LEVELS[0], True)} NumPy's time eagerly and {against_numpy('jax', LEVELS[1], True)} "
        f"jitted; on larger ones {against_numpy('jax', LEVELS[0], False)} and "
        f"{against_numpy('jax', LEVELS[1], False)}.",
        f"**pullback.** At n <= {SMALL}: {against_numpy('pullback', LEVELS[0], True)} NumPy's time eagerly and "
        f"{against_numpy('pullback', LEVELS[1], True)} jitted; on larger ones "
        f"{against_numpy('pullback', LEVELS[0], False)} and {against_numpy('pullback', LEVELS[1], False)}. "
        + (
            f"More than a tenth slower than NumPy (times its time): {'; '.join(losing)}."
            if losing
            else "Nothing of the table is more than a tenth slower than NumPy."
        ),
        "Each library's own arrays:",
        table(LEVELS[0], LEVELS[1], ("numpy", "autograd", "torch")),
        "From NumPy's arrays:",
        table(LEVELS[2], LEVELS[3], ("numpy",)),
        f"![time over n of dot, einsum and eig]({PICTURE})",
    ]


def draw(cells: dict[str, dict[str, Figures]], path: Path) -> None:
    """A panel for each operation: time over n."""
    lines = {
        "NumPy": (LEVELS[0], "numpy", "k--"),
        "PyTorch": (LEVELS[0], "torch", "g--"),
        "JAX, eager": (LEVELS[0], "jax", "b-"),
        "JAX, jitted": (LEVELS[1], "jax", "b:"),
        "pullback, eager": (LEVELS[0], "pullback", "r-"),
        "pullback, jitted": (LEVELS[1], "pullback", "r:"),
    }
    names = list(dict.fromkeys(cell.split(",")[0] for cell in cells))
    with common.picture(path, columns=max(2, len(names))) as axes:
        for panel, name in zip(axes[0], names):
            of_name = {int(cell.split()[-1]): levels for cell, levels in cells.items() if cell.startswith(name + ",")}
            for label, (level, side, style) in lines.items():
                known = {n: 1e6 * f[level].seconds[side] for n, f in of_name.items() if side in f[level].seconds}
                panel.loglog(list(known), list(known.values()), style, marker=".", label=label)
            panel.set(title=name, xlabel="n", ylabel="microseconds")
            panel.grid(alpha=0.3)
        axes[0][0].legend(fontsize="small")


SECTION = Section(
    "F1",
    "dot, einsum and eig on small and large arrays",
    "times `dot`, `einsum` and `eig` from 5 to 10,000 elements a side, by NumPy, autograd and JAX, eager and "
    "jitted, from NumPy's arrays and from JAX's. On small arrays JAX takes 10 to 300 times NumPy's time, all of it the "
    "overhead of calls. Here: `dot` of two vectors of n, `einsum('ni,ni->ni')` of n x 10, `eig` of n x n up to "
    f"{dot_einsum.LARGEST_EIG}; [examples/dot_einsum.py](../examples/dot_einsum.py).",
    measure,
    render,
)
