"""scan: a loop with a carry over the leading axis of arrays, with all its rules.

    carry, ys[i] = f(consts, carry, xs[i])      for i = 0 .. length-1, or backwards

The body is a jaxpr with arguments consts, carry, xs and results carry, ys; the numbers of each are parameters.

Why: the backward loop of a scan takes carries that start at known values as linear. Their start is a zero tangent,
whose cotangent is dropped.

Residuals that do not depend on the iteration are computed once and enter the backward loop as constants instead of
being stacked.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from pullback.core import (
    ClosedJaxpr,
    Literal,
    NoRule,
    Primitive,
    UndefinedPrimal,
    Zero,
    current_interpreter,
    eval_jaxpr,
    high,
    hooks,
    trace,
    typeof,
)
from pullback.core.dimensions import index as size_of
from pullback.core.lowering import Nest
from pullback.core.references import has_references_among
from pullback.core.source import located
from pullback.core.typechecks import check_scan
from pullback.core.types import type_of_operands
from pullback.lax.control import common as control
from pullback.lax.control.passed_on import without_passed_on
from pullback.transforms.batching import batch_jaxpr
from pullback.transforms.call import call_effects
from pullback.transforms.discharge import closing_over, discharged, note, rules_get_references, values_of, with_outer
from pullback.transforms.jvp import jvp_jaxpr
from pullback.transforms.partial_eval import dce_jaxpr, partial_eval_jaxpr, split_list
from pullback.transforms.transpose import backward_pass_with_residuals
from pullback.transforms.zeros import are_of_integers, cotangent_aval, instantiate, instantiated
from pullback.util import config
from pullback.util.pytree import (
    keystr,
    tree_flatten,
    tree_flatten_with_path,
    tree_map,
    tree_unflatten,
    treedef_tuple,
)
from pullback.util.static import check_flags

C = TypeVar("C")
Y = TypeVar("Y")


def scan(
    f: Callable[[C, Any], tuple[C, Y]],
    init: C,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
) -> tuple[C, Y]:
    """Scan `f(carry, x) -> (carry, y)` over the leading axis of the arrays in `xs`; gives (final carry, stacked ys).

    The loop is compiled as a loop, not unrolled, and can be differentiated and batched. TypeError if the carry changes
    its structure, shapes or dtypes; ValueError if the leading sizes of xs disagree or, without xs, `length` is missing.
    """
    if high.has_high((init, xs)):
        from pullback.lax.control.scan_objects import by_arrays  # which few programs have

        f, init, xs = by_arrays(f, init, xs, length)
    given, tree = tree_flatten(xs)
    if has_references_among(given):
        from pullback.lax.control.scan_objects import by_rows

        f, xs, length = by_rows(f, given, tree, length)
    if not high.types_of:
        return _scan(f, init, xs, length, reverse, unroll)
    from pullback.lax.control.scan_objects import with_objects

    return with_objects(functools.partial(_scan, length=length, reverse=reverse, unroll=unroll), f, init, xs)


def _scan(f, init, xs, length, reverse, unroll):
    control.check_callable("scan", "f", f)
    init_leaves, init_tree = tree_flatten(init)
    if has_references_among(init_leaves):
        raise ValueError("scan: a Ref cannot be a part of the carry; let f close over it")
    init_leaves = control.as_arrays("scan", "init", init_leaves)
    xs_leaves, xs_tree = tree_flatten(xs)
    xs_leaves = control.as_arrays("scan", "xs", xs_leaves)
    length = common_length(xs, xs_leaves, length)

    if control.python_control_flow():
        return _scan_in_python(f, init, xs_leaves, xs_tree, length, reverse)

    x_avals = [control.row_type(a) for a in map(type_of_operands(), xs_leaves)]
    in_tree = treedef_tuple((init_tree, xs_tree))

    def carry_size(out_tree):
        children = out_tree.children()
        if len(children) != 2 or not _is_pair(out_tree):
            raise TypeError(
                f"scan body: its result must be a pair, (carry, y), got {out_tree}.\nThe function is {located(f)}."
            )
        return children[0].num_leaves if children[0] == init_tree else -1

    found, init_leaves = control.settle_carry(f, in_tree, init_leaves, x_avals, "scan", carry_size)
    jaxpr, consts, out_tree = found
    checked = jaxpr.derived.get("scan")
    if checked is None:
        out_children = out_tree.children()
        carry_avals = [*map(type_of_operands(), init_leaves)]
        n_carry = out_children[0].num_leaves
        if out_children[0] != init_tree or not control.same_types(carry_avals, jaxpr.out_avals[:n_carry]):
            raise control.carry_mismatch(
                "scan body", f, init_tree, out_children[0], carry_avals, jaxpr.out_avals[:n_carry], init
            )
        checked = jaxpr.cached("scan", lambda: out_children)  # for when the body is remembered
    carry_tree, ys_tree = checked
    n_carry = carry_tree.num_leaves
    check_flags("scan", reverse=reverse)
    if not hasattr(unroll, "__index__"):
        raise TypeError(f"scan: argument 'unroll' must be an integer or a bool, got {unroll!r}")
    unroll = max(length, 1) if unroll is True else int(unroll or 1)
    if unroll < 1:
        raise ValueError(f"scan: argument 'unroll' must be at least 1, got {unroll}")
    kept = jaxpr.derived.get("passed_on")
    if kept is None:
        kept = jaxpr.cached("passed_on", lambda: without_passed_on(jaxpr, len(consts), n_carry))
    outs = []
    is_read = config.value_of("jax_named_calls")  # readers see loops that do nothing, too
    if kept.body.jaxpr.outvars or kept.body.jaxpr.eqns or jaxpr.effects or is_read:  # of shardings' inspections too
        outs = scan_p.bind(
            *consts,
            *(init_leaves if kept.body is jaxpr else kept.arguments(init_leaves)),
            *xs_leaves,
            jaxpr=kept.body,
            length=length,
            reverse=bool(reverse),
            num_consts=len(consts) + len(kept.fixed),
            num_carry=kept.n_carry,
            unroll=unroll,
        )
    if kept.body is not jaxpr:
        outs = kept.results(outs, init_leaves, xs_leaves)
    carry = tree_unflatten(carry_tree, outs[:n_carry])
    return carry, tree_unflatten(ys_tree, outs[n_carry:])


def _is_pair(tree) -> bool:
    node = tree.node_data()
    return node is not None and node[0] in (tuple, list)


def common_length(xs, xs_leaves, length) -> int:
    sizes = set()
    for leaf in xs_leaves:
        shape = typeof(leaf).shape
        if not shape:
            raise ValueError("scan: argument 'xs' has a scalar, with no leading axis; each array gives a row a step")
        sizes.add(shape[0])
    if length is not None:
        if isinstance(length, (float, np.floating)) and float(length).is_integer():
            length = int(length)  # a quotient of counts: numbers with a fraction are refused
        length = size_of(length)
        if any(size != length for size in sizes):
            raise ValueError(
                f"scan: argument 'length' is {length}, but the arrays in 'xs' have other leading axis sizes: "
                f"{', '.join(sorted(map(str, sizes)))}"
            )
        return length
    if len(sizes) > 1:
        paths = [keystr(path) for path, _ in tree_flatten_with_path(xs)[0]]
        types = [f"xs{path} is {typeof(leaf).short()}" for path, leaf in zip(paths, xs_leaves)]
        raise ValueError(
            f"scan: argument 'xs' has different leading axis sizes: {', '.join(sorted(map(str, sizes)))}. "
            f"{', '.join(types[:10])}"
        )
    if not sizes:
        raise ValueError("scan: the number of steps is unknown; give arrays in 'xs', or 'length'")
    return sizes.pop()


def _scan_in_python(f, init, xs_leaves, xs_tree, length, reverse):
    if length == 0:
        raise ValueError("scan with zero-length xs is not supported while jit is disabled (the shape of ys is unknown)")
    carry, ys = init, []
    for i in reversed(range(length)) if reverse else range(length):
        carry, y = f(carry, tree_unflatten(xs_tree, [leaf[i] for leaf in xs_leaves]))
        ys.append(y)
    if reverse:
        ys.reverse()
    stacked = tree_map(lambda *leaves: hooks.stack(leaves), ys[0], *ys[1:])
    return carry, stacked


# The rules, in the order of the record.


def _sizes(params) -> tuple[int, int]:
    return params["num_consts"], params["num_carry"]


def _abstract_eval(*avals, jaxpr, length, num_consts, num_carry, **_params):
    outs = jaxpr.out_avals
    return outs[:num_carry] + [a.update(shape=(length, *a.shape)) for a in outs[num_carry:]]


def _reference(*args, jaxpr, length, reverse, num_consts, num_carry, turned=(), **_params):
    consts, carry, xs = split_list([np.asarray(a) for a in args], [num_consts, num_carry])
    xs = [x[::-1] if flag else x for x, flag in zip(xs, turned)] if turned else xs
    rows: list[list[Any]] = []
    for i in reversed(range(length)) if reverse else range(length):
        outs = eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, *map(hooks.asarray, [*consts, *carry, *(x[i] for x in xs)]))
        carry = outs[:num_carry]
        rows.append([np.asarray(y) for y in outs[num_carry:]])
    if reverse:
        rows.reverse()
    ys = [
        np.stack([row[k] for row in rows]) if rows else np.zeros((0, *aval.shape), aval.dtype)
        for k, aval in enumerate(jaxpr.out_avals[num_carry:])
    ]
    ys = [y[::-1] if flag else y for y, flag in zip(ys, turned[len(xs) :])] if turned else ys
    return [*(np.asarray(c) for c in carry), *ys]


def _evaluate(*args, **params):
    return control.run_as_program(scan_p, params["jaxpr"], args, params)


def _jvp(primals, tangents, *, jaxpr, **params):
    n_consts, n_carry = _sizes(params)
    nonzero = [type(t) is not Zero for t in tangents]
    consts_nz, carry_nz, xs_nz = split_list(nonzero, [n_consts, n_carry])
    n_ys = len(jaxpr.out_avals) - n_carry

    def step(carry_nz):
        made = jvp_jaxpr(jaxpr, consts_nz + carry_nz + xs_nz, carry_nz + [False] * n_ys)
        return made, made[1][:n_carry]

    carry_nz, (body, nz_out) = control.spread(carry_nz, step)
    tangents = [instantiate(t) if nz else t for t, nz in zip(tangents, consts_nz + carry_nz + xs_nz)]
    groups = split_list(range(len(primals)), [n_consts, n_carry])
    position = iter(range(len(primals), len(primals) + sum(consts_nz + carry_nz + xs_nz)))
    dots = [[next(position) for nz in nzs if nz] for nzs in (consts_nz, carry_nz, xs_nz)]
    in_order = [i for own, dot in zip(groups, dots) for i in [*own, *dot]]
    n_outs = n_carry + n_ys
    n_carry_dot = sum(carry_nz)
    out_dots = list(range(n_outs, n_outs + sum(nz_out)))
    out_order = [*range(n_carry), *out_dots[:n_carry_dot], *range(n_carry, n_outs), *out_dots[n_carry_dot:]]
    body = body.cached(
        ("scan_order", tuple(in_order), tuple(out_order)), lambda: control.permute(body, in_order, out_order)
    )
    values = [*primals, *(t for t, nz in zip(tangents, consts_nz + carry_nz + xs_nz) if nz)]
    operands = [values[i] for i in in_order]
    outs = scan_p.bind(
        *operands,
        jaxpr=body,
        **params
        | {
            "num_consts": n_consts + sum(consts_nz),
            "num_carry": n_carry + n_carry_dot,
        },
    )
    carry, carry_dot, ys, ys_dot = split_list(outs, [n_carry, n_carry_dot, n_ys])
    found = iter([*carry_dot, *ys_dot])
    avals = _abstract_eval(jaxpr=jaxpr, **params)
    return [*carry, *ys], [next(found) if nz else Zero(a.to_tangent_aval()) for nz, a in zip(nz_out, avals)]


def _batch_axis(axis, args, dims, *, jaxpr, **params):
    n_consts, n_carry = _sizes(params)
    consts_b, carry_b, xs_b = split_list([d is not None for d in dims], [n_consts, n_carry])
    n_ys = len(jaxpr.out_avals) - n_carry

    def step(carry_b):
        made = batch_jaxpr(jaxpr, axis, consts_b + carry_b + xs_b, carry_b + [False] * n_ys)
        return made, made[1][:n_carry]

    carry_b, (body, b_out) = control.spread(carry_b, step)
    operands = []
    for k, (value, dim, batched) in enumerate(zip(args, dims, consts_b + carry_b + xs_b)):
        to = 1 if k >= n_consts + n_carry else 0
        if dim is None:
            operands.append(hooks.broadcast(value, axis.size, to) if batched else value)
        else:
            operands.append(value if dim == to else hooks.moveaxis(value, dim, to))
    outs = scan_p.bind(*operands, jaxpr=body, **params)
    return outs, [0 if b else None for b in b_out[:n_carry]] + [1 if b else None for b in b_out[n_carry:]]


def _partial_eval(interpreter, args, params):
    jaxpr: ClosedJaxpr = params["jaxpr"]
    n_consts, n_carry = _sizes(params)
    unknown = [interpreter.is_unknown(a) for a in args]
    consts_u, carry_u, xs_u = split_list(unknown, [n_consts, n_carry])
    n_ys = len(jaxpr.out_avals) - n_carry

    def step(carry_u):
        made = partial_eval_jaxpr(jaxpr, consts_u + carry_u + xs_u, carry_u + [False] * n_ys)
        return made, made[2][:n_carry]

    carry_u, (known, rest, u_out, res_avals) = control.spread(carry_u, step)
    unknown = consts_u + carry_u + xs_u
    n_res, n_known_out = len(res_avals), len(u_out) - sum(u_out)
    known_args = [a for a, u in zip(args, unknown) if not u]
    n_known_consts = n_consts - sum(consts_u)

    # Residuals that do not depend on the iteration are computed once, and enter the rest as constants.
    invariant, before = known.cached(
        ("invariant", n_known_consts, n_res), lambda: _invariant_residuals(known, n_known_consts, n_known_out)
    )
    fixed = before(*known_args[:n_known_consts])
    # Residuals that are rows of a scanned array are read from that array again instead of being stacked.
    rows = _residual_rows(known, n_known_consts + n_carry - sum(carry_u), n_known_out)
    rows = {i: k for i, k in rows.items() if i not in invariant}
    stacked = [i for i in range(n_res) if i not in invariant and i not in rows]
    known = known.cached(
        ("without_invariant", n_known_consts, n_res),
        lambda: ClosedJaxpr(
            dce_jaxpr(
                known.jaxpr.replace(
                    outvars=known.jaxpr.outvars[:n_known_out] + [known.jaxpr.outvars[n_known_out + i] for i in stacked]
                )
            ),
            known.consts,
        ),
    )

    outs = scan_p.bind(
        *known_args,
        **params
        | {
            "jaxpr": known,
            "num_consts": n_known_consts,
            "num_carry": n_carry - sum(carry_u),
        },
    )
    known_outs, residuals = iter(outs[:n_known_out]), outs[n_known_out:]

    n_uc, n_ucarry = sum(consts_u), sum(carry_u)
    unknown_positions = range(n_res, n_res + sum(unknown))
    order = [
        *invariant,
        *unknown_positions[: n_uc + n_ucarry],
        *stacked,
        *rows,
        *unknown_positions[n_uc + n_ucarry :],
    ]
    rest = rest.cached(("scan_order", tuple(order)), lambda: control.permute(rest, order))
    uc, ucarry, uxs = split_list([a for a, u in zip(args, unknown) if u], [n_uc, n_ucarry])
    operands = [*fixed, *uc, *ucarry, *residuals, *(known_args[k] for k in rows.values()), *uxs]
    rest_params = params | {
        "jaxpr": rest,
        "num_consts": len(fixed) + n_uc,
        "num_carry": n_ucarry,
    }
    recorded = iter(interpreter.emit(scan_p, operands, rest_params, _abstract_eval(**rest_params)))
    return [next(recorded) if u else next(known_outs) for u in u_out]


def _residual_rows(known: ClosedJaxpr, first: int, n_known_out: int) -> dict[int, int]:
    """Number of the argument, for each residual that is a row of a scanned argument; those start at `first`."""
    position = {v: k for k, v in enumerate(known.jaxpr.invars) if k >= first}
    residuals = known.jaxpr.outvars[n_known_out:]
    return {i: position[v] for i, v in enumerate(residuals) if type(v) is not Literal and v in position}


def _invariant_residuals(known: ClosedJaxpr, n_consts: int, n_known_out: int):
    """(numbers of the residuals that depend on constants only, jaxpr that computes them from the constants)."""
    jaxpr = known.jaxpr
    fixed = set(jaxpr.constvars) | set(jaxpr.invars[:n_consts])
    eqns = []
    for eqn in jaxpr.eqns:
        if not eqn.effects and all(type(a) is Literal or a in fixed for a in eqn.invars):
            fixed.update(eqn.outvars)
            eqns.append(eqn)
    residuals = jaxpr.outvars[n_known_out:]
    numbers = [i for i, v in enumerate(residuals) if type(v) is Literal or v in fixed]
    before = dce_jaxpr(
        jaxpr.replace(
            invars=jaxpr.invars[:n_consts], outvars=[residuals[i] for i in numbers], eqns=eqns, effects=frozenset()
        )
    )
    return numbers, ClosedJaxpr(before, known.consts)


def _transpose(outs_bar, *args, jaxpr, **params):
    n_consts, n_carry = _sizes(params)
    # A carry that starts at a known value (a zero tangent) is linear all the same; the start's cotangent is dropped.
    linear = [type(a) is UndefinedPrimal for a in args]
    consts_l, carry_l, xs_l = split_list(linear, [n_consts, n_carry])
    consts, _, xs = split_list(args, [n_consts, n_carry])
    integers = are_of_integers(jaxpr.out_avals, outs_bar)
    carry_avals = jaxpr.in_avals[n_consts : n_consts + n_carry]
    ys_bar = outs_bar[n_carry:]
    ys_nz = [type(b) is not Zero for b in ys_bar]
    const_avals = [cotangent_aval(a.aval, integers) for a, lin in zip(consts, consts_l) if lin]
    key = ("scan_transpose", tuple(linear), tuple(ys_nz), n_consts, n_carry, integers)
    backwards = jaxpr.cached(key, lambda: _transposed_body(jaxpr, consts_l, xs_l, ys_nz, n_consts, n_carry, integers))
    plain_consts = [a for a, lin in zip(consts, consts_l) if not lin]
    plain_xs = [a for a, lin in zip(xs, xs_l) if not lin]
    carry_bar = [instantiated(b, a, integers) for b, a in zip(outs_bar, carry_avals)]
    zeros = [instantiate(Zero(a)) for a in const_avals]
    operands = [*plain_consts, *zeros, *carry_bar, *(b for b in ys_bar if type(b) is not Zero), *plain_xs]
    outs = scan_p.bind(
        *operands,
        jaxpr=backwards,
        **params
        | {
            "reverse": not params["reverse"],
            "num_consts": len(plain_consts),
            "num_carry": len(zeros) + len(carry_avals),
        },
    )
    found_consts, found_carry, found_xs = split_list(outs, [len(zeros), n_carry])
    next_const, next_x = iter(found_consts), iter(found_xs)
    return (
        [next(next_const) if lin else None for lin in consts_l]
        + [bar if lin else None for bar, lin in zip(found_carry, carry_l)]
        + [next(next_x) if lin else None for lin in xs_l]
    )


def _transposed_body(jaxpr, consts_l, xs_l, ys_nz, n_consts, n_carry, integers) -> ClosedJaxpr:
    """Body of the backwards loop: carry (consts_bar, carry_bar), xs (ys_bar, plain xs) -> carry, xs_bar."""
    consts_avals, carry_avals, x_avals = split_list(jaxpr.in_avals, [n_consts, n_carry])
    plain_consts = [a for a, lin in zip(consts_avals, consts_l) if not lin]
    linear_consts = [cotangent_aval(a, integers) for a, lin in zip(consts_avals, consts_l) if lin]
    y_avals = [cotangent_aval(a, integers) for a in jaxpr.out_avals[n_carry:]]
    y_bars = [a for a, nz in zip(y_avals, ys_nz) if nz]
    plain_xs = [a for a, lin in zip(x_avals, xs_l) if not lin]
    sizes = [len(plain_consts), len(linear_consts), n_carry, len(y_bars)]

    def body(*flat):
        consts, consts_bar, carry_bar, ys_bar, xs = split_list(flat, sizes)
        next_const, next_y, next_x = iter(consts), iter(ys_bar), iter(xs)
        args = [UndefinedPrimal(a) if lin else next(next_const) for a, lin in zip(consts_avals, consts_l)]
        args += [UndefinedPrimal(a) for a in carry_avals]
        args += [UndefinedPrimal(a) if lin else next(next_x) for a, lin in zip(x_avals, xs_l)]
        bars = [*carry_bar, *(next(next_y) if nz else Zero(a) for a, nz in zip(y_avals, ys_nz))]
        found = backward_pass_with_residuals(jaxpr, args, bars)
        new_consts = [b for b, lin in zip(found[:n_consts], consts_l) if lin]
        sums = [old if type(new) is Zero else hooks.add(old, new) for old, new in zip(consts_bar, new_consts)]
        made = [instantiated(b, a, integers) for b, a in zip(found, jaxpr.in_avals)]
        new_xs = [b for b, lin in zip(made[n_consts + n_carry :], xs_l) if lin]
        return [*sums, *made[n_consts : n_consts + n_carry], *new_xs]

    avals = plain_consts + linear_consts + [cotangent_aval(a, integers) for a in carry_avals] + y_bars + plain_xs
    return trace(body, avals, jaxpr.jaxpr.debug_info)


def _dce(eqn, used):
    """Drop results that nobody needs, carries that only feed themselves, and the arguments of both."""
    jaxpr: ClosedJaxpr = eqn.params["jaxpr"]
    n_consts, n_carry = _sizes(eqn.params)
    key = ("scan_dce", tuple(used), n_consts, n_carry)
    kept_in, kept_out, body, n_kept_consts, n_kept_carry = jaxpr.cached(
        key, lambda: _dce_body(jaxpr, n_consts, n_carry, used)
    )
    if all(kept_in) and all(kept_out):
        return eqn
    params = eqn.params | {"jaxpr": body, "num_consts": n_kept_consts, "num_carry": n_kept_carry}
    if "turned" in params:
        kept = [*kept_in[n_consts + n_carry :], *kept_out[n_carry:]]
        params["turned"] = tuple(flag for flag, k in zip(params["turned"], kept) if k)
    return eqn.replace(
        invars=[a for a, k in zip(eqn.invars, kept_in) if k],
        outvars=[v for v, k in zip(eqn.outvars, kept_out) if k],
        params=params,
    )


def _dce_body(jaxpr, n_consts, n_carry, used):
    ys_used = list(used[n_carry:])

    def step(carry_used):
        inner = dce_jaxpr(jaxpr.jaxpr, carry_used + ys_used)
        mentioned = {a for e in inner.eqns for a in e.invars if type(a) is not Literal}
        mentioned.update(a for a in inner.outvars if type(a) is not Literal)
        return (inner, mentioned), [v in mentioned for v in inner.invars[n_consts : n_consts + n_carry]]

    carry_used, (inner, mentioned) = control.spread(used[:n_carry], step)
    kept_in = (
        [v in mentioned for v in inner.invars[:n_consts]]
        + carry_used
        + [v in mentioned for v in inner.invars[n_consts + n_carry :]]
    )
    inner = inner.replace(invars=[v for v, k in zip(inner.invars, kept_in) if k])
    return kept_in, carry_used + ys_used, ClosedJaxpr(inner, jaxpr.consts), sum(kept_in[:n_consts]), sum(carry_used)


def _saving(eqn, unknown_in, unknown_out, halves):
    """What a policy saves of an iteration is a further row of results, and of scanned arguments."""
    params = eqn.params
    n_consts, n_carry = _sizes(params)
    consts_u, carry_u, xs_u = split_list(unknown_in, [n_consts, n_carry])
    carry_u = [a or b for a, b in zip(carry_u, unknown_out)]  # what is unknown in some iteration is so in all
    giving, taking = halves(params["jaxpr"], consts_u + carry_u + xs_u)
    rows = giving.out_avals[len(eqn.outvars) :]
    n, place = len(rows), n_consts + n_carry
    order = [*range(n, n + place), *range(n), *range(n + place, n + len(eqn.invars))]
    taking = taking.cached(("scan_order", tuple(order)), lambda: control.permute(taking, order))
    saved = [a.update(shape=(params["length"], *a.shape)) for a in rows]
    return params | {"jaxpr": giving}, params | {"jaxpr": taking}, saved, place


def _lower(ctx):
    """A sequential loop; the carry lives in the results' memory, new carries in temporaries until the body is done."""
    params = ctx.params
    jaxpr, length, reverse = params["jaxpr"], params["length"], params["reverse"]
    n_consts, n_carry = _sizes(params)
    operands = [ctx.operand(k) for k in range(len(ctx.in_avals))]
    consts, init, xs = split_list(operands, [n_consts, n_carry])
    results = [ctx.result(k) for k in range(len(ctx.out_avals))]
    turned = params.get("turned", ())
    ctx.carry_loop(jaxpr, length, reverse, consts, init, xs, results[:n_carry], results[n_carry:], turned)


