"""Where values lie on devices: constraints inside of programs, `device_put` of traced values, and the argument
`out_sharding` of other functions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._ext import _core
from pullback.core import current_interpreter, eval_interpreter, hooks
from pullback.core.avals import expect_places, typeof
from pullback.core.lowering import Elementwise, Nest
from pullback.core.primitive import registry
from pullback.core.tracer import Tracer
from pullback.core.types import CONSTRAINTS, cut_as, memory_of, place_of_type, resharded, type_on_mesh
from pullback.lax.records.families import Case, Primitive, Samples
from pullback.lax.records.nests import copy_into
from pullback.lax.records.operands import as_array
from pullback.lax.records.rules import batch_front, is_linear, is_zero, tangent_zero
from pullback.sharding import AbstractMesh, AxisType, Mesh, NamedSharding, PartitionSpec, Sharding
from pullback.sharding._current import (
    current_mesh,
    get_abstract_mesh,
    mesh_in_force,
    on_current_mesh,
    operations,
)
from pullback.sharding._shardings import ArrayCopySemantics, MemorySpace
from pullback.sharding._specs import all_names_of, in_short, names_of, of_cotangents, spec_in_full
from pullback.transforms import places
from pullback.transforms.batching import BatchTracer
from pullback.util.errors import class_shown
from pullback.util.pytree import flatten_axes, tree_flatten, tree_map, tree_unflatten

__all__ = [
    "device_put_p",
    "inspect_sharding_p",
    "reshard_p",
    "shard_alike_p",
    "sharding_constraint_p",
]


def _identity(name: str, doc: str, samples: dict[str, Any], evaluate: Any = None) -> Primitive:
    def jvp(primals, tangents, **params):
        out = p.bind(*primals, **params)
        return out, tangent_zero(out) if is_zero(tangents[0]) else p.bind(*tangents, **params)

    p = Primitive(
        name,
        doc=doc,
        abstract_eval=lambda aval, **params: aval,
        reference=lambda x, **params: x,
        jvp=jvp,
        lower=Elementwise(lambda b, x, **params: x),
        traits={"elementwise", "linear", "identity"},
        samples=Samples(cases=lambda rng: [Case((rng.normal(size=3).astype(np.float32),), samples)]),
        evaluate=evaluate,
    )
    return p


def _evaluator(name: str) -> Any:
    key = CONSTRAINTS[name]

    def evaluate(x: Any, **params: Any) -> Any:
        """x; in parts where types say how it is cut over the mesh of several processes that is in force, or that it
        is to be summed.
        """
        mesh, sharding = current_mesh(), params[key]
        if isinstance(sharding, NamedSharding) and isinstance(mesh, Mesh):
            said = mesh.is_multi_process or sharding.spec.unreduced or sharding.spec.reduced
            if said and isinstance(sharding.mesh, AbstractMesh) and sharding.mesh.shape_tuple == mesh.shape_tuple:
                return hooks.device_put(x, sharding.update(mesh=mesh))
        return registry[name].run(x, **params)

    return evaluate


def constraint_params(sharding: Sharding, layout: Any = None) -> dict[str, Any]:
    """The parameters of sharding_constraint_p."""
    spec = getattr(sharding, "spec", ())
    mesh = current_mesh()
    return {
        "sharding": sharding,
        "layout": layout,
        "context_mesh": mesh_in_force() if mesh is None else get_abstract_mesh(),
        "unconstrained_dims": frozenset(d for d, part in enumerate(spec) if part is PartitionSpec.UNCONSTRAINED),
    }


def constrain(x: Any, sharding: Sharding, argument: str = "") -> Any:
    """A traced value, said to lie so (by an argument of jit): types say it along explicit axes."""
    if isinstance(sharding, NamedSharding) and sharding.mesh.explicit_axes:
        mesh = current_mesh()
        if argument == "in_shardings" and mesh is not None and mesh.are_all_axes_explicit:
            return x  # a type that says nothing is that of what is whole, wherever its values lie
        return resharded(x, sharding)
    if argument:
        places.expect_places()
        return laid_out_p.bind(x, sharding=sharding, argument=argument)
    return sharding_constraint_p.bind(x, **constraint_params(sharding))


sharding_constraint_p = _identity(
    "sharding_constraint",
    "x, said to be laid out over devices in some way.",
    {"sharding": None, "layout": None, "context_mesh": None, "unconstrained_dims": frozenset()},
    _evaluator("sharding_constraint"),
)
laid_out_p = _identity(
    "laid_out",
    "x, laid out over devices as in_shardings or out_shardings of jit say.",
    {"sharding": None, "argument": "in_shardings"},
    _evaluator("laid_out"),
)
reshard_p = _identity(
    "reshard",
    "x, cut along explicit axes as told, which its type says.",
    {"dst_sharding": None, "concrete_mesh": None},
    _evaluator("reshard"),
)


def _mapped_sharding(axis: Any, sharding: Any, dim: int, ndim: int, unsaid: Any, typed: bool = False) -> Any:
    """A sharding of values with another axis at `dim`, which is `unsaid` where nobody says how it is cut.

    `typed`: types alone say how the mapped axis is cut, not `spmd_axis_name`.
    """
    if isinstance(sharding, NamedSharding):
        mapped = () if typed or axis is None or axis.spmd is None else axis.spmd
        spmd = mapped if isinstance(mapped, tuple) else (mapped,)
        used = set(all_names_of(sharding.spec))
        if unsaid is None and not spmd and axis is not None and axis.placing is not None:
            # Along an explicit axis: it stays cut.
            spmd = tuple(names_of(axis.placing.spec[0]))
        elif used & set(spmd):
            raise ValueError(
                f"with_sharding_constraint under vmap: spmd_axis_name {spmd} is used already by {sharding.spec}"
            )
        parts = [*sharding.spec, *[None] * ((dim if spmd else ndim - 1) - len(sharding.spec))]
        parts.insert(dim, (spmd[0] if len(spmd) == 1 else spmd) if spmd else unsaid)
        sharding = sharding.update(spec=sharding.spec.update(partitions=parts))
    return sharding


def _unsaid(sharding: Any) -> Any:
    """What is said of an axis that another map adds: nothing, or that it is whole, where types leave nothing open."""
    kinds = getattr(getattr(sharding, "mesh", None), "axis_types", ())
    return PartitionSpec.UNCONSTRAINED if AxisType.Auto in kinds else None


def _constraint_batch(axis, args, dims, *, sharding, layout, context_mesh, unconstrained_dims):
    (x,), (dim,) = args, dims
    params = constraint_params(_mapped_sharding(axis, sharding, dim, x.ndim, _unsaid(sharding)), layout)
    return sharding_constraint_p.bind(x, **{**params, "context_mesh": context_mesh}), dim


def _laid_out_batch(axis, args, dims, *, sharding, argument):
    (x,), (dim,) = args, dims
    sharding = _mapped_sharding(axis, sharding, dim, x.ndim, _unsaid(sharding))
    return laid_out_p.bind(x, sharding=sharding, argument=argument), dim


def _laid_out_transpose(bar, x, *, sharding, argument):
    """What lay as a result's places said comes in as an argument, and the other way round."""
    turned = "in_shardings" if argument == "out_shardings" else "out_shardings"
    return [bar if is_zero(bar) else laid_out_p.bind(bar, sharding=sharding, argument=turned)]


