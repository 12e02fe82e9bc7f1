"""Classes of fields that cost little to make, as modules do at import, and little to make instances of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, eq_default=False)
def record(cls: type[T]) -> type[T]:
    """A dataclass whose instances are compared by identity, and frozen for the type checker only.

    The run-time guard of a frozen dataclass makes construction three times slower; with comparisons and a text it
    takes 0.5 ms to make the class, against 0.15.
    """
    return dataclass(slots=True, eq=False, repr=False)(cls)
