"""Jaxprs and primitives."""

from pullback.core import (
    ClosedJaxpr,
    DebugInfo,
    DropVar,
    Jaxpr,
    JaxprEqn,
    JaxprTypeError,
    Literal,
    Primitive,
    Var,
    check_jaxpr,
    jaxpr_as_fun,
    jaxprs_in_params,
    new_jaxpr_eqn,
    subjaxprs,
)
from pullback.extend.core import primitives

__all__ = [
    "ClosedJaxpr", "DebugInfo", "DropVar", "Jaxpr", "JaxprEqn", "JaxprTypeError", "Literal", "Primitive", "Var",
    "check_jaxpr", "jaxpr_as_fun", "jaxprs_in_params", "new_jaxpr_eqn", "primitives", "subjaxprs",
]  # fmt: skip
