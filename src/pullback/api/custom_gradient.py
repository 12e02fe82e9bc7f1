"""Functions whose closures have derivatives, too: custom_gradient, closure_convert."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from pullback._ext import _core
from pullback.api import _arguments as arguments
from pullback.api.custom import custom_vjp
from pullback.core import ClosedJaxpr, DebugInfo, Zero, eval_jaxpr, tangent_aval, trace, typeof
from pullback.core.tracer import Tracer
from pullback.transforms.discharge import discharge_program
from pullback.transforms.zeros import is_float0
from pullback.util.pytree import tree_flatten, tree_leaves, tree_unflatten

P = ParamSpec("P")
R = TypeVar("R")


def custom_gradient(fun: Callable[P, tuple[R, Any]]) -> Callable[P, R]:
    """A function from `fun(*args) -> (out, vjp_fun)`, where vjp_fun gives the cotangents of the arguments."""
    arguments.check_callable("custom_gradient", fun)

    def wrapped(*args, **kwargs):
        def pair(*xs):
            found = fun(*xs, **kwargs)
            if not isinstance(found, (tuple, list)) or len(found) != 2 or not callable(found[1]):
                raise TypeError(
                    f"custom_gradient: {arguments.function_name(fun)} must return a pair of its result and a function "
                    f"of cotangents, got {str(found)[:80]} of type {type(found).__name__}"
                )
            return found

        def primal(*xs):
            return pair(*xs)[0]

        trees: list[Any] = []

        def fwd(*xs):
            out, pull = pair(*xs)
            leaves, tree = tree_flatten(out)
            avals = [tangent_aval(typeof(x)) for x in leaves]
            inner_tree: list[Any] = []

            def flat(*bars):
                found = pull(tree_unflatten(tree, bars))
                found = found if isinstance(found, (tuple, list)) else (found,)
                outs, inner = tree_flatten(tuple(found))
                inner_tree[:] = [inner]
                return outs

            closed = discharge_program(trace(flat, avals, DebugInfo("custom_gradient", arguments.function_name(fun))))
            trees[:] = [(closed.jaxpr, inner_tree[0])]  # without its constants, which are this trace's
            return out, list(closed.consts)

        def bwd(residuals, out_bar):
            jaxpr, inner = trees[0]
            return tree_unflatten(inner, eval_jaxpr(jaxpr, residuals, *tree_leaves(out_bar)))

        custom = custom_vjp(primal)
        custom.defvjp(fwd, bwd)
        return custom(*args)

    return _core.named_after(wrapped, fun)


def closure_convert(fun: Callable, *example_args) -> tuple[Callable, list[Any]]:
    """(converted, hoisted): `converted(*args, *hoisted)` is `fun(*args)` that closes over no tracer."""
    arguments.check_callable("closure_convert", fun)
    leaves, tree = tree_flatten(example_args)
    out_tree: list[Any] = []

    def flat(*values):
        outs, found = arguments.flatten_result(fun(*tree_unflatten(tree, values)), fun, "closure_convert")
        out_tree[:] = [found]
        return outs

    closed = discharge_program(
        trace(flat, [typeof(x) for x in leaves], DebugInfo("closure_convert", arguments.function_name(fun)))
    )
    hoisted = [c for c in closed.consts if _is_differentiable(c)]
    moved = [v for v, c in zip(closed.jaxpr.constvars, closed.consts) if _is_differentiable(c)]
    kept = [(v, c) for v, c in zip(closed.jaxpr.constvars, closed.consts) if not _is_differentiable(c)]
    open_jaxpr = closed.jaxpr.replace(constvars=[v for v, _ in kept], invars=moved + closed.jaxpr.invars)
    converted_jaxpr = ClosedJaxpr(open_jaxpr, [c for _, c in kept])

    def converted(*args_and_hoisted):
        n = len(args_and_hoisted) - len(hoisted)
        args, values = args_and_hoisted[:n], args_and_hoisted[n:]
        flat_args, found = tree_flatten(tuple(args))
        if found != tree:
            raise TypeError(f"closure_convert: called with arguments of structure {found}, converted for {tree}")
        return tree_unflatten(out_tree[0], converted_jaxpr(*values, *flat_args))

    return converted, hoisted


def _is_differentiable(value) -> bool:
    return isinstance(value, Tracer) and not is_float0(Zero(tangent_aval(typeof(value))).aval)
