"""F3: gradients of a linear layer over a grid of sizes."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from examples import _common as common
from examples import linear_layer

from benchmarks import timing
from benchmarks.documents.section import TITLES, TOO_SLOW, Section, Setting, faster
from benchmarks.program import Program
from benchmarks.report import mean, times
from benchmarks.sides import make_sides
from benchmarks.timing import Figures

PICTURE = "documents-layer.png"
SIDES = ("pullback", "jax", "torch")
MEMORY = 0.5e9  # bytes that a program may take
COMPARED = 1_000_000  # elements of the largest results that are compared
ROUNDS = 3
SLOW = 2.0  # seconds that a call may take, as a smaller cell foretells
FORETELLS = 0.02  # seconds from which a cell does; shorter calls are mostly overhead

Cell = tuple[int, int, int]  # n, p, o


def with_room(jax: Any, method: str, cell: Cell) -> Callable:
    """The example's function, unless its compiler says that it takes too much memory."""
    function = linear_layer.methods(jax)[method]
    given = tuple(map(jax.numpy.asarray, linear_layer.inputs(*cell)))
    needed = linear_layer.bytes_needed(function, given)
    if needed > MEMORY:
        raise MemoryError(f"{needed / 1e9:.1f} GB")
    return function


def torch_method(torch: Any, method: str, cell: Cell) -> Callable:
    """The same transformations by torch.func; results that take too much memory are not begun."""
    func = torch.func
    needed = 4 * result_elements(method, cell)
    if needed > MEMORY:
        raise MemoryError(f"{needed / 1e9:.1f} GB")

    def layer(w, b, x):
        return x @ w.T + b

    def output(row, bias, sample):
        return row @ sample + bias

    def for_each_sample(f: Callable) -> Callable:
        return func.vmap(f, in_dims=(None, None, 0))

    return {
        "jacfwd": lambda: func.jacfwd(layer),
        "jacrev": lambda: func.jacrev(layer),
        "vmap(jacfwd)": lambda: for_each_sample(func.jacfwd(layer)),
        "vmap(jacrev)": lambda: for_each_sample(func.jacrev(layer)),
        "vmap(vmap(grad))": lambda: for_each_sample(func.vmap(func.grad(output), in_dims=(0, 0, None))),
    }[method]()


def programs(quick: bool) -> list[Program]:
    """One for each method and cell of the grid."""

    def of(method: str, cell: Cell) -> Program:
        n, p, o = cell
        return Program(
            f"{method}: n = {n}, p = {p}, o = {o}",
            inputs=lambda rng: linear_layer.inputs(*cell),
            jax=lambda jax: with_room(jax, method, cell),
            torch=lambda torch: torch_method(torch, method, cell),
            jit=False,
            tolerance=1e-5 if result_elements(method, cell) <= COMPARED else None,
        )

    import pullback

    grid = ((10, 100), (10,), (1, 10)) if quick else linear_layer.GRID
    return [of(method, cell) for cell in itertools.product(*grid) for method in linear_layer.methods(pullback)]


def measure(setting: Setting) -> Iterator[Figures]:
    """pullback, JAX and PyTorch, each without the cells in which a call would take too long."""
    made = make_sides(SIDES, required=True)
    rounds = min(setting.rounds, ROUNDS)
    chosen = programs(setting.quick)
    known: dict[tuple[str, str], list[tuple[int, float]]] = {}  # side, method -> (elements of the Jacobian, seconds)
    for k, program in enumerate(chosen):
        common.progress(f"F3, {k + 1} of {len(chosen)}: {program.name}")
        method = program.name.split(":")[0]
        elements = result_elements(method, cell_of(program.name))
        has_room = 4 * elements <= MEMORY  # else that is the reason to give
        late = [s for s in made if has_room and is_slow(known.get((s.name, method), []), elements)]
        figures = timing.measure("F3", program, [s for s in made if s not in late], None, rounds)
        figures.failed |= {s.name: f"{TOO_SLOW}: over {SLOW:g} s" for s in late}
        for side, seconds in figures.seconds.items():
            known.setdefault((side, method), []).append((elements, seconds))
        yield figures


def is_slow(known: Sequence[tuple[int, float]], elements: int) -> bool:
    """Whether so many elements would take too long if time grew as they do from any smaller cell that took a while."""
    grown = [seconds * elements / size for size, seconds in known if size < elements and seconds > FORETELLS]
    return max(grown, default=0.0) > SLOW


def result_elements(method: str, cell: Cell) -> int:
    """Those of a whole Jacobian, zeros included, or of the one without."""
    n, p, o = cell
    return n * p * o * (1 if "grad" in method else o)


def cell_of(name: str) -> Cell:
    """(n, p, o) of a program."""
    n, p, o = map(int, re.findall(r"= (\d+)", name))
    return n, p, o


