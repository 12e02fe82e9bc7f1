"""What to say about pytrees that do not match: which key path, what is there in the one, what in the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pullback.util._pytree_levels import (
    KeyPath,
    flatten_one_level,
    flatten_one_level_with_keys,
    is_tree_node,
    keystr,
)

Predicate = Callable[[Any], bool] | None

_none_hint = "(None is a node without leaves; is_leaf=lambda x: x is None makes it a leaf, a prefix of anything.)"


def explain_mismatch(name: str, prefix_tree: Any, full_tree: Any, is_leaf: Predicate) -> ValueError | None:
    """The first error of `find_prefix_errors`, for a prefix called `name`; None if there is none."""
    for make in find_prefix_errors((), prefix_tree, full_tree, is_leaf):
        return make(name)
    return None


def _is_leaf(tree: Any, is_leaf: Predicate) -> bool:
    return not is_tree_node(type(tree)) or (is_leaf is not None and bool(is_leaf(tree)))


def _error(title: str, path: KeyPath, *details: str) -> Callable[[str], ValueError]:
    """A function from the prefix's name to the error; `{name}` and `{where}` in the details stand for name and path."""

    def make(name: str) -> ValueError:
        text = f"pytree structure error: {title} at key path\n    {{where}}\n" + "\n".join(details)
        # Not str.format: metadata may contain braces.
        return ValueError(text.replace("{where}", f"{name}{keystr(path)}").replace("{name}", name))

    return make


def find_prefix_errors(
    path: KeyPath, prefix_tree: Any, full_tree: Any, is_leaf: Predicate
) -> Iterator[Callable[[str], ValueError]]:
    """Yields, for each place where the first tree is no prefix of the second, a function from its name to the error."""
    if _is_leaf(prefix_tree, is_leaf):
        return
    kind, full_kind = type(prefix_tree), type(full_tree)
    if kind is not full_kind:
        found = "a leaf" if full_kind is _Leaf else str(full_kind)
        details = [
            f"{{name}}, the prefix, has there\n    {kind}",
            f"and the tree that it belongs to\n    {found}.",
        ]
        if prefix_tree is None:
            details.append(_none_hint)
        yield _error("different types", path, *details)
        return
    # The keys of children, where a user's code names them, may fail; the structure counts.
    pairs, data = flatten_one_level_with_keys(prefix_tree)
    full_children, full_data = flatten_one_level(full_tree)
    pairs, full_children = list(pairs), list(full_children)
    if kind in (list, tuple):
        if len(pairs) != len(full_children):
            yield _error(
                f"different lengths of {kind.__name__}",
                path,
                f"{{name}}, the prefix, has there a {kind.__name__} of length {len(pairs)}, and the tree that it "
                f"belongs to one of length {len(full_children)}.",
            )
            return
    elif len(pairs) != len(full_children):
        keys, full_keys = _child_names(prefix_tree), _child_names(full_tree)
        yield _error(
            "different numbers of pytree children",
            path,
            f"{{name}}, the prefix, has there\n    {kind}\n    with {len(keys)} children\n    {' '.join(keys)}",
            f"and the tree that it belongs to has {len(full_keys)}\n    {' '.join(full_keys)}",
            f"Only in one of them:\n    {' '.join(sorted(set(keys) ^ set(full_keys)))}",
        )
        return
    if not _same(data, full_data):
        if kind is dict:
            keys, full_keys = _child_names(prefix_tree), _child_names(full_tree)
            yield _error(
                "different pytree metadata",
                path,
                f"{{name}}, the prefix, has there a dict with the keys\n    {' '.join(keys)}",
                f"and the tree that it belongs to one with\n    {' '.join(full_keys)}",
                f"Only in the prefix: {' '.join(k for k in keys if k not in full_keys)}; only in the tree: "
                f"{' '.join(k for k in full_keys if k not in keys)}",
            )
            return
        import difflib  # only here: its import takes a while

        diff = "\n    ".join(line.rstrip("\n") for line in difflib.ndiff([str(data)], [str(full_data)]))
        yield _error(
            "different pytree metadata",
            path,
            f"{{name}}, the prefix, has there\n    {kind}\n    with metadata\n    {data}",
            f"and the tree that it belongs to has metadata\n    {full_data}",
            f"Line by line:\n    {diff}",
        )
        return
    for (key, child), full_child in zip(pairs, full_children):
        yield from find_prefix_errors((*path, key), child, full_child, is_leaf)


