"""Stands for jax._src.tree_util: the public names (eformer), and which types are nodes of trees."""

from collections.abc import Callable, Iterable
from typing import Any

from pullback import tree_util
from pullback.jax_names.src import names_of
from pullback.util.pytree import (
    PyTreeDef,
    broadcast_prefix,
    default_registry,
    equality_errors,
    flatten_one_level,
    is_tree_node,
    prefix_errors,
    tree_structure,
)
from pullback.util.record import NamedTuple


class _Entry(NamedTuple):
    """How nodes of a type are taken apart and made again (jaxlie)."""

    to_iter: Callable[[Any], tuple[Iterable[Any], Any]]
    from_iter: Callable[[Any, Iterable[Any]], Any]


class _Registry:
    """`t in _registry`: whether objects of exactly this type are nodes rather than leaves; `_registry[t]`: how they are
    taken apart."""

    def __contains__(self, nodetype: type) -> bool:
        return is_tree_node(nodetype)

    def __getitem__(self, nodetype: type) -> _Entry:
        if not is_tree_node(nodetype):
            raise KeyError(nodetype)

        def from_iter(aux: Any, children: Iterable[Any]) -> Any:
            parts = list(children)
            leaf = tree_structure(0)
            made = PyTreeDef.from_node_data_and_children(default_registry, (nodetype, aux), [leaf] * len(parts))
            return made.unflatten(parts)

        return _Entry(flatten_one_level, from_iter)


_registry = _Registry()


__getattr__ = names_of(__name__, tree_util)

__all__ = ["_registry", "broadcast_prefix", "equality_errors", "flatten_one_level", "prefix_errors"]
