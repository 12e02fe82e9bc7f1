"""Names that programs import from jaxlib.xla_client."""

from pullback.core import Array
from pullback.jax_names.jaxlib.xla_extension import ArrayImpl, Device, XlaRuntimeError
from pullback.sharding import NamedSharding, Sharding, SingleDeviceSharding
from pullback.sharding._gspmd import GSPMDSharding
from pullback.sharding._hlo_sharding import HloSharding
from pullback.sharding._op_sharding import OpSharding
from pullback.sharding._shardings import DeviceList

__all__ = [
    "Array", "ArrayImpl", "Device", "DeviceList", "GSPMDSharding", "HloSharding", "NamedSharding", "OpSharding",
    "Sharding", "SingleDeviceSharding", "XlaRuntimeError",
]  # fmt: skip
