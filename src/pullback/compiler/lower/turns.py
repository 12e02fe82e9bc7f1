"""Loops whose steps go from one place to another and back by turns, so that the state is nowhere copied.

A carry that is read at other places than it is written cannot be computed in place: it is made elsewhere and copied.
Two steps in turns copy nothing, but are compiled both. Where a step sets a window of the carry and leaves the rest,
such as the rim of a grid, the rest is the same in both places, and is copied once, before the first step.

Measured: 20 steps of the heat equation on 1000 x 1000 float32 took 6.0 ms, now 3.2; 51 of the wave equation on 600 x
600 took 7.1, now 4.8; 64 of heat, life and shortest paths on 128 x 128 took 211, 394 and 148 us, now 137, 168 and 77,
and 2 to 5 ms more to compile.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from pullback.compiler.lower.contexts import NestContext
from pullback.compiler.lower.moves import copy
from pullback.compiler.lower.storage import Storage, begin_at
from pullback.compiler.lower.window_places import window_of
from pullback.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from pullback.loops.ir import ITEMSIZE
from pullback.loops.schedule.machine import NOMINAL
from pullback.loops.schedule.price import source_ns
from pullback.util.record import mutable_record

RUNS = 100  # that a program is taken to be compiled for
COMPILED_NS = 200_000  # that an equation of a loop takes to compile once more, as equal nests are kernels


@dataclass(frozen=True, slots=True)
class Turns:
    """How the steps of a loop go by turns.

    body: the program of a step, with an argument more for each of the `kept` carries: what is where the result will be.
    other: where every second step leaves each carry; the same place for one that is computed in place.
    """

    body: ClosedJaxpr
    other: list[Storage]
    kept: list[int]

    def begin(self, ctx: NestContext, carry: Sequence[Storage]) -> None:
        """Makes the other places equal where no step sets anything."""
        for k in self.kept:
            copy(ctx.b, self.other[k], carry[k])

    def step(
        self, ctx: NestContext, inputs: Sequence[Storage], then: Sequence[Storage], rows: Sequence[Storage] = ()
    ) -> None:
        """One step from `inputs` to the carry's places `then`."""
        ctx.subprogram(self.body, [*inputs, *(then[k] for k in self.kept)], [*then, *rows])


def turns(
    ctx: NestContext,
    closed: ClosedJaxpr,
    steps: int,
    inputs: Sequence[Storage],
    first: int,
    carry: Sequence[Storage],
    rows: Sequence[Storage] = (),
) -> Turns | None:
    """How steps go by turns, if that is worth it; None if not. The carry is in `inputs` from number `first` on."""
    if steps < 2 or _copied_ns([s.size * ITEMSIZE[s.dtype] for s in carry]) * steps * RUNS < COMPILED_NS:
        return None
    is_copied = begin_at(ctx.lowering.copied(closed, inputs, [*carry, *rows]))
    windows = _windows(closed.jaxpr, first, len(carry))
    copied = {k: s.size * ITEMSIZE[s.dtype] for k, s in enumerate(carry) if is_copied(s) and k not in windows}
    sizes = [*copied.values(), *(w.size * ITEMSIZE[carry[k].dtype] for k, w in windows.items())]
    if _copied_ns(sizes) * steps * RUNS < COMPILED_NS * max(len(closed.eqns), 1):
        return None
    body = closed
    if windows:
        sets = [w.eqn for w in windows.values()]
        body = closed.cached(("kept", *windows), lambda: ClosedJaxpr(_with_kept(closed.jaxpr, sets), closed.consts))
    other = [ctx.temporary(c.dtype, c.shape, "turn") if k in copied or k in windows else c for k, c in enumerate(carry)]
    return Turns(body, other, list(windows))


def _copied_ns(sizes: Sequence[int]) -> float:
    """What copying so many bytes takes at least, in ns: a line is read and one is written."""
    size = 2 * sum(sizes)
    return size / NOMINAL.line * max(source_ns(size, NOMINAL), NOMINAL.first.line_ns)


@mutable_record
class _Windows:
    """The windows of a carry that a step sets, and nothing else of it."""

    eqn: JaxprEqn  # that sets the first one, in the carry as it was
    size: int  # elements of all windows


def _windows(jaxpr: Jaxpr, first: int, count: int) -> dict[int, _Windows]:
    """The carries of which a step sets windows at known places, and which it reads at other places as well."""
    made = {v: eqn for eqn in jaxpr.eqns for v in eqn.outvars}
    uses = Counter(atom for eqn in jaxpr.eqns for atom in eqn.invars if type(atom) is not Literal)
    uses.update(atom for atom in jaxpr.outvars if type(atom) is not Literal)
    found: dict[int, _Windows] = {}
    for k, (carry, out) in enumerate(zip(jaxpr.invars[first : first + count], jaxpr.outvars)):
        places: dict[tuple[int, ...], tuple[int, ...]] = {}
        array, eqn = out, None
        while type(array) is Var and array is not carry and (array is out or uses[array] == 1):
            eqn = made.get(array)
            window = None if eqn is None else window_of(eqn)
            if eqn is None or window is None:
                break
            places[window[1]] = eqn.invars[window[0]].aval.shape
            array = eqn.invars[0]
        if array is not carry or eqn is None:
            continue
        if any([_reads_elsewhere(e, carry, places) for e in jaxpr.eqns if e is not eqn]):
            found[k] = _Windows(eqn, sum(map(math.prod, places.values())))
    return found


def _reads_elsewhere(eqn: JaxprEqn, carry: Var, places: dict[tuple[int, ...], tuple[int, ...]]) -> bool:
    """Whether an equation reads a carry, and not just one of the windows that are set."""
    if not any(atom is carry for atom in eqn.invars):
        return False
    start = tuple(eqn.params["start_indices"]) if eqn.primitive.name == "slice" else None
    return start is None or places.get(start) != eqn.outvars[0].aval.shape or eqn.params["strides"] is not None


def _with_kept(jaxpr: Jaxpr, sets: Sequence[JaxprEqn]) -> Jaxpr:
    """The program that sets the windows in further arguments, in place of the carries."""
    kept = {id(eqn): Var(eqn.invars[0].aval) for eqn in sets}
    eqns = [eqn.replace(invars=[kept[id(eqn)], *eqn.invars[1:]]) if id(eqn) in kept else eqn for eqn in jaxpr.eqns]
    return jaxpr.replace(invars=[*jaxpr.invars, *kept.values()], eqns=eqns)
