"""Two arrays that are to be spread over devices in the same way."""

from __future__ import annotations

from typing import Any

import pullback.numpy as jnp
from pullback import tree_util
from pullback.core.explain import explain_all as _explain_all
from pullback.lax.collectives.sharding import shard_alike_p


def shard_alike(x: Any, y: Any) -> tuple[Any, Any]:
    """(x, y), as arrays that are cut over devices in the same way. ValueError unless trees and shapes are equal."""
    xs, tree = tree_util.tree_flatten(x)
    ys, other = tree_util.tree_flatten(y)
    if tree != other:
        raise ValueError(f"Trees should match. Got x: {tree}, y: {other}")
    for a, b in zip(xs, ys, strict=True):
        if jnp.shape(a) != jnp.shape(b):
            raise ValueError(
                f"shard_alike: a leaf of x has shape {jnp.shape(a)}, that of y in its place {jnp.shape(b)}; arrays "
                "of one shape can lie alike"
            )
    pairs = [shard_alike_p.bind(jnp.asarray(a), jnp.asarray(b)) for a, b in zip(xs, ys, strict=True)]
    first, second = zip(*pairs, strict=True) if pairs else ((), ())
    return tree_util.tree_unflatten(tree, first), tree_util.tree_unflatten(tree, second)


__all__ = ["shard_alike"]

_explain_all(globals())
