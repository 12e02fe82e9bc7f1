"""Shardings as XLA writes them: a tile of devices, which is the numbers of all in order, reshaped and transposed.

    {devices=[2,1,4]<=[4,2]T(1,0) last_tile_dim_replicate}

are 2 parts along the first of two dimensions; the 8 numbers, as 4 x 2 and transposed, fill the tile 2 x 1 x 4, along
whose last axis there are copies. Numbers in another order are listed. Libraries read them off shardings, and make
shardings of them (`_gspmd.py`); programs are cut by NamedShardings.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.sharding._mesh import AxisType
from pullback.sharding._op_sharding import OpSharding, OpShardingType
from pullback.sharding._specs import PartitionSpec, names_of
from pullback.util.errors import JaxRuntimeError

_TEXTS = {OpShardingType.REPLICATED: "replicated", OpShardingType.MANUAL: "manual", OpShardingType.UNKNOWN: "unknown",
          OpShardingType.UNREDUCED: "unreduced", OpShardingType.MAXIMAL: "maximal"}  # fmt: skip
_KINDS = {text: kind for kind, text in _TEXTS.items()}


class HloSharding:
    """A value: of which kind, and of tiles the shape, what its last axes say, and the numbers of the devices.

    Equal for the same kind, tile and numbers, however these are written. Made by the static methods.
    """

    __slots__ = ("_kind", "_last", "_numbers", "_order", "_parts", "_sizes", "_tile")

    def __init__(
        self,
        kind: OpShardingType = OpShardingType.REPLICATED,
        tile: Sequence[int] = (),
        last: Sequence[OpShardingType] = (),
        sizes: Sequence[int] = (),
        order: Sequence[int] = (),
        numbers: Sequence[int] | None = None,
    ) -> None:
        self._kind, self._tile, self._last, self._numbers = kind, tuple(tile), tuple(last), numbers
        self._sizes, self._order = tuple(sizes), tuple(order)
        self._parts: tuple[HloSharding, ...] = ()

    @staticmethod
    def replicate() -> HloSharding:
        """Each device has all."""
        return HloSharding()

    @staticmethod
    def manual() -> HloSharding:
        """The program says what each device has."""
        return HloSharding(OpShardingType.MANUAL)

    @staticmethod
    def unknown() -> HloSharding:
        """Nothing is said."""
        return HloSharding(OpShardingType.UNKNOWN)

    @staticmethod
    def unreduced() -> HloSharding:
        """Devices have terms of the values."""
        return HloSharding(OpShardingType.UNREDUCED)

    @staticmethod
    def iota_tile(
        dims: Sequence[int],
        reshape_dims: Sequence[int] = (),
        transpose_perm: Sequence[int] = (),
        subgroup_types: Sequence[OpShardingType] = (),
    ) -> HloSharding:
        """A tile of the numbers in order, reshaped and transposed.

        JaxRuntimeError where they do not fill it, or more is said of its last axes than it has.
        """
        dims, sizes = tuple(map(int, dims)), tuple(map(int, reshape_dims))
        order = tuple(map(int, transpose_perm))
        wrong = ""
        if not dims or min(dims) < 1:
            wrong = "`dims` should be positive, and not be empty"
        elif len(sizes) != len(order):
            wrong = "`reshape_dims` and `transpose_perm` should have the same size"
        elif len(subgroup_types) > len(dims):
            wrong = f"`subgroup_types`({len(subgroup_types)}) should not have more dimensions than `dims`({len(dims)})"
        elif sizes and (math.prod(sizes) != math.prod(dims) or sorted(order) != list(range(len(sizes)))):
            wrong = f"Cannot reshape from `dims` {list(dims)} to `reshape_dims` {list(sizes)}, in an order of them"
        if wrong:
            raise JaxRuntimeError(f"INVALID_ARGUMENT: {wrong}: HloSharding.iota_tile of {dims}, {sizes}, {order}")
        sizes, order = sizes or (math.prod(dims),), order or (0,)
        return HloSharding(OpShardingType.OTHER, dims, subgroup_types, *_in_runs(sizes, order))

    @staticmethod
    def subgroup_with_device_ordering(tile_assignment: Any, subgroup_types: Sequence[Any] = ()) -> HloSharding:
        """A tile of the numbers in an array; its last axes are of these types."""
        tile = np.asarray(tile_assignment)
        numbers = tile
        if len(subgroup_types) == 1:  # the order of copies says nothing
            numbers = np.sort(tile, -1)
        return HloSharding(
            OpShardingType.OTHER, tile.shape, subgroup_types, numbers=tuple(int(k) for k in numbers.flat)
        )

    @staticmethod
    def from_proto(arg: OpSharding) -> HloSharding:
        """That of a message."""
        if arg.type is OpShardingType.TUPLE:
            return HloSharding.tuple_sharding(None, [HloSharding.from_proto(one) for one in arg.tuple_shardings])
        if arg.type is OpShardingType.MAXIMAL:
            return HloSharding(OpShardingType.MAXIMAL, (1,), numbers=tuple(arg.tile_assignment_devices))
        if arg.type is not OpShardingType.OTHER:
            return HloSharding(arg.type)
        last = [OpShardingType.REPLICATED] if arg.replicate_on_last_tile_dim else arg.last_tile_dims
        tile = arg.tile_assignment_dimensions
        if arg.iota_reshape_dims:
            return HloSharding.iota_tile(tile, arg.iota_reshape_dims, arg.iota_transpose_perm, last)
        return HloSharding.subgroup_with_device_ordering(np.reshape(arg.tile_assignment_devices, tile), last)

    @staticmethod
    def from_string(arg: str) -> HloSharding:
        """That of a text such as "{devices=[2,4]<=[8]}"; JaxRuntimeError for another."""
        text = arg.strip()
        if text[1:-1] in _KINDS and text[:1] + text[-1:] == "{}":
            return HloSharding(_KINDS[text[1:-1]])
        if found := re.fullmatch(r"\{maximal device=(\d+)\}", text):
            return HloSharding(OpShardingType.MAXIMAL, (1,), numbers=(int(found[1]),))
        found = re.fullmatch(
            r"\{devices=\[([\d,]+)\](?:<=\[([\d,]+)\](?:T\(([\d,]+)\))?|([\d,]+))"
            r"(?: last_tile_dims=\{([a-z, ]+)\}|( last_tile_dim_replicate))?\}",
            text,
        )
        if not found:
            raise JaxRuntimeError(f"INVALID_ARGUMENT: Syntax error: HloSharding.from_string: {arg!r} is no sharding")
        tile, sizes, order, numbers = (
            list(map(int, (found[k] or "").split(","))) if found[k] else [] for k in range(1, 5)
        )
        last = [OpShardingType.REPLICATED] if found[6] else []
        last = [_KINDS[word.strip()] for word in found[5].split(",")] if found[5] else last
        if numbers:
            return HloSharding.subgroup_with_device_ordering(np.reshape(numbers, tile), last)
        return HloSharding.iota_tile(tile, sizes, order or range(len(sizes)), last)

    @staticmethod
    def tuple_sharding(_shape: Any, parts: Sequence[HloSharding]) -> HloSharding:
        """Those of the parts of a tuple, whose shape XLA wants and nothing here does."""
        made = HloSharding(OpShardingType.TUPLE)
        made._parts = tuple(parts)
        return made

    def to_proto(self) -> OpSharding:
        """The message."""
        message = OpSharding()
        message.type = self._kind
        message.tuple_shardings = [one.to_proto() for one in self._parts]
        message.tile_assignment_dimensions = list(self._tile)
        if self._last == (OpShardingType.REPLICATED,):
            message.replicate_on_last_tile_dim = True
        else:
            message.last_tile_dims = list(self._last)
        message.iota_reshape_dims, message.iota_transpose_perm = list(self._sizes), list(self._order)
        if self._numbers is not None:
            message.tile_assignment_devices = list(self._numbers)
        return message

    def __str__(self) -> str:
        if self._parts:
            return f"{{{', '.join(map(str, self._parts))}}}"
        if self._kind is OpShardingType.MAXIMAL:
            return f"{{maximal device={self.tile_assignment_devices()[0]}}}"
        if not self._tile:
            return f"{{{_TEXTS[self._kind]}}}"
        turned = f"T({','.join(map(str, self._order))})" if len(self._order) > 1 else ""
        source = f"<=[{','.join(map(str, self._sizes))}]{turned}"
        if self._numbers is not None:
            source = ",".join(map(str, self._numbers))
        last = f" last_tile_dims={{{', '.join(_TEXTS[kind] for kind in self._last)}}}" if self._last else ""
        if self._last == (OpShardingType.REPLICATED,):
            last = " last_tile_dim_replicate"
        return f"{{devices=[{','.join(map(str, self._tile))}]{source}{last}}}"

    __repr__ = __str__

    def _key(self) -> Any:
        return self._kind, self._tile, self._last, tuple(self.tile_assignment_devices()), self._parts

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HloSharding) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def is_replicated(self) -> bool:
        """Whether each device has all."""
        return self._kind is OpShardingType.REPLICATED

    def is_maximal(self) -> bool:
        """Whether one device has all."""
        return self._kind in (OpShardingType.REPLICATED, OpShardingType.MAXIMAL)

    def is_tiled(self) -> bool:
        """Whether devices have parts."""
        return self._kind is OpShardingType.OTHER

    def is_manual(self) -> bool:
        """Whether the program says what each device has."""
        return self._kind is OpShardingType.MANUAL

    def is_unknown(self) -> bool:
        """Whether nothing is said."""
        return self._kind is OpShardingType.UNKNOWN

    def is_unreduced(self) -> bool:
        """Whether devices have terms."""
        return self._kind is OpShardingType.UNREDUCED

    def is_tile_assignment_iota(self) -> bool:
        """Whether the numbers are those in order, reshaped and transposed."""
        return bool(self._sizes)

    def subgroup_types(self) -> list[Any]:
        """What is said of the tile's last axes, but for one of copies alone."""
        return [] if self.replicate_on_last_tile_dim() else list(self._last)

    def tuple_elements(self) -> list[HloSharding]:
        """Those of the parts of a tuple."""
        return list(self._parts)

    def num_dimensions(self) -> int:
        """Axes of the tile."""
        return len(self._tile) or 1

    def num_devices(self) -> int:
        """Devices of the tile; 0 without one."""
        return math.prod(self._tile) if self._tile else 0

    def replicate_on_last_tile_dim(self) -> bool:
        """Whether the tile's last axis is one of copies, and no other axis is said more of."""
        return self._last == (OpShardingType.REPLICATED,)

    def tile_assignment_dimensions(self) -> list[int]:
        """The shape of the tile; [0] without one."""
        return list(self._tile) or [0]

    def tile_assignment_devices(self) -> list[int]:
        """The numbers of the devices, along the tile."""
        if self._numbers is not None:
            return list(self._numbers)
        if not self._tile:
            return []
        return np.arange(self.num_devices()).reshape(self._sizes).transpose(self._order).ravel().tolist()

    def ways(self) -> tuple[list[int], int]:
        """Parts along each dimension, and copies of each; NotImplementedError where the last axes say more."""
        if not self._tile or self.is_maximal():
            return [], 1
        if any(kind is not OpShardingType.REPLICATED for kind in self._last):
            raise NotImplementedError(f"{self} says of devices what is neither a part nor a copy")
        ndim = len(self._tile) - len(self._last)
        return list(self._tile[:ndim]), math.prod(self._tile[ndim:])


