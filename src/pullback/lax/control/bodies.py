"""Traced bodies of loops and branches, remembered by their code.

    lax.scan(body, ...)      in an eager loop: `body` does the same each time, and need not be traced again

The same function is traced once for arguments of the same types, as `jit` does and as JAX has it: a global that it
reads may change unseen. Functions made anew each time (`lambda` in a loop) are the same where they have the same code,
and all that they close over, their defaults and the globals that they name are things that do not change (numbers, our
arrays, modules and classes of known libraries, functions for which the same holds), and the same ones. What has
attributes that a program may set, as its own modules and classes have, changes unseen: such functions are traced each
time. Those that close over tracers or much data are not remembered by their code, but by themselves only, and only as
long as they live.

Measured: an eager scan of five steps took 151 us, so it takes 27.
"""

from __future__ import annotations

import sys
import types
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from pullback._ext import _core
from pullback.core import axis_env
from pullback.core.jaxpr import ClosedJaxpr
from pullback.core.kept import by_value
from pullback.util import config
from pullback.util.memory import make_room, while_it_lives

MAX_BODIES = 512
MAX_DEPTH = 4  # of functions that functions name

_FIXED = (
    *(int, float, complex, bool, str, bytes, type(None), type(Ellipsis), _core.Array, _core.JitFunction),
    *(np.generic, np.dtype, np.ufunc),
)
_VALUES = (int, float, complex, bool, str, bytes)
_LIBRARIES = frozenset({"pullback", "jax", "numpy", "math", "functools", "operator", "builtins"})

_NOT_HELD = (_core.Array, _core.JitFunction)  # may have much behind them, and are not to outlive the user's references

# By key: what is held, what is only referred to, and the result.
_bodies: dict[Any, tuple[list[Any], list[weakref.ref[Any]], Any]] = {}


def surroundings(fun: Any) -> list[Any] | None:
    """Everything that a function reads beside its arguments, in order; None where that may change unseen."""
    if type(fun) is not types.FunctionType:
        return None
    found: list[Any] = []
    return found if _collect(fun, found, MAX_DEPTH) else None


def is_ours(value: Any) -> bool:
    """Whether a function is this package's."""
    return str(getattr(value, "__module__", "")).startswith("pullback.")


def _collect(fun: types.FunctionType, found: list[Any], depth: int) -> bool:
    code = fun.__code__
    found.append(code)
    if fun.__defaults__ or fun.__kwdefaults__ or fun.__closure__:
        values = [*(fun.__defaults__ or ()), *(fun.__kwdefaults__ or {}).values()]
        try:
            values += [cell.cell_contents for cell in fun.__closure__ or ()]
        except ValueError:  # an empty cell
            return False
        if not all([_keep(value, found, depth) for value in values]):
            return False
    if is_ours(fun):
        return True
    names = fun.__globals__
    for name in _names(code):
        if name in names and not _keep(names[name], found, depth):
            return False
    return True


_names_by_code: dict[int, tuple[types.CodeType, tuple[str, ...]]] = {}  # by identity: hashing code reads all of it


def _names(code: types.CodeType) -> tuple[str, ...]:
    """What a function may read of its globals; attributes are among them, too: at worst something more is compared."""
    known = _names_by_code.get(id(code))
    if known is None:
        names = list(code.co_names)
        for constant in code.co_consts:
            if type(constant) is types.CodeType:
                names += _names(constant)
        if len(_names_by_code) >= MAX_BODIES:
            _names_by_code.clear()
        known = _names_by_code[id(code)] = code, tuple(dict.fromkeys(names))
    return known[1]


def _keep(value: Any, found: list[Any], depth: int) -> bool:
    if type(value) is types.FunctionType:
        if any([value is x for x in found]):
            return True
        if depth == 0:
            return False
        if value.__closure__ or not is_ours(value):  # what is found again by its code is not the same object
            return _collect(value, found, depth - 1)
        found.append(value)
        return True
    if type(value) is tuple:
        found.append(len(value))
        return all([_keep(x, found, depth) for x in value])
    found.append(value)
    if isinstance(value, types.ModuleType):
        return value.__name__.partition(".")[0] in _LIBRARIES
    if isinstance(value, type):
        return value.__module__.partition(".")[0] in _LIBRARIES
    if isinstance(value, types.BuiltinFunctionType):  # methods of lists and dictionaries change with these
        return value.__self__ is None or isinstance(value.__self__, types.ModuleType)
    # What we have made under a name of a module of ours stays as it is; instances of our classes may be changed.
    return isinstance(value, _FIXED) or (is_ours(value) and _named(value) is value)


