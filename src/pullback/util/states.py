"""Options that libraries define of their own, by the names under which JAX makes its own: `bool_state`, ..."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from pullback.util.flags import (
    Flag,
    add_listener,
    define,
    global_of,
    is_overridden,
    options,
    set_globally,
    value_of,
)
from pullback.util.option_checks import boolean, of_type, one_of, parse_bool

_Hook = Callable[[Any], None] | None


def _defined(
    flag: Flag,
    update_global_hook: _Hook,
    update_thread_local_hook: _Hook,
    validators: Sequence[_Hook] = (),
) -> Flag:
    if flag.name in options:
        raise Exception(f"Config option {flag.name} already defined")
    accepted, asked = flag.check, [validator for validator in validators if validator is not None]

    def check(value: Any) -> Any:
        for validator in asked:
            validator(value)
        return accepted(value)

    flag.check = check
    check(flag.default)
    define(flag)
    set_globally(flag, flag.get_global())  # threads have settings already, without this one
    _tell(flag.name, update_global_hook, update_thread_local_hook)
    return flag


def _tell(name: str, of_process: _Hook, of_thread: _Hook) -> None:
    """Have the hooks called when the option changes; that of the process is told its first value, too."""
    if of_process is not None:
        told = [global_of(name)]
        of_process(told[0])

        def look() -> None:
            if (now := global_of(name)) != told[0]:
                told[0] = now
                of_process(now)

        add_listener(look)
    if of_thread is not None:
        seen = threading.local()

        def look_here() -> None:
            now = value_of(name) if is_overridden(name) else None
            if now != getattr(seen, "value", None):
                seen.value = now
                of_thread(now)

        add_listener(look_here)


def bool_state(
    name: str,
    default: bool,
    help: str,
    *,
    update_global_hook: _Hook = None,
    update_thread_local_hook: _Hook = None,
    upgrade: bool = False,
    extra_description: str = "",
    include_in_jit_key: bool = False,
    include_in_trace_context: bool = False,
    validator: _Hook = None,
) -> Flag:
    """A new option that is True or False."""
    traced = include_in_jit_key or include_in_trace_context
    text = help + extra_description + (" This is to become True some day." if upgrade else "")
    flag = Flag(name, default, text, boolean(name), traced, call_default=True, parse=parse_bool, kind=bool)
    return _defined(flag, update_global_hook, update_thread_local_hook, [validator])


def enum_state(
    name: str,
    enum_values: Sequence[str],
    default: str,
    help: str,
    *,
    update_global_hook: _Hook = None,
    update_thread_local_hook: _Hook = None,
    include_in_jit_key: bool = False,
    include_in_trace_context: bool = False,
    extra_validator: _Hook = None,
) -> Flag:
    """A new option that is one of some words."""
    traced, words = include_in_jit_key or include_in_trace_context, tuple(enum_values)
    flag = Flag(name, default, help, one_of(name, words, False), traced, choices=words)
    return _defined(flag, update_global_hook, update_thread_local_hook, [extra_validator])


def optional_enum_state(
    name: str,
    enum_values: Sequence[str],
    default: str | None,
    help: str,
    *,
    update_global_hook: _Hook = None,
    update_thread_local_hook: _Hook = None,
    include_in_jit_key: bool = False,
    include_in_trace_context: bool = False,
) -> Flag:
    """A new option that is one of some words, or None."""
    traced, words = include_in_jit_key or include_in_trace_context, tuple(enum_values)
    flag = Flag(name, default, help, one_of(name, words, True), traced, choices=words)
    return _defined(flag, update_global_hook, update_thread_local_hook)


def int_state(
    name: str,
    default: int,
    help: str,
    *,
    update_global_hook: _Hook = None,
    update_thread_local_hook: _Hook = None,
    include_in_jit_key: bool = False,
    include_in_trace_context: bool = False,
    validator: _Hook = None,
) -> Flag:
    """A new option that is an integer."""
    traced = include_in_jit_key or include_in_trace_context
    flag = Flag(name, default, help, of_type(name, int, False), traced, parse=int, kind=int)
    return _defined(flag, update_global_hook, update_thread_local_hook, [validator])


def float_state(
    name: str, default: float, help: str, *, update_global_hook: _Hook = None, update_thread_local_hook: _Hook = None
) -> Flag:
    """A new option that is a number."""
    flag = Flag(name, default, help, of_type(name, float, False), parse=float, kind=float)
    return _defined(flag, update_global_hook, update_thread_local_hook)


def string_state(
    name: str, default: str, help: str, *, update_global_hook: _Hook = None, update_thread_local_hook: _Hook = None
) -> Flag:
    """A new option that is a text."""
    flag = Flag(name, default, help, of_type(name, str, False))
    return _defined(flag, update_global_hook, update_thread_local_hook)


def optional_string_state(
    name: str,
    default: str | None,
    help: str,
    *,
    update_global_hook: _Hook = None,
    update_thread_local_hook: _Hook = None,
    include_in_trace_context: bool = False,
) -> Flag:
    """A new option that is a text, or None."""
    flag = Flag(name, default, help, of_type(name, str, True), include_in_trace_context)
    return _defined(flag, update_global_hook, update_thread_local_hook)


__all__ = [
    "bool_state",
    "enum_state",
    "float_state",
    "int_state",
    "optional_enum_state",
    "optional_string_state",
    "string_state",
]
