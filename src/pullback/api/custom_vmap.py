"""Functions with a batching rule of the user's own: custom_vmap, sequential_vmap.

A call is a `custom_vmap_call` equation that carries the function's jaxpr and the rule. Under `vmap` the rule runs in
its place; everywhere else the jaxpr does. Tangents are those of the function, and under `vmap` those of the rule, but
for derivatives in reverse inside of `vmap`, which are those of the function: its value still comes from the rule.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from pullback.api import _arguments as arguments
from pullback.core import DebugInfo, Zero, eval_jaxpr, hoist_tracers, hooks, trace, typeof
from pullback.core.explain import type_shown
from pullback.core.interpreter import current_interpreter, eval_interpreter, using
from pullback.core.lowering import Inline
from pullback.lax import map as map_over
from pullback.transforms.batching import to_front
from pullback.transforms.call import call_primitive, call_reference
from pullback.transforms.jvp import RecordedTangent, jvp_flat, jvp_jaxpr
from pullback.transforms.zeros import instantiate, zero_tangent
from pullback.util.pytree import (
    broadcast_prefix,
    leaves_tree,
    tree_flatten,
    tree_map,
    tree_structure,
    tree_unflatten,
    treedef_tuple,
)
from pullback.util.tracebacks import api_boundary


class custom_vmap:
    """A function whose behaviour under `vmap` is given by `def_vmap`.

    The rule is `rule(axis_size, in_batched, *args) -> (out, out_batched)`: args have their mapped axis in front where
    the tree `in_batched` (a list with one tree an argument) is True, and so has out. AttributeError if the function is
    mapped before there is a rule; TypeError for keyword arguments that are no positional ones.
    """

    __name__: str

    @api_boundary
    def __init__(self, fun: Callable[..., Any]) -> None:
        arguments.check_callable("custom_vmap", fun)
        functools.update_wrapper(self, fun)
        self.fun = fun
        self._positions = arguments.Positions("custom_vmap", fun)
        self.rule: Callable[..., Any] | None = None

    def def_vmap(self, vmap_rule: Callable[..., Any]) -> Callable[..., Any]:
        """Set the rule; usable as a decorator."""
        self.rule = vmap_rule
        return vmap_rule

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    @api_boundary
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        name = arguments.function_name(self.fun)
        args = self._positions.of(args, kwargs)
        if self.rule is None:
            raise AttributeError(
                f"No batching rule defined for {name}: give one to its def_vmap before the function is called"
            )
        if current_interpreter() is eval_interpreter():
            outs, tree = arguments.flatten_result(self.fun(*args), self.fun, "custom_vmap")
            return tree_unflatten(tree, [out if hasattr(out, "aval") else hooks.asarray(out) for out in outs])
        paths = functools.partial(arguments.leaf_paths, self.fun, args, {})
        leaves, in_tree = arguments.checked_leaves(name, "argument ", args, paths)
        out_tree: list[Any] = []

        def flat(*values: Any) -> list[Any]:
            outs, tree = arguments.flatten_result(self.fun(*tree_unflatten(in_tree, values)), self.fun, "custom_vmap")
            out_tree[:] = [tree]
            return outs

        closed, consts = hoist_tracers(trace(flat, [typeof(x) for x in leaves], DebugInfo("custom_vmap", name)))
        outs = custom_vmap_call_p.bind(
            *consts, *leaves, jaxpr=closed, rule=self._checked, name=name, in_tree=in_tree, out_tree=out_tree[0],
            num_consts=len(consts),
        )  # fmt: skip
        return tree_unflatten(out_tree[0], outs)

    def _checked(self, *args: Any) -> Any:
        name = arguments.function_name(self.fun)
        assert self.rule is not None
        found = self.rule(*args)
        if not isinstance(found, (tuple, list)) or len(found) != 2:
            raise TypeError(
                f"custom_vmap: rule {arguments.function_name(self.rule)} of function {name} must give a pair "
                f"(out, out_batched), but gave {str(found)[:80]!r} of type {type_shown(found)}"
            )
        return found


@api_boundary
def sequential_vmap(f: Callable[..., Any]) -> custom_vmap:
    """`f`, whose calls under `vmap` are one call after the other, in a loop."""
    fun = custom_vmap(f)

    @fun.def_vmap
    def rule(_axis_size: int, in_batched: Any, *args: Any) -> Any:
        leaves, tree = tree_flatten(args)
        mapped = [bool(b) for b in tree_flatten(in_batched)[0]]

        def one(own: Sequence[Any]) -> Any:
            rest = iter(own)
            return f(*tree_unflatten(tree, [next(rest) if b else x for x, b in zip(leaves, mapped)]))

        out = map_over(one, [x for x, b in zip(leaves, mapped) if b])
        return out, tree_map(lambda _: True, out)

    return fun


custom_vmap_call_p = call_primitive(
    "custom_vmap_call",
    "A function with a batching rule of its own.",
    call_reference,
    lower=Inline(),
)


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, jaxpr: Any, **params: Any) -> Any:
    """The call, and its tangents: those of the function, or under `vmap` those of the rule."""
    nonzeros = [type(t) is not Zero for t in tangents]
    jaxpr_dot, nonzeros_out = jvp_jaxpr(jaxpr, nonzeros)
    count, consts = len(jaxpr.out_avals), params["num_consts"]
    moving = [t for t in tangents if type(t) is not Zero]
    recorded = any(isinstance(t, RecordedTangent) for t in moving)  # the call is cut into its value and the rest
    if recorded or any(nonzeros[:consts]) or not any(nonzeros_out):
        outs = custom_vmap_call_p.bind(*primals, jaxpr=jaxpr, **params)
        found = eval_jaxpr(jaxpr_dot.jaxpr, jaxpr_dot.consts, *primals, *moving)
    else:
        rule = _rule_of_tangents(params, nonzeros[consts:], nonzeros_out)
        operands = len(primals) - consts + len(moving)
        found = custom_vmap_call_p.bind(
            *primals, *moving, jaxpr=jaxpr_dot, rule=lambda n, batched, leaves: rule(n, batched[0], leaves),
            name=f"{params['name']}_jvp", in_tree=treedef_tuple([leaves_tree(operands)]),
            out_tree=leaves_tree(len(jaxpr_dot.out_avals)), num_consts=consts, of_tangents=(jaxpr, params),
        )  # fmt: skip
        outs = found[:count]
    rest = iter(found[count:])
    return outs, [next(rest) if nz else Zero(a.to_tangent_aval()) for nz, a in zip(nonzeros_out, jaxpr.out_avals)]


def _partial_eval(interpreter: Any, args: Sequence[Any], params: Any) -> Any:
    """A call whose tangents wait for a backward pass is cut: the value is the rule's, the rest the function's."""
    jaxpr, of_primals = params.get("of_tangents", (None, None))
    n = 0 if jaxpr is None else len(jaxpr.in_avals)
    if not n or any(map(interpreter.is_unknown, args[:n])):
        return interpreter.default(custom_vmap_call_p, args, params)
    outs = custom_vmap_call_p.bind(*args[:n], jaxpr=jaxpr, **of_primals)
    with using(interpreter):
        found = eval_jaxpr(params["jaxpr"].jaxpr, params["jaxpr"].consts, *args)
    return [*outs, *found[len(outs) :]]


def _rule_of_tangents(params: Any, nonzeros: Sequence[bool], nonzeros_out: Sequence[bool]) -> Callable[..., Any]:
    """The batching rule of a call with tangents, flat: the derivative of the function's rule."""

    def rule(size: int, batched: Sequence[bool], leaves: Sequence[Any]) -> tuple[list[Any], list[bool]]:
        n = len(nonzeros)
        primals, moving, moves = list(leaves[:n]), iter(leaves[n:]), iter(batched[n:])
        mapped, tangents = list(batched[:n]), []
        for k, nonzero in enumerate(nonzeros):
            if not nonzero:
                tangents.append(zero_tangent(primals[k]))
                continue
            tangent, moved = next(moving), next(moves)
            if moved and not mapped[k]:
                primals[k] = hooks.broadcast(primals[k], size, 0)
            elif mapped[k] and not moved:
                tangent = hooks.broadcast(tangent, size, 0)
            mapped[k] = mapped[k] or moved
            tangents.append(tangent)
        out_mapped: list[bool] = []

        def flat(*values: Any) -> list[Any]:
            in_batched = list(tree_unflatten(params["in_tree"], mapped))
            out, out_batched = params["rule"](size, in_batched, *tree_unflatten(params["in_tree"], values))
            outs = tree_flatten(out)[0]
            out_mapped[:] = _mapped(out, out_batched, len(outs))
            return outs

        outs, dots = jvp_flat(flat, primals, tangents)
        kept = [(instantiate(d), b) for d, b, nonzero in zip(dots, out_mapped, nonzeros_out) if nonzero]
        return [*outs, *(d for d, _ in kept)], [*out_mapped, *(b for _, b in kept)]

    return rule


