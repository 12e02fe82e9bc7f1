"""Collectives as HLO, in one device's program of a mesh: who takes part follows from the sizes of its axes, in the
order of the devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.compiler.hlo.rules import custom, fold, rule, write
from pullback.compiler.hlo.text import Computation, braces
from pullback.core.avals import ShapedArray
from pullback.core.jaxpr import JaxprEqn

_FOLDS = {"psum": "add", "pmax": "maximum", "pmin": "minimum"}


def _groups(c: Computation, eqn: JaxprEqn) -> list[list[int]] | None:
    """The devices that take part together; None where the mesh is not known, or groups are named otherwise."""
    mesh, axes = c.module.mesh, eqn.primitive.collective_axes
    names = tuple(axes(eqn.params)) if axes is not None else ()
    if not names or eqn.params.get("axis_index_groups") is not None or any(n not in mesh for n in names):
        return None
    devices = np.arange(np.prod([*mesh.values()], dtype=int)).reshape([*mesh.values()])
    order = [*mesh]
    last = np.moveaxis(devices, [order.index(n) for n in names], range(-len(names), 0))
    return last.reshape(-1, np.prod(last.shape[devices.ndim - len(names) :], dtype=int)).tolist()


def _said(groups: Sequence[Sequence[int]]) -> str:
    return braces("replica_groups", ["{" + ",".join(map(str, group)) + "}" for group in groups])


@rule("psum", "pmax", "pmin")
def _reduced(c: Computation, eqn: JaxprEqn, operands: list[str], avals: list[Any]) -> list[str]:
    if (groups := _groups(c, eqn)) is None:
        return custom(c, eqn, operands, avals)
    name = eqn.primitive.name
    outs = []
    for x, aval in zip(operands, avals, strict=True):
        region = fold(c, name, _FOLDS[name], aval.dtype)
        outs.append(c.emit("all-reduce", aval, "all-reduce", [x], _said(groups), f"to_apply={region}"))
    return outs


@rule("all_gather", "reduce_scatter", "all_to_all")
def _moved(c: Computation, eqn: JaxprEqn, operands: list[str], avals: list[Any]) -> list[str]:
    groups = _groups(c, eqn)
    if groups is None or not eqn.params["tiled"]:
        return custom(c, eqn, operands, avals)
    name, p, said = eqn.primitive.name, eqn.params, [_said(groups)]
    if name == "all_to_all":  # parts that come are put one after another
        return [_exchanged(c, eqn, operands[0], avals[0], groups)]
    if name == "reduce_scatter":
        said.append(f"to_apply={fold(c, name, 'add', avals[0].dtype)}")
    axis = p["all_gather_dimension"] if name == "all_gather" else p["scatter_dimension"]
    operation = name.replace("_", "-")
    return [c.emit(operation, avals[0], operation, operands, *said, f"dimensions={{{axis}}}")]


def _exchanged(c: Computation, eqn: JaxprEqn, x: str, aval: Any, groups: Sequence[Sequence[int]]) -> str:
    """An all-to-all in HLO's form: of as many operands as there are devices in a group, with a tuple of results."""
    p, given, n = eqn.params, eqn.invars[0].aval, len(groups[0])
    size = given.shape[p["split_axis"]] // n
    part = ShapedArray([size if k == p["split_axis"] else m for k, m in enumerate(given.shape)], given.dtype)
    parts = []
    for i in range(n):
        places = [
            f"[{i * size}:{(i + 1) * size}]" if k == p["split_axis"] else f"[0:{m}]" for k, m in enumerate(given.shape)
        ]
        parts.append(c.emit("slice", part, "slice", [x], f"slice={{{', '.join(places)}}}"))
    whole = c.emit("all-to-all", [part] * n, "all-to-all", parts, _said(groups))
    return c.emit(
        "concatenate", aval, "concatenate", c.elements(whole, [part] * n), f"dimensions={{{p['concat_axis']}}}"
    )


@rule("ppermute")
def _permuted(c: Computation, eqn: JaxprEqn, operands: list[str], avals: list[Any]) -> list[str]:
    if (groups := _groups(c, eqn)) is None:
        return custom(c, eqn, operands, avals)
    pairs = [f"{{{group[a]},{group[b]}}}" for group in groups for a, b in eqn.params["perm"]]
    name = "collective-permute"
    return [c.emit(name, v, name, [x], braces("source_target_pairs", pairs)) for x, v in zip(operands, avals)]


__all__ = ["write"]  # with the rules of collectives
