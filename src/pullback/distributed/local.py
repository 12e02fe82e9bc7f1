"""The program of one device, from one on whole arrays and the places of its arguments.

Before: c = mul a b; d = shard_map[jaxpr={...} in_specs=(P('i'),)] c, with a on P('i') and b everywhere
After:  b' = the part of b; c = mul a b'; d = the equations of the jaxpr, with collectives between devices

A value is here by its part (it has a NamedSharding), or whole on every device. What maps a function stays local, and
all else as the pass that partitions programs decides (pullback.partition). Programs that speak of several meshes, or
have effects, it does not take: there elementwise operations and reductions stay local, and everything else gets its
operands whole. Collectives over the axes of a mesh become native ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pullback import lax
from pullback.compiler.graph.simplify.inline import inline
from pullback.compiler.graph.simplify.mesh_collectives import entry, mesh_collectives
from pullback.compiler.graph.simplify.on_mesh import MeshAxes
from pullback.core import ClosedJaxpr, DebugInfo, ShapedArray, eval_jaxpr, trace
from pullback.core.jaxpr import Literal, jaxprs_in_params
from pullback.core.types import CONSTRAINTS, said_by, untyped
from pullback.distributed.arrays import is_whole_here
from pullback.lax.collectives.mapped import shard_map_p
from pullback.lax.collectives.native import collective, numbered
from pullback.partition import partition
from pullback.partition.by_user import devices
from pullback.partition.factors import whole
from pullback.partition.propagate import cut_by
from pullback.partition.write import WATCHING
from pullback.runtime.arrays.result_places import spec_of
from pullback.runtime.programs.partitioned import Layout, arguments_read, result_shardings
from pullback.sharding import Mesh, NamedSharding, PartitionSpec
from pullback.sharding._specs import names_of

_REDUCTIONS = {"reduce_sum": "sum", "reduce_prod": "prod", "reduce_max": "max", "reduce_min": "min"}


def concerns(closed: ClosedJaxpr) -> bool:
    """Whether a program has to do with several processes by what it says itself."""
    return closed.cached("several processes", lambda: (_first_sharding(closed) is not None,))[0]


def _first_sharding(closed: Any) -> NamedSharding | None:
    for eqn in getattr(closed, "jaxpr", closed).eqns:
        if eqn.primitive is shard_map_p and eqn.primitive.lower.body(eqn) is None:
            return NamedSharding(eqn.params["mesh"], PartitionSpec())
        said = said_by(eqn)
        if isinstance(said, NamedSharding) and isinstance(said.mesh, Mesh) and said.mesh.is_multi_process:
            return said
        for inner in jaxprs_in_params(eqn.params):
            if (found := _first_sharding(inner)) is not None:
                return found
    return None


class Local:
    """The program of one device: `closed`; `places` of results (None: whole), and of all as they are `shown`; the
    `mesh` that numbers devices.
    """

    def __init__(self, closed: ClosedJaxpr, places: list[Any], mesh: Mesh, shown: list[Any] | None = None) -> None:
        self.closed, self.places, self.mesh = closed, places, mesh
        everywhere = NamedSharding(mesh, PartitionSpec())
        self.shown = [everywhere if p is None else p for p in places] if shown is None else shown


def localized(
    closed: ClosedJaxpr,
    places: Sequence[NamedSharding | None],
    name: str,
    given: Sequence[NamedSharding | None] | None = None,
) -> Local:
    """The program of one device, for arguments at these places (None: whole on every device). `given` says it of those
    that are whole on a mesh, too: results that lie as an argument does say so in its words.

    ValueError for places on different devices.
    """
    said = next((p for p in places if p is not None), None) or _first_sharding(closed)
    assert said is not None
    mesh: Any = said.mesh
    if _is_of(mesh, closed, places):
        return _partitioned(closed, places, mesh, places if given is None else given)
    worker = _Localizer(mesh, name)
    types = [
        a if p is None else ShapedArray(p.shard_shape(a.shape), a.dtype, a.weak_type)
        for a, p in zip(closed.in_avals, places, strict=True)
    ]
    flat = inline(closed)
    found: list[Any] = []

    def run(*args: Any) -> list[Any]:
        outs = worker.run(flat, [(x, p) for x, p in zip(args, places)])
        found[:] = [p for _, p in outs]
        return [x for x, _ in outs]

    local = trace(run, types, DebugInfo("jit", name))
    return Local(numbered(inline(local)), found, mesh)


def _is_of(mesh: Mesh, closed: ClosedJaxpr, places: Sequence[NamedSharding | None]) -> bool:
    """Whether all that is said of places is of one mesh, and the program can be partitioned over it."""
    if closed.jaxpr.effects or any(p is not None and p.mesh != mesh for p in places):
        return False
    return all(m in (mesh, mesh.abstract_mesh) for m in _meshes(closed.jaxpr))


def _meshes(jaxpr: Any) -> Iterator[Any]:
    for eqn in jaxpr.eqns:
        if eqn.primitive is shard_map_p:
            yield eqn.params["mesh"]
        elif eqn.primitive.name in CONSTRAINTS:
            yield getattr(said_by(eqn), "mesh", None)
        for inner in jaxprs_in_params(eqn.params):
            yield from _meshes(inner)


def _called(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program that one calls which does nothing else, as those are that are bound by `jit`."""
    jaxpr = closed.jaxpr
    if len(jaxpr.eqns) != 1 or jaxpr.eqns[0].primitive.name != "jit":
        return closed
    (eqn,) = jaxpr.eqns
    same = list(eqn.invars) == list(jaxpr.invars) and list(eqn.outvars) == list(jaxpr.outvars)
    return _called(eqn.params["jaxpr"]) if same else closed


