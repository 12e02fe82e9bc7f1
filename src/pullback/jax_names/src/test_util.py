"""Stands for jax._src.test_util: what JAX's tests are written with, and those of libraries.

The parts lie in `jax_names.testing` and are loaded when they are asked for: the classes of tests need absl.
"""

from importlib import import_module
from typing import Any

from pullback.jax_names.src.public_test_util import check_close, check_grads, check_jvp, check_vjp

_PARTS = ("machine", "data", "settings", "counts", "cases")


def __getattr__(name: str) -> Any:
    if not name.startswith("_"):
        for part in _PARTS:
            module = import_module(f"pullback.jax_names.testing.{part}")
            if hasattr(module, name):
                return getattr(module, name)
    raise AttributeError(f"module 'jax._src.test_util' has no attribute {name!r} where pullback stands in for jax")


__all__ = ["check_close", "check_grads", "check_jvp", "check_vjp"]
