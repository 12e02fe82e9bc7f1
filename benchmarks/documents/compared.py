"""F9: torch.func and torch.compile where they do the same work."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from examples import _common as common
from examples import least_squares, spectral_radius

from benchmarks.documents import derivatives, layers, radii
from benchmarks.documents.section import TITLES, Section, Setting, faster, run, spread
from benchmarks.program import Program
from benchmarks.report import times
from benchmarks.timing import Figures

SIDES = ("pullback", "jax", "torch", "torch.compile")
LAYER = (100, 100, 10)  # n, p, o


def programs(quick: bool) -> list[Program]:
    """What F2, F3 and F7 compute compiled, once more with PyTorch's compiler."""
    n, p, o = LAYER
    wanted = {
        "gradient: grad, jitted": "gradient of least squares",
        "Hessian: hessian, jitted": "Hessian of least squares",
        f"vmap(jacrev): n = {n}, p = {p}, o = {o}": f"Jacobians of a linear layer, {n} x {p} to {o}: vmap(jacrev)",
        f"vmap(vmap(grad)): n = {n}, p = {p}, o = {o}": "the same without zeros: vmap(vmap(grad))",
        "jitted vmap": "spectral radii of 128 matrices: vmap",
    }
    size = 100 if quick else least_squares.SIZE
    known = [*derivatives.programs(size), *layers.programs(quick=False), *radii.programs(spectral_radius.COUNT)]
    chosen = []
    for program in known:
        if program.name.startswith(("softmax", "Hessian-vector")):
            chosen.append(dataclasses.replace(program))
        elif program.name in wanted:
            chosen.append(dataclasses.replace(program, name=wanted[program.name], torch=program.torch or _radii))
    return chosen


def _radii(torch: Any) -> Any:
    return radii.torch_levels(torch)["vmap"]


def measure(setting: Setting) -> Iterator[Figures]:
    """pullback and JAX jitted, PyTorch eager and compiled."""
    return run("F9", programs(setting.quick), SIDES, setting)


def render(figures: Sequence[Figures], folder: Path) -> list[str]:
    """Times, and the times of first calls, which compile."""
    compiled = "torch.compile"

    def cells(values: dict[str, float], failed: dict[str, str]) -> list[Any]:
        return [f"fails ({readable_name(failed[s])})" if s in failed else values.get(s) for s in SIDES]

    def readable_name(message: str) -> str:
        return message.split(":")[0].split(".")[-1]

    header = [TITLES.get(s, s) for s in SIDES]
    rows = [[f.name, *cells(f.seconds, f.failed), times(f.ratio("torch")), times(f.ratio(compiled))] for f in figures]
    firsts = [[f.name, *cells(f.first, f.failed)] for f in figures]
    waits = spread(f.first[compiled] / f.first["pullback"] for f in figures if {compiled, "pullback"} <= set(f.first))
    return [
        f"**JAX today.** Its compiled programs are faster than `torch.func`'s by "
        f"{spread(f.seconds['torch'] / f.seconds['jax'] for f in figures if {'torch', 'jax'} <= set(f.seconds))}.",
        f"**pullback.** It is faster than eager `torch.func` by {faster(figures, 'torch')}, than `torch.compile` by "
        f"{faster(figures, compiled)}; the first call under `torch.compile` takes {waits} as long as pullback's.",
        common.table(["calls", *header, "PyTorch / pullback", "torch.compile / pullback"], rows),
        "First calls, with tracing and compilation (PyTorch's compiler keeps its results on disk, as pullback does):",
        common.table(["first calls", *header], firsts),
    ]


SECTION = Section(
    "F9",
    "torch.func and torch.compile",
    "compares JAX with functorch, which is `torch.func` now. Here are the programs of F2, F3 and F7 that both "
    "have: pullback and JAX jitted, PyTorch eager and through `torch.compile`.",
    measure,
    render,
    limit=300,
)
