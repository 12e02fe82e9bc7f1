"""shard_map: a function of the parts of arrays that lie on the devices of a mesh.

The function is traced for one device; its jaxpr stands in an equation, whose rules are in lax/collectives/mapped.py.
With `check_vma` types say which values vary along the axes (core/types.py), as in JAX, and reverse mode inside sums
over the devices where a value is the same on all.
"""

from __future__ import annotations

import contextvars
import functools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from pullback import lax
from pullback._ext import _core
from pullback.api import _arguments as arguments
from pullback.api.jit import jit
from pullback.core import (
    DebugInfo,
    Tracer,
    current_interpreter,
    eval_interpreter,
    eval_jaxpr,
    hoist_tracers,
    hooks,
    trace,
    typeof,
    using,
)
from pullback.core.avals import is_array_like
from pullback.core.references import Entrance, has_references_among
from pullback.core.staging import JitTracer, RecordingInterpreter
from pullback.core.types import type_on_mesh, vma_of
from pullback.lax.collectives.mapped import axes_of, inside, part_type, shard_map_p
from pullback.lax.collectives.sharding import is_concrete, out_placed
from pullback.lax.collectives.states import entered, left, to_varying
from pullback.manual import add_pages
from pullback.manual.pullback.late import PAGES
from pullback.sharding import AbstractMesh, AxisType, DuplicateSpecError, Mesh, NamedSharding, PartitionSpec
from pullback.sharding._current import current_mesh, get_abstract_mesh
from pullback.sharding._specs import all_names_of, names_of, parts_of, state_of
from pullback.transforms.batching import BatchTracer
from pullback.transforms.discharge import reading
from pullback.transforms.jvp import JVPTracer
from pullback.util import config
from pullback.util.pytree import (
    broadcast_prefix,
    keystr,
    tree_flatten,
    tree_flatten_with_path,
    tree_leaves,
    tree_map,
    tree_unflatten,
)
from pullback.util.tracebacks import api_boundary


class _ByTypes:
    """Stands for specs that were not given."""

    def __repr__(self) -> str:
        return "by types"


BY_TYPES = _ByTypes()


