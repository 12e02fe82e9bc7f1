"""Where the results of a program lie, found from where its arguments do (ValueError where these lie apart).

On one device, or by types that say it, results lie as they say. Over a mesh the spec of each result is what the pass
that partitions programs finds (partition/propagate.py), as where they are compiled.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

from pullback.compiler.graph.simplify.inline import inline
from pullback.core import eval_jaxpr, trace, types
from pullback.core.asked import asked_for
from pullback.core.avals import ShapedArray, placed
from pullback.core.jaxpr import ClosedJaxpr, Jaxpr, Literal, jaxprs_in_params
from pullback.core.types import CONSTRAINTS, said_by
from pullback.runtime.arrays.devices import Device, default_device
from pullback.runtime.arrays.placement import Placing, in_order, place_of, says_where
from pullback.sharding import AxisType, Mesh, NamedSharding, PartitionSpec, Sharding, SingleDeviceSharding
from pullback.sharding._current import current_mesh, retypings, typings
from pullback.sharding._gspmd import GSPMDSharding, named, of_named, over_own_mesh
from pullback.sharding._shardings import MemorySpace
from pullback.sharding._specs import in_short, names_of, parts_of, state_of
from pullback.util.memory import make_room


def placement_of(placing: Placing | None, places: tuple[Any, ...], name: str, out_avals: Sequence[Any]) -> tuple:
    """The place of each result of a program (None: not committed) whose arguments are at `places`.

    Raises ValueError for arguments, or a program, on incompatible devices.
    """
    mesh = current_mesh()
    mesh = mesh if isinstance(mesh, Mesh) and not mesh.empty else None
    key = places, mesh, asked_for()
    if placing is not None and key in placing.found:
        return placing.found[key]
    if (tile := next((p for p in places if isinstance(p, Sharding) and p.is_tile), None)) is not None:
        return _by_tiles(placing, places, name, out_avals, tile)
    devices = _common_devices(placing, places, mesh, name)
    if placing is not None:
        check_meshes(placing, places, mesh)
    if devices is not None and isinstance(devices[0], Device):
        mesh = None  # of that one device: results lie as the committed arguments say
    if placing is None:
        found: tuple[Any, ...] = tuple(_without_rules(places, mesh, len(a.shape)) for a in out_avals)
    else:
        said = _by_types(placing, places)
        if said is None or not said or said[0].mesh.are_all_axes_explicit:
            found = said or _Rules(mesh, devices).results(placing, places)
        else:
            found = tuple(map(_with_auto_axes, said, _Rules(mesh, devices).results(placing, places)))
        given = [(p, len(v.aval.shape)) for p, v in zip(places, placing.arguments) if p is not None]
        said_by_jit = _said_by_jit(placing.jaxpr)
        found = tuple(
            (None if isinstance(v, Literal) else said_by_jit.get(v)) or written_alike(p, len(a.shape), given)
            for v, p, a in zip(placing.jaxpr.outvars, found, out_avals, strict=True)
        )
        found = tuple(
            p if not isinstance(v, Literal) and v in said_by_jit else _over_meshes_of_types(p, v)
            for p, v in zip(found, placing.jaxpr.outvars, strict=True)
        )
        found = _over_said_axes(placing.jaxpr, found)
        found = _over_meshes_put_on(placing.jaxpr, found)
        found = tuple(map(_in_state_of_types, found, placing.jaxpr.outvars))
        avals = _types_in_memory(placing, places) or [v.aval for v in placing.jaxpr.outvars]
        found = tuple(map(in_memory, found, avals))
        make_room(placing.found, 64)
        placing.found[key] = found
    return found


def _by_tiles(
    placing: Placing | None, places: tuple[Any, ...], name: str, out_avals: Sequence[Any], tile: Any
) -> tuple[Any, ...]:
    """The places of results where arguments lie by tiles of devices, as over a mesh: that of another argument, if it
    has the tiles, or the tile.
    """
    mesh = next((p.mesh for p in places if isinstance(p, NamedSharding)), None)

    def turned(place: Any) -> Any:
        if not isinstance(place, GSPMDSharding):
            return place
        return over_own_mesh(place) if mesh is None else named(place, mesh)

    found = placement_of(placing, tuple(map(turned, places)), name, out_avals)
    if mesh is not None:
        return found
    return tuple(
        of_named(p, len(a.shape), tile._devices) if isinstance(p, NamedSharding) and isinstance(p.mesh, Mesh) else p
        for p, a in zip(found, out_avals, strict=True)
    )


_MOVES = ("device_put", "reshard", "sharding_constraint", "laid_out", "copy", "copy_p")


def check_meshes(placing: Placing, places: Sequence[Any], now: Any) -> None:
    """ValueError for an argument over a mesh without explicit axes that the program computes with, where one with them
    is in force (`now`), or another argument lies over one; what runs again of `auto_axes` and `explicit_axes` may.
    """
    named = [(p, v) for p, v in zip(places, placing.arguments, strict=True) if isinstance(p, NamedSharding)]
    in_force = now is not None and bool(now.explicit_axes)
    mesh = now if in_force else next((p.mesh for p, _ in named if p.mesh.explicit_axes), None)
    if mesh is None:
        return
    for place, v in named:
        if place.mesh.explicit_axes or place.mesh.size == 1:
            continue
        types = mesh.axis_types, place.mesh.axis_types
        if not {(mesh.shape_tuple, *types), (mesh.shape_tuple, *types[::-1])}.isdisjoint(retypings | typings):
            continue
        if (reader := _reader(placing.jaxpr, v)) is not None:
            one, other = getattr(mesh, "abstract_mesh", mesh), place.mesh.abstract_mesh
            rule = "the context mesh should match the mesh of each input"
            if not in_force:
                rule = "Mesh for all inputs should be one"
            raise ValueError(
                f"{reader}: {rule}, but {v.aval.str_short()} lies on {other}, not on {one}; jax.device_put moves "
                "arrays from one mesh to another"
            )


def _reader(jaxpr: Jaxpr, v: Any) -> str | None:
    """The first primitive that computes with a value."""
    for eqn in jaxpr.eqns:
        if v not in eqn.invars or eqn.primitive.name in _MOVES:
            continue
        inner = _called(eqn)
        if inner is None or len(inner.invars) != len(eqn.invars):
            return eqn.primitive.name
        for k, a in enumerate(eqn.invars):
            if a is v and (found := _reader(inner, inner.invars[k])) is not None:
                return found
    return None


def _over_meshes_of_types(place: Any, out: Any) -> Any:
    """The place of a result that its type gives to another mesh of as many devices, as use_abstract_mesh makes them:
    the devices of its own, in their order."""
    said = getattr(out.aval, "placing", None)
    if said is None or not isinstance(place, NamedSharding):
        return place
    mesh = place.mesh
    if said.mesh.axis_names == mesh.axis_names and said.mesh.axis_sizes == mesh.axis_sizes:
        return place
    devices = mesh.devices.reshape(said.mesh.axis_sizes)
    return place_of(NamedSharding(Mesh(devices, said.mesh.axis_names, axis_types=said.mesh.axis_types), said.spec))


def _over_said_axes(jaxpr: Jaxpr, found: tuple) -> tuple:
    """The places of results; those that the program lays over the same mesh with axes of other types lie there."""
    said = {e.outvars[0]: said_by(e) for e in jaxpr.eqns if e.primitive.name in ("laid_out", "reshard")}
    if not said:
        return found
    return tuple(
        place_of(other)
        if not isinstance(v, Literal) and is_over_other_types(other := said.get(v), getattr(p, "mesh", None))
        else p
        for p, v in zip(found, jaxpr.outvars, strict=True)
    )


def _over_meshes_put_on(jaxpr: Jaxpr, found: tuple) -> tuple:
    """The places of results of a program that puts values on a mesh whose axes are of other types than those of its
    arguments' mesh: over the mesh whose axes are as the type of the result says.
    """
    said = [said_by(e) for e in jaxpr.eqns if e.primitive.name == "device_put"]
    meshes = {(m.shape_tuple, m.axis_types): m for m in (s.mesh for s in said if s is not None) if isinstance(m, Mesh)}

    def moved(place: Any, out: Any) -> Any:
        if not isinstance(place, NamedSharding):
            return place
        typed = getattr(out.aval, "placing", None)
        kinds = (AxisType.Auto,) * len(place.mesh.axis_names) if typed is None else typed.mesh.axis_types
        mesh = meshes.get((place.mesh.shape_tuple, kinds))
        if mesh is None or kinds == place.mesh.axis_types:
            return place
        spec = typed.spec if typed is not None and mesh.are_all_axes_explicit else in_short(place.spec)
        return place_of(NamedSharding(mesh, spec, place.memory_kind))

    return tuple(map(moved, found, jaxpr.outvars)) if meshes else found


def is_over_other_types(said: Any, mesh: Any) -> bool:
    """Whether a sharding is over the axes of a mesh, which it says to be of other types."""
    if not isinstance(said, NamedSharding) or not isinstance(said.mesh, Mesh) or mesh is None:
        return False
    if PartitionSpec.UNCONSTRAINED in said.spec:
        return False
    return said.mesh.shape_tuple == mesh.shape_tuple and said.mesh.axis_types != mesh.axis_types


def _in_state_of_types(place: Any, out: Any) -> Any:
    """The place of a result that its type says to be summed over axes, or whose cotangent will be."""
    state = state_of(out.aval)
    if not any(state) or not isinstance(place, NamedSharding) or (place.spec.unreduced, place.spec.reduced) == state:
        return place
    return place_of(place.update(spec=place.spec.update(unreduced=state[0], reduced=state[1])))


def in_memory(place: Any, aval: Any) -> Any:
    """The place of a result in the memory that its type says."""
    host = MemorySpace.Host
    if getattr(aval, "memory_space", None) is not host:
        return place_of(place.with_memory_kind(MemorySpace.Device.value)) if _in_host(place) else place
    if not isinstance(place, Sharding):
        place = SingleDeviceSharding(default_device() if place is None else place)
    return place_of(place.with_memory_kind(host.value))


def _types_in_memory(placing: Placing, places: Sequence[Any]) -> list[Any] | None:
    """The types of the results of a program that was traced for values in the device's memory, and is given some in the
    host's: these say where results lie. None for others. ValueError for operands in several memories.
    """
    host = MemorySpace.Host
    pairs = list(zip(placing.arguments, places, strict=True))
    if not any(_in_host(p) and types.memory_of(v.aval) is not host for v, p in pairs):
        return None
    jaxpr = placing.jaxpr
    variables = [*jaxpr.constvars, *jaxpr.invars]
    flat = inline(ClosedJaxpr(jaxpr.replace(constvars=[], invars=variables), []))
    in_host = {v for v, p in pairs if _in_host(p)}
    avals = [v.aval.update(memory_space=host) if v in in_host else v.aval for v in variables]
    with types.traced_without_types():
        return list(trace(lambda *xs: eval_jaxpr(flat.jaxpr, flat.consts, *xs), avals).out_avals)


def _in_host(place: Any) -> bool:
    return getattr(place, "memory_kind", None) == MemorySpace.Host.value


def check_devices(placing: Placing, places: tuple[Any, ...], name: str) -> None:
    """ValueError for arguments on incompatible devices."""
    mesh = current_mesh()
    _common_devices(placing, places, mesh if isinstance(mesh, Mesh) and not mesh.empty else None, name)


def _by_types(placing: Placing, places: Sequence[Any]) -> tuple[Any, ...] | None:
    """The places of results on a mesh with explicit axes, where types say them; None for other meshes, and programs
    that say themselves where values lie. ShardingTypeError where they are ambiguous.
    """
    meshes = [p.mesh for p in places if isinstance(p, NamedSharding) and AxisType.Explicit in p.mesh.axis_types]
    if not meshes or says_where(placing.closed):
        return None
    found = []
    for aval in typed_for(placing, places).out_avals:
        spec = aval.placing.spec if getattr(aval, "placing", None) is not None else PartitionSpec(*[None] * aval.ndim)
        found.append(place_of(NamedSharding(meshes[0], spec)))
    return tuple(found)


def typed_for(placing: Placing, places: Sequence[Any]) -> ClosedJaxpr:
    """The program, as one of its constants and arguments, with the types that say where arguments lie."""
    jaxpr = placing.jaxpr
    variables = [*jaxpr.constvars, *jaxpr.invars]
    lies = dict(zip(placing.arguments, places, strict=True))
    avals = [placed(v.aval, lies.get(v)) if isinstance(v.aval, ShapedArray) else v.aval for v in variables]
    closed = ClosedJaxpr(jaxpr.replace(constvars=[], invars=variables), [])
    if any(a is not v.aval for a, v in zip(avals, variables, strict=True)):
        closed = types.untyped(closed)  # of operands that had no type, or another, when the program was recorded
    flat = inline(closed)
    with types.traced_without_types() if len(flat.jaxpr.eqns) > 1 else nullcontext():
        return trace(lambda *xs: eval_jaxpr(flat.jaxpr, flat.consts, *xs), avals)


def _with_auto_axes(said: NamedSharding, found: Any) -> NamedSharding:
    """The place that a type says, cut also along those axes of other types that the rules find."""
    if not isinstance(found, NamedSharding) or found.mesh != said.mesh:
        return said
    from pullback.partition.propagate import further  # with meshes only: many modules

    mesh, ndim = said.mesh, max(len(said.spec), len(found.spec))
    auto = set(mesh.axis_names) - set(mesh.explicit_axes)
    cuts = zip(parts_of(said.spec, ndim), parts_of(found.spec, ndim), strict=True)
    parts = [further(names, more, auto) for names, more in cuts]
    return place_of(said.update(spec=said.spec.update(partitions=tuple(spec_of(parts, ndim, mesh)))))


def _common_devices(placing: Placing | None, places: Sequence[Any], mesh: Mesh | None, name: str) -> Any:
    """The devices that all of a program's committed arguments lie on; None if none is committed."""
    said: tuple[Any, str] | None = None
    texts = [(p, _argument_text(placing, k, p, name)) for k, p in enumerate(places) if p is not None]
    if mesh is not None:
        texts.append(
            (NamedSharding(mesh, PartitionSpec()), f"jit's context mesh with device ids {_ids(mesh)} on platform CPU")
        )
    for place, text in texts:
        if said is None:
            said = place, text
        elif in_order(said[0]) != in_order(place):
            raise incompatible(said[1], text)
    return None if said is None else said


