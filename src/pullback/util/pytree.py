"""Pytrees: nested containers of leaves. The Python face of the C++ core, and what the rest of the package imports.

A *pytree* is a leaf or a container of pytrees: None, tuple, list, dict, named tuple, OrderedDict, defaultdict, or an
object of a registered class. Its *structure* is a `PyTreeDef`. Dicts are taken in the order of their sorted keys; None
has no leaves.
Keys and single levels are in `util/_pytree_levels.py`, messages about trees that do not match in
`util/_pytree_errors.py`.
"""

from __future__ import annotations

import dataclasses
import functools
import sys
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeVar

from pullback._ext import _core
from pullback.util._pytree_errors import explain_mismatch, find_equality_errors, find_prefix_errors, flatten_axes_error
from pullback.util._pytree_levels import DictKey as DictKey
from pullback.util._pytree_levels import FlattenedIndexKey as FlattenedIndexKey
from pullback.util._pytree_levels import GetAttrKey as GetAttrKey
from pullback.util._pytree_levels import KeyEntry as KeyEntry
from pullback.util._pytree_levels import KeyLeafPair, KeyPath
from pullback.util._pytree_levels import SequenceKey as SequenceKey
from pullback.util._pytree_levels import flatten_one_level as flatten_one_level
from pullback.util._pytree_levels import flatten_one_level_with_keys as flatten_one_level_with_keys
from pullback.util._pytree_levels import is_tree_node as is_tree_node
from pullback.util._pytree_levels import keystr as keystr
from pullback.util.errors import ArgumentError, class_shown
from pullback.util.tracebacks import api_boundary, shorten

_native = _core.pytree

PyTreeDef = _native.PyTreeDef

Leaf = Any
T = TypeVar("T")
Typ = TypeVar("Typ", bound=type[Any])
H = TypeVar("H", bound=Hashable)


class Unspecified:
    """The type of the default of an argument for which None is a value like any other."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<unspecified>"


_unspecified = Unspecified()


# ---- flattening and rebuilding


def tree_flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Leaf], PyTreeDef]:
    """The leaves of a tree, in order, and its structure; `is_leaf(subtree)` may declare any subtree a leaf.

    ValueError if the keys of a dict cannot be sorted; RecursionError if the tree is too deep or contains itself.
    """
    try:
        return _native.flatten(tree, is_leaf, False)
    except Exception as error:
        shorten(error, sys._getframe())
        raise


def tree_unflatten(treedef: PyTreeDef, leaves: Iterable[Leaf]) -> Any:
    """The tree with the given structure and leaves: the inverse of `tree_flatten`.

    ValueError if the number of leaves is not `treedef.num_leaves`.
    """
    try:
        try:
            return treedef.unflatten(leaves)
        except (AttributeError, TypeError):
            _check_treedef("tree_unflatten", treedef=treedef)
            if not isinstance(leaves, Iterable):
                raise ArgumentError(f"tree_unflatten: argument 'leaves' must be a sequence, got {leaves!r}") from None
            raise
    except Exception as error:
        shorten(error, sys._getframe())
        raise


def _check_treedef(name: str, **arguments: Any) -> None:
    """ArgumentError for what is no PyTreeDef."""
    for argument, x in arguments.items():
        if not isinstance(x, PyTreeDef):
            kind = class_shown(type(x))
            raise ArgumentError(f"{name}: argument '{argument}' must be a PyTreeDef, got {x!r}, a {kind}")


def _check_function(name: str, **arguments: Any) -> None:
    """ArgumentError for what cannot be called; asked when a call has failed."""
    for argument, x in arguments.items():
        if not callable(x):
            kind = class_shown(type(x))
            raise ArgumentError(f"{name}: argument '{argument}' must be a function, got {x!r}, a {kind}")


def tree_leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[Leaf]:
    """The leaves of a tree, in order."""
    try:
        return _native.leaves(tree, is_leaf)
    except Exception as error:
        shorten(error, sys._getframe())
        raise


def tree_structure(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> PyTreeDef:
    """The structure of a tree."""
    try:
        return _native.structure(tree, is_leaf)
    except Exception as error:
        shorten(error, sys._getframe())
        raise


@api_boundary
def all_leaves(iterable: Iterable[Any], is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Whether every element of the iterable is a leaf."""
    return _native.all_leaves(iterable, is_leaf)


@api_boundary
def build_tree(treedef: PyTreeDef, xs: Any) -> Any:
    """The tree with the given structure whose leaves are in `xs`, nested iterables of the same shape.

    ValueError if the numbers of children differ somewhere.
    """
    return treedef.from_iterable_tree(xs)


