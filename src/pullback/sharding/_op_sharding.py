"""Shardings as XLA's messages have them: fields to be filled in, written and read as protocol buffers.

`HloSharding` has the same as a value that does not change, with the methods; libraries pass from one to the other.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import Any

from pullback.util.protobuf import field, number, packed


class OpShardingType(enum.Enum):
    """Replicated: all have all. Maximal: one has all. Other: a tile; its last axes can be any of the others."""

    REPLICATED = 0
    MAXIMAL = 1
    MANUAL = 4
    UNREDUCED = 6
    TUPLE = 2
    OTHER = 3
    UNKNOWN = 5

    def __repr__(self) -> str:
        return f"OpSharding_Type.{self.name}"

    __str__ = __repr__


class OpShardingGroupType(enum.Enum):
    """How the members of a group of shardings go together."""

    AS = 0
    LIKE = 1


class OpSharding:
    """A message: of which kind, the tile's shape, its devices as a list or as reshaped and transposed numbers.

    A new one says that each device has all. Messages are compared by identity, as they change.
    """

    Type = OpShardingType
    ShardGroupType = OpShardingGroupType

    def __init__(self) -> None:
        self.type = OpShardingType.REPLICATED
        self.tile_assignment_dimensions: list[int] = []
        self.tile_assignment_devices: list[int] = []
        self.tuple_shardings: list[OpSharding] = []
        self.replicate_on_last_tile_dim = False
        self.last_tile_dims: list[OpShardingType] = []
        self.iota_reshape_dims: list[int] = []
        self.iota_transpose_perm: list[int] = []
        self.is_shard_group = False
        self.shard_group_id = 0
        self.shard_group_type = OpShardingGroupType.AS

    def clone(self) -> OpSharding:
        """A message with the same fields."""
        copy = OpSharding()
        for name, value in vars(self).items():
            setattr(copy, name, list(value) if isinstance(value, list) else value)
        return copy

    def SerializeToString(self) -> bytes:
        """The bytes of the message."""
        out = number(1, self.type.value) if self.type.value else b""
        for name, values in ((3, self.tile_assignment_dimensions), (4, self.tile_assignment_devices)):
            out += packed(name, values) if values else b""
        out += b"".join(field(5, one.SerializeToString()) for one in self.tuple_shardings)
        out += number(6, 1) if self.replicate_on_last_tile_dim else b""
        out += packed(8, [kind.value for kind in self.last_tile_dims]) if self.last_tile_dims else b""
        for name, values in ((9, self.iota_reshape_dims), (10, self.iota_transpose_perm)):
            out += packed(name, values) if values else b""
        out += number(11, 1) if self.is_shard_group else b""
        out += number(12, self.shard_group_id) if self.shard_group_id else b""
        return out + (number(13, self.shard_group_type.value) if self.shard_group_type.value else b"")

    def ParseFromString(self, data: bytes) -> None:
        """Takes the fields of a message from its bytes; ValueError for bytes that are none."""
        vars(self).update(vars(OpSharding()))
        for name, value in _fields(bytes(data)):
            if name == 5 and isinstance(value, bytes):
                self.tuple_shardings.append(OpSharding())
                self.tuple_shardings[-1].ParseFromString(value)
                continue
            numbers = list(_numbers(value)) if isinstance(value, bytes) else [value]
            if name in _LISTS:
                getattr(self, _LISTS[name]).extend(numbers)
            elif name == 8:
                self.last_tile_dims.extend(map(OpShardingType, numbers))
            elif name in _SINGLE:
                attribute, make = _SINGLE[name]
                setattr(self, attribute, make(numbers[-1]))

    def __repr__(self) -> str:
        lines = [] if self.type is OpShardingType.REPLICATED else [f"type: {self.type.name}"]
        for name in ("tile_assignment_dimensions", "tile_assignment_devices"):
            lines += [f"{name}: {k}" for k in getattr(self, name)]
        lines += [f"tuple_shardings {{ {one!r} }}" for one in self.tuple_shardings]
        lines += ["replicate_on_last_tile_dim: true"] * self.replicate_on_last_tile_dim
        lines += [f"last_tile_dims: {kind.name}" for kind in self.last_tile_dims]
        for name in ("iota_reshape_dims", "iota_transpose_perm"):
            lines += [f"{name}: {k}" for k in getattr(self, name)]
        return "\n".join(lines)


_LISTS = {3: "tile_assignment_dimensions", 4: "tile_assignment_devices", 9: "iota_reshape_dims",
          10: "iota_transpose_perm"}  # fmt: skip
_SINGLE: dict[int, tuple[str, Any]] = {
    1: ("type", OpShardingType), 6: ("replicate_on_last_tile_dim", bool), 11: ("is_shard_group", bool),
    12: ("shard_group_id", int), 13: ("shard_group_type", OpShardingGroupType),
}  # fmt: skip


def _number(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data):
            raise ValueError("OpSharding.ParseFromString: argument 'data' ends within a field")
        value |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 0x80:
            return value, at


def _numbers(data: bytes) -> Iterator[int]:
    at = 0
    while at < len(data):
        value, at = _number(data, at)
        yield value


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    at = 0
    while at < len(data):
        tag, at = _number(data, at)
        kind = tag & 7
        if kind not in (0, 2):
            raise ValueError(f"OpSharding.ParseFromString: argument 'data' has a field of kind {kind}, which none has")
        value, at = _number(data, at)
        if kind == 0:
            yield tag >> 3, value
            continue
        if at + value > len(data):
            raise ValueError("OpSharding.ParseFromString: argument 'data' ends within a field")
        yield tag >> 3, data[at : at + value]
        at += value


__all__ = ["OpSharding", "OpShardingGroupType", "OpShardingType"]
