"""Stands for jax._src.lax.control_flow.loops: the names of jax.lax, and how arrays are cut into batches (desc-opt,
adv-jax-math)."""

from typing import Any

from pullback import lax
from pullback.jax_names.src import names_of
from pullback.util.pytree import tree_leaves, tree_map

__getattr__ = names_of(__name__, lax)


def _batch_and_remainder(x: Any, batch_size: int) -> tuple[Any, Any]:
    """(the arrays in batches along a new leading axis, the rest); None for what there is none of."""
    length = tree_leaves(x)[0].shape[0]
    count, rest = divmod(length, batch_size) if batch_size else (0, length)
    whole = count * batch_size
    batches = tree_map(lambda a: a[:whole].reshape(count, batch_size, *a.shape[1:]), x) if count else None
    return batches, tree_map(lambda a: a[whole:], x) if rest or not count else None
