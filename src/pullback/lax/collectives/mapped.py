"""shard_map as an equation: a jaxpr of one device's parts, over the axes of a mesh.

    shard_map(f, in_specs, out_specs)(xs)  =>  shard_map[jaxpr={f on parts} mesh in_specs out_specs] xs

Its jaxpr has types that say which values vary along the axes (core/types.py), where `check_vma` is set. Transformations
are those of the jaxpr: what they add to operands and results (tangents, residuals, cotangents, mapped axes) has specs
like that from which it comes. Over the devices of one process the compiler takes its vectorized form
(collectives/vectorized.py), over those of several the jaxpr itself, as the program of one device.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from typing import Any

from pullback.core import ClosedJaxpr, UndefinedPrimal, Zero, eval_jaxpr, extend_axis_env, hooks, trace
from pullback.core.avals import ShapedArray, expect_varying, typed
from pullback.core.jaxpr import JaxprEqn
from pullback.core.lowering import Inline
from pullback.core.primitive import NoRule
from pullback.core.types import CheckedAxis, vma_of
from pullback.lax.collectives.sums import psum_invariant_p, psum_p
from pullback.lax.collectives.vectorized import vectorized, vectorized_jaxpr
from pullback.lax.records.families import *
from pullback.sharding import AxisType, Mesh, NamedSharding, PartitionSpec
from pullback.sharding._current import use_abstract_mesh
from pullback.sharding._specs import all_names_of, names_of, parts_of, spec_in_full
from pullback.transforms.batching import batch_jaxpr_at
from pullback.transforms.call import call_effects
from pullback.transforms.jvp import jvp_jaxpr
from pullback.transforms.partial_eval import dce_jaxpr, partial_eval_jaxpr, used_inputs
from pullback.transforms.transpose import transpose_jaxpr

__all__ = ["shard_map_p"]


def axes_of(mesh: Any, names: frozenset) -> list[Any]:
    """Mesh axes in the order of the mesh."""
    return [axis for axis in mesh.axis_names if axis in names]


@contextlib.contextmanager
def inside(mesh: Any, axes: frozenset, check: bool) -> Iterator[None]:
    """Where a function of parts is traced: collectives may name the axes, and types say what varies along them."""
    if check:
        expect_varying()
    with contextlib.ExitStack() as stack:
        for axis in axes_of(mesh, axes):
            stack.enter_context(extend_axis_env(axis, dict(mesh.shape)[axis]))
            if check:
                stack.enter_context(extend_axis_env(CheckedAxis(axis), dict(mesh.shape)[axis]))
        manual = mesh.abstract_mesh.update_axis_types(dict.fromkeys(axes, AxisType.Manual))
        stack.enter_context(use_abstract_mesh(manual))
        yield


def _inside(params: dict[str, Any]) -> Any:
    return inside(params["mesh"], params["newly_manual_axes"], params["check_vma"])


def part_type(aval: Any, spec: PartitionSpec, mesh: Any, axes: frozenset, check: bool) -> Any:
    """The type of one device's part of an array."""
    sizes = dict(mesh.shape)
    counts = [math.prod(sizes[n] for n in names) for names in parts_of(spec, aval.ndim)]
    vma = vma_of(aval)
    if check:
        vma = vma.union(all_names_of(spec))
    part = ShapedArray(tuple(n // c for n, c in zip(aval.shape, counts)), aval.dtype, aval.weak_type)
    placing = aval.placing
    if placing is not None:
        kept = [tuple(n for n in names if n not in axes) for names in parts_of(placing.spec, aval.ndim)]
        manual = mesh.abstract_mesh.update_axis_types(dict.fromkeys(axes, AxisType.Manual))
        state = placing.spec.unreduced - axes, placing.spec.reduced - axes
        placing = NamedSharding(manual, spec_in_full(kept, state)) if any(kept) or any(state) else None
    return typed(part, placing, vma)


def _whole_type(part: Any, spec: PartitionSpec, mesh: Any, axes: frozenset) -> Any:
    sizes = dict(mesh.shape)
    names = parts_of(spec, part.ndim)
    shape = tuple(n * math.prod(sizes[a] for a in along) for n, along in zip(part.shape, names))
    kinds = dict(zip(mesh.axis_names, mesh.axis_types, strict=True))
    inner = parts_of(PartitionSpec() if part.placing is None else part.placing.spec, part.ndim)
    explicit = [
        (*(a for a in along if kinds[a] is AxisType.Explicit), *rest) for along, rest in zip(names, inner, strict=True)
    ]
    placing = NamedSharding(mesh.abstract_mesh, spec_in_full(explicit)) if any(explicit) else None
    return typed(ShapedArray(shape, part.dtype, part.weak_type), placing, vma_of(part) - axes)


def _whole_types(*_avals: Any, jaxpr: ClosedJaxpr, mesh: Any, out_specs: Any, newly_manual_axes: Any, **_: Any) -> list:
    return [_whole_type(a, s, mesh, newly_manual_axes) for a, s in zip(jaxpr.out_avals, out_specs, strict=True)]


def _evaluate(*args: Any, **params: Any) -> list[Any]:
    mesh = params["mesh"]
    if isinstance(mesh, Mesh) and mesh.is_multi_process:
        return hooks.evaluate_between(shard_map_p, args, params)
    return vectorized(params, eager=True)(*args)


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
    jaxpr: ClosedJaxpr = params["jaxpr"]
    nonzeros = [type(t) is not Zero for t in tangents]
    with _inside(params):
        jaxpr_dot, nonzeros_out = jvp_jaxpr(jaxpr, nonzeros)
    ins, outs = params["in_specs"], params["out_specs"]
    found = shard_map_p.bind(
        *primals,
        *[t for t in tangents if type(t) is not Zero],
        **params
        | {
            "jaxpr": jaxpr_dot,
            "in_specs": (*ins, *_where(ins, nonzeros)),
            "out_specs": (*outs, *_where(outs, nonzeros_out)),
        },
    )
    dots = iter(found[len(outs) :])
    types = _whole_types(**params)
    return found[: len(outs)], [
        next(dots) if nz else Zero(a.to_tangent_aval()) for nz, a in zip(nonzeros_out, types, strict=True)
    ]


def _where(items: Sequence[Any], chosen: Sequence[bool]) -> list[Any]:
    return [item for item, c in zip(items, chosen, strict=True) if c]


# ---- partial evaluation


def _partial_eval(interpreter: Any, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """Known results and residuals now; the rest is recorded as an equation on residuals and unknown arguments."""
    unknown = tuple(map(interpreter.is_unknown, args))
    closed: ClosedJaxpr = params["jaxpr"]
    known, rest, unknown_out, places, residual_specs = closed.cached(
        ("shard_map split", unknown, params["in_specs"]), lambda: _split(params, unknown)
    )
    known_args = [a for a, unk in zip(args, unknown) if not unk]
    known_specs = tuple(_where(params["out_specs"], [not unk for unk in unknown_out]))
    made = [s for s, place in zip(residual_specs, places) if place >= 0]
    outs = shard_map_p.bind(
        *known_args,
        **params
        | {
            "jaxpr": known,
            "in_specs": tuple(_where(params["in_specs"], [not unk for unk in unknown])),
            "out_specs": (*known_specs, *made),
        },
    )
    residuals = [known_args[~place] if place < 0 else outs[place] for place in places]
    later = params | {
        "jaxpr": rest,
        "in_specs": (*residual_specs, *_where(params["in_specs"], unknown)),
        "out_specs": tuple(_where(params["out_specs"], unknown_out)),
    }
    operands = [*residuals, *(a for a, unk in zip(args, unknown) if unk)]
    recorded = iter(interpreter.emit(shard_map_p, operands, later, _whole_types(**later)))
    computed = iter(outs)
    return [next(recorded) if unk else next(computed) for unk in unknown_out]


def _split(params: dict[str, Any], unknown: tuple[bool, ...]) -> tuple[Any, ...]:
    """(known, rest, unknown_out, places, specs): known arguments -> known results and residuals; residuals and unknown
    arguments -> unknown results.

    places: where each residual is; k: result k of `known`, ~k: its argument k. specs: those of the residuals. A number
    that varies becomes an array of one element, since a dimension is needed that is cut.
    """
    closed, mesh = params["jaxpr"], params["mesh"]
    with _inside(params):
        known, rest, unknown_out, _ = partial_eval_jaxpr(closed, unknown)
        in_specs = _where(params["in_specs"], [not unk for unk in unknown])
        count = len(unknown_out) - sum(unknown_out)
        kept: list[Any] = []
        places: list[int] = []
        specs: list[PartitionSpec] = []
        numbers: list[bool] = []
        for atom in known.jaxpr.outvars[count:]:
            is_argument = atom in known.jaxpr.invars
            if is_argument:
                places.append(~known.jaxpr.invars.index(atom))
                specs.append(in_specs[~places[-1]])
            else:
                places.append(count + len(kept))
                kept.append(atom)
                varies = vma_of(atom.aval) & params["newly_manual_axes"]
                along = axes_of(mesh, varies if params["check_vma"] else params["newly_manual_axes"])
                specs.append(PartitionSpec(tuple(along)) if along else PartitionSpec())
            numbers.append(not is_argument and not atom.aval.shape and specs[-1] != PartitionSpec())
        known = known.replace(jaxpr=known.jaxpr.replace(outvars=[*known.jaxpr.outvars[:count], *kept]))
        if any(numbers):
            known, rest = _with_numbers(known, rest, places, numbers)
    return known, rest, unknown_out, places, specs


def _with_numbers(
    known: ClosedJaxpr, rest: ClosedJaxpr, places: Sequence[int], numbers: Sequence[bool]
) -> tuple[ClosedJaxpr, ClosedJaxpr]:
    """The halves, where residuals that are numbers go from one to the other as arrays of one element."""
    raised = {place for place, number in zip(places, numbers) if number}

    def first(*args: Any) -> list[Any]:
        outs = eval_jaxpr(known.jaxpr, known.consts, *args)
        return [lax.reshape(y, (1,)) if k in raised else y for k, y in enumerate(outs)]

    def second(*args: Any) -> list[Any]:
        given = [lax.reshape(x, ()) if n else x for x, n in zip(args, [*numbers, *[False] * len(args)])]
        return eval_jaxpr(rest.jaxpr, rest.consts, *given)

    avals = [
        typed(a.update(shape=(1,)), None, vma_of(a)) if n else a
        for a, n in zip(rest.in_avals, [*numbers, *[False] * len(rest.in_avals)])
    ]
    return trace(first, known.in_avals, known.jaxpr.debug_info), trace(second, avals, rest.jaxpr.debug_info)


# ---- the other transformations


def _transpose(outs_bar: Sequence[Any], *args: Any, **params: Any) -> list[Any]:
    closed, ins, outs = params["jaxpr"], params["in_specs"], params["out_specs"]
    linear = [type(a) is UndefinedPrimal for a in args]
    nonzero = [type(bar) is not Zero for bar in outs_bar]
    with _inside(params):
        backwards, nonzero_out = transpose_jaxpr(closed, linear, outs_bar)
        bar_specs = _where(outs, nonzero)
        found_specs = _where(_where(ins, linear), nonzero_out)
        if params["check_vma"]:
            backwards = _with_varying_bars(backwards, params, bar_specs)
        else:
            backwards = _with_sums(backwards, params, bar_specs, found_specs)
    found = iter(
        shard_map_p.bind(
            *[a for a, lin in zip(args, linear) if not lin],
            *[bar for bar in outs_bar if type(bar) is not Zero],
            **params
            | {
                "jaxpr": backwards,
                "in_specs": (*_where(ins, [not lin for lin in linear]), *bar_specs),
                "out_specs": tuple(found_specs),
            },
        )
    )
    nonzeros = iter(nonzero_out)
    return [
        (next(found) if next(nonzeros) else Zero(a.aval.to_cotangent_aval())) if lin else None
        for a, lin in zip(args, linear)
    ]


def _with_varying_bars(backwards: ClosedJaxpr, params: dict[str, Any], bar_specs: Sequence[Any]) -> ClosedJaxpr:
    """A result that is the same on some devices, but is cut over them, has a cotangent on each: theirs are added up."""
    mesh, axes = params["mesh"], params["newly_manual_axes"]
    first = len(backwards.in_avals) - len(bar_specs)
    lacking = [
        tuple(axes_of(mesh, axes.intersection(all_names_of(spec)) - vma_of(aval)))
        for aval, spec in zip(backwards.in_avals[first:], bar_specs, strict=True)
    ]
    if not any(lacking):
        return backwards

    def run(*args: Any) -> list[Any]:
        bars = [
            psum_invariant_p.bind(bar, axes=names)[0] if names else bar
            for bar, names in zip(args[first:], lacking, strict=True)
        ]
        return eval_jaxpr(backwards.jaxpr, backwards.consts, *args[:first], *bars)

    given, bars = backwards.in_avals[:first], backwards.in_avals[first:]
    varying = [typed(a, a.placing, vma_of(a).union(names)) for a, names in zip(bars, lacking, strict=True)]
    return trace(run, [*given, *varying], backwards.jaxpr.debug_info)


def _with_sums(
    backwards: ClosedJaxpr, params: dict[str, Any], bar_specs: Sequence[Any], found_specs: Sequence[Any]
) -> ClosedJaxpr:
    """Where types do not say what varies: a result that is said to be the same on some devices hands its cotangent to
    them in equal shares, and an argument that is the same on some has the sum of theirs.
    """
    mesh, axes = params["mesh"], params["newly_manual_axes"]

    def others(spec: Any) -> tuple[Any, ...]:
        return tuple(axes_of(mesh, axes.difference(all_names_of(spec))))

    def run(*args: Any) -> list[Any]:
        values = list(args)
        for k, spec in enumerate(bar_specs, start=len(values) - len(bar_specs)):
            devices = math.prod(dict(mesh.shape)[n] for n in others(spec))
            if devices > 1:
                values[k] = lax.div(values[k], constant(values[k], devices))
        found = eval_jaxpr(backwards.jaxpr, backwards.consts, *values)
        return [
            psum_p.bind(y, axes=rest, axis_index_groups=None)[0] if (rest := others(spec)) else y
            for y, spec in zip(found, found_specs, strict=True)
        ]

    return trace(run, backwards.in_avals, backwards.jaxpr.debug_info)


def _batch(axis: Any, args: Sequence[Any], dims: Sequence[int | None], **params: Any) -> tuple[list[Any], list[Any]]:
    mesh, specs = params["mesh"], (*params["in_specs"], *params["out_specs"])
    used = {name for spec in specs for name in all_names_of(spec)}
    spmd = axis.spmd if isinstance(axis.spmd, tuple) else () if axis.spmd is None else (axis.spmd,)
    if taken := [n for n in spmd if n in used]:
        raise ValueError(f"shard_map under vmap: spmd_axis_name {taken[0]!r} is used already by the specs {specs}")
    cut = spmd if axis.placing is None else names_of(axis.placing.spec[0])  # explicit axes cut the mapped one
    along = tuple(n for n in cut if n in params["newly_manual_axes"] and n not in used)
    if unknown := [n for n in spmd if n not in mesh.axis_names]:
        raise KeyError(f"shard_map: vmap's spmd_axis_name {unknown[0]!r} is not among the axes {mesh.axis_names}")
    size, rest = divmod(axis.size, math.prod(dict(mesh.shape)[n] for n in along))
    if rest:
        raise ValueError(
            f"shard_map under vmap: the mapped axis has {axis.size} elements, which the mesh axes {along} "
            f"(spmd_axis_name) of {mesh} do not divide"
        )
    left = [n for n in cut if n not in params["newly_manual_axes"]]
    placing = None
    if axis.placing is not None and left:
        placing = axis.placing.update(spec=PartitionSpec(left[0] if len(left) == 1 else tuple(left)))
    inner = axis._replace(size=size, placing=placing)
    own = None if not along else along if len(along) > 1 else along[0]

    def at(spec: PartitionSpec, dim: int | None) -> PartitionSpec:
        if dim is None:
            return spec
        parts = (*spec.partitions, *[None] * (dim - len(spec.partitions)))
        return PartitionSpec(*parts[:dim], own, *parts[dim:])

    closed: ClosedJaxpr = params["jaxpr"]
    with _inside(params):
        if along and params["check_vma"]:
            closed = _varying(closed, [d is not None for d in dims], frozenset(along))
        jaxpr, mapped_out = batch_jaxpr_at(closed, inner, tuple(dims))
    dims_out = {k: dim for k, dim, _ in mapped_out}
    changed = {
        "jaxpr": jaxpr,
        "in_specs": tuple(map(at, params["in_specs"], dims)),
        "out_specs": tuple(at(spec, dims_out.get(k)) for k, spec in enumerate(params["out_specs"])),
    }
    return shard_map_p.bind(*args, **params | changed), list(map(dims_out.get, range(len(params["out_specs"]))))


def _varying(closed: ClosedJaxpr, chosen: Sequence[bool], axes: frozenset) -> ClosedJaxpr:
    """The jaxpr, some of whose arguments vary along more axes."""
    avals = [typed(a, a.placing, a.vma | axes) if c else a for a, c in zip(closed.in_avals, chosen, strict=True)]
    return trace(lambda *xs: eval_jaxpr(closed.jaxpr, closed.consts, *xs), avals, closed.jaxpr.debug_info)


def _dce(eqn: JaxprEqn, used: list[bool]) -> JaxprEqn:
    """The equation without the results that nobody needs, nor the arguments that only those needed."""
    closed: ClosedJaxpr = eqn.params["jaxpr"]

    def make() -> tuple[ClosedJaxpr, list[bool]]:
        inner = dce_jaxpr(closed.jaxpr, used)
        kept = used_inputs(inner)
        return ClosedJaxpr(inner.replace(invars=_where(inner.invars, kept)), closed.consts), kept

    smaller, kept = closed.cached(("dce", tuple(used)), make)
    if all(kept) and all(used):
        return eqn
    specs = {
        "in_specs": tuple(_where(eqn.params["in_specs"], kept)),
        "out_specs": tuple(_where(eqn.params["out_specs"], used)),
    }
    return eqn.replace(
        invars=_where(eqn.invars, kept),
        outvars=_where(eqn.outvars, used),
        params=eqn.params | {"jaxpr": smaller} | specs,
    )


shard_map_p = Primitive(
    "shard_map",
    doc="A function of one device's parts, over the axes of a mesh.",
    abstract_eval=_whole_types,
    reference=NoRule("it takes several devices"),
    evaluate=_evaluate,
    jvp=_jvp,
    transpose=_transpose,
    batch=NoRule("it is batched with its axis"),
    batch_axis=_batch,
    partial_eval=_partial_eval,
    dce=_dce,
    effects=call_effects,
    lower=Inline(vectorized_jaxpr),
    multiple_results=True,
    traits={"own types"},
    register=False,
)
shard_map_p.scope = _inside
