"""F5: normal samples of 100 x 100."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from examples import normal_samples

from benchmarks.documents.section import Section, Setting, faster, run, times_table
from benchmarks.program import Program
from benchmarks.report import times
from benchmarks.timing import Figures

SIDES = ("pullback", "jax", "numpy", "torch")


def programs(size: int) -> list[Program]:
    """Eager and jitted; NumPy and PyTorch have one way only."""

    def of(level: str) -> Program:
        return Program(
            level,
            inputs=lambda rng: (),
            jax=lambda jax: partial(normal_samples.levels(jax)[level], jax.random.PRNGKey(0), size),
            numpy=partial(normal_samples.by_numpy, size),
            torch=lambda torch: partial(torch.randn, size, size),
            jit=False,
            tolerance=None,  # each library has its own generator
        )

    return [of("eager"), of("jitted")]


def measure(setting: Setting) -> Iterator[Figures]:
    """All but autograd, which has no generator."""
    return run("F5", programs(normal_samples.SIZE), SIDES, setting)


def render(figures: Sequence[Figures], folder: Path) -> list[str]:
    """A table."""
    jitted = figures[-1]

    def against_torch(side: str) -> str:
        known = side in jitted.seconds and "torch" in jitted.seconds
        return times(jitted.seconds[side] / jitted.seconds["torch"] if known else None)

    return [
        f"**JAX today.** Jitted, it takes {against_torch('jax')} times PyTorch's time.",
        f"**pullback.** Jitted, it takes {against_torch('pullback')} times PyTorch's time, and JAX takes "
        f"{faster(figures, 'jax')} as long. For one key both give the same numbers.",
        times_table("level", figures, SIDES),
    ]


SECTION = Section(
    "F5",
    "Normal samples of 100 x 100",
    "draws 100 x 100 normal variables, eagerly, jitted, by NumPy and by PyTorch, which is three times as fast "
    "as JAX; [examples/normal_samples.py](../examples/normal_samples.py).",
    measure,
    render,
)
