"""What scan, while_loop and cond share: tracing bodies, comparing types, rearranging jaxprs, running as programs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback._ext import _core
from pullback.core import (
    ClosedJaxpr,
    Jaxpr,
    JaxprEqn,
    ShapedArray,
    Var,
    eval_jaxpr,
    high,
    hoist_tracers,
    hooks,
    trace,
    typeof,
    types,
)
from pullback.core.asked import is_asked
from pullback.core.avals import Reference, typed
from pullback.core.explain import type_shown
from pullback.core.jaxpr import DebugInfo
from pullback.core.primitive import registry
from pullback.core.source import Origin, lasting, located, named_at, result_names, with_marks
from pullback.core.tracer import Tracer
from pullback.lax.control import bodies
from pullback.sharding._current import current_mesh
from pullback.util import config
from pullback.util.dtypes import lattice_result_type
from pullback.util.errors import REGISTER
from pullback.util.pytree import (
    equality_errors,
    keystr,
    tree_flatten,
    tree_flatten_with_path,
    tree_structure,
    tree_unflatten,
)

KEPT = 1 << 10  # elements of constants that a remembered body may keep alive


def check_callable(function: str, argument: str, value: Any) -> None:
    """TypeError unless `value` can be called."""
    if not callable(value):
        raise TypeError(
            f"{function}: argument '{argument}' must be a function, got {value!r} of type {type(value).__name__}"
        )


def as_arrays(function: str, argument: str, leaves: Sequence[Any]) -> list[Any]:
    """The leaves as arrays or tracers; TypeError for what is none."""
    out = []
    for leaf in leaves:
        kind = type(leaf)
        if kind is _core.Array or (isinstance(leaf, Tracer) and not isinstance(leaf, Reference)):
            out.append(leaf)
            continue
        try:
            if isinstance(leaf, Reference):
                raise TypeError
            typeof(leaf)
        except TypeError:
            raise TypeError(
                f"{function}: argument '{argument}' has a leaf {leaf!r}; {type_shown(leaf)} is not a valid JAX type: "
                f"{REGISTER}"
            ) from None
        out.append(leaf if hasattr(leaf, "aval") else hooks.asarray(leaf))
    return out


def trace_body(fun: Callable, in_tree, avals: Sequence[ShapedArray], name: str, part: str | None = None):
    """(closed jaxpr, const values, out_tree) of `fun(*unflatten(in_tree, args))`; closed-over tracers are leading
    arguments. Remembered where that lasts. `part`: what jaxprs say it is, where that is not `name`."""
    key = (name, part, in_tree, tuple(avals))
    return bodies.remembered(fun, key, lambda: _trace_body(fun, in_tree, avals, name, part), lasts)


def lasts(found, own: bool) -> bool:
    """Whether a traced body may be remembered: with the function itself if `own`, else by its code. One that changes
    objects from outside is to be seen to do so each time."""
    closed, consts, _ = found
    if (captured := high.Captured.next()) is not None and captured.changed:
        return False
    return not consts and (own or sum([np.size(c) for c in closed.consts]) <= KEPT)


def _trace_body(fun: Callable, in_tree, avals: Sequence[ShapedArray], name: str, part: str | None):
    out_trees: list[Any] = []
    captured = high.Captured.next()

    def flat(*args):
        given = tree_unflatten(in_tree, args)
        out = fun(*given) if captured is None else captured.watched(fun, *given)
        leaves, tree = high.flattened(out) if high.types_of else tree_flatten(out)
        out_trees[:] = [tree]
        for i, leaf in enumerate(leaves):
            if not hasattr(leaf, "aval") and not isinstance(leaf, Reference):
                _check(leaf, name, fun, lambda i=i: keystr(tree_flatten_with_path(out)[0][i][0]))
        return leaves

    def paths():
        return _leaf_paths(fun, tree_unflatten(in_tree, range(len(avals))))

    loop, number = getattr(fun, "counts", (part or name, None))
    of = fun if number is None else fun.__wrapped__  # type: ignore[attr-defined]
    info = DebugInfo(
        loop,
        named_at(getattr(of, "__name__", str(of)), of),
        lasting(fun, lambda fun: _names_of_leaves(fun, with_marks(in_tree), number)),
        result_names(out_trees),
    )
    closed = trace(flat, avals, info, Origin(fun, name, paths))
    closed, consts = hoist_tracers(closed)
    return closed, consts, out_trees[0]


def _names_of_leaves(fun: Callable, args: Sequence[Any], number: int | None) -> list[str]:
    """The names of a body's arguments. `number`: its own are components 0 and `number` of the first, a carry; what is
    between them has none.
    """
    if number is None:
        return _leaf_paths(fun, args)
    counter, *names = _leaf_paths(fun, (args[0][0], args[0][number])) or [""]
    return [counter, *[""] * (number - 1), *names]


def _leaf_paths(fun: Callable, args: Sequence[Any]) -> list[str]:
    """A name such as carry[0] for each leaf of the arguments; none where the function is a wrapper of the user's."""
    if hasattr(fun, "__wrapped__"):
        return []
    try:
        names = list(inspect.signature(fun).parameters)
    except (TypeError, ValueError):
        return []
    return [
        (names[i] if i < len(names) else f"args[{i}]") + keystr(path)
        for i, arg in enumerate(args)
        for path, _ in tree_flatten_with_path(arg)[0]
    ]


