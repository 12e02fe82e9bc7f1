"""Programs whose values are cut over the devices of a mesh: what of a call's arguments says so, and the run.

Arrays are whole in the memory of the machine; devices get their parts as `stacks.py` says.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from pullback.compiler.graph.simplify.inline import inline
from pullback.core.jaxpr import ClosedJaxpr, Jaxpr, Literal, jaxprs_in_params
from pullback.core.types import said_by
from pullback.partition import Cut, Partitioned, partition
from pullback.partition.by_user import devices
from pullback.partition.factors import extent, whole
from pullback.partition.propagate import cut_by, cut_or_whole, propagate
from pullback.partition.report import Collective, collectives
from pullback.runtime.arrays.arrays import dressed, is_plain, words_of
from pullback.runtime.arrays.placement import Placing, is_placed, place_of
from pullback.runtime.arrays.result_places import (
    check_meshes,
    in_memory,
    is_over_other_types,
    shardings_said,
    spec_of,
    written_alike,
)
from pullback.runtime.eager import checks
from pullback.runtime.programs.compiler import compile_for_devices
from pullback.runtime.programs.stacks import Stack
from pullback.sharding import AbstractMesh, Mesh, NamedSharding, PartitionSpec, Sharding
from pullback.sharding._current import current_mesh
from pullback.sharding._specs import in_short, state_of
from pullback.util import config, dtypes
from pullback.util.record import NamedTuple
from pullback.util.switches import switches


class Layout(NamedTuple):
    """How a call is to be partitioned: the mesh, the cut of each argument (None: as suits), and how the arguments that
    are read say it."""

    mesh: Mesh
    cuts: tuple[Cut | None, ...]
    given: tuple[Any, ...] = ()

    @property
    def sizes(self) -> dict[Any, int]:
        """Axis -> size."""
        return dict(self.mesh.shape)


def layout_of(closed: ClosedJaxpr, places: Sequence[Any], committed: Sequence[Any] | None = None) -> Layout | None:
    """How a program is partitioned whose arguments lie there (None: not committed); None if nothing is cut.

    `committed`: where arguments lay before they were laid out so.

    A mesh of several processes is not for this one alone (pullback.distributed). Programs with effects, references, or
    symbolic sizes, and those that speak of several meshes, are not partitioned.
    """
    if not switches.partition or config.config.jax_disable_jit or switches.interpret or checks.is_active():
        return None
    said = _said(closed)
    read = arguments_read(closed)
    places = [p if r else None for p, r in zip(places, read, strict=True)]
    named = [s for s in (*places, *said) if isinstance(s, NamedSharding) and isinstance(s.mesh, Mesh)]
    if not named or any(isinstance(p, Sharding) and not isinstance(p, NamedSharding) for p in places):
        return None
    check_meshes(Placing(closed), places, current_mesh())
    mesh: Any = named[0].mesh
    sizes = dict(mesh.shape)
    for a in said:
        if isinstance(a, NamedSharding) and isinstance(a.mesh, AbstractMesh) and a.mesh.size not in (1, mesh.size):
            raise ValueError(
                f"{closed.jaxpr.debug_info.func_name} speaks of a mesh of {a.mesh.size} devices, {a.mesh}, but its "
                f"arguments and the mesh in force are on {mesh.size}"
            )
    if mesh.size == 1 or mesh.is_multi_process or any(s.mesh.shape != mesh.shape or s.mesh != mesh for s in named):
        return None
    if any(not isinstance(s, NamedSharding) for s in said):
        return None
    if any(isinstance(s, NamedSharding) and not set(s.mesh.axis_names) <= set(sizes) for s in said):
        return None
    if closed.jaxpr.effects or not all(map(_is_plain, (*closed.in_avals, *closed.out_avals))):
        return None
    cuts = tuple(
        cut_by(p, aval, sizes) if isinstance(p, NamedSharding) else None
        for p, aval in zip(places, closed.in_avals, strict=True)
    )
    cut_anywhere = any(axes for cut in cuts for axes in cut or ()) or any(
        not s.is_fully_replicated for s in (*said, *places) if isinstance(s, NamedSharding)
    )
    given = tuple(
        p if isinstance(p, NamedSharding) and r else None for p, r in zip(committed or places, read, strict=True)
    )
    return Layout(mesh, cuts, given) if cut_anywhere else None


def _is_plain(aval: Any) -> bool:
    shape = getattr(aval, "shape", None)
    return shape is not None and all(type(n) is int for n in shape) and aval.dtype != dtypes.float0


def arguments_read(closed: ClosedJaxpr) -> list[bool]:
    """For each argument whether results depend on it, or have a type that says where on its mesh they lie."""
    return closed.cached("arguments read", lambda: _read(closed.jaxpr))


def _read(jaxpr: Jaxpr) -> list[bool]:
    used = {a for a in jaxpr.outvars if not isinstance(a, Literal)}
    for eqn in reversed(jaxpr.eqns):
        if eqn.effects or not used.isdisjoint(eqn.outvars):
            used.update(a for a in eqn.invars if not isinstance(a, Literal))
    typed = any(getattr(a.aval, "placing", None) is not None for a in jaxpr.outvars)
    return [v in used or (typed and getattr(v.aval, "placing", None) is not None) for v in jaxpr.invars]


def _said(closed: ClosedJaxpr) -> list[Any]:
    """The shardings that a program names."""
    return closed.cached("shardings said", lambda: _shardings(closed.jaxpr))


def _shardings(jaxpr: Jaxpr) -> list[Any]:
    found = []
    for eqn in jaxpr.eqns:
        found += shardings_said(eqn)
        for inner in jaxprs_in_params(eqn.params):
            found += _shardings(inner)
    return found


def inspected(closed: ClosedJaxpr, layout: Layout | None) -> list[tuple[Callable, Any]]:
    """(callback, sharding) of each value of a program whose sharding is asked for; None: it lies on one device."""
    flat = inline(closed)
    asked = [e for e in flat.eqns if e.primitive.name == "inspect_sharding"]
    if not asked:
        raise NotImplementedError("inspect_array_sharding: inside of loops and branches it is not supported")
    if layout is None:
        return [(e.params["callback"], None) for e in asked]
    known = propagate(flat.jaxpr, layout.cuts, layout.sizes)
    found = []
    for eqn in asked:
        cut = cut_or_whole(known.get(eqn.outvars[0]), eqn.outvars[0].aval)
        found.append((eqn.params["callback"], NamedSharding(layout.mesh, spec_of(cut, len(cut), layout.mesh))))
    return found


def partitioned(closed: ClosedJaxpr, layout: Layout) -> Partitioned:
    """One device's program; made once."""
    key = "partitioned", layout.mesh, layout.cuts
    with devices(layout.mesh):
        return closed.cached(key, lambda: partition(closed, layout.cuts, layout.sizes))


