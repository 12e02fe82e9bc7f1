"""Python objects that live on the host of the devices of their methods' arguments."""

from __future__ import annotations

import inspect
from typing import Any

from pullback.experimental.colocated_python.func import colocated_python
from pullback.util.locks import Lock


def colocated_python_class(cls: type[object]) -> type[object]:
    """A class with the public methods of `cls`, each a colocated function: the object is made by the first call."""
    if not isinstance(cls, type):
        raise TypeError(f"colocated_python_class: expected a class, got {cls!r}")
    names = [n for n, f in inspect.getmembers(cls, inspect.isroutine) if not n.startswith("_")]

    class WrappedClass:
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            lock = Lock()
            made: list[Any] = []

            def held() -> Any:
                with lock:
                    if not made:
                        made.append(cls(*args, **kwargs))
                return made[0]

            for name in names:
                setattr(self, name, self._method(held, name))

        @staticmethod
        def _method(held: Any, name: str) -> Any:
            def call(*args: Any, **kwargs: Any) -> Any:
                return getattr(held(), name)(*args, **kwargs)

            call.__name__ = name
            return colocated_python(call)

    WrappedClass.__name__, WrappedClass.__qualname__ = cls.__name__, cls.__qualname__
    WrappedClass.__module__, WrappedClass.__doc__ = cls.__module__, cls.__doc__
    return WrappedClass
