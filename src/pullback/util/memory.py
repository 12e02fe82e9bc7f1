"""What remembers results: up to how much, and how all of it is forgotten."""

from __future__ import annotations

import contextlib
import weakref
from collections import OrderedDict
from typing import Any, Generic, TypeVar


def make_room(memory: dict[Any, Any], most: int) -> None:
    """Remove what was added first until there are fewer than `most` entries, whatever other threads do meanwhile."""
    while len(memory) >= most:
        for key in list(memory)[:1]:  # one step under the GIL; an iterator raises if a thread adds between its two
            memory.pop(key, None)


def while_it_lives(x: Any, memory: dict[Any, Any], key: Any) -> weakref.ref[Any]:
    """A weak reference to x, at whose end the memory forgets the key. TypeError where x cannot be referred to so.

    The memory is bound, since at exit the globals of a module may be gone before x is.
    """
    return weakref.ref(x, lambda _: memory.pop(key, None))


_Value = TypeVar("_Value")


class Recent(Generic[_Value]):
    """The values used last by key: at most `most`, of which all but the last weigh at most `weight` together."""

    def __init__(self, most: int, weight: int) -> None:
        self.most, self.weight = most, weight
        self._values: OrderedDict[Any, tuple[_Value, int]] = OrderedDict()
        self._total = 0

    def get(self, key: Any) -> _Value | None:
        """The value, which counts as used now; None if there is none."""
        found = self._values.get(key)
        if found is None:
            return None
        with contextlib.suppress(KeyError):  # another thread has removed it
            self._values.move_to_end(key)
        return found[0]

    def put(self, key: Any, value: _Value, weight: int) -> None:
        """Remember a value, and forget those used longest ago until the rest fits."""
        before = self._values.pop(key, None)
        self._values[key] = value, weight
        self._total += weight - (before[1] if before else 0)
        while len(self._values) > max(self.most, 0) or (self._total > self.weight and len(self._values) > 1):
            try:
                _, (_, gone) = self._values.popitem(last=False)
            except KeyError:
                break
            self._total -= gone

    def __len__(self) -> int:
        return len(self._values)

    def clear(self) -> None:
        """Forget all."""
        self._values.clear()
        self._total = 0


_forgetful: weakref.WeakSet[Any] = weakref.WeakSet()


def forgetful(memory: Any) -> None:
    """Have `memory.clear_cache()` called by `forget_all`, as long as it lives."""
    _forgetful.add(memory)


def forget_all() -> None:
    """Clear what is `forgetful`."""
    for memory in list(_forgetful):
        memory.clear_cache()


__all__ = ["Recent", "forget_all", "forgetful", "make_room"]