def incompatible(one: str, other: str) -> ValueError:
    """The error for what lies on different devices."""
    return ValueError(f"Received incompatible devices for jitted computation. Got {one} and {other}")


def _ids(place: Any) -> list[int]:
    return [d.id for d in (place.devices.flat if isinstance(place, Mesh) else in_order(place))]


def _argument_text(placing: Placing | None, k: int, place: Any, name: str) -> str:
    aval = placing.arguments[k].aval.str_short() if placing is not None else "unknown shape"
    number = k if placing is None or placing.kept is None else placing.kept[k]
    names = None if placing is None else placing.jaxpr.debug_info.arg_names
    which = names[number] if names is not None and number < len(names) else number
    return f"argument {which} of {name} with shape {aval} and with device ids {_ids(place)} on platform CPU"


def _without_rules(places: Sequence[Any], mesh: Mesh | None, ndim: int) -> Any:
    found = next((p for p in places if p is not None), None)
    if isinstance(found, NamedSharding) and isinstance(found.mesh, Mesh):
        mesh = found.mesh
    elif found is not None:
        return found
    return None if mesh is None else place_of(NamedSharding(mesh, spec_of((), ndim, mesh)))


def spec_of(parts: Sequence[tuple[Any, ...]], ndim: int, mesh: Any) -> PartitionSpec:
    """The spec as JAX writes it: in full where types say all of it, else without Nones at its end."""
    entries = [None if not p else p[0] if len(p) == 1 else p for p in parts]
    if mesh.explicit_axes and all(a in mesh.explicit_axes for axes in parts for a in axes):
        return PartitionSpec(*entries, *[None] * (ndim - len(entries)))
    while entries and entries[-1] is None:
        entries.pop()
    return PartitionSpec(*entries)


