"""The caches of a jitted function, which lie with the function itself."""

from __future__ import annotations

import types
import weakref
from collections.abc import Callable
from typing import Any

from pullback.util.memory import forgetful


def shared_caches(fun: Callable, kind: str, options: tuple) -> dict:
    """A cache of `fun` jitted with these options: the same one for every `jit(fun)`, so that calls of `jit(fun)(x)` in
    a loop are traced once. It lies with the function and goes with it.
    """
    if type(fun) is not types.FunctionType:
        return {}
    shared: Any = fun.__dict__.get("_pullback_caches")
    if shared is None or shared.fun() is not fun:  # functools.wraps copies the attributes of another function
        shared = fun.__dict__["_pullback_caches"] = _Shared(weakref.ref(fun))
        forgetful(shared)
    return shared.by_options.setdefault((kind, options), {})


class _Shared:
    """The caches that lie with a function. Who pickles the function, as cloudpickle does, gets none of it."""

    __slots__ = ("__weakref__", "by_options", "fun")

    def __init__(self, fun: Callable[[], Any] = lambda: None) -> None:
        self.fun = fun
        self.by_options: dict[tuple, dict] = {}

    def clear_cache(self) -> None:
        """Forget all, also where no jitted function holds the caches any more."""
        for memory in list(self.by_options.values()):
            memory.clear()

    def __reduce__(self):
        return _Shared, ()
