"""Folds over axes by any associative function, and such functions: traced, recognized, evaluated."""

from __future__ import annotations

import inspect
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

from pullback.core.jaxpr import DebugInfo
from pullback.core.lowering import Elementwise, Inline, Nest
from pullback.core.source import lasting, named_at
from pullback.lax.collectives.sharding import out_placed
from pullback.lax.records.families import *
from pullback.lax.records.families import check_axes, shape_without
from pullback.lax.records.nests import fold, loops
from pullback.lax.reductions.reductions import all_ones, highest, lowest, one, zero

__all__ = ["reduce", "reduce_p"]


_MONOIDS = {
    "add": ("add", "reduce_sum_p", zero),
    "mul": ("mul", "reduce_prod_p", one),
    "max": ("max", "reduce_max_p", lowest),
    "min": ("min", "reduce_min_p", highest),
    "or": ("bitwise_or", "reduce_or_p", zero),
    "and": ("bitwise_and", "reduce_and_p", all_ones),
    "xor": ("bitwise_xor", "reduce_xor_p", zero),
}


def monoid_of(closed: Any) -> str | None:
    """The name of the loop IR operation that a two-argument jaxpr is, if it is a known commutative one."""
    jaxpr = closed.jaxpr
    if len(jaxpr.eqns) != 1 or len(jaxpr.invars) != 2 or len(jaxpr.outvars) != 1:
        return None
    (eqn,) = jaxpr.eqns
    if eqn.outvars[0] is not jaxpr.outvars[0] or {*map(id, eqn.invars)} != {*map(id, jaxpr.invars)}:
        return None
    return eqn.primitive.name if eqn.primitive.name in _MONOIDS else None


def trace_computation(computation: Callable, operands: Sequence[Any], treedef: Any, name: str) -> Any:
    """The closed jaxpr of a binary function on scalars (or pytrees of them), which is traced once for these types;
    TypeError unless it keeps them.
    """
    from pullback.lax.control.bodies import remembered

    avals = tuple([ShapedArray((), x.dtype) for x in operands])
    key = (name, treedef, avals)
    return remembered(computation, key, lambda: _traced(computation, avals, treedef, name), _is_self_contained)


def _is_self_contained(closed: Any, own: bool) -> bool:
    return not closed.effects and not closed.consts


def _info(computation: Callable, n: int, name: str) -> DebugInfo:
    def names(computation: Callable) -> list[str]:
        return list(inspect.signature(computation).parameters)

    try:
        arguments = lasting(computation, names) if n == 1 else None
    except (TypeError, ValueError):  # it has no signature
        arguments = None
    shown = getattr(computation, "__name__", str(computation))
    return DebugInfo(f"{name} comp", named_at(shown, computation), arguments, ("result",) if n == 1 else None)


def _traced(computation: Callable, avals: Sequence[ShapedArray], treedef: Any, name: str) -> Any:
    from pullback.core import trace
    from pullback.util import pytree

    n = len(avals)
    found = []

    def flat(*args):
        out = computation(pytree.tree_unflatten(treedef, args[:n]), pytree.tree_unflatten(treedef, args[n:]))
        leaves, out_tree = pytree.tree_flatten(out)
        found.append(out_tree)
        return [as_array(leaf, name) for leaf in leaves]

    closed = trace(flat, [*avals, *avals], _info(computation, n, name))
    if found[0] != treedef:
        raise ValueError(
            f"{name}: the computation must return the structure of its operands: {treedef}, got {found[0]}"
        )
    for aval, var in zip(avals, closed.jaxpr.outvars):
        if (var.aval.shape, var.aval.dtype) != ((), aval.dtype):
            raise TypeError(
                f"{name}: the computation must map {aval.short()}, {aval.short()} to {aval.short()}, got "
                f"{var.aval.short()}"
            )
    return closed


