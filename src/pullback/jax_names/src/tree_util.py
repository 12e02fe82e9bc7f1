"""Stands for jax._src.tree_util: which types are nodes of trees."""

from typing import Any

from pullback.util.pytree import is_tree_node, prefix_errors, tree_flatten


class _Registry:
    """`t in _registry`: whether objects of exactly this type are nodes rather than leaves."""

    def __contains__(self, nodetype: type) -> bool:
        return is_tree_node(nodetype)


_registry = _Registry()


def flatten_one_level(tree: Any) -> tuple[list[Any], Any]:
    """(children of a node, what else its type keeps of it). ValueError for a leaf."""
    children, treedef = tree_flatten(tree, is_leaf=lambda x: x is not tree)
    data = treedef.node_data()
    if tree is not None and data is None:
        raise ValueError(f"can't tree-flatten type: {type(tree)}")
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return children, type(tree)
    aux: Any = None if data is None else data[1]
    return children, tuple(aux) if type(tree) is dict else aux


__all__ = ["_registry", "flatten_one_level", "prefix_errors"]
