"""What the user says of how a result is cut along explicit axes, for the operations by which it is found."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from pullback.sharding import PartitionSpec

_asked: ContextVar[Any] = ContextVar("pullback_out_sharding", default=None)


class asked:
    """Context manager: the user says how the result is cut (None: does not), so that it may be ambiguous inside.

    Anything but a spec or a NamedSharding says that somebody does, and not how.
    """

    def __init__(self, out_sharding: Any) -> None:
        self.spec = getattr(out_sharding, "spec", out_sharding)

    def __enter__(self) -> None:
        known = isinstance(self.spec, PartitionSpec)
        self.token = _asked.set(_asked.get() if self.spec is None else self.spec if known else True)

    def __exit__(self, *exc: Any) -> None:
        _asked.reset(self.token)


class unasked:
    """Context manager: a user's function, which a rule calls, says for itself how its results are cut."""

    def __enter__(self) -> None:
        self.token = _asked.set(None)

    def __exit__(self, *exc: Any) -> None:
        _asked.reset(self.token)


def is_asked() -> bool:
    """Whether the user says how the result is cut."""
    return _asked.get() is not None


def asked_for() -> Any:
    """The spec that the user gives for the result, True if he says it elsewhere, None if not at all."""
    return _asked.get()