def evaluate_reference(closed: Any, *arrays: np.ndarray) -> list[np.ndarray]:
    """A jaxpr of elementwise primitives on NumPy arrays of any one shape: the meaning of a scalar function, mapped."""
    jaxpr = closed.jaxpr
    env = dict(zip(jaxpr.constvars, map(np.asarray, closed.consts)))
    env.update(zip(jaxpr.invars, arrays))

    def read(atom):
        return np.asarray(atom.val, atom.aval.dtype) if hasattr(atom, "val") else env[atom]

    for eqn in jaxpr.eqns:
        inner = next((v for v in eqn.params.values() if hasattr(v, "jaxpr")), None)
        if "elementwise" not in eqn.primitive.traits and inner is None:
            raise NotImplementedError(f"a scalar computation may not contain {eqn.primitive.name}")
        operands = [read(a) for a in eqn.invars]
        outs = (
            evaluate_reference(inner, *operands)
            if inner is not None
            else eqn.primitive.rule("reference")(*operands, **eqn.params)
        )
        env.update(zip(eqn.outvars, outs if eqn.primitive.multiple_results or inner is not None else [outs]))
    shape = np.broadcast_shapes(*map(np.shape, arrays))
    return [np.broadcast_to(read(a), shape) for a in jaxpr.outvars]


def is_elementwise(closed: Any) -> bool:
    """Whether a jaxpr of scalars consists of operations of numbers alone, so that `scalar_values` has it."""
    constants = all(np.size(value) == 1 for value in closed.consts)
    return constants and all(
        is_elementwise(eqn.primitive.lower.body(eqn))
        if isinstance(eqn.primitive.lower, Inline)
        else isinstance(eqn.primitive.lower, Elementwise)
        for eqn in closed.jaxpr.eqns
    )


def scalar_values(b: Any, closed: Any, values: Sequence[Any]) -> list[Any]:
    """A jaxpr of scalars, of which `is_elementwise` holds, as expressions of the loop IR."""
    jaxpr = closed.jaxpr
    env = dict(zip(jaxpr.invars, values))

    def const(value, aval):
        return b.const(dtypes.short_name(aval.dtype), np.asarray(value).astype(aval.dtype).reshape(()).item())

    env.update((var, const(value, var.aval)) for var, value in zip(jaxpr.constvars, closed.consts))

    def read(atom):
        return const(atom.val, atom.aval) if hasattr(atom, "val") else env[atom]

    for eqn in jaxpr.eqns:
        kind, operands = eqn.primitive.lower, [read(a) for a in eqn.invars]
        if isinstance(kind, Inline):
            outs = scalar_values(b, kind.body(eqn), operands)
        else:
            b.out_dtype = dtypes.short_name(eqn.outvars[0].aval.dtype)
            outs = [b.let(kind.scalar(b, *operands, **eqn.params))]
        env.update(zip(eqn.outvars, outs))
    return [read(atom) for atom in jaxpr.outvars]


def _reduce_shape(*avals, computation, jaxpr, dimensions):
    n = len(avals) // 2
    operands = avals[:n]
    if any(a.shape != operands[0].shape for a in operands):
        raise TypeError(f"reduce: operands must have one shape, got {', '.join(a.short() for a in operands)}")
    check_axes(operands[0], dimensions)
    return [ShapedArray(shape_without(a.shape, dimensions), a.dtype) for a in operands]


def _reduce_reference(*args, computation, jaxpr, dimensions):
    n = len(args) // 2
    operands, inits = args[:n], args[n:]
    ndim = operands[0].ndim
    kept = [i for i in range(ndim) if i not in dimensions]
    shape = tuple(operands[0].shape[i] for i in kept)
    rows = [
        np.transpose(x, (*dimensions, *kept)).reshape(math.prod([x.shape[d] for d in dimensions]), *shape)
        for x in operands
    ]
    acc = [np.broadcast_to(init, shape) for init in inits]
    for k in range(rows[0].shape[0]):
        acc = evaluate_reference(jaxpr, *acc, *[x[k] for x in rows])
    return [np.asarray(a, x.dtype) for a, x in zip(acc, operands)]


