"""A function of one device's parts as one of whole arrays: what shard_map is over the devices of one process.

They share its memory, so the function is vectorized over the axes of the mesh: an array's dimension that is cut along
an axis becomes two, the axis and what is left, and the function is mapped over the axis, whose collectives are sums,
gathers, ... over it. Results lie as their specs say.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from pullback._ext import _core
from pullback.core import ClosedJaxpr, ShapedArray, eval_jaxpr, trace
from pullback.core.asked import asked
from pullback.core.types import place_of_type, type_on_mesh, untyped
from pullback.lax.collectives.sharding import put
from pullback.lax.records.families import *
from pullback.sharding import AxisType, Mesh, NamedSharding, PartitionSpec
from pullback.sharding._current import use_abstract_mesh
from pullback.sharding._specs import all_names_of, parts_of
from pullback.transforms import batching
from pullback.transforms.batching import AxisData, run_batched

__all__: list[str] = []


def vectorized_jaxpr(params: dict[str, Any]) -> ClosedJaxpr | None:
    """The vectorized program; None over the devices of several processes, which have no memory in common."""
    mesh, closed = params["mesh"], params["jaxpr"]
    if isinstance(mesh, Mesh) and mesh.is_multi_process:
        return None
    sizes = dict(mesh.shape)

    def make() -> ClosedJaxpr:
        avals = []
        for part, spec in zip(closed.in_avals, params["in_specs"], strict=True):
            counts = [math.prod(sizes[n] for n in names) for names in parts_of(spec, part.ndim)]
            avals.append(ShapedArray(tuple(n * c for n, c in zip(part.shape, counts)), part.dtype, part.weak_type))
        return untyped(trace(vectorized(params), avals, closed.jaxpr.debug_info))

    key = ("vectorized", mesh, params["in_specs"], params["out_specs"], params["newly_manual_axes"])
    return closed.cached(key, make)


def vectorized(params: dict[str, Any], eager: bool = False) -> Callable[..., list[Any]]:
    """The function of whole arrays; `eager`: they are concrete, and lie where they do."""
    closed, mesh = _on_each(untyped(params["jaxpr"])), params["mesh"]
    in_specs, out_specs, sizes = params["in_specs"], params["out_specs"], dict(mesh.shape)
    axes = [axis for axis in mesh.axis_names if axis in params["newly_manual_axes"]]

    def over(rest: Sequence[Any], inputs: Sequence[Any]) -> list[Any]:
        if not rest:
            return eval_jaxpr(closed.jaxpr, closed.consts, *inputs)
        data = AxisData(rest[0], sizes[rest[0]])
        dims = [0 if data.name in all_names_of(spec) else None for spec in in_specs]
        outs, found = run_batched(lambda *parts: over(rest[1:], parts), data, inputs, dims)
        return [_collected(y, d, data, spec) for y, d, spec in zip(outs, found, out_specs, strict=True)]

    def lying(xs: Sequence[Any], specs: Sequence[PartitionSpec]) -> list[Any]:
        if not isinstance(mesh, Mesh):
            return list(xs)
        return [put(x, NamedSharding(mesh, _open(s, x, axes, mesh))) for x, s in zip(xs, specs, strict=True)]

    results = out_specs
    if eager:  # along explicit axes that are not manual results lie as their types say
        results = tuple(map(_with_types, out_specs, params["jaxpr"].out_avals))
    manual = mesh.abstract_mesh.update_axis_types(dict.fromkeys(axes, AxisType.Manual))

    def run(*args: Any) -> list[Any]:
        with asked(mesh):
            given = [_freed(x) for x in args] if eager else lying(args, in_specs)
            with use_abstract_mesh(manual):  # the types of parts say nothing of axes that are manual
                outs = over(axes, [_cut(x, spec, sizes, axes) for x, spec in zip(given, in_specs, strict=True)])
                joined = [_join(y, spec, axes) for y, spec in zip(outs, out_specs, strict=True)]
            return lying(joined, results)

    return run


def _on_each(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program, whose callbacks that do not say what batching does are called once for each device."""

    def made() -> ClosedJaxpr:
        eqns = []
        for eqn in closed.eqns:
            params = {k: _on_each(v) if isinstance(v, ClosedJaxpr) else v for k, v in eqn.params.items()}
            if params.get("vmap_method", params) is None:
                params["vmap_method"] = "sequential"
            eqns.append(eqn.replace(params=params))
        return closed.replace(jaxpr=closed.jaxpr.replace(eqns=eqns))

    return closed.cached("callbacks on each device", made)


