"""How every value of a program is cut, from the arguments, constraints and results of which that is known.

What is known goes forward from operands to results and back, by the factors of each operation, until nothing changes.
A result takes what its operands agree on; where they do not, the larger one decides, and of equal ones the first. What
is said later cuts values that nothing has cut (arguments that are not committed, constants, random bits), and what lies
between, since to cut what every device has moves nothing; committed arguments, constraints and known results stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.core.jaxpr import Jaxpr, Literal, Var
from pullback.core.types import CONSTRAINTS, said_by
from pullback.partition.by_user import BY_USER, inferred
from pullback.partition.factors import Axes, Cut, Factors, Sizes, fitting, whole
from pullback.partition.rules import rule_of
from pullback.sharding import NamedSharding
from pullback.sharding._specs import UNCONSTRAINED, names_of

ROUNDS = 4  # of going forward and back; what is not settled then stays as it is

Known = dict[Var, Cut]


def factors_of(eqn: Any) -> Factors | None:
    """What the record says of an equation; None: it is computed whole."""
    rule = rule_of(eqn.primitive)
    return None if rule is None else rule(eqn)


def cut_by(sharding: Any, aval: Any, mesh: Sizes) -> Cut | None:
    """How a sharding cuts an array; None for one that says nothing of this mesh."""
    if not isinstance(sharding, NamedSharding) or not set(sharding.mesh.axis_names) <= set(mesh):
        return None
    return fitting([names_of(part) for part in sharding.spec], aval.shape, mesh)


def constraint(eqn: Any, operand: Cut | None, mesh: Sizes) -> Cut | None:
    """What a constraint says; open dimensions are as its operand's."""
    sharding, aval = said_by(eqn), eqn.outvars[0].aval
    said = cut_by(sharding, aval, mesh)
    if said is None:
        return operand
    used = {a for axes in said for a in axes}
    found = list(said)
    for d, part in enumerate(sharding.spec):
        if part is UNCONSTRAINED and operand is not None and not used & set(operand[d]):
            found[d] = operand[d]
    placing = getattr(aval, "placing", None)
    if placing is not None and sharding is not placing and eqn.primitive.name != "reshard":  # types decide first
        known = [
            tuple(a for a in axes if a in placing.mesh.explicit_axes) for axes in cut_by(placing, aval, mesh) or ()
        ]
        used = {a for axes in known for a in axes}
        found = [(*axes, *(a for a in more if a not in used)) for axes, more in zip(known, found)] or found
    if eqn.primitive.name == "reshard" and operand is not None:  # which says nothing of axes that are not explicit
        free = set(sharding.mesh.axis_names).difference(sharding.mesh.explicit_axes, *found)
        found = [axes or (more if free.issuperset(more) else ()) for axes, more in zip(found, operand, strict=True)]
    return fitting(found, aval.shape, mesh)


def further(axes: Axes, more: Axes, free: set[Any]) -> Axes:
    """The axes that a type says of a dimension, and those that cut its parts further, of those that it leaves open."""
    return (*axes, *(a for a in more[len(axes) :] if a in free)) if more[: len(axes)] == axes else axes


def propagate(jaxpr: Jaxpr, ins: Sequence[Cut | None], mesh: Sizes) -> Known:
    """The cuts of the variables of a flat program of which something is known."""
    known: Known = {v: cut for v, cut in zip(jaxpr.invars, ins, strict=True) if cut is not None}
    fixed, open_axes = set(known), dict[Any, set[Any]]()
    for var in (*jaxpr.invars, *[v for eqn in jaxpr.eqns for v in eqn.outvars]):
        placing = getattr(var.aval, "placing", None)
        if placing is None or (cut := cut_by(placing, var.aval, mesh)) is None:
            continue
        others = set(placing.mesh.axis_names).difference(placing.mesh.explicit_axes)
        if not others:
            known[var] = cut  # types decide
            fixed.add(var)
        elif var not in known:
            known[var], open_axes[var] = cut, others
    pass_ = _Pass(known, fixed, {a for a in jaxpr.outvars if not isinstance(a, Literal)}, mesh, open_axes)
    for _ in range(ROUNDS):
        before = dict(known)
        for eqn in jaxpr.eqns:
            pass_.forward(eqn)
        for eqn in reversed(jaxpr.eqns):
            pass_.backward(eqn)
        if known == before:
            break
    return known


