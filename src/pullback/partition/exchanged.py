"""The collective operations of one device's program, and the bytes that they move."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from pullback.core.jaxpr import Jaxpr, jaxprs_in_params
from pullback.util.record import NamedTuple


class Collective(NamedTuple):
    """One collective operation: its axes, the types of its operands and results, the bytes that each device receives
    from others, how often it runs (None: as often as a while loop does), and the line that it is for.
    """

    name: str
    axes: tuple[Any, ...]
    operands: str
    results: str
    bytes: int
    repeats: int | None
    source: Any


def _share(name: str, n: int) -> float:
    """The bytes received from n - 1 others, for each byte of the operands."""
    return (n - 1) / n if name in ("all_to_all", "reduce_scatter") else float(n - 1) if name != "ppermute" else 1.0


def collectives_of(jaxpr: Jaxpr, mesh: dict[Any, int], repeats: int | None) -> Iterator[Collective]:
    """The collectives of one device's program, in order."""
    for eqn in jaxpr.eqns:
        axes = eqn.primitive.collective_axes
        if axes is not None and eqn.invars:
            names = tuple(axes(eqn.params))
            n = math.prod(mesh[a] for a in names)
            size = sum(a.aval.size * a.aval.dtype.itemsize for a in eqn.invars)
            types = [" ".join(v.aval.short() for v in vs) for vs in (eqn.invars, eqn.outvars)]
            moved = int(size * _share(eqn.primitive.name, n))
            yield Collective(eqn.primitive.name, names, types[0], types[1], moved, repeats, eqn.source)
        inside = repeats
        if eqn.primitive.name == "scan":
            inside = None if repeats is None else repeats * eqn.params["length"]
        elif eqn.primitive.name == "while":
            inside = None
        for inner in jaxprs_in_params(eqn.params):
            yield from collectives_of(inner, mesh, inside)


def bytes_of_program(jaxpr: Jaxpr, mesh: dict[Any, int]) -> int:
    """The bytes that each device receives in one run; a while loop counts once."""
    return sum(c.bytes * (1 if c.repeats is None else c.repeats) for c in collectives_of(jaxpr, mesh, 1))
