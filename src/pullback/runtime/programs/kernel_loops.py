"""The loops that the name of a kernel stands for."""

from __future__ import annotations

from pullback.compiler.lower.functions import function_kernel
from pullback.compiler.products import symbols
from pullback.loops.emit.symbols import FUNCTION
from pullback.loops.ir import Function


def loops_of(name: str) -> Function:
    """The kernel of a function of numbers, or of products."""
    return function_kernel(name) if name.startswith(FUNCTION) else symbols.kernel_of(name)


__all__ = ["loops_of"]