def _check(leaf, name, fun, path) -> None:
    try:
        typeof(leaf)
    except TypeError:
        where = f" as output component {path()}" if path() else ""
        raise TypeError(
            f"{name}: the function {located(fun)} returned {str(leaf)[:80]!r}{where}; {type_shown(leaf)} is not a "
            f"valid JAX type: {REGISTER}"
        ) from None


def same_types(left: Sequence, right: Sequence) -> bool:
    """True if shapes, dtypes and what types say of meshes agree, weak types aside."""
    if len(left) != len(right):
        return False
    for a, b in zip(left, right):
        if a is not b and (a.shape != b.shape or a.dtype != b.dtype or (types.in_use() and not _lie_alike(a, b))):
            return False
    return True


def row_type(aval: Any) -> Any:
    """The type of an element along the leading axis; ValueError where explicit axes cut that, as rows come in order."""
    row, placing = aval.update(shape=aval.shape[1:]), aval.placing
    if placing is None or is_asked():
        return row
    if placing.spec[0] is not None:
        raise ValueError(
            f"scan: argument 'xs' must not be cut over the mesh along axis 0, as its rows come in order; one has "
            f"{placing.spec}"
        )
    return typed(
        row, placing.update(spec=placing.spec.update(partitions=tuple(placing.spec)[1:])), aval.vma, aval.memory_space
    )


def _lie_alike(a: Any, b: Any) -> bool:
    return (
        types.vma_of(a) == types.vma_of(b)
        and types.place_of_type(a) == types.place_of_type(b)
        and types.memory_of(a) is types.memory_of(b)
    )


def promote_carry(init: Sequence[Any], out_avals: Sequence[ShapedArray], varying: bool) -> list[Any] | None:
    """Initial values cast so that weakly typed ones take the results' types, to which they promote, and so that whole
    ones are cut as the results are where no mesh is in force, on which they would lie, and, if `varying`, vary along
    the axes of shard_map as the results do; None if nothing changes.
    """
    new, changed = [], False
    for value, aval in zip(init, out_avals):
        have = types.type_of_operands()(value)
        if may_be_cut(have, aval):
            value, changed = types.cut_as(value, aval), True
        if varying and (more := types.vma_of(aval) - types.vma_of(have)):
            value, changed = registry["pvary"].bind(value, axes=tuple(sorted(more, key=str))), True
        if have.weak_type and have.shape == aval.shape and (have.dtype != aval.dtype or not aval.weak_type):
            if have.dtype == aval.dtype or lattice_result_type(have, aval)[0] == aval.dtype:
                value, changed = hooks.convert(value, aval.dtype, False), True
        new.append(value)
    return new if changed else None


