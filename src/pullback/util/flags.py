"""Options as a mechanism: one global value each and, per thread, a stack of overrides that context managers make.

`epoch()` is one object for everything that changes what a trace means. It is computed when something changes and merely
read afterwards, and equal settings give the *same* object, so a cache may compare it with `is`.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .locks import Lock
from .option_checks import anything, boolean, of_type, one_of, parse_bool
from .tracebacks import api_boundary


class Epoch:
    """Settings that change what a trace means; equal settings are the same object, so that keys hash it at once."""

    __slots__ = ("settings",)

    def __init__(self, settings: tuple[Any, ...]) -> None:
        self.settings = settings

    def __repr__(self) -> str:
        return f"Epoch{self.settings}"


class _ThreadState(threading.local):
    """What one thread sees: its overrides, and the resolved values as of global version `version`."""

    def __init__(self) -> None:
        self.overrides: dict[str, Any] = {}
        self.version = -1
        self.values: dict[str, Any] = {}
        self.x64 = False
        self.epoch = Epoch(())


_lock = Lock()
options: dict[str, Flag] = {}
_global: dict[str, Any] = {}
_traced: list[str] = []  # names of the flags whose value changes what a trace means
_version = 0  # bumped at each global change, so that other threads resolve again
_thread = _ThreadState()
_epochs: dict[tuple[Any, ...], Epoch] = {}  # by settings
_listeners: list[Callable[[], None]] = []


def _resolve() -> _ThreadState:
    """Recompute the current thread's view after a change."""
    state = _thread
    with _lock:
        state.version = _version
        state.values = {**_global, **state.overrides} if state.overrides else dict(_global)
        state.x64 = state.values["jax_enable_x64"]
        settings = tuple(state.values[name] for name in _traced)
        state.epoch = _epochs.get(settings) or _epochs.setdefault(settings, Epoch(settings))
    for listener in _listeners:
        listener()
    return state


def epoch() -> Epoch:
    """One object for all settings that change what a trace means; the same object while they are equal."""
    state = _thread
    if state.version != _version:
        state = _resolve()
    return state.epoch


def x64_enabled() -> bool:
    """Whether 64-bit types are kept (the flag `jax_enable_x64`), as seen by the current thread."""
    state = _thread
    if state.version != _version:
        state = _resolve()
    return state.x64


def value_of(name: str) -> Any:
    """The value of flag `name` (with its `jax_` prefix) as seen by the current thread."""
    state = _thread
    if state.version != _version:
        state = _resolve()
    return state.values[name]


def global_of(name: str) -> Any:
    """The value of flag `name` in threads that do not override it."""
    return _global[name]


def is_overridden(name: str) -> bool:
    """Whether the current thread overrides flag `name`."""
    return name in _thread.overrides


def context_tokens() -> tuple[tuple[Any, ...], tuple[Any, ...] | None]:
    """(process-wide, this thread's) parts of what a trace depends on; the second is None where the thread overrides
    nothing."""
    overrides = {name: value for name, value in _thread.overrides.items() if name in _traced}
    return tuple(_global[name] for name in _traced), tuple(sorted(overrides.items(), key=str)) or None


def set_globally(flag: Flag, value: Any) -> None:
    """Give an option, and those that are set with it, a value in all threads that do not override it."""
    global _version
    with _lock:
        _global.update(dict.fromkeys(flag.names, value))
        _version += 1
    _resolve()


def values() -> dict[str, Any]:
    """All options by name, as the current thread sees them."""
    epoch()
    return dict(_thread.values)


def add_listener(listener: Callable[[], None]) -> None:
    """Have `listener()` called, in the thread concerned, each time that thread's settings are resolved anew."""
    _listeners.append(listener)


