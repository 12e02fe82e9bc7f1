"""Stands for jax._src.array: the class of arrays, their parts, and what makes arrays of parts."""

from pullback._ext._core import Array as ArrayImpl
from pullback.api.global_arrays import (
    make_array_from_callback,
    make_array_from_process_local_data,
    make_array_from_single_device_arrays,
)
from pullback.runtime.arrays.native_hooks import Shard

__all__ = [
    "ArrayImpl", "Shard", "make_array_from_callback", "make_array_from_process_local_data",
    "make_array_from_single_device_arrays",
]  # fmt: skip