class _Pass:
    def __init__(
        self, known: Known, fixed: set[Var], results: set[Any], mesh: Sizes, open_axes: dict[Any, set[Any]]
    ) -> None:
        self.known, self.fixed, self.results, self.mesh = known, fixed, results, mesh
        self.open_axes = open_axes  # of values whose types decide about the other axes

    def read(self, atom: Any) -> Cut | None:
        """What is known of an atom."""
        return None if isinstance(atom, Literal) else self.known.get(atom)

    def learn(self, var: Any, cut: Cut | None) -> None:
        """That a value is cut so, where nothing says otherwise."""
        if cut is None or var in self.fixed:
            return
        had = self.known.get(var)
        if had is not None and (free := self.open_axes.get(var)):
            free = free.difference(a for axes in had for a in axes)
            cut = tuple(further(axes, more, free) for axes, more in zip(had, cut, strict=True))
            had = None  # which is in it
        cut = fitting(cut, var.aval.shape, self.mesh)
        self.known[var] = cut if had is None else joined([had, cut])

    def forward(self, eqn: Any) -> None:
        """From operands to results."""
        name = eqn.primitive.name
        if name in CONSTRAINTS:
            cut = constraint(eqn, self.read(eqn.invars[0]), self.mesh)
            if cut is not None:
                self.known[eqn.outvars[0]] = cut
                self.fixed.add(eqn.outvars[0])
        elif name == "shard_map":
            for var, spec in zip(eqn.outvars, eqn.params["out_specs"]):
                self.learn(var, cut_by(NamedSharding(eqn.params["mesh"], spec), var.aval, self.mesh))
        elif name in CONTROL:
            for var, cut in zip(eqn.outvars, CONTROL[name](eqn, [self.read(a) for a in eqn.invars], self.mesh)):
                self.learn(var, cut)
        elif (factors := factors_of(eqn)) is not None:
            cuts = [self.read(a) for a in eqn.invars]
            axes = operand_axes(factors, eqn, cuts, self.mesh)
            if any(cut is not None for cut in cuts):
                for var, dims in zip(eqn.outvars, factors.results):
                    self.learn(var, followed(factors, cuts[0], factors.cut_of(axes, dims)))
        elif name == BY_USER:
            cuts = [self.read(a) for a in eqn.invars]
            if any(cut is not None for cut in cuts):
                for var, cut in zip(eqn.outvars, inferred(eqn, cuts, self.mesh)):
                    self.learn(var, cut)

    def backward(self, eqn: Any) -> None:
        """From results to operands of which nothing is known, or which may be cut more."""
        name = eqn.primitive.name
        unknown = [
            k
            for k, a in enumerate(eqn.invars)
            if not isinstance(a, Literal) and a not in self.fixed and (a not in self.known or a not in self.results)
        ]
        if not unknown:
            return
        if name in CONSTRAINTS:
            self.learn(eqn.invars[0], self.known.get(eqn.outvars[0]))
        elif name == "shard_map":
            for k in unknown:
                sharding = NamedSharding(eqn.params["mesh"], eqn.params["in_specs"][k])
                self.learn(eqn.invars[k], cut_by(sharding, eqn.invars[k].aval, self.mesh))
        elif name == "scan":
            n, m = eqn.params["num_consts"], eqn.params["num_carry"]
            for atom, var in zip(eqn.invars[n : n + m], eqn.outvars[:m]):
                if not isinstance(atom, Literal) and atom not in self.known:
                    self.learn(atom, self.known.get(var))
        elif name not in CONTROL and (factors := factors_of(eqn)) is not None:
            parts = [
                factors.of_cut(self.known.get(v), dims, self.mesh) for v, dims in zip(eqn.outvars, factors.results)
            ]
            if not any(parts):
                return
            axes = factors.merged(parts, self.mesh)
            for k in unknown:
                if any(axes.get(f) for dim in factors.operands[k] for f in dim):
                    self.learn(eqn.invars[k], factors.cut_of(axes, factors.operands[k]))


def followed(factors: Factors, operand: Cut | None, cut: Cut) -> Cut:
    """The cut of a result, whose dimensions that are computed whole are cut as the operand's."""
    if operand is None:
        return cut
    found, used = list(cut), {a for axes in cut for a in axes}
    for d, e in factors.follows:
        if not found[e] and not used & set(operand[d]):
            found[e] = operand[d]
            used |= set(operand[d])
    return tuple(found)


