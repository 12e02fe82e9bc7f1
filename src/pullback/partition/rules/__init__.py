"""The rules of primitives: the field `partition` of their records, equation -> Factors, or None if it cannot be cut.

They are filled when something is partitioned first, since most programs never are. A family shares a rule; a primitive
without one is computed whole on every device.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from pullback.partition.factors import Dims, Factors, LocalSize


class Naming:
    """Makes factors: a number for each name, with its size."""

    def __init__(self) -> None:
        self.numbers: dict[Any, int] = {}
        self.sizes: list[int] = []

    def dim(self, name: Any, size: int) -> tuple[int, ...]:
        """The factors of a dimension that is one factor."""
        if name not in self.numbers:
            self.numbers[name] = len(self.sizes)
            self.sizes.append(size)
        return (self.numbers[name],)

    def dims(self, names: Sequence[Any], shape: Sequence[int]) -> Dims:
        """The factors of all dimensions of an array; None: a dimension that is whole."""
        return tuple(() if name is None else self.dim(name, n) for name, n in zip(names, shape, strict=True))


def with_sizes(key: str, dims: Dims, shape: Sequence[int]) -> Callable[[dict[str, Any], LocalSize], dict[str, Any]]:
    """A `local` that gives a parameter, a shape of these dimensions, the sizes of one device's part."""

    def local(params: dict[str, Any], size: LocalSize) -> dict[str, Any]:
        return {**params, key: part_of(dims, shape, size)}

    return local


def part_of(dims: Dims, shape: Sequence[int], size: LocalSize) -> tuple[int, ...]:
    """The shape of one device's part."""
    found = []
    for factors, n in zip(dims, shape, strict=True):
        m = 1
        for f in factors:
            m *= size(f)
        found.append(m if factors else n)
    return tuple(found)


def shape_of(atom: Any) -> tuple[int, ...]:
    """The shape of an atom of a program."""
    return tuple(atom.aval.shape)


def rule_of(primitive: Any) -> Callable[[Any], Factors | None] | None:
    """The rule of a primitive, put into its record when it is asked for first; None if it has none."""
    if primitive.partition is None:
        by_name, by_trait = _tables()
        found = by_name.get(primitive.name)
        primitive.partition = found or next((rule for t, rule in by_trait.items() if t in primitive.traits), None)
    return primitive.partition


@functools.cache
def _tables() -> tuple[dict[str, Any], dict[str, Any]]:
    """The rules by names, and by traits of families."""
    from pullback.partition.rules import elementwise, indexing, movement, products

    by_name = {name: rule for m in (elementwise, movement, products, indexing) for name, rule in m.RULES.items()}
    return by_name, {"elementwise": elementwise.elementwise, "matrices": products.over_batches}
