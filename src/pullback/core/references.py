"""References (pullback.ref) outside of programs, and the traces that they cross.

Where a function is staged, a reference is a variable of the program, which equations read and write (transforms/
state.py). Everywhere else, in evaluation and inside of vmap and derivatives, it is a `Cell`: a value of the trace that
it was made in. A call with references is there a call with their values, which gives the values afterwards
(transforms/discharge.py), so no transformation knows of references.

A reference that is an argument of vmap or jvp enters by `Entrance`, as a value that comes back. One from outside is
read inside of them, and takes values that are neither mapped nor move.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pullback._ext import _core
from pullback.core.avals import AbstractRef, Reference, typeof
from pullback.core.hooks import hooks
from pullback.core.interpreter import Interpreter, current_interpreter
from pullback.core.staging import StagedReference
from pullback.core.tracer import Tracer
from pullback.util.errors import Explained


class CrossingError(Explained, NotImplementedError):
    """A mutable array from outside of a transformed function was given a value that only exists inside of it.

    Return the value from the function, and write it into the mutable array outside.
    """


class Cell(Reference):
    """A reference outside of programs: a value, and the interpreter it is one of."""

    __hash__ = object.__hash__

    def __init__(self, value: Any) -> None:
        self._value: Any = value
        self._interpreter = current_interpreter()
        self._is_lent = False  # to a function, as an argument
        self._was_written = False

    @property
    def is_freed(self) -> bool:
        """Whether it has no value any more."""
        return self._value is None

    @property
    def ref_aval(self) -> AbstractRef:
        """Its type."""
        return AbstractRef(typeof(self.shown()))

    def shown(self) -> Any:
        """The value, in whatever trace; ValueError if there is none any more."""
        if self._value is None:
            raise ValueError("this Ref was freed by freeze() or free_ref(), and cannot be used any more")
        return self._value

    def put(self, value: Any) -> None:
        """Set the value, None to free the reference, by who has asked `owner`."""
        self._value = value
        self._was_written = True


def owner(ref: Any, written: Sequence[Any] | None = None) -> Interpreter:
    """Who reads the reference, or writes it where values are given: the nearest trace that stages, which records it, or
    the one that the reference belongs to.

    CrossingError where a value belongs to a trace in between; ValueError where the reference's has ended, or it is an
    argument of the function, too, that uses it.
    """
    if isinstance(ref, Cell):
        if ref._is_lent:
            raise ValueError(
                f"a Ref of type {ref.ref_aval} is both closed over and passed in by the caller: the function may have "
                "it in one of the two ways"
            )
        its: Interpreter = ref._interpreter
    else:
        its = ref.interpreter
    found = current_interpreter()
    while found is not None and found is not its and not found.stages_references:
        if written is not None:
            _check_crossing(found, ref, written)
        found = found.parent
    beyond: Any = found
    while beyond is not None and beyond is not its:
        beyond = beyond.parent
    if beyond is None:
        raise ValueError("a Ref is used outside of the function in which it was made, which has ended")
    if ref.is_freed:
        raise ValueError("this Ref was freed by freeze() or free_ref(), and cannot be used any more")
    return found


def _check_crossing(inside: Interpreter, ref: Reference, written: Sequence[Any]) -> None:
    if inside.lets_out and not any([isinstance(x, Tracer) and x.interpreter is inside for x in written]):
        return
    if inside.transformation == "vmap":
        raise CrossingError(
            f"vmap: a batched value is written to an unbatched array reference, {ref.ref_aval}, that the function "
            "closes over. Make the Ref one of the function's arguments, with its axis in in_axes."
        )
    raise CrossingError(
        f"a value that has a derivative is written to a non-differentiated array reference, {ref.ref_aval}, that the "
        "function closes over. Make the Ref one of the function's arguments."
    )


def check_apart(leaves: Sequence[Any], outer: Sequence[Any], name: str, names: Callable[[], Sequence[str]]) -> None:
    """ValueError where one reference is two of the arguments, or an argument that the function closes over."""
    places: dict[int, int] = {}
    for place, leaf in enumerate(leaves):
        if not isinstance(leaf, Reference):
            continue
        first = places.setdefault(id(leaf), place)
        if first != place:
            called = [*names()]
            which = f" at both {called[first]} and {called[place]}" if place < len(called) else " twice"
            raise ValueError(
                f"jit of {name}: a Ref of type {leaf.ref_aval} came{which}. A function gets each Ref once, since what "
                "it writes to the one would change the other."
            )
    for value in outer:
        if id(value) in places:
            called = [*names()]
            place = places[id(value)]
            raise ValueError(
                f"jit of {name}: a Ref of type {value.ref_aval} is both closed over and passed in, as argument "
                f"{called[place] if place < len(called) else place}"
            )


@contextmanager
def lent(references: Collection[Reference]) -> Iterator[None]:
    """While a function runs that has the values of these references as arguments: it is not to use them otherwise."""
    cells = [ref for ref in references if isinstance(ref, Cell)]
    for cell in cells:
        cell._is_lent = True
    try:
        yield
    finally:
        for cell in cells:
            cell._is_lent = False


class Entrance:
    """References among the leaves of a function's arguments, which enter its trace by their values.

    values: the leaves with values in place of references. `through(fun)` takes such leaves, and gives fun's result and
    the values afterwards; `leave` notes these. ValueError if a reference comes twice.
    """

    def __init__(self, leaves: Sequence[Any], but: Collection[int] = ()) -> None:
        self.cells = {n: leaf for n, leaf in enumerate(leaves) if isinstance(leaf, Reference) and n not in but}
        if len({id(cell) for cell in self.cells.values()}) != len(self.cells):
            raise ValueError("a Ref is passed to a function twice; only one argument may be the same reference")
        self.values = [hooks.read_reference(leaf) if n in self.cells else leaf for n, leaf in enumerate(leaves)]
        self.is_written = [False] * len(self.cells)

    def through(self, fun: Callable[..., Any]) -> Callable[..., tuple[Any, list[Any]]]:
        """(result of fun(*leaves), values afterwards), as a function of the leaves."""

        def entered(*values: Any) -> tuple[Any, list[Any]]:
            inside = {n: hooks.new_reference(values[n]) for n in self.cells}
            with lent(self.cells.values()):
                out = fun(*(inside.get(n, value) for n, value in enumerate(values)))
            after = [hooks.read_reference(ref) for ref in inside.values()]
            for k, n in enumerate(inside):
                self.is_written[k] = self.is_written[k] or after[k] is not values[n]
            return out, after

        _core.named_after(entered, fun)
        return entered

    def leave(self, after: Sequence[Any]) -> None:
        """Note the values that the references have afterwards."""
        for cell, value, written in zip(self.cells.values(), after, self.is_written, strict=True):
            if written:
                hooks.write_reference(cell, value)


def has_references_among(leaves: Sequence[Any]) -> bool:
    """Whether there are references among the leaves."""
    return any([isinstance(leaf, Reference) for leaf in leaves])


__all__ = [
    "Cell",
    "CrossingError",
    "Entrance",
    "Reference",
    "StagedReference",
    "check_apart",
    "has_references_among",
    "lent",
    "owner",
]
