"""Types of results along explicit axes: how each operation's results are cut follows from its operands, or is an error.

The rules are those of partitioning (rules/): what operands say of a factor, results have. Where they disagree, or a
result would need values of other devices, JAX wants to be told, by `out_sharding` or `reshard`: a ShardingTypeError.
Under `asked` (core/types.py), as in functions that were given `out_sharding`, such results are cut as these say.
"""

from __future__ import annotations

import itertools
import types as _types
from collections.abc import Sequence
from typing import Any

from pullback.core import types
from pullback.core.asked import asked_for, is_asked
from pullback.core.avals import ShapedArray, typed
from pullback.core.jaxpr import ClosedJaxpr
from pullback.core.types import LOOPS
from pullback.lax.products.dot import terms_of_product
from pullback.partition.factors import Axes, Cut, Sizes, extent, fitting, whole
from pullback.partition.propagate import factors_of
from pullback.partition.states import result_state
from pullback.sharding import AxisType, Mesh, NamedSharding, PartitionSpec
from pullback.sharding._current import current_mesh, retypings, typings
from pullback.sharding._specs import names_of, spec_in_full
from pullback.util.errors import ShardingTypeError

# Dimensions may change their size and stay cut, if the parts are equal.
_RESIZED = {
    *("slice", "dynamic_slice", "dynamic_update_slice", "pad", "concatenate", "rev", "split", "fft"),
    *("select_and_gather_add", "select_and_scatter_add"),
    *("reduce_window", "reduce_window_sum", "reduce_window_max", "reduce_window_min"),
}
# Reductions along dimensions that are made whole before, where they are cut.
_WHOLE_REDUCTIONS = ("argmax", "argmin", "reduce", "reduce_prod", "reduce_xor", "reduce_or", "reduce_and")
# What the host is given, it is given whole, and what it gives is whole.
_CALLBACKS = ("pure_callback", "io_callback", "debug_callback", "debug_print", "buffer_callback")
# Over manual axes, inside of shard_map: each operand becomes a result that is cut along explicit axes as it was.
_ALIKE = {
    *("psum", "psum_invariant", "pmax", "pmin", "pvary", "pcast", "ppermute", "pbroadcast"),
    *("all_gather", "all_gather_invariant", "reduce_scatter", "all_to_all"),
}
_CUMULATIVE = ("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp")
_OF_MATRICES = ("cholesky", "eig", "eigh", "lu", "qr", "schur", "svd", "triangular_solve", "tridiagonal_solve")


def placings(primitive: Any, in_avals: Sequence[Any], params: dict[str, Any], outs: Sequence[Any]) -> list[Any]:
    """A NamedSharding over explicit axes, or None, for each result; ShardingTypeError where it is ambiguous."""
    name = primitive.name
    if name in ("sharding_constraint", "laid_out"):
        return [_hinted(params["sharding"], in_avals[0])]
    if name == "reshard":
        return [_said(params["dst_sharding"], in_avals[0])]
    if name == "device_put":
        (place,), (aval,) = params["devices"], in_avals
        named = isinstance(place, NamedSharding)
        return [aval.placing if not named else (_said if place.mesh.explicit_axes else _hinted)(place, aval)]
    inner = _results_inside(primitive, params)
    if inner is not None and len(inner) >= len(outs):
        return [_of_stack(a, out) for a, out in zip(inner, outs)]
    mesh = _mesh(name, in_avals)
    if mesh is None or not outs:
        return [None] * len(outs)
    state = result_state(primitive, in_avals)
    try:
        cuts = _cuts(name, in_avals, params, outs, mesh, primitive)
    except ShardingTypeError:
        if is_asked():
            terms: frozenset = frozenset()
            if name == "dot_general":
                terms = terms_of_product(in_avals[0], in_avals[1], params["dimension_numbers"][0])
            return [_as_asked(mesh, out, terms) for out in outs]
        raise
    return [_in_state(name, mesh, cut, state) for cut in cuts]


def _in_state(name: str, mesh: Any, cut: Cut, state: Any) -> Any:
    """A result's sharding, None for what is whole and no term. What is chosen of a table by indices that are cut has a
    cotangent on each device, of which that of the table is the sum.
    """
    along = {axis for axes in cut for axis in axes}
    unreduced, reduced = state
    if reduced & along and name != "gather":
        raise ShardingTypeError(
            f"{name}: operands cannot be cut along axes that another is reduced over, here "
            f"{sorted(map(str, reduced & along))}; use jax.sharding.reshard on the one that is reduced"
        )
    reduced = reduced - along
    return NamedSharding(mesh, spec_in_full(cut, (unreduced, reduced))) if along or unreduced or reduced else None


