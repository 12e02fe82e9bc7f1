"""One device's part of a value, while its program is written: moved, or summed, when it is first asked for so."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from pullback import lax
from pullback.core.interpreter import extend_axis_env
from pullback.partition.factors import Axes, Cut, Sizes, local_shape, whole
from pullback.partition.moves import combine, combine_price, move, price


class Value:
    """One device's part of a value: `part`, of an array of type `aval` that is cut so.

    `terms`: axes along which each device has a term of the part, of which they make the sum when it is first asked for.
    """

    __slots__ = ("_others", "aval", "cut", "term", "terms")

    def __init__(self, part: Any, cut: Cut, aval: Any, terms: Axes = ()) -> None:
        self.term, self.cut, self.aval, self.terms = part, cut, aval, terms
        self._others: dict[Cut, Any] = {} if terms else {cut: part}

    @property
    def part(self) -> Any:
        if self.cut not in self._others:
            self._others[self.cut], _ = combine(self.term, "sum", self.terms, self.cut, None, {})
        return self._others[self.cut]

    @property
    def is_summed(self) -> bool:
        """Whether the part is there: nothing has to be summed any more."""
        return self.cut in self._others

    def moved(self, wanted: Cut, mesh: Sizes) -> Any:
        """The part, where the array is cut otherwise; it is moved once."""
        if wanted == self.cut:
            return self.part
        if wanted not in self._others:
            y, cut = self.term, self.cut
            if self.is_summed:
                y = self.part
            else:
                y, cut = combine(y, "sum", self.terms, cut, wanted, mesh)
            self._others[wanted] = move(y, cut, wanted, mesh)
        return self._others[wanted]

    def price(self, wanted: Cut, mesh: Sizes) -> int:
        """The bytes that a device receives to have it cut otherwise: none where it has that already."""
        there = wanted in self._others or whole(len(wanted)) in self._others
        if there or self.is_summed:
            return 0 if there else price(self.aval, self.cut, wanted, mesh)
        bytes_, cut = combine_price(self.aval, "sum", self.terms, self.cut, wanted, mesh)
        return bytes_ + price(self.aval, cut, wanted, mesh)

    def as_terms(self, terms: Axes, wanted: Cut, mesh: Sizes) -> Any:
        """A term of the part for each device along axes, where the array is cut as wanted; of what has none, the first
        device has it, others zeros.
        """
        if self.terms and set(self.terms) <= set(terms):
            y, rest = move(self.term, self.cut, wanted, mesh), tuple(a for a in terms if a not in self.terms)
        else:
            y, rest = self.moved(wanted, mesh), terms
        for axis in rest:
            first = lax.eq(lax.axis_index(axis), np.int32(0))
            y = lax.select(lax.broadcast_in_dim(first, y.shape, ()), y, lax.full_like(y, 0))
        return y


def local_aval(aval: Any, cut: Cut, mesh: Sizes) -> Any:
    """The type of one device's part."""
    return getattr(aval, "untyped", aval).update(shape=local_shape(aval.shape, cut, mesh))


@contextlib.contextmanager
def axes_of(mesh: Sizes) -> Iterator[None]:
    """Inside, collectives over the axes of the mesh may be written."""
    with contextlib.ExitStack() as stack:
        for name, size in mesh.items():
            stack.enter_context(extend_axis_env(name, size))
        yield
