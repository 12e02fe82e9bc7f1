"""Stands for jax._src.tree_util: which types are nodes of trees."""

from pullback.util.pytree import flatten_one_level, is_tree_node, prefix_errors


class _Registry:
    """`t in _registry`: whether objects of exactly this type are nodes rather than leaves."""

    def __contains__(self, nodetype: type) -> bool:
        return is_tree_node(nodetype)


_registry = _Registry()


__all__ = ["_registry", "flatten_one_level", "prefix_errors"]
