"""A section of docs/documents.md: what is measured, and how the measured values become text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from examples import _common as common

from benchmarks import timing
from benchmarks.program import Program
from benchmarks.report import mean, times
from benchmarks.sides import make_sides
from benchmarks.timing import Figures

TITLES = {"pullback": "pullback", "jax": "JAX", "torch": "PyTorch", "numpy": "NumPy", "autograd": "autograd"}
TOO_SLOW = "too slow"  # how the message of what was not begun starts
GAPS = ("MemoryError", "OutOfMemoryError", TOO_SLOW)  # what is no failure


@dataclass(frozen=True)
class Setting:
    """How to measure."""

    quick: bool  # small sizes
    rounds: int
    peers: Path | None  # the environment that has JAX, PyTorch and autograd


@dataclass(frozen=True)
class Section:
    """One program of the documents."""

    key: str  # F1, ...
    title: str
    found: str  # what the document does and found, after the words 'The document'
    measure: Callable[[Setting], Iterator[Figures]]  # one after the other, so that what is known is kept
    render: Callable[[Sequence[Figures], Path], list[str]]  # paragraphs and tables; pictures go to the folder
    limit: float = 240  # seconds, after which what was measured has to do


def run(key: str, programs: Sequence[Program], sides: Sequence[str], setting: Setting) -> Iterator[Figures]:
    """Time programs on these sides, interleaved."""
    made = make_sides(sides, required=True)
    for k, program in enumerate(programs):
        common.progress(f"{key}, {k + 1} of {len(programs)}: {program.name}")
        yield timing.measure(key, program, made, None, setting.rounds)


def times_table(title: str, figures: Sequence[Figures], sides: Sequence[str]) -> str:
    """A row for each program, its time on each side, and how many times faster than JAX pullback is."""
    shown = [s for s in sides if any(s in f.seconds for f in figures)]
    header = [title, *(TITLES.get(s, s) for s in shown), "JAX / pullback"]
    return common.table(header, [[f.name, *(f.seconds.get(s) for s in shown), times(f.ratio("jax"))] for f in figures])


def spread(ratios: Iterable[float | None]) -> str:
    """'2.1 to 30 times (8.5 in the geometric mean)', of what is known."""
    known = [r for r in ratios if r]
    if not known:
        return "an unknown number of times"
    if len(known) == 1:
        return f"{times(known[0])} times"
    return f"{times(min(known))} to {times(max(known))} times ({times(mean(known))} in the geometric mean)"


def faster(figures: Iterable[Figures], peer: str) -> str:
    """How many times faster than a peer pullback is, over programs."""
    return spread(f.ratio(peer) for f in figures)


def failures(figures: Iterable[Figures]) -> list[str]:
    """A sentence for each kind of failure, with the programs it hit; what has no room or time is no failure."""
    kinds: dict[tuple[str, str], list[str]] = {}
    for f in figures:
        for side, message in f.failed.items():
            if not message.startswith(GAPS):
                kinds.setdefault((side, message.splitlines()[0]), []).append(f.name)
    return [f"{TITLES.get(side, side)} fails ({'; '.join(n)}): {m}" for (side, m), n in kinds.items()]
