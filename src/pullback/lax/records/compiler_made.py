"""Records of primitives that only passes of the compiler make: they come after all transformations, and need no rules
for these.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback.core.lowering import Nest
from pullback.core.primitive import NoRule, Primitive, registry

__all__ = ["compiler_primitive", "device_primitive", "rule_of"]

_AFTER = NoRule("made by a compiler pass")


def compiler_primitive(name: str, *, doc: str, **fields: Any) -> Primitive:
    """The primitive of that name, which no registry has; `fields` as of Primitive."""
    return Primitive(name, doc=doc, jvp=_AFTER, transpose=_AFTER, batch=_AFTER, register=False, **fields)


def rule_of(other: str, rule: str, without: frozenset[str] = frozenset()) -> Callable[..., Any]:
    """A rule of another primitive, as that of one whose parameters are those and `without`."""

    def call(*args: Any, **params: Any) -> Any:
        given = {key: value for key, value in params.items() if key not in without}
        return getattr(registry[other], rule)(*args, **given)

    return call


def device_primitive(
    name: str, doc: str, abstract_eval: Callable[..., Any], emit: Callable[..., None], multiple_results: bool = False
) -> Primitive:
    """What one device of several does within its program: it has an emission, and nothing in place of that."""
    return compiler_primitive(
        name,
        doc=doc,
        abstract_eval=abstract_eval,
        reference=NoRule("it takes several devices"),
        lower=Nest(emit),
        traits={"between devices"},
        multiple_results=multiple_results,
    )
