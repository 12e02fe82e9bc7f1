"""References (pullback.ref) and the traces that they cross.

A reference belongs to one trace, in which its reads and writes are ordinary values. A body that is staged (of jit,
checkpoint, scan, while_loop, cond) and uses a reference of the trace around it raises `CrossingError`; who stages it
then gives it the value as one more argument, takes the new value as one more result, and stages it again:

    scan(f, init, xs)   ->   scan(lambda (value, carry), x: (r[...] after f, f(carry, x)), (r[...], init), xs)

So jaxprs stay functional, whatever loops and branches a reference passes through, and all rules hold for them. A
reference that is an argument of vmap, jvp, scan or a branch enters by `Entrance`, as a value that comes back.

Inside of derivatives a reference from outside takes values that do not move; inside of vmap it is only read.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pullback._ext import _core
from pullback.core.interpreter import Interpreter, current_interpreter
from pullback.core.staging import StagingInterpreter
from pullback.core.tracer import Tracer


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
        self._value = self._check(writing=True, value=value)

    def inside(self, value: Any) -> Cell:
        """The reference that stands for this one in the trace in force, where its value is this."""
        return type(self)(value)

    def row(self, number: Any) -> Any:
        """The part of the reference at one index of the leading axis, which is read and written like it."""
        raise NotImplementedError(type(self).__name__)

    def _check(self, writing: bool, value: Any = None) -> Any:
        """The value as the reference's own trace has it.

        CrossingError where the trace in force is another, and the value is not the same there; ValueError where the
        reference's has ended.
        """
        if self._is_lent:
            raise ValueError("a Ref is passed to a function as an argument, which uses it as an outer variable, too")
        inside = current_interpreter()
        while inside is not None and inside is not self._interpreter:
            if isinstance(inside, StagingInterpreter) or (writing and not _lets_out(inside, value)):
                raise CrossingError(self, "written" if writing else "read")
            inside = inside.parent
        if inside is None:
            raise ValueError("a Ref is used outside of the function in which it was made, which has ended")
        return value


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


def _lets_out(inside: Interpreter, value: Any) -> bool:
    return inside.lets_out and not (isinstance(value, Tracer) and value.interpreter is inside)


class Entrance:
    """References among the leaves of a function's arguments, which enter its trace by their values.

    values: the leaves with values in place of references. `through(fun)` takes such leaves, and gives fun's result and
    the values afterwards; `leave` notes these. ValueError if a reference comes twice.
    """

    def __init__(self, leaves: Sequence[Any], but: Collection[int] = ()) -> None:
        self.cells = {n: leaf for n, leaf in enumerate(leaves) if isinstance(leaf, Cell) and n not in but}
        if len({id(cell) for cell in self.cells.values()}) != len(self.cells):
            raise ValueError("a Ref is passed to a function twice; only one argument may be the same reference")
        self.values = [self.cells[n].value() if n in self.cells else leaf for n, leaf in enumerate(leaves)]
        self.is_written = [False] * len(self.cells)

    def through(self, fun: Callable[..., Any]) -> Callable[..., tuple[Any, list[Any]]]:
        """(result of fun(*leaves), values afterwards), as a function of the leaves."""

        def entered(*values: Any) -> tuple[Any, list[Any]]:
            inside = {n: cell.inside(values[n]) for n, cell in self.cells.items()}
            with lent(self.cells.values()):
                out = fun(*(inside.get(n, value) for n, value in enumerate(values)))
            after = [cell.shown() for cell in inside.values()]
            for k, n in enumerate(inside):
                self.is_written[k] = self.is_written[k] or after[k] is not values[n]
            return out, after

        _core.named_after(entered, fun)
        return entered

    def leave(self, after: Sequence[Any]) -> None:
        """Note the values that the references have afterwards."""
        for cell, value, written in zip(self.cells.values(), after, self.is_written, strict=True):
            if written:
                cell.replace(value)


def has_cells(leaves: Sequence[Any]) -> bool:
    """Whether there are references among the leaves."""
    return any(isinstance(leaf, Cell) for leaf in leaves)


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
