"""vmap: a function of one element becomes a function of arrays of elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from pullback._ext import _core
from pullback.api._arguments import check_callable, checked_leaves, flatten_result, leaf_paths, named_after
from pullback.api.vmappable import has_vmappable, map_over, spec_types
from pullback.core import avals, typeof
from pullback.core.avals import typed
from pullback.core.references import Entrance
from pullback.core.types import cut_as, type_of
from pullback.sharding import NamedSharding, PartitionSpec
from pullback.sharding._specs import all_names_of, names_of
from pullback.transforms.batching import AxisData, move_batch_axis, run_batched
from pullback.util.pytree import flatten_axes, keystr, tree_flatten, tree_flatten_with_path, tree_unflatten
from pullback.util.static import is_hashable
from pullback.util.tracebacks import api_boundary

P = ParamSpec("P")
R = TypeVar("R")


def vmap(
    fun: Callable[P, R],
    in_axes: Any = 0,
    out_axes: Any = 0,
    axis_name: Any = None,
    axis_size: int | None = None,
    spmd_axis_name: Any = None,
    sum_match: bool = False,
) -> Callable[P, R]:
    """Map `fun` over axes of its arguments, all elements at once.

    in_axes: an integer, None (not mapped), or a tuple with one entry an argument, each a tree prefix of it; keyword
    arguments are mapped over axis 0. out_axes likewise for the result. With `sum_match`, a mapped output whose out_axes
    is None is summed over the mapped axis. ValueError if mapped sizes disagree, an axis is out of range, or an output
    that is mapped shall not be; TypeError for axes that are no integers.
    """
    check_callable("vmap", fun)
    if not is_hashable(spmd_axis_name):
        raise TypeError(f"vmap: argument 'spmd_axis_name' must be a name or a tuple of them, got {spmd_axis_name!r}")
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    if not isinstance(in_axes, (int, tuple, type(None))):
        raise TypeError(
            "vmap: in_axes must be an integer, None or a tuple with one entry for each positional argument, got "
            f"{in_axes!r}"
        )
    check_axes_tree("in_axes", in_axes)
    check_axes_tree("out_axes", out_axes)

    def axes_of(tree):
        axes = _axes_of_leaves("vmap in_axes", tree if in_axes == 0 else tree.children()[0], in_axes)
        return axes + [0] * (tree.num_leaves - len(axes))

    def _with_references(references, fun, tree, axes):
        """The call with the references' values as arguments; what they are afterwards is a result."""
        through = references.through(lambda *leaves: (lambda a, k: fun(*a, **k))(*tree_unflatten(tree, leaves)))
        mapped = [axes[n] for n in references.cells]
        mapped_fun = vmap(
            _core.named_after(through, fun), tuple(axes), (out_axes, mapped), axis_name, axis_size, spmd_axis_name
        )
        out, after = mapped_fun(*references.values)
        references.leave(after)
        return out

    @api_boundary
    def vmap_f(*args, **kwargs):
        if isinstance(in_axes, tuple) and len(in_axes) != len(args):
            raise ValueError(
                "vmap: the tuple in_axes must have one entry for each positional argument of the call, got "
                f"len(in_axes)={len(in_axes)}, len(args)={len(args)}"
            )
        if has_vmappable((args, kwargs)):

            def of_arrays(fun, in_axes, out_axes):
                return vmap(fun, in_axes, out_axes, axis_name, axis_size, spmd_axis_name, sum_match)

            return map_over(of_arrays, fun, in_axes, out_axes, axis_size, args, kwargs)
        try:
            leaves, tree = checked_leaves("vmap", "argument ", (args, kwargs), lambda: leaf_paths(fun, args, kwargs))
            axes = axes_of(tree)
        except TypeError:  # what is not mapped may be anything
            given, tree = tree_flatten((args, kwargs))
            axes = axes_of(tree)
            references = Entrance(given, [n for n, a in enumerate(axes) if a is None])
            if references.cells:
                return _with_references(references, fun, tree, axes)
            if None not in axes:
                raise
            mapped = tree_unflatten(tree, [0 if a is None else leaf for leaf, a in zip(given, axes)])
            leaves, _ = checked_leaves("vmap", "argument ", mapped, lambda: leaf_paths(fun, args, kwargs))
        dims = [
            None if a is None else _canonical(leaf, a, i, fun, args, kwargs)
            for i, (leaf, a) in enumerate(zip(leaves, axes))
        ]
        size = _mapped_size(fun, leaves, dims, axis_size, args, kwargs)
        if None in dims:  # numbers stay numbers
            given = tree_flatten((args, kwargs))[0]
            leaves = [x if dim is None else leaf for leaf, dim, x in zip(leaves, dims, given)]
        out_tree: Any = None

        def flat(*values):
            nonlocal out_tree
            new_args, new_kwargs = tree_unflatten(tree, values)
            outs, out_tree = flatten_result(fun(*new_args, **new_kwargs), fun, "vmap")
            return outs

        data = AxisData(axis_name, size, spmd_axis_name, placing=_mapped_placing(leaves, dims, spmd_axis_name))
        outs, found = run_batched(flat, data, leaves, dims)
        wanted = _axes_of_leaves("vmap out_axes", out_tree, out_axes)
        placed = _along_out_axes(outs, found, wanted, data, sum_match, out_tree)
        return tree_unflatten(out_tree, placed)

    return named_after(vmap_f, fun)


