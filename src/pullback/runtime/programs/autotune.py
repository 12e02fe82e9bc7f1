"""Autotuning: the forms of a program's nests measured on this machine, once, instead of expected.

    PULLBACK_TUNE=1, or jit(f, compiler_options={"autotune": True})

For the nests that are expected to take most, the program is compiled with each other form that is expected to take at
most RIVAL times as long, and run on made-up arguments of its types; what is quicker by more than NOISE stays. The
answer is a text (`PULLBACK_FORM`), kept on disk under the program's name and the machine's. Results may differ by
rounding from those of the untuned program, as forms add in another order.

Programs that cannot be run on made-up arguments are not tuned: with loops that end when their values say so, calls of
the user's functions, keys or tokens.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.compiler import pipelines
from pullback.core.jaxpr import ClosedJaxpr, jaxprs_in_params
from pullback.loops.emit.folder import default_folder, read, usable, write
from pullback.loops.schedule.choose import form_text
from pullback.loops.schedule.machine import facts_of, of_system
from pullback.runtime.programs.schedule_report import choices
from pullback.util import dtypes
from pullback.util.switches import switches

NESTS, FORMS = 6, 3  # the most that are looked at, and of each
RIVAL = 2.0  # times the expected time of the choice
WORTH_NS = 5_000.0  # nests that take less stay as they are
NOISE = 1.03  # times quicker that a form must be
ROUNDS, LEAST, LONGEST = 5, 0.003, 2.0  # of a measurement: rounds, seconds of one, and of the whole tuning of a program


def tuned_form(closed: ClosedJaxpr, make: Callable[[], Any], key: str | None) -> str:
    """The best found form of a program: what `make()`, a Program under the switches in force, is compiled with.

    `key` is the program's name on disk; None: the answer is not kept.
    """
    path = None if key is None else f"form-{hashlib.sha256(f'{key} {facts_of(of_system())}'.encode()).hexdigest()[:40]}"
    folder = default_folder()
    if path is not None and usable(folder):
        kept = read(os.path.join(folder, path), 1 << 16)
        if kept is not None:
            return kept.decode("ascii", "replace")
    if not can_run(closed):
        return ""
    found = _measured(make, _arguments(closed.in_avals))
    if path is not None and usable(folder, make=True):
        with contextlib.suppress(OSError):  # it is measured again another time
            write(os.path.join(folder, path), found.encode("ascii"))
    return found


def can_run(closed: ClosedJaxpr) -> bool:
    """Whether a program ends, and does nothing but compute, whatever its arguments are."""
    if not all(isinstance(aval.dtype, np.dtype) for aval in closed.in_avals):
        return False
    stack = [closed.jaxpr]
    while stack:
        jaxpr = stack.pop()
        for eqn in jaxpr.eqns:
            # Opaque are calls of the user's functions; a loop with a condition may go on for ever.
            if eqn.effects or "opaque" in eqn.primitive.traits or "cond_jaxpr" in eqn.params:
                return False
            stack += jaxprs_in_params(eqn.params)
    return True


def _arguments(avals: Sequence[Any]) -> list[np.ndarray]:
    """Arrays of some types with values that are neither special nor equal."""
    rng = np.random.default_rng(0)
    made = []
    for aval in avals:
        if dtypes.issubdtype(aval.dtype, np.inexact):
            made.append((0.5 + rng.random(aval.shape)).astype(aval.dtype))
        else:
            made.append(rng.integers(0, 2, aval.shape).astype(aval.dtype))
    return made


def _measured(make: Callable[[], Any], arguments: Sequence[np.ndarray]) -> str:
    """The form with the least measured time."""
    from pullback.runtime.arrays.arrays import asarray

    end = time.perf_counter() + LONGEST
    chosen: dict[str, str] = {}
    with switches.set(form=""):
        program = make()
        nests = choices(pipelines.order_loops(program.lowered.function))
    given = [asarray(x) for x in arguments]
    best = _time(program, given)
    rivals = [each for each in nests if each.choice.others and each.choice.ns >= WORTH_NS]
    for nest in sorted(rivals, key=lambda each: -each.choice.ns)[:NESTS]:
        others = sorted(nest.choice.others, key=lambda other: other.ns)
        for other in [o for o in others if o.ns <= RIVAL * nest.choice.ns][:FORMS]:
            if time.perf_counter() > end:
                break
            text = form_text({**chosen, nest.key: other.form})
            with switches.set(form=text):
                found = _time(make(), given)
            if found * NOISE < best:
                best, chosen = found, {**chosen, nest.key: other.form}
    return form_text(chosen)


def _time(program: Any, arguments: Sequence[Any]) -> float:
    """Seconds of a call, the least of some."""
    program.call(arguments)
    best = float("inf")
    for _ in range(ROUNDS):
        started, count = time.perf_counter(), 0
        while not count or time.perf_counter() - started < LEAST:
            program.call(arguments)
            count += 1
        best = min(best, (time.perf_counter() - started) / count)
    return best
