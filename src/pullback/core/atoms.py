"""What jaxprs consist of, below the equations: variables and literals; and how programs lie inside of each other."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from pullback._ext import _core
from pullback.core.avals import typeof


class Var:
    """A variable; identity is its name."""

    __slots__ = ("aval", "count")
    _counter = itertools.count()

    def __init__(self, aval, *_unused):
        self.aval = aval
        self.count = next(Var._counter)

    def __repr__(self):
        return f"v{self.count}:{self.aval.short()}"


class DropVar(Var):
    """Takes a result that nobody reads; prints as _."""

    __slots__ = ()

    def __repr__(self):
        return "_"


class Literal:
    """A constant scalar inside an equation."""

    __slots__ = ("val", "aval")

    def __init__(self, val, aval=None):
        self.val = val
        self.aval = typeof(val) if aval is None else aval

    @property
    def operand(self):
        """The value as an operand of a primitive: its type is exactly `aval`, also where that is weak, or has 64 bits
        that jax_enable_x64 does not give NumPy's values now. Such arrays are new ones, which a trace makes literals."""
        aval = self.aval
        if aval.weak_type or aval.dtype.itemsize >= 8:
            return self.array
        return self.val

    @property
    def array(self):
        """The value as an array, which is what a function gives where its result is a number that it knows."""
        aval = self.aval
        return _core.copy_of(np.asarray(self.val, aval.dtype), aval.dtype, aval.weak_type, None)

    @property
    def hash(self):
        """Hash of value and type, for common-subexpression elimination."""
        return hash((np.asarray(self.val).tobytes(), self.aval))

    def __str__(self):
        return f"{_literal_text(self.val)}:{self.aval.short()}"

    def __repr__(self):
        return f"Literal({_literal_text(self.val)})"


Atom = Var | Literal


class Program:
    """What equations may have among their parameters: a Jaxpr, or a ClosedJaxpr, which has one."""

    __slots__ = ()
    of_elements = False  # whether it only says what the primitive's name says: no part of the program around it


def jaxprs_in_params(params: dict[str, Any]) -> list[Any]:
    """The programs among an equation's parameters, in order."""
    return [
        getattr(item, "jaxpr", item)
        for value in params.values()
        for item in (value if isinstance(value, (tuple, list)) else (value,))
        if isinstance(item, Program) and not item.of_elements
    ]


class ReferenceEffect:
    """What an equation does to a mutable array, among the effects of its jaxpr."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


def has_references(program: Any) -> bool:
    """Whether mutable arrays are made, read or written inside of a jaxpr."""
    effects = getattr(program, "jaxpr", program).effects
    return bool(effects) and any([isinstance(effect, ReferenceEffect) for effect in effects])


def _literal_text(val) -> str:
    if isinstance(val, (bool, np.bool_)):
        return str(bool(val))
    array = np.asarray(val)
    return str(array.item()) if array.ndim == 0 else f"array{array.shape}"
