"""Stands for jax._src.lax: the names of jax.lax, and JAX's files, all of which are that module here.

JAX's page on primitives, and programs that were written from it, import `lax` from it.
"""

from typing import Any

from pullback import lax
from pullback.jax_names.src import LAX_FILES
from pullback.jax_names.src.lax import parallel as parallel


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    found = getattr(lax, name, None)
    if found is None and name in LAX_FILES:
        return lax
    return getattr(lax, name) if found is None else found
