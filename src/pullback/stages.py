"""The stages of ahead-of-time compilation: what jit(f).trace, .lower and .compile give."""

from pullback.api.compiler_options import CompilerOptions
from pullback.api.stages import ArgInfo, Compiled, Lowered, Traced, Wrapped
from pullback.manual import add_pages as _add_pages
from pullback.manual.stages import PAGES as _PAGES

__all__ = ["ArgInfo", "Compiled", "CompilerOptions", "Lowered", "Traced", "Wrapped"]

_add_pages(globals(), _PAGES)
