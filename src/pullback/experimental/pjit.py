"""`pjit`, the older name of `jit`, which heeds the mesh of a `with` statement."""

from pullback.api.pjit import pjit

__all__ = ["pjit"]
