"""Two arrays that are to be spread over devices in the same way."""

from __future__ import annotations

from typing import Any

import pullback.numpy as jnp
from pullback import tree_util


def shard_alike(x: Any, y: Any) -> tuple[Any, Any]:
    """(x, y), as arrays: every array is whole here. Raises ValueError unless structures and shapes are the same."""
    xs, tree = tree_util.tree_flatten(x)
    ys, other = tree_util.tree_flatten(y)
    if tree != other:
        raise ValueError(f"Trees should match. Got x: {tree}, y: {other}")
    for a, b in zip(xs, ys, strict=True):
        if jnp.shape(a) != jnp.shape(b):
            raise ValueError(
                f"The leaves shapes of `x` and `y` should match. Got `x` leaf shape: {jnp.shape(a)} and `y` leaf "
                f"shape: {jnp.shape(b)}."
            )
    return tuple(tree_util.tree_unflatten(tree, [jnp.asarray(a) for a in leaves]) for leaves in (xs, ys))


__all__ = ["shard_alike"]
