"""Stands for jax._src.lax: the names of jax.lax, and JAX's files, most of which are that module here.

JAX's page on primitives, and programs that were written from it, import `lax` from it.
"""

from typing import Any

from pullback import lax as _public
from pullback.jax_names.src import LAX_FILES
from pullback.jax_names.src.lax import lax as lax
from pullback.jax_names.src.lax import parallel as parallel


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    found = getattr(_public, name, None)
    if found is None and name in LAX_FILES:
        return _public
    return getattr(_public, name) if found is None else found
