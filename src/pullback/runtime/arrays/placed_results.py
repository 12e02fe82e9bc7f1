"""Results at their places: what the extension asks where a program's arguments are committed, or it says places itself.

The rules are those of result_places.py, which is loaded where they are first asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback._ext import _core
from pullback.core import hooks
from pullback.runtime.arrays.placement import Placing, says_where
from pullback.runtime.arrays.terms import is_unreduced


def placement_with_terms(
    placing: Placing | None, places: tuple[Any, ...], name: str, out_avals: Sequence[Any]
) -> tuple:
    """The place of each result of a program whose arguments are at `places`; and, where some are left to be summed, the
    function of arguments and results that gives these what each device has of them.
    """
    from pullback.runtime.arrays.result_places import placement_of  # with committed arrays, not at start-up

    found = placement_of(placing, places, name, out_avals)
    if placing is None or not any(map(is_unreduced, found)):
        return found
    key = "terms", places, found
    if key not in placing.found:
        placing.found[key] = (*found, hooks.terms_beside(placing, places))
    return placing.found[key]


def place_results(placing: Placing, args: tuple, results: Sequence[Any], name: str) -> list[Any]:
    """Results that no executable has made, at the places that they have by those of the arguments."""
    places = _core.places_of(args)
    if places is None and not says_where(placing.closed):
        return list(results)
    avals = [r._aval if type(r) is _core.Array else r.aval for r in results]
    found = placement_with_terms(placing, places or (None,) * len(args), name, avals)
    outs = [
        _core.with_aval(r, r._aval, p) if type(r) is _core.Array and r._device is not p else r
        for r, p in zip(results, found)
    ]
    for give_terms in found[len(outs) :]:
        give_terms(args, outs)
    return outs
