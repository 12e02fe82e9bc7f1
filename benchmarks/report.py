"""Figures as a table, a JSON file, a picture, and a comparison with earlier ones."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path

from benchmarks.limits import Limits
from benchmarks.program import SPELLING, Program
from benchmarks.timing import Figures

NAME_WIDTH = 46


def readable(seconds: float | None) -> str:
    """A time in a unit that suits it."""
    if seconds is None:
        return "-"
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def header(sides: Sequence[str]) -> str:
    """The first line of a table."""
    columns = "".join(f"{s:>14}" for s in sides)
    return f"{'program':<{NAME_WIDTH}}{columns}{'x jax':>8}{'x best peer':>18}{'limit':>7}{'kernels':>9}{'moved':>7}"


def title(program: Program | Figures) -> str:
    """The name of a program, with the number of the thread of jax-ml/jax that it comes from."""
    return program.name + (f" (#{program.thread})" if program.thread else "")


def line(figures: Figures, sides: Sequence[str]) -> str:
    """One program: times, ratios (above 1: pullback is faster), share of the machine's limit, bytes moved per least."""
    columns = "".join(
        f"{'failed' if s in figures.failed and s not in figures.seconds else readable(figures.seconds.get(s)):>14}"
        for s in sides
    )
    peer = figures.best_peer
    best = figures.ratio(peer) if peer else None
    moved = figures.bytes_moved / figures.bytes_least if figures.bytes_moved and figures.bytes_least else None
    name = title(figures)
    late = "  over its limit of " + readable(figures.limit) if is_late(figures) else ""
    return (
        f"{name[: NAME_WIDTH - 1]:<{NAME_WIDTH}}{columns}{times(figures.ratio('jax')):>8}"
        f"{f'{times(best)} {peer}' if best else '-':>18}"
        f"{f'{figures.share:.0%}' if figures.share else '-':>7}"
        f"{f'{figures.kernels:.0f}' if figures.kernels is not None else '-':>9}"
        f"{times(moved):>7}{late}"
    )


def is_late(figures: Figures) -> bool:
    """Whether a program takes longer than it may."""
    ours = figures.seconds.get("pullback")
    return bool(figures.limit and ours and ours > figures.limit)


def summary(all_figures: Sequence[Figures]) -> list[str]:
    """Geometric means per group and over all."""
    lines = [f"{'group':<{NAME_WIDTH}}{'programs':>10}{'x jax':>10}{'slowest':>10}{'x best peer':>14}{'slowest':>10}"]
    names = list(dict.fromkeys(f.group for f in all_figures))
    for name in [*names, "all"]:
        chosen = [f for f in all_figures if name in ("all", f.group)]
        jax = [r for f in chosen if (r := f.ratio("jax"))]
        best = [r for f in chosen if f.best_peer and (r := f.ratio(f.best_peer))]
        lines.append(
            f"{name:<{NAME_WIDTH}}{len(chosen):>10}{times(mean(jax)):>10}{times(min(jax, default=None)):>10}"
            f"{times(mean(best)):>14}{times(min(best, default=None)):>10}"
        )
    return lines


def spellings(all_figures: Sequence[Figures]) -> list[str]:
    """For each computation that is written in several ways, how far the ways lie apart, and the least speed-up."""
    families: dict[str, list[Figures]] = {}
    for f in all_figures:
        family, found, _ = f.name.partition(SPELLING)
        if found and "pullback" in f.seconds:
            families.setdefault(family, []).append(f)
    lines = [f"{'computation':<{NAME_WIDTH}}{'fastest':>12}{'slowest':>12}{'apart':>8}{'x jax':>8}  slowest spelling"]
    apart = []
    for family, figures in families.items():
        first, last = (choose(figures, key=lambda f: f.seconds["pullback"]) for choose in (min, max))
        apart.append(last.seconds["pullback"] / first.seconds["pullback"])
        least = min((r for f in figures if (r := f.ratio("jax"))), default=None)
        lines.append(
            f"{family[: NAME_WIDTH - 1]:<{NAME_WIDTH}}{readable(first.seconds['pullback']):>12}"
            f"{readable(last.seconds['pullback']):>12}{times(apart[-1]):>8}{times(least):>8}"
            f"  {last.name.partition(SPELLING)[2]}"
        )
    return [*lines, f"{sum(r > 1.5 for r in apart)} of {len(apart)} lie more than 1.5 apart"] if families else []


def mean(ratios: Iterable[float]) -> float | None:
    """Geometric mean; None of nothing."""
    logs = [math.log(r) for r in ratios]
    return math.exp(sum(logs) / len(logs)) if logs else None


def times(ratio: float | None) -> str:
    """A ratio with as many digits as matter."""
    return "-" if ratio is None else f"{ratio:.2f}" if ratio < 10 else f"{ratio:.0f}"


