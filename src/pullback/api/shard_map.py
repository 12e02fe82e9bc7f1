"""shard_map: a function of the parts of arrays that lie on the devices of a mesh.

Devices of one machine share its memory, so the function is vectorized over the axes of the mesh: an array's dimension
that is cut along an axis becomes two, the axis and what is left, and the function is mapped over the axis, whose
collectives are sums, gathers, ... over it. Every transformation of the whole is one of that vectorized program.

Why: what transforms the whole needs no rules of its own. With `check_vma` types say which values vary along the axes
(core/types.py), as in JAX, and reverse mode inside sums over the devices where a value is the same on all.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pullback import lax
from pullback._ext import _core
from pullback.api import _arguments as arguments
from pullback.core import Tracer, extend_axis_env, hooks
from pullback.core.staging import StagedTracer
from pullback.core.types import CheckedAxis, asked
from pullback.lax.collectives.sharding import is_concrete, put
from pullback.sharding import AbstractMesh, AxisType, DuplicateSpecError, Mesh, NamedSharding, PartitionSpec
from pullback.sharding._current import current_mesh, use_abstract_mesh
from pullback.transforms.batching import AxisData, BatchTracer, move_batch_axis, run_batched
from pullback.transforms.jvp import JVPTracer
from pullback.util.pytree import broadcast_prefix, tree_map, tree_unflatten
from pullback.util.tracebacks import api_boundary


def shard_map(
    f: Callable | None = None,
    /,
    *,
    out_specs: Any,
    in_specs: Any = None,
    mesh: Mesh | AbstractMesh | None = None,
    axis_names: Iterable[Any] = frozenset(),
    check_vma: bool = True,
) -> Callable:
    """`f` mapped over the devices of `mesh` (by default the one of `set_mesh`): each gets its parts of the arguments.

    in_specs, out_specs: a PartitionSpec, or a tree prefix of them, for the arguments and the result: along which mesh
    axes each dimension is cut, and put together; over mesh axes that are not named a value is the same on all devices.
    in_specs may be left out for arrays whose types say it: on a mesh of explicit axes, outside of jit.
    axis_names: the mesh axes meant, by default all. Inside, collectives (`lax.psum`, ...) act over them. With check_vma
    it is a ValueError if a result that depends on an axis is said to be the same along it; without, one part is taken.

    Inside, with check_vma, the derivative in a value that is the same on all devices is the sum over them. Raises
    ValueError for specs that do not fit the mesh or the arrays, TypeError for a loop whose carry varies along an axis
    only after a step.
    """
    if f is None:
        return functools.partial(
            shard_map, out_specs=out_specs, in_specs=in_specs, mesh=mesh, axis_names=axis_names, check_vma=check_vma
        )
    arguments.check_callable("shard_map", f)
    function, name = f, arguments.function_name(f)

    @api_boundary
    def wrapped(*args: Any) -> Any:
        used = mesh if mesh is not None else current_mesh()
        if used is None:
            raise ValueError(f"shard_map of {name}: argument 'mesh' was not given, and no mesh was set by set_mesh")
        specs = _found(name, args, used) if in_specs is None else in_specs
        return _run(function, name, args, used, specs, out_specs, frozenset(axis_names), check_vma)

    return _core.named_after(wrapped, function)


def _run(
    function: Callable, name: str, args: tuple, mesh: Any, in_specs: Any, out_specs: Any, chosen: frozenset, check: bool
) -> Any:
    if not isinstance(mesh, (Mesh, AbstractMesh)):
        raise TypeError(
            "shard_map requires a `jax.sharding.Mesh` or a `jax.sharding.AbstractMesh` instance for its argument "
            f"'mesh', but got {mesh!r} of type {type(mesh)}"
        )
    sizes = dict(mesh.shape)
    if not chosen <= set(sizes):
        raise ValueError(f"shard_map of {name}: axis_names {set(chosen)} are not all among the axes of {mesh}")
    axes = [axis for axis in mesh.axis_names if not chosen or axis in chosen]
    leaves, tree = arguments.checked_leaves("shard_map", "argument ", args)
    specs = _specs(f"shard_map of {name}: in_specs", in_specs, args, axes)
    _check_types(leaves, specs, mesh, axes, name)
    between = isinstance(mesh, Mesh) and mesh.is_multi_process
    if is_concrete(None) and not between:
        leaves = [_freed(leaf, mesh, name, i) for i, leaf in enumerate(leaves)]
    elif isinstance(mesh, Mesh) and not between:  # what is traced lies as the specs say, and so do its cotangents
        leaves = [
            put(x, NamedSharding(mesh, spec)) if len(spec) <= x.ndim else x
            for x, spec in zip(leaves, specs, strict=True)
        ]
    result: list[Any] = []
    manual = mesh.abstract_mesh.update_axis_types(dict.fromkeys(axes, AxisType.Manual))

    def body(*parts: Any) -> list[Any]:
        with use_abstract_mesh(manual):
            out = function(*tree_unflatten(tree, parts))
        outs, out_tree = arguments.flatten_result(out, function, "shard_map")
        outs = [y if hasattr(y, "aval") else hooks.asarray(y) for y in outs]
        said = out_specs.made() if hasattr(out_specs, "made") else out_specs
        result[:] = out_tree, _specs(f"shard_map of {name}: out_specs", said, out, axes)
        for y, spec in zip(outs, result[1], strict=True):
            if len(spec) > y.ndim:
                raise ValueError(f"shard_map of {name}: out_specs has {spec} for a result of shape {y.shape}")
        return outs

    if between:
        if len(axes) < len(mesh.axis_names):
            raise NotImplementedError(
                f"shard_map of {name}: axis_names on a mesh of several processes is not supported"
            )
        outs = hooks.map_between(body, leaves, mesh, specs, lambda: result[1], check, name)
        return tree_unflatten(result[0], outs)
    with asked(mesh), use_abstract_mesh(manual):  # the types of parts say nothing of axes that are manual
        values = [_cut(x, spec, sizes, axes, name, i) for i, (x, spec) in enumerate(zip(leaves, specs, strict=True))]

    def over(rest: Sequence[Any], inputs: Sequence[Any]) -> list[Any]:
        if not rest:
            return body(*inputs)
        axis = rest[0]
        dims = [0 if axis in _names(spec) else None for spec in specs]
        data = AxisData(axis, sizes[axis], checked=check)
        with extend_axis_env(CheckedAxis(axis) if check else None, sizes[axis]):
            outs, found = run_batched(lambda *parts: over(rest[1:], parts), data, inputs, dims)
        return [_collected(y, d, axis, spec, data.size, check, name) for y, d, spec in zip(outs, found, result[1])]

    outs = over(axes, values)
    with asked(mesh):
        joined = [_join(y, spec, axes) for y, spec in zip(outs, result[1], strict=True)]
    if isinstance(mesh, Mesh):
        joined = [put(y, NamedSharding(mesh, spec)) for y, spec in zip(joined, result[1], strict=True)]
    return tree_unflatten(result[0], joined)


def _spec_of(x: Any) -> PartitionSpec:
    """The spec that an argument's type has, or the place where it lies.

    Types are known to jit alone; what other transformations trace outside of it lies where their array lay.
    """
    if isinstance(x, Tracer) and x.aval.placing is not None:
        return x.aval.placing.spec
    if isinstance(x, BatchTracer):
        parts = list(_parts(_spec_of(x.value), x.value.ndim))
        return PartitionSpec(*[axes for d, axes in enumerate(parts) if d != x.dim])
    if isinstance(x, JVPTracer):
        return _spec_of(x.primal)
    place = None if isinstance(x, StagedTracer) else getattr(x, "sharding", None)
    return place.spec if isinstance(place, NamedSharding) else PartitionSpec()


def _check_types(
    leaves: Sequence[Any], specs: Sequence[PartitionSpec], mesh: Any, axes: Sequence[Any], name: str
) -> None:
    """ValueError for a spec that contradicts its argument's type, where all axes are explicit and become manual.

    An array that lies on no mesh has the type of one that is whole.
    """
    if len(axes) < len(mesh.axis_names) or any(kind is not AxisType.Explicit for kind in mesh.axis_types):
        return
    now = current_mesh()
    if now is not None and any(kind is not AxisType.Explicit for kind in now.axis_types):
        return  # inside of another, where types say nothing of axes that are manual
    for number, (x, spec) in enumerate(zip(leaves, specs, strict=True)):
        found = _spec_of(x)
        if len(spec) <= x.ndim and _parts(spec, x.ndim) != _parts(found, x.ndim):
            raise ValueError(
                f"shard_map of {name}: in_specs has {spec} for array {number}, an {x.aval.str_short()} that lies as "
                f"{found} along explicit axes. Leave in_specs out, so that types decide, or give the array the layout "
                "that is meant, by jax.sharding.reshard"
            )


def _found(name: str, args: tuple, mesh: Any) -> Any:
    """The specs of arguments whose types have them. ValueError for a mesh whose axes are not explicit."""
    if any(kind is not AxisType.Explicit for kind in mesh.axis_types):
        raise ValueError(
            f"shard_map of {name}: argument 'in_specs' may be left out for a mesh whose axes are all Explicit, but "
            f"they are {mesh.axis_types}"
        )

    return tree_map(_spec_of, args)


def _specs(what: str, specs: Any, tree: Any, axes: Sequence[Any]) -> list[PartitionSpec]:
    """A spec for each leaf of the tree."""
    given = broadcast_prefix(specs, tree, is_leaf=lambda s: s is None or isinstance(s, PartitionSpec))
    out = []
    for spec in given:
        if spec is None:
            spec = PartitionSpec()
        if not isinstance(spec, PartitionSpec):
            raise TypeError(f"{what} must be PartitionSpecs, got {spec!r}")
        named = _names(spec)
        if unknown := [n for n in named if n not in axes]:
            raise ValueError(f"{what}: {spec} names {unknown[0]!r}, which is not among the axes {tuple(axes)}")
        if len(set(named)) != len(named):
            raise DuplicateSpecError(f"{what}: {spec} names an axis twice")
        out.append(spec)
    return out


def _names(spec: PartitionSpec) -> list[Any]:
    return [n for part in spec if part is not None for n in (part if isinstance(part, tuple) else (part,))]


def _parts(spec: PartitionSpec, ndim: int) -> list[tuple[Any, ...]]:
    """The axes that each dimension is cut along."""
    parts = [() if p is None else p if isinstance(p, tuple) else (p,) for p in spec]
    return parts + [()] * (ndim - len(parts))


def _cut(x: Any, spec: PartitionSpec, sizes: dict, axes: Sequence[Any], name: str, number: int) -> Any:
    """x[*axes of the spec, in the order of the mesh, *parts]."""
    if len(spec) > x.ndim:
        raise ValueError(
            f"shard_map of {name}: in_specs has {spec} for array {number} of shape {x.shape}, which has only {x.ndim} "
            "dimensions"
        )
    shape: list[int] = []
    place: dict[Any, int] = {}
    inner: list[int] = []
    for d, names in enumerate(_parts(spec, x.ndim)):
        pieces = math.prod(sizes[n] for n in names)
        if x.shape[d] % pieces:
            raise ValueError(
                f"shard_map of {name}: array {number} has shape {x.shape}, whose dimension {d} is not evenly divisible "
                f"by {pieces}, the size of mesh axes {names}"
            )
        for n in names:
            place[n] = len(shape)
            shape.append(sizes[n])
        inner.append(len(shape))
        shape.append(x.shape[d] // pieces)
    if not place:
        return x
    return lax.transpose(lax.reshape(x, shape), [*[place[a] for a in axes if a in place], *inner])


def _collected(y: Any, dim: int | None, axis: Any, spec: PartitionSpec, size: int, check: bool, name: str) -> Any:
    """The result with the axis in front, or (not in the spec) without it."""
    if axis in _names(spec):
        return move_batch_axis(y, dim, 0, size)
    if dim is None:
        return y
    if check:
        raise ValueError(
            f"shard_map of {name}: out_specs says by {spec} that a result is the same along mesh axis {axis!r}, but it "
            f"depends on the device. Name {axis!r} in the spec, or combine the parts (lax.psum, ...); if they "
            "are known to be the same, pass check_vma=False"
        )
    return lax.index_in_dim(y, 0, dim, keepdims=False)


def _join(y: Any, spec: PartitionSpec, axes: Sequence[Any]) -> Any:
    """The whole array from y[*axes of the spec, in the order of the mesh, *parts]."""
    named = [a for a in axes if a in _names(spec)]
    if not named:
        return y
    order: list[int] = []
    shape: list[int] = []
    for d, names in enumerate(_parts(spec, y.ndim - len(named))):
        at = [named.index(n) for n in names]
        order += [*at, len(named) + d]
        shape.append(math.prod(y.shape[k] for k in at) * y.shape[len(named) + d])
    return lax.reshape(lax.transpose(y, order), shape)


def _freed(x: Any, mesh: Any, name: str, number: int) -> Any:
    """An argument that is committed to no device, so that what is computed with it is not, either."""
    place = getattr(x, "_device", None)
    if place is None or not isinstance(mesh, Mesh):
        return x
    if set(x.sharding.device_set) != set(mesh.devices.flat):
        here, there = (sorted(d.id for d in devices) for devices in (x.sharding.device_set, mesh.devices.flat))
        raise ValueError(
            f"Received incompatible devices for jitted computation. Got argument {number} of {name} with shape "
            f"{x.aval.str_short()} and with device ids {here} on platform CPU and shard_map's mesh with device ids "
            f"{there} on platform CPU"
        )
    return _core.with_aval(x, x.aval)
