"""Types above arrays: objects that stand for several arrays, and are one value to the functions that take them.

A class gets its type by `register_hitype`. Where such an object enters a function that is traced, it goes as the arrays
that it is made of (`Lowered`, a pytree node with the type beside them), is put together again inside, and results are
taken apart and put together likewise; of a mutable one the state afterwards is one more result. So jaxprs have arrays
only. Primitives on such objects run at once as what `to_lojax` says, in whatever trace the arrays are in; derivatives
and mapped axes go through that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pullback._ext import _core
from pullback.core.avals import AbstractValue
from pullback.util.pytree import register_pytree_node, tree_flatten, tree_map, tree_unflatten


class HiType(AbstractValue):
    """Base of the types of objects without a state: `lo_ty()`, `lower_val(object)` and `raise_val(*arrays)`."""

    is_high = True
    has_qdd = False

    def lo_ty(self) -> Sequence[Any]:
        """The types of the arrays."""
        raise NotImplementedError(f"{type(self).__name__} has no lo_ty")

    def lower_val(self, hi_val: Any) -> Sequence[Any]:
        """The arrays of an object."""
        raise NotImplementedError(f"{type(self).__name__} has no lower_val")

    def raise_val(self, *lo_vals: Any) -> Any:
        """The object that has these arrays."""
        raise NotImplementedError(f"{type(self).__name__} has no raise_val")


class MutableHiType(AbstractValue):
    """Base of the types of objects with a state, which says what arrays there are now: an object has `cur_qdd()`, its
    type `lo_ty_qdd(state)`, `read_loval(state, object)`, `new_from_loval(state, *arrays)` and
    `update_from_loval(state, object, *arrays)`.
    """

    is_high = True
    has_qdd = True

    def lo_ty_qdd(self, state: Any, /) -> Sequence[Any]:
        """The types of the arrays."""
        raise NotImplementedError(f"{type(self).__name__} has no lo_ty_qdd")

    def read_loval(self, state: Any, val: Any, /) -> Sequence[Any]:
        """The arrays of an object."""
        raise NotImplementedError(f"{type(self).__name__} has no read_loval")

    def new_from_loval(self, state: Any, /, *vals: Any) -> Any:
        """An object in this state, with these arrays."""
        raise NotImplementedError(f"{type(self).__name__} has no new_from_loval")

    def update_from_loval(self, state: Any, val: Any, /, *lo_vals: Any) -> None:
        """Bring an object into this state, with these arrays."""
        raise NotImplementedError(f"{type(self).__name__} has no update_from_loval")


types_of: dict[type, Callable[[Any], Any]] = {}  # by class of objects


def register_hitype(val_cls: type, typeof_fn: Callable[[Any], Any]) -> None:
    """Say which type the objects of a class have: typeof_fn(object) -> HiType or MutableHiType."""
    types_of[val_cls] = typeof_fn


def is_high(x: Any) -> bool:
    """Whether x is an object of a class that has such a type."""
    return bool(types_of) and type(x) in types_of


def has_high(tree: Any) -> bool:
    """Whether there are such objects among the leaves of a tree."""
    return bool(types_of) and any(type(leaf) in types_of for leaf in tree_flatten(tree)[0])


def type_of(x: Any) -> Any:
    """The type of such an object."""
    return types_of[type(x)](x)


def cur_qdd(x: Any) -> Any:
    """The state of an object of a mutable type. Raises TypeError for anything else."""
    if not is_high(x) or not type_of(x).has_qdd:
        raise TypeError(f"cur_qdd: {x!r} of type {type(x).__name__} is no object of a mutable type")
    return x.cur_qdd()


class Lowered:
    """The arrays of an object, as a pytree node that says what it is the object of."""

    def __init__(self, arrays: Sequence[Any], kind: Any, state: Any) -> None:
        self.arrays, self.kind, self.state = arrays, kind, state

    @staticmethod
    def of(x: Any) -> Lowered:
        """The arrays of x."""
        kind = type_of(x)
        if not kind.has_qdd:
            return Lowered(tuple(kind.lower_val(x)), kind, None)
        state = x.cur_qdd()
        return Lowered(tuple(kind.read_loval(state, x)), kind, state)

    def raised(self) -> Any:
        """The object."""
        if self.kind.has_qdd:
            return self.kind.new_from_loval(self.state, *self.arrays)
        return self.kind.raise_val(*self.arrays)

    def update(self, x: Any) -> None:
        """Bring an object of a mutable type to these arrays."""
        self.kind.update_from_loval(self.state, x, *self.arrays)


register_pytree_node(
    Lowered, lambda x: (tuple(x.arrays), (x.kind, x.state)), lambda aux, arrays: Lowered(tuple(arrays), *aux)
)


def lowered(tree: Any) -> Any:
    """The tree with objects as their arrays."""
    return tree_map(lambda leaf: Lowered.of(leaf) if is_high(leaf) else leaf, tree)


def raised(tree: Any) -> Any:
    """The tree with objects again."""
    return tree_map(
        lambda leaf: leaf.raised() if type(leaf) is Lowered else leaf, tree, is_leaf=lambda x: type(x) is Lowered
    )


def _mutable(tree: Any) -> list[Any]:
    return [leaf for leaf in tree_flatten(tree)[0] if is_high(leaf) and type_of(leaf).has_qdd]


def through(fun: Callable[..., Any]) -> Callable[..., tuple[Any, list[Any]]]:
    """`fun` on arguments that are `lowered`: (its result, lowered; the mutable arguments afterwards, lowered)."""

    def low(*args: Any, **kwargs: Any) -> tuple[Any, list[Any]]:
        leaves, tree = tree_flatten((args, kwargs), is_leaf=lambda x: type(x) is Lowered)
        inside = [leaf.raised() if type(leaf) is Lowered else leaf for leaf in leaves]
        mutable = _mutable(inside)
        given, keywords = tree_unflatten(tree, inside)
        out = fun(*given, **keywords)
        return lowered(out), [Lowered.of(x) for x in mutable]

    return _core.named_after(low, fun)


def call(low: Callable[..., tuple[Any, list[Any]]], args: Any, kwargs: Any) -> Any:
    """The result of a function made by `through`, transformed or not, for arguments with objects in them.

    ValueError if one mutable object is two of them.
    """
    mutable = _mutable((args, kwargs))
    if len({id(x) for x in mutable}) < len(mutable):
        raise ValueError("one mutable object is passed as two arguments, which would be changed separately")
    given, keywords = lowered((args, kwargs))
    out, after = low(*given, **keywords)
    for x, value in zip(mutable, after, strict=True):
        value.update(x)
    return raised(out)
