"""CPU targets."""

from .target import Target, host_target

__all__ = ["Target", "host_target"]
