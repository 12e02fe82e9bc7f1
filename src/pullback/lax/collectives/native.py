"""Collective operations of the program that one device runs, on its own part of the values.

    all_reduce      x[...]        -> [...]      the sum (or product, extreme, ...) of the group's operands
    all_gather      x[...]        -> [k, ...]   the operands of all members
    reduce_scatter  x[k, ...]     -> [...]      row m of the sum, for member number m
    all_to_all      x[k, ...]     -> [k, ...]   row j is what member j had in row m
    broadcast       x[...]        -> [...]      the operand of member `root`
    permute         x[...]        -> [...]      the operand of the device that sends to this one, else zeros

`groups`: which devices work together, in which order, by their numbers in the mesh (row by row); each device is in one.
`site`: the number of the operation in its program. All devices come to the same sites in the same order. What is done
is in ext/collectives, which needs no Python: between threads of a process, and over MPI between processes.

A program that has them runs by `Program.on_devices(..., communication=...)`; `sites_of` is what that needs to know.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from pullback.core.jaxpr import ClosedJaxpr, Jaxpr, jaxprs_in_params
from pullback.lax.records.compiler_made import device_primitive
from pullback.lax.records.families import *
from pullback.util import dtypes

__all__ = ["COMBINATIONS", "NATIVE", "collective", "numbered", "sites_of"]

# The order of both is that of ext/collectives/reduce.h.
COMBINATIONS = ("sum", "prod", "max", "min", "and", "or", "xor")
_ELEMENTS = (
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("bfloat16", "float32", "float64", "complex64", "complex128"),
)


def _emit(ctx):
    ctx.call("pb_collective", ctx.b.index(ctx.params["site"]), ctx.address(ctx.operand(0)), ctx.address(ctx.result()))


def _same(aval, **params):
    return ShapedArray(aval.shape, aval.dtype, aval.weak_type)


def _gathered(aval, *, groups, **params):
    return ShapedArray((len(groups[0]), *aval.shape), aval.dtype, aval.weak_type)


def _row(aval, *, groups, **params):
    if not aval.shape or aval.shape[0] != len(groups[0]):
        raise TypeError(f"a row for each of {len(groups[0])} members is needed, got {aval.short()}")
    return ShapedArray(aval.shape[1:], aval.dtype, aval.weak_type)


def _rows(aval, *, groups, **params):
    _row(aval, groups=groups)
    return _same(aval)


# The order is that of ext/collectives/collectives.h.
NATIVE = {
    "all_reduce": device_primitive("device_all_reduce", "The operands of a group, combined.", _same, _emit),
    "all_gather": device_primitive("device_all_gather", "The operands of a group.", _gathered, _emit),
    "reduce_scatter": device_primitive(
        "device_reduce_scatter", "Each member's row of the combined operands.", _row, _emit
    ),
    "all_to_all": device_primitive("device_all_to_all", "What each member has for this one.", _rows, _emit),
    "broadcast": device_primitive("device_broadcast", "The operand of one member.", _same, _emit),
    "permute": device_primitive("device_permute", "The operand of another device.", _same, _emit),
}
_KINDS = list(NATIVE)
_PARTS = ("reduce_scatter", "all_to_all")  # operands with a row for each member


def collective(
    kind: str,
    x: Any,
    groups: Sequence[Sequence[int]] = (),
    *,
    combine: str = "sum",
    pairs: Sequence[tuple[int, int]] = (),
    root: int = 0,
) -> Any:
    """One of the operations on a traced value; `site` is set by `numbered` when the program is whole.

    Raises NotImplementedError for elements that cannot be combined so.
    """
    params: dict[str, Any] = {"groups": tuple(map(tuple, groups)), "site": -1}
    if kind in ("all_reduce", "reduce_scatter"):
        wide = _combined_as(x.dtype, combine)
        if wide != x.dtype:  # sums of narrow floats are rounded once
            return lax.convert_element_type(
                collective(kind, lax.convert_element_type(x, wide), groups, combine=combine), x.dtype
            )
        params["combine"] = combine
    elif kind == "permute":
        params["pairs"] = tuple(map(tuple, pairs))
    elif kind == "broadcast":
        params["root"] = root
    return NATIVE[kind].bind(x, **params)


def _combined_as(dtype: Any, combine: str) -> Any:
    """The dtype that is combined natively, in place of others."""
    if dtype == np.bool_:
        return np.dtype(np.bool_) if combine in ("max", "min", "and", "or", "xor") else np.dtype(np.int32)
    if dtype.name not in _ELEMENTS:
        if dtypes.issubdtype(dtype, np.floating):
            return np.dtype(np.float32)
        if dtypes.issubdtype(dtype, np.integer):  # of less than 8 bits
            return np.dtype(np.int8 if dtypes.issubdtype(dtype, np.signedinteger) else np.uint8)
        raise NotImplementedError(f"a collective {combine} of {dtype} values is not supported")
    if combine in ("and", "or", "xor") and not dtypes.issubdtype(dtype, np.integer):
        raise NotImplementedError(f"a collective {combine} of {dtype} values is not supported; they must be integers")
    if combine in ("max", "min") and dtypes.issubdtype(dtype, np.complexfloating):
        raise NotImplementedError(f"a collective {combine} of {dtype} values is not supported: they have no order")
    return dtype


def numbered(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program with its collective operations numbered, in the order of its text."""
    count = iter(range(1 << 30))
    of_kind = set(NATIVE.values())

    def number(jaxpr: Jaxpr) -> Jaxpr:
        eqns = []
        for eqn in jaxpr.eqns:
            if eqn.primitive in of_kind:
                eqn = eqn.replace(params={**eqn.params, "site": next(count)})
            elif jaxprs_in_params(eqn.params):
                eqn = eqn.replace(params={k: inner(v) for k, v in eqn.params.items()})
            eqns.append(eqn)
        return jaxpr.replace(eqns=eqns)

    def inner(value: Any) -> Any:
        if isinstance(value, ClosedJaxpr):
            return ClosedJaxpr(number(value.jaxpr), value.consts)
        if isinstance(value, Jaxpr):
            return number(value)
        if isinstance(value, (tuple, list)):
            return type(value)(inner(v) for v in value)
        return value

    return ClosedJaxpr(number(closed.jaxpr), closed.consts)


def _operations(jaxpr: Jaxpr) -> Iterator[Any]:
    for eqn in jaxpr.eqns:
        if eqn.primitive in NATIVE.values():
            yield eqn
        for inside in jaxprs_in_params(eqn.params):
            yield from _operations(inside)


def sites_of(closed: ClosedJaxpr, name: str) -> tuple[tuple[Any, ...], ...]:
    """What `_core.communication` is told of each numbered operation; `name` is that of the program."""
    names = {record: kind for kind, record in NATIVE.items()}
    found = {}
    for eqn in _operations(closed.jaxpr):
        kind, aval, params = names[eqn.primitive], eqn.invars[0].aval, eqn.params
        combine, element = -1, aval.dtype.itemsize
        if "combine" in params:
            combine = COMBINATIONS.index(params["combine"])
            element = _ELEMENTS.index("uint8" if aval.dtype == np.bool_ else aval.dtype.name)
        count = math.prod(aval.shape[1:] if kind in _PARTS else aval.shape)
        text = f"{kind} {params['site']} ({aval.short()}) of {name}"
        found[params["site"]] = (
            *(_KINDS.index(kind), combine, element, count, params["groups"]),
            *(params.get("pairs", ()), params.get("root", 0), text),
        )
    return tuple(found[k] for k in sorted(found))
