"""Types above arrays: objects that stand for several arrays, and are one value to the functions that take them.

A class gets its type by `register_hitype`. Where such an object enters a function that is traced, it goes as the arrays
that it is made of (`Lowered`, a pytree node with the type beside them), is put together again inside, and results are
taken apart and put together likewise; of a mutable one the state afterwards is one more result. So jaxprs have arrays
only. Primitives on such objects run at once as what `to_lojax` says, in whatever trace the arrays are in; derivatives
and mapped axes go through that.

Types that say what their tangents are (`to_tangent_aval`) are opaque inside: an object is `Held` there, which only
primitives take (experimental/hijax.py). Beside the arrays it has a *carrier*, an array of the tangent's type whose
value is never read: its tangent is the object's, so that transformations of arrays differentiate objects as well.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from pullback._ext import _core
from pullback.core.avals import AbstractValue, ShapedArray
from pullback.core.hooks import hooks
from pullback.core.interpreter import current_interpreter, eval_interpreter
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

    def to_tangent_aval(self) -> Any:
        """The type of tangents and cotangents, that of an array."""
        raise NotImplementedError(f"{type(self).__name__} has no to_tangent_aval")

    def to_ct_aval(self) -> Any:
        """The type of cotangents, which is that of tangents."""
        return self.to_tangent_aval()

    def dec_rank(self, size: int | None, spec: Any) -> Any:
        """The type of an element of this one, which is mapped as `spec` says."""
        raise NotImplementedError(f"{type(self).__name__} has no dec_rank")

    def inc_rank(self, size: int | None, spec: Any) -> Any:
        """The type of `size` elements of this one."""
        raise NotImplementedError(f"{type(self).__name__} has no inc_rank")

    def leading_axis_spec(self) -> Any:
        """What `dec_rank` and `inc_rank` take for the leading axis of all arrays, which scan goes along."""
        raise NotImplementedError(f"{type(self).__name__} has no leading_axis_spec")


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
    types_of[Held] = lambda held: held.kind


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


class Held:
    """An object of an opaque type inside of what is traced: its type, its arrays and its carrier."""

    __slots__ = ("arrays", "carrier", "kind")

    def __init__(self, arrays: Sequence[Any], kind: Any, carrier: Any) -> None:
        self.arrays, self.kind, self.carrier = tuple(arrays), kind, carrier

    @property
    def actual(self) -> Any:
        """The object of its class, which has these arrays."""
        return self.kind.raise_val(*self.arrays)

    def __repr__(self) -> str:
        return f"Held({self.kind})"


def is_opaque(kind: Any) -> bool:
    """Whether objects of a type are `Held` inside of what is traced: where it says what tangents are."""
    return isinstance(kind, HiType) and type(kind).to_tangent_aval is not HiType.to_tangent_aval


def no_tangent(kind: Any) -> Any:
    """The carrier of an object that is not differentiated: zeros."""
    aval = kind.to_tangent_aval()
    if not isinstance(aval, ShapedArray):
        raise NotImplementedError(f"{type(kind).__name__}.to_tangent_aval: tangents must be arrays, got {aval}")
    return hooks.zeros(aval)


def actual(x: Any) -> Any:
    """An object of its own class for one that is held, anything else as it is."""
    return x.actual if type(x) is Held else x


class Lowered:
    """The arrays of an object, as a pytree node that says what it is the object of."""

    def __init__(self, arrays: Sequence[Any], kind: Any, state: Any, carrier: Any = None) -> None:
        self.arrays, self.kind, self.state, self.carrier = arrays, kind, state, carrier

    @staticmethod
    def of(x: Any) -> Lowered:
        """The arrays of x."""
        kind = type_of(x)
        if type(x) is Held:
            return Lowered(x.arrays, kind, None, x.carrier)
        if not kind.has_qdd:
            carrier = no_tangent(kind) if is_opaque(kind) else None
            return Lowered(tuple(kind.lower_val(x)), kind, None, carrier)
        state = x.cur_qdd()
        return Lowered(tuple(kind.read_loval(state, x)), kind, state)

    @property
    def is_object(self) -> bool:
        """Whether trees have the object in its place as soon as its arrays are there: one of an opaque type."""
        return self.carrier is not None and is_opaque(self.kind)

    def raised(self) -> Any:
        """The object."""
        if self.kind.has_qdd:
            made = self.kind.new_from_loval(self.state, *self.arrays)
            note_made(made)
            return made
        if is_opaque(self.kind) and current_interpreter() is not eval_interpreter():
            return Held(self.arrays, self.kind, self.carrier)
        return self.kind.raise_val(*self.arrays)

    def __repr__(self) -> str:
        return str(self.kind)

    def update(self, x: Any) -> None:
        """Bring an object of a mutable type to these arrays."""
        self.kind.update_from_loval(self.state, x, *self.arrays)


class Returned(Lowered):
    """The arrays of a result that has no state: what is unflattened is the object."""

    is_object = True


def _unflatten(node: type[Lowered], aux: tuple[Any, Any], children: Sequence[Any]) -> Any:
    """The object, where it is one that trees of results have; of what are no arrays (as the types of eval_shape), and
    of other objects, what it is made of."""
    *arrays, carrier = children
    found = node(tuple(arrays), *aux, carrier)
    are_arrays = all(hasattr(x, "aval") and not getattr(x, "is_only_a_type", False) for x in arrays)
    return found.raised() if found.is_object and are_arrays else found


for _node in (Lowered, Returned):
    register_pytree_node(_node, lambda x: ((*x.arrays, x.carrier), (x.kind, x.state)), partial(_unflatten, _node))


def lowered(tree: Any) -> Any:
    """The tree with objects as their arrays."""
    return tree_map(lambda leaf: Lowered.of(leaf) if is_high(leaf) else leaf, tree)


def flattened(tree: Any, *, as_they_are: bool = False) -> tuple[list[Any], Any]:
    """(leaves, structure) of results, opaque objects as their arrays; what is unflattened has the objects again.

    `as_they_are`: the results are neither differentiated nor mapped, so that objects without a state need say nothing
    of that to be results.
    """
    leaves, structure = tree_flatten(tree)
    kinds = [type_of(leaf) if is_high(leaf) else None for leaf in leaves]
    if as_they_are and any(kind is not None and not kind.has_qdd and not is_opaque(kind) for kind in kinds):
        return tree_flatten(tree_unflatten(structure, [_returned(x, kind) for x, kind in zip(leaves, kinds)]))
    if any(kind is not None and is_opaque(kind) for kind in kinds):
        return tree_flatten(lowered(tree))
    return leaves, structure


def _returned(leaf: Any, kind: Any) -> Any:
    if kind is None or kind.has_qdd:
        return leaf
    low = Lowered.of(leaf)
    return low if is_opaque(kind) else Returned(low.arrays, kind, None)


def on_arrays(fun: Callable[..., Any]) -> Callable[..., Any]:
    """`fun` where objects among its arguments and results are their arrays."""

    def low(*args: Any) -> Any:
        return lowered(fun(*raised(args)))

    return _core.named_after(low, fun)


def has_values(tree: Any) -> bool:
    """Whether there are objects among the leaves of a tree, all without a state: loops and branches pass these on."""
    return has_high(tree) and not _mutable(tree)


def raised(tree: Any) -> Any:
    """The tree with objects again."""
    return tree_map(
        lambda leaf: leaf.raised() if type(leaf) is Lowered else leaf, tree, is_leaf=lambda x: type(x) is Lowered
    )


def _mutable(tree: Any) -> list[Any]:
    return [leaf for leaf in tree_flatten(tree)[0] if is_high(leaf) and type_of(leaf).has_qdd]


class Captured:
    """The mutable objects from outside that the body of a loop changes, which is watched while it is traced.

    with Captured() as captured: ...  # the next body that is traced is that loop's
    """

    _all = threading.local()  # of this thread: those of bodies that are traced now, and whose body is next

    def __init__(self) -> None:
        self.changed: list[Any] = []
        self.before: dict[int, tuple[Any, Lowered]] = {}  # objects from outside, as they were before
        self.made: dict[int, Any] = {}  # inside
        self.body: Any = None  # what traces the function

    def __enter__(self) -> Captured:
        self.outer, self._all.next = self.next(), self
        return self

    def __exit__(self, *_: object) -> None:
        self._all.next = self.outer

    @classmethod
    def watching(cls) -> list[Captured]:
        """Those of the functions that are traced now, from the outermost on."""
        return getattr(cls._all, "stack", [])

    @classmethod
    def next(cls) -> Captured | None:
        """That of the loop whose body is traced next."""
        return getattr(cls._all, "next", None)

    def watched(self, f: Callable[..., Any], *args: Any) -> Any:
        """f(*args), after which the objects are what they were before."""
        self.before, self.made, self.body = {}, {}, current_interpreter()
        self._all.stack, self._all.next = [*self.watching(), self], None
        try:
            return f(*args)
        finally:
            self._all.stack, self._all.next = self.watching()[:-1], self
            for x, was in self.before.values():
                self._restore(x, was)

    def _restore(self, x: Any, was: Lowered) -> None:
        now = Lowered.of(x)
        if now.state != was.state or any(a is not b for a, b in zip(now.arrays, was.arrays, strict=True)):
            was.update(x)
            if not any(x is other for other in self.changed):
                self.changed.append(x)

    def note_use(self, x: Any) -> None:
        """A primitive gets an object. One that holds what is computed inside has been made inside."""
        if id(x) not in self.made and id(x) not in self.before:
            was = Lowered.of(x)
            is_made = any(getattr(a, "interpreter", None) is self.body for a in was.arrays)
            if is_made:
                self.made[id(x)] = x
            else:
                self.before[id(x)] = x, was


def _noting(tree: Any, note: Callable[[Captured, Any], None]) -> None:
    watching = Captured.watching()
    if watching and (objects := _mutable(tree)):
        Captured._all.stack = []  # objects may be read by primitives themselves
        try:
            for x in objects:
                for captured in watching:
                    note(captured, x)
        finally:
            Captured._all.stack = watching


def note_use(tree: Any) -> None:
    """A primitive gets what is in a tree."""
    _noting(tree, Captured.note_use)


def note_made(tree: Any) -> None:
    """What is in a tree has been made inside of what is traced."""
    _noting(tree, lambda captured, x: captured.made.setdefault(id(x), x))


def carrying(f: Callable[..., tuple[Any, Any]], objects: Sequence[Any]) -> Callable[..., tuple[Any, Any]]:
    """The body f of a scan, with the arrays of mutable objects that it changes as a part of the carry."""

    def inside(carry: Any, x: Any) -> tuple[Any, Any]:
        own, held = carry
        outside = [Lowered.of(obj) for obj in objects]
        for obj, value in zip(objects, held, strict=True):
            value.update(obj)
        try:
            own, y = f(own, x)
            return (own, [Lowered.of(obj) for obj in objects]), y
        finally:
            for obj, value in zip(objects, outside, strict=True):
                value.update(obj)

    inside.__wrapped__ = f  # type: ignore[attr-defined]
    return inside


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


def by_carriers(tree: Any) -> tuple[Callable[[Any], Any], Any]:
    """(raised, tree'): the carriers of objects of opaque types in their place, and how to put the objects back."""
    leaves, structure = tree_flatten(tree)
    held = [Lowered.of(x) if is_high(x) and is_opaque(type_of(x)) else None for x in leaves]

    def raised(carriers: Any) -> Any:
        values = tree_flatten(carriers)[0]
        return tree_unflatten(
            structure, [x if h is None else Held(h.arrays, h.kind, x) for h, x in zip(held, values, strict=True)]
        )

    return raised, tree_unflatten(structure, [x if h is None else h.carrier for h, x in zip(held, leaves)])