class Override:
    """The context manager that a flag returns when called: sets the value for this thread, restores it on exit.

    Works as a decorator too.
    """

    __slots__ = ("_flag", "_saved", "_value")

    def __init__(self, flag: Flag, value: Any) -> None:
        self._flag = flag
        self._value = flag.validate(value)
        self._saved: list[dict[str, Any]] = []

    def __enter__(self) -> None:
        names, overrides = self._flag.names, _thread.overrides
        self._saved.append({name: overrides[name] for name in names if name in overrides})
        _thread.overrides = {**overrides, **dict.fromkeys(names, self._value)}
        _resolve()

    def __exit__(self, *exc: object) -> None:
        old, names = self._saved.pop(), self._flag.names
        _thread.overrides = {k: v for k, v in _thread.overrides.items() if k not in names} | old
        _resolve()

    def __call__(self, fun: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(fun)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with Override(self._flag, self._value):
                return fun(*args, **kwargs)

        return wrapper


_REQUIRED = object()


@dataclass(eq=False, repr=False)
class Flag:
    """One option: `flag.value` reads it, `flag(value)` is a context manager that overrides it for this thread."""

    name: str
    default: Any
    doc: str
    check: Callable[[Any], Any] = anything
    traced: bool = False
    call_default: Any = _REQUIRED  # the value of `flag()`; booleans: True
    guard: Callable[[Any], None] | None = None  # asked before a change; refuses by raising
    parse: Callable[[str], Any] = str
    kind: type = str  # of values on a command line
    choices: tuple[str, ...] = ()
    internal: bool = False  # set by functions, not by users
    parts: tuple[str, ...] = ()  # names of options that take each value of this one, too

    @property
    def __name__(self) -> str:
        return self.name.removeprefix("jax_")

    @property
    def names(self) -> tuple[str, ...]:
        """The options that are set with this one."""
        return (self.name, *self.parts)

    @property
    def value(self) -> Any:
        return value_of(self.name)

    def get_global(self) -> Any:
        return _global[self.name]

    def validate(self, value: Any) -> Any:
        return self.check(value)

    @api_boundary
    def __call__(self, new_val: Any = _REQUIRED) -> Override:
        if new_val is _REQUIRED:
            new_val = self.call_default
            if new_val is _REQUIRED:
                raise TypeError(f"{self.name.removeprefix('jax_')}: a value is required")
        return Override(self, new_val)

    def __bool__(self) -> bool:
        raise TypeError(
            f"bool() of the option {self.name} is ambiguous; read its value with "
            f"jax.config.{self.name}, or set it with `with {self.name.removeprefix('jax_')}(value):`"
        )

    def __repr__(self) -> str:
        return f"<option {self.name}={self.value!r}>"


_texts: dict[str, str | None] = {}  # what environment variables said when the options were made


def _from_environment(flag: Flag) -> Any:
    text = _texts[flag.name] = os.environ.get(flag.name.upper())
    if text is None:
        return flag.default
    try:
        return flag.validate(flag.parse(text))
    except ValueError as error:
        raise ValueError(f"environment variable {flag.name.upper()}: {error}") from None


def define(flag: Flag) -> Flag:
    options[flag.name] = flag
    flag.__doc__ = (
        f"{flag.doc}\n\n"
        f"`with {flag.name.removeprefix('jax_')}(value):` sets it for this thread, and "
        f"`config.update('{flag.name}', value)` for the process; `{flag.name.removeprefix('jax_')}.value` reads it."
    )
    _global[flag.name] = _from_environment(flag)
    if flag.traced:
        _traced.append(flag.name)
    return flag


def read_environment() -> None:
    """Set the options whose environment variables have changed since they were read: programs set them for JAX until
    they import it."""
    for name, flag in options.items():
        if os.environ.get(name.upper()) != _texts[name]:
            value = _from_environment(flag)
            if flag.guard is not None and value != flag.get_global():
                flag.guard(value)
            set_globally(flag, value)


def bool_flag(name: str, default: bool, doc: str, traced: bool = False) -> Flag:
    return define(Flag(name, default, doc, boolean(name), traced, call_default=True, parse=parse_bool, kind=bool))


def enum_flag(name: str, default: str | None, values: tuple[str, ...], doc: str, traced: bool = False) -> Flag:
    return define(Flag(name, default, doc, one_of(name, values, default is None), traced, choices=values))


def typed_flag(name: str, type_: type, default: Any, doc: str, optional: bool = False, traced: bool = False) -> Flag:
    return define(Flag(name, default, doc, of_type(name, type_, optional), traced, parse=type_, kind=type_))
