"""Partition specs: which mesh axes each dimension of an array is cut along."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


class _Unconstrained:
    def __repr__(self) -> str:
        return "UNCONSTRAINED"

    def __reduce__(self) -> Any:
        return "UNCONSTRAINED"


UNCONSTRAINED = _Unconstrained()


class PartitionSpec:
    """For each dimension of an array the mesh axis, or axes, it is cut along; None where it is not, UNCONSTRAINED where
    that is left open.

    Raises NotImplementedError for axes over which values are `unreduced` or `reduced`: arrays are whole here.
    """

    __slots__ = ("partitions",)
    UNCONSTRAINED = UNCONSTRAINED
    partitions: tuple[Any, ...]

    def __init__(self, *partitions: Any, unreduced: Any = frozenset(), reduced: Any = frozenset()) -> None:
        if unreduced or reduced:
            raise NotImplementedError(
                f"PartitionSpec: unreduced={unreduced!r}, reduced={reduced!r}; values that are still to be summed over "
                "mesh axes are not supported"
            )
        object.__setattr__(self, "partitions", tuple(map(_entry, partitions)))

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"PartitionSpec is immutable; can't set '{name}'")

    unreduced = property(lambda self: frozenset())
    reduced = property(lambda self: frozenset())

    def update(self, partitions: Any = None) -> PartitionSpec:
        """The spec with other partitions."""
        return self if partitions is None else PartitionSpec(*partitions)

    def index(self, value: Any) -> int:
        """The first dimension that is cut along `value`; ValueError if there is none."""
        return self.partitions.index(value)

    def count(self, value: Any) -> int:
        """How many dimensions are cut along `value`."""
        return self.partitions.count(value)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.partitions)

    def __len__(self) -> int:
        return len(self.partitions)

    def __getitem__(self, index: Any) -> Any:
        return self.partitions[index]

    def __add__(self, other: Any) -> PartitionSpec:
        if not isinstance(other, (PartitionSpec, tuple)):
            return NotImplemented
        return PartitionSpec(*self, *other)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PartitionSpec) and self.partitions == other.partitions

    def __hash__(self) -> int:
        return hash(self.partitions)

    def __repr__(self) -> str:
        return f"P{self.partitions!r}"

    def __reduce__(self) -> Any:
        return PartitionSpec, self.partitions


def _entry(part: Any) -> Any:
    if isinstance(part, (tuple, list)):
        part = tuple(part)
        return None if not part else part[0] if len(part) == 1 else part
    return part


def names_of(part: Any) -> tuple[Any, ...]:
    """The mesh axes of one entry of a spec."""
    if part is None or part is UNCONSTRAINED:
        return ()
    return part if isinstance(part, tuple) else (part,)
