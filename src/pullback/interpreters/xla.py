"""Running a primitive by itself."""

from __future__ import annotations

from typing import Any

from pullback.core import Primitive, hooks


def apply_primitive(prim: Primitive, *args: Any, **params: Any) -> Any:
    """The result of a primitive on concrete arrays."""
    return hooks.evaluate(prim, args, params)


__all__ = ["apply_primitive"]
