"""Stands for jax._src.api: the public names (flax, equinox), and the dtype of an argument (pennylane)."""

from typing import Any

from pullback import api
from pullback.core import typeof


def _dtype(x: Any) -> Any:
    """The dtype of an array or number."""
    return typeof(x).dtype


def __getattr__(name: str) -> Any:
    return getattr(api, name)
