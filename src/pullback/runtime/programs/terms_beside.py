"""Terms of results that are left to be summed, of programs that are run on whole arrays: eager operations.

Such a program knows the sums alone. Where a result's type says that it is to be summed over axes of a mesh, the program
of one device is run, too, of which each device keeps its term.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from pullback._ext import _core
from pullback.runtime.arrays.arrays import asarray
from pullback.runtime.arrays.placement import Placing
from pullback.runtime.arrays.result_places import typed_for
from pullback.runtime.arrays.terms import is_unreduced, terms_of, with_terms
from pullback.runtime.programs.partitioned import compile_partitioned, layout_of


class TermsBeside:
    """A function of a program's arguments, which lie so, and its results, which gives these their terms."""

    def __init__(self, placing: Placing, places: Sequence[Any]) -> None:
        self._placing, self._places = placing, places
        self._typed = typed_for(placing, places)  # as long as those shardings are in force that were asked for

    @functools.cached_property
    def _program(self) -> tuple[Any, tuple[int, ...] | None] | None:
        lies = dict(zip(self._placing.arguments, self._places, strict=True))
        places = [None] * len(self._placing.closed.consts) + [lies.get(v) for v in self._placing.jaxpr.invars]
        layout = layout_of(self._typed, places)
        return None if layout is None else compile_partitioned(self._typed, layout, "terms")

    def __call__(self, arguments: Sequence[Any], results: Sequence[Any]) -> None:
        if self._program is None:
            return
        run, kept = self._program
        placing = self._placing
        given = dict(zip(placing.arguments, arguments, strict=True))
        values = [*placing.closed.consts, *[given.get(v) for v in placing.jaxpr.invars]]
        values = values if kept is None else [values[k] for k in kept]
        found = run([x if type(x) is _core.Array else asarray(x) for x in values])
        for y, of in zip(results, found, strict=True):
            if is_unreduced(y._device):
                with_terms(y, terms_of(of))


__all__ = ["TermsBeside"]
