"""What a partitioned program exchanges: each collective with the bytes that it moves."""

from __future__ import annotations

from typing import Any

from pullback.partition.exchanged import Collective, bytes_of_program, collectives_of
from pullback.partition.write import Partitioned


def collectives(made: Partitioned) -> list[Collective]:
    """The collectives of a partitioned program, in order."""
    return list(collectives_of(made.closed.jaxpr, made.mesh, 1))


def bytes_moved(made: Partitioned) -> int:
    """The bytes that each device receives in one run; a while loop counts once."""
    return bytes_of_program(made.closed.jaxpr, made.mesh)


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