def _partitioned(
    closed: ClosedJaxpr, places: Sequence[NamedSharding | None], mesh: Mesh, given: Sequence[NamedSharding | None]
) -> Local:
    """By the pass that partitions programs over a mesh."""
    sizes = dict(mesh.shape)
    cuts = [
        whole(len(a.shape)) if p is None else cut_by(p, a, sizes) for a, p in zip(closed.in_avals, places, strict=True)
    ]
    with devices(mesh):
        made = partition(closed, cuts, sizes, in_terms=False)  # arrays of several processes are their sums
    found = [NamedSharding(mesh, spec_of(cut, len(cut), mesh)) for cut in made.outs]
    called = _called(closed)
    given = [p if read else None for p, read in zip(given, arguments_read(called), strict=True)]
    shown = result_shardings(called, made, Layout(mesh, tuple(cuts), tuple(given)))
    local = numbered(inline(mesh_collectives(made.closed, sizes)))
    return Local(local, [None if p.is_fully_replicated else p for p in found], mesh, shown)


Value = tuple[Any, Any]  # a traced value, and the NamedSharding that it is a part by; None: it is whole


class _Localizer:
    """Runs a program on parts, equation by equation, where it is not partitioned as a whole (`_is_of` says when)."""

    def __init__(self, mesh: Mesh, name: str) -> None:
        self.devices = list(mesh.devices.flat)
        self.number = {d: k for k, d in enumerate(self.devices)}
        self.name = name

    def run(self, closed: ClosedJaxpr, args: Sequence[Value]) -> list[Value]:
        env: dict[Any, Value] = dict(zip(closed.jaxpr.constvars, [(c, None) for c in closed.consts]))
        env.update(zip(closed.jaxpr.invars, args))

        def read(atom: Any) -> Value:
            return (atom.val, None) if isinstance(atom, Literal) else env[atom]

        for eqn in closed.eqns:
            outs = self.equation(eqn, [read(a) for a in eqn.invars])
            env.update(zip(eqn.outvars, outs))
        return [read(a) for a in closed.jaxpr.outvars]

    def equation(self, eqn: Any, operands: list[Value]) -> list[Value]:
        primitive, params = eqn.primitive, eqn.params
        if primitive is shard_map_p:
            return self.mapped(operands, **params)
        if primitive.name in CONSTRAINTS:
            return [self.constrained(operands[0], said_by(eqn))]
        parts = [v for v in operands if v[1] is not None]
        if parts:
            if "elementwise" in primitive.traits:
                return self.elementwise(eqn, operands)
            if primitive.name in _REDUCTIONS and len(operands) == 1:
                return [self.reduced(eqn, *operands[0])]
        arrays = [self.whole(v) for v in operands]
        if primitive.name in WATCHING:  # what all devices have, one of them shows
            first = entry(np.arange(len(self.devices), dtype=np.int32)[:, None])[0]

            def shown(*xs: Any) -> list[Any]:
                return list(primitive.bind(*xs, **params))

            lax.cond(lax.eq(first, np.int32(0)), shown, lambda *_: list[Any](), *arrays)
            return []
        outs = primitive.bind(*arrays, **params)
        return [(y, None) for y in outs] if primitive.multiple_results else [(outs, None)]

    def elementwise(self, eqn: Any, operands: list[Value]) -> list[Value]:
        shape = eqn.outvars[0].aval.shape
        place = next((p for (_, p), a in zip(operands, eqn.invars) if p is not None and a.aval.shape == shape), None)
        aligned = [
            self.whole(v) if place is None or a.aval.shape != shape else self.part(v, place)
            for v, a in zip(operands, eqn.invars)
        ]
        outs = eqn.primitive.bind(*aligned, **eqn.params)
        return [(y, place) for y in (outs if eqn.primitive.multiple_results else [outs])]

    def reduced(self, eqn: Any, x: Any, place: NamedSharding) -> Value:
        axes = [a % x.ndim for a in eqn.params["axes"]]
        partial = eqn.primitive.bind(x, **eqn.params)
        spec = [*place.spec, *[None] * (x.ndim - len(place.spec))]
        over = [n for d in axes for n in names_of(spec[d])]
        if over:
            groups = [[self.number[d] for d in g] for g in self.groups(place.mesh, over)]
            partial = collective("all_reduce", partial, groups, combine=_REDUCTIONS[eqn.primitive.name])
        rest = place.update(spec=PartitionSpec(*[p for d, p in enumerate(spec) if d not in axes]))
        return partial, None if rest.is_fully_replicated else rest

    def groups(self, mesh: Any, names: Sequence[Any]) -> list[list[Any]]:
        flat = list(mesh.devices.flat)
        return [[flat[i] for i in group] for group in MeshAxes(mesh.shape).groups(names)]

    def constrained(self, value: Value, sharding: Any) -> Value:
        if not isinstance(sharding, NamedSharding) or not isinstance(sharding.mesh, Mesh):
            return value
        sharding = self.checked(sharding)
        ndim = value[0].ndim
        parts = [
            *[None if p is PartitionSpec.UNCONSTRAINED else p for p in sharding.spec],
            *[None] * (ndim - len(sharding.spec)),
        ]
        if any(p is PartitionSpec.UNCONSTRAINED for p in sharding.spec):
            sharding = sharding.update(spec=PartitionSpec(*parts))
        shape = self.shape(value)
        if is_whole_here(sharding, shape):
            return self.whole(value), None
        return self.part(value, sharding), sharding

    def checked(self, sharding: NamedSharding) -> NamedSharding:
        if set(sharding._devices) != set(self.devices):
            here, there = (sorted(d.id for d in ds) for ds in (self.devices, sharding._devices))
            raise ValueError(
                f"Received incompatible devices for jitted computation. Got arguments of {self.name} with device ids "
                f"{here} on platform CPU and a sharding with device ids {there} on platform CPU"
            )
        return sharding

    # values, whole and in parts

    def shape(self, value: Value) -> tuple[int, ...]:
        x, place = value
        shape = np.shape(x) if not hasattr(x, "shape") else x.shape
        return shape if place is None else tuple(n * c for n, c in zip(shape, _counts(place, len(shape))))

    def numbers(self, place: NamedSharding, ndim: int) -> np.ndarray:
        """[device, dimension]: the number of the device's part."""
        table = np.zeros((len(self.devices), ndim), np.int32)
        for device, numbers in place._numbers(ndim):
            table[self.number[device]] = numbers
        return table

    def whole(self, value: Value) -> Any:
        """The value on every device."""
        x, place = value
        if place is None:
            return x
        self.checked(place)
        counts = _counts(place, x.ndim)
        table = self.numbers(place, x.ndim)
        flat = np.ravel_multi_index(tuple(table.T), counts) if x.ndim else np.zeros(len(self.devices), int)
        copies: dict[int, list[int]] = {}
        for device, part in enumerate(flat):
            copies.setdefault(int(part), []).append(device)
        groups = [[copies[part][k] for part in sorted(copies)] for k in range(len(copies[0]))]
        y = lax.reshape(collective("all_gather", x, groups), (*counts, *x.shape))
        order = [k for d in range(x.ndim) for k in (d, x.ndim + d)]
        return lax.reshape(lax.transpose(y, order), tuple(n * c for n, c in zip(x.shape, counts)))

    def part(self, value: Value, place: NamedSharding) -> Any:
        """The part of the value that belongs to the device."""
        if value[1] is not None and value[1].is_equivalent_to(place, value[0].ndim):
            return value[0]
        self.checked(place)
        x = self.whole(value)
        counts = _counts(place, x.ndim)
        steps = [n // c for n, c in zip(x.shape, counts)]
        starts = self.numbers(place, x.ndim) * np.asarray(steps, np.int32)
        row = entry(starts) if any(c > 1 for c in counts) else None
        for d, (count, step) in enumerate(zip(counts, steps)):
            if count > 1:
                assert row is not None
                x = lax.dynamic_slice_in_dim(x, row[d], step, d)
        return x

    def mapped(
        self, operands: list[Value], *, jaxpr: ClosedJaxpr, mesh: Mesh, in_specs: Any, out_specs: Any, **_: Any
    ) -> list[Value]:
        if list(mesh.devices.flat) != self.devices:
            self.checked(NamedSharding(mesh, PartitionSpec()))
            raise NotImplementedError(
                f"{self.name}: meshes that have the same devices in another order, in one program, are not supported"
            )
        parts = [self.part(v, NamedSharding(mesh, s)) for v, s in zip(operands, in_specs, strict=True)]
        body = mesh_collectives(untyped(jaxpr), dict(mesh.shape))
        outs = eval_jaxpr(body.jaxpr, body.consts, *parts)
        found = []
        for y, spec in zip(outs, out_specs, strict=True):
            place = NamedSharding(mesh, spec)
            shape = self.shape((y, place))
            value = (y, None if place.is_fully_replicated else place)
            found.append((self.whole(value), None) if value[1] is not None and is_whole_here(place, shape) else value)
        return found


def _counts(place: NamedSharding, ndim: int) -> list[int]:
    return [place._count(p) for p in place.spec] + [1] * (ndim - len(place.spec))