def _as_asked(mesh: Any, out: Any, terms: frozenset) -> Any:
    """How an ambiguous result is cut: as the user says, if that fits, for so are its cotangents; else it is whole. It
    may be left to be summed over the axes along which devices have terms of it.
    """
    spec = asked_for()
    if isinstance(spec, PartitionSpec) and len(spec) + 1 == len(out.shape) and types.is_of_rule():
        spec = spec.update(partitions=(types.mapped_part(), *spec))  # rules of vmap put the mapped axis first
    if isinstance(spec, PartitionSpec) and spec.unreduced == terms and terms:
        spec = spec.update(partitions=(*spec, *[None] * (len(out.shape) - len(spec))))
    if not isinstance(spec, PartitionSpec) or len(spec) != len(out.shape) or spec.reduced:
        return None
    if spec.unreduced and spec.unreduced != terms:
        return None
    sizes, explicit = dict(mesh.shape), _explicit(mesh)
    cut = tuple(names_of(part) for part in spec)
    fits = all(n % extent(c, sizes) == 0 for n, c in zip(out.shape, cut))
    if not fits or any(a not in explicit for axes in cut for a in axes):
        return None
    return NamedSharding(mesh, spec_in_full(cut, (spec.unreduced, frozenset()))) if any(cut) or spec.unreduced else None


def _results_inside(primitive: Any, params: dict[str, Any]) -> list[Any] | None:
    """The types of the results of the program that an equation runs, if it runs one."""
    if primitive.name in LOOPS:
        return params[LOOPS[primitive.name]].out_avals
    programs = list(types.programs(params))
    if not programs or types.combines(primitive):
        return None
    found = programs[0]
    return found.out_avals if isinstance(found, ClosedJaxpr) else [a.aval for a in found.outvars]


def _of_stack(inner: Any, out: Any) -> Any:
    placing = getattr(inner, "placing", None)
    if placing is None or not isinstance(out, ShapedArray):
        return None
    if out.ndim == inner.ndim + 1:  # results of a scan for each step
        return placing.update(spec=placing.spec.update(partitions=(None, *placing.spec)))
    return placing if out.shape == inner.shape else None


def _hinted(sharding: Any, aval: Any) -> Any:
    """The operand's, of which a constraint says nothing, but that axes are not explicit any more."""
    if aval.placing is None or not isinstance(sharding, NamedSharding):
        return aval.placing
    other = sharding.mesh.axis_names == aval.placing.mesh.axis_names and not sharding.mesh.explicit_axes
    return None if other else aval.placing


def _said(sharding: Any, aval: Any) -> Any:
    """What a layout says; the operand's where it says nothing of explicit axes, but for axes that it says are not
    explicit any more.
    """
    if not isinstance(sharding, NamedSharding) or AxisType.Explicit not in sharding.mesh.axis_types:
        same = isinstance(sharding, NamedSharding) and aval.placing is not None
        return None if same and aval.placing.mesh.axis_names == sharding.mesh.axis_names else aval.placing
    mesh = sharding.mesh.abstract_mesh if isinstance(sharding.mesh, Mesh) else sharding.mesh
    explicit = _explicit(mesh)
    cut = fitting([tuple(a for a in names_of(p) if a in explicit) for p in sharding.spec], aval.shape, dict(mesh.shape))
    state = sharding.spec.unreduced, sharding.spec.reduced
    return NamedSharding(mesh, spec_in_full(cut, state)) if any(cut) or any(state) else None


def _explicit(mesh: Any) -> set[Any]:
    """The axes that are explicit in the mesh, and not said to be otherwise by the one in force."""
    now = current_mesh()
    axes = set(mesh.explicit_axes)
    return axes if now is None or now.shape_tuple != mesh.shape_tuple else axes & set(now.explicit_axes)


