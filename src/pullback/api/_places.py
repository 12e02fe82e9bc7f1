"""Where the arguments and results of a jitted function shall lie: what in_shardings, out_shardings, device and backend
mean, and calls of its program that hold arguments to it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.core import ClosedJaxpr, hooks
from pullback.core.avals import type_of_operand
from pullback.core.jaxpr import subjaxprs
from pullback.core.tracer import Tracer
from pullback.lax.collectives.sharding import constrain
from pullback.runtime.arrays.devices import Device, default_device, devices
from pullback.runtime.arrays.layouts import rows
from pullback.runtime.arrays.placement import Placing, devices_of, place_of, says_where
from pullback.sharding import AbstractMesh, Mesh, NamedSharding, PartitionSpec, Sharding, SingleDeviceSharding
from pullback.sharding._current import current_mesh, on_current_mesh
from pullback.sharding._layout import Format, Layout
from pullback.sharding._shardings import UNSPECIFIED
from pullback.transforms.partial_eval import dce_jaxpr, used_inputs
from pullback.util.pytree import (
    flatten_axes,
    keystr,
    tree_flatten,
    tree_flatten_with_path,
    tree_leaves,
    tree_map,
    tree_unflatten,
)


def _without_layout(given: Any) -> Any:
    """The sharding of a Format; other leaves as they are. ValueError for a layout by itself."""
    if isinstance(given, Layout) or given is Layout.AUTO:
        raise ValueError(
            f"jit takes no device-local layouts directly, got {given}; say Format(layout, sharding), which names the "
            "devices, too"
        )
    return given.sharding if isinstance(given, Format) else None if given is UNSPECIFIED else given


def _layouts(name: str, given: Any, tree: Any, arrays: Sequence[Any], what: Any, tupled: bool = False) -> list[Any]:
    """A Layout, AUTO or None for each leaf of arguments or results; ValueError for one of another rank."""
    found = [g.layout if isinstance(g, Format) else None for g in flatten_axes(name, tree, given, tupled_args=tupled)]
    for k, (layout, x) in enumerate(zip(found, arrays, strict=True)):
        if isinstance(layout, Layout):
            layout.check(x.shape, what(k))
    return found


class Wanted:
    """What a jitted function was told of places; equal for the same arguments.

    TypeError for leaves that are neither shardings, specs nor None; ValueError for arguments that exclude each other.
    """

    __slots__ = ("api", "backend", "device", "formats", "ins", "key", "outs")

    def __init__(self, in_shardings: Any, out_shardings: Any, device: Any, backend: Any, api: str = "jit") -> None:
        given = in_shardings, out_shardings  # with layouts
        in_shardings, out_shardings = (tree_map(_without_layout, tree) for tree in given)
        for argument, tree in (("in_shardings", in_shardings), ("out_shardings", out_shardings)):
            for leaf in tree_leaves(tree):
                if not isinstance(leaf, (Sharding, PartitionSpec)):
                    raise TypeError(
                        f"{argument}: leaves must be shardings, PartitionSpec instances or None, got {leaf!r}"
                    )
                spec = leaf if isinstance(leaf, PartitionSpec) else getattr(leaf, "spec", ())
                if PartitionSpec.UNCONSTRAINED in spec:
                    raise ValueError(f"{argument}: Unconstrained dims are not allowed here, got {leaf}")
            if tree is not None and (device is not None or backend is not None):
                raise ValueError(
                    f"jit: {argument} says where arrays lie, and so does 'device' or 'backend'; leave one of them out"
                )
        if device is not None and backend is not None:
            raise ValueError(
                f"jit takes one of 'device' and 'backend', got both a device and a backend: {device}, {backend!r}"
            )
        if isinstance(device, str):  # quimb names a platform
            device, backend = None, device
        if device is not None and not isinstance(device, Device):
            raise TypeError(f"jit: argument 'device' must be a Device, the name of a platform or None, got {device!r}")
        if backend is not None and not isinstance(backend, str):
            raise TypeError(f"jit: argument 'backend' must be a string or None, got {backend!r}")
        self.ins = tuple(in_shardings) if isinstance(in_shardings, list) else in_shardings
        self.outs, self.device, self.backend, self.api = out_shardings, device, backend, api
        said = [[g.layout if isinstance(g, Format) else None for g in tree_leaves(t)] for t in given]
        self.formats = given if any(layout is not None for layouts in said for layout in layouts) else None
        trees = [tree_flatten(t) for t in (self.ins, self.outs)]
        self.key = (*[(tuple(leaves), tree) for leaves, tree in trees], *map(tuple, said), device, backend)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Wanted) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def of_pair(self) -> dict[str, Any]:
        """The arguments of jit for a function whose result is a pair, of which this one's is the first."""
        outs = None if self.outs is None else (self.outs, None)
        return {"in_shardings": self.ins, "out_shardings": outs, "device": self.device, "backend": self.backend}

    @property
    def is_open(self) -> bool:
        """Whether nothing was said."""
        return self.ins is None and self.outs is None and self.device is None and self.backend is None

    def _single(self) -> Any:
        """The sharding that `device` or `backend` means; RuntimeError for a backend that is not there, ValueError under
        a mesh.
        """
        if self.device is None and self.backend is None:
            return None
        if isinstance(mesh := current_mesh(), Mesh) and not mesh.empty:
            raise ValueError(
                f"jit: 'device' or 'backend' names one device, but {mesh} is in force; call it outside of the mesh, or "
                "say in_shardings and out_shardings instead"
            )
        return SingleDeviceSharding(devices(self.backend)[0] if self.device is None else self.device)

    def arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any], names: Callable[[], Sequence[str]]) -> list[Any]:
        """A sharding or None for each leaf of arguments that are not static; ValueError for one that does not fit."""
        leaves = tree_leaves((args, kwargs))
        single = self._single()
        if single is not None or self.ins is None:
            return [single] * len(leaves)
        given = flatten_axes("pjit in_shardings", tree_flatten(args)[1], self.ins, tupled_args=True)

        def what(k: int) -> Callable[[], str]:
            return lambda: f"pjit arguments with pytree key path {names()[k]}"

        return [
            _meant(s, self.api, "in_shardings", leaf, what(k))
            for k, (s, leaf) in enumerate(zip(given, leaves, strict=True))
        ]

    def layouts_of_arguments(self, args: tuple[Any, ...], names: Callable[[], Sequence[str]]) -> list[Any]:
        """A Layout, AUTO or None for each leaf of arguments; ValueError for one that does not fit."""
        leaves, tree = tree_flatten(args)
        if self.formats is None or self.formats[0] is None:
            return [None] * len(leaves)
        ins = self.formats[0]
        ins = tuple(ins) if isinstance(ins, list) else ins
        return _layouts(
            "pjit in_shardings", ins, tree, leaves, lambda k: f"jit arguments with pytree key path {names()[k]}", True
        )

    def layouts_of_results(self, outs: Sequence[Any], tree: Any) -> list[Any]:
        """The same for each leaf of the results."""
        if self.formats is None or self.formats[1] is None:
            return [None] * len(outs)
        return _layouts("pjit out_shardings", self.formats[1], tree, outs, lambda _: "jit outputs")

    def results(self, outs: Sequence[Any], tree: Any) -> list[Any]:
        """A sharding or None for each leaf of the results; ValueError for one that does not fit."""
        single = self._single()
        if single is not None or self.outs is None:
            return [single] * len(outs)
        given = flatten_axes("pjit out_shardings", tree, self.outs)

        def what(k: int) -> Callable[[], str]:
            return lambda: f"pjit outputs with pytree key path result{keystr(_paths(tree)[k])}"

        return [
            _meant(s, self.api, "out_shardings", x, what(k)) for k, (s, x) in enumerate(zip(given, outs, strict=True))
        ]


