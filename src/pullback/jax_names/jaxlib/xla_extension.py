"""Names that programs import from jaxlib.xla_extension."""

from pullback._ext import _core
from pullback._ext._core import Array as ArrayImpl
from pullback.runtime.arrays.devices import Device
from pullback.util.errors import JaxRuntimeError as XlaRuntimeError

PjitFunction = _core.JitFunction  # gpjax dispatches on it

__all__ = ["ArrayImpl", "Device", "PjitFunction", "XlaRuntimeError"]
