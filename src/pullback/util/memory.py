"""Dicts that remember results, up to a number of them."""

from __future__ import annotations

from typing import Any


def make_room(memory: dict[Any, Any], most: int) -> None:
    """Remove what was added first until there are fewer than `most` entries, whatever other threads do meanwhile."""
    while len(memory) >= most:
        for key in list(memory)[:1]:  # one step under the GIL; an iterator raises if a thread adds between its two
            memory.pop(key, None)
