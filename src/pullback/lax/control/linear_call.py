"""linear_call: a linear function whose transpose is given, too."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from pullback.core import ClosedJaxpr, DebugInfo, eval_jaxpr, hoist_tracers, trace
from pullback.core.lowering import Inline
from pullback.lax.records.families import *
from pullback.transforms.batching import batch_jaxpr
from pullback.transforms.discharge import reading
from pullback.transforms.jvp import jvp_flat
from pullback.util.errors import ArgumentError
from pullback.util.pytree import tree_flatten, tree_unflatten
from pullback.util.record import NamedTuple
from pullback.util.tracebacks import api_boundary

__all__ = ["linear_call", "linear_call_p"]


class _Side(NamedTuple):
    """A function as a jaxpr: constants of its own, residuals, linear operands; the results keep their structure.

    A transpose that cannot be traced, or does not fit, has nothing but its error, which is raised where it is wanted.
    """

    jaxpr: ClosedJaxpr
    consts: int
    error: Exception | None = None

    def run(self, *args: Any) -> list[Any]:
        return eval_jaxpr(self.jaxpr.jaxpr, self.jaxpr.consts, *args)


class _Sides(NamedTuple):
    """A linear function and its transpose, and how many residuals both have."""

    fun: _Side
    transposed: _Side
    residuals: int

    def split(self, args: Any) -> tuple[list[Any], list[Any], list[Any], list[Any]]:
        """(constants of the function, those of its transpose, residuals, linear operands)."""
        a, b = self.fun.consts, self.transposed.consts
        ends = (0, a, a + b, a + b + self.residuals, len(args))
        first, second, residuals, linear = (list(args[i:j]) for i, j in itertools.pairwise(ends))
        return first, second, residuals, linear


def _values(*args, sides):
    consts, _, residuals, linear = sides.split(args)
    return sides.fun.run(*consts, *residuals, *linear)


def _avals(*avals, sides):
    return list(sides.fun.jaxpr.out_avals)


def _jvp(primals, tangents, *, sides):
    outs = linear_call_p.bind(*primals, sides=sides)
    consts, other, residuals, linear = sides.split(primals)
    consts_dot, _, residuals_dot, linear_dot = sides.split(tangents)
    found: list[Any] = [None] * len(outs)
    if not all(map(is_zero, linear_dot)):
        found = linear_call_p.bind(*consts, *other, *residuals, *map(instantiate, linear_dot), sides=sides)
    if not all(map(is_zero, [*consts_dot, *residuals_dot])):
        _, change = jvp_flat(
            lambda *held: sides.fun.run(*held, *linear), [*consts, *residuals], [*consts_dot, *residuals_dot]
        )
        found = [c if f is None else add_tangents(f, c) for f, c in zip(found, change)]
    return outs, [tangent_zero(out) if f is None else f for out, f in zip(outs, found)]


def _transpose(bars, *args, sides):
    consts, other, residuals, linear = sides.split(args)
    if any(is_linear(x) for x in (*consts, *other, *residuals)):
        raise NotImplementedError("Transpose (reverse-mode) rule of primitive 'linear_call' in its residuals")
    none = [None] * (len(args) - len(linear))
    if sides.transposed.error is not None:
        raise sides.transposed.error
    if all(map(is_zero, bars)):
        return [*none, *[tangent_zero(x) for x in linear]]
    turned = _Sides(sides.transposed, sides.fun, sides.residuals)
    return [*none, *linear_call_p.bind(*other, *consts, *residuals, *map(instantiate, bars), sides=turned)]


def _batch(axis, args, dims, *, sides):
    """Residuals stay as they are where they are not batched; linear operands are batched, all of them."""
    consts, other, residuals, linear = sides.split(args)
    parts = sides.split(dims)
    linear = [batch_front(x, d, axis.size) for x, d in zip(linear, parts[3])]
    places = (*parts[0], *parts[1], *parts[2])
    held = [x if d is None else move_batch_axis(x, d, 0) for x, d in zip((*consts, *other, *residuals), places)]
    new = []
    for side, at in ((sides.fun, parts[0]), (sides.transposed, parts[1])):
        if side.error is not None:
            new.append(side)
            continue
        count = len(side.jaxpr.in_avals) - side.consts - sides.residuals
        batched = [d is not None for d in (*at, *parts[2])] + [True] * count
        closed, _ = batch_jaxpr(side.jaxpr, axis, batched, True)
        new.append(_Side(closed, side.consts))
    outs = linear_call_p.bind(*held, *linear, sides=_Sides(new[0], new[1], sides.residuals))
    return outs, [0] * len(outs)


def _whole(params):
    """The jaxpr of the results, of all operands."""
    sides = params["sides"]
    first, second = sides.fun.jaxpr.in_avals, sides.transposed.jaxpr.in_avals
    avals = [*first[: sides.fun.consts], *second[: sides.transposed.consts], *first[sides.fun.consts :]]
    return trace(lambda *args: _values(*args, sides=sides), avals)


linear_call_p = Primitive(
    "linear_call",
    doc="A linear function of the user's, and its transpose.",
    abstract_eval=_avals,
    reference=_values,
    evaluate=_values,
    jvp=_jvp,
    transpose=_transpose,
    multiple_results=True,
    batch=NoRule("use batch_axis"),
    batch_axis=_batch,
    lower=Inline(_whole),
)


def _traced(name: str, fun: Callable, trees: Any, avals: list[Any]) -> tuple[_Side, list[Any], Any]:
    """(a function of two trees as a jaxpr of their leaves, its constants, the structure of its result)."""
    out_trees: list[Any] = []
    residual_tree, linear_tree = trees

    def flat(*leaves):
        held, given = leaves[: residual_tree.num_leaves], leaves[residual_tree.num_leaves :]
        outs, tree = tree_flatten(fun(tree_unflatten(residual_tree, held), tree_unflatten(linear_tree, given)))
        out_trees[:] = [tree]
        return as_arrays(name, *outs)

    traced = trace(flat, avals, DebugInfo(name, getattr(fun, "__name__", name)))
    closed, consts = reading(name, *hoist_tracers(traced))
    return _Side(closed, len(consts)), consts, out_trees[0]


@api_boundary
def linear_call(fun: Callable, fun_transpose: Callable, residual_args: Any, linear_args: Any) -> Any:
    """fun(residual_args, linear_args), which is linear in linear_args and transposed by fun_transpose.

    fun_transpose(residual_args, out) takes what is of the structure of fun's result, and gives what is of the structure
    and types of linear_args; if it does not, transposing the call raises TypeError. Whether one is the transpose of the
    other is not checked.

    >>> linear_call(lambda d, x: x / d, lambda d, t: t / d, 4.0, 3.0)
    Array(0.75, dtype=float32, weak_type=True)
    """
    for argument, function in (("fun", fun), ("fun_transpose", fun_transpose)):
        if not callable(function):
            raise TypeError(f"linear_call: argument '{argument}' must be a function, got {function!r}")
    held, residual_tree = tree_flatten(residual_args)
    given, linear_tree = tree_flatten(linear_args)
    held, given = as_arrays("linear_call", *held), as_arrays("linear_call", *given)
    kept, linear = [typeof(x) for x in held], [typeof(x) for x in given]
    side, consts, out_tree = _traced("linear_call", fun, (residual_tree, linear_tree), [*kept, *linear])
    outs = side.jaxpr.out_avals
    try:
        turned, other, in_tree = _traced("linear_call", fun_transpose, (residual_tree, out_tree), [*kept, *outs])
        _check_transpose(in_tree, linear_tree, turned.jaxpr.out_avals, linear)
    except Exception as error:  # programs that are not transposed do not need it
        turned, other = _Side(trace(list, []), 0, error), []
    bound = linear_call_p.bind(*consts, *other, *held, *given, sides=_Sides(side, turned, len(held)))
    return tree_unflatten(out_tree, bound)


def _check_transpose(in_tree: Any, linear_tree: Any, found: Any, linear: Any) -> None:
    """TypeError for a transpose whose results are not of the structure and types of the linear operands."""
    if in_tree != linear_tree:
        raise TypeError(
            f"linear_call: argument 'fun_transpose' gave the pytree structure {in_tree}; expected that of the linear "
            f"operands, {linear_tree}"
        )
    if [(a.shape, a.dtype) for a in found] != [(a.shape, a.dtype) for a in linear]:
        raise ArgumentError(
            f"linear_call: argument 'fun_transpose' gave {[a.short() for a in found]}; expected the types of the "
            f"linear operands, {[a.short() for a in linear]}"
        )
