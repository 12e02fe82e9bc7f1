"""Looking into programs while they run: `jax.debug`."""

from __future__ import annotations

import string
import sys
from collections.abc import Callable
from typing import Any

from pullback.core.explain import explain_all as _explain_all
from pullback.debug._visualize import inspect_array_sharding, visualize_array_sharding, visualize_sharding
from pullback.lax.control.callback import DebugEffect, OrderedDebugEffect, debug_callback, debug_print
from pullback.manual import add_pages as _add_pages
from pullback.manual.debug import PAGES as _PAGES
from pullback.util.absent import listed as _listed
from pullback.util.static import check_flags


class _CheckedFormatter(string.Formatter):
    """Formats, and complains of arguments that the text does not mention, or that are not there."""

    def get_value(self, key, args, kwargs):
        try:
            return super().get_value(key, args, kwargs)
        except LookupError as error:
            given = [*map(str, range(len(args))), *kwargs]
            raise type(error)(
                f"debug.print: the format string names the argument {key!r}; given are {', '.join(given) or 'none'}"
            ) from None

    def check_unused_args(self, used_args, args, kwargs):
        unused = [i for i in range(len(args)) if i not in used_args] + [k for k in kwargs if k not in used_args]
        if unused:
            raise ValueError(f"debug.print: the format string does not use the arguments {unused}")


_formatter = _CheckedFormatter()


def callback(
    callback: Callable[..., Any] | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    **kwargs: Any,
) -> Any:
    """Call a Python function with the values of arguments each time the program runs; see `lax` for what
    transformations do.

    Without `callback`, a decorator. TypeError if it is no function.
    """
    check_flags("debug.callback", ordered=ordered, partitioned=partitioned)
    if callback is None:
        if args or kwargs:
            raise TypeError("debug.callback: argument 'callback' must be a function beside other arguments, got None")

        def decorate(function):
            def wrapped(*a, **k):
                debug_callback(function, *a, ordered=ordered, **k)

            return wrapped

        return decorate
    debug_callback(callback, *args, ordered=ordered, **kwargs)
    return None


def print(
    fmt: str | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    _use_logging: bool = False,
    **kwargs: Any,
) -> None:
    """Print `fmt.format(*args, **kwargs)` with the values of arguments each time the program runs.

    TypeError if fmt is no string; ValueError if it does not use all arguments; KeyError and IndexError as of
    str.format.
    """
    check_flags("debug.print", ordered=ordered, partitioned=partitioned)
    if not isinstance(fmt, str):
        raise TypeError(f"debug.print: argument 'fmt' must be a string, got {fmt!r}; write debug.print('{{}}', x)")
    if not skip_format_check:
        _formatter.format(fmt, *[_Any()] * len(args), **dict.fromkeys(kwargs, _Any()))

    debug_print(fmt, *args, ordered=ordered, logs=_use_logging, **kwargs)


class _Any:
    """Stands for any value when a format is checked."""

    def __format__(self, spec: str) -> str:
        return ""

    def __getattr__(self, name: str) -> _Any:
        return self

    def __getitem__(self, key: Any) -> _Any:
        return self


def log(
    fmt: str | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    _use_logging: bool = True,
    **kwargs: Any,
) -> None:
    """As `print`, to the logger `pullback.debug` at level INFO. Raises as `print`."""
    print(
        fmt, *args, ordered=ordered, partitioned=partitioned, skip_format_check=skip_format_check,
        _use_logging=_use_logging, **kwargs,
    )  # fmt: skip


def breakpoint(
    *,
    backend: str | None = None,
    filter_frames: bool = True,
    num_frames: int | None = None,
    ordered: bool = False,
    token: Any = None,
    stdin: Any = None,
    stdout: Any = None,
) -> Any:
    """Stop the program here each time it runs, and read commands of a debugger (see `help`) until one says go on.

    Variables of the calls that led here are printed with the values of this run. `filter_frames`: without the calls of
    libraries; `num_frames`: at most so many. With a `token`, a tree of arrays, the program stops before what is
    returned, the same tree, is used. `stdin` and `stdout` are files, those of the process by default.

    ValueError for a `backend` other than None and "cli"; SystemExit where the user quits.

        jit(lambda x: (debug.breakpoint(), x + 1)[1])(2.0)
    """
    check_flags("debug.breakpoint", filter_frames=filter_frames, ordered=ordered)
    if backend not in (None, "cli"):
        raise ValueError(f"debug.breakpoint: argument 'backend' must be None or 'cli', got {backend!r}")
    if num_frames is not None and not (isinstance(num_frames, int) and num_frames > 0):
        raise ValueError(f"debug.breakpoint: argument 'num_frames' must be None or a positive int, got {num_frames!r}")
    from pullback.debug import _debugger  # not loaded where programs run

    return _debugger.stop(_debugger.calls(sys._getframe(1), filter_frames, num_frames), ordered, token, stdin, stdout)


__all__ = [
    "DebugEffect", "OrderedDebugEffect", "breakpoint", "callback", "inspect_array_sharding", "log", "print",
    "visualize_array_sharding", "visualize_sharding",
]  # fmt: skip

_explain_all(globals())
_add_pages(globals(), _PAGES)

__dir__ = _listed(__name__)
