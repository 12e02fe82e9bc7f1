"""Stands for jax._src.lib, the compiled parts of JAX: dynamiqs asks for the error of programs that fail, qwix for the
class of jitted functions, grain for the version of the interface, jaxdecomp for MLIR, which is not here and says so.
"""

from pullback.extend import mlir
from pullback.jax_names.jaxlib import _jax, xla_client

jaxlib_extension_version = 0  # of hooks that are not here

__all__ = ["_jax", "jaxlib_extension_version", "mlir", "xla_client"]