def _mesh(name: str, in_avals: Sequence[Any]) -> Any:
    meshes = {a.placing.mesh for a in in_avals if getattr(a, "placing", None) is not None}
    now = current_mesh()
    if now is not None and not now.axis_names:
        now = None
    # A mesh in force says of what types the axes are meant to be.
    if len({(m.shape_tuple, m.axis_types if now is None else ()) for m in meshes}) > 1:
        raise ValueError(
            f"{name}: Mesh for all inputs should be one, but operands lie on {', '.join(map(str, meshes))}; "
            "jax.device_put moves arrays from one mesh to another"
        )
    mesh = next(iter(meshes), None)
    if mesh is None or now is None:
        return mesh
    retyped = now.axis_types != mesh.axis_types and not now.manual_axes  # inside of shard_map values keep their types
    retyped = retyped and (mesh.shape_tuple, now.axis_types, mesh.axis_types) not in retypings | typings
    if now.shape_tuple != mesh.shape_tuple or retyped:
        aval = next(a for a in in_avals if getattr(a, "placing", None) is not None)
        raise ValueError(
            f"{name}: the context mesh should match the mesh of each input, but {aval.str_short()} lies on {mesh}, not "
            f"on {getattr(now, 'abstract_mesh', now)}; jax.device_put moves arrays from one mesh to another"
        )
    return mesh


def _cuts(name: str, in_avals: Any, params: dict[str, Any], outs: Any, mesh: Any, primitive: Any) -> list[Cut]:
    sizes, explicit = dict(mesh.shape), _explicit(mesh)
    cuts = [_cut_of(a, explicit) for a in in_avals]
    if not any(axes for cut in cuts for axes in cut) or name in _CALLBACKS:
        return [whole(len(a.shape)) for a in outs]
    if name in _WHOLE_REDUCTIONS:
        gone = {a % len(cuts[0]) for a in params["dimensions" if name == "reduce" else "axes"]}
        return [tuple(axes for d, axes in enumerate(cuts[0]) if d not in gone)] * len(outs)
    if name == "conv_general_dilated":
        return _convolved(in_avals, params, outs, mesh, primitive, cuts)
    if name == "clamp":  # as what is clamped, whatever its bounds are
        return [cuts[1]]
    if name == "select_n" and not types.is_of_rule():
        _check_cases(in_avals, cuts)
    if name in _ALIKE and [len(a.shape) for a in outs] == [len(cut) for cut in cuts]:
        return cuts
    if name.startswith("all_gather"):
        place = params["all_gather_dimension"] % len(outs[0].shape)
        return [(*cut[:place], (), *cut[place:]) for cut in cuts]
    if name == "stack" and types.is_strict():
        _check_alike(name, list(cuts))
    if name in _RESIZED:
        return _resized(name, in_avals, cuts, outs, sizes)
    return _by_factors(name, in_avals, params, outs, mesh, primitive, cuts)


def _by_factors(
    name: str, in_avals: Any, params: dict[str, Any], outs: Any, mesh: Any, primitive: Any, cuts: list[Cut]
) -> list[Cut]:
    """The cuts of results as the factors of the operation say."""
    sizes = dict(mesh.shape)
    eqn = _types.SimpleNamespace(
        primitive=primitive,
        params=params,
        invars=[_types.SimpleNamespace(aval=a) for a in in_avals],
        outvars=[_types.SimpleNamespace(aval=a) for a in outs],
    )
    factors = factors_of(eqn)
    shown = ", ".join(a.short() for a in in_avals)
    if factors is None:
        raise ShardingTypeError(
            _reshape_text(in_avals, outs)
            if name == "reshape"
            else f"{name} of {shown} has no rule for operands that are cut along explicit axes; use "
            "jax.sharding.reshard on them, or jax.sharding.auto_axes around it"
        )
    axes: dict[int, Axes] = {}
    ones = False
    for aval, cut, dims in zip(in_avals, cuts, factors.operands, strict=True):
        said = factors.of_cut(cut, dims, sizes)
        kept = factors.cut_of(said, dims)
        if any(left != axes and n != 1 for left, axes, n in zip(kept, cut, aval.shape, strict=True)):
            raise ShardingTypeError(_not_cut(name, aval, params, in_avals, outs))
        ones = ones or kept != cut
        for factor, found in said.items():
            if axes.setdefault(factor, found) != found:
                raise ShardingTypeError(_conflict(name, in_avals, cuts, params))
    if name == "dot_general":
        _check_contraction(in_avals, cuts, params)
    if name == "gather" and types.is_strict():  # cut indices choose of operands that are cut with them
        of_operand = {f for dim in factors.operands[0] for f in dim}
        if any(axes.get(f) for dim in factors.operands[1] for f in dim if f not in of_operand):
            raise ShardingTypeError(_not_cut(name, in_avals[1], params, in_avals, outs))
    if name == "reshape":
        allowed = _is_one_change(in_avals[0].shape, outs[0].shape, cuts[0]) and all(
            not axes.get(f) or axes.get(s) for dims in factors.results[0] for s, f in itertools.pairwise(dims)
        )
    else:
        allowed = factors.fits(axes, sizes)
    if not allowed:
        raise ShardingTypeError(_reshape_text(in_avals, outs))
    results = [factors.cut_of(axes, dims) for dims in factors.results]
    if ones:
        results = _on_ones(name, in_avals, params, outs, cuts, results)
    for cut, out in zip(results, outs, strict=True):
        used = [a for axes_ in cut for a in axes_]
        if len(set(used)) < len(used):
            illegal = ",".join(f"{n}@{'+'.join(map(str, a))}" if a else str(n) for n, a in zip(out.shape, cut))
            raise ShardingTypeError(
                f"{name} operation with inputs: {shown} produces an illegally sharded result: "
                f"{out.untyped.short().split('[')[0]}[{illegal}]"
            )
    return results


