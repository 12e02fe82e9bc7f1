"""Stands for jax._src.numpy: the names of jax.numpy (tinygp, jaxopt), with private modules beside them."""

from typing import Any

from pullback import numpy
from pullback.jax_names.src.numpy import util

lax_numpy = numpy  # treex


def __getattr__(name: str) -> Any:
    return getattr(numpy, name)


__all__ = ["lax_numpy", "util"]
