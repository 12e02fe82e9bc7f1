"""Replaces every equation that is its own jaxpr (jit, custom rules, checkpoint) by that jaxpr's equations.

Before: y = jit[jaxpr={ lambda a. b = sin a in b }] x; after: y = sin x. Needed by all later passes, which see flat
programs. A barrier over several arrays becomes one barrier each, an identity that fuses and is never merged with
anything, and the predicate of a loop a scalar.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.compiler.graph.simplify.inner import has_inner, map_inner
from pullback.core.avals import typeof
from pullback.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from pullback.core.lowering import Elementwise, Inline
from pullback.core.primitive import registry
from pullback.core.source import SourceInfo, user_source
from pullback.lax.control.while_loop import with_scalar_condition
from pullback.lax.records.compiler_made import compiler_primitive


def _same(b: Any, x: Any) -> Any:
    return x


keep_apart_p = compiler_primitive(
    "keep_apart",
    doc="The operand; later passes take the result for another value.",
    abstract_eval=lambda aval: aval,
    reference=lambda x: x,
    lower=Elementwise(_same, cost=0),
    traits={"barrier"},
)


def inline(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The flat program, also inside of loops and branches."""
    if not any(_concerns(eqn) for eqn in closed.eqns):
        return closed
    done = _Inliner(closed)
    jaxpr = closed.jaxpr
    outvars = [a if isinstance(a, Literal) else done.renamed.get(a, a) for a in jaxpr.outvars]
    return ClosedJaxpr(
        Jaxpr(done.constvars, jaxpr.invars, outvars, done.eqns, jaxpr.effects, jaxpr.debug_info), done.consts
    )


def with_lines(closed: ClosedJaxpr) -> ClosedJaxpr:
    """A program whose equations that belong to no line of the user's have that which calls it: of a function of this
    package that is compiled as it is."""
    line = user_source() if any(eqn.source is None for eqn in closed.eqns) else None
    if line is None:
        return closed
    eqns = [eqn if eqn.source is not None else eqn.replace(source_info=line) for eqn in closed.eqns]
    return closed.map_jaxpr(lambda jaxpr: jaxpr.replace(eqns=eqns))


def _concerns(eqn: JaxprEqn) -> bool:
    return isinstance(eqn.primitive.lower, Inline) or eqn.primitive.name == "optimization_barrier" or has_inner(eqn)


def with_barriers(closed: ClosedJaxpr) -> ClosedJaxpr:
    """A program with optimization barriers in the place of what `inline` makes of them: it may be transformed again."""
    barrier = registry["optimization_barrier"]

    def rewritten(eqn: JaxprEqn) -> JaxprEqn:
        return (
            eqn.replace(primitive=barrier)
            if eqn.primitive is keep_apart_p
            else map_inner(eqn, "with_barriers", with_barriers)
        )

    return closed.map_jaxpr(lambda jaxpr: jaxpr.replace(eqns=list(map(rewritten, jaxpr.eqns))))


def _with_scalar_condition(eqn: JaxprEqn, invars: list[Any]) -> tuple[JaxprEqn, list[Any]]:
    """A loop whose predicate is a scalar, and what it reads."""
    places, params = with_scalar_condition(range(len(invars)), eqn.params)
    if params is eqn.params:
        return eqn, invars
    return eqn.replace(invars=[eqn.invars[k] for k in places], params=params), [invars[k] for k in places]


class _Inliner:
    def __init__(self, closed: ClosedJaxpr) -> None:
        self.eqns: list[JaxprEqn] = []
        self.constvars = list(closed.jaxpr.constvars)
        self.consts = list(closed.consts)
        self.renamed: dict[Var, Any] = {}
        self.known = {id(c): v for v, c in zip(self.constvars, self.consts)}
        self._copy(closed.jaxpr, self.renamed, False, None)

    def _copy(self, jaxpr: Jaxpr, env: dict[Var, Any], fresh: bool, source: SourceInfo | None) -> None:
        """Append the equations; `fresh`: results get new variables, since the jaxpr may be inlined more than once.
        Those without a line get that of the call, `source`."""
        for eqn in jaxpr.eqns:
            line = eqn.source or source
            kind = eqn.primitive.lower
            invars = [a if isinstance(a, Literal) else env.get(a, a) for a in eqn.invars]
            if isinstance(kind, Inline) and (body := kind.body(eqn)) is not None:
                self._call(eqn, body, invars, env, line)
                continue
            if eqn.primitive.name == "optimization_barrier":
                for atom, out in zip(invars, eqn.outvars):
                    env[out] = self._barrier(atom)
                continue
            if eqn.primitive.name == "while":
                eqn, invars = _with_scalar_condition(eqn, invars)
            new = map_inner(eqn, "inline", inline)
            outvars = eqn.outvars
            if fresh:
                outvars = [Var(v.aval) for v in eqn.outvars]
                env.update(zip(eqn.outvars, outvars))
            if fresh or new is not eqn or any(a is not b for a, b in zip(invars, eqn.invars)):
                new = new.replace(invars=invars, outvars=outvars, source_info=line)
            self.eqns.append(new)

    def _call(
        self, eqn: JaxprEqn, body: Any, invars: list[Any], env: dict[Var, Any], source: SourceInfo | None
    ) -> None:
        inner = body.jaxpr if isinstance(body, ClosedJaxpr) else body
        if eqn.params.get("prevent_cse") and eqn.params.get("differentiated"):
            invars = [self._barrier(atom) for atom in invars]
        scope: dict[Var, Any] = dict(zip(inner.invars, invars))
        for var, value in zip(inner.constvars, body.consts if isinstance(body, ClosedJaxpr) else ()):
            scope[var] = self._const(var, value)
        self._copy(inner, scope, True, source)
        for out, atom in zip(eqn.outvars, inner.outvars):
            env[out] = atom if isinstance(atom, Literal) else scope.get(atom, atom)

    def _barrier(self, atom: Any) -> Any:
        if isinstance(atom, Literal):
            return atom
        out = Var(atom.aval)
        self.eqns.append(JaxprEqn([atom], [out], keep_apart_p, {}))
        return out

    def _const(self, var: Var, value: Any) -> Any:
        found = self.known.get(id(value))
        if found is None:
            if np.shape(value) == () and isinstance(typeof(value).dtype, np.dtype):
                return Literal(np.asarray(value)[()], var.aval)
            found = self.known[id(value)] = Var(var.aval)
            self.constvars.append(found)
            self.consts.append(value)
        return found
