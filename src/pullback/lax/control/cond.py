"""cond and switch: one of several branches, chosen when the program runs.

outs = branches[index](*operands)

A concrete `cond` outside of a trace runs only the chosen branch, as a program of its own.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback._ext import _core
from pullback.core import (
    ClosedJaxpr,
    Literal,
    NoRule,
    Primitive,
    UndefinedPrimal,
    Var,
    Zero,
    current_interpreter,
    eval_jaxpr,
    high,
    hooks,
    registry,
    trace,
    typeof,
)
from pullback.core.avals import ShapedArray, type_of_operand, typed
from pullback.core.explain import type_shown
from pullback.core.jaxpr import bind_again
from pullback.core.lowering import Nest
from pullback.core.references import Reference, has_references_among
from pullback.core.source import located
from pullback.core.typechecks import check_cond
from pullback.core.types import Axes, in_use, named, place_of_type, programs, type_of_operands, vma_of
from pullback.lax.control import common as control
from pullback.transforms.batching import batch_jaxpr, to_front
from pullback.transforms.call import running_once
from pullback.transforms.discharge import closing_over, discharged, note, rules_get_references, values_of, with_outer_of
from pullback.transforms.jvp import jvp_jaxpr
from pullback.transforms.partial_eval import dce_jaxpr, partial_eval_jaxpr, used_inputs
from pullback.transforms.transpose import backward_pass_with_residuals
from pullback.transforms.zeros import are_of_integers, cotangent_aval, instantiated
from pullback.util import dtypes
from pullback.util.pytree import keystr, tree_flatten, tree_flatten_with_path, tree_unflatten

_MISSING = object()


def cond(pred, true_fun: Callable, false_fun: Callable, *operands, operand: Any = _MISSING):
    """`true_fun(*operands)` if `pred` else `false_fun(*operands)`; only the chosen branch runs.

    pred is a scalar. TypeError if the branches' results differ in structure, shapes or dtypes, or pred is no scalar.
    """
    if operand is not _MISSING:
        if operands:
            raise TypeError("cond: give operands by position, or one as 'operand=', not both")
        operands = (operand,)
    if not (callable(true_fun) and callable(false_fun)):
        if callable(false_fun) and len(operands) == 2 and callable(operands[1]):
            # The old form: (pred, true_operand, true_fun, false_operand, false_fun).
            on_true, on_false = false_fun, operands[1]
            return cond(pred, lambda x, _: on_true(x), lambda _, y: on_false(y), true_fun, operands[0])
        raise TypeError(
            "cond: arguments 'true_fun' and 'false_fun' should be callable, got "
            f"{type_shown(true_fun)} and {type_shown(false_fun)}"
        )
    if pred is None:
        raise TypeError("cond: argument 'pred' is None; expected a boolean or a number")
    aval = _predicate_aval("cond", pred)
    if control.python_control_flow():
        chosen = None if dtypes.issubdtype(aval.dtype, np.complexfloating) else control.concrete_bool(pred)
        if chosen is not None:
            return true_fun(*operands) if chosen else false_fun(*operands)
    if dtypes.issubdtype(aval.dtype, np.bool_):
        index = hooks.convert(pred, np.dtype(np.int32), False)
    elif dtypes.issubdtype(aval.dtype, np.number) and not dtypes.issubdtype(aval.dtype, np.complexfloating):
        index = hooks.convert(hooks.not_equal(pred, hooks.zeros(aval)), np.dtype(np.int32), False)
    else:
        raise TypeError(f"cond: argument 'pred' is {aval.short()}; expected a boolean or a real number")
    return _choose("cond", index, (false_fun, true_fun), operands, ("false_fun", "true_fun"))


def switch(index, branches: Sequence[Callable], *operands, operand: Any = _MISSING):
    """`branches[index](*operands)`, with the index clamped into range; only the chosen branch runs.

    index is an integer scalar. ValueError for no branches; TypeError as for `cond`.
    """
    if operand is not _MISSING:
        if operands:
            raise TypeError("switch: operands were given both by position and as 'operand'")
        operands = (operand,)
    branches = tuple(branches)
    if not branches:
        raise ValueError("switch: argument 'branches' is empty; expected at least one function")
    for number, branch in enumerate(branches):
        control.check_callable("switch", f"branches[{number}]", branch)
    aval = _predicate_aval("switch", index)
    if not dtypes.issubdtype(aval.dtype, np.integer):
        raise TypeError(f"switch: argument 'index' must be an integer, got {aval.short()}")
    if len(branches) == 1:
        return branches[0](*operands)
    index = hooks.convert(index, np.dtype(np.int32), False)  # before it is clamped: 2**32 + 1 is 1
    if control.python_control_flow() and control.concrete_bool(index) is not None:
        return branches[min(max(int(index), 0), len(branches) - 1)](*operands)
    return _choose(
        "switch",
        hooks.clamp(np.int32(0), index, np.int32(len(branches) - 1)),
        branches,
        operands,
        tuple(f"branches[{i}]" for i in range(len(branches))),
    )


def _predicate_aval(name, pred):
    try:
        aval = typeof(pred)
    except TypeError:
        raise TypeError(f"{name}: the predicate must be a scalar, got {pred!r} of type {type_shown(pred)}") from None
    if aval.shape != ():
        argument = "pred" if name == "cond" else "index"
        raise TypeError(f"{name}: argument '{argument}' must be a scalar, got {pred} of shape {aval.shape}")
    return aval


def _branches(labels, branches):
    """Where the functions are, in the order of the program."""
    order = sorted(zip(labels, branches), key=lambda pair: pair[0] == "false_fun")
    return "\n".join(f"{label} is {located(branch)}" for label, branch in order)


def _by_result(traced):
    """For each result, its types in the branches."""
    return zip(*[closed.out_avals for closed, _, _ in traced])


def _choose(name, index, branches, operands, labels):
    if high.has_values(operands):
        return high.raised(_choose(name, index, tuple(map(high.on_arrays, branches)), high.lowered(operands), labels))
    given, tree = tree_flatten(operands)
    if has_references_among(given):  # branches close over references
        arrays = [x for x in given if not isinstance(x, Reference)]

        def closing(branch):
            def run(*values):
                rest = iter(values)
                return branch(*tree_unflatten(tree, [x if isinstance(x, Reference) else next(rest) for x in given]))

            return _core.named_after(run, branch)

        return _choose(name, index, tuple(map(closing, branches)), tuple(arrays), labels)
    leaves = control.as_arrays(name, "operands", given)
    consts_vary = False
    axes = vma_of(typeof(index)) if in_use() else Axes()
    if axes:
        leaves = [_varying(x, axes) for x in leaves]
    avals = [*map(type_of_operands(), leaves)]
    order = range(len(branches)) if name == "switch" else (1, 0)  # true_fun is traced first
    found: dict[int, Any] = {}  # by function: the same one is traced once
    for k in order:
        if id(branches[k]) not in found:
            found[id(branches[k])] = control.trace_body(branches[k], tree, avals, name)
    traced = [found[id(branch)] for branch in branches]
    if axes and not any(True for closed, _, _ in traced for eqn in closed.jaxpr.eqns for _ in programs(eqn.params)):
        traced = [(_with_varying(closed, axes), consts, tree) for closed, consts, tree in traced]
        consts_vary = True
    out_tree = traced[0][2]
    for (_closed, _, other), label in zip(traced[1:], labels[1:]):
        if other != out_tree:
            raise TypeError(
                f"{name}: every branch must give the same pytree structure; {labels[0]} gives {out_tree}, {label} "
                f"gives {other}\n{_branches(labels, branches)}"
            )
    if in_use():
        cut = [next((a for a in group if place_of_type(a) is not None), group[0]) for group in _by_result(traced)]
        traced = [(control.with_results_cut(closed, cut), consts, tree) for closed, consts, tree in traced]
    outs = [closed.out_avals for closed, _, _ in traced]
    for these, label in zip(outs[1:], labels[1:]):
        if not control.same_types(outs[0], these):
            example = tree_unflatten(out_tree, range(len(these)))
            paths = [keystr(path) for path, _ in tree_flatten_with_path(example)[0]]
            bad = [
                f"output{path} is {a.short()} in {labels[0]} and {b.short()} in {label}{_told(a, b)}"
                for path, a, b in zip(paths, outs[0], these)
                if not control.same_types([a], [b])
            ]
            raise TypeError(
                f"{name}: all branches need equal output types: {'; '.join(bad)}\n{_branches(labels, branches)}"
            )
    # Every branch takes the values that any of them closes over.
    all_consts = {id(c): c for _, consts, _ in traced for c in consts}
    given_consts = [_varying(c, axes) if consts_vary else c for c in all_consts.values()]
    closed_branches = []
    for closed, consts, _ in traced:
        invars = closed.jaxpr.invars
        own = {id(c): v for c, v in zip(consts, invars)}
        new = [own[key] if key in own else Var(type_of_operand(c)) for key, c in zip(all_consts, given_consts)]
        closed_branches.append(ClosedJaxpr(closed.jaxpr.replace(invars=new + invars[len(consts) :]), closed.consts))
    values = [*given_consts, *leaves]
    same = [_same_operand(closed_branches, k) for k in range(len(outs[0]))]
    if any(n is not None for n in same):
        left = [k for k, n in enumerate(same) if n is None]
        closed_branches = [_with_outputs(c, left) for c in closed_branches]
    chosen = iter(cond_p.bind(index, *values, branches=tuple(closed_branches)))
    return tree_unflatten(out_tree, [next(chosen) if n is None else values[n] for n in same])


def _told(a: Any, b: Any) -> str:
    """What may be done where only the manual axes along which they vary differ; empty for all else."""
    if vma_of(a) == vma_of(b) or a.shape != b.shape or a.dtype != b.dtype:
        return ""
    more = tuple(sorted(map(str, vma_of(a) ^ vma_of(b))))
    return f", so the manual axis types do not match: `jax.lax.pcast(..., {more}, to='varying')` makes one vary, too"


def _varying(x: Any, axes: frozenset) -> Any:
    """x, that varies along all of these axes of shard_map."""
    more = axes - vma_of(typeof(x)) if isinstance(typeof(x), ShapedArray) else axes - axes
    return registry["pvary"].bind(x, axes=tuple(sorted(more, key=str))) if more else x


def _with_varying(closed: ClosedJaxpr, axes: frozenset) -> ClosedJaxpr:
    """A branch whose arguments vary along the axes that the predicate varies along, also those of what it closes over.
    Devices choose for themselves: a sum of cotangents over these axes has to stand outside, where all come.
    """
    avals = closed.in_avals
    wanted = [typed(a, a.placing, vma_of(a) | axes, a.memory_space) if isinstance(a, ShapedArray) else a for a in avals]
    if all(a is b for a, b in zip(wanted, avals)):
        return closed

    def run(*args: Any) -> list[Any]:
        env: dict[Any, Any] = dict(zip([*closed.jaxpr.constvars, *closed.jaxpr.invars], [*closed.consts, *args]))

        def read(atom: Any) -> Any:
            return atom.operand if isinstance(atom, Literal) else env[atom]

        for eqn in closed.jaxpr.eqns:
            values = [read(a) for a in eqn.invars]
            if eqn.primitive.name == "pvary":
                outs = _varying(values[0], frozenset(eqn.params["axes"]))
            else:
                outs = bind_again(eqn, values)
            env.update(zip(eqn.outvars, outs if eqn.primitive.multiple_results else [outs]))
        return [read(a) for a in closed.jaxpr.outvars]

    return trace(run, wanted, closed.jaxpr.debug_info)


def _same_operand(branches: list[ClosedJaxpr], k: int) -> int | None:
    """The operand that output k of every branch is; None if there is none. Such an output is no choice: where elements
    of vmap choose for themselves, it stays what they share.
    """
    found = set()
    for closed in branches:
        out = closed.jaxpr.outvars[k]
        found.add(next((n for n, v in enumerate(closed.jaxpr.invars) if v is out), None))
    return found.pop() if len(found) == 1 else None


def _with_outputs(closed: ClosedJaxpr, left: list[int]) -> ClosedJaxpr:
    """The branch with these of its outputs."""
    return ClosedJaxpr(closed.jaxpr.replace(outvars=[closed.jaxpr.outvars[k] for k in left]), closed.consts)


def _abstract_eval(*_avals, branches):
    return branches[0].out_avals


def _reference(index, *operands, branches):
    chosen = branches[int(index)]
    outs = eval_jaxpr(chosen.jaxpr, chosen.consts, *[hooks.asarray(np.asarray(a)) for a in operands])
    return [np.asarray(out) for out in outs]


def _evaluate(index, *operands, branches):
    """On concrete arrays the branch is known: run it as a program. Results are weakly typed where the first branch's
    are, whichever runs.
    """
    chosen = branches[int(index)]
    outs = hooks.run(chosen, operands)
    if chosen.out_avals == branches[0].out_avals:
        return outs
    weak = [aval.weak_type for aval in branches[0].out_avals]
    return [v if typeof(v).weak_type == w else hooks.convert(v, typeof(v).dtype, w) for v, w in zip(outs, weak)]


def _jvp(primals, tangents, *, branches):
    index, *operands = primals
    nonzero = [type(t) is not Zero for t in tangents[1:]]
    found = [jvp_jaxpr(b, nonzero)[1] for b in branches]
    nz_out = [any(nz) for nz in zip(*found)]
    dots = tuple(jvp_jaxpr(b, nonzero, nz_out)[0] for b in branches)
    outs = cond_p.bind(index, *operands, *(t for t in tangents[1:] if type(t) is not Zero), branches=dots)
    n = len(nz_out)
    outs_dot = iter(outs[n:])
    return outs[:n], [
        next(outs_dot) if nz else Zero(a.to_tangent_aval()) for nz, a in zip(nz_out, branches[0].out_avals)
    ]


def _batch_axis(axis, args, dims, *, branches):
    if running_once(_effects({"branches": branches})):
        raise NotImplementedError("IO effect not supported in vmap-of-cond: every branch would run")
    index, *operands = args
    index_dim, *operand_dims = dims
    values, batched = to_front(operands, operand_dims)
    if index_dim is None:
        found = [batch_jaxpr(b, axis, batched)[1] for b in branches]
        out_batched = [any(bs) for bs in zip(*found)]
        outs = cond_p.bind(
            index, *values, branches=tuple(batch_jaxpr(b, axis, batched, out_batched)[0] for b in branches)
        )
        return outs, [0 if b else None for b in out_batched]
    # Elements choose for themselves: every branch runs, and each element takes its own result.
    from .elsewhere import cut_elsewhere  # not at start-up

    index = index if index_dim == 0 else hooks.moveaxis(index, index_dim, 0)
    results = []
    for number, branch in enumerate(branches):
        cut, given, mapped = cut_elsewhere(axis, index, number, branch, values, batched)
        body = batch_jaxpr(cut, axis, mapped, True)[0]
        results.append(eval_jaxpr(body.jaxpr, body.consts, *given))
    return [hooks.select_n(index, *cases) for cases in zip(*results)], [0] * len(results[0])


def _partial_eval(interpreter, args, params):
    branches = params["branches"]
    index, *operands = args
    if interpreter.is_unknown(index):
        return interpreter.default(cond_p, args, params)
    unknown = [interpreter.is_unknown(a) for a in operands]
    found = [partial_eval_jaxpr(b, unknown)[2] for b in branches]
    u_out = tuple(any(us) for us in zip(*found))
    parts = [partial_eval_jaxpr(b, unknown, u_out) for b in branches]
    n_known_out = len(u_out) - sum(u_out)
    slots, places = _shared_slots([res_avals for _, _, _, res_avals in parts])
    known = [_giving_slots(k, n_known_out, slots, own) for (k, _, _, _), own in zip(parts, places)]
    rest = [_taking_slots(r, slots, own) for (_, r, _, _), own in zip(parts, places)]
    outs = cond_p.bind(index, *(a for a, u in zip(operands, unknown) if not u), branches=tuple(known))
    known_outs, residuals = iter(outs[:n_known_out]), outs[n_known_out:]
    recorded = iter(
        interpreter.emit(
            cond_p,
            [index, *residuals, *(a for a, u in zip(operands, unknown) if u)],
            {"branches": tuple(rest)},
            rest[0].out_avals,
        )
    )
    return [next(recorded) if u else next(known_outs) for u in u_out]


def _shared_slots(avals_of_branches) -> tuple[tuple, list[tuple[int, ...]]]:
    """Types of what branches hand over, and where each branch has its own: no more of a type than one branch needs."""
    slots: list[Any] = []
    places = []
    for avals in avals_of_branches:
        free = list(range(len(slots)))
        own = []
        for aval in avals:
            k = next((k for k in free if slots[k] is aval), None)
            if k is None:
                k = len(slots)
                slots.append(aval)
            else:
                free.remove(k)
            own.append(k)
        places.append(tuple(own))
    return tuple(slots), places


def _giving_slots(closed: ClosedJaxpr, n_out: int, slots: tuple, own: tuple[int, ...]) -> ClosedJaxpr:
    """A branch whose results from the n-th on are its own slots: all slots, with zeros in those of other branches."""

    def fun(*args):
        outs = eval_jaxpr(closed.jaxpr, closed.consts, *args)
        given = dict(zip(own, outs[n_out:]))
        return [*outs[:n_out], *[given[k] if k in given else hooks.zeros(a) for k, a in enumerate(slots)]]

    return closed.cached(("giving", n_out, slots, own), lambda: trace(fun, closed.in_avals, closed.jaxpr.debug_info))


def _taking_slots(closed: ClosedJaxpr, slots: tuple, own: tuple[int, ...]) -> ClosedJaxpr:
    """A branch whose first arguments are its own slots, with all slots as arguments."""

    def make():
        invars = closed.jaxpr.invars
        given = dict(zip(own, invars))
        new = [given[k] if k in given else Var(a) for k, a in enumerate(slots)]
        return ClosedJaxpr(closed.jaxpr.replace(invars=new + invars[len(own) :]), closed.consts)

    return closed.cached(("taking", slots, own), make)


def _saving(eqn, unknown_in, _unknown_out, halves):
    """What a policy saves of branches is further results of all, and the first arguments behind the index."""
    branches = eqn.params["branches"]
    if unknown_in[0]:
        return eqn.params, eqn.params, [], 1
    found = [halves(b, unknown_in[1:]) for b in branches]
    n_out = len(eqn.outvars)
    slots, places = _shared_slots([giving.out_avals[n_out:] for giving, _ in found])
    giving = tuple([_giving_slots(g, n_out, slots, own) for (g, _), own in zip(found, places)])
    taking = tuple([_taking_slots(t, slots, own) for (_, t), own in zip(found, places)])
    return {"branches": giving}, {"branches": taking}, slots, 1


def _transpose(outs_bar, index, *operands, branches):
    if type(index) is UndefinedPrimal:
        raise NotImplementedError("transpose of cond: the predicate depends on the linear input")
    linear = [type(a) is UndefinedPrimal for a in operands]
    nonzero = [type(b) is not Zero for b in outs_bar]
    integers = are_of_integers(branches[0].out_avals, outs_bar)
    key = ("cond_transpose", tuple(linear), tuple(nonzero), integers)
    backwards = tuple(b.cached(key, lambda b=b: _transposed_branch(b, linear, nonzero, integers)) for b in branches)
    if in_use() and (axes := vma_of(typeof(index))) and (held := axes & _axes_inside(backwards)):
        raise NotImplementedError(
            f"transpose of cond: the predicate varies along the axes {sorted(map(str, held))} of shard_map, and a "
            "branch would sum cotangents over them, where not all devices come; make what it closes over vary, by "
            "jax.lax.pcast(..., to='varying')"
        )
    found = iter(
        cond_p.bind(
            index,
            *(a for a, lin in zip(operands, linear) if not lin),
            *(b for b in outs_bar if type(b) is not Zero),
            branches=backwards,
        )
    )
    return [None] + [_summed(next(found), a.aval) if lin else None for a, lin in zip(operands, linear)]


def _axes_inside(branches: Sequence[ClosedJaxpr]) -> frozenset:
    """The axes of shard_map over which branches sum."""
    found: frozenset = Axes()
    for branch in branches:
        jaxpr = getattr(branch, "jaxpr", branch)
        for eqn in jaxpr.eqns:
            if eqn.primitive.name == "psum_invariant":
                found |= named(eqn.primitive, eqn.params)
            found |= _axes_inside(list(programs(eqn.params)))
    return found


def _summed(bar: Any, aval: Any) -> Any:
    """A cotangent, summed over the axes along which the predicate varies, and with it what is chosen, of a value that
    does not.
    """
    axes = vma_of(typeof(bar)) - vma_of(aval) if in_use() else ()
    return registry["psum_invariant"].bind(bar, axes=tuple(sorted(axes, key=str)))[0] if axes else bar


def _transposed_branch(closed: ClosedJaxpr, linear, nonzero, integers: bool) -> ClosedJaxpr:
    bar_avals = [cotangent_aval(a, integers) for a in closed.out_avals]

    def fun(*flat):
        values = iter(flat)
        args = [UndefinedPrimal(a) if lin else next(values) for a, lin in zip(closed.in_avals, linear)]
        bars = [next(values) if nz else Zero(a) for a, nz in zip(bar_avals, nonzero)]
        found = backward_pass_with_residuals(closed, args, bars)
        return [instantiated(b, a, integers) for b, a, lin in zip(found, closed.in_avals, linear) if lin]

    avals = [a for a, lin in zip(closed.in_avals, linear) if not lin]
    avals += [a for a, nz in zip(bar_avals, nonzero) if nz]
    return trace(fun, avals, closed.jaxpr.debug_info)


def _dce(eqn, used):
    """Drop results that nobody needs from every branch, and the operands that no branch mentions any more."""
    # Kept with each branch: the pass that drops dead code asks again for those inside, level by level.
    found = [b.cached(("cond_dce", tuple(used)), lambda b=b: _dce_branch(b, used)) for b in eqn.params["branches"]]
    branches = [branch for branch, _ in found]
    mentioned = list(map(any, zip(*[reads for _, reads in found])))
    if all(mentioned) and all(used):
        return eqn
    smaller = tuple(
        ClosedJaxpr(b.jaxpr.replace(invars=[v for v, m in zip(b.jaxpr.invars, mentioned) if m]), b.consts)
        for b in branches
    )
    return eqn.replace(
        invars=[eqn.invars[0], *(a for a, m in zip(eqn.invars[1:], mentioned) if m)],
        outvars=[v for v, u in zip(eqn.outvars, used) if u],
        params={"branches": smaller},
    )


def _dce_branch(closed: ClosedJaxpr, used) -> tuple[ClosedJaxpr, list[bool]]:
    inner = dce_jaxpr(closed.jaxpr, used)
    return ClosedJaxpr(inner, closed.consts), used_inputs(inner)


def _effects(params):
    return frozenset().union(*(b.effects for b in params["branches"]))


def _outer(args, params):
    branches, outer = with_outer_of(params["branches"], args)
    return (args[0], *outer, *args[1:]), params | {"branches": tuple(branches)}


def _discharge(index, *operands, branches):
    if rules_get_references(*branches):
        closed = [closing_over(branch, operands) for branch in branches]
        others = closed[0][1]
        return current_interpreter().process(cond_p, (index, *others), {"branches": tuple([c for c, _ in closed])})
    found = [discharged(branch) for branch in branches]
    written = sorted({n for _, numbers in found for n in numbers})
    count = len(branches[0].out_avals)

    def with_values(closed, numbers):
        jaxpr = closed.jaxpr
        after = [jaxpr.outvars[count + numbers.index(n)] if n in numbers else jaxpr.invars[n] for n in written]
        return ClosedJaxpr(jaxpr.replace(outvars=[*jaxpr.outvars[:count], *after]), closed.consts)

    of_values = [c.cached(("discharge", *written), lambda c=c, w=w: with_values(c, w)) for c, w in found]
    outs = cond_p.bind(index, *values_of(operands), branches=tuple(of_values))
    note(operands, written, outs[count:])
    return outs[:count]


def _lower(ctx):
    operands = [ctx.operand(k) for k in range(len(ctx.in_avals))]
    results = [ctx.result(k) for k in range(len(ctx.out_avals))]
    ctx.choose(ctx.params["branches"], operands[0], operands[1:], results)


def _shared(params):
    """What a branch hands on, or changes in place, stays where it is: no branch copies it there and back."""
    branches = params["branches"]
    found: dict[int, int] = {}
    for n, aval in enumerate(branches[0].out_avals):
        for branch in branches:
            k = branch.cached("made of", functools.partial(_made_of, branch.jaxpr))[n]
            if k is not None and k not in found and branch.in_avals[k].dtype == aval.dtype:
                found[k] = n
                break
    return [(1 + k, n) for k, n in found.items()]


def _made_of(jaxpr) -> list[int | None]:
    """For each result the argument that it is, after changes that may be made in its memory."""
    numbers = {var: k for k, var in enumerate(jaxpr.invars)}
    made = {var: eqn for eqn in jaxpr.eqns for var in eqn.outvars}
    kinds = [(eqn, eqn.primitive.lower) for eqn in jaxpr.eqns]
    pairs = {id(eqn): kind.pairs(eqn.params) for eqn, kind in kinds if isinstance(kind, Nest)}

    def argument(out):
        var = out
        while isinstance(var, Var):
            if var in numbers:
                return numbers[var] if var.aval.shape == out.aval.shape else None
            eqn = made.get(var)
            if eqn is None:
                return None
            var = next((eqn.invars[k] for k, m in pairs.get(id(eqn), ()) if eqn.outvars[m] is var), None)
        return None

    return [argument(out) for out in jaxpr.outvars]


cond_p = Primitive(
    "cond",
    doc="One of several branches.",
    multiple_results=True,
    abstract_eval=_abstract_eval,
    reference=_reference,
    evaluate=_evaluate,
    jvp=_jvp,
    transpose=_transpose,
    batch=NoRule("use batch_axis"),
    batch_axis=_batch_axis,
    partial_eval=_partial_eval,
    dce=_dce,
    saving=_saving,
    effects=_effects,
    discharge=_discharge,
    outer=_outer,
    lower=Nest(_lower, shared=_shared),
)
cond_p.typecheck = check_cond