def _reduce_emit(ctx):
    b, jaxpr, dimensions = ctx.b, ctx.params["jaxpr"], ctx.params["dimensions"]
    n = len(ctx.in_avals) // 2
    shape = ctx.in_avals[0].shape
    kept = [i for i in range(len(shape)) if i not in dimensions]

    def full(outer, inner):
        index = [None] * len(shape)
        for i, v in zip((*kept, *dimensions), (*outer, *inner)):
            index[i] = v
        return tuple(index)

    def folded(outer):
        def step(values, inner):
            elements = [ctx.load(ctx.operand(k), full(outer, inner)) for k in range(n)]
            return tuple(scalar_values(b, jaxpr, (*values, *elements)))

        values = fold(b, [shape[i] for i in dimensions], step, tuple(inits))
        for k in range(n):
            ctx.store(ctx.result(k), outer, values[k])

    if is_elementwise(jaxpr):
        inits = [b.let(ctx.scalar(n + k)) for k in range(n)]
        if math.prod(shape[i] for i in dimensions):
            loops(b, [shape[i] for i in kept], folded)
        else:
            for k in range(n):
                ctx.fill(ctx.result(k), inits[k])
        return
    scalars = [ctx.temporary(dtypes.short_name(a.dtype), ()) for a in ctx.in_avals[:n]]
    elements = [ctx.temporary(dtypes.short_name(a.dtype), ()) for a in ctx.in_avals[:n]]

    def row(outer):
        for k in range(n):
            ctx.store(scalars[k], (), ctx.load(ctx.operand(n + k), ()))

        def step(inner):
            for k in range(n):
                ctx.store(elements[k], (), ctx.load(ctx.operand(k), full(outer, inner)))
            ctx.subprogram(jaxpr, [*scalars, *elements], scalars)

        loops(b, tuple(shape[i] for i in dimensions), step, "sequential")
        for k in range(n):
            ctx.store(ctx.result(k), outer, ctx.load(scalars[k], ()))

    loops(b, tuple(shape[i] for i in kept), row, "sequential")


def _reduce_batch(args, dims, computation, jaxpr, dimensions):
    n = len(args) // 2
    if any(d is not None for d in dims[n:]):
        raise NotImplementedError(
            "vmap of lax.reduce over init_values is not there; combine them with the result instead"
        )
    size = batch_size(args, dims)
    operands = [batch_front(x, d, size) for x, d in zip(args[:n], dims[:n])]
    outs = reduce_p.bind(
        *operands, *args[n:], computation=computation, jaxpr=jaxpr, dimensions=tuple(d + 1 for d in dimensions)
    )
    return outs, [0] * n


def halved(rows: list[Any], combine: Callable[..., list[Any]]) -> list[Any]:
    """Arrays folded along their first axis to a length of one (or none) by halvings, in their order: `combine` takes
    the left parts of all arrays and then the right ones.
    """
    while (size := rows[0].shape[0]) > 1:
        half = size // 2
        left = [lax.slice_in_dim(x, 0, 2 * half, 2) for x in rows]
        right = [lax.slice_in_dim(x, 1, 2 * half, 2) for x in rows]
        merged = combine(*left, *right)
        last = [] if size % 2 == 0 else [lax.slice_in_dim(x, size - 1, size) for x in rows]
        rows = [lax.concatenate([m, x], 0) for m, x in zip(merged, last)] if last else merged
    return rows


def _reduce_tree(args, jaxpr, dimensions):
    """The fold as halvings in operations that can be differentiated; the computation is elementwise on arrays too."""
    from pullback.core import eval_jaxpr

    n = len(args) // 2
    operands, inits = args[:n], args[n:]
    ndim = operands[0].ndim
    kept = [i for i in range(ndim) if i not in dimensions]
    shape = tuple(operands[0].shape[i] for i in kept)
    rows = [
        lax.reshape(lax.transpose(x, (*dimensions, *kept)), (math.prod(x.shape[d] for d in dimensions), *shape))
        for x in operands
    ]
    rows = halved(rows, lambda *pairs: eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, *pairs))
    inits = [lax.broadcast_in_dim(i, shape, ()) for i in inits]
    if rows[0].shape[0] == 0:
        return inits
    return eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, *inits, *[lax.squeeze(x, (0,)) for x in rows])


