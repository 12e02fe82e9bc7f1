"""`pjit`, the older name of `jit`, which heeds the mesh of a `with` statement."""

from pullback.api.pjit import pjit
from pullback.core.explain import explain_all as _explain_all

__all__ = ["pjit"]

_explain_all(globals())
