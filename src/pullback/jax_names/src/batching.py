"""Stands for jax._src.interpreters.batching: the public names, and two that brainstate hands on.

It never calls `make_iota` and `to_elt`, which belong to JAX's own way of mapping objects of libraries.
"""

from typing import Any

from pullback.interpreters import batching
from pullback.util.absent import absent_names

_absent = absent_names(__name__)


def __getattr__(name: str) -> Any:
    return getattr(batching, name) if hasattr(batching, name) else _absent(name)