def _same(data: Any, other: Any) -> bool:
    try:
        return bool(data is other or data == other)
    except Exception as error:
        raise ValueError(
            f"pytree nodes: comparing their metadata failed: {data!r} and {other!r}. Whether two are equal has to "
            "be True or False, and each has a hash; arrays cannot be metadata."
        ) from error


def _child_names(tree: Any) -> list[str]:
    """The keys of a node's children, as text."""
    return [keystr((key,), simple=True) for key, _ in flatten_one_level_with_keys(tree)[0]]


def find_equality_errors(
    path: KeyPath, tree1: Any, tree2: Any, is_leaf: Predicate
) -> Iterator[tuple[KeyPath, str, str, str]]:
    """Yields (key path, what tree1 has, what tree2 has, why they differ) for each place where two structures differ."""
    leaf1, leaf2 = _is_leaf(tree1, is_leaf), _is_leaf(tree2, is_leaf)
    if leaf1 and leaf2:
        return
    kind1, kind2 = type(tree1), type(tree2)
    if kind1 is not kind2:
        yield path, str(kind1), str(kind2), "their Python types differ"
        return
    if leaf1 or leaf2:  # one class, but is_leaf took only one of the two for a leaf
        yield path, f"{kind1}{' (a leaf)' * leaf1}", f"{kind2}{' (a leaf)' * leaf2}", "only one of them is a leaf"
        return
    pairs1, data1 = flatten_one_level_with_keys(tree1)
    children2, data2 = flatten_one_level(tree2)
    pairs1, children2 = list(pairs1), list(children2)
    count1, count2 = len(pairs1), len(children2)
    if count1 != count2:
        if kind1 in (list, tuple):
            name = kind1.__name__
            yield path, f"{name} of length {count1}", f"{name} of length {count2}", "the lengths do not match"
        else:
            difference = set(_child_names(tree1)) ^ set(_child_names(tree2))
            yield (
                path,
                f"{kind1} with {_count(count1)}",
                f"{kind2} with {_count(count2)}",
                f"the numbers of children do not match, with the symmetric difference of key sets: {difference}",
            )
        return
    if not _same(data1, data2):
        yield (
            path,
            f"{kind1} with pytree metadata {data1}",
            f"{kind2} with pytree metadata {data2}",
            "the pytree node metadata does not match",
        )
        return
    for (key, child1), child2 in zip(pairs1, children2):
        yield from find_equality_errors((*path, key), child1, child2, is_leaf)


def _count(number: int) -> str:
    return f"{number} child" if number == 1 else f"{number} children"


class _Leaf:
    """Stands for a leaf whose value is not known."""

    def __repr__(self) -> str:
        return "*"


def flatten_axes_error(name: str, treedef: Any, axis_tree: Any, tupled_args: bool) -> ValueError:
    """The error of `flatten_axes`: all places where `axis_tree` is no prefix of `treedef`, and the usual causes."""
    if tupled_args and not (isinstance(axis_tree, tuple) and len(axis_tree) == len(treedef.children())):
        return _of_arguments(name, len(treedef.children()), axis_tree)
    lines = [f"{name} specification: expected a tree prefix of the value it is for."]
    try:
        full_tree = treedef.unflatten([_Leaf()] * treedef.num_leaves)
        errors = [make(name) for make in find_prefix_errors((), axis_tree, full_tree, lambda tree: tree is None)]
    except Exception as error:  # a user's class refused to be built from placeholders
        lines.append(f"Got {axis_tree!r} for a value of structure {treedef}; an example could not be built: {error!r}")
        return ValueError("\n".join(lines))
    if not errors:
        lines.append(f"Got {axis_tree!r} for a value of structure {treedef}.")
    else:
        lines.append(f"Mismatch details ({len(errors)} found):")
        lines += map(str, errors)
    return ValueError("\n".join(lines))


def _of_arguments(name: str, count: int, axis_tree: Any) -> ValueError:
    """The error for what has not an entry for each of so many positional arguments."""
    found = f"a {type(axis_tree).__name__}"
    if isinstance(axis_tree, (tuple, list)):
        found += f" of length {len(axis_tree)}, for {count} arguments"
    hint = f" Perhaps {name}=({axis_tree!r},) was meant." if count == 1 else ""
    return ValueError(
        f"{name} specification: expected one sharding or PartitionSpec for all arguments, or a tuple with an entry "
        f"for each of them. But it is {found}.{hint}"
    )
