"""The library that a random program is run by: pullback, JAX, or NumPy alone (`oracle`), whichever `using` has chosen.

Programs say `jax`, `jnp`, `lax` and `nn`; what these names hold is looked up at each use. Nothing here imports a
library, so that an interpreter with only one of them can run the programs.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

_current: list[Any] = []


class _Part:
    """A name that stands for a part of the chosen library."""

    def __init__(self, path: tuple[str, ...]) -> None:
        self._path = path

    def __getattr__(self, name: str) -> Any:
        found = _current[-1]
        for part in self._path:
            found = getattr(found, part)
        return getattr(found, name)


jax, jnp, lax, nn = _Part(()), _Part(("numpy",)), _Part(("lax",)), _Part(("nn",))


@contextlib.contextmanager
def using(library: Any) -> Iterator[None]:
    """Run programs by a library."""
    _current.append(library)
    try:
        yield
    finally:
        _current.pop()
