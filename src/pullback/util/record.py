"""Classes of fields that cost little to make, as modules do at import, and little to make instances of.

A dataclass writes its methods as text and compiles them: 0.15 ms for a constructor, 0.6 ms for a frozen class with
comparisons, and 50 of them took a tenth of `import pullback.numpy`. Most of these classes get no instance in most
programs. Here the constructor is compiled when the first one is made, and all else are closures over the names.
"""

from __future__ import annotations

import inspect
from collections import namedtuple
from collections.abc import Callable
from dataclasses import MISSING, FrozenInstanceError, dataclass, field, fields
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(field,))
def record(cls: type[T]) -> type[T]:
    """A dataclass whose instances are compared by identity, and frozen for the type checker only.

    The run-time guard of a frozen dataclass makes construction three times slower.
    """
    return _constructed(dataclass(slots=True, eq=False, repr=False, init=False)(cls), frozen=False)


@dataclass_transform(eq_default=False, field_specifiers=(field,))
def mutable_record(cls: type[T]) -> type[T]:
    """A record whose fields are assigned to."""
    return record(cls)


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen_record(cls: type[T]) -> type[T]:
    """A frozen dataclass: instances are compared, hashed and printed by their fields, and cannot be changed.

    TypeError for fields that the constructor does not take, or by name only: it has all, in their order.
    """
    made: Any = _constructed(dataclass(eq=False, repr=False, init=False)(cls), frozen=True)
    names = [f.name for f in fields(made) if f.repr]
    parts = attrgetter(*[f.name for f in fields(made) if f.compare])

    def equal(self: Any, other: Any) -> Any:
        return parts(self) == parts(other) if other.__class__ is self.__class__ else NotImplemented

    def text(self: Any) -> str:
        return f"{type(self).__qualname__}({', '.join([f'{name}={getattr(self, name)!r}' for name in names])})"

    def refuse(self: Any, name: str, *value: Any) -> NoReturn:
        raise FrozenInstanceError(f"cannot {'assign to' if value else 'delete'} field {name!r}")

    methods = {"__eq__": equal, "__hash__": lambda self: hash(parts(self)), "__repr__": text, "__setattr__": refuse,
               "__delattr__": refuse}  # fmt: skip
    for name in methods.keys() - cls.__dict__.keys():
        setattr(made, name, methods[name])
    return made


def _constructed(cls: Any, frozen: bool) -> Any:
    """`cls` with a constructor that is compiled when it is first called."""
    for f in fields(cls):
        if not f.init or f.kw_only:
            raise TypeError(f"{cls.__name__}: field '{f.name}' has init={f.init}, kw_only={f.kw_only}; not in a record")

    def first(self: Any, *args: Any, **kwargs: Any) -> None:
        cls.__init__ = _constructor(cls, frozen)
        cls.__init__(self, *args, **kwargs)

    cls.__init__, cls.__signature__ = first, _Signature()
    return cls


def _constructor(cls: Any, frozen: bool) -> Callable[..., None]:
    """That of a dataclass of the same fields, with their defaults, and calls of what makes defaults."""
    scope: dict[str, Any] = {"_missing": MISSING, "_set": object.__setattr__}
    scope["_fields"] = {f.name: f for f in fields(cls)}
    parameters, lines = ["self"], ["pass"]
    for f in fields(cls):
        name, default = f.name, f"=_fields[{f.name!r}].default"  # missing, where one is made
        made = f.default_factory is not MISSING
        parameters.append(name + default * (made or f.default is not MISSING))
        given = f"{name} if {name} is not _missing else _fields[{name!r}].default_factory()" if made else name
        lines.append(f"_set(self, {name!r}, {given})" if frozen else f"self.{name} = {given}")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    exec(f"def __init__({', '.join(parameters)}):\n    " + "\n    ".join(lines), scope)
    init = scope["__init__"]
    init.__module__, init.__qualname__ = cls.__module__, f"{cls.__qualname__}.__init__"
    init.__annotations__ = {f.name: f.type for f in fields(cls)}
    return init


class _Signature:
    """What `help` and editors show of the class, whose constructor may not be there yet."""

    def __get__(self, instance: Any, cls: Any) -> inspect.Signature:
        of_init = inspect.signature(_constructor(cls, frozen=False))
        return of_init.replace(parameters=list(of_init.parameters.values())[1:], return_annotation=of_init.empty)


class _NamedTuples(type):
    """Makes what is written as a class of fields a named tuple."""

    def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> Any:
        if not bases:
            return super().__new__(cls, name, bases, body)
        names = body.get("__annotations__", {})
        given = [field for field in names if field in body]
        make: Any = namedtuple
        made = make(name, names, defaults=[body[field] for field in given], module=body["__module__"])
        if given != list(made._field_defaults):
            raise TypeError(f"{name}: fields without a default follow '{given[0]}', which has one")
        for key, value in body.items():
            if key not in names and key not in ("__module__", "__dict__", "__weakref__"):
                setattr(made, key, value)
        return made


if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple
else:

    class NamedTuple(metaclass=_NamedTuples):
        """`typing.NamedTuple` at half the time: that one compiles each annotation."""