def may_be_cut(have: Any, wanted: Any) -> bool:
    """Whether a value lies on no mesh, and may be cut as those of another type are."""
    cut = types.place_of_type(have) is None and types.place_of_type(wanted) is not None
    return cut and have.shape == wanted.shape and current_mesh() is None


def settle_carry(fun: Callable, in_tree, init: Sequence[Any], rest: Sequence[ShapedArray], name: str, place) -> tuple:
    """((jaxpr, consts, out_tree), init) of a body `fun(carry, *rest)`, with weakly typed initial values cast to what
    the body gives. `place(out_tree)` says how many of the results are the carry; 0 where that is no carry.

    A user says how a carry varies along the axes of shard_map, by pcast; that of a loop of ours varies as it must.
    Where only weak types change, what was traced stays, as in JAX, whose jaxprs then have weakly typed carries.
    """
    part = "while_body" if name == "while_loop" else None
    n, varying = len(init), types.in_use() and bodies.is_ours(inspect.unwrap(fun))
    found = trace_body(fun, in_tree, [*map(types.type_of_operands(), init), *rest], name, part)
    for _attempt in range(n + 1):
        jaxpr, consts, out_tree = found
        is_carry = place(out_tree) == n
        promoted = promote_carry(init, jaxpr.out_avals[:n], varying) if is_carry else None
        if promoted is None:
            break
        kind = types.type_of_operands()
        same = all([_alike_but_weak(kind(a), kind(b)) for a, b in zip(init, promoted)])
        init = promoted
        if not same:
            found = trace_body(fun, in_tree, [*map(types.type_of_operands(), init), *rest], name, part)
    else:
        jaxpr, consts, out_tree = found
        is_carry = place(out_tree) == n
    if is_carry:
        found = with_results_cut(jaxpr, [*map(types.type_of_operands(), init)]), consts, out_tree
    return found, init


def with_results_cut(closed: ClosedJaxpr, avals: Sequence[Any]) -> ClosedJaxpr:
    """The program, its first results cut as those types say where they lie on no mesh."""
    if not any([may_be_cut(have, aval) for have, aval in zip(closed.out_avals, avals)]):
        return closed

    def fun(*args: Any) -> Any:
        outs = eval_jaxpr(closed.jaxpr, closed.consts, *args)
        cut = [types.cut_as(v, a) if may_be_cut(b, a) else v for v, a, b in zip(outs, avals, closed.out_avals)]
        return [*cut, *outs[len(cut) :]]

    return closed.cached(("cut", tuple(avals)), lambda: trace(fun, closed.in_avals, closed.jaxpr.debug_info))


def _alike_but_weak(a: Any, b: Any) -> bool:
    return a.dtype == b.dtype and _lie_alike(a, b)


def carry_mismatch(name: str, fun, init_tree, out_tree, in_avals, out_avals, init) -> TypeError:
    """The error for a body `fun` whose carry changes its structure or types; one that stands in for a user's (see
    `bodies.carrying`) says for which, and where in its carry the user's is."""
    name, prefix = getattr(fun, "carries", (name, ""))
    carry = "val" if prefix else "carry"
    if init_tree != out_tree:
        array = object()
        before, after = (tree_unflatten(tree, [array] * tree.num_leaves) for tree in (init_tree, out_tree))
        lines = [
            f"  {carry}{keystr(path).removeprefix(prefix)} goes in as {a} and comes out as {b}, so {why}".replace(
                str(object), "an array"
            )
            for path, a, b, why in equality_errors(before, after)
        ] or [f"  in goes {init_tree}", f"  out comes {out_tree}"]
        return TypeError(
            f"{name}: each step must give the same pytree structure as it gets:\n"
            + "\n".join(lines)
            + f"\nReturn a carry of the structure that {located(fun)} is given."
        )
    paths = [keystr(path).removeprefix(prefix) for path, _ in tree_flatten_with_path(init)[0]]
    lines = []
    for path, a, b in zip(paths, in_avals, out_avals):
        different = {
            "shapes": a.shape != b.shape,
            "dtypes": a.dtype != b.dtype,
            "manual axis types": types.vma_of(a) != types.vma_of(b),
            "shardings": types.place_of_type(a) != types.place_of_type(b),
            "memories": types.memory_of(a) is not types.memory_of(b),
        }
        if any(different.values()):
            what = " and ".join(w for w, bad in different.items() if bad)
            lines.append(
                f"  {carry}{path} goes in as {a.short()} and comes out as {b.short()}, so the {what} do not match"
            )
            if more := sorted(map(str, types.vma_of(b) - types.vma_of(a))):
                lines.append(f"  (jax.lax.pcast(..., {tuple(more)}, to='varying') makes {carry}{path} vary, too)")
    return TypeError(
        f"{name}: what a step gets and what it gives must have equal types:\n"
        + "\n".join(lines)
        + f"\nConvert one: what {located(fun)} returns, for example by x.astype(...), or the initial value."
    )