def _reshard_batch(axis, args, dims, *, dst_sharding, concrete_mesh):
    (x,), (dim,) = args, dims
    return resharded(x, _mapped_sharding(axis, dst_sharding, dim, x.ndim, None, typed=True)), dim


def _reshard_transpose(bar: Any, x: Any, dst_sharding: Any, concrete_mesh: Any) -> list[Any]:
    if is_zero(bar) or x.aval.placing is not None:
        return [bar if is_zero(bar) else cut_as(bar, x.aval, cotangent=True)]
    if isinstance(dst_sharding, NamedSharding):
        dst_sharding = dst_sharding.update(spec=of_cotangents(dst_sharding.spec))
        mesh = current_mesh()
        if mesh is not None and mesh.shape_tuple == dst_sharding.mesh.shape_tuple and not mesh.explicit_axes:
            return [put(bar, dst_sharding.update(mesh=mesh))]  # outside of explicit_axes, which this mesh was made for
    lies = isinstance(dst_sharding, NamedSharding) and place_of_type(type_on_mesh(bar)) == dst_sharding.spec
    return [bar if lies else resharded(bar, dst_sharding)]


sharding_constraint_p.transpose = lambda bar, x, **params: [
    bar if is_zero(bar) else sharding_constraint_p.bind(bar, **params)
]
sharding_constraint_p.batch = lambda args, dims, **params: _constraint_batch(None, args, dims, **params)
sharding_constraint_p.batch_axis = _constraint_batch
laid_out_p.transpose = _laid_out_transpose
laid_out_p.batch = lambda args, dims, **params: _laid_out_batch(None, args, dims, **params)
laid_out_p.batch_axis = _laid_out_batch
reshard_p.transpose = _reshard_transpose
reshard_p.batch = lambda args, dims, **params: _reshard_batch(None, args, dims, **params)
reshard_p.batch_axis = _reshard_batch

