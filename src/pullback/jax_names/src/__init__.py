"""Private modules of JAX that published libraries import nevertheless; only the names that they need.

They are attributes of `jax._src`, as in JAX, where `import jax` has loaded them all.
"""

import importlib
from types import ModuleType

# Modules that are public ones here, or parts of them.
ELSEWHERE = {
    "api": "pullback.api",
    "config": "pullback.util.config",
    "custom_derivatives": "pullback.custom_derivatives",
    "interpreters": "pullback.interpreters",
    "lax": "pullback.lax",
    "lib": "pullback.lib",
    "nn": "pullback.nn",
    "numpy": "pullback.numpy",
    "random": "pullback.random",
    "scipy": "pullback.scipy",
    "typing": "pullback.typing",
}


def __getattr__(name: str) -> ModuleType:
    target = ELSEWHERE.get(name, f"{__name__}.{name}")
    try:
        return importlib.import_module(target)
    except ModuleNotFoundError as error:
        if error.name != target:
            raise
    raise AttributeError(f"pullback stands in for jax, and has no module 'jax._src.{name}'")
