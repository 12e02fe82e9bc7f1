"""What `import jaxlib` gives under install_as_jax(): the version and the names of exceptions."""

from pullback.jax_names.jaxlib import _jax, version, xla_client, xla_extension
from pullback.jax_names.jaxlib.version import __version__

__all__ = ["__version__", "_jax", "version", "xla_client", "xla_extension"]