def operand_axes(factors: Factors, eqn: Any, cuts: Sequence[Cut | None], mesh: Sizes) -> dict[int, Axes]:
    """The axes of each factor that operands say, the larger ones first; before all those that results have."""
    order = sorted(range(len(cuts)), key=lambda k: -eqn.invars[k].aval.size)
    parts = [factors.of_cut(cuts[k], factors.operands[k], mesh) for k in order]
    kept = {f for dims in factors.results for dim in dims for f in dim}
    first = [{f: axes for f, axes in part.items() if f in kept} for part in parts]
    return factors.merged([*first, *parts], mesh)


def joined(cuts: Sequence[Cut | None]) -> Cut:
    """What cuts of arrays of one shape say together; the first decides."""
    found = [cut for cut in cuts if cut is not None]
    out: list[Axes] = [()] * len(found[0])
    used: set[Any] = set()
    for cut in found:
        for d, axes in enumerate(cut):
            if axes and not out[d] and not used & set(axes):
                out[d] = axes
                used |= set(axes)
    return tuple(out)


# ---- loops and branches: (equation, cuts of operands, mesh) -> cuts of results


def results_of(jaxpr: Jaxpr, ins: Sequence[Cut | None], mesh: Sizes) -> list[Cut | None]:
    """The cuts of a program's results."""
    known = propagate(jaxpr, ins, mesh)
    return [None if isinstance(a, Literal) else known.get(a) for a in jaxpr.outvars]


def carried(
    jaxpr: Jaxpr, before: Sequence[Cut | None], carry: Sequence[Cut | None], after: Sequence[Cut | None], mesh: Sizes
) -> tuple[list[Cut | None], list[Cut | None]]:
    """(cuts of the carry, of all results) of a loop's body, where both ends of the carry are cut alike."""
    carry = list(carry)
    outs: list[Cut | None] = []
    for _ in range(ROUNDS):
        outs = results_of(jaxpr, [*before, *carry, *after], mesh)
        now = [c if o is None else o if c is None else joined([c, o]) for c, o in zip(carry, outs)]
        if now == carry:
            break
        carry = now
    return carry, outs


def rows(cut: Cut | None) -> Cut | None:
    """The cut of one element along the leading axis."""
    return None if cut is None else cut[1:]


def stacked(cut: Cut | None) -> Cut | None:
    """The cut of a stack of such arrays."""
    return None if cut is None else ((), *cut)


def scan_cuts(eqn: Any, cuts: Sequence[Cut | None], mesh: Sizes) -> tuple[list[Cut | None], list[Cut | None]]:
    """(cuts of the carry, of all results) of a scan."""
    n, m = eqn.params["num_consts"], eqn.params["num_carry"]
    xs = [rows(c) for c in cuts[n + m :]]
    carry, outs = carried(eqn.params["jaxpr"].jaxpr, cuts[:n], cuts[n : n + m], xs, mesh)
    return carry, [*carry, *[stacked(c) for c in outs[m:]]]


def while_cuts(eqn: Any, cuts: Sequence[Cut | None], mesh: Sizes) -> list[Cut | None]:
    """The cuts of the carry of a while loop."""
    a, b = eqn.params["cond_nconsts"], eqn.params["body_nconsts"]
    return carried(eqn.params["body_jaxpr"].jaxpr, cuts[a : a + b], cuts[a + b :], [], mesh)[0]


def cond_cuts(eqn: Any, cuts: Sequence[Cut | None], mesh: Sizes) -> list[Cut | None]:
    """The cuts of the results of branches."""
    found = [results_of(b.jaxpr, cuts[1:], mesh) for b in eqn.params["branches"]]
    return [None if all(c is None for c in group) else joined(group) for group in zip(*found)]


CONTROL: dict[str, Any] = {
    "scan": lambda eqn, cuts, mesh: scan_cuts(eqn, cuts, mesh)[1],
    "while": while_cuts,
    "cond": cond_cuts,
}


def cut_or_whole(cut: Cut | None, aval: Any) -> Cut:
    """The cut; that of a whole array where nothing is known."""
    return whole(len(aval.shape)) if cut is None else cut
