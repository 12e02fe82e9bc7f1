"""The version of jaxlib that goes with the JAX whose API this package gives."""

from pullback.version import jax_version as __version__

__version_info__ = tuple(int(part) for part in __version__.split("."))