def _cut_of(aval: Any, explicit: set[Any]) -> Cut:
    if getattr(aval, "placing", None) is None:
        return whole(len(aval.shape))
    return tuple(tuple(a for a in names_of(part) if a in explicit) for part in aval.placing.spec)


def _specs(cuts: Sequence[Cut]) -> str:
    return ", ".join(f"{tuple(spec_in_full(cut))}" for cut in cuts)


def _conflict(name: str, in_avals: Any, cuts: Sequence[Cut], params: dict[str, Any]) -> str:
    if name == "dot_general":
        summed, batch = params["dimension_numbers"]

        def specs(numbers: Any) -> list[tuple[Any, ...]]:
            return [tuple(spec_in_full(cut)[d] for d in dims) for cut, dims in zip(cuts, numbers, strict=True)]

        left, right = specs(batch)
        if left != right:
            return f"dot_general: batch dimensions must be cut alike, but are by {left} in lhs, by {right} in rhs"
        left, right = specs(summed)
        return f"dot_general: contracting dimensions must be cut alike, but are by {left} in lhs, by {right} in rhs"
    said = [cut for cut, a in zip(cuts, in_avals, strict=True) if len(a.shape)]
    return f"{name} got incompatible shardings for broadcasting: {_specs(said)}."


def _check_cases(in_avals: Any, cuts: Sequence[Cut]) -> None:
    """ShardingTypeError unless the cases of a choice, and what chooses, are cut the same way.

    What is whole may be a scalar that was broadcast, or a mask that was counted: it takes any.
    """
    shown = [f"{a.placing}" if a.placing is not None else a.short() for a in in_avals]
    which, *cases = (cut if any(cut) else None for cut in cuts)
    found = {cut for cut in cases if cut is not None}
    if len(found) > 1:
        raise ShardingTypeError(f"select cases must have the same shardings, got [{', '.join(shown[1:])}].")
    if which is not None and found and which not in found:
        raise ShardingTypeError(
            f"select `which` lies as {shown[0]}, and the cases as {shown[1]}; give it their layout, or a scalar"
        )


def _check_contraction(in_avals: Any, cuts: Sequence[Cut], params: dict[str, Any]) -> None:
    (lhs_sum, rhs_sum), _ = params["dimension_numbers"]
    left, right = ([cut[d] for d in dims] for cut, dims in zip(cuts, (lhs_sum, rhs_sum), strict=True))
    if any(a and b for a, b in zip(left, right, strict=True)):
        error = ShardingTypeError(
            "dot_general: both operands are cut along contracting dimensions, so that the layout of the result is "
            "ambiguous; say it by `out_sharding`, here "
            f"lhs_contracting_spec={tuple(spec_in_full(tuple(left)))} and "
            f"rhs_contracting_spec={tuple(spec_in_full(tuple(right)))}"
        )
        error.add_note(f"The operands are {in_avals[0].short()} and {in_avals[1].short()}.")
        raise error


