"""How samplers are compiled: `@jitted("shape", ...)` is `jit` with those arguments static."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from pullback.api.jit import jit


def jitted(*static: str) -> Callable[[Callable[..., Any]], Any]:
    """Decorator: jit with the named keyword arguments static."""
    return partial(jit, static_argnames=static)


def named(name: str) -> Callable[[Callable[..., Any]], Any]:
    """Decorator: the name of a function, under which jaxprs show its calls."""

    def rename(fun: Callable[..., Any]) -> Any:
        fun.__name__ = fun.__qualname__ = name
        return fun

    return rename