# What it makes known is known where the program is made (runtime/programs/partitioned.py).
inspect_sharding_p = _identity(
    "inspect_sharding", "x, whose sharding `callback` is told.", {"callback": lambda sharding: None}
)
inspect_sharding_p.transpose = lambda bar, x, callback: [bar]
inspect_sharding_p.jvp = lambda primals, tangents, callback: (
    inspect_sharding_p.bind(*primals, callback=callback),
    tangents[0],
)
inspect_sharding_p.batch = lambda args, dims, callback: (inspect_sharding_p.bind(*args, callback=callback), dims[0])


def _alike_jvp(primals, tangents):
    outs = shard_alike_p.bind(*primals)
    if any(map(is_zero, tangents)):
        return outs, [tangent_zero(out) if is_zero(t) else t for out, t in zip(outs, tangents)]
    return outs, shard_alike_p.bind(*tangents)


def _alike_batch(args, dims):
    if dims[0] != dims[1]:
        size = next(x.shape[d] for x, d in zip(args, dims) if d is not None)
        args, dims = [batch_front(x, d, size) for x, d in zip(args, dims)], (0, 0)
    return shard_alike_p.bind(*args), list(dims)


def _alike_emit(ctx):
    for k in range(2):
        copy_into(ctx, ctx.operand(k), ctx.result(k))


shard_alike_p = Primitive(
    "shard_alike",
    doc="Two arrays of one shape, said to be cut over devices in the same way.",
    abstract_eval=lambda *avals: list(avals),
    multiple_results=True,
    reference=lambda *operands: list(operands),
    jvp=_alike_jvp,
    transpose=lambda bars, *operands: (
        list(bars) if any(map(is_zero, bars)) or not all(map(is_linear, operands)) else shard_alike_p.bind(*bars)
    ),
    traits={"linear", "exact"},
    batch=_alike_batch,
    lower=Nest(_alike_emit, strided=True),
    samples=Samples(cases=lambda rng: [Case((rng.normal(size=3).astype(np.float32), np.arange(3)), {})]),
)

device_put_p = _identity(
    "device_put",
    "x, put on a device, over several or into a memory; `srcs`: where it comes from. Parameters have one element.",
    {"devices": (None,), "srcs": (None,), "copy_semantics": (ArrayCopySemantics.REUSE_INPUT,)},
)


def _put_now(x: Any, devices: Any, srcs: Any, copy_semantics: Any) -> Any:
    x, (device,) = hooks.asarray(x), devices
    if isinstance(device, MemorySpace):
        device = x.sharding.with_memory_kind(device.value)
    return x if device is None else _put_there(x, device)


def _put_there(x: Any, place: Any) -> Any:
    """An array at a place; what a layout leaves open is as the array lies."""
    if isinstance(place, NamedSharding) and PartitionSpec.UNCONSTRAINED in place.spec:
        place = place.update(spec=closed_spec(place, x))
    return hooks.device_put(x, place)


def _put_batch(axis: Any, args: Any, dims: Any, *, devices: Any, srcs: Any, copy_semantics: Any) -> Any:
    (x,), (dim,), (device,) = args, dims, devices
    if isinstance(device, NamedSharding):
        devices = (_mapped_sharding(axis, device, dim, x.ndim, _unsaid(device)),)
    return device_put_p.bind(x, devices=devices, srcs=srcs, copy_semantics=copy_semantics), dim


def _put_transpose(bar: Any, x: Any, devices: Any, srcs: Any, copy_semantics: Any) -> list[Any]:
    """Back to where it came from; else into the memory from which it came."""
    if is_zero(bar):
        return [bar]
    (source,) = srcs
    space = memory_of(x.aval)
    if source is None and space is not memory_of(typeof(bar)):
        source = space
    return [put_as(bar, source, devices[0], ArrayCopySemantics.ALWAYS_COPY)]


device_put_p.transpose = _put_transpose
device_put_p.evaluate = _put_now
device_put_p.batch = lambda args, dims, **params: _put_batch(None, args, dims, **params)
device_put_p.batch_axis = _put_batch


def put_as(x: Any, place: Any, source: Any = None, how: ArrayCopySemantics = ArrayCopySemantics.REUSE_INPUT) -> Any:
    """A traced value as an equation `device_put` says: at a Device, Sharding or MemorySpace, or (None) where it is."""
    if isinstance(place, MemorySpace) or getattr(place, "memory_kind", None) in _HOST:
        expect_places()
    return device_put_p.bind(x, devices=(place,), srcs=(source,), copy_semantics=(how,))


