"""Orders of numbers as axes of sizes and strides: what JAX's functions on tiles of devices are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np


def strides_for_sizes(sizes: Sequence[int]) -> np.ndarray[Any, Any]:
    """By how much a number grows along each axis of an array of numbers in order."""
    return np.array([np.prod(sizes[k + 1 :], dtype=int) for k in range(len(sizes))])


def unflatten_superdims(assignment: Sequence[int]) -> list[tuple[int, int]]:
    """(size, stride) of axes, the innermost first, along which the numbers are in order.

    NotImplementedError where no axes give them.

    >>> unflatten_superdims([0, 2, 4, 6, 1, 3, 5, 7])
    [(4, 2), (2, 1)]
    """
    numbers = np.asarray(assignment).ravel()
    dims: list[tuple[int, int]] = []
    while len(numbers) > 1:
        stride = int(numbers[1] - numbers[0])
        size = next((k for k in range(1, len(numbers)) if numbers[k] - numbers[k - 1] != stride), len(numbers))
        if numbers[0] or stride <= 0 or len(numbers) % size:
            raise NotImplementedError(f"unflatten_superdims: {list(assignment)} are no axes of sizes and strides")
        if (numbers.reshape(-1, size) - numbers[::size, None] != stride * np.arange(size)).any():
            raise NotImplementedError(f"unflatten_superdims: {list(assignment)} are no axes of sizes and strides")
        dims.append((size, stride))
        numbers = numbers[::size]
    return dims


def explode_superdims(sizes: Sequence[int], dims: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The axes of an array of `sizes` that these axes are made of, the outermost first.

    AssertionError where they are not.

    >>> explode_superdims((4, 2), [(8, 1)])
    [(4, 2), (2, 1)]
    """
    known = {int(stride): size for size, stride in zip(sizes, strides_for_sizes(sizes), strict=True) if size > 1}
    found: list[tuple[int, int]] = []
    for size, stride in reversed(dims):
        parts: list[tuple[int, int]] = []
        left, at = size, stride
        while left > 1:
            if at not in known or left % known[at]:
                raise AssertionError(f"explode_superdims: ({size}, {stride}) is not made of axes of {tuple(sizes)}")
            parts.append((known[at], at))
            left, at = left // known[at], at * known[at]
        found += reversed(parts)
    return found


def unflatten_array(named_sizes: Mapping[Any, int], assignment: Sequence[int]) -> list[Any]:
    """The names of axes of a mesh, the outermost first, by whose order the numbers go.

    >>> unflatten_array({"x": 4, "y": 2}, [0, 2, 4, 6, 1, 3, 5, 7])
    ['y', 'x']
    """
    sizes = list(named_sizes.values())
    names = dict(zip(strides_for_sizes(sizes).tolist(), named_sizes, strict=True))
    return [names[stride] for _, stride in explode_superdims(sizes, unflatten_superdims(assignment))]


__all__ = ["explode_superdims", "strides_for_sizes", "unflatten_array", "unflatten_superdims"]