def spread(carry: Sequence[bool], step: Callable[[list[bool]], tuple[Any, Sequence[bool]]]) -> tuple[list[bool], Any]:
    """(flags, made): which parts of a carry have a property (a tangent, a batch axis, not being known) in some step,
    and what `step` made for these. `step(flags)` gives (made, flags of the parts after one step).

    A part that has it in one step gives it to others in the next, so steps are taken until none gets it any more.
    """
    flags = list(carry)
    while True:
        made, after = step(flags)
        grown = [before or now for before, now in zip(flags, after)]
        if grown == flags:
            return flags, made
        flags = grown


def permute(
    closed: ClosedJaxpr, in_order: Sequence[int] | None = None, out_order: Sequence[int] | None = None
) -> ClosedJaxpr:
    """The jaxpr with its arguments and results in another order: new[i] = old[order[i]]."""
    jaxpr = closed.jaxpr
    invars = jaxpr.invars if in_order is None else [jaxpr.invars[i] for i in in_order]
    outvars = jaxpr.outvars if out_order is None else [jaxpr.outvars[i] for i in out_order]
    return ClosedJaxpr(jaxpr.replace(invars=invars, outvars=outvars), closed.consts)


def with_extra_inputs(closed: ClosedJaxpr, position: int, avals: Sequence[ShapedArray]) -> ClosedJaxpr:
    """The jaxpr with arguments that it ignores, inserted at `position`."""
    invars = closed.jaxpr.invars
    new = invars[:position] + [Var(a) for a in avals] + invars[position:]
    return ClosedJaxpr(closed.jaxpr.replace(invars=new), closed.consts)


def run_as_program(primitive, key_jaxpr: ClosedJaxpr, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """Evaluate one control-flow equation on concrete arrays as a compiled program, cached on its first jaxpr."""
    avals = tuple([typeof(a) for a in args])
    # Always in the same order: each primitive is bound in few places.
    key = (primitive, avals, *[None if v is key_jaxpr else v for v in params.values()])

    def make():
        invars = [Var(a) for a in avals]
        outvars = [Var(a) for a in primitive.abstract_eval(*avals, **params)]
        effects = primitive.effects(params) if primitive.effects is not None else frozenset()
        eqn = JaxprEqn(invars, outvars, primitive, params, effects)
        return ClosedJaxpr(Jaxpr([], invars, outvars, [eqn], effects, DebugInfo("jit", primitive.name)), [])

    return hooks.run(key_jaxpr.cached(key, make), args)


def python_control_flow() -> bool:
    """True when jit is disabled: loops then run in Python, so that a debugger can step through them."""
    return bool(config.value_of("jax_disable_jit"))


def concrete_bool(pred) -> bool | None:
    """The value of a concrete predicate, or None for a traced one."""
    value = pred.to_concrete() if isinstance(pred, Tracer) else pred
    return None if value is None or isinstance(value, Tracer) else bool(np.asarray(value))


__all__ = [
    "as_arrays",
    "carry_mismatch",
    "check_callable",
    "concrete_bool",
    "permute",
    "promote_carry",
    "python_control_flow",
    "run_as_program",
    "same_types",
    "settle_carry",
    "spread",
    "trace_body",
    "tree_structure",
    "with_extra_inputs",
]
