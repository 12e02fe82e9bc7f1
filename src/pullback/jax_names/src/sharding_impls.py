"""Stands for jax._src.sharding_impls: classes of shardings, and what stands where none is given."""

from pullback.sharding import NamedSharding, SingleDeviceSharding
from pullback.sharding._shardings import IndivisibleError, Sharding

UNSPECIFIED = None  # what jit takes for a sharding that is left open

__all__ = ["UNSPECIFIED", "IndivisibleError", "NamedSharding", "Sharding", "SingleDeviceSharding"]