def render(figures: Sequence[Figures], folder: Path) -> list[str]:
    """A row for each method, and the grid as a picture."""
    cells: dict[str, dict[Cell, Figures]] = {}
    for f in figures:
        cells.setdefault(f.name.split(":")[0], {})[cell_of(f.name)] = f
    draw(cells, folder / PICTURE)
    rows = []
    for method, found in cells.items():
        row: list[Any] = [method, *(sum(side in f.seconds for f in found.values()) for side in SIDES)]
        for peer in ("jax", "torch"):
            ratios = [r for f in found.values() if (r := f.ratio(peer))]
            row += [times(mean(ratios)), times(min(ratios, default=None))]
        rows.append(row)
    full = [f for method, found in cells.items() if "grad" not in method for f in found.values()]
    direct = cells.get("vmap(vmap(grad))", {})
    gains = [
        f.seconds["jax"] / direct[cell].seconds["jax"]
        for method, found in cells.items()
        if "grad" not in method
        for cell, f in found.items()
        if cell in direct and "jax" in f.seconds and "jax" in direct[cell].seconds
    ]

    def without_room(side: str) -> int:
        return sum(f.failed.get(side, "").startswith(("MemoryError", "OutOfMemoryError")) for f in full)

    def too_slow(side: str) -> int:
        return sum(f.failed.get(side, "").startswith(TOO_SLOW) for f in full)

    return [
        f"**JAX today.** Whole Jacobians take {times(mean(gains))} times as long as `vmap(vmap(grad))` in the "
        f"geometric mean of the cells; {without_room('jax')} of {len(full)} of them do not fit into {MEMORY / 1e9:g} "
        f"GB, {too_slow('jax')} more would take over {SLOW:g} s.",
        f"**pullback.** Whole Jacobians are faster than JAX's by {faster(full, 'jax')}, `vmap(vmap(grad))` by "
        f"{faster(direct.values(), 'jax')}. {without_room('pullback')} do not fit, {too_slow('pullback')} would take "
        "too long.",
        common.table(
            ["method", *(f"{TITLES[s]}: timed" for s in SIDES)]
            + [f"{TITLES[s]} / pullback{what}" for s in ("jax", "torch") for what in ("", ", least")],
            rows,
        ),
        f"'timed' is the number of cells, of {max(map(len, cells.values()), default=0)}, whose program stays below "
        f"{MEMORY / 1e9:g} GB and, as smaller cells foretell, {SLOW:g} s; ratios are geometric means over the cells. "
        "The others are gaps in the picture.",
        f"![time over n of five ways to the gradients of a linear layer]({PICTURE})",
    ]


def draw(cells: dict[str, dict[Cell, Figures]], path: Path) -> None:
    """A panel for each o and p: time over n; a colour for each method, a dash for each library."""
    grid = list(next(iter(cells.values())))
    sizes_n, sizes_p, sizes_o = (sorted({cell[k] for cell in grid}) for k in range(3))
    colours = dict(zip(cells, ("tab:blue", "tab:orange", "tab:green", "tab:red", "tab:purple")))
    styles = {"pullback": "-", "jax": "--", "torch": ":"}
    with common.picture(path, rows=len(sizes_o), columns=len(sizes_p) + 1, sharex=True, sharey=True) as axes:
        for (row, o), (column, p) in itertools.product(enumerate(sizes_o), enumerate(sizes_p)):
            panel = axes[row][column]
            for (method, found), (side, style) in itertools.product(cells.items(), styles.items()):
                seconds = [found[n, p, o].seconds.get(side) if (n, p, o) in found else None for n in sizes_n]
                known = [np.nan if s is None else 1e3 * s for s in seconds]
                label = f"{method}, {TITLES[side]}"
                panel.loglog(sizes_n, known, style, marker=".", color=colours[method], label=label)
            panel.set(title=f"p = {p}, o = {o}", xlabel="n", ylabel="milliseconds")
            panel.grid(alpha=0.3)
        for row in axes:
            row[-1].axis("off")
        axes[0][-1].legend(*axes[0][0].get_legend_handles_labels(), loc="upper left", fontsize="small")


SECTION = Section(
    "F3",
    "Gradients of a linear layer, by five transformations",
    "computes the gradients of the outputs of a linear layer (n samples, p features, o outputs) in its weights "
    "by `jacfwd`, `jacrev`, `vmap(jacfwd)`, `vmap(jacrev)` and `vmap(vmap(grad))` over a grid of sizes, and plots "
    "their times; where memory did not suffice, it stopped with an error. "
    "[examples/linear_layer.py](../examples/linear_layer.py) asks the compiler before it starts.",
    measure,
    render,
)
