"""Stands for jax._src.named_sharding."""

from pullback.sharding import AxisType, DuplicateSpecError, NamedSharding, PartitionSpec
from pullback.sharding._shardings import UNSPECIFIED, UnspecifiedValue

__all__ = ["UNSPECIFIED", "AxisType", "DuplicateSpecError", "NamedSharding", "PartitionSpec", "UnspecifiedValue"]
