"""Stands for jax.version: the version of the JAX whose API this package gives."""

from __future__ import annotations

from pullback.version import jax_version as __version__
from pullback.version import jax_version_info as __version_info__

_version = __version__  # torchax

__all__ = ["__version__", "__version_info__"]
