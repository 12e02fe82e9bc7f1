"""Which passes change something in which programs: each pass of compiler/pipelines.py with a comparison before and
after.
"""

from __future__ import annotations

import collections
import contextlib
from collections.abc import Iterator

import pullback
from fuzz.library import using
from fuzz.program import FuzzProgram
from pullback.compiler import pipelines
from pullback.compiler.lower.program import lower_program
from pullback.core.jaxpr import ClosedJaxpr
from pullback.loops.ir import Function
from pullback.loops.ir.visit import expressions, statements, subexpressions

LISTS = tuple(name for name in vars(pipelines) if name.endswith("_PASSES"))


def names() -> set[str]:
    """All passes that compiler/pipelines.py lists."""
    return {step.name for found in LISTS for step in getattr(pipelines, found)}


def _form(program) -> tuple[str, int]:
    """A program as text, and how many expressions it has: those that are shared stand in it once for each use."""
    roots = [] if not isinstance(program, Function) else [e for s in statements(program.body) for e in expressions(s)]
    return pipelines.text_of(program), len(subexpressions(roots))


@contextlib.contextmanager
def watched() -> Iterator[set[str]]:
    """The names of the passes that have changed a program meanwhile."""
    changed: set[str] = set()
    before = {name: getattr(pipelines, name) for name in LISTS}

    def noting(step: pipelines.Pass) -> pipelines.Pass:
        def run(program):
            after = step.run(program)
            if after is not program and _form(after) != _form(program):
                changed.add(step.name)
            return after

        return step._replace(run=run)

    for name, steps in before.items():
        setattr(pipelines, name, tuple(map(noting, steps)))
    try:
        yield changed
    finally:
        for name, steps in before.items():
            setattr(pipelines, name, steps)


def reached(seed: int, count: int) -> set[str]:
    """The passes that change something in a program."""
    found = FuzzProgram(seed, count)
    inputs = found.inputs()
    with using(pullback):
        return changing(pullback.make_jaxpr(found.function)(*inputs))


def changing(closed: ClosedJaxpr) -> set[str]:
    """The passes that change something in a traced function."""
    with watched() as changed:
        lowered = lower_program(pipelines.optimize_jaxpr(closed), "program", set(), {})
        pipelines.optimize_loops(pipelines.order_loops(lowered.function))
    return changed


def counted(seeds: range) -> collections.Counter[str]:
    """For each pass, in how many programs it changes something."""
    return collections.Counter(dict.fromkeys(names(), 0) | collections.Counter(
        name for seed in seeds for name in reached(seed, 2 + seed % 24)))  # fmt: skip