def _paths(tree: Any) -> list[Any]:
    """The key path of each leaf."""
    return [path for path, _ in tree_flatten_with_path(tree_unflatten(tree, [0] * tree.num_leaves))[0]]


def _meant(given: Any, api: str, argument: str, x: Any, what: Callable[[], str]) -> Any:
    if given is None:
        return None
    if isinstance(given, PartitionSpec):
        given = on_current_mesh(
            given,
            RuntimeError(
                f"{api} requires a non-empty mesh for the PartitionSpec {given} in {argument}, and none is in force: "
                "call it under jax.set_mesh(mesh), or name the mesh in a NamedSharding(mesh, spec)"
            ),
        )
    if isinstance(given, NamedSharding) and isinstance(given.mesh, AbstractMesh):
        given = _on_devices(given, x)
    shape = getattr(x, "shape", ())
    try:
        given.check(shape, "them")
    except ValueError:
        given.check(shape, what())
    return given


def _on_devices(sharding: NamedSharding, x: Any) -> NamedSharding:
    """A sharding over the mesh in force, or that on which an argument lies, where its own has no devices."""
    for mesh in (current_mesh(), getattr(getattr(x, "sharding", None), "mesh", None)):
        if isinstance(mesh, Mesh) and mesh.shape_tuple == sharding.mesh.shape_tuple:
            return sharding.update(mesh=mesh)
    return sharding