def _named(value: Any) -> Any:
    return getattr(sys.modules.get(value.__module__), getattr(value, "__name__", ""), None)


def remembered(fun: Any, key: tuple[Any, ...], make: Callable[[], Any], lasts: Callable[[Any, bool], bool]) -> Any:
    """`make()`, or what it gave before for the same key, and the same function or code and surroundings.

    Kept where `lasts(result, own)` says so; `own`: as long as the function lives.
    """
    if config.value_of("jax_check_tracer_leaks"):
        return make()
    key = (*key, config.epoch(), *axis_env().items())
    users = getattr(fun, "only_wraps", None)
    own = _own_of(fun if users is None else users)
    if users is not None:
        key = (*key, fun.__code__)
    if own is not None:
        known = _kept(own, key)
        if known is _NOT_COMPARED:
            return make()
        if known is not None:
            return known[0]
    result = _remembered_by_code(fun, key, make, lasts)
    if own is not None and lasts(result, True):
        make_room(own, MAX_BODIES)
        own[key] = (result,)
    return result


_NOT_COMPARED: Any = object()


def _kept(memory: dict[Any, Any], key: Any) -> Any:
    """What is remembered for the key, None if nothing is; _NOT_COMPARED for trees with metadata that do not compare:
    arrays and tracers lie there in neighbor lists (jax-md), and hashes of other trees may be theirs."""
    try:
        return memory.get(key)
    except ValueError:
        return _NOT_COMPARED


def wrapping(wrapper: Any, fun: Any) -> Any:
    """`wrapper`, a function of ours that closes over nothing but the user's, whose name it has in messages."""
    wrapper.__wrapped__ = wrapper.only_wraps = fun
    return wrapper


def carrying(wrapper: Any, fun: Any, name: str, number: int) -> Any:
    """`wrapping` for the body of a loop written with another one: messages about its carry are about the loop `name`,
    whose value is component `number` of the wrapper's carry; component 0 is its counter."""
    wrapper.carries = (f"{name} body", f"[{number}]")
    wrapper.counts = (name, number)
    return wrapping(wrapper, fun)


_own: dict[int, tuple[weakref.ref[Any], dict[Any, Any]]] = {}  # by the function's identity


def _own_of(fun: Any) -> dict[Any, Any] | None:
    """What is remembered for this very function; None for one that nobody can hold on to."""
    if type(fun) is types.MethodType:  # made anew wherever it is named
        return None
    known = _own.get(id(fun))
    if known is not None and known[0]() is fun:
        return known[1]
    number = id(fun)
    try:
        alive = while_it_lives(fun, _own, number)
    except TypeError:
        return None
    found: dict[Any, Any] = {}
    _own[number] = alive, found
    return found


def _remembered_by_code(fun: Any, key: Any, make: Callable[[], Any], lasts: Callable[[Any, bool], bool]) -> Any:
    around = surroundings(fun)
    if around is None:
        return make()
    key = (*key, *map(_identity, around))
    known = _kept(_bodies, key)
    if known is _NOT_COMPARED:
        return make()
    if known is not None:
        if all([ref() is not None for ref in known[1]]):  # what is there keeps its identity
            return known[2]
        del known
        _bodies.pop(key, None)
    result = make()
    if lasts(result, False) and (values := _by_value(result)) is not None:
        result = values
        make_room(_bodies, MAX_BODIES)
        held = [x for x in around if not isinstance(x, _NOT_HELD)]
        _bodies[key] = held, [weakref.ref(x) for x in around if isinstance(x, _NOT_HELD)], result
    return result


def _by_value(result: Any) -> Any:
    """The result with the values of its programs' constants; None where these are more than values."""
    if isinstance(result, ClosedJaxpr):
        return by_value(result)
    if type(result) is not tuple:
        return result
    parts = [by_value(part) if isinstance(part, ClosedJaxpr) else part for part in result]
    return None if any([a is None and b is not None for a, b in zip(parts, result)]) else tuple(parts)


def _identity(x: Any) -> Any:
    """Equal for what is the same: numbers and text by type and value (0.0 is not -0.0), all else the object itself."""
    kind = type(x)
    return (kind, _core.static_form(x)) if kind in _VALUES else id(x)


def clear() -> None:
    """Forget all."""
    _bodies.clear()
    _own.clear()
    _names_by_code.clear()
