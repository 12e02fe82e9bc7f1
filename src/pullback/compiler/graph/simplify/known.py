"""Known: what follows from constants alone, and takes longer to compute than to read, is computed once, here.

    c = cos(iota[256, 1] * w)          x * c       =>    x * constant
    h = kron(b, kron(b, kron(b, b)))   h @ x       =>    constant @ x

Needs: what does not change moved out of loops, and products with matrices of known structure written as what they are.
Guarantees: the same bits, as references have those of programs; sums of floats, whose order is the schedule's, are left
to programs. What is cheap, such as a mask, stays in the loops that read it, and so does what only moves elements.
Places at which a gather reads and that count along a few axes are no constants, but counted there: loops walk along
these axes.

    x[i // 200, i % 200], i = iota[60000]    =>    x[a, b], a, b = reshape(iota[300, 200] along 0, along 1)

Measured (Zen 4): a Hadamard matrix of 256 x 256, as a chain of products by Kronecker, times a vector took 128 us, now
3; rotary embeddings of 4 x 256 x 8 x 64 36, now 25; and the first compile in 12 ms and 60.
The example, times 2, 17.1, now 4.6; a stencil at such places 42, now 5.5.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.compiler.graph.simplify.fold import NEVER
from pullback.compiler.graph.simplify.rewrite import joins_pieces, repeated_number
from pullback.compiler.graph.structure.facts import counted_axes
from pullback.core.hooks import hooks
from pullback.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from pullback.core.lowering import Elementwise, Pointwise
from pullback.core.primitive import registry

# Additions for an element from which it is read instead, by the bytes of the array: from the first caches, or the last.
NEAR, WORTH_NEAR = 1 << 18, 12
FAR, WORTH_FAR = 1 << 22, 16
JOINED, CHOSEN = 8, 4  # additions that a reshape takes whose indices are divided, and a choice of several places
SMALLER = 16  # times as small an array is stored
EFFORT = 1 << 23  # elements of all steps that are computed here: some ten milliseconds
LONG_AXIS = 8  # elements of the last axis of places that are counted
_MOVES = frozenset({"reshape", "broadcast_in_dim", "transpose", "squeeze", "expand_dims", "slice", "rev", "copy"})


def compute_known(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program with what is worth it computed."""
    jaxpr = closed.jaxpr
    made: dict[Var, JaxprEqn] = {}
    consts = dict(zip(jaxpr.constvars, closed.consts))
    wanted: dict[Var, set[str]] = {}  # by which primitives
    for eqn in jaxpr.eqns:
        known = _is_known(eqn, made, consts)
        if known:
            made[eqn.outvars[0]] = eqn
        else:
            for var in _computed(eqn.invars, made):
                wanted.setdefault(var, set()).add(eqn.primitive.name)
    for var in _computed(jaxpr.outvars, made):
        wanted.setdefault(var, set()).add("")
    values: dict[Var, Any] = {}
    for var in wanted:
        cone = _cone(var, made)
        if _pays(var, cone):
            _evaluate(cone, values, consts)
    found = {var: value for var in wanted if (value := values.get(var)) is not None and _varies(value)}
    if not found:
        return closed
    counted = {var: new for var in found if wanted[var] == {"gather"} and (new := _counting(var, found[var]))}
    eqns: list[JaxprEqn] = []
    for eqn in jaxpr.eqns:
        out = eqn.outvars[0] if len(eqn.outvars) == 1 else None
        eqns += counted.get(out, ()) if out in found else (eqn,)
    for var in counted:
        del found[var]
    return ClosedJaxpr(
        Jaxpr([*jaxpr.constvars, *found], jaxpr.invars, jaxpr.outvars, eqns, jaxpr.effects, jaxpr.debug_info),
        [*closed.consts, *found.values()],
    )


def _is_known(eqn: JaxprEqn, made: dict[Var, JaxprEqn], consts: dict[Var, Any]) -> bool:
    """Whether a result follows from constants alone, element by element."""
    primitive = eqn.primitive
    if len(eqn.outvars) != 1 or eqn.effects or primitive.traits & NEVER or not primitive.has_rule("reference"):
        return False
    if primitive.name != "iota" and not isinstance(primitive.lower, (Elementwise, Pointwise)):
        return False
    aval = eqn.outvars[0].aval
    if not isinstance(aval.dtype, np.dtype) or aval.size * aval.dtype.itemsize > FAR:
        return False
    return all(isinstance(a, Literal) or a in made or a in consts for a in eqn.invars)