def constrained(values: Sequence[Any], wanted: Sequence[Any], argument: str) -> list[Any]:
    """Traced values, laid out as an argument of jit says."""
    return [
        x if s is None else constrain(x if hasattr(x, "aval") else hooks.asarray(x), s, argument)
        for x, s in zip(values, wanted, strict=True)
    ]


def check_arguments(leaves: Sequence[Any], wanted: Sequence[Any]) -> None:
    """ValueError for an argument that is committed to other places than in_shardings says; single devices are left."""
    for x, s in zip(leaves, wanted, strict=True):
        place = getattr(x, "sharding" if getattr(x, "is_only_a_type", False) else "_device", None)
        if s is None or is_abstract(s):
            continue
        if isinstance(x, np.ndarray) and not s.is_fully_addressable and not s.is_fully_replicated:
            raise ValueError(
                f"jit: non-trivial shardings for numpy inputs of several processes are ambiguous: {s} cuts an array of "
                f"shape {x.shape} over devices of other processes. Make it a jax.Array first: from each process's own "
                "rows with jax.make_array_from_process_local_data, or, where all processes hold all of it, with "
                f"jax.make_array_from_callback; or replicate it. The value is {x}"
            )
        if not isinstance(place, (Device, Sharding)) or (isinstance(place, Device) and s.num_devices == 1):
            continue
        if not x.sharding.is_equivalent_to(s, x.ndim) and not _cuts_alike(x.sharding, s):
            raise ValueError(
                f"jit: in_shardings says {s},\nwhich does not match the sharding of the argument, "
                f"{type_of_operand(x).str_short()}: it lies as {x.sharding}. Move it with jax.device_put"
            )


def check_devices_said(name: str, wanted: Sequence[Any]) -> None:
    """ValueError where in_shardings are over a mesh without devices, and neither a mesh nor arguments have any."""
    if any(map(is_abstract, wanted)):
        raise ValueError(
            f"{name}: only AbstractMesh exists among its shardings, which has no devices to run on. Give arguments "
            "that lie on devices, set a Mesh with jax.set_mesh, or only lower it, for lowering_platforms"
        )


def _cuts_alike(have: Sharding, wanted: Any) -> bool:
    """Whether two meshes have the same devices in another order, and arrays are cut over them in the same way."""
    if not isinstance(have, NamedSharding) or not isinstance(wanted, NamedSharding):
        return False
    same = have.device_set == wanted.device_set and have.mesh.shape_tuple == wanted.mesh.shape_tuple
    return same and have.update(mesh=wanted.mesh) == wanted


def layout_said(x: Any) -> Any:
    """The layout that an argument, or a type in its place, was given; None: nobody said anything."""
    if isinstance(x, (Tracer, int, float, complex)):
        return None
    given = getattr(x, "format", None)
    return None if given is None or given.layout is None or given.layout == rows(x.ndim) else given.layout


def check_layouts(leaves: Sequence[Any], layouts: Sequence[Any]) -> None:
    """ValueError for a committed array of another layout than in_shardings says."""
    for x, layout in zip(leaves, layouts, strict=True):
        if layout is None or getattr(x, "_device", None) is None or isinstance(x, Tracer):
            continue
        have = x.format.layout
        if isinstance(layout, Layout) and layout.in_full() != have:
            raise ValueError(_mismatch(layout, have, x) + ".")
        if layout is Layout.AUTO and have != rows(x.ndim):
            raise ValueError(
                f"{_mismatch(layout, have, x)}. Layout.AUTO leaves the choice to the compiler, but this array has its "
                "layout already; give it the usual one, or name its own"
            )


def _mismatch(wanted: Any, have: Layout, x: Any) -> str:
    return (
        f"jit: in_shardings says {wanted},\nwhich does not match the layout of the argument, {x.aval.str_short()}: "
        f"{have}"
    )