def is_concrete(x: Any) -> bool:
    """Whether x is an array that no interpreter looks at."""
    return not isinstance(x, Tracer) and current_interpreter() is eval_interpreter()


_SPACES = {space.value: space for space in MemorySpace}  # by kinds of memory
_HOST = ("pinned_host", "unpinned_host")


def put(x: Any, place: Any, source: Any = None) -> Any:
    """An array or traced value at a Device, a Sharding that fits it, or (traced) in a MemorySpace; cotangents go back
    to `source`, or to where the value comes from.
    """
    if is_concrete(x):
        return _put_there(x, place)
    if isinstance(place, MemorySpace):
        return put_as(x, place)
    if isinstance(place, Sharding):
        space = _SPACES.get(place.memory_kind or "")
        if space not in (None, typeof(x).memory_space):
            x = put(x, space)
    if isinstance(place, NamedSharding):
        return constrain(x, place)
    return put_as(x, place, source_of(x) if source is None else source)


def closed_spec(sharding: NamedSharding, x: Any) -> PartitionSpec:
    """The spec, whose open dimensions are as those of an array on the mesh are, or whole; without Nones at its end."""
    have = getattr(getattr(x, "_base_array", x), "_device", None)
    lies: tuple[Any, ...] = (None,) * x.ndim
    if isinstance(have, NamedSharding) and _is_retyped(have.mesh, sharding.mesh):
        lies = (*have.spec, *lies)
    kinds = dict(zip(sharding.mesh.axis_names, sharding.mesh.axis_types, strict=True))
    if AxisType.Auto in kinds.values():  # of the others, types say all
        lies = tuple(spec_in_full([tuple(a for a in names_of(n) if kinds.get(a) is AxisType.Auto) for n in lies]))
    used = set(all_names_of(sharding.spec))
    parts: list[Any] = []
    for part, here in zip(sharding.spec, lies, strict=False):
        is_open = part is PartitionSpec.UNCONSTRAINED
        parts.append(part if not is_open else here if not used.intersection(names_of(here)) else None)
    return PartitionSpec(*parts) if sharding.mesh.explicit_axes else in_short(PartitionSpec(*parts))


def _is_retyped(mesh: Any, other: Any) -> bool:
    """Whether two meshes differ in the types of their axes at most."""
    if mesh == other:
        return True
    alike = isinstance(mesh, Mesh) and len(mesh.axis_names) == len(other.axis_names)
    return alike and mesh.update(axis_types=other.axis_types) == other


def _open(sharding: NamedSharding) -> NamedSharding:
    """A sharding whose Auto axes may cut what it says nothing of, as types do not say it."""
    if AxisType.Auto not in sharding.mesh.axis_types:
        return sharding
    parts = [PartitionSpec.UNCONSTRAINED if part is None else part for part in sharding.spec]
    return sharding.update(spec=sharding.spec.update(partitions=parts))


def source_of(x: Any) -> Any:
    """The device of the array that a traced value stands for, or how it lies over several, if there is one."""
    while isinstance(x, Tracer):
        x = getattr(x, "primal", None)
    return (x._device or x.device) if isinstance(x, _core.Array) else None


# ---- the argument out_sharding


def named_out_sharding(name: str, out_sharding: Any) -> NamedSharding:
    """What the argument `out_sharding` of function `name` means.

    Raises TypeError for what is neither NamedSharding nor PartitionSpec; ValueError for a spec without a mesh in force,
    or that names axes which are not explicit.
    """
    if isinstance(out_sharding, PartitionSpec):
        named = on_current_mesh(
            out_sharding,
            ValueError(
                f"{name}: no mesh is in force for out_sharding={out_sharding}; enter one by `jax.set_mesh(mesh)`, or "
                "say which by `NamedSharding(mesh, spec)`"
            ),
        )
    elif isinstance(out_sharding, NamedSharding):
        named = out_sharding
    else:
        raise TypeError(
            f"{name}: argument 'out_sharding' must be a NamedSharding or a PartitionSpec, got {out_sharding} of type "
            f"{class_shown(type(out_sharding))}"
        )
    types = dict(zip(named.mesh.axis_names, named.mesh.axis_types, strict=True))
    for part in named.spec:
        if part is PartitionSpec.UNCONSTRAINED and AxisType.Auto not in named.mesh.axis_types:
            raise ValueError(
                f"{name}: `P.UNCONSTRAINED` in {named.spec} leaves a dimension to Auto axes, of which the mesh has "
                f"none: {named.mesh.axis_types}"
            )
        for axis in names_of(part):
            if types[axis] is not AxisType.Explicit:
                raise ValueError(
                    f"{name}: out_sharding takes Explicit axes only, but {axis!r} of {named.spec} is of type "
                    f"AxisType.{types[axis].name}"
                )
    return named


