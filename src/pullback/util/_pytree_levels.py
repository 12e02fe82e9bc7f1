"""Single levels of pytrees, and the keys that lead from one to the next."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, TypeVar

from pullback._ext import _core
from pullback.util.errors import ArgumentError
from pullback.util.static import check_truth
from pullback.util.tracebacks import api_boundary

_native = _core.pytree

DictKey = _native.DictKey
SequenceKey = _native.SequenceKey
GetAttrKey = _native.GetAttrKey
FlattenedIndexKey = _native.FlattenedIndexKey

KeyEntry = TypeVar("KeyEntry", bound=Hashable)
KeyPath = tuple[KeyEntry, ...]
KeyLeafPair = tuple[KeyEntry, Any]


@api_boundary
def keystr(keys: KeyPath, *, simple: bool = False, separator: str = "") -> str:
    """A key path as text, `[0]['a'].b`; `simple` prints bare keys, to be joined by a `separator`: `0/a/b`."""
    if not isinstance(separator, str):
        raise ArgumentError(f"keystr: argument 'separator' must be a string, got {separator!r}")
    if not isinstance(keys, Iterable):
        raise ArgumentError(f"keystr: argument 'keys' must be a sequence of keys, got {keys!r}")
    check_truth("keystr", simple=simple)
    return separator.join([_simple_key(key) if simple else str(key) for key in keys])


def _simple_key(key: Any) -> str:
    match key:
        case DictKey(value) | SequenceKey(value) | GetAttrKey(value) | FlattenedIndexKey(value):
            return str(value)
    return str(key)


@api_boundary
def flatten_one_level(tree: Any) -> tuple[Iterable[Any], Hashable]:
    """The children of a node and its metadata; ValueError for a leaf."""
    level = _native.one_level(tree, False)
    if level is None:
        raise ValueError(f"can't tree-flatten type: {type(tree)}")
    return level


@api_boundary
def flatten_one_level_with_keys(tree: Any) -> tuple[Iterable[KeyLeafPair], Hashable]:
    """The (key, child) pairs of a node and its metadata; ValueError for a leaf."""
    level = _native.one_level(tree, True)
    if level is None:
        raise ValueError(f"can't tree-flatten type: {type(tree)}")
    return (tuple(level[0]), level[1]) if type(tree) is list else level


@api_boundary
def is_tree_node(typ: type) -> bool:
    """Whether objects of exactly this type are nodes rather than leaves."""
    return _native.is_node(typ)
