"""Functions that are to become one kernel: all of them are fused here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback import api
from pullback.util.absent import absent_names


def fused(*, out_spaces: Any) -> Callable[[Callable], Callable]:
    """A decorator whose functions are compiled as one program. `out_spaces` names memories, of which there is one."""
    del out_spaces
    return api.jit


__getattr__ = absent_names(__name__)

__all__ = ["fused"]
