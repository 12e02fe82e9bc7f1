"""Names that programs import from jaxlib._jax, where JAX's compiled types are now."""

from pullback.jax_names.jaxlib.xla_extension import ArrayImpl, Device, PjitFunction, XlaRuntimeError

__all__ = ["ArrayImpl", "Device", "PjitFunction", "XlaRuntimeError"]
