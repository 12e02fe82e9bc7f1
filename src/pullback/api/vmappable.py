"""Objects of libraries that say themselves what of them is mapped.

`interpreters.batching.register_vmappable` notes a class with two functions: to_elt(cont, axis_size, x, spec) gives the
object of one element, from `cont(array, axis)` of each mapped array; from_elt(cont, axis_size, element, spec) the
object of all elements, from `cont(axis_size, array, axis)`. `vmap` maps the arrays for which `cont` is called.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback._ext import _core
from pullback.core.tracer import Tracer
from pullback.util.pytree import flatten_axes, tree_flatten, tree_unflatten
from pullback.util.record import NamedTuple


class _Rules(NamedTuple):
    to_elt: Callable[..., Any]
    from_elt: Callable[..., Any]


_rules: dict[type, _Rules] = {}
spec_types: set[type] = set()  # what stands in in_axes and out_axes for such objects


def register_vmappable(
    data_type: type,
    spec_type: type,
    axis_size_type: type,
    to_elt: Callable[..., Any],
    from_elt: Callable[..., Any],
    make_iota: Callable[..., Any] | None,
) -> None:
    """Say how `vmap` maps objects of a class; in_axes and out_axes have objects of `spec_type` for them.

    Raises NotImplementedError for axis sizes that are no integers, or a `make_iota`, which makes such sizes' indices.
    """
    if axis_size_type is not int or make_iota is not None:
        raise NotImplementedError(
            "register_vmappable: axis sizes are integers; axis_size_type must be int, make_iota None"
        )
    _rules[data_type] = _Rules(to_elt, from_elt)
    spec_types.add(spec_type)


def unregister_vmappable(data_type: type) -> None:
    """Forget a class. Raises KeyError for one that was not registered."""
    del _rules[data_type]


def is_vmappable(x: Any) -> bool:
    """Whether an object is of a registered class."""
    return type(x) in _rules


def has_vmappable(tree: Any) -> bool:
    """Whether there are such objects in a tree."""
    return bool(_rules) and any(map(is_vmappable, tree_flatten(tree, is_leaf=is_vmappable)[0]))


class _Taken:
    """The arrays of a tree with such objects, as (array, axis) in the order in which the rules ask for them."""

    def __init__(self, what: str, tree: Any, axes: Any) -> None:
        self.leaves, self.tree = tree_flatten(tree, is_leaf=is_vmappable)
        self.axes = list(flatten_axes(what, self.tree, axes))
        self.values: list[Any] = []
        self.of_values: list[Any] = []

    def take(self, value: Any, axis: Any) -> Any:
        self.values.append(value)
        self.of_values.append(axis)
        return value

    def rebuilt(self, one: Callable[[Any, Any, Callable[..., Any]], Any], values: Any) -> Any:
        """The tree, with `one(object, axis, next value)` for each mapped object and values for the other leaves."""
        rest = iter(values)
        out = [
            next(rest) if not is_vmappable(leaf) else leaf if axis is None else one(leaf, axis, lambda *_: next(rest))
            for leaf, axis in zip(self.leaves, self.axes, strict=True)
        ]
        return tree_unflatten(self.tree, out)


def map_over(
    vmap: Callable[..., Any], fun: Callable[..., Any], in_axes: Any, out_axes: Any, size: Any, args: Any, kwargs: Any
) -> Any:
    """The result of `fun` for arguments among which are such objects; vmap(fun, in_axes, out_axes) maps functions of
    arrays.
    """
    given = _Taken("vmap in_axes", (args, kwargs), (in_axes, 0))
    for leaf, axis in zip(given.leaves, given.axes, strict=True):
        if not is_vmappable(leaf):
            given.take(leaf, axis)
        elif axis is not None:  # else it is the same object for all elements
            _rules[type(leaf)].to_elt(given.take, None, leaf, axis)
    sizes = [
        x.shape[axis] for x, axis in zip(given.values, given.of_values) if type(axis) is int and hasattr(x, "shape")
    ]
    size = size if size is not None or not sizes else sizes[0]
    axes_of_results: list[Any] = []  # known once the function has run, which is before they are looked at
    out: list[_Taken] = []

    def inside(*values: Any) -> list[Any]:
        elements, keywords = given.rebuilt(lambda x, axis, value: _rules[type(x)].to_elt(value, None, x, axis), values)
        found = _Taken("vmap out_axes", fun(*elements, **keywords), out_axes)
        for leaf, axis in zip(found.leaves, found.axes, strict=True):
            if not is_vmappable(leaf):
                found.take(leaf, axis)
            elif axis is not None:
                _rules[type(leaf)].from_elt(lambda _, value, to: found.take(value, to), size, leaf, axis)
            elif any(isinstance(x, Tracer) for x in tree_flatten(leaf)[0]):
                raise ValueError(f"vmap out_axes is None for an object of {type(leaf).__name__} made inside")
        axes_of_results[:] = found.of_values
        out[:] = [found]
        return found.values

    results = vmap(_core.named_after(inside, fun), tuple(given.of_values), axes_of_results)(*given.values)
    return out[0].rebuilt(lambda x, axis, value: _rules[type(x)].from_elt(value, size, x, axis), results)
