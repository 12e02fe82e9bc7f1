"""Writes measured tables into a page of the documents, between markers: `<!-- ratios -->` to `<!-- /ratios -->`.

python -m benchmarks --peers VENV --sides pullback,jax,torch,numpy --sample 16 --rounds 3 --json bench.json
python -m benchmarks.page bench.json        # 'ratios' and 'slow' of docs/performance.md, and its picture
python -m benchmarks.passes --page docs/performance.md
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks import report
from benchmarks.timing import Figures

# Ratios that each group is to reach: against JAX, against the best peer.
GOALS = {
    "elementwise": (5, 1.5), "reductions": (3, 1.2), "rowwise": (3, 1.3), "movement": (5, 1.5), "indexing": (2, 1.2),
    "ordering": (20, 1), "products": (2, 1), "convolution": (2, 1), "derivatives": (4, 1.5), "loops": (1.5, None),
    "training": (3, 1.3), "random": (5, 1), "linear algebra": (1.5, 1), "fft": (1, 0.8),
}  # fmt: skip
SLOW = 0.75  # of the best peer's speed, below which a program is listed


def main(argv: list[str] | None = None) -> int:
    """Put the figures of a run into the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.page", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("figures", type=Path, help="what `python -m benchmarks --json` wrote")
    parser.add_argument("--page", type=Path, default=Path("docs/performance.md"))
    options = parser.parse_args(argv)
    figures = report.read_json(options.figures)
    machine = json.loads(options.figures.read_text())
    write(options.page, "ratios", ratios(figures))
    report.draw(options.page.with_name("performance.png"), figures)
    write(
        options.page,
        "slow",
        [
            f"In that run the machine copied {machine['bytes per second'] / 1e9:.0f} GB/s and did "
            f"{machine['operations per second'] / 1e9:.0f} GFLOP/s. Programs that are slower than JAX, or at less "
            f"than {SLOW} of the best peer's speed:",
            "",
            *slow(figures),
        ],
    )
    return 0


def write(page: Path, name: str, lines: Sequence[str]) -> None:
    """Replace what stands between the markers of a name; ValueError if they are not there."""
    start, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    before, found, rest = page.read_text().partition(start)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise ValueError(f"{page} has no {start} ... {end}")
    page.write_text(f"{before}{start}\n" + "\n".join(lines) + f"\n{end}{after}")


def ratios(all_figures: Sequence[Figures]) -> list[str]:
    """Geometric means per group with their goals, as a table."""
    lines = [
        "| group | programs | goal | x JAX | least | goal | x best peer | least |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, count, found in _by_group(all_figures):
        columns = []
        for goal, known in zip(GOALS.get(name, (None, None)), found):
            columns += [_text(goal, "g"), _text(report.mean(known), ".2f"), _text(min(known, default=None), ".2f")]
        lines.append(f"| {name} | {count} | " + " | ".join(columns) + " |")
    return lines


def _by_group(all_figures: Sequence[Figures]) -> Iterator[tuple[str, int, tuple[list[float], list[float]]]]:
    """(group, programs, ratios to JAX and to the best peer) of each group and of all."""
    for name in [*dict.fromkeys(f.group for f in all_figures), "all"]:
        chosen = [f for f in all_figures if name in ("all", f.group)]
        pairs = [f.ratio("jax") for f in chosen], [_best(f) for f in chosen]
        jax, best = ([ratio for ratio in found if ratio] for found in pairs)
        yield name, len(chosen), (jax, best)


def slow(all_figures: Sequence[Figures]) -> list[str]:
    """The programs that are slower than JAX or far behind the best peer, as a table."""
    lines = ["| program | pullback | x JAX | x best peer |", "| --- | --- | --- | --- |"]
    for f in all_figures:
        jax, best = f.ratio("jax"), _best(f)
        if (jax and jax < 1) or (best and best < SLOW):
            peer = f" {f.best_peer}" if best else ""
            ours = report.readable(f.seconds.get("pullback"))
            lines.append(f"| {f.group}: {f.name} | {ours} | {_text(jax, '.2f')} | {_text(best, '.2f')}{peer} |")
    return lines


def _best(figures: Figures) -> float | None:
    return figures.ratio(figures.best_peer) if figures.best_peer else None


def _text(number: float | None, form: str) -> str:
    return "-" if number is None else format(number, form)


if __name__ == "__main__":
    sys.exit(main())
