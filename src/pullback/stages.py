"""The stages of ahead-of-time compilation: what jit(f).trace, .lower and .compile give."""

from pullback.api.stages import ArgInfo, Compiled, CompilerOptions, Lowered, Traced, Wrapped

__all__ = ["ArgInfo", "Compiled", "CompilerOptions", "Lowered", "Traced", "Wrapped"]
