"""Rewriting a flat jaxpr equation by equation: rules by primitive, applied until none fits.

A rule takes (Rewriter, equation) and gives None (it does not fit), an atom that the result equals, or a list of atoms
for equations with several results. New equations are made with `rewriter.emit`. Operands of the equation are already
rewritten.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pullback.compiler.graph.simplify.inner import map_inner
from pullback.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from pullback.core.primitive import Primitive, registry

Rule = Callable[["Rewriter", JaxprEqn], Any]
LOOKED_AT = 1 << 16  # elements of a constant
MAX_OPERAND = 4096  # elements of a constant that rules compute with
MAX_STEPS = 64  # rewrites of one equation and of those made for it


class Rewriter:
    """One jaxpr being rewritten; `definition(atom)` is the equation of a variable, `constant(atom)` a known value."""

    def __init__(self, closed: ClosedJaxpr, rules: Mapping[str, Sequence[Rule]], name: str) -> None:
        self.closed, self.rules, self.name = closed, rules, name
        self.eqns: list[JaxprEqn] = []
        self.env: dict[Var, Any] = {}
        self.definitions: dict[Var, JaxprEqn] = {}
        self.consts: dict[Var, Any] = dict(zip(closed.jaxpr.constvars, closed.consts))
        self.notes: dict[str, Any] = {}  # what rules remember of this jaxpr
        self.changed = False
        self._steps = 0
        self._source: Any = None

    def run(self, inner: Callable[[ClosedJaxpr], ClosedJaxpr]) -> ClosedJaxpr:
        """The rewritten jaxpr; `inner` is this pass, for the jaxprs inside equations."""
        jaxpr, env = self.closed.jaxpr, self.env
        for eqn in jaxpr.eqns:
            new = map_inner(eqn, self.name, inner)
            if new is not eqn:
                self.changed = True
            self._steps = 0
            self._source = eqn.source
            for atom in new.invars:
                if type(atom) is not Literal and atom in env:
                    new = new.replace(invars=[self.read(a) for a in new.invars])
                    break
            self._place(new)
        if not self.changed:
            return self.closed
        outvars = [self.read(a) for a in jaxpr.outvars]
        kept = list(self.consts.items())
        return ClosedJaxpr(
            Jaxpr([v for v, _ in kept], jaxpr.invars, outvars, self.eqns, jaxpr.effects, jaxpr.debug_info),
            [c for _, c in kept],
        )

    def _place(self, eqn: JaxprEqn) -> None:
        rules = self.rules.get(eqn.primitive.name)
        if rules and self._steps < MAX_STEPS and not eqn.effects:
            for rule in rules:
                found = rule(self, eqn)
                if found is None:
                    continue
                self._steps += 1
                self.changed = True
                atoms = found if isinstance(found, list) else [found]
                for var, atom in zip(eqn.outvars, atoms):
                    if isinstance(atom, Literal) and var.aval.shape:
                        atom = self.broadcast(atom, var.aval.shape, ())
                    if (atom.aval.shape, atom.aval.dtype) != (var.aval.shape, var.aval.dtype):
                        raise AssertionError(  # loops over another shape would give other elements, in silence
                            f"{self.name}: the rule of '{eqn.primitive.name}' gave {atom.aval} for {var.aval}"
                        )
                    self.env[var] = atom
                return
        for var in eqn.outvars:
            self.definitions[var] = eqn
        self.eqns.append(eqn)

    @functools.cached_property
    def uses(self) -> Counter[Any]:
        """How often each variable of the jaxpr is read, before anything is rewritten."""
        jaxpr = self.closed.jaxpr
        atoms = (*(a for eqn in jaxpr.eqns for a in eqn.invars), *jaxpr.outvars)
        return Counter(a for a in atoms if not isinstance(a, Literal))

    @functools.cached_property
    def readers(self) -> dict[Var, list[JaxprEqn]]:
        """The equations that read each variable, before anything is rewritten."""
        found: dict[Var, list[JaxprEqn]] = {}
        for eqn in self.closed.jaxpr.eqns:
            for atom in eqn.invars:
                if not isinstance(atom, Literal):
                    found.setdefault(atom, []).append(eqn)
        return found

    def read(self, atom: Any) -> Any:
        """What an atom was rewritten to."""
        while type(atom) is not Literal:
            found = self.env.get(atom)
            if found is None:
                return atom
            atom = found
        return atom

    # What is known of atoms.

    def definition(self, atom: Any, *names: str) -> JaxprEqn | None:
        """The equation that defines an atom, if it is of one of the named primitives (any, if none is named)."""
        eqn = None if type(atom) is Literal else self.definitions.get(atom)
        if eqn is None or (names and eqn.primitive.name not in names):
            return None
        return eqn

    def constant(self, atom: Any) -> np.ndarray | None:
        """The value of a literal or small constant, else None."""
        if isinstance(atom, Literal):
            return np.asarray(atom.val)
        if atom.aval.size == 1:
            number = self.splat(atom)
            if isinstance(number, Literal):
                return np.asarray(number.val).astype(atom.aval.dtype).reshape(atom.aval.shape)
        value = self.consts.get(atom)
        if value is None or not isinstance(atom.aval.dtype, np.dtype) or atom.aval.size > MAX_OPERAND:
            return None
        return np.asarray(value)

    def splat(self, atom: Any) -> Any:
        """The rank-0 atom that an array repeats, else None."""
        if not atom.aval.shape:
            return atom
        eqn = None if type(atom) is Literal else self.definitions.get(atom)
        if eqn is not None and eqn.primitive.name == "broadcast_in_dim" and not eqn.invars[0].aval.shape:
            return eqn.invars[0]
        return None

    def scalar(self, atom: Any) -> Any:
        """The number that an array repeats, as a NumPy scalar, else None."""
        inner = self.splat(atom)
        return np.asarray(inner.val)[()] if type(inner) is Literal else None

    def is_scalar(self, atom: Any, value: Any) -> bool:
        """Whether every element is known to equal `value`."""
        found = self.scalar(atom)
        return found is not None and bool(found == value)

    # New equations.

    def emit(self, name: str | Primitive, *operands: Any, **params: Any) -> Any:
        """The result of a new equation (a list if it has several), itself rewritten."""
        primitive = registry[name] if isinstance(name, str) else name
        avals = primitive.abstract_eval(*[a.aval for a in operands], **params)
        outs = [Var(a) for a in (avals if primitive.multiple_results else [avals])]
        self._place(JaxprEqn(operands, outs, primitive, params, source_info=self._source))
        results = [self.read(v) for v in outs]
        return results if primitive.multiple_results else results[0]

    def broadcast(self, atom: Any, shape: Sequence[int], dims: Sequence[int]) -> Any:
        """broadcast_in_dim."""
        return self.emit("broadcast_in_dim", atom, shape=tuple(shape), broadcast_dimensions=tuple(dims))

    def convert(self, atom: Any, dtype: Any, weak_type: bool | None = None) -> Any:
        """The atom in another dtype: itself if it has that, and is as weakly typed as is asked, if anything is."""
        if atom.aval.dtype == dtype and weak_type in (None, atom.aval.weak_type):
            return atom
        return self.emit("convert_element_type", atom, new_dtype=dtype, weak_type=bool(weak_type), sharding=None)

    def reshape(self, atom: Any, shape: Sequence[int]) -> Any:
        """reshape."""
        return self.emit("reshape", atom, new_sizes=tuple(shape), dimensions=None)

    def full(self, aval: Any, value: Any) -> Any:
        """An array of one value."""
        literal = Literal(np.asarray(value).astype(aval.dtype)[()], aval.update(shape=()))
        return self.broadcast(literal, aval.shape, ()) if aval.shape else literal

    def const(self, value: np.ndarray, aval: Any) -> Any:
        """A known array as an atom; a broadcast number if all elements are equal."""
        number = repeated_number(value)
        if number is not None:
            return self.full(aval, number)
        var = Var(aval)
        self.consts[var] = value
        return var


def size_of(shape: Sequence[int]) -> int:
    """The number of elements."""
    return math.prod(shape)


def joins_pieces(eqn: JaxprEqn) -> bool:
    """Whether an equation joins pieces of one element each along an axis."""
    if eqn.primitive.name != "concatenate" or len(eqn.invars) < 2:
        return False
    axis = eqn.params["dimension"]
    return all(atom.aval.shape[axis] == 1 for atom in eqn.invars)


def repeated_number(value: Any) -> Any:
    """The number that all elements of a constant are, if it is not too large to look at; else None."""
    if np.size(value) == 0 or np.size(value) > LOOKED_AT or hasattr(value, "_base_array"):
        return None
    flat = np.ascontiguousarray(value).reshape(-1)
    first = flat[:1]
    same = flat.view(np.uint8).reshape(flat.size, -1) == first.view(np.uint8)
    return first[0] if bool(same.all()) else None


def same_type(eqn: JaxprEqn, atom: Any) -> Any:
    """The atom, if it can take the place of the equation's result; None if its shape or dtype differs."""
    out = eqn.outvars[0].aval
    return atom if atom.aval.shape == out.shape and atom.aval.dtype == out.dtype else None
