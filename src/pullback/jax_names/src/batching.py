"""Stands for jax._src.interpreters.batching: the public names, what is mapped by rules of its own (jaxoplanet), moved
axes (jaxdecomp), and two names that brainstate hands on.

It never calls `make_iota` and `to_elt`, which belong to JAX's own way of mapping objects of libraries.
"""

from typing import Any

from pullback.api.vmappable import is_vmappable
from pullback.interpreters import batching
from pullback.numpy import moveaxis
from pullback.util.absent import absent_names

__all__ = ["is_vmappable", "moveaxis"]

_absent = absent_names(__name__)


def __getattr__(name: str) -> Any:
    return getattr(batching, name) if hasattr(batching, name) else _absent(name)
