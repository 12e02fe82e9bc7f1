"""What in_shardings and out_shardings of `jit` say, in programs that users see.

    jit[jaxpr={ lambda ; a. let b = laid_out[in_shardings] a; ... in (d,) }]     programs as transformations have them
    jit[in_shardings=(...), jaxpr={ lambda ; a. let ... in (c,) }]               as they are shown

Constraints in the body need no rules of transformations. JAX's programs have parameters instead, and so has what
`make_jaxpr` gives; where such a program is run again, the constraints are put back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.core.atoms import Program
from pullback.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from pullback.core.primitive import registry
from pullback.sharding import NamedSharding, PartitionSpec
from pullback.sharding._current import mesh_in_force
from pullback.sharding._shardings import UNSPECIFIED

_NAME = "laid_out"
_used = False


def expect_places() -> None:
    """From now on programs may have such constraints."""
    global _used
    _used = True


def as_shown(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program without the constraints, which parameters of its calls say instead; its own are said by nothing."""
    return _shown(closed)[0] if _used else closed


Said = tuple[tuple[Any, ...], tuple[Any, ...]]  # the shardings of arguments and results, or UNSPECIFIED


def _shown(closed: ClosedJaxpr) -> tuple[ClosedJaxpr, Said]:
    def make() -> tuple[ClosedJaxpr, Said]:
        jaxpr, said = _shown_jaxpr(closed.jaxpr)
        return closed if jaxpr is closed.jaxpr else ClosedJaxpr(jaxpr, closed.consts), said

    return closed.cached("as shown", make)


def _shown_jaxpr(jaxpr: Jaxpr) -> tuple[Jaxpr, Said]:
    ins: list[Any] = [UNSPECIFIED] * len(jaxpr.invars)
    outs: list[Any] = [UNSPECIFIED] * len(jaxpr.outvars)
    same: dict[Any, Any] = {}  # results of constraints that are left out: their operands
    eqns, changed = [], False

    def read(atom: Any) -> Any:
        return atom if isinstance(atom, Literal) else same.get(atom, atom)

    for eqn in jaxpr.eqns:
        invars = list(map(read, eqn.invars))
        if eqn.primitive.name != _NAME:
            params = _shown_params(eqn)
            changed = changed or params is not eqn.params
            eqns.append(eqn.replace(invars=invars, params=params))
            continue
        (out,), (x,), changed = eqn.outvars, invars, True
        of_result = eqn.params["argument"] == "out_shardings"
        results = [k for k, v in enumerate(jaxpr.outvars) if v is out and of_result]
        for k in results:
            outs[k] = eqn.params["sharding"]
        place = next((k for k, v in enumerate(jaxpr.invars) if v is x and not of_result), None)
        if place is not None:
            ins[place] = eqn.params["sharding"]
        if results or place is not None:
            same[out] = x
        else:
            eqns.append(_as_constraint(eqn, x, out))
    said = tuple(ins), tuple(outs)
    if not changed:
        return jaxpr, said
    return jaxpr.replace(eqns=eqns, outvars=list(map(read, jaxpr.outvars))), said


def _as_constraint(eqn: JaxprEqn, x: Any, out: Any) -> JaxprEqn:
    sharding = eqn.params["sharding"]
    spec = getattr(sharding, "spec", ())
    params = {
        "sharding": sharding,
        "layout": None,
        "context_mesh": mesh_in_force(),
        "unconstrained_dims": frozenset(d for d, part in enumerate(spec) if part is PartitionSpec.UNCONSTRAINED),
    }
    return eqn.replace(primitive=registry["sharding_constraint"], invars=[x], outvars=[out], params=params)


def _shown_params(eqn: JaxprEqn) -> dict[str, Any]:
    found: dict[str, Any] = {}
    said = None
    for key, value in eqn.params.items():
        new, said = _shown_value(value, said)
        if new is not value:
            found[key] = new
    if not found:
        return eqn.params
    if eqn.primitive.name == "jit" and said is not None and "in_shardings" in eqn.params:
        found["in_shardings"], found["out_shardings"] = said
    return eqn.params | found


def _shown_value(value: Any, said: Any) -> tuple[Any, Any]:
    """A parameter as it is shown; and, of a closed program, what is said of its arguments and results, else `said`."""
    if isinstance(value, ClosedJaxpr):
        return _shown(value)
    if isinstance(value, Jaxpr):
        return _shown_jaxpr(value)[0], said
    if type(value) is tuple and value and isinstance(value[0], Program):
        new = tuple(_shown_value(v, None)[0] for v in value)
        return (new if any(a is not b for a, b in zip(new, value)) else value), said
    return value, said


def with_places(params: dict[str, Any]) -> dict[str, Any]:
    """The parameters of a call of `jit`, in whose program the constraints stand that they say."""
    ins, outs = params.get("in_shardings", ()), params.get("out_shardings", ())
    closed: ClosedJaxpr = params["jaxpr"]
    if not any(map(_may_be_said, (*ins, *outs))) or any(e.primitive.name == _NAME for e in closed.eqns):
        return params
    key = "with places", ins, outs
    return params | {"jaxpr": closed.cached(key, lambda: ClosedJaxpr(_placed(closed.jaxpr, ins, outs), closed.consts))}


def _may_be_said(sharding: Any) -> bool:
    """Whether a constraint may say it: along explicit axes types do."""
    if sharding is None or sharding is UNSPECIFIED:
        return False
    return not (isinstance(sharding, NamedSharding) and sharding.mesh.explicit_axes)


def _placed(jaxpr: Jaxpr, ins: Sequence[Any], outs: Sequence[Any]) -> Jaxpr:
    before, after = [], []
    laid: dict[Any, Any] = {}
    for v, sharding in zip(jaxpr.invars, ins, strict=True):
        if _may_be_said(sharding):
            laid[v] = Var(v.aval)
            before.append(_constraint(v, laid[v], sharding, "in_shardings"))

    def read(atom: Any) -> Any:
        return atom if isinstance(atom, Literal) else laid.get(atom, atom)

    eqns = [eqn.replace(invars=list(map(read, eqn.invars))) for eqn in jaxpr.eqns]
    results = []
    for atom, sharding in zip(map(read, jaxpr.outvars), outs, strict=True):
        results.append(atom)
        if _may_be_said(sharding):
            results[-1] = Var(atom.aval)
            after.append(_constraint(atom, results[-1], sharding, "out_shardings"))
    return jaxpr.replace(eqns=[*before, *eqns, *after], outvars=results)


def _constraint(x: Any, out: Var, sharding: Any, argument: str) -> JaxprEqn:
    return JaxprEqn([x], [out], registry[_NAME], {"sharding": sharding, "argument": argument})
