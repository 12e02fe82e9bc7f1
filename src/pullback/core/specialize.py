"""Programs of symbolic dimensions with values in the place of these: integers, or dimensions of another scope.

    specialize(f32[n,2*n] -> f32[n], {"n": 3})  is  f32[3,6] -> f32[3]

Every type and every parameter of the equations is evaluated; the program is traced no second time.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Mapping
from typing import Any

from pullback.core.atoms import Atom, DropVar, Literal, Var
from pullback.core.avals import ShapedArray
from pullback.core.dimensions import Dimension, evaluate, is_symbolic_type
from pullback.core.jaxpr import ClosedJaxpr, Jaxpr

Values = Mapping[str, Any]


def specialize(closed: ClosedJaxpr, values: Values) -> ClosedJaxpr:
    """The program with values for all dimension variables; ValueError if a size would be negative."""
    return ClosedJaxpr(_Specializer(values).jaxpr(closed.jaxpr), closed.consts)


def refuse_symbolic(closed: ClosedJaxpr, what: str) -> None:
    """Raise NotImplementedError if a program has symbolic dimensions; it names the first operation that has them."""
    for var in closed.jaxpr.invars:
        if is_symbolic_type(var.aval):
            raise NotImplementedError(
                f"{what}: a program with symbolic dimensions, as of an argument of type {var.aval.short()}, is not "
                "compiled as such; jax.export.export(jax.jit(f))(specs).call(x) compiles it for the shape of x"
            )
    for eqn in closed.jaxpr.eqns:
        if any(is_symbolic_type(v.aval) for v in eqn.outvars) or any(type(v) is Dimension for v in eqn.params.values()):
            where = "" if eqn.source is None else f" at {eqn.source}"
            raise NotImplementedError(
                f"{what}: primitive '{eqn.primitive.name}'{where} has symbolic dimensions that no argument's shape has"
            )


class _Specializer:
    def __init__(self, values: Values):
        self.values = values
        self.made: dict[int, tuple[Any, Any]] = {}  # inner programs by identity: shared ones stay shared

    def size(self, d: Any) -> Any:
        return evaluate(d, self.values) if isinstance(d, Dimension) else d

    def aval(self, aval: Any) -> Any:
        if not isinstance(aval, ShapedArray) or not is_symbolic_type(aval):
            return aval
        shape = tuple(map(self.size, aval.shape))
        for d, n in zip(aval.shape, shape):
            if isinstance(n, int) and n < 0:
                given = ", ".join(f"{name} = {value}" for name, value in self.values.items())
                raise ValueError(f"the dimension '{d}' of an intermediate value would be {n}, for {given}")
        return aval.update(shape=shape)

    def jaxpr(self, jaxpr: Jaxpr) -> Jaxpr:
        variables: dict[Any, Var] = {}

        def bound(var: Var) -> Var:
            variables[var] = type(var)(self.aval(var.aval))
            return variables[var]

        def used(atom: Atom) -> Atom:
            return atom if type(atom) is Literal else variables[atom]

        constvars, invars = list(map(bound, jaxpr.constvars)), list(map(bound, jaxpr.invars))
        eqns = []
        for eqn in jaxpr.eqns:
            operands = list(map(used, eqn.invars))
            params = {name: self.value(value) for name, value in eqn.params.items()}
            results = [DropVar(self.aval(v.aval)) if isinstance(v, DropVar) else bound(v) for v in eqn.outvars]
            eqns.append(eqn.replace(invars=operands, outvars=results, params=params))
        return jaxpr.replace(constvars=constvars, invars=invars, outvars=list(map(used, jaxpr.outvars)), eqns=eqns)

    def value(self, value: Any) -> Any:
        """A parameter; containers of dimensions, types and programs are made anew."""
        kind = type(value)
        if kind is Dimension:
            return self.size(value)
        if kind is tuple or kind is list:
            members = kind(map(self.value, value))
            return value if all(map(operator.is_, members, value)) else members
        if kind is dict:
            return {key: self.value(v) for key, v in value.items()}
        if isinstance(value, tuple):  # named
            return kind(*map(self.value, value))
        if isinstance(value, ShapedArray):
            return self.aval(value)
        if isinstance(value, (Jaxpr, ClosedJaxpr)) and not value.of_elements:
            found = self.made.get(id(value))
            if found is None:
                new: Any = self.jaxpr(value) if isinstance(value, Jaxpr) else value.map_jaxpr(self.jaxpr)
                found = self.made[id(value)] = (value, new)
            return found[1]
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = {f.name: self.value(getattr(value, f.name)) for f in dataclasses.fields(value) if f.init}
            same = all(fields[f] is getattr(value, f) for f in fields)
            return value if same else dataclasses.replace(value, **fields)
        return value