def _not_cut(name: str, aval: Any, params: dict[str, Any], in_avals: Any, outs: Any) -> str:
    if name == "reshape":
        return _reshape_text(in_avals, outs)
    if name in _CUMULATIVE:
        return (
            f"{name}: the operand, {aval.str_short(False)}, is cut along axis {params['axis']}, over which elements "
            "are accumulated; use jax.sharding.reshard"
        )
    if name == "tile":
        along = next(
            d
            for d, axes in enumerate(_cut_of(aval, set(aval.placing.mesh.axis_names)))
            if axes and params["reps"][d] != 1
        )
        return (
            f"tile: {aval.str_short(False)} cannot be sharded on dimension {along}, along which reps={params['reps']} "
            "repeats it; use jax.sharding.reshard"
        )
    if name == "order_statistics":
        return f"medians and quantiles take a dimension that is whole, got {aval.short()}; use jax.sharding.reshard"
    if name == "top_k":
        return (
            f"top_k: {aval.str_short(False)} is cut along the axis whose largest elements are wanted; use "
            "jax.sharding.reshard"
        )
    if name == "unstack":
        return f"unstack: {aval.short()} is cut along axis {params['axis']}, which is undone; use jax.sharding.reshard"
    if name in _OF_MATRICES:
        return (
            f"{name}: operand {next(k for k, a in enumerate(in_avals) if a is aval)} is {aval.short()}, cut along "
            f"dimensions of its matrices by {aval.placing.spec}; only those of a batch may be. Use jax.sharding.reshard"
        )
    if name == "sort":
        return (
            f"sort: an operand is cut along dimension {params['dimension']}, which is sorted: it lies as "
            f"{aval.placing}; use jax.sharding.reshard"
        )
    if name == "gather":
        return (
            "indexing: the layout of the result does not follow from those of the operand and of the indices, or takes "
            "communication; say it by `.at[...].get(out_sharding=)`. Got "
            f"operand={in_avals[0]!r}, indices={in_avals[1]!r}"
        )
    if name.startswith("scatter"):
        return (
            "update at indices: the layout of the result does not follow from those of the operands, or takes "
            "communication; say it by `.at[...].set/add/mul/...(out_sharding=)`. Got "
            f"operand={in_avals[0]!r}"
        )
    return f"{name} needs dimensions whole that are cut in its operand {aval.short()}; use jax.sharding.reshard"


def _reshape_text(in_avals: Any, outs: Any) -> str:
    return (
        f"This reshape is not supported without `out_sharding`: {in_avals[0].str_short(False)} has dimensions cut that "
        f"become others in shape {tuple(outs[0].shape)}; say by it how the result lies"
    )


def _is_one_change(before: Sequence[Any], after: Sequence[Any], cut: Cut) -> bool:
    """Whether a reshape splits one dimension, or joins neighbours of which the first are cut, and does nothing else; or
    moves dimensions of size 1 only.
    """
    if _moves_ones(before, after):
        return True
    first, left, made = _change(before, after)
    if made > 1:
        return left == 1
    joined = [bool(axes) for axes in cut[first : first + left]]
    return joined == sorted(joined, reverse=True)


def _moves_ones(before: Sequence[Any], after: Sequence[Any]) -> bool:
    return [n for n in before if n != 1] == [n for n in after if n != 1]


def _change(before: Sequence[Any], after: Sequence[Any]) -> tuple[int, int, int]:
    """Where the first dimension is that a reshape changes, of how many it makes how many."""
    first = next(k for k, (n, m) in enumerate(itertools.zip_longest(before, after)) if n != m)
    last = 0
    while before[-1 - last] == after[-1 - last] and last + first < min(len(before), len(after)) - 1:
        last += 1
    return first, len(before) - first - last, len(after) - first - last


def _on_ones(name: str, in_avals: Any, params: dict[str, Any], outs: Any, cuts: list[Cut], results: list[Cut]) -> Any:
    """The cuts of results with axes along which dimensions of size 1 are cut, as axes of size 1 may: on what they are
    broadcast to, or joined with; elsewhere they are left away.
    """
    found = [list(cut) for cut in results]
    for aval, cut in zip(in_avals, cuts, strict=True):
        if name == "reshape":
            if not _moves_ones(aval.shape, outs[0].shape):
                first, left, made = _change(aval.shape, outs[0].shape)
                if made == 1:
                    found[0][first] = tuple(itertools.chain(*cut[first : first + left]))
            continue
        if name == "broadcast_in_dim":
            places = list(params["broadcast_dimensions"])
        elif all(len(out.shape) == len(cut) for out in outs):
            places = list(range(len(cut)))
        else:
            continue
        for k, out in enumerate(outs):
            for d, place in enumerate(places[: len(cut)]):
                free = not found[k][place] and not {a for axes in found[k] for a in axes} & set(cut[d])
                if aval.shape[d] == 1 and out.shape[place] != 1 and free:
                    found[k][place] = cut[d]
    return [tuple(cut) for cut in found]


