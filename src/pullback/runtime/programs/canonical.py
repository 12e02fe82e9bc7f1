"""A hashable key of a jaxpr: equal for programs that are equal but for the names of variables."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Hashable
from typing import Any

import numpy as np

from pullback.core.jaxpr import ClosedJaxpr, Jaxpr, Literal, Var
from pullback.core.lowering import Inline
from pullback.core.primitive import Primitive


def jaxpr_key(closed: ClosedJaxpr) -> Hashable:
    """The key; constants and parameters without a hash enter by identity, so the jaxpr must outlive the key."""
    return closed.cached("key", lambda: (_open_key(closed.jaxpr), tuple(map(_const_key, closed.consts))))


def _const_key(value: Any) -> Hashable:
    if np.size(value) <= 16:
        words = getattr(value, "_base_array", None)  # of keys, whose dtype says of which generator they are
        array = np.asarray(value if words is None else words)
        return array.tobytes(), array.dtype.str if words is None else value.dtype, array.shape
    return id(value)


def _open_key(jaxpr: Jaxpr) -> Hashable:
    numbers: dict[Var, int] = {}
    for var in (*jaxpr.constvars, *jaxpr.invars):
        numbers[var] = len(numbers)

    def atom(a: Any) -> Hashable:
        if isinstance(a, Literal):
            value = np.asarray(a.val)
            return value.tobytes(), a.aval
        return numbers[a]

    eqns = []
    for eqn in jaxpr.eqns:
        operands = tuple(map(atom, eqn.invars))
        for var in eqn.outvars:
            numbers[var] = len(numbers)
        eqns.append(
            (
                eqn.primitive,
                operands,
                tuple((k, _param_key(v)) for k, v in eqn.params.items()),
                tuple(v.aval for v in eqn.outvars),
            )
        )
    arguments = tuple(v.aval for v in (*jaxpr.constvars, *jaxpr.invars))
    return arguments, tuple(eqns), tuple(map(atom, jaxpr.outvars))


def without_rules(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program without the functions that its primitives need for transformations only, inner ones included."""
    return ClosedJaxpr(_without_rules(closed.jaxpr), closed.consts)


def _without_rules(jaxpr: Jaxpr) -> Jaxpr:
    def stripped(value: Any, inline: bool) -> Any:
        if isinstance(value, ClosedJaxpr):
            return without_rules(value)
        if isinstance(value, Jaxpr):
            return value if value.of_elements else _without_rules(value)
        if isinstance(value, (tuple, list)) and any(isinstance(v, (ClosedJaxpr, Jaxpr)) for v in value):
            return type(value)([stripped(v, inline) for v in value])
        return None if inline and callable(value) else value

    eqns = []
    for eqn in jaxpr.eqns:
        inline = isinstance(eqn.primitive.lower, Inline)
        eqns.append(eqn.replace(params={k: stripped(v, inline) for k, v in eqn.params.items()}))
    return jaxpr.replace(eqns=eqns)


def holds_functions(closed: ClosedJaxpr) -> bool:
    """Whether a parameter is, or has, a function that is not just one of our modules' by name."""
    return closed.cached("holds functions", lambda: (_holds_functions(closed.jaxpr),))[0]


def _holds_functions(value: Any) -> bool:
    if isinstance(value, ClosedJaxpr):
        return holds_functions(value)
    if isinstance(value, Jaxpr):
        return any([_holds_functions(v) for eqn in value.eqns for v in eqn.params.values()])
    if isinstance(value, (tuple, list, frozenset)):
        return any(map(_holds_functions, value))
    if isinstance(value, dict):
        return any(map(_holds_functions, value.values()))
    if not callable(value) or isinstance(value, (type, Primitive, np.ufunc)):
        return dataclasses.is_dataclass(value) and any(
            [_holds_functions(getattr(value, field.name)) for field in dataclasses.fields(value)]
        )
    module = sys.modules.get(getattr(value, "__module__", ""))
    return getattr(module, getattr(value, "__qualname__", ""), None) is not value


def _param_key(value: Any) -> Hashable:
    if isinstance(value, ClosedJaxpr):
        return jaxpr_key(value)
    if isinstance(value, Jaxpr):
        return _open_key(value)
    if isinstance(value, (tuple, list)):
        return tuple(map(_param_key, value))
    try:
        hash(value)
    except TypeError:
        return id(value)
    return type(value), value