def shard_map(
    f: Callable | None = None,
    /,
    *,
    out_specs: Any,
    in_specs: Any = BY_TYPES,
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
    if not isinstance(axis_names, (set, frozenset)):
        raise TypeError(
            f"shard_map: argument 'axis_names' must be a set or frozenset of names, got {axis_names!r} of type "
            f"{type(axis_names)}"
        )
    function, name = f, arguments.function_name(f)

    @api_boundary
    def wrapped(*args: Any) -> Any:
        used = mesh if mesh is not None else current_mesh()
        _check_mesh(mesh, name)
        if used is None:
            raise ValueError(
                f"shard_map of {name}: argument 'mesh' was not given, and no mesh is in force; give one, or call it "
                "inside of `with jax.set_mesh(mesh):`"
            )
        given, tree = tree_flatten(args)
        with_references = has_references_among(given)
        plain = tree_unflatten(tree, Entrance(given).values) if with_references else args
        specs = _found(name, plain, used, frozenset(axis_names)) if in_specs is BY_TYPES else in_specs
        if with_references:
            return _with_references(
                function, name, given, tree, used, specs, out_specs, frozenset(axis_names), check_vma
            )
        return _run(function, name, args, used, specs, out_specs, frozenset(axis_names), check_vma)

    return _core.named_after(wrapped, function)


def _with_references(
    function: Callable, name: str, given: list, tree: Any, mesh: Any, in_specs: Any, out_specs: Any, chosen: frozenset,
    check: bool,
) -> Any:  # fmt: skip
    """The result where references are among the arguments: they enter by their parts, and are put together after it."""
    if hasattr(out_specs, "made"):
        raise NotImplementedError(f"smap of {name}: an argument is a Ref; pass its value, or use shard_map")
    references = Entrance(given)
    arguments_tree = tree_unflatten(tree, references.values)
    specs = [
        PartitionSpec() if spec is None else spec
        for spec in broadcast_prefix(in_specs, arguments_tree, is_leaf=_is_spec)
    ]
    through = references.through(lambda *leaves: function(*tree_unflatten(tree, leaves)))
    after_specs = [specs[n] for n in references.cells]
    out, after = _run(
        through, name, tuple(references.values), mesh, tuple(specs), (out_specs, after_specs), chosen, check
    )
    references.leave(after)
    return out


def _run(
    function: Callable, name: str, args: tuple, mesh: Any, in_specs: Any, out_specs: Any, chosen: frozenset, check: bool
) -> Any:
    _check_axes(mesh, chosen, name)
    manual = chosen or frozenset(mesh.axis_names)
    axes = axes_of(mesh, manual)
    function, args, in_specs = _without_objects(function, args, in_specs)
    paths = functools.partial(arguments.leaf_paths, function, args, {})
    leaves, tree = arguments.checked_leaves("shard_map", "argument ", args, paths)
    specs = _specs("shard_map in_specs", in_specs, args, axes)
    if not hasattr(out_specs, "made"):
        for spec in tree_leaves(out_specs, is_leaf=_is_spec):  # before the function runs
            _checked_spec("shard_map out_specs", spec, axes)
    _check_types(leaves, specs, mesh, axes, name)
    _check_shapes(leaves, specs, mesh, name, lambda: _passed(function, args))
    if isinstance(mesh, Mesh):
        for number, x in enumerate(() if mesh.is_multi_process else leaves):
            _check_devices(x, mesh, name, number)
    elif is_concrete(None) and not any(isinstance(x, Tracer) for x in leaves):
        mesh = _mesh_of(leaves, mesh)
    result: list[Any] = []
    outside = (contextvars.copy_context(), current_mesh()) if _runs_at_once(mesh, manual, leaves) else None

    said_ins = specs
    specs = [_without_state(spec) for spec in specs]
    leaves = [_in_state(x) for x in leaves]

    def shown(tracer: Any) -> str | None:
        """What a value is on each device, where the function is not compiled with others: for print()."""
        program = tracer.interpreter.program_of(tracer.jaxpr_var)
        if program is None or outside is None:
            return None
        context, in_force = outside  # those of the call, in which nothing is traced
        return context.copy().run(_on_devices, program, leaves, specs, mesh, in_force, check)

    def body(*parts: Any) -> list[Any]:
        if outside is not None:
            staging = current_interpreter()
            assert isinstance(staging, RecordingInterpreter)
            staging.shown = shown
        parts = tuple(entered(x, spec) for x, spec in zip(parts, said_ins, strict=True))
        out = function(*tree_unflatten(tree, parts))
        outs, out_tree = arguments.flatten_result(out, function, "shard_map")
        said = out_specs.made() if hasattr(out_specs, "made") else out_specs
        found = _specs("shard_map out_specs", said, out, axes)
        result[:] = out_tree, found
        return _given_back(out, outs, found, mesh, check, name)

    types = [part_type(type_on_mesh(x), spec, mesh, manual, check) for x, spec in zip(leaves, specs, strict=True)]
    with inside(mesh, manual, check):
        closed, consts = hoist_tracers(trace(body, types, DebugInfo("shard_map", name)))
        closed, consts = reading("shard_map", closed, consts)
    out_tree, said_outs = result
    given_back = [_of_terms(spec, mesh) for spec in said_outs]
    if check:
        _check_results(closed.out_avals, given_back, axes, name)
    outs = shard_map_p.bind(
        *consts,
        *leaves,
        check_vma=check,
        in_specs=(*[PartitionSpec()] * len(consts), *specs),
        jaxpr=closed,
        mesh=mesh,
        newly_manual_axes=manual,
        out_specs=tuple(given_back),
    )
    outs = [
        _in_state_of(y, mesh, spec) if spec.unreduced or spec.reduced else y
        for y, spec in zip(outs, said_outs, strict=True)
    ]
    return tree_unflatten(out_tree, outs)


def _check_axes(mesh: Any, chosen: frozenset, name: str) -> None:
    if not isinstance(mesh, (Mesh, AbstractMesh)):
        raise TypeError(
            f"shard_map of {name}: argument 'mesh' must be a Mesh or an AbstractMesh, got {mesh!r} of type {type(mesh)}"
        )
    if not chosen <= set(mesh.axis_names):
        raise ValueError(
            f"shard_map of {name}: axis_names={chosen} has {sorted(map(str, chosen.difference(mesh.axis_names)))}, but "
            f"the axes of the mesh are {mesh.axis_names}"
        )


def _given_back(
    out: Any, leaves: Sequence[Any], specs: Sequence[PartitionSpec], mesh: Any, check: bool, name: str
) -> list[Any]:
    """The leaves of a function's result as the equation gives them: with a dimension for each axis of terms."""
    ys = [y if hasattr(y, "aval") else hooks.asarray(y) for y in leaves]
    for (path, _), y, spec in zip(tree_flatten_with_path(out)[0], ys, specs, strict=True):
        if len(spec) > y.ndim:
            raise ValueError(
                f"shard_map of {name}: {spec} in out_specs is for {len(spec)} dimensions, and the result{keystr(path)} "
                f"is {typeof(y).untyped.str_short()}, of {y.ndim}"
            )
    _check_states(ys, specs, mesh, check, name)
    ys = [left(y, spec, _terms(spec, mesh)) for y, spec in zip(ys, specs, strict=True)]
    if not check:
        return ys
    # A result that is the same along an axis of its spec is there once for each device.
    return [
        to_varying(y, tuple(axes_of(mesh, frozenset(all_names_of(_of_terms(spec, mesh))))))
        for y, spec in zip(ys, specs, strict=True)
    ]


def _runs_at_once(mesh: Any, manual: frozenset, leaves: Sequence[Any]) -> bool:
    """Whether the parts of all values are known while the function is traced."""
    if not isinstance(mesh, Mesh) or mesh.is_multi_process or manual != frozenset(mesh.axis_names):
        return False
    return current_interpreter() is eval_interpreter() and not any(isinstance(x, Tracer) for x in leaves)


def _on_devices(
    program: Any, leaves: Sequence[Any], specs: Sequence[Any], mesh: Mesh, in_force: Any, check: bool
) -> str:
    """The result of a program of the parts of arrays, as text: that of each device, under its name."""

    def stacked(*parts: Any) -> Any:
        return hooks.broadcast(eval_jaxpr(program.jaxpr, program.consts, *parts)[0], 1, 0)

    with using(eval_interpreter()), config.mesh_in_force(in_force):
        found = shard_map(
            stacked, mesh=mesh, in_specs=tuple(specs), out_specs=PartitionSpec(mesh.axis_names), check_vma=check
        )(*leaves)
    names = "".join(f"{name}, " for name in mesh.axis_names).rstrip()
    return "\n".join(
        f"On {device} at mesh coordinates ({names}) = {place}:\n{found[number]}\n"
        for number, (place, device) in enumerate(np.ndenumerate(mesh.devices))
    )


def _in_state(x: Any) -> Any:
    """x, whose type says nothing of sums over axes: inside types say it of its parts."""
    placing = getattr(type_on_mesh(x), "placing", None)
    if placing is None or placing.spec == _without_state(placing.spec):
        return x
    return out_placed("shard_map", x, NamedSharding(placing.mesh, _without_state(placing.spec)))


def _terms(spec: PartitionSpec, mesh: Any) -> tuple[Any, ...]:
    """The axes over which results that a spec describes are left to be summed, in the order of the mesh."""
    return tuple(axis for axis in mesh.axis_names if axis in spec.unreduced)


def _of_terms(spec: PartitionSpec, mesh: Any) -> PartitionSpec:
    """That of the terms of a result: an array with a dimension for each axis that is left to be summed before its
    own.
    """
    terms, plain = _terms(spec, mesh), _without_state(spec)
    return plain.update(partitions=(*terms, *plain.partitions)) if terms else plain


def _in_state_of(y: Any, mesh: Any, spec: PartitionSpec) -> Any:
    """The result that a spec describes, of its terms or of its value: each device keeps what it has."""
    count = len(spec.unreduced)
    if not count:
        return out_placed("shard_map", y, NamedSharding(mesh, spec))
    named = NamedSharding(mesh, spec.update(partitions=(*spec.partitions, *[None] * (y.ndim - count - len(spec)))))
    return _left_to_be_summed(named, count)(y)


@functools.lru_cache(maxsize=1024)
def _left_to_be_summed(sharding: NamedSharding, count: int) -> Any:
    @jit
    def left_to_be_summed(terms: Any) -> Any:
        return out_placed("reshard", lax.reduce_sum(terms, list(range(count))), sharding)

    return left_to_be_summed


def _without_state(spec: PartitionSpec) -> PartitionSpec:
    return spec.update(unreduced=frozenset(), reduced=frozenset()) if spec.unreduced or spec.reduced else spec


def _check_states(outs: Sequence[Any], specs: Sequence[PartitionSpec], mesh: Any, check: bool, name: str) -> None:
    """ValueError for results that are not of the state that their specs say, or specs that say one which types outside
    cannot, NotImplementedError where types inside say none.
    """
    for y, spec in zip(outs, specs, strict=True):
        left = set(mesh.axis_names).difference(get_abstract_mesh().manual_axes)
        if (spec.unreduced or spec.reduced) and left:
            raise NotImplementedError(
                f"shard_map of {name}: {spec} in out_specs has unreduced or reduced axes, which takes full manual "
                f"mode, but axes {sorted(map(str, left))} of the mesh are not manual; name them in axis_names"
            )
        _check_state("out_specs", spec, mesh, name)
        if not check and (spec.unreduced or spec.reduced):
            raise NotImplementedError(f"shard_map of {name}: out_specs has {spec}, which takes check_vma=True")
        aval = typeof(y)
        unreduced, reduced = state_of(aval)
        manual = get_abstract_mesh().manual_axes
        if not spec.unreduced <= unreduced | vma_of(aval) or spec.reduced != reduced & set(manual):
            raise ValueError(f"shard_map of {name}: out_specs has {spec} for a result of type {aval}")
        if unreduced & set(manual) - spec.unreduced:
            raise ValueError(
                f"shard_map of {name}: out_specs has {spec} for a result of type {aval}, which is still to be summed"
            )


def _check_state(argument: str, spec: PartitionSpec, mesh: Any, name: str) -> None:
    if (spec.unreduced or spec.reduced) and any(kind is not AxisType.Explicit for kind in mesh.axis_types):
        state = "unreduced" if spec.unreduced else "reduced"
        raise ValueError(
            f"shard_map of {name}: {state} in {argument} {spec} takes a mesh whose axes are all of type `Explicit`, "
            f"got {mesh!s}"
        )


def _check_mesh(mesh: Any, name: str) -> None:
    """ValueError for a mesh that is not the one in force, with the same types of its axes."""
    now = current_mesh()
    if now is None or now.empty or not isinstance(mesh, (Mesh, AbstractMesh)):
        return
    if mesh.abstract_mesh != now.abstract_mesh:
        raise ValueError(
            f"shard_map of {name}: argument 'mesh' is {mesh!s}, but another is in force, {now.abstract_mesh}; leave "
            "'mesh' out to use that"
        )


def _without_objects(function: Callable, args: tuple, in_specs: Any) -> tuple[Callable, tuple, Any]:
    """(function, arguments, specs) without what is no array and has None for a spec: the function closes over it."""
    leaves, tree = tree_flatten(args)
    if all(hasattr(x, "aval") or isinstance(x, (np.ndarray, int, float, complex)) for x in leaves):
        return function, args, in_specs
    specs = broadcast_prefix(in_specs, args, is_leaf=_is_spec)
    pairs = enumerate(zip(leaves, specs, strict=True))
    objects = {k: x for k, (x, spec) in pairs if spec is None and not is_array_like(x)}
    if not objects:
        return function, args, in_specs

    def on_arrays(*arrays: Any) -> Any:
        rest = iter(arrays)
        return function(*tree_unflatten(tree, [objects[k] if k in objects else next(rest) for k in range(len(leaves))]))

    kept = [k for k in range(len(leaves)) if k not in objects]
    return on_arrays, tuple(leaves[k] for k in kept), tuple(specs[k] for k in kept)


def _mesh_of(leaves: Sequence[Any], mesh: AbstractMesh) -> Mesh | AbstractMesh:
    """The mesh in force, or that arrays lie on, for one like it without devices; that itself where there is none."""
    now = config.mesh_in_force.value
    if isinstance(now, Mesh) and now.shape_tuple == mesh.shape_tuple:
        return Mesh(now.devices, mesh.axis_names, axis_types=mesh.axis_types)
    for x in leaves:
        place = getattr(x, "sharding", None)
        if isinstance(place, NamedSharding) and isinstance(place.mesh, Mesh) and place.mesh.shape == mesh.shape:
            return Mesh(place.mesh.devices, mesh.axis_names, axis_types=mesh.axis_types)
    return mesh


def _check_shapes(
    leaves: Sequence[Any], specs: Sequence[PartitionSpec], mesh: Any, name: str, passed: Callable[[], Sequence[str]]
) -> None:
    """ValueError for a spec that does not fit its array; `passed` gives what the arrays are called."""
    sizes = dict(mesh.shape)
    for number, (x, spec) in enumerate(zip(leaves, specs, strict=True)):
        if len(spec) > x.ndim:
            raise ValueError(
                f"shard_map of {name}: {spec} in in_specs is for {len(spec)} dimensions, and {passed()[number]} is "
                f"{typeof(x).str_short()}, of {x.ndim}"
            )
        for d, names in enumerate(parts_of(spec, x.ndim)):
            if x.shape[d] % (pieces := math.prod(sizes[n] for n in names)):
                raise ValueError(
                    f"shard_map of {name}: {passed()[number]} is {typeof(x).str_short()}, and {spec} in in_specs cuts "
                    f"its dimension {d} into {pieces} equal parts, by mesh axes {names}; {x.shape[d]} is not evenly "
                    f"divisible by {pieces}"
                )


def _passed(function: Callable, args: tuple) -> list[str]:
    """What each array is called: as an element of the arguments, and by its parameter."""
    parameters = arguments.leaf_paths(function, [0] * len(args), {})
    found = []
    for path, _ in tree_flatten_with_path(args)[0]:
        parameter = parameters[path[0].idx]
        known = parameter != f"args{keystr(path[:1])}"
        found.append(f"args{keystr(path)}{f' (of parameter {parameter!r})' if known else ''}")
    return found


def _check_results(avals: Sequence[Any], specs: Sequence[PartitionSpec], axes: Sequence[Any], name: str) -> None:
    """ValueError for a result that differs along an axis though its spec does not name it."""
    for aval, spec in zip(avals, specs, strict=True):
        named = all_names_of(spec)
        for axis in axes:
            if axis in vma_of(aval) and axis not in named:
                raise ValueError(
                    f"shard_map of {name}: {spec} in out_specs says that a result is the same along mesh axis "
                    f"{axis!r}, but it depends on the device. Name {axis!r} in the spec, or combine the parts "
                    "(lax.psum, ...); if they are known to be the same, pass check_vma=False"
                )


def _spec_of(x: Any) -> PartitionSpec:
    """The spec that an argument's type has, or the place where it lies.

    Types are known to jit alone; what other transformations trace outside of it lies where their array lay.
    """
    if isinstance(x, Tracer) and x.aval.placing is not None:
        return x.aval.placing.spec
    if isinstance(x, BatchTracer):
        parts = list(parts_of(_spec_of(x.value), x.value.ndim))
        return PartitionSpec(*[axes for d, axes in enumerate(parts) if d != x.dim])
    if isinstance(x, JVPTracer):
        return _spec_of(x.primal)
    place = None if isinstance(x, JitTracer) else getattr(x, "sharding", None)
    return place.spec if isinstance(place, NamedSharding) else PartitionSpec()


def _check_types(
    leaves: Sequence[Any], specs: Sequence[PartitionSpec], mesh: Any, axes: Sequence[Any], name: str
) -> None:
    """ValueError for a spec that contradicts its argument's type, where all axes are explicit and become manual.

    An array that lies on no mesh has the type of one that is whole.
    """
    for spec in specs:
        _check_state("in_specs", spec, mesh, name)
    if len(axes) < len(mesh.axis_names) or any(kind is not AxisType.Explicit for kind in mesh.axis_types):
        return
    now = current_mesh()
    if now is not None and any(kind is not AxisType.Explicit for kind in now.axis_types):
        return  # inside of another, where types say nothing of axes that are manual
    for number, (x, spec) in enumerate(zip(leaves, specs, strict=True)):
        found = _spec_of(x)
        state = (spec.unreduced, spec.reduced) == (found.unreduced, found.reduced)
        if len(spec) <= x.ndim and (parts_of(spec, x.ndim) != parts_of(found, x.ndim) or not state):
            raise ValueError(
                f"shard_map of {name}: in_specs has {spec} for array {number}, {x.aval.str_short()}, which lies as "
                f"{found}. Leave in_specs out, so that types decide, or give it the layout that is meant, by "
                "jax.sharding.reshard"
            )


def _found(name: str, args: tuple, mesh: Any, chosen: frozenset) -> Any:
    """The specs of arguments whose types have them, along the chosen axes (none: all). TypeError for a mesh where these
    are not explicit.
    """
    manual = chosen or frozenset(mesh.axis_names)
    kinds = [kind for axis, kind in zip(mesh.axis_names, mesh.axis_types) if axis in manual]
    if any(kind is not AxisType.Explicit for kind in kinds):
        raise TypeError(
            f"shard_map of {name}: argument 'in_specs' was not given; it may be left out where all axes that are "
            f"mapped are Explicit, but they are {tuple(kinds)}"
        )

    def along(x: Any) -> PartitionSpec:
        spec = _spec_of(x)
        return spec if manual.issuperset(mesh.axis_names) else _restricted(spec, manual)

    return tree_map(along, args)


def _restricted(spec: PartitionSpec, axes: frozenset) -> PartitionSpec:
    """What a spec says of some axes."""
    parts = [tuple(name for name in names_of(part) if name in axes) for part in spec]
    short = [part[0] if len(part) == 1 else part or None for part in parts]
    return spec.update(partitions=short, unreduced=spec.unreduced & axes, reduced=spec.reduced & axes)


def _specs(what: str, specs: Any, tree: Any, axes: Sequence[Any]) -> list[PartitionSpec]:
    """A spec for each leaf of the tree."""
    is_leaf = _is_spec if what.endswith("in_specs") else lambda x: isinstance(x, PartitionSpec)
    given = broadcast_prefix(specs, tree, is_leaf=is_leaf, name=what)
    return [_checked_spec(what, spec, axes) for spec in given]


def _is_spec(leaf: Any) -> bool:
    return leaf is None or isinstance(leaf, PartitionSpec)


def _checked_spec(what: str, spec: Any, axes: Sequence[Any]) -> PartitionSpec:
    if spec is None:
        return PartitionSpec()
    if not isinstance(spec, PartitionSpec):
        raise TypeError(
            f"{what} must be a PartitionSpec, or a tree of them, but has {spec!r} of type {type(spec).__name__}"
        )
    named = all_names_of(spec)
    named = [*named, PartitionSpec.UNCONSTRAINED] if PartitionSpec.UNCONSTRAINED in spec else named
    if unknown := [n for n in named if n not in axes]:
        raise ValueError(
            f"{what}: {spec} refers to {unknown[0]!r}, which is no axis marked as manual; these are {frozenset(axes)}"
        )
    if len(set(named)) != len(named):
        raise DuplicateSpecError(f"{what}: {spec} names an axis twice")
    return spec


def _check_devices(x: Any, mesh: Mesh, name: str, number: int) -> None:
    """ValueError for an argument that is committed to other devices than those of the mesh."""
    place = getattr(x, "_device", None)
    if place is not None and x.sharding._device_assignment != tuple(mesh.devices.flat):
        here, there = ([d.id for d in devices] for devices in (x.sharding._device_assignment, mesh.devices.flat))
        raise ValueError(
            f"Received incompatible devices for jitted computation. Got argument {number} of {name} with shape "
            f"{x.aval.short()} and with device ids {here} on platform CPU and shard_map's mesh with device ids "
            f"{there} on platform CPU"
        )


add_pages(globals(), PAGES)