def _outer(args, params):
    body, outer = with_outer(params["jaxpr"], args)
    n = len(outer)
    changed = {"jaxpr": body, "num_consts": n + params["num_consts"]}
    return (*outer, *args), params | changed


def _discharge(*args, jaxpr, num_consts, num_carry, **params):
    if rules_get_references(jaxpr):
        body, consts = closing_over(jaxpr, args[:num_consts])
        rest = args[num_consts:]
        changed = {"jaxpr": body, "num_consts": len(consts)}
        return current_interpreter().process(scan_p, (*consts, *rest), params | changed | {"num_carry": num_carry})
    body, written = discharged(jaxpr)
    kept = [n for n in range(num_consts) if n not in written]
    count = len(jaxpr.out_avals)
    in_order = [*kept, *written, *range(num_consts, len(args))]
    out_order = [*range(count, count + len(written)), *range(count)]
    body = body.cached("discharge", lambda: control.permute(body, in_order, out_order))
    values = values_of(args)
    outs = scan_p.bind(
        *[values[n] for n in in_order],
        jaxpr=body,
        num_consts=len(kept),
        num_carry=num_carry + len(written),
        **params,
    )
    note(args, written, outs[: len(written)])
    return outs[len(written) :]


def _shared(params):
    n_consts, n_carry = _sizes(params)
    return [(n_consts + k, k) for k in range(n_carry)]


scan_p = Primitive(
    "scan",
    doc="A loop with a carry over leading axes.",
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
    effects=call_effects,
    discharge=_discharge,
    outer=_outer,
    lower=Nest(_lower, shared=_shared),
    traits={"stacked"},
)
scan_p.typecheck = check_scan
