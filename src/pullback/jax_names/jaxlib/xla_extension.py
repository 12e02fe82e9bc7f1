"""Names that programs import from jaxlib.xla_extension."""

from pullback.core import Array as ArrayImpl
from pullback.runtime.arrays.devices import Device
from pullback.util.errors import JaxRuntimeError as XlaRuntimeError

__all__ = ["ArrayImpl", "Device", "XlaRuntimeError"]
