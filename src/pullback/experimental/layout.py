"""Layouts of arrays in memory, as `pullback.sharding` has them."""

from __future__ import annotations

from typing import Any

from pullback.core import Tracer
from pullback.core.explain import explain_all as _explain_all
from pullback.manual import add_pages as _add_pages
from pullback.manual.experimental.layout import PAGES as _PAGES
from pullback.runtime.arrays.layouts import with_layout
from pullback.sharding._layout import Format, Layout
from pullback.util.absent import absent_names
from pullback.util.pytree import flatten_axes, tree_flatten, tree_unflatten

__getattr__ = absent_names(__name__)


def with_layout_constraint(x: Any, layouts: Any) -> Any:
    """The tree of arrays under layouts (a Layout, or a tree prefix of them); traced values are row by row all the same.

    ValueError for what is no Layout, or one of another rank, and outside of `jit` for what is no array.
    """
    leaves, tree = tree_flatten(x)
    found = flatten_axes("with_layout_constraint", tree, layouts)
    if any(not isinstance(layout, Layout) for layout in found):
        raise ValueError(
            "with_layout_constraint: argument 'layouts' has what is no Layout: "
            f"{[type(layout) for layout in found if not isinstance(layout, Layout)]}"
        )
    out = []
    for leaf, layout in zip(leaves, found, strict=True):
        if not hasattr(leaf, "aval"):
            raise ValueError(
                f"with_layout_constraint: expected arrays of jax.numpy, got {type(leaf)}; jnp.asarray makes one"
            )
        layout.check(leaf.shape, "with_layout_constraint arguments")
        out.append(leaf if isinstance(leaf, Tracer) else with_layout(leaf, layout))
    return tree_unflatten(tree, out)


__all__ = ["Format", "Layout", "with_layout_constraint"]

_explain_all(globals())
_add_pages(globals(), _PAGES)