def written_alike(place: Any, ndim: int, given: Sequence[tuple[Any, int]]) -> Any:
    """The place of a result, or that of the first argument of as many dimensions that says the same in other words, as
    P("x") and P("x", None) do: so shardings of a function's arguments and results are equal.
    """
    if not isinstance(place, NamedSharding) or place.mesh.explicit_axes:  # whose specs are written in full
        return place
    if PartitionSpec.UNCONSTRAINED in place.spec:
        return place
    for other, rank in given:
        if rank == ndim and isinstance(other, NamedSharding) and other.mesh is place.mesh:
            if other is place or _in_short(other) == _in_short(place):
                return other
    return place


def _in_short(place: NamedSharding) -> Any:
    parts = [names_of(part) for part in in_short(place.spec)]
    return parts, place.spec.unreduced, place.spec.reduced, place.memory_kind


class _Rules:
    """Where the results of a program lie: not committed (None), on a Device, or cut over a mesh."""

    def __init__(self, mesh: Mesh | None, common: tuple[Any, str] | None) -> None:
        self.mesh: Any = mesh
        self.common = common
        self.fixed = common is not None  # by arguments, or by a constraint: what lies elsewhere is an error
        self.device: Any = None
        if common is not None:
            self._take(common[0])

    def _take(self, place: Any) -> None:
        if isinstance(place, NamedSharding):
            same = self.mesh is not None and self.mesh.shape_tuple == place.mesh.shape_tuple
            self.mesh = self.mesh if same or (place.is_fully_replicated and self.mesh is not None) else place.mesh
        else:  # one device, maybe in another kind of memory
            self.device = place

    def results(self, placing: Placing, places: Sequence[Any]) -> tuple[Any, ...]:
        for sharding in _shardings_said(placing.jaxpr):
            text = f"sharding_constraint inside jit with device ids {_ids(sharding)} on platform CPU"
            if self.common is None:
                self.common = sharding, text
                self._take(place_of(sharding))
            elif in_order(self.common[0]) != in_order(sharding):
                raise incompatible(self.common[1], text)
        self.fixed = self.common is not None
        if self.mesh is not None:
            return self._over_mesh(placing, places)
        outs = self._jaxpr(placing.jaxpr, dict(zip(placing.arguments, places, strict=True)))
        return tuple(self.device if self.fixed else place for place in outs)

    def _over_mesh(self, placing: Placing, places: Sequence[Any]) -> tuple[Any, ...]:
        """As the pass that partitions programs finds it."""
        from pullback.partition import by_user, result_cuts  # with meshes only: many modules
        from pullback.partition.propagate import cut_by

        jaxpr, sizes = placing.jaxpr, dict(self.mesh.shape)
        variables = [*jaxpr.constvars, *jaxpr.invars]
        lies = dict(zip(placing.arguments, places, strict=True))
        cuts = [cut_by(lies.get(v), v.aval, sizes) for v in variables]
        with by_user.devices(self.mesh):
            outs = result_cuts(ClosedJaxpr(jaxpr.replace(constvars=[], invars=variables), []), cuts, sizes)
        if len(jaxpr.eqns) == 1 and jaxpr.eqns[0].primitive.name in _PARTS:
            outs = [_whole_where_resized(jaxpr.eqns[0], cut) for cut in outs]
        found = [place_of(NamedSharding(self.mesh, spec_of(cut, len(cut), self.mesh))) for cut in outs]
        said = _said_over_other_meshes(jaxpr, self.mesh)
        return tuple(
            place if isinstance(v, Literal) else said.get(v, place)
            for v, place in zip(jaxpr.outvars, found, strict=True)
        )

    def _jaxpr(self, jaxpr: Jaxpr, values: dict[Any, Any]) -> list[Any]:
        """The devices of the results, from those of the arguments: the first that any operand has."""

        def read(atom: Any) -> Any:
            return None if isinstance(atom, Literal) else values.get(atom)

        for eqn in jaxpr.eqns:
            operands = [read(a) for a in eqn.invars]
            found = next((v for v in operands if v is not None), None)
            if eqn.primitive.name == "device_put" and not self.fixed:
                (said,) = eqn.params["devices"]  # a Device says nothing inside of programs, as in JAX
                found = place_of(said) if isinstance(said, Sharding) else found
            outs = [found] * len(eqn.outvars)
            if (inner := _called(eqn)) is not None:
                outs = self._jaxpr(inner, dict(zip(inner.invars, operands[len(operands) - len(inner.invars) :])))
            values.update(zip(eqn.outvars, outs))
        return [read(a) for a in jaxpr.outvars]


