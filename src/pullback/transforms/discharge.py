"""Programs with references as programs of values: what is read is an argument more, what is written a result more.

    jit(lambda r, x: swap(r, x), r, x)   ->   before, after = jit(lambda value, x: (value, x), r[...], x)

A jaxpr is run once more, on values, in a trace that does not stage references: there they are cells. Calls, loops and
branches inside have a rule each, in their records: `discharge(*args, **params)` binds them with values, and puts the
values afterwards into the references.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pullback.core import (
    ClosedJaxpr,
    DebugInfo,
    Jaxpr,
    Primitive,
    Var,
    current_interpreter,
    eval_jaxpr,
    hoist_tracers,
    hooks,
    trace,
)
from pullback.core.atoms import has_references, jaxprs_in_params
from pullback.core.avals import AbstractRef, Reference, type_of_operand
from pullback.core.references import Cell
from pullback.core.staging import StagingInterpreter
from pullback.core.tracer import Tracer


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


def all_after(closed: ClosedJaxpr, written: Sequence[int], references: Sequence[int]) -> ClosedJaxpr:
    """The program of values that gives those afterwards of all references, not of the `written` ones alone."""
    jaxpr = closed.jaxpr
    count = len(jaxpr.outvars) - len(written)
    last = dict(zip(written, jaxpr.outvars[count:], strict=True))
    outvars = [*jaxpr.outvars[:count], *(last.get(n, jaxpr.invars[n]) for n in references)]
    return ClosedJaxpr(jaxpr.replace(outvars=outvars), closed.consts)


def values_of(args: Sequence[Any]) -> list[Any]:
    """The operands with the values of references."""
    return [hooks.read_reference(a) if isinstance(a, Reference) else a for a in args]


def note(args: Sequence[Any], written: Sequence[int], values: Sequence[Any]) -> None:
    """Set the references among the operands that were written."""
    for n, value in zip(written, values, strict=True):
        hooks.write_reference(args[n], value)


def with_outer(closed: ClosedJaxpr, args: Sequence[Any]) -> tuple[ClosedJaxpr, list[Any]]:
    """(closed', values): references and values of a trace that a program closes over are leading arguments of it.

    Rules of derivatives that the user wrote may use those from outside, which no equation had before they ran.
    """
    (found,), outer = with_outer_of([closed], args)
    return found, outer


def with_outer_of(programs: Sequence[ClosedJaxpr], args: Sequence[Any]) -> tuple[list[ClosedJaxpr], list[Any]]:
    """The same for programs that take the same arguments."""
    found, outer = with_leading([_hoisted(closed) for closed in programs], [])
    for ref in outer:
        if isinstance(ref, Reference) and any([ref is a for a in args]):
            raise ValueError(
                f"a Ref of type {ref.ref_aval} is both closed over and passed in by the caller: the function may have "
                "it in one of the two ways"
            )
    return found, outer


def with_leading(
    programs: Sequence[tuple[ClosedJaxpr, list[Any]]], more: Sequence[Any]
) -> tuple[list[ClosedJaxpr], list[Any]]:
    """(programs', values) of programs with what their leading arguments are: these and `more` lead all of them."""
    values = list({id(value): value for _, given in programs for value in given}.values())
    values += [value for value in more if not any([value is v for v in values])]
    return [c if len(given) == len(values) else _widened(c, given, values) for c, given in programs], values


def _hoisted(closed: ClosedJaxpr) -> tuple[ClosedJaxpr, list[Any]]:
    if not any([isinstance(c, (Tracer, Reference)) for c in closed.consts]):
        return closed, []
    return closed.cached("outer values", lambda: hoist_tracers(closed))


def _widened(closed: ClosedJaxpr, has: Sequence[Any], wanted: Sequence[Any]) -> ClosedJaxpr:
    invars = closed.jaxpr.invars
    own = {id(value): var for value, var in zip(has, invars)}
    new = [own[id(value)] if id(value) in own else Var(type_of_operand(value)) for value in wanted]
    return ClosedJaxpr(closed.jaxpr.replace(invars=[*new, *invars[len(has) :]]), closed.consts)


def is_differentiated() -> bool:
    """Whether what runs is differentiated before anything stages it."""
    found = current_interpreter()
    while found is not None and not isinstance(found, StagingInterpreter):
        if found.differentiates:
            return True
        found = found.parent
    return False


def rules_get_references(*programs: ClosedJaxpr) -> bool:
    """Whether a loop or branches are differentiated, and have rules of the user's in them that get references.

    Such rules write the references themselves, some of them when the derivative runs: so the bodies close over the
    references (`closing_over`), which the transformed bodies then have as arguments again (`with_outer`).
    """
    return is_differentiated() and any(map(gives_references_to_rules, programs))


def closing_over(closed: ClosedJaxpr, args: Sequence[Any]) -> tuple[ClosedJaxpr, list[Any]]:
    """(closed', the other arguments): the program closes over those of its leading arguments that are references."""
    jaxpr = closed.jaxpr
    lead, rest = jaxpr.invars[: len(args)], jaxpr.invars[len(args) :]
    held = [(v, a) for v, a in zip(lead, args) if isinstance(a, Reference)]
    others = [(v, a) for v, a in zip(lead, args) if not isinstance(a, Reference)]
    new = jaxpr.replace(constvars=[*jaxpr.constvars, *(v for v, _ in held)], invars=[*(v for v, _ in others), *rest])
    return ClosedJaxpr(new, [*closed.consts, *(a for _, a in held)]), [a for _, a in others]


def gives_references_to_rules(closed: ClosedJaxpr) -> bool:
    """Whether functions with derivative rules of the user's get references there, or in what is called there."""
    return closed.cached("references of rules", lambda: _gives_references(closed.jaxpr))


def _gives_references(jaxpr: Jaxpr) -> bool:
    return any(
        [
            ("call_jaxpr" in eqn.params and any([type(atom.aval) is AbstractRef for atom in eqn.invars]))
            or any(map(_gives_references, jaxprs_in_params(eqn.params)))
            for eqn in jaxpr.eqns
        ]
    )


def discharge_call(primitive: Primitive, *args: Any, jaxpr: ClosedJaxpr, **params: Any) -> list[Any]:
    """The rule of a primitive that is its 'jaxpr' parameter.

    Where it is differentiated and has rules of the user's that get references, it runs as if it were no call: such
    rules write the references themselves, some of them when the derivative runs.
    """
    if gives_references_to_rules(jaxpr) and is_differentiated():
        return eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, *args)
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


__all__ = [
    "discharge_call",
    "discharge_program",
    "closing_over",
    "discharged",
    "is_differentiated",
    "note",
    "on_values",
    "reading",
    "rules_get_references",
    "values_of",
    "with_leading",
    "with_outer",
    "with_outer_of",
]
