"""CPU targets."""

from .target import Target, current_target, host_target, target_scope

__all__ = ["Target", "current_target", "host_target", "target_scope"]