def compile_partitioned(
    closed: ClosedJaxpr, layout: Layout, name: str, donated: Sequence[int] = ()
) -> tuple[Callable, tuple[int, ...] | None]:
    """(callable on the kept arrays, their numbers; None: all)."""
    made = partitioned(closed, layout)
    program = compile_for_devices(made.closed, layout.sizes, (), name)
    kept = program.kept
    numbers = tuple(range(len(made.ins))) if kept is None else kept
    terms_in, terms_out = made.terms
    ins = [Stack(closed.in_avals[k], made.ins[k], layout.sizes, terms_in[k]) for k in numbers]
    outs = [Stack(a, cut, layout.sizes, terms) for a, cut, terms in zip(closed.out_avals, made.outs, terms_out)]
    shardings = [place_of(s) for s in result_shardings(closed, made, layout)]
    run = program.on_devices(
        layout.mesh.size,
        [x.is_mapped if x.parts is None else x.parts for x in ins],
        [y.is_mapped for y in outs],
        shardings,
        [y.aval if y.lies_so else y.stacked for y in outs],
    )
    given = [k for k, n in enumerate(numbers) if n in donated]  # what the program does not read stays, as in JAX
    gone = [k for k in given if _is_taken_over(ins[k], outs)]
    kinds = [None if is_plain(a.dtype) else a.dtype for a in closed.out_avals]
    return _Run(run, ins, outs, shardings, kinds, gone), kept


class OneDevice(NamedTuple):
    """What each device runs of a partitioned program, and on what of its arguments."""

    closed: ClosedJaxpr
    inputs: list[Any]  # stacks of the devices' parts, and what all devices take whole
    mapped: tuple[bool, ...]  # which of them are stacks
    size: int  # the number of devices
    collectives: list[Collective]


def on_one_device(closed: ClosedJaxpr, layout: Layout, arrays: Sequence[Any]) -> OneDevice:
    """One device's program with exchanges for collectives."""
    from pullback.compiler.graph.simplify.collectives import exchange_collectives

    made = partitioned(closed, layout)
    each = zip(closed.in_avals, made.ins, made.terms[0], strict=True)
    stacks = [Stack(aval, cut, layout.sizes, terms) for aval, cut, terms in each]
    inputs = [stack.of(words_of(x)) for stack, x in zip(stacks, arrays, strict=True)]
    mapped = tuple(stack.is_mapped for stack in stacks)
    return OneDevice(
        exchange_collectives(made.closed, layout.sizes), inputs, mapped, layout.mesh.size, collectives(made)
    )