def _computed(atoms: Any, made: dict[Var, JaxprEqn]) -> dict[Var, None]:
    """The known arrays of which atoms have the elements."""
    found: dict[Var, None] = {}
    atoms = list(atoms)
    while atoms:
        atom = atoms.pop(0)
        eqn = None if isinstance(atom, Literal) else made.get(atom)
        if eqn is None or eqn.primitive.name == "iota":
            continue
        if eqn.primitive.name in _MOVES or joins_pieces(eqn):  # such as the places along each axis
            atoms = [*eqn.invars, *atoms]
        else:
            found[atom] = None
    return found


def _counting(var: Var, places: np.ndarray) -> list[JaxprEqn] | None:
    """The equations of whole numbers that count by steps along a few axes, of which the last is not short."""
    if places.dtype.kind != "i":
        return None
    found = counted_axes(places)
    if found is None or found[1][-1][0] < LONG_AXIS:
        return None
    first, axes = found
    shape, dtype = tuple(n for n, _ in axes), var.aval.dtype
    eqns: list[JaxprEqn] = []

    def emit(name: str, *operands: Any, **params: Any) -> Var:
        primitive = registry[name]
        out = Var(primitive.abstract_eval(*[a.aval for a in operands], **params))
        eqns.append(JaxprEqn(operands, [out], primitive, params))
        return out

    def number(value: int) -> Literal:
        return Literal(np.asarray(value, dtype)[()], var.aval.update(shape=(), weak_type=False))

    total: Any = None
    for axis, (_, step) in enumerate(axes):
        if step:
            term = emit("iota", dtype=dtype, shape=shape, dimension=axis, sharding=None)
            term = term if step == 1 else emit("mul", term, number(step))
            total = term if total is None else emit("add", total, term)
    if first:
        total = emit("add", total, number(first))
    emit("reshape", total, new_sizes=var.aval.shape, dimensions=None)
    last = eqns[-1]
    eqns[-1] = JaxprEqn(last.invars, [var], last.primitive, last.params)
    return eqns


def _cone(var: Var, made: dict[Var, JaxprEqn]) -> list[JaxprEqn]:
    """The equations that a known array follows from, each after those that it reads."""
    order: dict[Var, JaxprEqn] = {}
    stack = [var]
    while stack:
        each = stack[-1]
        waiting = [a for a in made[each].invars if not isinstance(a, Literal) and a in made and a not in order]
        if each in order or not waiting:
            order[stack.pop()] = made[each]
        else:
            stack += waiting
    return list(order.values())


def _pays(var: Var, cone: list[JaxprEqn]) -> bool:
    """Whether to compute the elements takes longer than to read them, and not too long now."""
    aval = var.aval
    size = aval.size * aval.dtype.itemsize
    if aval.size < 2 or sum(eqn.outvars[0].aval.size for eqn in cone) > EFFORT:
        return False
    worth = WORTH_NEAR if size <= NEAR else WORTH_FAR
    return sum(_additions(eqn, aval.size) for eqn in cone) >= worth


def _additions(eqn: JaxprEqn, size: int) -> float:
    """What an equation takes for each of so many elements that follow from it: smaller arrays are stored first."""
    out, lower = eqn.outvars[0].aval, eqn.primitive.lower
    share = 1.0 if out.size * SMALLER >= size else out.size / size
    if eqn.primitive.name == "reshape":
        return JOINED * share if out.ndim < eqn.invars[0].aval.ndim else 0.0
    if eqn.primitive.name == "iota" or (isinstance(lower, Pointwise) and lower.is_view):
        return 0.0
    return max(lower.cost, CHOSEN if isinstance(lower, Pointwise) else 1) * share


def _evaluate(cone: list[JaxprEqn], values: dict[Var, Any], consts: dict[Var, Any]) -> None:
    for eqn in cone:
        out = eqn.outvars[0]
        if out in values:
            continue
        operands = []
        for atom in eqn.invars:
            given = atom.val if isinstance(atom, Literal) else consts[atom] if atom in consts else values[atom]
            if given is None:
                break
            operands.append(np.asarray(given).astype(atom.aval.dtype, copy=False))
        values[out] = None
        if len(operands) < len(eqn.invars):
            continue
        with np.errstate(all="ignore"):
            reference = hooks.reference_of(eqn.primitive, [atom.aval for atom in eqn.invars])
            result = np.asarray(reference(*operands, **eqn.params))
        if result.shape == out.aval.shape and result.dtype == out.aval.dtype:
            values[out] = np.ascontiguousarray(result)


def _varies(value: np.ndarray) -> bool:
    """Whether it is no number that is repeated, which needs no memory."""
    return repeated_number(value) is None
