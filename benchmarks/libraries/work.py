"""What a piece of a library's work is, and the list of all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Work:
    """A piece of work: `make()` imports the library and prepares, and gives a call that does all of it again."""

    library: str
    name: str
    make: Callable[[], Callable[[], Any]]  # the call gives arrays
    tolerance: float  # by which results may differ, relative to the largest number of each array
    why: str = ""  # a tolerance above 1e-2 has a reason

    @property
    def key(self) -> str:
        """The name by which it is asked for."""
        return f"{self.library}: {self.name}"


ALL: list[Work] = []


def work(library: str, name: str, tolerance: float = 2e-3, why: str = "") -> Callable:
    """Put the function below into the list."""

    def add(make: Callable) -> Callable:
        ALL.append(Work(library, name, make, tolerance, why))
        return make

    return add
