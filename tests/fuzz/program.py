"""Random programs: made of a seed, run compiled and by the references of their primitives, compared.

What is compared, for each result: exact values to the last bit; others within a multiple of what the references
themselves lose between float32 and float64, which is small where a program is well conditioned. Compiled results must
also be equal, bit by bit, for one thread and for two.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import pullback
from fuzz import control, moves
from fuzz.moves import DIMENSIONS, MOST_ELEMENTS, Generator, NotHere, Value
from pullback import numpy as jnp
from pullback._ext import _core
from pullback.runtime import reference_eval

SLACK = 24  # times the error of the references
MOVES: tuple[tuple[Callable[[Generator], Value], int], ...] = (
    (moves.smooth, 4), (moves.arithmetic, 6), (moves.two_smooth, 3), (moves.exact_unary, 3), (moves.exact_binary, 2),
    (moves.integers, 3), (moves.compare, 3), (moves.logic, 1), (moves.select, 3), (moves.convert, 2),
    (moves.reduction, 5), (moves.exact_reduction, 3), (moves.cumulative, 2), (moves.movement, 7), (moves.joining, 2),
    (moves.spreading, 2), (moves.indexing, 4), (moves.scattering, 2), (moves.ordering, 2), (moves.products, 4),
    (moves.windows, 1), (moves.row_wise, 3), (moves.algebra, 1), (moves.complexes, 1),
    (control.scan, 1), (control.fori, 1), (control.until, 1), (control.branch, 1), (control.nested, 1),
    (control.mapped, 1), (control.derivative, 2), (control.jacobian, 1),
)  # fmt: skip
INEXACT = (0, 1, 6)  # inputs that are normal numbers
TABLE = [move for move, weight in MOVES for _ in range(weight)]


def grow(g: Generator, count: int) -> None:
    """Add so many values to the pool; moves that do not apply are passed over."""
    for _ in range(count):
        for _ in range(20):
            # A move draws from a generator of its own, so that what it draws in vain does not shift what follows.
            move, seed = g.choose(TABLE), int(g.rng.integers(1 << 30))
            try:
                new = move(Generator(np.random.default_rng(seed), g.pool, g.depth))
            except NotHere:
                continue
            if new.size <= MOST_ELEMENTS and new.ndim <= 5:
                g.pool.append(new)
                break


@dataclass
class FuzzProgram:
    """A program: the function of its inputs, and for each result whether it is exact (known after a trace)."""

    seed: int
    moves: int
    exact: list[bool]

    def inputs(self) -> list[np.ndarray]:
        """Arrays of several shapes: floats (exact and not), integers and booleans."""
        rng = np.random.default_rng([self.seed, 1])

        def shape():
            while True:
                found = tuple(int(n) for n in rng.choice(DIMENSIONS, rng.integers(0, 4)))
                if np.prod(found) <= 2000:
                    return found

        common, other = shape(), shape()
        arrays = [
            rng.standard_normal(common), rng.standard_normal(other), rng.integers(-8, 9, common).astype(np.float64),
            rng.integers(-20, 21, shape()), rng.integers(-20, 21, common[-1:]), rng.integers(0, 2, common) > 0,
        ]  # fmt: skip
        if rng.random() < 0.1:
            arrays.append(rng.standard_normal(int(rng.integers(10_000, 20_000))))  # long enough for threads
        return [a.astype({"f": np.float32, "i": np.int32, "b": np.bool_}[a.dtype.kind]) for a in arrays]

    def function(self, *arrays: Any) -> list[Any]:
        """The program itself."""
        pool = [
            Value(x, k not in INEXACT, 4.0 if k in INEXACT else 1.0 if x.dtype == bool else 20.0)
            for k, x in enumerate(arrays)
        ]
        g = Generator(np.random.default_rng([self.seed, 0]), pool)
        grow(g, self.moves)
        made = pool[len(arrays) :]
        chosen = made[-1:] + [v for v in made[:-1] if g.rng.random() < 0.3]
        self.exact[:] = [v.exact for v in chosen]
        return [v.array for v in chosen]


def by_references(function, inputs: list[np.ndarray]) -> list[np.ndarray]:
    """The results of a function, every equation by its reference."""
    return reference_eval(pullback.make_jaxpr(function)(*inputs), inputs)


def run(seed: int, count: int) -> str:
    """Run one program; what is wrong with its results, in words, or nothing."""
    program = FuzzProgram(seed, count, [])
    inputs = program.inputs()
    want = by_references(program.function, inputs)
    exact = list(program.exact)
    with pullback.enable_x64(True):
        wide = by_references(program.function, [x.astype(np.float64) if x.dtype == np.float32 else x for x in inputs])
    assert [w.shape for w in want] == [w.shape for w in wide], f"seed {seed}: the program depends on precision"
    compiled = pullback.jit(program.function)
    got = [np.asarray(x) for x in compiled(*map(jnp.asarray, inputs))]
    for k, (g, w, d) in enumerate(zip(got, want, wide)):
        if problem := disagreement(g, w, d, exact[k]):
            return f"result {k} of {len(got)} ({g.dtype}{list(g.shape)}): {problem}"
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


def disagreement(got: np.ndarray, want: np.ndarray, wide: np.ndarray, exact: bool) -> str:
    """How a result differs from the reference; empty if it does not."""
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"{got.dtype}{list(got.shape)} instead of {want.dtype}{list(want.shape)}"
    if got.size == 0 or (got.dtype.kind != "f" and np.array_equal(got, want)):
        return ""
    if exact or got.dtype.kind != "f":
        return "" if np.array_equal(got, want) else f"exact values differ at {np.argwhere(got != want)[:3].tolist()}"
    if not np.all(np.isfinite(wide)):
        return ""  # a program that left the domain of its functions says nothing about them
    epsilon = float(np.finfo(got.dtype).eps)
    scale = float(np.abs(wide).max())
    lost = float(np.abs(want.astype(np.float64) - wide).max())
    allowed = SLACK * (lost + epsilon * scale)
    error = float(np.abs(got.astype(np.float64) - wide).max())
    return "" if error <= allowed else f"error {error:.3g} of {scale:.3g}, where references err by {lost:.3g}"


def shortest(seed: int, count: int) -> int:
    """The least number of moves with which the program of a seed still fails."""
    for fewer in range(1, count):
        try:
            if run(seed, fewer):
                return fewer
        except Exception:
            return fewer
    return count
