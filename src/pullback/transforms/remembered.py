"""Functions of concrete values that are transformed as jaxprs, once for each kind of operands.

Eager `grad`, `jvp` and `vmap` run the user's function anew each time, as it may decide by values; but what one of our
own functions, or the rule of one primitive, does with operands of given types is always the same. So the second time
that one is wanted under a transformation it is traced. From then on the jaxpr is what is transformed (cached, as all
transformations of jaxprs are), down to the plan that runs it: `Interpreter.call`. A recorded linear program is then a
list of `remembered` equations, and the same list has the same transpose, which is remembered as one plan, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pullback._ext import _core
from pullback.core import ClosedJaxpr, DebugInfo, Jaxpr, JaxprEqn, Literal, Primitive, Tracer, Var, hooks, typeof
from pullback.core.evaluate import eval_jaxpr
from pullback.core.interpreter import Interpreter, current_interpreter
from pullback.util import config

SMALL = 1 << 13  # elements; larger work is better compiled, operation by operation
MAX_RULES = 4096


def _evaluate(*args: Any, jaxpr: ClosedJaxpr) -> list[Any]:
    return hooks.run_eagerly(jaxpr, args)


remembered_p = Primitive(
    "remembered",
    doc="A function that was traced once for operands of some types, where a transformation runs on concrete values.",
    multiple_results=True,
    evaluate=_evaluate,
)


def _bind(*args: Any, jaxpr: ClosedJaxpr) -> list[Any]:
    """Run as a whole where that is remembered, equation by equation where somebody wants to see these."""
    interpreter = current_interpreter()
    return interpreter.call(jaxpr, args) if interpreter.remembers else eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, *args)


remembered_p.bind = _bind  # type: ignore[method-assign]


def is_of(value: Tracer, interpreter: Interpreter | None) -> bool:
    """Whether a tracer belongs to an interpreter or one of those around it, and is alive."""
    owner = value.interpreter
    while interpreter is not None:
        if owner is interpreter:
            return True
        interpreter = interpreter.parent
    return False


# ---- one primitive

_applications: dict[Any, Any] = {}  # False: seen once; None: stays Python


def application(
    interpreter: Interpreter, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]
) -> ClosedJaxpr | None:
    """The primitive on such operands as a jaxpr of one equation; None where its rules must run themselves."""
    if (
        primitive.partial_eval is not None
        or primitive.evaluate is not None
        or primitive.effects is not None
        or primitive.collective_axes is not None
    ):
        return None
    avals, size = [], 0
    for x in args:
        if type(x) is not _core.Array and not (isinstance(x, Tracer) and is_of(x, interpreter)):
            if type(x) not in (float, int):
                return None
            aval = typeof(x)
        else:
            aval = x.aval
        size += aval.size
        avals.append(aval)
    if size > SMALL:
        return None
    key = (primitive, *avals, *params.items(), config.epoch())
    try:
        found = _applications.get(key)
    except TypeError:  # a parameter without a hash
        return None
    if found is None:
        if key not in _applications:
            if len(_applications) > MAX_RULES:
                _applications.clear()
            _applications[key] = False
    elif found is False:
        found = _applications[key] = _application(primitive, avals, params)
    return found or None


def _application(primitive: Primitive, avals: list[Any], params: dict[str, Any]) -> ClosedJaxpr | None:
    if not all([primitive.has_rule(field) for field in ("jvp", "batch", "abstract_eval")]):
        return None
    out = primitive.rule("abstract_eval")(*avals, **params)
    invars, outvars = [Var(a) for a in avals], [Var(a) for a in (out if primitive.multiple_results else [out])]
    eqn = JaxprEqn(invars, outvars, primitive, params)
    return ClosedJaxpr(Jaxpr([], invars, outvars, [eqn], debug_info=DebugInfo("eager", primitive.name)))


# ---- linear programs


class Tape(Jaxpr):
    """A linear program of `remembered` equations alone, all of whose operands are variables."""

    __slots__ = ()

    def key(self) -> tuple[Any, ...]:
        """What tells programs apart that are the same but for the values of constants."""
        number: dict[Any, Any] = {}
        parts: list[Any] = []
        for v in self.constvars:
            number[v] = len(number)
            parts.append(v.aval)
        parts.append(len(parts))
        for v in self.invars:
            number[v] = len(number)
            parts.append(v.aval)
        for eqn in self.eqns:
            parts.append(eqn.params["jaxpr"])
            for a in eqn.invars:
                parts.append(number[a])
            for v in eqn.outvars:
                number[v] = len(number)
        parts.append(None)
        for a in self.outvars:
            parts.append(number[a] if type(a) is not Literal else a)
        return tuple(parts)


_Transpose = tuple[ClosedJaxpr, list[bool]]
MAX_TAPES = 256
MAX_LENGTH = 2000  # equations
_tapes: dict[Any, Any] = {}  # how often a program was seen, then its transpose, least recently used first


def remembered_transpose(
    tape: Tape, cotangents: Sequence[Any], transpose: Callable[[Tape, Sequence[Any]], _Transpose]
) -> _Transpose | None:
    """The transpose of a program that was seen before; None where it is not worth while.

    `transpose(tape, cotangents)` makes it: a jaxpr that takes constants and nonzero cotangents and gives nonzero
    cotangents of the inputs, and which inputs have one.
    """
    if len(tape.eqns) > MAX_LENGTH:
        return None
    key = (*tape.key(), *[typeof(bar) for bar in cotangents], config.epoch())
    found = _tapes.pop(key, 0)
    if found == 0 and len(_tapes) >= MAX_TAPES:
        _tapes.pop(next(iter(_tapes)), None)
    if type(found) is int:
        found = found + 1 if found < 2 else transpose(tape, cotangents)
    _tapes[key] = found
    return found if type(found) is not int else None


def clear() -> None:
    """Forget all."""
    _applications.clear()
    _tapes.clear()