def _reduce_jvp(primals, tangents, computation, jaxpr, dimensions):
    from pullback.transforms.jvp import jvp_flat

    _, slopes = jvp_flat(lambda *args: _reduce_tree(args, jaxpr, dimensions), primals, tangents)
    return reduce_p.bind(*primals, computation=computation, jaxpr=jaxpr, dimensions=dimensions), slopes


reduce_p = Primitive(
    "reduce",
    doc="Fold over dimensions by any associative function.",
    abstract_eval=_reduce_shape,
    reference=_reduce_reference,
    jvp=_reduce_jvp,
    transpose=NOT_LINEAR,
    batch=_reduce_batch,
    lower=Nest(_reduce_emit),
    multiple_results=True,
    traits={"reduction"},
    samples=Samples(cases=lambda rng: []),
)


def reduce(
    operands: Any, init_values: Any, computation: Callable, dimensions: Sequence[int], out_sharding: Any = None
) -> Any:
    """Fold of a pytree of arrays over dimensions by an associative `computation(a, b)` of scalars, from init_values.

    Sums, products, extrema and logical folds are recognized. Raises ValueError for differing structures, TypeError for
    differing dtypes or shapes, and for a computation that does not keep the types.
    """
    from pullback.util import pytree

    flat, treedef = pytree.tree_flatten(operands)
    inits, init_tree = pytree.tree_flatten(init_values)
    if treedef != init_tree:
        raise ValueError(f"reduce: operands are a pytree {treedef}, but init_values {init_tree}")
    if not flat:
        raise ValueError("reduce: operands is a pytree without leaves")
    flat = as_arrays("reduce", *flat)
    inits = as_arrays("reduce", *inits)
    for init in inits:
        if init.shape:
            raise ValueError(f"reduce found non-scalar initial value: {init.shape}")
    dimensions = tuple(operator.index(d) for d in dimensions)
    closed = trace_computation(computation, flat, treedef, "reduce")
    monoid = monoid_of(closed)
    inits = of_operands_types("reduce", flat, inits, monoid)
    if monoid is not None and dtypes.kind_of(flat[0].dtype) != "c":
        combine, primitive, _ = _MONOIDS[monoid]
        folded = getattr(lax, primitive).bind(flat[0], axes=dimensions)
        outs = [_with_init(monoid, combine, folded, inits[0])]
    else:
        outs = reduce_p.bind(*flat, *inits, computation=computation, jaxpr=closed, dimensions=dimensions)
    return pytree.tree_unflatten(treedef, [out_placed("reduce", out, out_sharding) for out in outs])


def of_operands_types(name, operands, inits, monoid):
    """The start values, which must have the operands' dtypes; TypeError else.

    One that is known to be neutral in its own dtype may have any: the fold starts at nothing.
    """
    found = []
    for x, init in zip(operands, inits):
        if init.dtype != x.dtype:
            if monoid is None or not _is_neutral(monoid, init):
                raise TypeError(
                    f"{name}: init_values must have the dtypes of the operands, got {init.dtype} for {x.dtype}"
                )
            init = constant(x, _MONOIDS[monoid][2](x.dtype))
        found.append(init)
    return found


def _is_neutral(monoid, init):
    from pullback.core import Tracer

    return not isinstance(init, Tracer) and bool(np.asarray(init) == _MONOIDS[monoid][2](init.dtype))


def _with_init(monoid, combine, folded, init):
    """The fold, started at `init`: nothing to do where that is known to be the neutral element."""
    if _is_neutral(monoid, init):
        return folded
    return getattr(lax, combine)(folded, init)
