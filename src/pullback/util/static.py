"""Static arguments: those on whose values a program depends, which must be hashable."""

from __future__ import annotations

from typing import Any

from pullback.util.errors import ArgumentError, UnhashableArgumentError


def is_hashable(x: Any) -> bool:
    """Whether x can be static: neither a list nor an array, nor a tuple of such."""
    try:
        hash(x)
    except TypeError:
        return False
    return True


def check_truth(name: str, **flags: Any) -> None:
    """ArgumentError for a flag without a truth value: an array of other than one element, or a key."""
    for argument, value in flags.items():
        if type(value) is not bool:
            try:
                bool(value)
            except (TypeError, ValueError):
                raise ArgumentError(
                    f"{name}: argument '{argument}' must be True or False, got a value of type {type(value).__name__}, "
                    "which is neither true nor false"
                ) from None


def check_flags(name: str, **flags: Any) -> None:
    """Raises UnhashableArgumentError for a flag, which decides by its truth, that is a list, an array or a tracer."""
    for argument, value in flags.items():
        if type(value) is not bool and not is_hashable(value):
            raise UnhashableArgumentError(
                f"Non-hashable static arguments are not supported: {name}: argument '{argument}' is "
                f"{value!r} of type {type(value).__name__}"
            )