def _along_out_axes(outs, found, wanted, data: AxisData, sum_match: bool, out_tree) -> list[Any]:
    """The results, whose mapped axes (None: not mapped) are `found`, with these where out_axes want them."""
    results = []
    for k, (out, dim, axis) in enumerate(zip(outs, found, wanted)):
        if dim is not None and axis == dim:
            results.append(out)
            continue
        if axis is None:
            if dim is not None and sum_match:
                out = out.sum(dim)
            elif dim is not None:
                path = keystr(tree_flatten_with_path(tree_unflatten(out_tree, outs))[0][k][0])
                raise ValueError(
                    f"at vmap out_axes{path}, got axis spec None but output was batched on axis {dim}: it depends "
                    "on mapped arguments. Give it an axis in out_axes, or reduce it in the function."
                )
            results.append(out)
            continue
        ndim = typeof(out).ndim + (dim is None)
        if not -ndim <= axis < ndim:
            raise ValueError(f"vmap out_axes is {axis}, but the output has {ndim} dimensions (with the mapped one)")
        moved = move_batch_axis(out, dim, axis % ndim, data.size)
        if dim is None and data.placing is not None and ndim > 1:  # JAX repeats scalars, and cuts the rest
            moved = _cut(moved, axis % ndim, data.placing)
        results.append(moved)
    return results


def _axes_of_leaves(name, tree, axes):
    return [axes] * tree.num_leaves if type(axes) is int else list(flatten_axes(name, tree, axes))


def check_axes_tree(name, axes, transformation="vmap"):
    """TypeError unless the leaves of in_axes or out_axes are integers."""
    if type(axes) is int:
        return
    for leaf in tree_flatten(axes)[0]:
        if type(leaf) in spec_types:
            continue
        if not isinstance(leaf, int) or isinstance(leaf, bool):
            raise TypeError(f"{transformation}: {name} must have integers or None as leaves, got {axes!r}")


def _canonical(leaf, axis, number, fun, args, kwargs):
    ndim = typeof(leaf).ndim
    if -ndim <= axis < ndim:
        return axis % ndim
    path = leaf_paths(fun, args, kwargs)[number]
    raise ValueError(
        f"vmap: in_axes has {axis} for argument {path}, of shape {typeof(leaf).shape}, which has no such axis: its "
        f"rank is {ndim}"
    )


def _mapped_placing(leaves: list[Any], dims: list[Any], spmd_axis_name: Any) -> NamedSharding | None:
    """How explicit axes cut the mapped dimensions, as the types of traced values say; ValueError where they differ."""
    if not avals.any_placed:
        return None
    found: dict[Any, Any] = {}
    for leaf, dim in zip(leaves, dims):
        if dim is not None:
            placing = getattr(type_of(leaf), "placing", None)
            part = None if placing is None else placing.spec[dim]
            found[part] = None if placing is None or part is None else NamedSharding(placing.mesh, PartitionSpec(part))
    if len(found) > 1:
        raise ValueError(
            f"vmap: the mapped axes of arguments must be cut alike, but are cut along {list(found)}; use "
            "jax.sharding.reshard on the arguments"
        )
    placing = next(iter(found.values()), None)
    if placing is not None and spmd_axis_name not in (None, placing.spec[0]):
        raise ValueError(
            f"vmap: spmd_axis_name={spmd_axis_name!r} contradicts the types of arguments, whose mapped axes are cut "
            f"along {placing.spec[0]!r}; leave it out"
        )
    for leaf, dim in zip(leaves, dims):
        if placing is None:
            break
        other = None if dim is not None else getattr(type_of(leaf), "placing", None)
        if other is not None and not set(names_of(placing.spec[0])).isdisjoint(all_names_of(other.spec)):
            raise ValueError(
                f"vmap: an argument with in_axes None is {type_of(leaf).short()}, cut along the mesh axis over which "
                f"the mapped ones are: {placing.spec[0]!r}"
            )
    return placing


def _cut(x: Any, dim: int, placing: NamedSharding) -> Any:
    """A result that depends on no mapped argument, with the mapped dimension that it was given cut as theirs."""
    found = getattr(type_of(x), "placing", None)
    parts = [None] * typeof(x).ndim if found is None else list(found.spec)
    parts[dim] = placing.spec[0]
    return cut_as(x, typed(typeof(x), placing.update(spec=placing.spec.update(partitions=tuple(parts))), typeof(x).vma))


def _mapped_size(fun, leaves, dims, axis_size, args, kwargs):
    sizes = {typeof(leaf).shape[d] for leaf, d in zip(leaves, dims) if d is not None}
    if axis_size is not None:
        sizes.add(int(axis_size))
    if len(sizes) == 1:
        return sizes.pop()
    if not sizes:
        if not leaves:
            raise ValueError(
                f"vmap: there is no array to map over in the arguments, got *args={args} and **kwargs={kwargs}"
            )
        raise ValueError("vmap: no argument is mapped; in_axes takes at least one non-None entry, or give axis_size")
    paths = leaf_paths(fun, args, kwargs)
    lines = [
        f"  * argument {path} of type {typeof(leaf).short()} has size {typeof(leaf).shape[d]} along axis {d}"
        for path, leaf, d in zip(paths, leaves, dims)
        if d is not None
    ]
    if axis_size is not None:
        lines.append(f"  * axis_size is {axis_size}")
    raise ValueError("vmap: mapped axes have inconsistent sizes:\n" + "\n".join(lines))
