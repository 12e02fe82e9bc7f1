"""What checks find: the kinds of errors, the messages of checks, and the value `Error` that carries them out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback import tree_util
from pullback.core import ShapedArray, Tracer
from pullback.core.extended import of_words
from pullback.util.errors import Explained
from pullback.util.record import frozen_record
from pullback.util.tracebacks import api_boundary


class JaxRuntimeError(Explained, ValueError):
    """A check failed."""


class JaxException(Explained):
    """Base of the errors that `checkify` finds."""


class FailedCheckError(JaxException):
    """A condition that the program gives to `checkify.check` did not hold."""


class NaNError(JaxException):
    """An operation made a NaN of numbers."""


class DivisionByZeroError(JaxException):
    """A number was divided by zero."""


class OOBError(JaxException):
    """An index lay outside of the array."""


ErrorCategory = type[JaxException]
user_checks = frozenset({FailedCheckError})
nan_checks = frozenset({NaNError})
div_checks = frozenset({DivisionByZeroError})
index_checks = frozenset({OOBError})
float_checks = nan_checks | div_checks
automatic_checks = float_checks | index_checks
all_checks = automatic_checks | user_checks


# ------------------------------------------------------------------------------------------------------------ messages


@dataclass(frozen=True, eq=False)
class _Message:
    """A format string, the tree of its arguments, and the kind of error."""

    text: str
    tree: Any
    category: ErrorCategory
    debug: bool = False  # without effect where no `checkify` is around it
    keys: tuple[Any, ...] | None = None  # of arguments that are arrays of keys the dtypes, if there are some

    def format(self, values: Sequence[Any]) -> str:
        arrays = [jnp.asarray(np.asarray(v)) for v in values]
        if self.keys is not None:
            arrays = [x if k is None else of_words(k, x) for k, x in zip(self.keys, arrays, strict=True)]
        args, kwargs = tree_util.tree_unflatten(self.tree, arrays)
        shown = self.text.format(*args, **kwargs)
        return f"{shown} (`check` failed)" if self.category is FailedCheckError else shown


@frozen_record
class _Site:
    """One check of a program: its message and the avals of what the message shows."""

    message: _Message
    avals: tuple[ShapedArray, ...]


def _element_at(place: tuple[int, ...]) -> Callable[[Any], Any]:
    return lambda x: np.asarray(x)[place]


class Error:
    """What `checkify` gives beside the result: the first check that failed, if one did. A tree of arrays."""

    def __init__(self, code: Any, payload: tuple[tuple[Any, ...], ...], messages: tuple[_Message, ...]) -> None:
        self._code, self._payload, self._messages = code, payload, messages

    @api_boundary
    def get(self) -> str | None:
        """The message of the first failed check, None if all held. Of several (under vmap) errors, one line for
        each."""
        codes = np.asarray(self._code)
        if codes.ndim == 0:
            return self._message(int(codes), lambda x: x)
        lines = []
        for place in np.ndindex(*codes.shape):
            line = self._message(int(codes[place]), _element_at(place))
            if line is not None:
                lines.append(f"at mapped index {', '.join(map(str, place))}: {line}")
        return "\n".join(lines) or None

    def _message(self, code: int, pick: Callable[[Any], Any]) -> str | None:
        if code == 0:
            return None
        return self._messages[code - 1].format([pick(x) for x in self._payload[code - 1]])

    @api_boundary
    def get_exception(self) -> JaxException | None:
        """The error as an exception of its kind, None if all checks held."""
        codes = np.asarray(self._code).ravel()
        failed = codes[codes > 0]
        return self._messages[failed[0] - 1].category(self.get()) if failed.size else None

    @api_boundary
    def throw(self) -> None:
        """Raise JaxRuntimeError if a check failed."""
        message = self.get()
        if message is not None:
            raise JaxRuntimeError(message)

    def __repr__(self) -> str:
        return f"Error({self.get()})" if not isinstance(self._code, Tracer) else "Error(<traced>)"


def _rebuilt(messages: Any, code: Any, payload: Any) -> Error:
    return Error(code, payload, messages)


tree_util.register_pytree_node(
    Error, lambda e: ((e._code, e._payload), e._messages), lambda messages, children: _rebuilt(messages, *children)
)
init_error = Error(np.int32(0), (), ())

for _kind in (Error, JaxRuntimeError, JaxException, FailedCheckError, NaNError, DivisionByZeroError, OOBError):
    _kind.__module__ = "pullback.experimental.checkify"  # where users find them
