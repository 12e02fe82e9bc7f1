"""The folder of compiled parts in JAX; all its names but the version (jaxns) are gone by now."""

from pullback.version import jax_version as __version__

__all__ = ["__version__"]
