"""Stands for jax._src.partition_spec."""

from pullback.sharding import PartitionSpec

P = PartitionSpec

__all__ = ["P", "PartitionSpec"]
