"""Matrices of derivatives: Jacobians by forward and by reverse mode, Hessians."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ParamSpec

from pullback.api._arguments import check_argnums, check_callable, check_inputs, check_jacobian_output
from pullback.api.grad import documented, dynamic_arguments, linearized, or_zeros, pull_back
from pullback.api.vmap import vmap
from pullback.core import hooks, tangent_aval, typeof, types
from pullback.transforms.batching import AxisData, move_batch_axis, run_batched
from pullback.transforms.jvp import jvp_flat
from pullback.util.pytree import tree_unflatten
from pullback.util.tracebacks import api_boundary

P = ParamSpec("P")


def jacfwd(
    fun: Callable[P, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False
) -> Callable[P, Any]:
    """Jacobian of `fun` by forward mode, one column a direction: leaves have shape output.shape + input.shape."""
    check_callable("jacfwd", fun)
    argnums = check_argnums("jacfwd", argnums)

    @api_boundary
    def jacfun(*args, **kwargs):
        flat, leaves, unflatten = dynamic_arguments("jacfwd", fun, argnums, args, kwargs, has_aux)
        check_inputs("jacfwd", leaves, holomorphic, False, (fun, argnums, args, kwargs))
        basis = _basis([tangent_aval(typeof(x)) for x in leaves], leaves)

        def push(*directions):
            outs, outs_dot = jvp_flat(flat, leaves, directions)
            return [or_zeros(t, out) for t, out in zip(outs_dot[: flat.n_outs], outs)] + outs

        # The primal results do not depend on the direction, so they come back without the mapped axis.
        size = sum(typeof(x).size for x in leaves)
        values, dims = run_batched(push, AxisData(None, size), basis, [0] * len(basis))
        outs = values[flat.n_outs :]
        for out in outs[: flat.n_outs]:
            check_jacobian_output("jacfwd", out, holomorphic)
        columns = [
            move_batch_axis(v, d, typeof(out).ndim, size) for v, d, out in zip(values[: flat.n_outs], dims, outs)
        ]
        aux = flat.take_aux(outs) if has_aux else None
        jacobian = tree_unflatten(flat.out_tree, [unflatten(_split_columns(c, leaves)) for c in columns])
        return (jacobian, aux) if has_aux else jacobian

    return documented(jacfun, fun, "Jacobian of {} with respect to argument(s) {}.", argnums)


def jacrev(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[P, Any]:
    """Jacobian of `fun` by reverse mode, one row an output element: leaves have shape output.shape + input.shape."""
    check_callable("jacrev", fun)
    argnums = check_argnums("jacrev", argnums)

    @api_boundary
    def jacfun(*args, **kwargs):
        flat, leaves, unflatten = dynamic_arguments("jacrev", fun, argnums, args, kwargs, has_aux)
        check_inputs("jacrev", leaves, holomorphic, allow_int, (fun, argnums, args, kwargs))
        outs, jaxpr, consts, zeros, aux = linearized(flat, leaves, has_aux)
        for out in outs:
            check_jacobian_output("jacrev", out, holomorphic)

        def pull(*bars):
            return pull_back(jaxpr, consts, zeros, bars)

        basis = _basis([tangent_aval(typeof(o)) for o in outs], outs)
        rows = vmap(lambda *bars: [or_zeros(bar, leaf) for bar, leaf in zip(pull(*bars), leaves)])(*basis)
        per_input = [_split_rows(r, outs) for r in rows]
        jacobian = tree_unflatten(
            flat.out_tree, [unflatten([parts[k] for parts in per_input]) for k in range(len(outs))]
        )
        return (jacobian, aux) if has_aux else jacobian

    return documented(jacfun, fun, "Jacobian of {} with respect to argument(s) {}.", argnums)


def jacobian(
    fun: Callable[P, Any], argnums=0, has_aux: bool = False, holomorphic: bool = False, allow_int: bool = False
) -> Callable[P, Any]:
    """As `jacrev`."""
    return jacrev(fun, argnums, has_aux, holomorphic, allow_int)


def hessian(
    fun: Callable[P, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False
) -> Callable[P, Any]:
    """Second derivatives of `fun`, forward over reverse: leaves have shape output.shape + input.shape + input.shape."""
    return jacfwd(
        jacrev(fun, argnums, has_aux=has_aux, holomorphic=holomorphic),
        argnums,
        has_aux=has_aux,
        holomorphic=holomorphic,
    )


def _basis(avals, values):
    """For each aval an array with a leading axis over all elements of all avals: the rows of an identity matrix.

    They are weakly typed as the avals are; along explicit axes they are cut as the values are.
    """
    total = sum(a.size for a in avals)
    rows, start = [], 0
    for aval in avals:
        row = hooks.reshape(hooks.eye(total, aval.size, -start, aval.dtype), (total, *aval.shape))
        rows.append(hooks.convert(row, aval.dtype, aval.weak_type))
        start += aval.size
    return [types.rows_cut_as(row, value) for row, value in zip(rows, values)] if types.in_use() else rows


def _split_columns(columns, leaves):
    """The Jacobian of one output, cut along its last axis into one array of shape out + in for each input."""
    parts, start = [], 0
    out_shape = typeof(columns).shape[:-1]
    for leaf in leaves:
        aval = typeof(leaf)
        part = hooks.slice_in_dim(columns, start, start + aval.size, 1, len(out_shape)) if len(leaves) > 1 else columns
        parts.append(hooks.reshape(part, (*out_shape, *aval.shape)))
        start += aval.size
    return parts


def _split_rows(rows, outs):
    """The Jacobian with respect to one input, cut along its first axis into one array of shape out + in for each
    output."""
    parts, start = [], 0
    in_shape = typeof(rows).shape[1:]
    for out in outs:
        aval = typeof(out)
        part = hooks.slice_in_dim(rows, start, start + aval.size, 1, 0) if len(outs) > 1 else rows
        parts.append(hooks.reshape(part, (*aval.shape, *in_shape)))
        start += aval.size
    return parts
