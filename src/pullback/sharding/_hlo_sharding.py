"""Shardings as XLA writes them: a tile of devices, which is the numbers of all in order, reshaped and transposed.

    {devices=[2,1,4]<=[4,2]T(1,0) last_tile_dim_replicate}

are 2 parts along the first of two dimensions; the 8 numbers, as 4 x 2 and transposed, fill the tile 2 x 1 x 4, along
whose last axis there are copies. Libraries read them off NamedShardings; nothing here does.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback.sharding._specs import PartitionSpec, names_of
from pullback.util.record import frozen_record


@frozen_record
class HloSharding:
    """`tile`: parts along each dimension, with copies along one more; `sizes`, `order`: of the numbers, see above."""

    tile: tuple[int, ...] = ()
    copies: bool = False
    sizes: tuple[int, ...] = ()
    order: tuple[int, ...] = ()

    def __str__(self) -> str:
        if self.is_replicated():
            return "{replicated}"
        source = ",".join(map(str, self.sizes))
        turned = f"T({','.join(map(str, self.order))})" if len(self.order) > 1 else ""
        last = " last_tile_dim_replicate" if self.copies else ""
        return f"{{devices=[{','.join(map(str, self.tile))}]<=[{source}]{turned}{last}}}"

    __repr__ = __str__

    def is_replicated(self) -> bool:
        """Whether each device has all."""
        return not self.tile

    def is_tiled(self) -> bool:
        """Whether devices have parts."""
        return bool(self.tile)

    def is_manual(self) -> bool:
        """Whether the program says what each device does: never, of what arrays lie by."""
        return False

    def is_unknown(self) -> bool:
        """Whether nothing is said: never."""
        return False

    def is_unreduced(self) -> bool:
        """Whether devices have terms: never, see `of_spec`."""
        return False

    def subgroup_types(self) -> list[Any]:
        """What is said of further axes of the tile: nothing."""
        return []

    def num_dimensions(self) -> int:
        """Axes of the tile."""
        return len(self.tile) or 1

    def num_devices(self) -> int:
        """Devices of the tile; 0 without one."""
        return math.prod(self.tile) if self.tile else 0

    def replicate_on_last_tile_dim(self) -> bool:
        """Whether the tile's last axis is one of copies."""
        return self.copies

    def tile_assignment_dimensions(self) -> list[int]:
        """The shape of the tile; [0] without one."""
        return list(self.tile) or [0]

    def tile_assignment_devices(self) -> list[int]:
        """The numbers of the devices, along the tile."""
        if not self.tile:
            return []
        return np.arange(self.num_devices()).reshape(self.sizes).transpose(self.order).ravel().tolist()


def of_spec(mesh: Any, spec: PartitionSpec, ndim: int) -> HloSharding:
    """That of arrays of so many dimensions, cut over a mesh; NotImplementedError where devices have terms of values."""
    if spec.unreduced:
        raise NotImplementedError(f"devices have terms of values by {spec}, of which XLA's text is not known here")
    axes = [name for name in mesh.axis_names if mesh.shape[name] > 1]
    used = [name for part in spec for name in names_of(part) if name in axes]
    tile = [math.prod(mesh.shape[name] for name in names_of(part)) for part in spec]
    tile += [1] * (ndim - len(tile))
    if not used:
        return HloSharding()
    left = [name for name in axes if name not in used]
    runs: list[list[int]] = []  # numbers of axes that follow each other stay together
    for number in map(axes.index, used + left):
        if runs and runs[-1][-1] + 1 == number:
            runs[-1].append(number)
        else:
            runs.append([number])
    in_mesh = sorted(runs)
    sizes = tuple(math.prod(mesh.shape[axes[k]] for k in run) for run in in_mesh)
    copies = math.prod(mesh.shape[name] for name in left)
    return HloSharding(
        (*tile, copies) if left else tuple(tile), bool(left), sizes, tuple(in_mesh.index(run) for run in runs)
    )


__all__ = ["HloSharding", "of_spec"]
