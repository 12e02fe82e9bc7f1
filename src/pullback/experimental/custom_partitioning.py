"""Functions that say how they are cut over devices. The rules are kept, compared with the arrays, and never asked: what
such a function does is partitioned operation by operation, as every program is (`pullback.partition`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from pullback import api
from pullback.api._arguments import check_callable
from pullback.core.explain import explain_all as _explain_all
from pullback.experimental._sharding_rules import BATCHING, ArrayMapping, CompoundFactor, SdyShardingRule, parsed
from pullback.util.absent import absent_names
from pullback.util.pytree import tree_leaves
from pullback.util.tracebacks import api_boundary


class custom_partitioning:
    """`fun`, whose rules for devices `def_partition` takes; its operations are partitioned as those of any function.

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
        self.sharding_rule: SdyShardingRule | None = None
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
        is no text, SdyShardingRule or function; ValueError for one that is wrong. The other rules are not looked at:
        none is ever asked.
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
        self.partition = partition
        return partition

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The result of the function; ValueError for arrays that the sharding_rule does not fit."""
        if self.partition is None:
            raise AttributeError("custom_partitioning: no partition rule; call def_partition first")
        out = self._run(*args, **kwargs)
        if isinstance(self.sharding_rule, SdyShardingRule):
            static = {n % len(args) for n in self._static if n < len(args)}
            operands = tree_leaves(([x for n, x in enumerate(args) if n not in static], kwargs))
            self.sharding_rule.check_arrays(*([api.typeof(x) for x in xs] for xs in (operands, tree_leaves(out))))
        return out


__getattr__ = absent_names(__name__)

__all__ = ["BATCHING", "ArrayMapping", "CompoundFactor", "SdyShardingRule", "custom_partitioning"]

_explain_all(globals())
