"""Choices between an array and an update of it: those of the window alone.

    where(p, dynamic_update_slice(x, u, i), x)    dynamic_update_slice(x, where(p at i, u, dynamic_slice(x, i)), i)
    where(p, scatter(x, i, u), x)                 scatter(x, i, where(p at i, u, gather(x, i)))

Choices come from `vmap`: of a `cond`, and of a `while_loop` some of whose items are done before others.

Sums with arrays that are zero but for windows are in `additions.py`; windows at known places that are most of an array
are joined (`windows.py`).

Measured: a while loop under `vmap` that sets one of 100,000 elements in each step took 20 s, now 0.3 ms.
"""

from __future__ import annotations

from typing import Any

from pullback.compiler.graph.simplify.rewrite import Rewriter, Rule
from pullback.compiler.graph.structure.additions import gathered_at
from pullback.compiler.graph.structure.choices import COMBINED, applies
from pullback.core.jaxpr import JaxprEqn, Literal
from pullback.loops.schedule.space import LANES

_CHAINED = 8  # updates of one array, one after the other
_UNCHANGED = {"scatter-add": -0.0, "scatter-sub": 0, "scatter-mul": 1}  # the update that leaves every number as it is


def _select(r: Rewriter, eqn: JaxprEqn) -> Any:
    """A choice between an array and what few updates make of it: each update is chosen, or what was there before."""
    if len(eqn.invars) != 3:
        return None
    which, *cases = eqn.invars
    for updated in (1, 0):
        x, made = cases[1 - updated], cases[updated]
        updates = [] if isinstance(x, Literal) else _updates_of(r, x, made)
        for update in reversed(updates):
            x = _chosen_update(r, which, updated, x, update)
        if updates:
            return x
    return None


def _updates_of(r: Rewriter, x: Any, made: Any) -> list[JaxprEqn]:
    """The small updates that make an array of x, the last first; none if it is made otherwise."""
    found: list[JaxprEqn] = []
    while made is not x:
        update = r.definition(made, "dynamic_update_slice", "scatter", *COMBINED)
        if update is None or r.uses[made] != 1 or len(found) == _CHAINED:
            return []
        window = update.invars[1 if update.primitive.name == "dynamic_update_slice" else 2]
        if not 0 < window.aval.size * LANES <= x.aval.size or applies(update):
            return []
        found.append(update)
        made = update.invars[0]
    return found


def _chosen_update(r: Rewriter, which: Any, updated: int, x: Any, update: JaxprEqn) -> Any:
    """An update of x where `which` is `updated`, and x elsewhere."""
    name = update.primitive.name
    if name == "dynamic_update_slice":
        _, window, *starts = update.invars

        def at(array: Any) -> Any:
            return r.emit("dynamic_slice", array, *starts, slice_sizes=window.aval.shape)
    else:
        _, indices, window = update.invars

        def at(array: Any) -> Any:
            return gathered_at(r, array, update)

    there = at(which) if which.aval.shape else which
    before = r.full(window.aval, _UNCHANGED[name]) if name in _UNCHANGED else at(x)
    window = r.emit("select_n", there, *((before, window) if updated else (window, before)))
    if name == "dynamic_update_slice":
        return r.emit(name, x, window, *starts)
    return r.emit(update.primitive, x, indices, window, **update.params)


UPDATE_RULES: dict[str, tuple[Rule, ...]] = {"select_n": (_select,)}
