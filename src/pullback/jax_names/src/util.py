"""Stands for jax._src.util: small functions on lists, which libraries' transformations and tests are written with, and
functions on functions (`curry`, `wraps`, caches), with which they make them.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

from pullback.api_util import safe_map
from pullback.numpy import moveaxis
from pullback.numpy._arguments import canonical_axis
from pullback.transforms.partial_eval import split_list
from pullback.util.flags import context_tokens


def safe_zip(*lists: Iterable[Any]) -> list[tuple[Any, ...]]:
    """zip as a list; ValueError unless all are of one length, TypeError without any."""
    if not lists:
        raise TypeError("safe_zip: give it a list or more, got none")
    return list(zip(*lists, strict=True))


def unzip2(pairs: Iterable[Sequence[Any]]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The first elements of pairs, and the second ones."""
    found = [(a, b) for a, b in pairs]
    return tuple(a for a, _ in found), tuple(b for _, b in found)


def unzip3(triples: Iterable[Sequence[Any]]) -> tuple[tuple[Any, ...], tuple[Any, ...], tuple[Any, ...]]:
    """The first, second and third elements of triples."""
    found = [(a, b, c) for a, b, c in triples]
    return tuple(a for a, _, _ in found), tuple(b for _, b, _ in found), tuple(c for _, _, c in found)


def foreach(f: Callable[..., Any], *lists: Iterable[Any]) -> None:
    """Call f for each of zipped lists of one length, for its effect; TypeError without any."""
    if not lists:
        raise TypeError("foreach() requires at least 2 arguments")
    for args in zip(*lists, strict=True):
        f(*args)


def concatenate(lists: Iterable[Sequence[Any]]) -> list[Any]:
    """The elements of lists, one list after the other."""
    return [x for part in lists for x in part]


flatten = concatenate


def unflatten(xs: Iterable[Any], lengths: Sequence[int]) -> list[list[Any]]:
    """xs as lists of these lengths; AssertionError unless that is all of it."""
    left = list(xs)
    assert sum(lengths) == len(left), f"unflatten: {len(left)} elements for lists of {list(lengths)}"
    return split_list(left, lengths[:-1]) if lengths else []