def _open(spec: PartitionSpec, x: Any, axes: Sequence[Any], mesh: Mesh) -> PartitionSpec:
    """The spec, which says nothing of dimensions that it does not cut, where other axes of the mesh may; if none of
    these is Auto, as the type of x says.
    """
    if len(axes) == len(mesh.axis_names):
        return spec
    rest: list[Any] = [PartitionSpec.UNCONSTRAINED] * x.ndim
    if AxisType.Auto not in mesh.axis_types:
        typed = place_of_type(type_on_mesh(x)) or PartitionSpec(*[None] * x.ndim)
        kept = [tuple(n for n in names if n not in axes) for names in parts_of(typed, x.ndim)]
        rest = [names[0] if len(names) == 1 else names or None for names in kept]
    parts = [*spec, *[None] * (x.ndim - len(spec))]
    return PartitionSpec(*[r if p is None else p for p, r in zip(parts, rest, strict=True)])


def _with_types(spec: PartitionSpec, part: Any) -> PartitionSpec:
    """The spec of a whole result, cut also as the type of one device's part says."""
    if part.placing is None:
        return spec
    inner = parts_of(part.placing.spec, part.ndim)
    parts = [(*along, *rest) or None for along, rest in zip(parts_of(spec, part.ndim), inner, strict=True)]
    return spec.update(partitions=tuple(p[0] if p and len(p) == 1 else p for p in parts))


def _freed(x: Any) -> Any:
    """An array that is committed to no device, so that what is computed with it is not, either."""
    return x if getattr(x, "_device", None) is None else _core.with_aval(x, x._aval)


def _cut(x: Any, spec: PartitionSpec, sizes: dict, axes: Sequence[Any]) -> Any:
    """x[*axes of the spec, in the order of the mesh, *parts]."""
    shape: list[int] = []
    place: dict[Any, int] = {}
    inner: list[int] = []
    for d, names in enumerate(parts_of(spec, x.ndim)):
        for n in names:
            place[n] = len(shape)
            shape.append(sizes[n])
        inner.append(len(shape))
        shape.append(x.shape[d] // math.prod(sizes[n] for n in names))
    if not place:
        return x
    return lax.transpose(lax.reshape(x, shape), [*[place[a] for a in axes if a in place], *inner])


def _collected(y: Any, dim: int | None, axis: AxisData, spec: PartitionSpec) -> Any:
    """The result with the axis in front, or (not in the spec) without it."""
    if axis.name in all_names_of(spec):
        return batching.move_batch_axis(y, dim, 0, axis.size)
    return y if dim is None else lax.index_in_dim(y, 0, dim, keepdims=False)


def _join(y: Any, spec: PartitionSpec, axes: Sequence[Any]) -> Any:
    """The whole array from y[*axes of the spec, in the order of the mesh, *parts]."""
    named = [a for a in axes if a in all_names_of(spec)]
    if not named:
        return y
    order: list[int] = []
    shape: list[int] = []
    for d, names in enumerate(parts_of(spec, y.ndim - len(named))):
        at = [named.index(n) for n in names]
        order += [*at, len(named) + d]
        shape.append(math.prod(y.shape[k] for k in at) * y.shape[len(named) + d])
    return lax.reshape(lax.transpose(y, order), shape)
