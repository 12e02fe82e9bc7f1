"""Functions that say how they are cut over devices: in a partitioned program the user's functions are asked, in all
else such a function is as any other.

    @custom_partitioning
    def f(x): ...
    f.def_partition(partition, infer_sharding_from_operands, sharding_rule="i j -> i j")
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from pullback import api
from pullback.api._arguments import as_array, check_callable, function_name
from pullback.core import DebugInfo, StagingInterpreter, hoist_tracers, trace
from pullback.core.explain import explain_all as _explain_all
from pullback.core.interpreter import current_interpreter
from pullback.core.lowering import Inline
from pullback.experimental._sharding_rules import BATCHING, ArrayMapping, CompoundFactor, SdyShardingRule, parsed
from pullback.transforms.call import call_batch, call_jvp, call_primitive, call_reference, call_transpose, jit_p
from pullback.util.absent import absent_names
from pullback.util.pytree import tree_flatten, tree_leaves, tree_unflatten
from pullback.util.tracebacks import api_boundary

# In programs that are cut it is the user's functions that it is (pullback.partition.by_user); derivatives and batches
# are those of the function, which nobody says how to cut.
custom_partitioning_p = call_primitive(
    "custom_partitioning",
    "A function that says how it is cut over devices.",
    call_reference,
    lower=Inline(),
    register=False,
)


def _plainly(rule: Callable) -> Callable:
    """The rule of `jit`, of a call that is cut as any function is."""

    def call(*args: Any, how: Any, **params: Any) -> Any:
        return rule(jit_p, *args, name=how.name, **params)

    return call


custom_partitioning_p.jvp = _plainly(call_jvp)
custom_partitioning_p.transpose = _plainly(call_transpose)
custom_partitioning_p.batch_axis = _plainly(call_batch)
custom_partitioning_p.dce = lambda eqn, used: eqn
custom_partitioning_p.saving = None
custom_partitioning_p.outer = None


class _How:
    """What the user says of one call, in shardings of leaves (see pullback.partition.by_user)."""

    def __init__(self, user: custom_partitioning, static: Sequence[Any], trees: Sequence[Any], avals: Any) -> None:
        self.user, self.static, self.trees, self.avals = user, static, trees, avals
        self.name = function_name(user.fun)

    def __repr__(self) -> str:
        return f"<of {self.name}>"

    def types(self, k: int, shardings: Sequence[Any]) -> Any:
        """The tree of the types of arguments (0) or results (1) that lie so."""
        return tree_unflatten(self.trees[k], [
            api.ShapeDtypeStruct(a.shape, a.dtype, sharding=s) for a, s in zip(self.avals[k], shardings, strict=True)
        ])  # fmt: skip

    def leaves(self, k: int, given: Any, what: str) -> list[Any]:
        """The shardings of a tree of them. ValueError where there are more or fewer than arguments or results."""
        found, _ = tree_flatten(given)
        if len(found) != self.trees[k].num_leaves:
            raise ValueError(
                f"custom_partitioning of {self.name}: {what} gave {len(found)} shardings for "
                f"{self.trees[k].num_leaves} {('arguments', 'results')[k]}: {given!r}"
            )
        return found

    def rule(self, mesh: Any, avals: Sequence[Any], results: Sequence[Any]) -> Any:
        """(names of the factors of each dimension of each array, sizes of factors in compound ones), or None."""
        rule = self.user.sharding_rule
        if callable(rule):
            none = [[None] * len(found) for found in self.avals]
            rule = rule(*self.static, mesh, self.types(0, none[0]), self.types(1, none[1]))
        if isinstance(rule, str):
            rule = parsed(rule)
        if rule is None:
            return None
        rule.check_arrays(avals, results)
        arrays = zip((*rule.operand_mappings, *rule.result_mappings), (*avals, *results), strict=True)
        return [_names(mapping, len(a.shape)) for mapping, a in arrays], rule.factor_sizes

    def inferred(self, mesh: Any, given: Sequence[Any]) -> list[Any] | None:
        """The shardings of the results, by those of the operands."""
        if self.user.infer is None:
            return None
        none = [None] * len(self.avals[1])
        found = self.user.infer(*self.static, mesh, self.types(0, given), self.types(1, none))
        return self.leaves(1, found, "infer_sharding_from_operands")

    def on_parts(self, mesh: Any, given: Sequence[Any], wanted: Sequence[Any]) -> Any:
        """(function of parts, shardings of its arguments, of its results)."""
        assert self.user.partition is not None
        found = self.user.partition(*self.static, mesh, self.types(0, given), self.types(1, wanted))
        if not isinstance(found, (tuple, list)) or len(found) != 4:
            raise ValueError(
                f"custom_partitioning of {self.name}: partition must give (mesh, function of parts, result shardings, "
                f"argument shardings), but gave {str(found)[:80]!r}"
            )
        _, lower, results, args = found

        def on_leaves(*parts: Any) -> list[Any]:
            outs, tree = tree_flatten(lower(*tree_unflatten(self.trees[0], parts)))
            if tree != self.trees[1]:
                raise ValueError(
                    f"custom_partitioning of {self.name}: the function of parts that partition gave has results of "
                    f"structure {tree}, but the function has {self.trees[1]}"
                )
            return list(map(as_array, outs))

        return on_leaves, self.leaves(0, args, "partition"), self.leaves(1, results, "partition")


def _names(mapping: ArrayMapping, ndim: int) -> list[tuple[str, ...]]:
    """The factors of each dimension; those that `...` stands for are numbered from the last."""
    dims = list(mapping)
    leading = bool(dims) and isinstance(dims[0], str) and dims[0].startswith(BATCHING)
    first = dims.pop(0) if leading else ""
    more = [f"{first} {k}" for k in reversed(range(ndim - len(dims)))]
    return [(dim,) if isinstance(dim, str) else tuple(dim) for dim in (*more, *dims)]


class custom_partitioning:
    """`fun`, which is cut over devices as `def_partition` says, in programs of `jit` whose arguments are cut. Its
    derivatives, and calls under `vmap`, are those of any function.

    >>> f = custom_partitioning(lambda x: x + 1)
    >>> f.def_partition(lambda *_: None, lambda *_: None)
    >>> f(1.0)
    Array(2., dtype=float32, weak_type=True)
    """

    @api_boundary
    def __init__(self, fun: Callable, static_argnums: Any = ()) -> None:
        check_callable("custom_partitioning", fun)
        functools.update_wrapper(self, fun)
        self.fun = fun
        self.partition: Callable | None = None
        self.infer: Callable | None = None
        self.sharding_rule: Any = None
        self.static_argnums = static_argnums
        self._static = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
        self._run = api.jit(fun, static_argnums=static_argnums)

    def def_partition(
        self,
        partition: Callable,
        infer_sharding_from_operands: Callable | None = None,
        propagate_user_sharding: Callable | None = None,
        decode_shardings: bool = True,
        sharding_rule: Any = None,
        *,
        reduction_factors: Any = None,
        need_replication_factors: Any = None,
        permutation_factors: Any = None,
        **factor_sizes: Any,
    ) -> Callable:
        """Say how the function is cut; gives `partition`. TypeError if that is no function, or for a sharding_rule that
        is no text, SdyShardingRule or function; ValueError for one that is wrong.

        partition(*static, mesh, args, result), of trees of ShapeDtypeStructs with shardings, gives (mesh, function of
        parts, result shardings, argument shardings). The result's shardings are by sharding_rule, or
        infer_sharding_from_operands(*static, mesh, args, result). propagate_user_sharding is not asked.
        """
        check_callable("custom_partitioning.def_partition", partition)
        if not (sharding_rule is None or callable(sharding_rule) or isinstance(sharding_rule, (str, SdyShardingRule))):
            raise TypeError(f"rule must be a str, but got {type(sharding_rule)}")
        self.sharding_rule = sharding_rule
        if isinstance(sharding_rule, str):
            kinds = {
                "reduction_factors": reduction_factors,
                "need_replication_factors": need_replication_factors,
                "permutation_factors": permutation_factors,
            }
            self.sharding_rule = parsed(
                sharding_rule, **{k: v for k, v in kinds.items() if v is not None}, **factor_sizes
            )
        self.partition, self.infer = partition, infer_sharding_from_operands
        return partition

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The result of the function; ValueError for arrays that the sharding_rule does not fit."""
        if self.partition is None:
            raise AttributeError("custom_partitioning: no partition rule; call def_partition first")
        try:
            bound = inspect.signature(self.fun).bind(*args, **kwargs)
        except (TypeError, ValueError):
            return self._run(*args, **kwargs)  # which says what does not fit
        by_name = dict(bound.kwargs)
        bound.apply_defaults()
        static = {n % len(bound.args) for n in self._static if n < len(bound.args)}
        dynamic = tuple([x for n, x in enumerate(bound.args) if n not in static])
        if by_name or not isinstance(current_interpreter(), StagingInterpreter):
            out = self._run(*bound.args, **by_name)
        else:
            out = self._staged(bound.args, static, dynamic)
        if isinstance(self.sharding_rule, SdyShardingRule):
            arrays = tree_leaves((dynamic, by_name)), tree_leaves(out)
            self.sharding_rule.check_arrays(*([api.typeof(x) for x in xs] for xs in arrays))
        return out

    def _staged(self, args: Sequence[Any], static: set[int], dynamic: Sequence[Any]) -> Any:
        """A call in a program, as one equation; that of a function with values of an outer one is as any other."""
        leaves, in_tree = tree_flatten(dynamic)
        leaves = list(map(as_array, leaves))
        trees: list[Any] = []

        def flat(*xs: Any) -> list[Any]:
            given = iter(tree_unflatten(in_tree, xs))
            outs, tree = tree_flatten(self.fun(*[x if n in static else next(given) for n, x in enumerate(args)]))
            trees[:] = [in_tree, tree]
            return list(map(as_array, outs))

        info = DebugInfo("custom_partitioning", function_name(self.fun))
        closed, outer = hoist_tracers(trace(flat, [api.typeof(x) for x in leaves], info))
        if outer:
            return self._run(*args)
        how = _How(self, [args[n] for n in sorted(static)], trees, (closed.in_avals, closed.out_avals))
        return tree_unflatten(trees[1], custom_partitioning_p.bind(*leaves, jaxpr=closed, how=how))


__getattr__ = absent_names(__name__)

__all__ = [
    "BATCHING",
    "ArrayMapping",
    "CompoundFactor",
    "SdyShardingRule",
    "custom_partitioning",
    "custom_partitioning_p",
]

_explain_all(globals())
