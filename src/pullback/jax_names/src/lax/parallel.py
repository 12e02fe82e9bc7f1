"""Stands for jax._src.lax.parallel, where code for shard_map takes the gather from that gives all devices the same."""

from typing import Any

from pullback import lax
from pullback.jax_names.src import names_of


def all_gather_invariant(x: Any, axis_name: Any, *, axis: int = 0, tiled: bool = False) -> Any:
    """lax.all_gather, whose result the types say to be the same on all devices."""
    return lax.all_gather(x, axis_name, axis=axis, tiled=tiled, to="invarying")


__all__ = ["all_gather_invariant"]
__getattr__ = names_of(__name__, lax)
