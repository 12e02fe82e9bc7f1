"""Replaces key arrays by the words they are made of: key<fry>[*K] becomes u32[*K, 2].

Wrapping and unwrapping disappear; movement of keys becomes movement of words with the last axis carried along. Needed
by lowering, which knows plain element types only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.compiler.graph.simplify.inner import dtypes_in, has_inner, map_inner
from pullback.core import extended, trace
from pullback.core.avals import ShapedArray, typed
from pullback.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from pullback.sharding import PartitionSpec


def replace_keys(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program on words, also inside of loops and branches; NotImplementedError names a primitive that computes with
    keys.
    """
    if all(isinstance(dtype, np.dtype) for dtype in dtypes_in(closed)):
        return closed
    jaxpr = closed.jaxpr
    env: dict[Var, Any] = {}

    def new(var: Var) -> Var:
        if not is_key(var.aval):
            return var
        found = env.get(var)
        if found is None:
            found = env[var] = Var(words_aval(var.aval))
        return found

    def read(atom: Any) -> Any:
        return atom if isinstance(atom, Literal) else env.get(atom, atom)

    constvars = [new(v) for v in jaxpr.constvars]
    invars = [new(v) for v in jaxpr.invars]
    eqns: list[JaxprEqn] = []
    for eqn in jaxpr.eqns:
        if eqn.primitive.name in ("random_wrap", "random_unwrap", "to_edtype", "from_edtype"):
            env[eqn.outvars[0]] = read(eqn.invars[0])
            continue
        avals = [a.aval for a in eqn.invars]
        eqn = map_inner(eqn, "keys", replace_keys)
        touched = any(map(is_key, avals)) or any(is_key(v.aval) for v in eqn.outvars)
        if touched and not has_inner(eqn) and not _are_elements(avals):
            rule = _same if extended.exchanges(eqn.primitive) else _RULES.get(eqn.primitive.name)
            if rule is None:
                _write_out(eqn, env, eqns)
                continue
            eqn = eqn.replace(params=rule(eqn))
        eqns.append(eqn.replace(invars=[read(a) for a in eqn.invars], outvars=[new(v) for v in eqn.outvars]))
    outvars = [read(a) for a in jaxpr.outvars]
    consts = [getattr(c, "_base_array", c) for c in closed.consts]
    return ClosedJaxpr(Jaxpr(constvars, invars, outvars, eqns, jaxpr.effects, jaxpr.debug_info), consts)


def _write_out(eqn: JaxprEqn, env: dict[Var, Any], eqns: list[JaxprEqn]) -> None:
    """Append the equations on words of one that moves or compares keys; NotImplementedError names one that does not."""
    avals = [a.aval for a in eqn.invars]
    try:
        extended.check(eqn.primitive, avals)
    except TypeError:
        raise NotImplementedError(
            f"jit: primitive '{eqn.primitive.name}' has no rule for key arrays; take their words with "
            "jax.random.key_data first"
        ) from None
    closed = trace(
        lambda *words: extended.on_words(eqn.primitive, avals, words, eqn.params),
        [words_aval(a) if is_key(a) else a for a in avals],
    )
    scope: dict[Var, Any] = {
        var: atom if isinstance(atom, Literal) else env.get(atom, atom)
        for var, atom in zip(closed.jaxpr.invars, eqn.invars)
    }
    scope |= {v: Literal(np.asarray(c)[()], v.aval) for v, c in zip(closed.jaxpr.constvars, closed.consts)}

    def read(atom: Any) -> Any:
        return atom if isinstance(atom, Literal) else scope.get(atom, atom)

    for inner in closed.jaxpr.eqns:
        eqns.append(inner.replace(invars=[read(a) for a in inner.invars], source_info=eqn.source))
    env.update(zip(eqn.outvars, map(read, closed.jaxpr.outvars)))


def is_key(aval: Any) -> bool:
    """Whether the elements are keys."""
    return not isinstance(aval.dtype, np.dtype)


def _are_elements(avals: Sequence[Any]) -> bool:
    """Whether each element has one word, so that an equation says the same of words."""
    return all(not a.dtype.base_shape for a in avals if is_key(a)) and any(map(is_key, avals))


def words_aval(aval: Any) -> ShapedArray:
    """The aval of the words of keys."""
    found = ShapedArray(aval.shape + tuple(aval.dtype.base_shape), aval.dtype.base)
    if not aval.is_typed:
        return found
    placing = aval.placing
    if placing is not None:
        placing = placing.update(spec=PartitionSpec(*placing.spec, None))
    return typed(found, placing, aval.vma)


def _words(eqn: JaxprEqn) -> int:
    aval = eqn.invars[-1].aval if is_key(eqn.invars[-1].aval) else eqn.invars[0].aval
    return int(aval.dtype.base_shape[0])


def _append(*names: str, value: Callable[[JaxprEqn, int], Any]) -> Callable[[JaxprEqn], dict[str, Any]]:
    def rule(eqn: JaxprEqn) -> dict[str, Any]:
        params = dict(eqn.params)
        for name in names:
            if params.get(name) is not None:
                params[name] = (*params[name], value(eqn, eqn.invars[0].aval.ndim))
        return params

    return rule


def _same(eqn: JaxprEqn) -> dict[str, Any]:
    return eqn.params


def _broadcast(eqn: JaxprEqn) -> dict[str, Any]:
    params, n = dict(eqn.params), _words(eqn)
    params["broadcast_dimensions"] = (*params["broadcast_dimensions"], len(params["shape"]))
    params["shape"] = (*params["shape"], n)
    return params


def _slice(eqn: JaxprEqn) -> dict[str, Any]:
    params, n = dict(eqn.params), _words(eqn)
    params["start_indices"] = (*params["start_indices"], 0)
    params["limit_indices"] = (*params["limit_indices"], n)
    if params.get("strides") is not None:
        params["strides"] = (*params["strides"], 1)
    return params


def _gather(eqn: JaxprEqn) -> dict[str, Any]:
    params, n = dict(eqn.params), _words(eqn)
    numbers = params["dimension_numbers"]
    params["dimension_numbers"] = numbers._replace(offset_dims=(*numbers.offset_dims, eqn.outvars[0].aval.ndim))
    params["slice_sizes"] = (*params["slice_sizes"], n)
    return params


_RULES: dict[str, Callable[[JaxprEqn], dict[str, Any]]] = {
    "reshape": _append("new_sizes", value=lambda eqn, ndim: _words(eqn)),
    "transpose": _append("permutation", value=lambda eqn, ndim: ndim),
    "broadcast_in_dim": _broadcast,
    "squeeze": _same,
    "slice": _slice,
    "concatenate": _same,
    "rev": _same,
    "copy": _same,
    "keep_apart": _same,
    "gather": _gather,
    **dict.fromkeys(["random_clone", "consume", "assert_consumed_value"], _same),
}
