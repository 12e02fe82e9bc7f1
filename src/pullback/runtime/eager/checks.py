"""jax_debug_nans and jax_debug_infs: results are looked at, and the operation that made a bad one is named.

The results of a public function are those that count, as those of a jitted one do: a NaN inside, which `where` leaves
out, is none of the user's business. A function whose result is bad runs again, to find the operation that made it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from pullback._ext import _core
from pullback.core import hooks
from pullback.core.interpreter import is_within_transformation, set_watching
from pullback.core.jaxpr import ClosedJaxpr, JaxprEqn, Literal, jaxprs_in_params
from pullback.core.primitive import Primitive
from pullback.util import config


class _Flags(threading.local):
    """What a thread has been told to look for."""

    nan = inf = False


_flags = _Flags()
_looking: set[int] = set()  # the threads that look for something


def _read_flags() -> None:
    _flags.nan = bool(config.value_of("jax_debug_nans"))
    _flags.inf = bool(config.value_of("jax_debug_infs"))
    active = _flags.nan or _flags.inf
    set_watching("checks", active)
    (_looking.add if active else _looking.discard)(threading.get_ident())
    hooks.check_values = check if _looking else None


def is_active() -> bool:
    """Whether results are to be looked at."""
    config.epoch()  # which reads the flags, if they have changed
    return _flags.nan or _flags.inf


def kinds() -> tuple[bool, bool]:
    """Whether NaNs are looked for, and infinities."""
    return _flags.nan, _flags.inf


def problem(value: Any) -> str | None:
    """'nan' or 'inf' if an array has such elements that are asked for, else None."""
    array = np.asarray(value)
    if array.dtype.kind not in "fcV" or array.dtype.itemsize == 0:
        return None
    if _flags.nan and bool(np.isnan(array).any()):
        return "nan"
    return "inf" if _flags.inf and bool(np.isinf(array).any()) else None


class _Mode(threading.local):
    """What is done with the results of single operations."""

    is_inside = False  # of a function whose result is looked at: nothing
    asks_for_makers = False  # of which the result is bad: only those count that are bad of good operands


_mode = _Mode()


def check(values: Sequence[Any], where: str) -> None:
    """FloatingPointError naming `where` if a value is bad."""
    if _mode.is_inside or not is_active():
        return
    for value in values:
        if type(value) is _core.Array and (found := problem(value)):
            raise FloatingPointError(f"invalid value ({found}) encountered in {where}")


config.add_listener(_read_flags)
_read_flags()

_MOVES = frozenset({"movement", "identity", "selection"})  # traits of operations that take values from their operands


def check_operation(primitive: Primitive, operands: Sequence[Any], results: Sequence[Any]) -> None:
    """The same of one operation. Inside of functions that are transformed, those that only move elements have not made
    what was there before: constants of our own functions may be NaN."""
    if _mode.is_inside or not any([type(x) is _core.Array and problem(x) for x in results]):
        return
    moves = not _MOVES.isdisjoint(primitive.traits) or primitive.name == "convert_element_type"
    if ((moves and is_within_transformation()) or _mode.asks_for_makers) and any([problem(x) for x in operands]):
        return
    check(results, primitive.name)


def looked_at(run: Callable[[], Any], leaves: Callable[[Any], Sequence[Any]], name: str) -> Any:
    """What `run`, a function of arrays, gives; FloatingPointError if that is bad."""
    if _mode.is_inside or _mode.asks_for_makers:
        return run()
    _mode.is_inside = True
    try:
        result = run()
    finally:
        _mode.is_inside = False
    found = leaves(result)
    if any([type(x) is _core.Array and problem(x) for x in found]):
        _mode.asks_for_makers = True
        try:
            run()
        finally:
            _mode.asks_for_makers = False
        check(found, name)
    return result


def checked(
    executable: Callable[[list[Any]], list[Any]], flat: ClosedJaxpr, name: str, notes: Any = None
) -> Callable[[list[Any]], list[Any]]:
    """The program, which on a bad result says what it has noted (runtime/programs/watched.py).

    Without notes it runs again equation by equation to find the first bad one.
    """

    def run(inputs: list[Any]) -> list[Any]:
        if notes is not None:
            notes.clear()
        outs = executable(inputs)
        if is_active() and not _mode.is_inside and any(type(x) is _core.Array and problem(x) for x in outs):
            if notes is not None and (found := notes.text()) is not None:
                raise FloatingPointError(found)
            if notes is None:
                _blame(flat, inputs)
            check(outs, f"jit({name})")
        return outs

    return run


def _blame(closed: ClosedJaxpr, inputs: Sequence[Any]) -> None:
    """Raise FloatingPointError at the first equation that makes a bad value of good ones."""
    env: dict[Any, Any] = dict(zip(closed.jaxpr.constvars, closed.consts)) | dict(zip(closed.jaxpr.invars, inputs))
    for eqn in closed.jaxpr.eqns:
        operands = [a.operand if isinstance(a, Literal) else env[a] for a in eqn.invars]
        if jaxprs_in_params(eqn.params):  # a loop is a program of its own, of which it would be the first bad equation
            with _without_checks():
                outs = eqn.primitive.bind(*operands, **eqn.params)
        else:
            outs = eqn.primitive.bind(*operands, **eqn.params)
        outs = outs if eqn.primitive.multiple_results else [outs]
        check(outs, place(eqn))
        env.update(zip(eqn.outvars, outs))


@contextmanager
def _without_checks() -> Iterator[None]:
    before = kinds()
    _flags.nan = _flags.inf = False
    try:
        yield
    finally:
        _flags.nan, _flags.inf = before


def place(eqn: JaxprEqn) -> str:
    """The primitive and the user's line."""
    return eqn.primitive.name + (f" at {eqn.source}" if eqn.source is not None else "")