def treedef_tuple(treedefs: Iterable[PyTreeDef]) -> PyTreeDef:
    """The structure of the tuple of trees that have the given structures."""
    try:
        try:
            return _native.treedef_tuple(treedefs)
        except TypeError:
            if isinstance(treedefs, Iterable):
                raise
            raise ArgumentError(
                f"treedef_tuple: argument 'treedefs' must be a sequence of PyTreeDefs, got {treedefs!r}"
            ) from None
    except Exception as error:
        shorten(error, sys._getframe())
        raise


@api_boundary
def treedef_children(treedef: PyTreeDef) -> list[PyTreeDef]:
    """The structures of the children of the root."""
    _check_treedef("treedef_children", treedef=treedef)
    return treedef.children()


@api_boundary
def treedef_is_leaf(treedef: PyTreeDef) -> bool:
    """Whether the structure is a single node: a leaf, or a container without children."""
    _check_treedef("treedef_is_leaf", treedef=treedef)
    return treedef.num_nodes == 1


# ---- mapping and reducing


def tree_map(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """The tree of `f(leaf, *subtrees_of_rest)`; `tree` must be a prefix of every tree of `rest`.

    ValueError, naming the key path, if it is not.
    """
    try:
        try:
            return _native.tree_map(f, tree, rest, is_leaf, _explain_tree_map)
        except TypeError:
            _check_function("tree_map", f=f)
            raise
    except Exception as error:
        shorten(error, sys._getframe())
        raise


@api_boundary
def tree_reduce(
    function: Callable[[T, Any], T],
    tree: Any,
    initializer: T | Unspecified = _unspecified,
    is_leaf: Callable[[Any], bool] | None = None,
) -> T:
    """`function` folded over the leaves from the left; TypeError if there are no leaves and no `initializer`."""
    _check_function("tree_reduce", function=function)
    if isinstance(initializer, Unspecified):
        leaves = tree_leaves(tree, is_leaf)
        if not leaves:
            raise TypeError("tree_reduce: argument 'tree' has no leaves; expected some, or an initializer")
        return functools.reduce(function, leaves)
    return functools.reduce(function, tree_leaves(tree, is_leaf), initializer)


@api_boundary
def tree_reduce_associative(
    operation: Callable[[T, T], T],
    tree: Any,
    *,
    identity: T | Unspecified = _unspecified,
    is_leaf: Callable[[Any], bool] | None = None,
) -> T:
    """An associative operation over the leaves, combined pairwise in halves: depth log2(leaves).

    `identity` is the result where there are no leaves; TypeError if it is needed but not given.
    """
    _check_function("tree_reduce_associative", operation=operation)
    leaves = tree_leaves(tree, is_leaf)
    if not leaves:
        if isinstance(identity, Unspecified):
            raise TypeError("tree_reduce_associative: the tree has no leaves; must specify identity for that case")
        return identity

    def combine(low: int, high: int) -> T:
        if high - low == 1:
            return leaves[low]
        middle = (low + high) // 2
        return operation(combine(low, middle), combine(middle, high))

    return combine(0, len(leaves))


@api_boundary
def tree_all(tree: Any, *, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Whether all leaves are true (as by `all`)."""
    return all(tree_leaves(tree, is_leaf))


@api_boundary
def tree_transpose(outer_treedef: PyTreeDef, inner_treedef: PyTreeDef | None, pytree_to_transpose: Any) -> Any:
    """Turns a tree of structure outer(inner(leaf)) into one of structure inner(outer(leaf)).

    `inner_treedef=None` takes the structure of the first subtree. TypeError if the number of leaves does not fit.
    """
    _check_treedef("tree_transpose", outer_treedef=outer_treedef)
    leaves, treedef = tree_flatten(pytree_to_transpose)
    if inner_treedef is not None:
        _check_treedef("tree_transpose", inner_treedef=inner_treedef)
    else:
        subtrees = outer_treedef.flatten_up_to(pytree_to_transpose)
        if not subtrees:
            raise ValueError("tree_transpose: outer_treedef has no leaves, so inner_treedef cannot be inferred")
        inner_treedef = tree_structure(subtrees[0])
    inner_size, outer_size = inner_treedef.num_leaves, outer_treedef.num_leaves
    if len(leaves) != inner_size * outer_size:
        expected = outer_treedef.compose(inner_treedef)
        raise TypeError(f"tree_transpose: Mismatch\n  {treedef}\n != \n  {expected}")
    if inner_size and not outer_size:
        raise ValueError(
            f"tree_transpose: Too few leaves for PyTreeDef; expected {inner_size}, got 0 (outer_treedef has no leaves)"
        )
    columns = (leaves[i::inner_size] for i in range(inner_size))
    return inner_treedef.unflatten([outer_treedef.unflatten(column) for column in columns])


# An object of its own, since programs register `int`, too.
LEAF = tree_structure(object())


def leaves_tree(count: int) -> PyTreeDef:
    """The structure of a list of leaves, whatever types are registered."""
    return tree_structure([_unspecified] * count)


# ---- key paths


@api_boundary
def tree_flatten_with_path(
    tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[KeyPath, Any]], PyTreeDef]:
    """The (key path, leaf) pairs of a tree and its structure.

    With `is_leaf_takes_path`, the predicate is called as `is_leaf(path, subtree)`.
    """
    return _native.flatten_with_path(tree, is_leaf, is_leaf_takes_path)


@api_boundary
def tree_leaves_with_path(
    tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> list[tuple[KeyPath, Any]]:
    """The (key path, leaf) pairs of a tree, in order."""
    return _native.flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


@api_boundary
def tree_map_with_path(
    f: Callable[..., Any],
    tree: Any,
    *rest: Any,
    is_leaf: Callable[..., bool] | None = None,
    is_leaf_takes_path: bool = False,
) -> Any:
    """Like `tree_map`, with `f(key_path, leaf, *rest_leaves)`."""
    _check_function("tree_map_with_path", f=f)
    pairs, treedef = _native.flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    columns = []
    for other in rest:
        try:
            columns.append(treedef.flatten_up_to(other))
        except ValueError as error:
            predicate = None if is_leaf_takes_path else is_leaf
            raise explain_mismatch("tree_map_with_path tree", tree, other, predicate) or error from None
    paths, leaves = [path for path, _ in pairs], [leaf for _, leaf in pairs]
    return treedef.unflatten([f(*arguments) for arguments in zip(paths, leaves, *columns)])


# ---- prefixes


@api_boundary
def broadcast_prefix(
    prefix_tree: Any,
    full_tree: Any,
    is_leaf: Callable[[Any], bool] | None = None,
    *,
    name: str = "broadcast_prefix prefix_tree",
) -> list[Any]:
    """Each leaf of `prefix_tree` as often as the subtree of `full_tree` in its place has leaves, as a flat list.

    `is_leaf` applies to the prefix only. ValueError, naming the key path, if it is not a prefix.
    """
    leaves, treedef = _native.flatten(prefix_tree, is_leaf, False)
    result = _native.broadcast(leaves, treedef, _native.structure(full_tree, None))
    if result is not None:
        return result
    error = explain_mismatch(name, prefix_tree, full_tree, is_leaf)
    raise error or ValueError(f"broadcast_prefix: {treedef} is not a prefix of {tree_structure(full_tree)}")


@api_boundary
def tree_broadcast(prefix_tree: Any, full_tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """A tree shaped like `full_tree`, with each leaf of `prefix_tree` repeated over the subtree in its place."""
    return tree_structure(full_tree).unflatten(broadcast_prefix(prefix_tree, full_tree, is_leaf))


@api_boundary
def flatten_axes(
    name: str, treedef: PyTreeDef, axis_tree: Any, *, kws: bool = False, tupled_args: bool = False
) -> list[Any]:
    """One entry of `axis_tree` (whose Nones are leaves) for each leaf of `treedef`, of which it must be a prefix.

    `name` names the argument in the ValueError otherwise raised; `tupled_args` adds to it that the arguments form a
    tuple. `kws` changes nothing: a `treedef` of (args, kwargs) is matched as any other.
    """
    leaves, axis_treedef = _native.flatten(axis_tree, None, True)
    result = _native.broadcast(leaves, axis_treedef, treedef)
    if result is not None:
        return result
    raise flatten_axes_error(name, treedef, axis_tree, tupled_args)


def prefix_errors(
    prefix_tree: Any, full_tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> list[Callable[[str], ValueError]]:
    """Where and why `prefix_tree` is no prefix of `full_tree`: functions from the name of the prefix to the error."""
    return list(find_prefix_errors((), prefix_tree, full_tree, is_leaf))


def equality_errors(
    tree1: Any, tree2: Any, is_leaf: Callable[[Any], bool] | None = None
) -> Iterable[tuple[KeyPath, str, str, str]]:
    """The places where two structures differ: (key path, what the first has, what the second has, why they differ)."""
    return find_equality_errors((), tree1, tree2, is_leaf)


def _explain_tree_map(tree: Any, other: Any, is_leaf: Callable[[Any], bool] | None) -> None:
    error = explain_mismatch("tree_map tree", tree, other, is_leaf)
    if error is not None:
        raise error


# ---- registration


@api_boundary
def register_pytree_node(
    nodetype: type[T],
    flatten_func: Callable[[T], tuple[Iterable[Any], Hashable]],
    unflatten_func: Callable[[Any, Any], T],
    flatten_with_keys_func: Callable[[T], tuple[Iterable[KeyLeafPair], Hashable]] | None = None,
) -> None:
    """Makes `nodetype` (not its subclasses) a node type.

    `flatten_func(node) -> (children, aux)`, `unflatten_func(aux, children) -> node`; `flatten_with_keys_func(node) ->
    ((key, child) pairs, aux)` names the children in key paths. ValueError if the type is a node type already.
    """
    _native.register_node(nodetype, flatten_func, unflatten_func, flatten_with_keys_func)


@api_boundary
def register_pytree_with_keys(
    nodetype: type[T],
    flatten_with_keys: Callable[[T], tuple[Iterable[KeyLeafPair], Hashable]],
    unflatten_func: Callable[[Any, Iterable[Any]], T],
    flatten_func: Callable[[T], tuple[Iterable[Any], Hashable]] | None = None,
):
    """Like `register_pytree_node`, from the function with keys; `flatten_func` may be given for speed."""
    if flatten_func is None:

        def flatten_func(tree: T) -> tuple[Iterable[Any], Hashable]:
            pairs, aux = flatten_with_keys(tree)
            return [child for _, child in pairs], aux

    register_pytree_node(nodetype, flatten_func, unflatten_func, flatten_with_keys)


def _check_methods(function: str, cls: Any, *methods: str) -> None:
    """TypeError for what is no class, AttributeError for a class without the methods by which it is taken apart."""
    if not isinstance(cls, type):
        raise TypeError(f"{function}: argument 'cls' must be a class, got {cls!r}")
    for method in methods:
        if not hasattr(cls, method):
            raise AttributeError(
                f"{function}: class {cls.__name__} has no method '{method}'; it needs {' and '.join(methods)}"
            )


@api_boundary
def register_pytree_node_class(cls: Typ) -> Typ:
    """Class decorator: a node type by its `tree_flatten(self)` and classmethod `tree_unflatten(cls, aux, children)`."""
    _check_methods("register_pytree_node_class", cls, "tree_flatten", "tree_unflatten")
    register_pytree_node(cls, lambda node: node.tree_flatten(), cls.tree_unflatten)  # type: ignore[attr-defined]
    return cls


@api_boundary
def register_pytree_with_keys_class(cls: Typ) -> Typ:
    """Class decorator: as `register_pytree_node_class`, by `tree_flatten_with_keys` (and `tree_flatten`, if any)."""
    _check_methods("register_pytree_with_keys_class", cls, "tree_flatten_with_keys", "tree_unflatten")
    flatten = (lambda node: node.tree_flatten()) if hasattr(cls, "tree_flatten") else None
    register_pytree_with_keys(cls, lambda node: node.tree_flatten_with_keys(), cls.tree_unflatten, flatten)
    return cls


@api_boundary
def register_dataclass(
    nodetype: Typ,
    data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] | None = None,
    drop_fields: Sequence[str] = (),
) -> Typ:
    """Makes a dataclass a node type: `data_fields` are children, `meta_fields` are part of the structure.

    Without them, fields with `metadata={"static": True}` are meta fields and all others data fields. Returns the class.
    TypeError if only one is given, or none for a class that is no dataclass; ValueError if together with `drop_fields`
    they are not exactly the dataclass's fields that its `__init__` takes.
    """
    is_dataclass = dataclasses.is_dataclass(nodetype)
    if data_fields is None or meta_fields is None:
        if (data_fields is None) != (meta_fields is None):
            raise TypeError(
                "register_dataclass: give data_fields and meta_fields together, or neither of them. "
                f"Got {data_fields=} {meta_fields=}."
            )
        if not is_dataclass:
            raise TypeError(
                "register_dataclass: the fields of a class that is no dataclass are not known; name them in "
                f"data_fields and meta_fields. Got {nodetype=}."
            )
        # Fields with init=False are kept, to be refused below: rebuilding would silently lose their values.
        fields = [field for field in dataclasses.fields(nodetype) if field.name not in drop_fields]
        meta_fields = [field.name for field in fields if field.metadata.get("static", False)]
        data_fields = [field.name for field in fields if not field.metadata.get("static", False)]
    data_fields, meta_fields = tuple(data_fields), tuple(meta_fields)
    given = {*data_fields, *meta_fields}
    if overlap := set(data_fields) & set(meta_fields):
        raise ValueError(
            f"register_dataclass: {overlap} came as data_fields and as meta_fields; a field is either data or metadata."
        )
    if is_dataclass:
        required = {field.name for field in dataclasses.fields(nodetype) if field.init} - set(drop_fields)
        rule = "register_dataclass: a field with init=True is in data_fields or in meta_fields, and nothing else is."
        if unexpected := given - required:
            raise ValueError(f"{rule} Unexpected fields: {unexpected}.")
        if missing := required - given:
            raise ValueError(f"{rule} Missing fields: {missing}. What a copy can do without goes in drop_fields.")
    _native.register_dataclass_node(nodetype, data_fields, meta_fields)
    return nodetype


@api_boundary
def register_static(cls: type[H]) -> type[H]:
    """Makes a hashable class a node type without children: its objects are part of the structure."""
    register_pytree_with_keys(cls, lambda node: ((), node), lambda aux, _: aux, lambda node: ((), node))
    return cls


def static(**kwargs: Any) -> Any:
    """`dataclasses.field(**kwargs)` whose metadata marks it as a meta field for `register_dataclass`."""
    metadata = {**(kwargs.pop("metadata", None) or {}), "static": True}
    return dataclasses.field(metadata=metadata, **kwargs)


class PyTreeRegistry:
    """The registry of node types as an object; there is one, `default_registry`."""

    __slots__ = ()

    def flatten(self, tree: Any, leaf_predicate: Callable[[Any], bool] | None = None) -> tuple[list[Any], PyTreeDef]:
        """As `tree_flatten`."""
        return _native.flatten(tree, leaf_predicate, False)

    def flatten_with_path(
        self, tree: Any, leaf_predicate: Callable[[Any, Any], bool] | None = None
    ) -> tuple[list[tuple[KeyPath, Any]], PyTreeDef]:
        """As `tree_flatten_with_path`; the predicate is called with the key path and the subtree."""
        return _native.flatten_with_path(tree, leaf_predicate, True)

    def flatten_one_level(self, tree: Any) -> tuple[Iterable[Any], Any] | None:
        """The children and metadata of a node; None for a leaf."""
        return _native.one_level(tree, False)

    def flatten_one_level_with_keys(self, tree: Any) -> tuple[Iterable[KeyLeafPair], Any] | None:
        """The (key, child) pairs and metadata of a node; None for a leaf."""
        return _native.one_level(tree, True)

    def is_node(self, type: type) -> bool:
        """As `is_tree_node`."""
        return _native.is_node(type)

    def register_node(
        self, type: type, to_iterable: Callable, from_iterable: Callable, to_iterable_with_keys: Callable | None = None
    ) -> None:
        """As `register_pytree_node`."""
        _native.register_node(type, to_iterable, from_iterable, to_iterable_with_keys)

    def register_dataclass_node(self, type: type, data_fields: Sequence[str], meta_fields: Sequence[str], /) -> Any:
        """As `register_dataclass`, without its checks."""
        return _native.register_dataclass_node(type, data_fields, meta_fields)

    def __reduce__(self) -> str:
        return "default_registry"


default_registry = PyTreeRegistry()


# ---- Partial


class _OpaqueCallable:
    """A functools.partial hidden from the constructor of another one, which would merge the two and lose the inner
    arguments' place in the structure. Hashable and comparable as what it holds."""

    __slots__ = ("function",)

    def __init__(self, function: Callable[..., Any]):
        self.function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def __hash__(self) -> int:
        return hash(self.function)

    def __eq__(self, other: object) -> bool:
        return type(other) is _OpaqueCallable and self.function == other.function

    def __repr__(self) -> str:
        return repr(self.function)


class Partial(functools.partial):
    """A functools.partial that is a pytree: its arguments are children, its function is part of the structure."""

    @api_boundary
    def __new__(klass, func, *args, **kw):
        if isinstance(func, functools.partial):
            func = _OpaqueCallable(func)
        return super().__new__(klass, func, *args, **kw)


register_pytree_node(
    Partial,
    lambda partial: ((partial.args, partial.keywords), partial.func),
    lambda func, children: Partial(func, *children[0], **children[1]),
)
