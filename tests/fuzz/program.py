"""Random programs: made of a seed, compiled, and compared with the same program in NumPy alone (oracle.py).

What is compared, for each result: exact values to the last bit; others within a multiple of what float32 costs NumPy in
this program, and of what a unit in the last place of the inputs changes, which is little where a program is well
conditioned. Compiled results must also be equal, bit by bit, for one thread and for several.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fuzz import control, moves, reach
from fuzz.library import using
from fuzz.moves import DIMENSIONS, Generator, NotHere, Value
from fuzz.oracle import LONG, NotSmooth, Oracle, wrap

SLACK = 24  # times what float32 and moved inputs cost
MOVES: tuple[tuple[Callable[[Generator], Value], int], ...] = (
    (moves.smooth, 4), (moves.arithmetic, 6), (moves.two_smooth, 3), (moves.exact_unary, 3), (moves.exact_binary, 2),
    (moves.integers, 3), (moves.compare, 3), (moves.logic, 1), (moves.select, 3), (moves.convert, 2),
    (moves.reduction, 5), (moves.exact_reduction, 3), (moves.cumulative, 2), (moves.movement, 7), (moves.joining, 2),
    (moves.spreading, 2), (moves.indexing, 4), (moves.scattering, 2), (moves.ordering, 2), (moves.products, 4),
    (moves.windows, 1), (moves.row_wise, 3), (moves.algebra, 1), (moves.complexes, 1),
    (control.scan, 1), (control.fori, 1), (control.until, 1), (control.branch, 1), (control.nested, 1),
    (control.mapped, 1), (control.derivative, 2), (control.jacobian, 1),
    (reach.transposed, 1), (reach.steps, 1), (reach.counting, 1), (reach.layers, 1), (reach.random_words, 1),
    (reach.tiny_products, 1), (reach.joined_rows, 1),
)  # fmt: skip
LARGE: tuple[tuple[Callable[[Generator], Value], int], ...] = (
    (reach.long_reduction, 3), (reach.row_block, 3), (reach.transposed, 2), (reach.joined_rows, 2), (reach.steps, 2),
    (moves.smooth, 3), (moves.arithmetic, 4), (moves.exact_unary, 2), (moves.select, 2), (moves.row_wise, 2),
    (moves.movement, 4), (moves.cumulative, 2), (moves.indexing, 2), (moves.scattering, 1), (moves.ordering, 1),
    (moves.products, 2), (moves.compare, 1), (moves.integers, 1), (moves.exact_reduction, 2), (moves.reduction, 2),
    (moves.convert, 1), (moves.windows, 1),
)  # fmt: skip
LARGE_SHAPES = ((1031,), (40_007,), (64, 130), (7, 3001), (300, 71), (3, 129, 65), (130, 64, 5), (2053, 8), (515, 515))
INEXACT = (0, 1, 6)  # inputs that are normal numbers


def is_large(seed: int) -> bool:
    """Every eighth program is of arrays that take threads, tiles and blocks."""
    return seed % 8 == 5


def grow(g: Generator, count: int, table: tuple = MOVES) -> None:
    """Add so many values to the pool; moves that do not apply are passed over."""
    weighted = [move for move, weight in table for _ in range(weight)]
    for _ in range(count):
        for _ in range(20):
            # A move draws from a generator of its own, so that what it draws in vain does not shift what follows.
            move, seed = g.choose(weighted), int(g.rng.integers(1 << 30))
            try:
                new = move(Generator(np.random.default_rng(seed), g.pool, g.depth, g.most))
            except NotHere:
                continue
            if new.size <= g.most and new.ndim <= 5:
                g.pool.append(new)
                break


@dataclass
class FuzzProgram:
    """A program: the function of its inputs, and for each result whether it is exact (known after it has run once)."""

    seed: int
    moves: int
    exact: list[bool] = field(default_factory=list)

    def inputs(self) -> list[np.ndarray]:
        """Arrays of several shapes: floats (exact and not), integers and booleans."""
        rng = np.random.default_rng([self.seed, 1])
        large = is_large(self.seed)

        def shape():
            while True:
                found = tuple(int(n) for n in rng.choice(DIMENSIONS, rng.integers(0, 4)))
                if np.prod(found) <= 2000:
                    return found

        common, other = shape(), shape()
        if large:
            common = LARGE_SHAPES[int(rng.integers(len(LARGE_SHAPES)))]
            other = common if rng.random() < 0.5 else common[-1:]
        arrays = [
            rng.standard_normal(common), rng.standard_normal(other), rng.integers(-8, 9, common).astype(np.float64),
            rng.integers(-20, 21, shape()), rng.integers(-20, 21, common[-1:]), rng.integers(0, 2, common) > 0,
        ]  # fmt: skip
        if rng.random() < 0.1:
            arrays.append(rng.standard_normal(int(rng.integers(10_000, 20_000))))  # long enough for threads
        return [a.astype({"f": np.float32, "i": np.int32, "b": np.bool_}[a.dtype.kind]) for a in arrays]

    def function(self, *arrays: Any) -> list[Any]:
        """The program itself, by the library in use."""
        pool = [
            Value(x, k not in INEXACT, 4.0 if k in INEXACT else 1.0 if x.dtype == bool else 20.0)
            for k, x in enumerate(arrays)
        ]
        large = is_large(self.seed)
        g = Generator(
            np.random.default_rng([self.seed, 0]), pool, most=moves.MOST_LARGE if large else moves.MOST_ELEMENTS
        )
        grow(g, min(self.moves, 8) if large else self.moves, LARGE if large else MOVES)
        made = pool[len(arrays) :]
        chosen = made[-1:] + [v for v in made[:-1] if g.rng.random() < 0.3]
        self.exact[:] = [v.exact for v in chosen]
        return [v.array for v in chosen]

    def by_oracle(self, dtype: Any, inputs: list[np.ndarray]) -> list[np.ndarray]:
        """The results in NumPy with floats of a dtype; NotSmooth where a derivative has no value."""
        with np.errstate(all="ignore"), using(Oracle(dtype)):
            return [np.asarray(x) for x in self.function(*(wrap(_lifted(x, dtype)) for x in inputs))]


def _lifted(x: np.ndarray, dtype: Any) -> np.ndarray:
    return x.astype(dtype) if x.dtype.kind == "f" else x


@dataclass
class Meaning:
    """What a program's results are, which of them are exact, and how far float32 may be off."""

    values: list[np.ndarray]
    exact: list[bool]
    lost: list[float]