def held_to(run: Any, wanted: Sequence[Any], kept: Sequence[int] | None) -> Any:
    """A program whose arguments are taken to lie as wanted."""
    places = [None if s is None else place_of(s) for s in wanted]
    if kept is not None:
        places = [places[k] for k in kept]
    if not any(p is not None for p in places):
        return run

    def call(arrays: Sequence[Any]) -> Any:
        return run([x if p is None else hooks.device_put(x, p) for x, p in zip(arrays, places, strict=True)])

    return call


def layout_of_call(
    closed: ClosedJaxpr, leaves: Sequence[Any], wanted: Sequence[Any] | None, keep_unused: bool = False
) -> Any:
    """How a call is partitioned over a mesh; None if it is not. ValueError for arguments on other devices than it."""
    places = [getattr(getattr(x, "_base_array", x), "_device", None) for x in leaves]
    return layout_at(closed, places, wanted or [None] * len(leaves), keep_unused)


def layout_at(closed: ClosedJaxpr, committed: Sequence[Any], said: Sequence[Any], keep_unused: bool = False) -> Any:
    """How a program is partitioned whose arguments lie there, or where in_shardings says."""
    places = [s or p for s, p in zip(said, committed, strict=True)]
    if closed.jaxpr.effects or not (says_where(closed) or any(isinstance(p, NamedSharding) for p in places)):
        return None
    from pullback.runtime.arrays.result_places import placement_of  # with meshes, not at start-up
    from pullback.runtime.programs.partitioned import layout_of

    layout = layout_of(closed, places, committed)
    if layout is not None:
        carried = check_places(closed, places, keep_unused)
        name = closed.jaxpr.debug_info.func_name
        if any(p is not None and devices_of(p) != frozenset(layout.mesh.devices.flat) for p in carried):
            placement_of(Placing(closed), carried, name, closed.out_avals)  # says what disagrees
    return layout


def check_places(closed: ClosedJaxpr, places: Sequence[Any], keep_unused: bool = False) -> tuple[Any, ...]:
    """ValueError for arguments on incompatible devices, else where they lie, as arrays carry it. What nothing reads is
    not taken, and lies where it likes.
    """
    from pullback.runtime.arrays.result_places import check_devices  # with programs made ahead, not at start-up

    taken = itertools.repeat(True) if keep_unused else used_inputs(dce_jaxpr(closed.jaxpr))
    carried = tuple(place_of(p) if p is not None and take else None for p, take in zip(places, taken))
    check_devices(Placing(closed), carried, closed.jaxpr.debug_info.func_name)
    return carried


def tell_inspectors(closed: ClosedJaxpr, layout: Any, leaves: Sequence[Any]) -> None:
    """Tell those who ask for the shardings of values inside of a program."""
    if not closed.cached("is inspected", lambda: (_is_inspected(closed.jaxpr),))[0]:
        return
    from pullback.runtime.programs.partitioned import inspected

    place = next((d for x in leaves if isinstance(d := getattr(x, "_device", None), Device)), None)
    alone = SingleDeviceSharding(default_device() if place is None else place)
    for callback, sharding in inspected(closed, layout):
        callback(alone if sharding is None else sharding)


def _is_inspected(jaxpr: Any) -> bool:
    names = {eqn.primitive.name for eqn in jaxpr.eqns}
    return "inspect_sharding" in names or any(map(_is_inspected, subjaxprs(jaxpr)))


def partitioned_arguments(closed: ClosedJaxpr, layout: Any) -> list[Any]:
    """Where a partitioned program takes its arguments to lie."""
    from pullback.runtime.arrays.result_places import spec_of
    from pullback.runtime.programs.partitioned import partitioned

    cuts = partitioned(closed, layout).ins
    return [NamedSharding(layout.mesh, spec_of(cut or (), len(cut or ()), layout.mesh)) for cut in cuts]


def partitioned_results(closed: ClosedJaxpr, layout: Any) -> list[Any]:
    """Where the results of a partitioned program lie."""
    from pullback.runtime.programs.partitioned import partitioned, result_shardings

    return result_shardings(closed, partitioned(closed, layout), layout)


def program_of_one(closed: ClosedJaxpr, layout: Any) -> ClosedJaxpr:
    """The program that each device runs."""
    from pullback.runtime.programs.partitioned import partitioned

    return partitioned(closed, layout).closed


