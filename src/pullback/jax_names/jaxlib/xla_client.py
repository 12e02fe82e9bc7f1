"""Names that programs import from jaxlib.xla_client."""

from pullback.core import Array
from pullback.jax_names.jaxlib.xla_extension import ArrayImpl, Device, XlaRuntimeError

__all__ = ["Array", "ArrayImpl", "Device", "XlaRuntimeError"]
