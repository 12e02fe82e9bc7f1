"""Rules by primitive, as mappings: reading and writing them reads and writes the field of the record."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

from pullback.core import NoRule, Primitive, registry
from pullback.core.primitive import load_late


class RuleTable(MutableMapping[Primitive, Any]):
    """primitive -> rule in one field of its record; primitives without a rule there are not in it.

    `convert(primitive, rule)` makes what users register into the record's signature, `show` the other way.
    """

    def __init__(
        self, field: str, convert: Callable[[Primitive, Any], Any], show: Callable[[Primitive, Any], Any]
    ) -> None:
        self.field, self.convert, self.show = field, convert, show

    def __getitem__(self, primitive: Primitive) -> Any:
        rule = getattr(primitive, self.field)
        if rule is None or isinstance(rule, NoRule):
            raise KeyError(primitive)
        return self.show(primitive, rule)

    def __setitem__(self, primitive: Primitive, rule: Any) -> None:
        setattr(primitive, self.field, self.convert(primitive, rule))

    def __delitem__(self, primitive: Primitive) -> None:
        setattr(primitive, self.field, NoRule("it was removed"))

    def __iter__(self) -> Iterator[Primitive]:
        load_late()
        return (p for p in registry.values() if p.has_rule(self.field))

    def __len__(self) -> int:
        return sum(1 for _ in self)
