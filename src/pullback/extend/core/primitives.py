"""All primitives as `<name>_p`."""

from __future__ import annotations

from pullback import lax, random  # their import fills the registry  # noqa: F401
from pullback.core import Primitive, registry


def __getattr__(name: str) -> Primitive:
    if name.endswith("_p") and name[:-2] in registry:
        return registry[name[:-2]]
    raise AttributeError(f"there is no primitive {name!r}")


def __dir__() -> list[str]:
    return sorted(f"{name}_p" for name in registry)
