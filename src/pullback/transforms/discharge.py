"""Programs with references as programs of values: what is read is an argument more, what is written a result more.

    jit(lambda r, x: swap(r, x), r, x)   ->   before, after = jit(lambda value, x: (value, x), r[...], x)

A jaxpr is run once more, on values, in a trace that does not stage references: there they are cells. Calls, loops and
branches inside have a rule each, in their records: `discharge(*args, **params)` binds them with values, and puts the
values afterwards into the references.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pullback.core import ClosedJaxpr, DebugInfo, Primitive, current_interpreter, eval_jaxpr, hooks, trace
from pullback.core.atoms import has_references
from pullback.core.avals import AbstractRef, Reference
from pullback.core.references import Cell


def on_values(fun: Callable[..., Sequence[Any]], avals: Sequence[Any], debug_info: DebugInfo | None) -> ClosedJaxpr:
    """`fun(*values) -> list` as a program in which references are values."""

    def run(*values: Any) -> Sequence[Any]:
        current_interpreter().stages_references = False
        return fun(*values)

    return trace(run, [_inner(aval) for aval in avals], debug_info)


def _inner(aval: Any) -> Any:
    return aval.inner_aval if type(aval) is AbstractRef else aval


def discharged(closed: ClosedJaxpr) -> tuple[ClosedJaxpr, tuple[int, ...]]:
    """(the program of values, numbers of the arguments that it writes): it takes the values of references, and has
    after its results the values afterwards of those that are written.
    """
    return closed.cached("discharged", lambda: _discharged(closed))


def _discharged(closed: ClosedJaxpr) -> tuple[ClosedJaxpr, tuple[int, ...]]:
    references = [n for n, aval in enumerate(closed.in_avals) if type(aval) is AbstractRef]
    if not references and not has_references(closed):
        return closed, ()
    written: list[int] = []

    def fun(*values: Any) -> list[Any]:
        cells = {n: Cell(values[n]) for n in references}
        outs = eval_jaxpr(closed.jaxpr, closed.consts, *[cells.get(n, value) for n, value in enumerate(values)])
        written[:] = [n for n, cell in cells.items() if cell._value is not values[n]]
        return [*outs, *(cells[n].shown() for n in written)]

    return on_values(fun, closed.in_avals, closed.jaxpr.debug_info), tuple(written)


def values_of(args: Sequence[Any]) -> list[Any]:
    """The operands with the values of references."""
    return [hooks.read_reference(a) if isinstance(a, Reference) else a for a in args]


def note(args: Sequence[Any], written: Sequence[int], values: Sequence[Any]) -> None:
    """Set the references among the operands that were written."""
    for n, value in zip(written, values, strict=True):
        hooks.write_reference(args[n], value)


def discharge_call(primitive: Primitive, *args: Any, jaxpr: ClosedJaxpr, **params: Any) -> list[Any]:
    """The rule of a primitive that is its 'jaxpr' parameter."""
    closed, written = discharged(jaxpr)
    outs = primitive.bind(*values_of(args), jaxpr=closed, **params)
    count = len(outs) - len(written)
    note(args, written, outs[count:])
    return outs[:count]


def reading(name: str, closed: ClosedJaxpr, consts: Sequence[Any]) -> tuple[ClosedJaxpr, list[Any]]:
    """A traced function that others run as often as they like, and its constants: those that are references, by value.

    NotImplementedError if it writes one of them.
    """
    found, written = discharged(closed)
    if written:
        raise NotImplementedError(
            f"{name}: a function writes a Ref that was made outside of it; return the value, and write it outside"
        )
    return found, values_of(consts)


def discharge_program(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program of values of one whose arguments are arrays."""
    return discharged(closed)[0]


__all__ = ["discharge_call", "discharge_program", "discharged", "note", "on_values", "reading", "values_of"]
