"""References (pullback.ref) and the traces that they cross.

A reference belongs to one trace, in which its reads and writes are ordinary values. A body that is staged (of jit,
checkpoint, scan, while_loop, cond) and uses a reference of the trace around it raises `CrossingError`; who stages it
then gives it the value as one more argument, takes the new value as one more result, and stages it again:

    scan(f, init, xs)   ->   scan(lambda (value, carry), x: (r[...] after f, f(carry, x)), (r[...], init), xs)

So jaxprs stay functional, whatever loops and branches a reference passes through, and all rules hold for them.

Writes from inside of vmap and derivatives are errors.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any

from pullback._ext import _core
from pullback.core.interpreter import current_interpreter
from pullback.core.staging import StagingInterpreter


class CrossingError(NotImplementedError):
    """A reference is used in a trace that it does not belong to; those who can pass it in do so."""

    def __init__(self, cell: Cell, kind: str) -> None:
        super().__init__(
            f"a Ref is {kind} inside of a function that is traced (by grad, vmap, ...), but was made outside of it, "
            "which is not supported: pass its value into the function, and write what the function returns"
        )
        self.cell = cell


class Cell:
    """What a reference is to traces: a value, and the interpreter it is one of."""

    __hash__ = object.__hash__

    def __init__(self, value: Any) -> None:
        self._value: Any = value
        self._interpreter = current_interpreter()
        self._is_lent = False  # to a function, as an argument
        self.passages: dict[Any, Any] = {}  # into jitted functions

    @property
    def is_freed(self) -> bool:
        """Whether it has no value any more."""
        return self._value is None

    def shown(self) -> Any:
        """The value, in whatever trace; ValueError if there is none any more."""
        if self._value is None:
            raise ValueError("this Ref was freed by freeze() or free_ref(), and cannot be used any more")
        return self._value

    def value(self) -> Any:
        """The value, as an operand. Reads may come from inside of vmap and derivatives, for which it is a constant."""
        value = self.shown()
        self._check(writing=False)
        return value

    def replace(self, value: Any) -> None:
        """Set the value, None to free the reference."""
        self._check(writing=True)
        self._value = value

    def _check(self, writing: bool) -> None:
        """CrossingError where the trace in force is not the reference's own; ValueError where that has ended."""
        if self._is_lent:
            raise ValueError("a Ref is passed to a function as an argument, which uses it as an outer variable, too")
        inside = current_interpreter()
        while inside is not None and inside is not self._interpreter:
            if writing or isinstance(inside, StagingInterpreter):
                raise CrossingError(self, "written" if writing else "read")
            inside = inside.parent
        if inside is None:
            raise ValueError("a Ref is used outside of the function in which it was made, which has ended")


@contextmanager
def lent(cells: Collection[Cell]) -> Iterator[None]:
    """While a function runs that has the values of these references as arguments: it is not to use them otherwise."""
    for cell in cells:
        cell._is_lent = True
    try:
        yield
    finally:
        for cell in cells:
            cell._is_lent = False


_SIGNATURE = inspect.signature(lambda value, /, *args, **kwargs: None)


class Passage:
    """One reference on its way into functions that are staged, and out again."""

    def __init__(self, cell: Cell) -> None:
        self.cell = cell
        self.is_written = False  # by one of the functions, as far as is known

    def enter(self) -> Any:
        """The value before; CrossingError if the reference has to enter the trace in force first."""
        return self.cell.value()

    def through(self, fun: Callable) -> Callable:
        """`fun` with the value as its first argument, and (value afterwards, result) as its result."""

        def carried(value: Any, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
            cell = self.cell
            outside = cell._value, cell._interpreter
            cell._value, cell._interpreter = value, current_interpreter()
            try:
                out = fun(*args, **kwargs)
                self.is_written = self.is_written or cell._value is not value
                return cell.shown(), out
            except CrossingError as crossing:
                if crossing.cell is cell:  # by something inside that has no way for it
                    raise NotImplementedError(str(crossing)) from None
                raise
            finally:
                cell._value, cell._interpreter = outside

        _core.named_after(carried, fun)  # for messages
        carried.__signature__ = _SIGNATURE  # type: ignore[attr-defined]
        return carried

    def leave(self, value: Any) -> None:
        """Note the value that the reference has afterwards."""
        if self.is_written:
            self.cell.replace(value)