def _mapped(out: Any, out_batched: Any, count: int) -> list[bool]:
    if isinstance(out_batched, bool):
        return [out_batched] * count
    return [bool(b) for b in broadcast_prefix(out_batched, out)]


def _batch(
    axis: Any, args: Sequence[Any], dims: Sequence[int | None], *, rule: Any, name: str, in_tree: Any, out_tree: Any,
    num_consts: int, **_: Any,
) -> Any:  # fmt: skip
    if any(d is not None for d in dims[:num_consts]):
        raise ValueError(
            f"custom_vmap: function {name} closes over a value that is mapped, of which its rule knows nothing; make "
            "it an argument of the function"
        )
    values, batched = to_front(args[num_consts:], dims[num_consts:])
    in_batched = list(tree_unflatten(in_tree, batched))
    out, out_batched = rule(axis.size, in_batched, *tree_unflatten(in_tree, values))
    outs, tree = tree_flatten(out)
    if tree != out_tree:
        raise ValueError(
            f"custom_vmap: {name} itself returns {out_tree}, but the results of its rule are {tree}; the structures "
            "must be the same"
        )
    if isinstance(out_batched, bool):
        mapped = [out_batched] * len(outs)
    else:
        if tree_structure(out_batched) != tree:
            raise ValueError(
                f"custom_vmap: the rule of {name} returned results of structure {tree}, and says which are mapped in "
                f"another, {tree_structure(out_batched)}; give one bool for each result, or one for all"
            )
        mapped = [bool(b) for b in broadcast_prefix(out_batched, out)]
    for x, b in zip(outs, mapped):
        shape = typeof(x).shape
        if b and (not shape or shape[0] != axis.size):
            raise ValueError(
                f"custom_vmap: the rule of {name} says that a result of shape {shape} is mapped; expected a leading "
                f"axis of size {axis.size}"
            )
    return outs, [0 if b else None for b in mapped]


custom_vmap_call_p.jvp = _jvp
custom_vmap_call_p.partial_eval = _partial_eval
custom_vmap_call_p.batch_axis = _batch
custom_vmap_call_p.dce = None  # the rule takes all arguments and gives all results
