"""Replaces every equation that is its own jaxpr (jit, custom rules, checkpoint) by that jaxpr's equations.

Before: y = jit[jaxpr={ lambda a. b = sin a in b }] x; after: y = sin x. Needed by all later passes, which see flat
programs. A barrier over several arrays becomes one barrier each, an identity that fuses and is never merged with
anything, the predicate of a loop a scalar, and operands of elementwise operations that have axes of size 1 are
broadcast: y = add x:f32[2,3] r:f32[1,3] reads f32[2,3] twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.compiler.graph.simplify.inner import has_inner, map_inner
from pullback.core.avals import ShapedArray, typeof
from pullback.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from pullback.core.lowering import Elementwise, Inline
from pullback.core.primitive import registry
from pullback.core.source import SourceInfo, user_source
from pullback.lax.control.while_loop import with_scalar_condition
from pullback.lax.movement.broadcast import broadcast_in_dim_p
from pullback.lax.movement.shape import squeeze_p
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
    if isinstance(eqn.primitive.lower, Elementwise):
        return _broadcasts(eqn) or eqn.primitive.name == "optimization_barrier"
    if eqn.primitive is broadcast_in_dim_p:
        return 1 in eqn.invars[0].aval.shape
    return isinstance(eqn.primitive.lower, Inline) or eqn.primitive.name == "optimization_barrier" or has_inner(eqn)


def _broadcasts(eqn: JaxprEqn) -> bool:
    """Whether an elementwise equation has operands with axes of size 1 that are broadcast."""
    shape = eqn.outvars[0].aval.shape
    for atom in eqn.invars:
        if (found := atom.aval.shape) and found != shape:
            return True
    return False


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


def _repeated(atom: Any, shape: tuple[int, ...], dims: Sequence[int]) -> tuple[int, ...]:
    """The axes of size 1 of an operand that a broadcast repeats."""
    return tuple([k for k, (n, d) in enumerate(zip(atom.aval.shape, dims)) if n != shape[d]])


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
        self.expanded: dict[Var, JaxprEqn] = {}  # what made the operands that have axes of size 1
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
            if isinstance(kind, Elementwise) and _broadcasts(eqn):
                shape = outvars[0].aval.shape
                invars = [self._spread(a, shape, line) for a in invars]
            elif eqn.primitive is broadcast_in_dim_p and 1 in invars[0].aval.shape:
                atom, dims = self._without_units(
                    invars[0], outvars[0].aval.shape, eqn.params["broadcast_dimensions"], line
                )
                invars, new = [atom], eqn.replace(params={**eqn.params, "broadcast_dimensions": dims})
            if fresh:
                outvars = [Var(v.aval) for v in eqn.outvars]
                env.update(zip(eqn.outvars, outvars))
            if fresh or new is not eqn or any(a is not b for a, b in zip(invars, eqn.invars)):
                new = new.replace(invars=invars, outvars=outvars, source_info=line)
            self.eqns.append(new)
            if new.primitive is broadcast_in_dim_p and 1 in new.outvars[0].aval.shape:
                self.expanded[new.outvars[0]] = new

    def _spread(self, atom: Any, shape: tuple[int, ...], source: SourceInfo | None) -> Any:
        """An operand of an elementwise equation at the shape of the result."""
        if not atom.aval.shape or atom.aval.shape == shape:
            return atom
        atom, dims = self._without_units(atom, shape, range(len(shape)), source)
        return self._new(broadcast_in_dim_p, atom, shape, {"shape": shape, "broadcast_dimensions": dims}, source)

    def _without_units(
        self, atom: Any, shape: tuple[int, ...], dims: Sequence[int], source: SourceInfo | None
    ) -> tuple[Any, tuple[int, ...]]:
        """The operand of a broadcast, and its dimensions there, without axes of size 1 that it broadcasts: they are
        dropped, or not made where a broadcast made them."""
        dropped = _repeated(atom, shape, dims)
        made = self.expanded.get(atom) if dropped and isinstance(atom, Var) else None
        if made is not None:
            (atom,), dims = made.invars, [dims[d] for d in made.params["broadcast_dimensions"]]
            dropped = _repeated(atom, shape, dims)
        if dropped:
            kept = [n for k, n in enumerate(atom.aval.shape) if k not in dropped]
            atom = self._new(squeeze_p, atom, kept, {"dimensions": dropped}, source)
        return atom, tuple([d for k, d in enumerate(dims) if k not in dropped])

    def _new(self, primitive: Any, atom: Any, shape: Sequence[int], params: dict, source: SourceInfo | None) -> Var:
        out = Var(ShapedArray(tuple(shape), atom.aval.dtype, atom.aval.weak_type))
        self.eqns.append(JaxprEqn([atom], [out], primitive, params, source_info=source))
        return out

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
