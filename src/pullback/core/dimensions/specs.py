"""Symbolic shapes as text: "a, 2*b, floordiv(a*b, 4), _, ..." to a tuple of ints and dimensions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NoReturn

from pullback.core.dimensions.expressions import (
    FLOORDIV,
    MAX,
    MIN,
    MOD,
    Expression,
    combine,
    divide,
    max_dim,
    min_dim,
    multiply,
    variable,
)

_TOKEN = re.compile(r"\s*(?:(\d+(?:\.\d*)?)|([A-Za-z_]\w*)|(\.\.\.)|([-+*^(),])|(\S))")
_BINARY = (FLOORDIV, MOD, MAX, MIN)
_NON_NEGATIVE = "non_negative"


class _Reader:
    """One text, read from the left; `dimension` is what messages name."""

    def __init__(self, text: str, scope: Any, like: Sequence[Any] | None = None):
        self.text = text
        self.scope = scope
        self.like = like
        self.dimension = 0
        self.tokens: list[tuple[str, str, int]] = []  # (kind, text, position)
        for match in _TOKEN.finditer(text):
            kind = ("number", "name", "...", "sign", "other")[match.lastindex - 1]  # type: ignore[operator]
            word = match.group(match.lastindex)  # type: ignore[arg-type]
            self.tokens.append((word if kind == "sign" else kind, word, match.start(match.lastindex)))  # type: ignore[arg-type]
        self.tokens.append(("end", "", len(text)))
        self.place = 0

    def fail(self, problem: str) -> NoReturn:
        """Raise the ValueError that says what was read and what was left."""
        at = self.tokens[self.place][2]
        raise ValueError(
            f"syntax error in symbolic shape {self.text!r} in dimension {self.dimension}: {problem}. Parsed "
            f"{self.text[:at]!r}, remaining {self.text[at:]!r}."
        )

    @property
    def kind(self) -> str:
        """What comes next: number, name, ..., a sign as itself, other, or end."""
        return self.tokens[self.place][0]

    def take(self, *kinds: str) -> str:
        """The next token's text, which must be of one of these kinds."""
        kind, word, _ = self.tokens[self.place]
        if kind not in kinds:
            found = repr(word) if word else "the end"
            self.fail(f"expected {' or '.join(map(repr, kinds))}, found {found}")
        self.place += 1
        return word

    def shape(self) -> tuple[Expression, ...]:
        """All dimensions; one pair of parentheses around them may stand or not."""
        closing = "end"
        if self.kind == "(":
            self.take("(")
            closing = ")"
        found: list[Expression] = []
        while self.kind != closing:
            self.dimension = len(found)
            if self.kind == "...":
                found.extend(self._rest(len(found)))
                self.take("...")
                if self.kind == ",":
                    self.take(",")
                if self.kind != closing:
                    self.fail("'...' must be the last dimension")
                break
            found.append(self._one(len(found)))
            if self.kind != closing:
                self.take(",", closing)
        self.take(closing)
        if closing == ")":
            self.take("end")
        return tuple(found)

    def _rest(self, start: int) -> list[Expression]:
        if self.like is None:
            self.fail("spec contains ... but no 'like' shape was given")
        if start > len(self.like):
            self.fail(f"'...' stands after {start} dimensions, and like={self.like} has {len(self.like)}")
        return [self._known(d) for d in self.like[start:]]

    def _known(self, d: Any) -> Expression:
        if d is None:
            self.fail(f"unexpected placeholder for unknown dimension; like={self.like}")
        return d

    def _one(self, number: int) -> Expression:
        if self.tokens[self.place][:2] == ("name", "_"):
            if self.like is None:
                self.fail("spec contains _ but no 'like' shape was given")
            if number >= len(self.like):
                self.fail(f"'_' has no dimension to stand for; like={self.like}")
            found = self._known(self.like[number])
            self.take("name")
            return found
        found = self.expression()
        if isinstance(found, int) and self.like is not None and number < len(self.like):
            known = self.like[number]
            if known is not None and isinstance(known, int) and known != found:
                self.fail(f"different size {found} for known dimension; like={self.like}")
        return found

    def expression(self) -> Expression:
        """A sum of terms."""
        found = self._term()
        while self.kind in ("+", "-"):
            sign = 1 if self.take("+", "-") == "+" else -1
            found = combine([(found, 1), (self._term(), sign)], self.scope)
        return found

    def _term(self) -> Expression:
        sign = 1
        if self.kind == "-":
            self.take("-")
            sign = -1
        found = self._factor()
        while self.kind == "*":
            self.take("*")
            found = multiply(found, self._factor())
        return combine([(found, sign)], self.scope)

    def _factor(self) -> Expression:
        if self.kind == "-":
            self.take("-")
            return -self._integer()
        if self.kind == "number":
            return self._integer()
        name = self.take("name", "number", "-")
        if name in _BINARY:
            found = self._operation(name)
        elif name == _NON_NEGATIVE and self.kind == "(":
            self.take("(")
            found = max_dim(self.expression(), 0)
            self.take(")")
        else:
            found = variable(name, self.scope)
        if self.kind == "^":
            self.take("^")
            base, found = found, 1
            for _ in range(self._integer()):
                found = multiply(found, base)
        return found

    def _operation(self, name: str) -> Expression:
        self.take("(")
        x = self.expression()
        self.take(",")
        y = self.expression()
        self.take(")")
        if name == MAX:
            return max_dim(x, y)
        if name == MIN:
            return min_dim(x, y)
        return divide(x, y)[0 if name == FLOORDIV else 1]

    def _integer(self) -> int:
        word = self.tokens[self.place][1]
        if self.kind == "number" and not word.isdigit():
            self.fail(f"expecting integer, found {word}")
        return int(self.take("number"))


def parse_expression(text: str, scope: Any) -> Expression:
    """One dimension; ValueError for what is none."""
    reader = _Reader(text, scope)
    found = reader.expression()
    reader.take("end")
    return found


def parse_shape(spec: str, scope: Any, like: Sequence[Any] | None = None) -> tuple[Expression, ...]:
    """The shape of a text; `_` and `...` stand for what `like` has there. ValueError for what is no shape."""
    return _Reader(spec, scope, like).shape()