def _convolved(
    in_avals: Any, params: dict[str, Any], outs: Any, mesh: Any, primitive: Any, cuts: list[Cut]
) -> list[Cut]:
    """The cut of a convolution: along the positions of the image as it was, else by its factors.

    The kernel, and the image's features, must be whole where nobody says how the result lies.
    """
    lhs, _, out = params["dimension_numbers"]
    if types.is_strict() and (any(cuts[1]) or cuts[0][lhs[1]]):
        raise ShardingTypeError(
            "conv_general_dilated: the layout of the result is clear only where the kernel is whole, and the image "
            "along its features; say it by `out_sharding`. Got "
            f"lhs={in_avals[0].str_short(False)} and rhs={in_avals[1].str_short(False)}"
        )
    positions = dict(zip(lhs[2:], out[2:], strict=True))
    if not any(cuts[0][d] for d in positions):
        return _by_factors("conv_general_dilated", in_avals, params, outs, mesh, primitive, cuts)
    rest = tuple(() if d in positions else axes for d, axes in enumerate(cuts[0]))
    image = typed(in_avals[0], NamedSharding(mesh, spec_in_full(rest)), in_avals[0].vma)
    avals = [image, *in_avals[1:]]
    found = list(_by_factors("conv_general_dilated", avals, params, outs, mesh, primitive, [rest, *cuts[1:]])[0])
    for d, to in positions.items():
        found[to] = cuts[0][d]
        if outs[0].shape[to] % extent(found[to], dict(mesh.shape)):
            raise ShardingTypeError(
                f"conv_general_dilated: {in_avals[0].short()} gives {outs[0].short()}, whose dimension {to} "
                f"does not divide into {extent(found[to], dict(mesh.shape))} parts"
            )
    return [tuple(found)]


def _check_alike(name: str, cuts: Sequence[Cut]) -> None:
    if any(cut != cuts[0] for cut in cuts):
        raise ShardingTypeError(
            f"{name}: operands must be cut alike, but are by {_specs(cuts)}; use jax.sharding.reshard"
        )


def _resized(name: str, in_avals: Any, cuts: Sequence[Cut], outs: Any, sizes: Sizes) -> list[Cut]:
    """The operands' cut, whose parts must be equal in the results, too."""
    if name == "dynamic_update_slice":
        sizes_differ = [n != m for n, m in zip(in_avals[0].shape, in_avals[1].shape, strict=True)]
        if any(a and (differ if not b else a != b) for a, b, differ in zip(cuts[0], cuts[1], sizes_differ)) or (
            any(b and a != b for a, b in zip(cuts[0], cuts[1]))
        ):
            raise ShardingTypeError(
                "dynamic_update_slice: the operand and 'update' must be cut over the mesh alike, got "
                f"{in_avals[0].str_short(False)} and {in_avals[1].str_short(False)}; use jax.sharding.reshard"
            )
    arrays = [(a, c) for a, c in zip(in_avals, cuts, strict=True) if len(a.shape) == len(in_avals[0].shape)]
    if name.startswith(("pad", "reduce_window", "dynamic")):
        arrays = arrays[:1]
    elif name.startswith("select_and"):  # along windows of one element, if these are all that the sizes say
        arrays = [(a, c) for a, c in arrays if any(c)][:1]
    said = [c for _, c in arrays if any(c) or types.is_strict()]
    cut = said[0] if said else arrays[0][1]
    _check_alike(name, said)
    doing = {"slice": "slicing", "pad": "padding"}.get(name, name)
    for out in outs:
        for n, axes in zip(out.shape, cut):
            if n % extent(axes, sizes):
                kind = ValueError if name == "fft" else ShardingTypeError
                raise kind(
                    f"{doing}: {in_avals[0].short()} gives shape {tuple(out.shape)}, where {n} elements cannot be cut "
                    f"into {extent(axes, sizes)} equal parts along ({','.join(map(str, axes))}), as they are before; "
                    "use jax.sharding.reshard"
                )
    return [cut] * len(outs)


__all__ = ["placings"]
