"""Names of JAX for what is not here: they exist, say why, and raise NotImplementedError where they are used. And which
names a module shows.

    __dir__, __getattr__ = listed(__name__), absent_names(__name__)

at the end of a module shows the names of its `__all__`, and gives it those that `absent_table.py` has for it. Names
that begin with a capital letter are classes, so that `isinstance(x, Name)` is False and does not fail; names with
parameters are functions.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from .elsewhere import advice
from .tracebacks import api_boundary


class _AbsentClass(type):
    """The type of classes that are not here: they cannot be instantiated, and nothing else of them can be had."""

    def __call__(cls, *_args: Any, **_kwargs: Any) -> NoReturn:
        raise NotImplementedError(cls.__doc__)

    def __getattr__(cls, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(name)
        raise NotImplementedError(f"{cls.__doc__} (asked for its attribute '{name}')")


class _AbsentValue:
    """A value that is not here."""

    def __init__(self, why: str) -> None:
        self.__doc__ = why

    def __call__(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        raise NotImplementedError(self.__doc__)

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(name)
        raise NotImplementedError(f"{self.__doc__} (asked for its attribute '{name}')")

    def __repr__(self) -> str:
        return f"<{self.__doc__}>"


class NotHere:
    """An attribute that arrays do not have: asking for it says what to write.

    It raises AttributeError, so `hasattr` says no, and attributes that are there cost nothing.
    """

    __slots__ = ("instead", "name")

    def __init__(self, name: str, instead: str) -> None:
        self.name, self.instead = name, instead

    @api_boundary
    def __get__(self, array: Any, cls: type) -> NoReturn:
        raise AttributeError(f"'{cls.__name__}' object has no attribute '{self.name}'; here one writes {self.instead}")


def _function(name: str, parameters: str, why: str) -> Callable[..., NoReturn]:
    def absent(*_args: Any, **_kwargs: Any) -> NoReturn:
        raise NotImplementedError(why)

    absent.__name__ = absent.__qualname__ = name
    absent.__doc__ = why
    # The table writes `x=` for a parameter with a default; what the default is matters to nobody.
    like = eval("lambda " + parameters.replace("=", "=None") + ": 0")
    absent.__signature__ = inspect.signature(like)  # type: ignore[attr-defined]
    return absent


def _make(module: str, entry: str, reason: str) -> Any:
    name, parenthesis, parameters = entry.partition("(")
    place = module.removeprefix("pullback.")
    from .absent_table import REASONS

    why = f"{place}.{name}: {REASONS[reason]}"
    if parenthesis:
        return _function(name, parameters.removesuffix(")"), why)
    if name[0].isupper() and not name.isupper():
        return _AbsentClass(name, (), {"__doc__": why, "__module__": module})
    return _AbsentValue(why)


@functools.cache
def absent_name(module: str, name: str, reason: str) -> Any:
    """A name of a module none of whose names is here; AttributeError for what Python itself asks of modules."""
    if name.startswith("_"):
        raise no_attribute(module, name)
    return _make(module, name, reason)


def own_name(module: str) -> str:
    """The name of a module of ours where it stands in for one of JAX's, whose `__name__` it has: its spec keeps it."""
    spec = getattr(sys.modules.get(module), "__spec__", None)
    return spec.name if spec else module


def no_attribute(module: str, name: str) -> AttributeError:
    """Of a module without that name, with what to write instead if another module or library has it.

    Python looks for names like it, and offers one, where it shows the error.
    """
    found = sys.modules.get(module)
    more = advice(own_name(module), name)
    text = f"module '{getattr(found, '__name__', module)}' has no attribute '{name}'" + (f"; {more}" if more else "")
    return AttributeError(text, name=name, obj=found)


def listed(module: str) -> Callable[[], list[str]]:
    """The `__dir__` of a module: the names of its `__all__`. What it imports, completion is not to offer."""
    return lambda: sorted(sys.modules[module].__all__)


def absent_names(module: str) -> Callable[[str], Any]:
    """The `__getattr__` of a module some of whose names are not here."""
    made: dict[str, Any] = {}

    @functools.cache
    def entries() -> dict[str, tuple[str, str]]:
        from .absent_table import TABLE  # a millisecond, which most programs need not spend

        rows = TABLE.get(module.removeprefix("pullback."), ())
        return {entry.partition("(")[0]: (entry, reason) for reason, entry in rows}

    @api_boundary
    def __getattr__(name: str) -> Any:
        if name not in entries():
            raise no_attribute(module, name)
        if name not in made:
            made[name] = _make(module, *entries()[name])
        return made[name]

    return __getattr__


def late_modules(package: str, names: Sequence[str]) -> Callable[[str], Any]:
    """The `__getattr__` of a package that imports these modules of its own when they are first asked for. Of other
    names it says why they are not here.
    """
    absent = absent_names(package)

    @api_boundary
    def __getattr__(name: str) -> Any:
        if name not in names:
            return absent(name)
        return importlib.import_module(f"{package}.{name}")

    return __getattr__


__all__ = ["NotHere", "absent_name", "absent_names", "late_modules", "listed", "no_attribute"]