def out_placed(name: str, out: Any, out_sharding: Any) -> Any:
    """A result of function `name`, laid out as its argument `out_sharding` says; None: as it is."""
    if out_sharding is None:
        return out
    named = named_out_sharding(name, out_sharding)
    if not any(map(names_of, named.spec[out.ndim :])):  # more is said of dimensions that are not there: nothing
        named = named.update(spec=named.spec.update(partitions=tuple(named.spec)[: out.ndim]))
    named.check(out.shape, f"{name} results")
    if name != "shard_map" or not is_concrete(out):
        parts = (*named.spec, *[None] * (out.ndim - len(named.spec)))
        named = named.update(spec=named.spec.update(partitions=parts))
    mesh = current_mesh()
    if not isinstance(named.mesh, Mesh) and isinstance(mesh, Mesh):
        named = named.update(mesh=mesh)
    if is_concrete(out) and not isinstance(named.mesh, Mesh):  # there are no devices
        return out
    if name != "reshard" and isinstance(out, Tracer):
        placing = out.aval.placing
        if placing is not None and placing.spec == named.spec and placing.mesh == named.mesh.abstract_mesh:
            return out
    return put(out, _open(named) if name == "reshard" and is_concrete(out) else named)


def laid_out(name: str, out: Any, sharding: Any) -> Any:
    """A result of function `name` at the place that its argument `sharding` says; None: as it is.

    Raises TypeError for what is no Sharding, ValueError for one that does not fit.
    """
    if sharding is None:
        return out
    if not isinstance(sharding, Sharding):
        raise TypeError(f"{name}: argument 'sharding' must be a Sharding or None, got {sharding!r}")
    sharding.check(out.shape, f"{name} results")
    return put(out, sharding)


def reshard(xs: Any, out_shardings: Any) -> Any:
    """The tree xs laid out as told: a NamedSharding with explicit axes, a PartitionSpec over the mesh in force, or a
    tree prefix of them. Raises as the argument `out_sharding` of other functions.
    """
    leaves, tree = tree_flatten(xs)
    wanted = flatten_axes("reshard out_shardings", tree, out_shardings)
    if None in wanted:
        raise ValueError("reshard: out_shardings must be NamedShardings or PartitionSpecs, got None")
    arrays = [as_array(x, "reshard") for x in leaves]
    return tree_unflatten(
        tree, [out_placed("reshard", x, _of_rank(s, x.ndim)) for x, s in zip(arrays, wanted, strict=True)]
    )


def _of_rank(sharding: Any, ndim: int) -> Any:
    """Without the last axes that are not cut: one layout serves a tree of arrays, some of which have fewer axes."""
    spec = getattr(sharding, "spec", sharding)
    if not isinstance(spec, PartitionSpec) or any(spec[ndim:]):
        return sharding
    short = spec.update(partitions=spec[:ndim])
    return short if sharding is spec else sharding.update(spec=short)


def retyped(xs: Any) -> Any:
    """The tree xs, with arrays over the mesh in force whose axes were of other types: they lie where they lay."""
    mesh = current_mesh()

    def one(leaf: Any) -> Any:
        if mesh is None or not hasattr(leaf, "aval"):
            return leaf
        if isinstance(leaf, BatchTracer):  # along the mapped axis, too
            inner = one(leaf.value)
            if inner is leaf.value:
                return leaf
            aval = leaf.aval if leaf.aval.placing is None else leaf.aval.untyped
            return BatchTracer(leaf.interpreter, inner, leaf.dim, aval, leaf.source)
        lies = leaf.sharding if isinstance(leaf, _core.Array) else leaf.aval.placing
        if not isinstance(lies, NamedSharding) or lies.mesh.axis_names != mesh.axis_names:
            return leaf
        if lies.mesh.axis_types == mesh.axis_types:
            return leaf
        spec = lies.spec if isinstance(leaf, _core.Array) else _open(lies).spec
        return put(leaf, NamedSharding(mesh, spec if mesh.explicit_axes else _without_open_end(spec)))

    return tree_map(one, xs)


def _without_open_end(spec: PartitionSpec) -> PartitionSpec:
    """The spec without what it says of last dimensions that are not cut: only types say how all of them lie."""
    cut = [k for k, part in enumerate(spec) if part is not None]
    return PartitionSpec(*spec[: cut[-1] + 1 if cut else 0])


operations.reshard = reshard
operations.retyped = retyped
