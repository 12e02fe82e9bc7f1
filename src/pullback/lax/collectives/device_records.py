"""Records of what one device of several does within its compiled program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback.core.lowering import Nest
from pullback.core.primitive import NoRule, Primitive

__all__ = ["device_primitive"]

_AFTER = NoRule("it is made when a program for devices is compiled, after all transformations")


def device_primitive(
    name: str, doc: str, abstract_eval: Callable[..., Any], emit: Callable[..., None], multiple_results: bool = False
) -> Primitive:
    """A primitive that only the compiler makes: it has an emission, and nothing that comes before or instead of it."""
    return Primitive(
        name,
        doc=doc,
        abstract_eval=abstract_eval,
        reference=NoRule("it takes several devices"),
        jvp=_AFTER,
        transpose=_AFTER,
        batch=_AFTER,
        lower=Nest(emit),
        multiple_results=multiple_results,
        register=False,
    )
