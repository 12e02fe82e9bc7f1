"""The stages of ahead-of-time compilation: what jit(f).trace, .lower and .compile give."""

from pullback.api.stages import ArgInfo, Compiled, Lowered, Traced

__all__ = ["ArgInfo", "Compiled", "Lowered", "Traced"]
