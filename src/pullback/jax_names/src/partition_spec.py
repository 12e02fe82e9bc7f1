"""Stands for jax._src.partition_spec."""

from pullback.sharding import PartitionSpec

__all__ = ["PartitionSpec"]