def partitioned_text(closed: ClosedJaxpr, layout: Any) -> str:
    """One device's program as text."""
    from pullback.partition.report import as_text
    from pullback.runtime.programs.partitioned import partitioned

    return as_text(partitioned(closed, layout))


def collective_bytes(closed: ClosedJaxpr, layout: Any) -> int:
    """The bytes that each device receives from others in a run."""
    from pullback.partition.report import bytes_moved
    from pullback.runtime.programs.partitioned import partitioned

    return bytes_moved(partitioned(closed, layout))


def compile_partitioned(closed: ClosedJaxpr, layout: Any, name: str, donated: Sequence[int]) -> tuple[Any, Any]:
    """(callable on the kept arrays, their numbers; None: all) of a program that is partitioned."""
    from pullback.runtime.programs.partitioned import compile_partitioned as compiled

    return compiled(closed, layout, name, donated)


# ---- what stages say of a traced function


def places_of_leaves(leaves: Sequence[Any]) -> list[Any]:
    """The shardings that arguments, or types in their place, are committed to; None: not committed."""
    found = []
    for x in leaves:
        sharding = (
            getattr(x, "sharding", None) if getattr(getattr(x, "_base_array", x), "_device", x) is not None else None
        )
        if isinstance(sharding, PartitionSpec):
            sharding = on_current_mesh(
                sharding,
                ValueError(f"a PartitionSpec is given as sharding, {sharding}, but no mesh was set by set_mesh"),
            )
        found.append(sharding if isinstance(sharding, Sharding) else None)
    return found


def is_abstract(place: Any) -> bool:
    """Whether a sharding is over a mesh without devices."""
    return isinstance(place, NamedSharding) and not isinstance(place.mesh, Mesh)


def devices_said(places: Sequence[Any], mesh: Any) -> tuple[Any, ...] | None:
    """The devices, in order, that shardings of arguments name, or the mesh in force; None if nothing does."""
    named = [p.mesh for p in places if isinstance(p, NamedSharding) and not is_abstract(p)]
    if named or isinstance(mesh, Mesh):
        return tuple((*named, mesh)[0].devices.flat)
    return next((tuple(p.device_set) for p in places if p is not None and not is_abstract(p)), None)


def on_devices(place: Any, devices: Sequence[Any]) -> Any:
    """A sharding over a mesh of these devices where it was over one without; ValueError if these are not as many."""
    if not is_abstract(place):
        return place
    mesh = place.mesh
    if mesh.size != len(devices):
        raise ValueError(
            f"The size of abstract mesh {mesh.shape_tuple} is {mesh.size}, but there are {len(devices)} devices; "
            f"{place} cannot be laid over them"
        )
    there = np.array(devices, object).reshape(mesh.axis_sizes)
    return NamedSharding(Mesh(there, mesh.axis_names, axis_types=mesh.axis_types), place.spec)


def input_shardings(places: Sequence[Any], default: Any, shardings_said: Sequence[Any]) -> list[Any]:
    """Where a program takes arguments to lie."""
    mesh = current_mesh()
    found = next((s for s in (*shardings_said, *places) if isinstance(s, NamedSharding)), None)
    if found is not None:
        mesh = found.mesh
    elsewhere = NamedSharding(mesh, PartitionSpec()) if isinstance(mesh, Mesh) else SingleDeviceSharding(default)
    return [p or s or elsewhere for p, s in zip(places, shardings_said, strict=True)]


def output_shardings(closed: ClosedJaxpr, places: Sequence[Any], name: str, default: Any) -> list[Any]:
    """Where a program's results lie."""
    from pullback.runtime.arrays.result_places import placement_of  # with programs made ahead, not at start-up

    carried = tuple(None if p is None else place_of(p) for p in places)
    found = placement_of(Placing(closed), carried, name, closed.out_avals)
    return [p if isinstance(p, Sharding) else SingleDeviceSharding(default if p is None else p) for p in found]


def _placings(primitive: Any, in_avals: Sequence[Any], params: dict[str, Any], outs: Sequence[Any]) -> list[Any]:
    from pullback.partition.explicit import placings  # where meshes are used, not at start-up

    return placings(primitive, in_avals, params, outs)


def _terms_beside(placing: Placing, places: Sequence[Any]) -> Any:
    from pullback.runtime.programs.terms_beside import TermsBeside  # with the compiler, not at start-up

    return TermsBeside(placing, places)


hooks.fill(placings=_placings, terms_beside=_terms_beside)
