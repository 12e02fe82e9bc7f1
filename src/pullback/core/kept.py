"""Programs that are remembered for those who come later: with the values of their constants, and not the user's arrays.

What a memory holds must not outlive the user's references: an array in it shows in `live_arrays`, and what waits for
its end would wait forever.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._ext import _core
from pullback.core import extended
from pullback.core.jaxpr import ClosedJaxpr, Jaxpr


def by_value(closed: ClosedJaxpr) -> ClosedJaxpr | None:
    """The program with copies of its constants, itself if there are none; None where a copy would not be the same, as
    that of an array that lies on chosen devices."""
    try:
        return _program(closed)
    except _NotCopied:
        return None


class _NotCopied(Exception):
    """A constant that has more to it than its elements."""


def _program(closed: ClosedJaxpr) -> ClosedJaxpr:
    jaxpr = _open(closed.jaxpr)
    if jaxpr is closed.jaxpr and not closed.consts:
        return closed
    return ClosedJaxpr(jaxpr, list(map(_copied, closed.consts)))


def _open(jaxpr: Jaxpr) -> Jaxpr:
    eqns, changed = [], False
    for eqn in jaxpr.eqns:
        params = {k: _param(v) for k, v in eqn.params.items()}
        if any([params[k] is not v for k, v in eqn.params.items()]):
            eqn, changed = eqn.replace(params=params), True
        eqns.append(eqn)
    return jaxpr.replace(eqns=eqns) if changed else jaxpr


def _param(value: Any) -> Any:
    if isinstance(value, ClosedJaxpr):
        return _program(value)
    if isinstance(value, Jaxpr):
        return value if value.of_elements else _open(value)
    if type(value) in (tuple, list):
        items = [_param(v) for v in value]
        return type(value)(items) if any([a is not b for a, b in zip(items, value)]) else value
    return value


def _copied(value: Any) -> Any:
    words = getattr(value, "_base_array", None)
    if words is not None:
        return extended.holding(value.dtype, _array(words))
    if type(value) is _core.Array:
        return _array(value) if value.weak_type else _elements(value)
    return np.array(value) if isinstance(value, np.ndarray) else value


def _array(value: Any) -> Any:
    return _core.from_numpy(_elements(value), value.aval, None, True)


def _elements(value: Any) -> np.ndarray:
    if getattr(value, "_device", None) is not None:
        raise _NotCopied
    elements = np.array(value)
    elements.flags.writeable = False
    return elements


__all__ = ["by_value"]