_PARTS = ("slice", "dynamic_slice")


def _whole_where_resized(eqn: Any, cut: Any) -> Any:
    """The cut of a part that is taken by itself, as JAX's is, whose indexing outside of jit gathers."""
    before, after = eqn.invars[0].aval.shape, eqn.outvars[0].aval.shape
    return tuple(axes if n == m else () for axes, n, m in zip(cut, before, after, strict=True))


def _called(eqn: Any) -> Jaxpr | None:
    """The jaxpr that an equation is a call of."""
    if eqn.primitive.name not in CALLS:
        return None
    inner = jaxprs_in_params(eqn.params)
    return inner[0] if inner else None


CALLS = (
    "jit",
    "pjit",
    "closed_call",
    "core_call",
    "checkpoint",
    "remat",
    "custom_jvp_call",
    "custom_vjp_call",
    "remembered",
)


def shardings_said(eqn: Any) -> list[Sharding]:
    """The shardings that an equation itself names."""
    if eqn.primitive.name in CONSTRAINTS:
        said = said_by(eqn)
        return [said] if isinstance(said, Sharding) else []
    if eqn.primitive.name != "shard_map":
        return []
    mesh, specs = eqn.params["mesh"], (*eqn.params["in_specs"], *eqn.params["out_specs"])
    return [NamedSharding(mesh, spec) for spec in (PartitionSpec(), *specs)]