def meaning(program: FuzzProgram, inputs: list[np.ndarray]) -> Meaning:
    """The results at the longest floats, and what float32 and inputs moved by a unit in the last place make of them."""
    values = program.by_oracle(LONG, inputs)
    exact = list(program.exact)
    rng = np.random.default_rng([program.seed, 2])
    moved = [
        np.nextafter(x, rng.choice(np.array([-np.inf, np.inf], x.dtype), x.shape)) if k in INEXACT else x
        for k, x in enumerate(inputs)
    ]
    others = [program.by_oracle(np.float32, inputs), program.by_oracle(LONG, moved)]
    lost = []
    for k, value in enumerate(values):
        if any(other[k].shape != value.shape for other in others):
            raise AssertionError(f"seed {program.seed}: the program depends on precision")
        with np.errstate(all="ignore"):
            lost.append(0.0 if exact[k] or not value.size or value.dtype.kind != "f" else max(
                float(np.abs(other[k].astype(LONG) - value).max()) for other in others))  # fmt: skip
    return Meaning(values, exact, lost)


def run(seed: int, count: int) -> str:
    """Run one program; what is wrong with its results, in words, or nothing."""
    import pullback
    from pullback import numpy as jnp
    from pullback._ext import _core

    program = FuzzProgram(seed, count)
    inputs = program.inputs()
    try:
        want = meaning(program, inputs)
    except NotSmooth:
        return ""
    with using(pullback):
        compiled = pullback.jit(program.function)
        got = [np.asarray(x) for x in compiled(*map(jnp.asarray, inputs))]
    if problem := disagreements(got, want):
        return problem
    if seed % 4 == 2 and (problem := disagreements(_donated(program, inputs), want)):
        return f"with donated arguments: {problem}"
    threads = _core.num_threads()
    try:
        for number in (1, 2, 3):
            _core.set_num_threads(number)
            again = [np.asarray(x) for x in compiled(*map(jnp.asarray, inputs))]
            for k, (g, a) in enumerate(zip(got, again)):
                if g.tobytes() != a.tobytes():
                    return f"result {k} of {len(got)} ({g.dtype}{list(g.shape)}) depends on the number of threads"
    finally:
        _core.set_num_threads(threads)
    return ""


def _donated(program: FuzzProgram, inputs: list[np.ndarray]) -> list[np.ndarray]:
    """The results of a program that may write over its arguments."""
    import pullback
    from pullback import numpy as jnp

    with using(pullback), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of arguments that no result has the type of
        compiled = pullback.jit(program.function, donate_argnums=tuple(range(len(inputs))))
        return [np.asarray(x) for x in compiled(*map(jnp.array, inputs))]


def disagreements(got: list[np.ndarray], want: Meaning) -> str:
    """How results differ from what they mean; empty if they do not."""
    if len(got) != len(want.values):
        return f"{len(got)} results instead of {len(want.values)}"
    for k, (g, value, exact, lost) in enumerate(zip(got, want.values, want.exact, want.lost)):
        if problem := disagreement(g, value, exact, lost):
            return f"result {k} of {len(got)} ({g.dtype}{list(g.shape)}): {problem}"
    return ""


def disagreement(got: np.ndarray, value: np.ndarray, exact: bool, lost: float) -> str:
    """How a result differs from its value, of which float32 may lose as much; empty if it does not."""
    kind = np.dtype(np.float32) if value.dtype.kind == "f" else value.dtype
    if got.shape != value.shape or got.dtype != kind:
        return f"{got.dtype}{list(got.shape)} instead of {kind}{list(value.shape)}"
    if exact or got.dtype.kind != "f":
        return "" if np.array_equal(got, value) else f"exact values differ at {np.argwhere(got != value)[:3].tolist()}"
    if not got.size or not np.all(np.isfinite(value)) or not np.isfinite(lost):
        return ""  # a program that left the domain of its functions says nothing about them
    scale = float(np.abs(value).max())
    allowed = SLACK * (lost + float(np.finfo(np.float32).eps) * scale)
    error = float(np.abs(got.astype(LONG) - value).max())
    return "" if error <= allowed else f"error {error:.3g} of {scale:.3g}, where float32 loses {lost:.3g}"
