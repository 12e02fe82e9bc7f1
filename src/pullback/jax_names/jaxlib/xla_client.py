"""Names that programs import from jaxlib.xla_client."""

from pullback.jax_names.jaxlib.xla_extension import ArrayImpl, Device, XlaRuntimeError

Array = ArrayImpl

__all__ = ["Array", "ArrayImpl", "Device", "XlaRuntimeError"]
