"""Running a primitive by itself; classes that are taken as arrays."""

from __future__ import annotations

from typing import Any

from pullback.core import Primitive, hooks
from pullback.core.array_types import pytype_aval_mappings
from pullback.util.absent import absent_names

# Libraries enter their classes in either table.
canonicalize_dtype_handlers = pytype_aval_mappings


def apply_primitive(prim: Primitive, *args: Any, **params: Any) -> Any:
    """The result of a primitive on concrete arrays."""
    return hooks.evaluate(prim, args, params)


__getattr__ = absent_names(__name__)

__all__ = ["apply_primitive", "canonicalize_dtype_handlers", "pytype_aval_mappings"]
