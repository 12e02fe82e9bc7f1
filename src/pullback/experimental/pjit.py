"""`pjit`, the older name of `jit`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from pullback import api


def pjit(
    fun: Callable,
    in_shardings: Any = None,
    out_shardings: Any = None,
    static_argnums: Any = None,
    static_argnames: Any = None,
    donate_argnums: Any = None,
    donate_argnames: Any = None,
    keep_unused: bool = False,
    device: Any = None,
    backend: str | None = None,
    inline: bool = False,
    compiler_options: Any = None,
) -> Any:
    """`jit(fun, ...)`: a jitted function; its arguments and errors are those of `jit`.

    >>> pjit(lambda x: x + 1)(1.0)
    Array(2., dtype=float32, weak_type=True)
    """
    given = {name: value for name, value in locals().items() if name != "fun"}
    defaults = inspect.signature(pjit).parameters
    return api.jit(fun, **{name: value for name, value in given.items() if value is not defaults[name].default})


__all__ = ["pjit"]
