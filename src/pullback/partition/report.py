"""What a partitioned program exchanges: each collective with the bytes that it moves."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from pullback.core.jaxpr import Jaxpr, jaxprs_in_params

if TYPE_CHECKING:
    from pullback.partition.write import Partitioned


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


def collectives(made: Partitioned) -> list[Collective]:
    """The collectives of a partitioned program, in order."""
    return list(_found(made.closed.jaxpr, made.mesh, 1))


def _found(jaxpr: Jaxpr, mesh: dict[Any, int], repeats: int | None) -> Iterator[Collective]:
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
            yield from _found(inner, mesh, inside)


def bytes_moved(made: Partitioned) -> int:
    """The bytes that each device receives in one run; a while loop counts once."""
    return bytes_of_program(made.closed.jaxpr, made.mesh)


def bytes_of_program(jaxpr: Jaxpr, mesh: dict[Any, int]) -> int:
    """Of one device's program, the same."""
    return sum(c.bytes * (1 if c.repeats is None else c.repeats) for c in _found(jaxpr, mesh, 1))


def as_text(made: Partitioned) -> str:
    """One device's program, how arguments and results are cut, and its collectives with the bytes of each."""

    def cut(axes: Any) -> str:
        return "(" + ", ".join("whole" if not a else "x".join(map(str, a)) for a in axes) + ")"

    sizes = ", ".join(f"{name}={size}" for name, size in made.mesh.items())
    lines = [
        f"mesh: {sizes}",
        f"arguments cut by: {' '.join(map(cut, made.ins))}",
        f"results cut by: {' '.join(map(cut, made.outs))}",
        str(made.closed),
    ]
    found = collectives(made)
    width = max([len(c.name) for c in found], default=0)
    for c in found:
        times = "" if c.repeats == 1 else " in each iteration" if c.repeats is None else f" {c.repeats} times"
        lines.append(
            f"{c.name:{width}} over {','.join(map(str, c.axes))}: {c.operands} -> {c.results}, {c.bytes} bytes{times}"
            f"  # {c.source}"
        )
    lines.append(f"each device receives {bytes_moved(made)} bytes in {len(found)} collectives")
    return "\n".join(lines) + "\n"
