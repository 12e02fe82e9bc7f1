"""F7: spectral radii of 128 matrices of 3 x 3."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from examples import _common as common
from examples import spectral_radius

from benchmarks.documents.section import TITLES, Section, Setting, faster, run, spread, times_table
from benchmarks.program import Program
from benchmarks.timing import Figures

PICTURE = "documents-radii.png"
SIDES = ("pullback", "jax", "numpy", "torch")


def torch_levels(torch: Any) -> dict[str, Callable]:
    """The levels that PyTorch has."""

    def radius(matrices):
        return torch.linalg.eigvals(matrices).abs().amax(-1)

    return {
        "looped": lambda matrices: torch.stack([radius(m) for m in matrices]),
        "vmap": torch.func.vmap(radius),
        "batched by hand": radius,
    }


def numpy_levels() -> dict[str, Callable]:
    """The levels that NumPy has."""
    radius = spectral_radius.by_numpy
    return {"looped": lambda matrices: np.stack([radius(m) for m in matrices]), "batched by hand": radius}


def programs(count: int) -> list[Program]:
    """One for each level of the example."""
    import pullback

    def of(level: str) -> Program:
        has_torch = level in ("looped", "vmap", "batched by hand")
        return Program(
            level,
            inputs=lambda rng: spectral_radius.inputs(count),
            jax=lambda jax: spectral_radius.levels(jax)[level],
            numpy=numpy_levels().get(level),
            torch=(lambda torch: torch_levels(torch)[level]) if has_torch else None,
            jit=False,
            tolerance=1e-4,
        )

    return [of(level) for level in spectral_radius.levels(pullback)]


def measure(setting: Setting) -> Iterator[Figures]:
    """All but autograd, which has no eigenvalues of stacks."""
    return run("F7", programs(16 if setting.quick else spectral_radius.COUNT), SIDES, setting)


def render(figures: Sequence[Figures], folder: Path) -> list[str]:
    """A table and bars."""
    found = {f.name: f for f in figures}
    draw(found, folder / PICTURE)

    def gain(side: str) -> str:
        looped, vectorized = (found[k].seconds.get(side) if k in found else None for k in ("looped", "jitted vmap"))
        return spread([looped / vectorized if looped and vectorized else None])

    best = {s: min((f.seconds[s] for f in figures if s in f.seconds), default=None) for s in SIDES}

    def against(peer: str) -> str:
        ours, theirs = best["pullback"], best[peer]
        return spread([ours / theirs if ours and theirs else None])

    return [
        f"**JAX today.** Jitted `vmap` is faster than the eager loop by {gain('jax')}.",
        f"**pullback.** Jitted `vmap` is faster than its eager loop by {gain('pullback')}; over the levels "
        f"JAX takes {faster(figures, 'jax')} as long. Its best level takes {against('numpy')} NumPy's best time, and "
        f"{against('torch')} PyTorch's.",
        times_table("level", figures, SIDES),
        f"![time of each level]({PICTURE})",
    ]


def draw(found: dict[str, Figures], path: Path) -> None:
    """Bars for each level, a colour for each library."""
    colours = dict(zip(SIDES, ("tab:red", "tab:blue", "black", "tab:green")))
    with common.picture(path) as axes:
        for k, side in enumerate(SIDES):
            bars = {y: 1e6 * f.seconds[side] for y, f in enumerate(found.values()) if side in f.seconds}
            places = [y + 0.2 * (k - 1.5) for y in bars]
            axes.barh(places, list(bars.values()), 0.2, color=colours[side], label=TITLES[side])
        axes.set_yticks(range(len(found)), list(found))
        axes.invert_yaxis()
        axes.set(xscale="log", xlabel="microseconds")
        axes.grid(axis="x", alpha=0.3)
        axes.legend()


SECTION = Section(
    "F7",
    "Spectral radii of 128 matrices of 3 x 3",
    "computes them in a loop, a loop of jitted calls, by `vmap`, jitted `vmap`, and batched by hand, with NumPy "
    "and PyTorch beside them, and differentiates through the eigenvalues; "
    "[examples/spectral_radius.py](../examples/spectral_radius.py).",
    measure,
    render,
)
