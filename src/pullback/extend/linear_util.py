"""Functions with transformations stacked on them; here a function is a Python function, and a transformation wraps it.

A transformation of the first kind is a generator: `outs = yield args, kwargs` calls the function, the last yield gives
the result. One of the second kind is a function of the function: `f(fun, *static, *args, **kwargs)`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from pullback.core.explain import explain_all as _explain_all


class StoreException(Exception):
    """What a function gives beside its result was asked for before it ran."""


class WrappedFun:
    """A function, and the static keyword arguments it is called with."""

    def __init__(self, f: Callable[..., Any], params: dict[str, Any], debug_info: Any = None) -> None:
        self.f, self.params, self.debug_info = f, params, debug_info

    def call_wrapped(self, *args: Any, **kwargs: Any) -> Any:
        """f(*args, **params, **kwargs)."""
        return self.f(*args, **{**self.params, **kwargs})

    @property
    def __name__(self) -> str:
        return getattr(self.f, "__name__", "<unnamed>")

    def __hash__(self) -> int:
        return hash((self.f, tuple(self.params.items())))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WrappedFun) and (self.f, self.params) == (other.f, other.params)


class _Aux:
    """What a transformation gives beside the results of its last call."""

    def __init__(self) -> None:
        self.found: list[Any] = []

    def __call__(self) -> Any:
        if not self.found:
            raise StoreException("the function has not been called yet")
        return self.found[0]


def wrap_init(f: Callable[..., Any], params: dict[str, Any] | None = None, *, debug_info: Any = None) -> WrappedFun:
    """f as a WrappedFun."""
    return WrappedFun(f, dict(params or {}), debug_info)


def _around(fun: WrappedFun, call: Callable[..., Any]) -> WrappedFun:
    functools.update_wrapper(call, fun.f, updated=())
    return WrappedFun(call, {}, fun.debug_info)


def _run(generator: Any, fun: WrappedFun) -> Any:
    args, kwargs = next(generator)
    out = generator.send(fun.call_wrapped(*args, **kwargs))
    generator.close()
    return out


def transformation(gen: Callable[..., Any], fun: WrappedFun | None = None, *static: Any) -> Any:
    """`fun` under the generator `gen(*static, *args, **kwargs)`; without `fun`, the transformation itself."""
    if fun is None:
        return functools.partial(transformation, gen)
    inner = fun
    return _around(fun, lambda *args, **kwargs: _run(gen(*static, *args, **kwargs), inner))


def transformation_with_aux(gen: Callable[..., Any], fun: WrappedFun | None = None, *static: Any) -> Any:
    """(fun', aux): as `transformation`, where the last yield gives a result and what aux() returns."""
    if fun is None:
        return functools.partial(transformation_with_aux, gen)
    inner, aux = fun, _Aux()

    def call(*args: Any, **kwargs: Any) -> Any:
        out, beside = _run(gen(*static, *args, **kwargs), inner)
        aux.found[:] = [beside]
        return out

    return _around(fun, call), aux


def transformation2(f: Callable[..., Any], fun: WrappedFun | None = None, *static: Any) -> Any:
    """`fun` called as f(fun, *static, *args, **kwargs); without `fun`, the transformation itself."""
    if fun is None:
        return functools.partial(transformation2, f)
    inner = fun
    return _around(fun, lambda *args, **kwargs: f(inner.call_wrapped, *static, *args, **kwargs))


def transformation_with_aux2(f: Callable[..., Any], fun: WrappedFun | None = None, *static: Any, **_: Any) -> Any:
    """(fun', aux): `fun` called as f(fun, store, *static, *args, **kwargs); store.store(x) sets what aux() gives."""
    if fun is None:
        return functools.partial(transformation_with_aux2, f)
    inner, aux = fun, _Aux()

    class Store:
        """Where the transformation puts what aux() gives."""

        @staticmethod
        def store(value: Any) -> None:
            """Set it."""
            aux.found[:] = [value]

    return _around(fun, lambda *args, **kwargs: f(inner.call_wrapped, Store, *static, *args, **kwargs)), aux


def merge_linear_aux(aux1: Callable[[], Any], aux2: Callable[[], Any]) -> tuple[bool, Any]:
    """(True, aux1()) if the first function was called, (False, aux2()) if the second; StoreException otherwise."""
    try:
        first = aux1()
    except StoreException:
        return False, aux2()
    try:
        aux2()
    except StoreException:
        return True, first
    raise StoreException("both functions have been called")


cache = functools.lru_cache(maxsize=None)

__all__ = [
    "StoreException", "WrappedFun", "cache", "merge_linear_aux", "transformation", "transformation2",
    "transformation_with_aux", "transformation_with_aux2", "wrap_init",
]  # fmt: skip

_explain_all(globals())
