"""Partition specs: which mesh axes each dimension of an array is cut along."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pullback.util.tracebacks import api_boundary


class _Unconstrained:
    def __repr__(self) -> str:
        return "UNCONSTRAINED"

    def __reduce__(self) -> Any:
        return "UNCONSTRAINED"


UNCONSTRAINED = _Unconstrained()


class PartitionSpec:
    """For each dimension of an array the mesh axis, or axes, it is cut along; None where it is not, UNCONSTRAINED where
    that is left open.

    unreduced: the axes over which values are still to be summed; reduced: those along which they are the same, and
    their cotangents are to be summed. Raises TypeError for what are no sets, ValueError for axes that are among several
    of the three.
    """

    __slots__ = ("partitions", "reduced", "unreduced")
    UNCONSTRAINED = UNCONSTRAINED
    partitions: tuple[Any, ...]
    unreduced: frozenset
    reduced: frozenset

    @api_boundary
    def __init__(self, *partitions: Any, unreduced: Any = frozenset(), reduced: Any = frozenset()) -> None:
        put = object.__setattr__
        put(self, "partitions", tuple(map(_entry, partitions)))
        put(self, "unreduced", _no_names)
        put(self, "reduced", _no_names)
        if unreduced or reduced:
            put(self, "unreduced", _checked("unreduced", unreduced, self.partitions))
            put(self, "reduced", _checked("reduced", reduced, self.partitions))
            if self.unreduced & self.reduced:
                raise ValueError(
                    f"PartitionSpec: axes {self.unreduced & self.reduced} are in both 'unreduced' and 'reduced'; an "
                    "axis is one of the two"
                )

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"PartitionSpec is immutable; can't set '{name}'")

    def update(self, partitions: Any = None, unreduced: Any = None, reduced: Any = None) -> PartitionSpec:
        """The spec with some fields replaced."""
        return PartitionSpec(
            *(self.partitions if partitions is None else partitions),
            unreduced=self.unreduced if unreduced is None else unreduced,
            reduced=self.reduced if reduced is None else reduced,
        )

    @property
    def _partitions(self) -> tuple[Any, ...]:
        return self.partitions  # libraries ask for this name

    def _normalized_spec_for_aval(self, ndim: int) -> PartitionSpec:
        return self.update(partitions=(*self.partitions, *[None] * (ndim - len(self.partitions))))

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
        more = (other.unreduced, other.reduced) if isinstance(other, PartitionSpec) else (frozenset(), frozenset())
        return PartitionSpec(*self, *other, unreduced=self.unreduced | more[0], reduced=self.reduced | more[1])

    def __radd__(self, other: Any) -> PartitionSpec:
        if not isinstance(other, tuple):
            return NotImplemented
        return PartitionSpec(*other, *self, unreduced=self.unreduced, reduced=self.reduced)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, PartitionSpec)
            and self.partitions == other.partitions
            and self.unreduced == other.unreduced
            and self.reduced == other.reduced
        )

    def __hash__(self) -> int:
        return hash(self.partitions)

    def __repr__(self) -> str:
        if not self.unreduced and not self.reduced:
            return f"P{self.partitions!r}"
        parts = [*map(repr, self.partitions)]
        for name in ("unreduced", "reduced"):
            if names := getattr(self, name):
                parts.append(f"{name}={{{', '.join(sorted(map(repr, names)))}}}")
        return f"P({', '.join(parts)})"

    def __reduce__(self) -> Any:
        return _made, (self.partitions, self.unreduced, self.reduced)


State = tuple[frozenset, frozenset]  # unreduced, reduced
_no_names: frozenset = frozenset()


def _made(partitions: tuple[Any, ...], unreduced: frozenset, reduced: frozenset) -> PartitionSpec:
    return PartitionSpec(*partitions, unreduced=unreduced, reduced=reduced)


def _checked(argument: str, names: Any, partitions: tuple[Any, ...]) -> frozenset:
    """The axes of `unreduced` or `reduced`; an error for what they cannot be."""
    if not isinstance(names, (set, frozenset)):
        raise TypeError(f"PartitionSpec: argument '{argument}' must be a set of names of axes, got {names!r}")
    if None in names:
        raise ValueError(f"PartitionSpec: argument '{argument}' has names of axes, got None among {names}")
    if any(name in names for part in partitions for name in names_of(part)):
        raise ValueError(f"PartitionSpec: {partitions} cuts dimensions by axes that are {argument}, {frozenset(names)}")
    return frozenset(names)


def _entry(part: Any) -> Any:
    if isinstance(part, (tuple, list)):
        part = tuple(part)
        for name in part:
            if isinstance(name, (tuple, list)):
                raise ValueError(
                    f"A tuple inside PartitionSpec cannot contain a nested tuple. Got partition: {part} and the nested "
                    f"tuple: {name}"
                )
        return None if not part else part[0] if len(part) == 1 else part
    return part


def names_of(part: Any) -> tuple[Any, ...]:
    """The mesh axes of one entry of a spec."""
    if part is None or part is UNCONSTRAINED:
        return ()
    return part if isinstance(part, tuple) else (part,)


def all_names_of(spec: PartitionSpec) -> list[Any]:
    """The mesh axes that a spec names, in order."""
    return [name for part in spec for name in names_of(part)]


def parts_of(spec: PartitionSpec, ndim: int) -> list[tuple[Any, ...]]:
    """The mesh axes that each dimension of an array is cut along."""
    parts = [tuple(names_of(part)) for part in spec]
    return parts + [()] * (ndim - len(parts))


def spec_in_full(cut: Sequence[tuple[Any, ...]], state: State = (_no_names, _no_names)) -> PartitionSpec:
    """The spec of a cut (the axes of each dimension), with an entry for each dimension."""
    entries = [None if not a else a[0] if len(a) == 1 else a for a in cut]
    return PartitionSpec(*entries, unreduced=state[0], reduced=state[1])


def state_of(aval: Any) -> State:
    """The axes over which values of a type are still to be summed, and those over which their cotangents will be."""
    placing = getattr(aval, "placing", None)
    return (_no_names, _no_names) if placing is None else (placing.spec.unreduced, placing.spec.reduced)


def says_something(spec: PartitionSpec) -> bool:
    """Whether arrays that lie so are cut, or of another state than all others."""
    return any(spec) or bool(spec.unreduced or spec.reduced)


def in_short(spec: PartitionSpec) -> PartitionSpec:
    """A spec without Nones at its end."""
    parts = list(spec)
    while parts and not names_of(parts[-1]):
        parts.pop()
    return spec.update(partitions=parts)


def of_cotangents(spec: PartitionSpec) -> PartitionSpec:
    """How cotangents of values lie that lie so: to be summed over the axes where these are said to be the same, and the
    other way round.
    """
    return spec.update(unreduced=spec.reduced, reduced=spec.unreduced) if spec.unreduced or spec.reduced else spec