def _said_over_other_meshes(jaxpr: Jaxpr, mesh: Mesh) -> dict[Any, Any]:
    """Of results that a constraint lays over the same devices with other axes, as `out_shardings` may: their places."""
    found = {}
    for eqn in jaxpr.eqns:
        sharding = said_by(eqn)
        if not isinstance(sharding, NamedSharding) or PartitionSpec.UNCONSTRAINED in sharding.spec:
            continue
        other = sharding.mesh
        if other.shape_tuple != mesh.shape_tuple and other.size == mesh.size:
            if not isinstance(other, Mesh):
                other = Mesh(mesh.devices.reshape(other.axis_sizes), other.axis_names, axis_types=other.axis_types)
            found[eqn.outvars[0]] = place_of(sharding.update(mesh=other))
    return found


def _said_by_jit(jaxpr: Jaxpr) -> dict[Any, Any]:
    """Of results of which out_shardings say where over a mesh they lie: these places, in the words that were given."""
    found = {}
    for eqn in jaxpr.eqns:
        if eqn.primitive.name == "laid_out" and eqn.params["argument"] == "out_shardings":
            said = eqn.params["sharding"]
            if isinstance(said, NamedSharding) and isinstance(said.mesh, Mesh):
                if PartitionSpec.UNCONSTRAINED not in said.spec:  # as under vmap
                    found[eqn.outvars[0]] = place_of(said)
    return found


def _shardings_said(jaxpr: Jaxpr) -> list[Any]:
    """The shardings of constraints in a jaxpr and those inside, in order."""
    found = []
    for eqn in jaxpr.eqns:
        for sharding in shardings_said(eqn):
            if not (isinstance(sharding, NamedSharding) and not isinstance(sharding.mesh, Mesh)):
                found.append(sharding)
        for inner in jaxprs_in_params(eqn.params):
            found += _shardings_said(inner)
    return found
