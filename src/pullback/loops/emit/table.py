"""The table (op, type class of the first argument) -> emission, which `ops.py` and `integer_ops.py` fill.

Each entry takes an `Asm` of some number of lanes, the op, and its arguments as `Value`s of that many lanes, and returns
the registers of the result: one, or two of a complex number. 16-bit floats are f32 registers here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Union

from .values import element_of

Refs = Union[str, tuple[str, str]]
Rule = Callable[..., Refs]

TABLE: dict[tuple[str, str], Rule] = {}


def rule(names: str, classes: str) -> Callable[[Rule], Rule]:
    """Registers an emission for each (name, class)."""

    def register(function: Rule) -> Rule:
        for name in names.split():
            for kind in classes.split():
                TABLE[name, kind] = function
        return function

    return register


def instruction(opcode: str) -> Rule:
    """The emission of an op of two operands that is one instruction of LLVM's."""
    return lambda a, op, x, y: a.op(opcode, element_of(x.dtype), x.ref, y.ref)