def partition_list(chosen: Sequence[bool], xs: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """(elements of xs that are not chosen, those that are)."""
    assert len(chosen) == len(xs), f"partition_list: {len(chosen)} choices for {len(xs)} elements"
    return [x for c, x in zip(chosen, xs) if not c], [x for c, x in zip(chosen, xs) if c]


def merge_lists(chosen: Sequence[bool], off: Sequence[Any], on: Sequence[Any]) -> list[Any]:
    """What partition_list made two lists of."""
    assert len(on) == sum(map(bool, chosen)), f"merge_lists: {len(on)} elements for {sum(map(bool, chosen))} choices"
    assert len(off) + len(on) == len(chosen), f"merge_lists: {len(off) + len(on)} elements for {len(chosen)} places"
    rest = iter(off), iter(on)
    return [next(rest[bool(c)]) for c in chosen]


def split_list_checked(xs: Sequence[Any], lengths: Sequence[int]) -> list[list[Any]]:
    """xs as lists of these lengths; AssertionError unless that is all of it."""
    assert sum(lengths) == len(xs), f"split_list_checked: {len(xs)} elements for lists of {list(lengths)}"
    return split_list(list(xs), list(lengths)[:-1])


def subs_list(places: Sequence[int | None], source: Sequence[Any], base: Sequence[Any]) -> list[Any]:
    """The elements of base, those with a place replaced by that element of source."""
    assert len(places) == len(base), f"subs_list: {len(places)} places for {len(base)} elements"
    return [x if place is None else source[place] for place, x in zip(places, base)]


def subvals(xs: Sequence[Any], replace: Iterable[tuple[int, Any]]) -> tuple[Any, ...]:
    """xs with other elements at some places."""
    found = list(xs)
    for place, x in replace:
        found[place] = x
    return tuple(found)


def tuple_insert(xs: tuple[Any, ...], place: int, x: Any) -> tuple[Any, ...]:
    """The tuple with one element more, before a place."""
    assert 0 <= place <= len(xs), (place, len(xs))
    return (*xs[:place], x, *xs[place:])


def tuple_delete(xs: tuple[Any, ...], place: int) -> tuple[Any, ...]:
    """The tuple without the element at a place."""
    assert 0 <= place < len(xs), (place, len(xs))
    return (*xs[:place], *xs[place + 1 :])


def tuple_update(xs: tuple[Any, ...], place: int, x: Any) -> tuple[Any, ...]:
    """The tuple with another element at a place."""
    assert 0 <= place < len(xs), (place, len(xs))
    return (*xs[:place], x, *xs[place + 1 :])


def stable_unique(xs: Iterable[Any]) -> Iterable[Any]:
    """The different elements, in the order in which they come first."""
    return dict.fromkeys(xs)


def ceil_of_ratio(x: int, y: int) -> int:
    """x / y, rounded up."""
    return -(-x // y)


def curry(f: Callable[..., Any]) -> Callable[..., Any]:
    """`f(a, b)` as `f(a)(b)`."""

    @functools.wraps(f)
    def first(*args: Any, **kwargs: Any) -> Any:
        return functools.partial(f, *args, **kwargs)

    return first


def fun_name(fun: Any, default_name: str = "<unnamed function>") -> str:
    """The name of a function, of what it is partially applied from, too."""
    if isinstance(fun, functools.partial):
        return fun_name(fun.func, default_name)
    return getattr(fun, "__name__", default_name)


def wraps(
    wrapped: Callable[..., Any], namestr: str | None = None, docstr: str | None = None, **kwargs: Any
) -> Callable[[Any], Any]:
    """As functools.wraps, with patterns for the name and the docstring: "{fun}", "{doc}" and others that are given."""

    def decorate(f: Any) -> Any:
        name = fun_name(wrapped)
        doc = getattr(wrapped, "__doc__", "") or ""
        f.__dict__.update(getattr(wrapped, "__dict__", {}))
        f.__name__ = name if namestr is None else namestr.format(fun=name)
        f.__qualname__ = getattr(wrapped, "__qualname__", f.__name__)
        f.__module__ = getattr(wrapped, "__module__", "<unknown module>")
        f.__doc__ = doc if docstr is None else docstr.format(fun=name, doc=doc, **kwargs)
        f.__annotations__ = getattr(wrapped, "__annotations__", {})
        f.__wrapped__ = wrapped
        return f

    return decorate


def _of_context(*_args: Any) -> Any:
    return context_tokens()


def cache(max_size: int | None = 4096, trace_context_in_key: bool | Callable[..., Any] = True) -> Callable[[Any], Any]:
    """functools.lru_cache, by the switches that change what is traced, too, unless told otherwise."""
    context = trace_context_in_key if callable(trace_context_in_key) else _of_context
    if not trace_context_in_key:
        return functools.lru_cache(max_size)

    def decorate(f: Callable[..., Any]) -> Callable[..., Any]:
        found = functools.lru_cache(max_size)(lambda _, *args, **kwargs: f(*args, **kwargs))

        @functools.wraps(f)
        def call(*args: Any, **kwargs: Any) -> Any:
            return found(context(), *args, **kwargs)

        call.cache_clear, call.cache_info = found.cache_clear, found.cache_info  # type: ignore[attr-defined]
        return call

    return decorate


memoize = cache(None)


def weakref_lru_cache(
    f: Any = None, *, maxsize: int | None = 2048, trace_context_in_key: bool = True, explain: Any = None
) -> Any:
    """A cache that does not keep the first argument, a function or an object, alive."""
    if f is None:
        return functools.partial(weakref_lru_cache, maxsize=maxsize, trace_context_in_key=trace_context_in_key)
    of_each: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
    del explain

    @functools.wraps(f)
    def call(first: Any, *args: Any, **kwargs: Any) -> Any:
        if first not in of_each:
            weak = weakref.ref(first)
            of_each[first] = cache(maxsize, trace_context_in_key)(lambda *a, **k: f(weak(), *a, **k))
        return of_each[first](*args, **kwargs)

    call.cache_clear = of_each.clear  # type: ignore[attr-defined]
    return call


def canonicalize_axis(axis: Any, num_dims: int) -> int:
    """An axis counted from the front (torchax); ValueError for one that there is not."""
    return canonical_axis("canonicalize_axis", axis, num_dims, error=ValueError)


def canonicalize_axis_tuple(axis: Any, ndim: int, allow_duplicate: bool = False) -> tuple[int, ...]:
    """Axes counted from the front, all where None is given; ValueError for one that is not there, or twice."""
    if axis is None:
        return tuple(range(ndim))
    axes = tuple(canonicalize_axis(i, ndim) for i in (axis if isinstance(axis, (tuple, list)) else (axis,)))
    if len(set(axes)) < len(axes) and not allow_duplicate:
        raise ValueError(f"repeated axis: {axes}")
    return axes


def wrap_name(transform_name: str, name: str) -> str:
    """The name of a transformed function."""
    return f"{transform_name}({name})"


def fun_qual_name(fun: Any) -> str:
    """The name of a function with those of the classes that it is in; that of what it is partially applied from."""
    if isinstance(fun, functools.partial):
        return fun_qual_name(fun.func)
    return getattr(fun, "__qualname__", None) or fun_name(fun)


def set_module(module: str) -> Callable[[Any], Any]:
    """A decorator that says in which module a function or class is found."""

    def decorate(found: Any) -> Any:
        found.__module__ = module
        return found

    return decorate


class HashableFunction:
    """A function that is compared by its code and by what it closes over (ejkernel)."""

    def __init__(self, f: Callable[..., Any], closure: Hashable) -> None:
        self.f, self.closure = f, closure

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.f(*args, **kwargs)

    def __eq__(self, other: object) -> bool:
        return type(other) is HashableFunction and self.f.__code__ == other.f.__code__ and self.closure == other.closure

    def __hash__(self) -> int:
        return hash((self.f.__code__, self.closure))

    def __repr__(self) -> str:
        return f"<hashable {self.f.__name__} with closure={self.closure}>"


class HashablePartial:
    """functools.partial that is compared by the code of the function and by the arguments."""

    def __init__(self, f: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        self.f, self.args, self.kwargs = f, args, kwargs

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.f(*self.args, *args, **self.kwargs, **kwargs)

    def _key(self) -> Any:
        return getattr(self.f, "__code__", self.f), self.args, frozenset(self.kwargs.items())

    def __eq__(self, other: object) -> bool:
        return type(other) is HashablePartial and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())


__all__ = [
    "HashableFunction", "HashablePartial", "cache", "canonicalize_axis", "canonicalize_axis_tuple", "ceil_of_ratio",
    "concatenate", "curry", "flatten", "foreach", "fun_name", "fun_qual_name", "memoize", "merge_lists", "moveaxis",
    "partition_list", "safe_map", "safe_zip", "set_module", "split_list", "split_list_checked", "stable_unique",
    "subs_list", "subvals", "tuple_delete", "tuple_insert", "tuple_update", "unflatten", "unzip2", "unzip3",
    "weakref_lru_cache", "wrap_name", "wraps",
]  # fmt: skip
