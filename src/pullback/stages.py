"""The stages of ahead-of-time compilation: what jit(f).trace, .lower and .compile give."""

from pullback.api.stages import Compiled, Lowered, Traced

__all__ = ["Compiled", "Lowered", "Traced"]
