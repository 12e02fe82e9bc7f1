"""The names of Pallas: libraries import it for kernels that they use on GPUs and TPUs alone.

Its kernels are compiled through MLIR, so that what makes or describes one raises NotImplementedError where it is used;
the arithmetic of block sizes works.
"""

from __future__ import annotations

from typing import Any

from pullback.util.absent import absent_names

__getattr__ = absent_names(__name__)


def cdiv(a: Any, b: Any) -> Any:
    """a / b rounded up, of integers or arrays of them."""
    return -(-a // b)


def align_to(a: Any, alignment: Any) -> Any:
    """The least multiple of `alignment` that is not below `a`."""
    return cdiv(a, alignment) * alignment


def next_power_of_2(x: int) -> int:
    """The least power of two that is not below x; ValueError for negative ones."""
    if x < 0:
        raise ValueError(f"next_power_of_2: argument 'x' (position 0) is {x}; expected an integer that is not negative")
    return 1 << max(x - 1, 0).bit_length()


def strides_from_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """How many elements a step along each axis passes, in row-major order."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


__all__ = ["align_to", "cdiv", "next_power_of_2", "strides_from_shape"]
