"""Jaxprs as text, in JAX's format.

    { lambda ; a:f32[3]. let b:f32[3] = sin a; c:f32[3] = mul b 2.0:f32[] in (c,) }
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.core.jaxpr import ClosedJaxpr, DropVar, Jaxpr, JaxprEqn, Literal, Var


class _Names:
    """Short names a, b, ..., z, ba, bb, ... in order of appearance."""

    def __init__(self):
        self.known: dict[Var, str] = {}

    def __call__(self, var: Var) -> str:
        if isinstance(var, DropVar):
            return "_"
        name = self.known.get(var)
        if name is None:
            n, name = len(self.known), ""
            while True:
                n, digit = divmod(n, 26)
                name = chr(97 + digit) + name
                if n == 0:
                    break
            self.known[var] = name
        return name


def jaxpr_text(jaxpr: Jaxpr, names: _Names | None = None, indent: int = 0) -> str:
    """The whole jaxpr as text."""
    names = names or _Names()
    pad = "  " * indent
    head = f"{{ lambda {_binders(jaxpr.constvars, names)}; {_binders(jaxpr.invars, names)}. let"
    lines = [_eqn_text(eqn, names, indent + 2) for eqn in jaxpr.eqns]
    outs = [_atom(v, names) for v in jaxpr.outvars]
    tail = f"in ({', '.join(outs)}{',' if len(outs) == 1 else ''}) }}"
    if not lines:
        return f"{head} {tail}"
    return "\n".join([head, *(f"{pad}    {line}" for line in lines), f"{pad}  {tail}"])


def eqn_text(eqn: JaxprEqn) -> str:
    """One equation as text."""
    return _eqn_text(eqn, _Names(), 1)


def _binders(variables, names) -> str:
    return " ".join(f"{names(v)}:{v.aval.str_short()}" for v in variables)


def _atom(atom, names) -> str:
    if isinstance(atom, Literal):
        return repr(atom)
    return names(atom)


def _eqn_text(eqn: JaxprEqn, names: _Names, indent: int) -> str:
    ins = " ".join(_atom(v, names) for v in eqn.invars)
    left = " ".join(f"{names(v)}:{v.aval.str_short()}" if not isinstance(v, DropVar) else "_" for v in eqn.outvars)
    params = _params_text(eqn.params, names, indent)
    return f"{left} = {eqn.primitive.name}{params}{' ' + ins if ins else ''}"


def _params_text(params: dict[str, Any], names, indent: int) -> str:
    if not params:
        return ""
    items = [(k, _param_value(v, indent)) for k, v in sorted(params.items())]
    if all("\n" not in v for _, v in items) and sum(len(k) + len(v) + 2 for k, v in items) < 70:
        return f"[{', '.join(f'{k}={v}' for k, v in items)}]"
    pad = "  " * (indent + 1)
    return "[\n" + "\n".join(f"{pad}  {k}={v}" for k, v in items) + f"\n{pad}]"


def _param_value(value: Any, indent: int) -> str:
    if isinstance(value, ClosedJaxpr):
        return jaxpr_text(value.jaxpr, None, indent + 1)
    if isinstance(value, Jaxpr):
        return jaxpr_text(value, None, indent + 1)
    if isinstance(value, tuple) and value and all(isinstance(v, (ClosedJaxpr, Jaxpr)) for v in value):
        return "(" + ", ".join(_param_value(v, indent) for v in value) + ",)"
    if isinstance(value, np.dtype):
        return value.name
    if callable(value) and hasattr(value, "__name__"):
        return value.__name__
    return str(value)
