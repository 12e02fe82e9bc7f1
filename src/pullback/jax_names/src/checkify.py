"""Stands for jax._src.checkify."""

from typing import TypeVar

from pullback.experimental.checkify import (
    Error,
    JaxException,
    all_checks,
    automatic_checks,
    check,
    check_error,
    checkify,
    div_checks,
    float_checks,
    index_checks,
    nan_checks,
    user_checks,
)

Out = TypeVar("Out")

__all__ = [
    "Error", "JaxException", "Out", "all_checks", "automatic_checks", "check", "check_error", "checkify", "div_checks",
    "float_checks", "index_checks", "nan_checks", "user_checks",
]  # fmt: skip