def result_shardings(closed: ClosedJaxpr, made: Partitioned, layout: Layout) -> list[Any]:
    """Where the results of a partitioned program say that they lie."""
    makers: dict[Any, Any] = {}
    by_jit = {e.outvars[0] for e in closed.eqns if e.params.get("argument") == "out_shardings"}
    in_full = set()  # what users said of results is written as they did; of the rest, without Nones at its end
    for eqn in closed.eqns:
        if (said := said_by(eqn)) is not None:
            makers[eqn.outvars[0]] = said
            if eqn.outvars[0] in by_jit or layout.mesh.explicit_axes:
                in_full.add(eqn.outvars[0])
        elif eqn.primitive.name == "shard_map":
            specs = eqn.params["out_specs"]
            if layout.mesh.are_all_axes_explicit:  # types say it in full
                specs = [
                    s.update(partitions=(*s, *[None] * (v.aval.ndim - len(s)))) for s, v in zip(specs, eqn.outvars)
                ]
            places = [NamedSharding(eqn.params["mesh"], s) for s in specs]
            makers.update(zip(eqn.outvars, places, strict=True))
            in_full.update(eqn.outvars if layout.mesh.explicit_axes else ())
    found = []
    for atom, cut in zip(closed.jaxpr.outvars, made.outs, strict=True):
        said = None if isinstance(atom, Literal) else makers.get(atom)
        typed = getattr(atom.aval, "placing", None)
        if is_over_other_types(said, layout.mesh) and cut_by(said, atom.aval, layout.sizes) == cut:
            found.append(said)
            continue
        if typed is not None and layout.mesh.are_all_axes_explicit and typed.mesh == layout.mesh.abstract_mesh:
            as_given = (
                isinstance(said, NamedSharding)
                and said.mesh == layout.mesh
                and tuple(said.spec) == tuple(typed.spec)[: len(said.spec)]
            )
            found.append(said if as_given else NamedSharding(layout.mesh, typed.spec))  # which the type says in full
            continue
        if (
            isinstance(said, NamedSharding)
            and said.mesh == layout.mesh
            and cut_by(said, atom.aval, layout.sizes) == cut
            and all(extent(axes, layout.sizes) == said._count(part) for axes, part in zip(cut, said.spec))
        ):
            if not any(part is said.spec.UNCONSTRAINED for part in said.spec):
                if atom not in in_full and is_plain(atom.aval.dtype):
                    said = said.update(spec=in_short(said.spec))
                found.append(said)
                continue
        if typed is None and said is None and layout.mesh.are_all_axes_explicit:
            cut = whole(len(cut))  # types say all, however parts were computed
        spec = spec_of(cut, len(cut), layout.mesh)
        if not is_plain(atom.aval.dtype):  # of keys JAX says it in full
            spec = PartitionSpec(*spec, *[None] * (len(cut) - len(spec)))
        unreduced, reduced = state_of(atom.aval)
        found.append(NamedSharding(layout.mesh, spec.update(unreduced=unreduced, reduced=reduced)))
    given = list(zip(layout.given, [len(a.shape) for a in closed.in_avals]))
    return [
        s if v in by_jit else written_alike(in_memory(s, v.aval), len(v.aval.shape), given)
        for s, v in zip(found, closed.jaxpr.outvars, strict=True)
    ]


class _Run:
    """A partitioned program on whole arrays."""

    def __init__(
        self,
        run: Any,
        ins: list[Stack],
        outs: list[Stack],
        shardings: list[Any],
        kinds: list[Any],
        gone: list[int],
    ) -> None:
        self.run, self.ins, self.outs = run, ins, outs
        self.shardings, self.kinds, self.gone = shardings, kinds, gone

    def __call__(self, arrays: Sequence[Any]) -> list[Any]:
        given = [words_of(x) for x in arrays]
        given = [x if stack.parts else stack.of(x) for stack, x in zip(self.ins, given, strict=True)]
        results = self.run(given)
        found = [stack.joined(y, s) for stack, y, s in zip(self.outs, results, self.shardings, strict=True)]
        for k in self.gone:
            if is_placed(arrays[k]) and not arrays[k].is_deleted():  # else it was copied to the devices
                arrays[k].delete()
        return [y if kind is None else dressed(y, kind) for y, kind in zip(found, self.kinds, strict=True)]


def _is_taken_over(given: Stack, outs: Sequence[Stack]) -> bool:
    """Whether results may have the memory of a donated argument: not if parts of those of its type are of other
    sizes.
    """
    alike = [y for y in outs if (y.aval.shape, y.aval.dtype) == (given.aval.shape, given.aval.dtype)]
    return not alike or any(_parts(y) == _parts(given) for y in alike)


def _parts(stack: Stack) -> int:
    return math.prod(extent(axes, stack.sizes) for axes in stack.cut)