def _in_runs(sizes: Sequence[int], order: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Numbers reshaped and transposed, in the shortest way to say it: axes that stay neighbours are one."""
    runs: list[list[int]] = []
    for axis in (axis for axis in order if sizes[axis] > 1):
        if runs and not any(sizes[k] > 1 for k in range(runs[-1][-1] + 1, axis)) and runs[-1][-1] < axis:
            runs[-1].append(axis)
        else:
            runs.append([axis])
    runs = runs or [[0]]
    within = sorted(runs)
    return tuple(math.prod(sizes[k] for k in run) for run in within), tuple(within.index(run) for run in runs)


def of_spec(mesh: Any, spec: PartitionSpec, ndim: int) -> HloSharding:
    """That of arrays of so many dimensions, cut over a mesh; axes that cut nothing are manual, of terms, or copies."""
    kinds = dict(zip(mesh.axis_names, mesh.axis_types, strict=True))
    axes = [name for name in mesh.axis_names if mesh.shape[name] > 1]
    used = [name for part in spec for name in names_of(part) if name in axes]
    left = [name for name in axes if name not in used]
    said: dict[OpShardingType, list[Any]] = {}
    for name in left:
        manual, terms = kinds[name] is AxisType.Manual, name in spec.unreduced
        kind = OpShardingType.MANUAL if manual else OpShardingType.UNREDUCED if terms else OpShardingType.REPLICATED
        said.setdefault(kind, []).append(name)
    last = [k for k in (OpShardingType.MANUAL, OpShardingType.UNREDUCED, OpShardingType.REPLICATED) if k in said]
    if not used and len(last) <= 1:
        return HloSharding(last[0] if last else OpShardingType.REPLICATED)
    tile = [math.prod(mesh.shape[name] for name in names_of(part)) for part in spec]
    tile += [1] * (ndim - len(tile))
    tile += [math.prod(mesh.shape[name] for name in said[kind]) for kind in last]
    order = [axes.index(name) for name in (*used, *(name for kind in last for name in said[kind]))]
    return HloSharding.iota_tile(tile, [mesh.shape[name] for name in axes], order, last)


__all__ = ["HloSharding", "of_spec"]