def write_json(path: Path, all_figures: Sequence[Figures], limits: Limits) -> None:
    """Everything measured."""
    content = {
        "bytes per second": limits.bytes_per_second,
        "operations per second": limits.operations_per_second,
        "programs": [f.as_json() for f in all_figures],
    }
    path.write_text(json.dumps(content, indent=1) + "\n")


def read_json(path: Path) -> list[Figures]:
    """Figures written by `write_json`."""
    return [Figures(**f) for f in json.loads(path.read_text())["programs"]]


def comparison(old: Sequence[Figures], new: Sequence[Figures]) -> list[str]:
    """What a change did: our time before per our time now, and the same corrected by how the peers' times moved."""
    before = {(f.group, f.name): f for f in old}
    lines = [f"{'program':<{NAME_WIDTH}}{'before':>12}{'now':>12}{'faster':>9}{'corrected':>11}"]
    corrected_ratios = []
    for f in new:
        was = before.get((f.group, f.name))
        if was is None or "pullback" not in was.seconds or "pullback" not in f.seconds:
            continue
        ratio = was.seconds["pullback"] / f.seconds["pullback"]
        shared = [s for s in f.seconds if s != "pullback" and s in was.seconds]
        drift = mean(was.seconds[s] / f.seconds[s] for s in shared) or 1.0
        corrected_ratios.append(ratio / drift)
        lines.append(
            f"{f.name[: NAME_WIDTH - 1]:<{NAME_WIDTH}}{readable(was.seconds['pullback']):>12}"
            f"{readable(f.seconds['pullback']):>12}{ratio:>9.2f}{ratio / drift:>11.2f}"
        )
    lines.append(f"geometric mean, corrected: {times(mean(corrected_ratios))} over {len(corrected_ratios)} programs")
    return lines


THEMES = {  # background, text, lines, JAX, best peer
    "light": ("#ffffff", "#1d2430", "#dfe2e8", "#2456c7", "#d0702f"),
    "dark": ("#12151b", "#e5e8ee", "#2c3340", "#8db1ff", "#f0a868"),
}


def draw(path: Path, all_figures: Sequence[Figures]) -> None:
    """A row for each group, a dot for each program: how many times faster pullback is than JAX, and below it than the
    best peer, on a logarithmic axis; 900 x 600 pixels. A second picture, `<name>-dark.png`, is for dark pages.
    """
    for theme in THEMES:
        _draw(path if theme == "light" else path.with_stem(f"{path.stem}-{theme}"), all_figures, theme)


def _draw(path: Path, all_figures: Sequence[Figures], theme: str) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    background, text, lines, *colours = THEMES[theme]
    groups: dict[str, list[Figures]] = {}
    for f in all_figures:
        if "pullback" in f.seconds and len(f.seconds) > 1:
            groups.setdefault(f.group, []).append(f)
    if not groups:
        return
    figure, axes = pyplot.subplots(figsize=(9, 6), layout="constrained", facecolor=background)
    axes.set_facecolor(background)
    names = sorted(groups, key=lambda name: -(mean([r for f in groups[name] if (r := f.ratio("jax"))]) or 0))
    for y, name in enumerate(names):
        if y % 2 == 0:
            axes.axhspan(y - 0.5, y + 0.5, color=lines, alpha=0.25, linewidth=0)
        jax = [r for f in groups[name] if (r := f.ratio("jax"))]
        peer = [r for f in groups[name] if f.best_peer and (r := f.ratio(f.best_peer))]
        for offset, ratios, colour, label in ((-0.17, jax, colours[0], "JAX"), (0.19, peer, colours[1], "best peer")):
            axes.plot(
                ratios, [y + offset] * len(ratios), "o", color=colour, markersize=4.5, alpha=0.5, markeredgewidth=0
            )
            middle = mean(ratios)
            if middle:
                axes.plot([middle] * 2, [y + offset - 0.15, y + offset + 0.15], color=colour, linewidth=2.4,
                          label=f"than {label} (line: geometric mean)" if y == 0 else None)  # fmt: skip
    axes.axvline(1, color=text, linewidth=1.0)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:g}")
    axes.set_yticks(range(len(names)), [f"{name} ({len(groups[name])})" for name in names])
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlabel("times faster (right of 1: pullback is faster)", color=text)
    axes.tick_params(colors=text, which="both", length=0)
    axes.grid(axis="x", color=lines, linewidth=0.8)
    axes.set_axisbelow(True)
    for side in axes.spines.values():
        side.set_visible(False)
    figure.legend(loc="outside upper left", ncols=2, frameon=False, labelcolor=text, handlelength=0.6)
    figure.savefig(path, dpi=100, facecolor=background)
    pyplot.close(figure)
