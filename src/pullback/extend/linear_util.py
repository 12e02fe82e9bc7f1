"""Functions with transformations stacked on them; here a function is a function."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


class WrappedFun:
    """A function, and the static keyword arguments it is called with."""

    def __init__(self, f: Callable[..., Any], params: dict[str, Any]) -> None:
        self.f, self.params = f, params

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


def wrap_init(f: Callable[..., Any], params: dict[str, Any] | None = None, *, debug_info: Any = None) -> WrappedFun:
    """f as a WrappedFun."""
    return WrappedFun(f, dict(params or {}))


cache = functools.lru_cache(maxsize=None)

__all__ = ["WrappedFun", "cache", "wrap_init"]
