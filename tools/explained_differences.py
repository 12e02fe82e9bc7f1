"""Reasons for which pullback and JAX may differ, each with a predicate that is as narrow as it can be made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from fuzz.calls import Call
from fuzz.compare import Difference
from fuzz.worker import Outcome


class Explained(NamedTuple):
    """A kind of difference: its name, its reason, and which differences it explains."""

    name: str
    reason: str
    holds: Callable[[Call, bool, str, Difference, Outcome, Outcome], Any]


CLASSES: tuple[Explained, ...] = (
    Explained("condition", "both are within what a unit in the last place of the arguments changes", lambda *_: False),
    Explained(
        "peer",
        "JAX's result is further from that with wider arguments, on which both agree, than ours",
        lambda *_: False,
    ),
)


def explain(call: Call, x64: bool, how: str, difference: Difference, got: Outcome, want: Outcome) -> str:
    """The name of the class that explains a difference, or nothing."""
    for c in CLASSES:
        if c.holds(call, x64, how, difference, got, want):
            return c.name
    return ""
