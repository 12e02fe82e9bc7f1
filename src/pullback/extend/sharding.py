"""Shardings as tiles of devices, and the bytes of XLA's messages of them."""

from pullback.sharding._gspmd import GSPMDSharding
from pullback.sharding._hlo_sharding import HloSharding
from pullback.sharding._op_sharding import OpSharding


def get_op_sharding_from_serialized_proto(sharding: bytes) -> OpSharding:
    """The message that bytes are of; ValueError for other bytes."""
    message = OpSharding()
    message.ParseFromString(sharding)
    return message


def get_hlo_sharding_from_serialized_proto(sharding: bytes) -> HloSharding:
    """The sharding that the bytes of a message are of; ValueError for other bytes."""
    return HloSharding.from_proto(get_op_sharding_from_serialized_proto(sharding))


def get_serialized_proto_from_hlo_sharding(sharding: HloSharding) -> bytes:
    """The bytes of its message."""
    return sharding.to_proto().SerializeToString()


__all__ = [
    "GSPMDSharding", "get_hlo_sharding_from_serialized_proto", "get_op_sharding_from_serialized_proto",
    "get_serialized_proto_from_hlo_sharding",
]  # fmt: skip
