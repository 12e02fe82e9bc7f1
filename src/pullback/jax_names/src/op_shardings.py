"""Stands for jax._src.op_shardings: what tiles of devices mean for arrays of a shape."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.sharding._gspmd import are_equal as are_hlo_shardings_equal
from pullback.sharding._gspmd import is_replicated as is_hlo_sharding_replicated
from pullback.sharding._gspmd import tile_indices
from pullback.sharding._hlo_sharding import HloSharding


def get_num_ways_dim_sharded(hlo_sharding: HloSharding) -> tuple[list[int], int]:
    """Parts along each dimension, and copies of each; NotImplementedError where the tile says more."""
    return hlo_sharding.ways()


def op_sharding_to_indices(
    op_sharding: HloSharding, shape: Sequence[int], num_devices: int
) -> tuple[tuple[slice, ...], ...]:
    """The part of an array that each device has; raises as `tile_indices`."""
    return tile_indices(op_sharding, shape, num_devices)


def op_sharding_to_numpy_indices(
    hlo_sharding: HloSharding, shape: Sequence[int], num_devices: int
) -> np.ndarray[Any, Any]:
    """The same as an array of objects."""
    found = np.empty(num_devices, object)
    for k, index in enumerate(tile_indices(hlo_sharding, shape, num_devices)):
        found[k] = index
    return found


__all__ = [
    "are_hlo_shardings_equal", "get_num_ways_dim_sharded", "is_hlo_sharding_replicated", "op_sharding_to_indices",
    "op_sharding_to_numpy_indices",
]  # fmt: skip
