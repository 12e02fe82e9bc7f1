"""`jax_transfer_guard` and its kin: transfers that are logged, or refused.

The devices of one machine share its memory, so nothing is moved. What counts as a transfer is what JAX counts as one on
CPUs: values of the host (numbers, NumPy arrays) that become arrays, and arrays that are put on other devices than they
lie on. Transfers are explicit where `device_put` was called for them, and implicit elsewhere. Arrays are read from the
host for free.

While a guard looks, calls go through Python (`set_watching`), where `runtime/arrays/arrays.py` makes the arrays. This
module is `hooks.transfers` from when the first guard is set on.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from pullback.core.interpreter import current_interpreter, eval_interpreter, set_watching
from pullback.util import config
from pullback.util.errors import JaxRuntimeError
from pullback.util.logs import TRANSFERS, warn

HOST = (np.ndarray, np.generic, bool, int, float, complex)


class _State(threading.local):
    from_host = "allow"
    between = "allow"
    explicit = False
    asleep = 0


_state = _State()


def _read_flags() -> None:
    levels = [
        config.value_of(f"jax_transfer_guard_{name}") or "allow" for name in ("host_to_device", "device_to_device")
    ]
    _state.from_host, _state.between = levels
    set_watching("transfers", levels != ["allow", "allow"])


config.add_listener(_read_flags)
_read_flags()


def is_watching() -> bool:
    """Whether a guard of this thread looks at calls."""
    return not _state.asleep and (_state.from_host, _state.between) != ("allow", "allow")


def from_host(x: Any) -> None:
    """A value of the host becomes an array: JaxRuntimeError if the guard refuses it. Constants of traces are free."""
    if _state.from_host != "allow" and not _state.asleep and current_interpreter() is eval_interpreter():
        _judge(_state.from_host, "host-to-device", x)


def of_index(index: Any) -> None:
    """An array is indexed: where its elements are counted with numbers, or looked for in arrays, these are compared
    with the host's sizes. Whole axes, and steps along them, are not counted.
    """
    for entry in index if type(index) is tuple else (index,):
        if isinstance(entry, slice):
            numbers = [n for n in (entry.start, entry.stop) if isinstance(n, HOST)]
            if numbers and entry.step in (None, 1):
                from_host(numbers[0])
        elif entry is not None and entry is not Ellipsis and type(entry) is not list:
            from_host(entry if isinstance(entry, HOST) else 0)


def between(x: Any, here: frozenset[Any], there: frozenset[Any]) -> None:
    """An array goes from devices to others; the same for the guard of these."""
    if _state.between != "allow" and not _state.asleep and not there <= here:
        _judge(_state.between, "device-to-device", x)


def _judge(level: str, direction: str, x: Any) -> None:
    if _state.explicit and not level.endswith("_explicit"):
        return
    what = f"{type(x).__name__} of shape {getattr(x, 'shape', ())}"
    if level.startswith("disallow"):
        hint = "" if _state.explicit else "; put it there with `jax.device_put`, or allow it with `jax.transfer_guard`"
        raise JaxRuntimeError(f"INVALID_ARGUMENT: Disallowed {direction} transfer: {what}{hint}")
    warn(TRANSFERS, f"{direction} transfer: {what}")


@contextmanager
def explicit() -> Iterator[None]:
    """Transfers inside were asked for."""
    before, _state.explicit = _state.explicit, True
    try:
        yield
    finally:
        _state.explicit = before


@contextmanager
def unwatched() -> Iterator[None]:
    """What happens inside is no transfer: a program that runs, or arrays that are read."""
    _state.asleep += 1
    try:
        yield
    finally:
        _state.asleep -= 1


__all__ = ["HOST", "between", "explicit", "from_host", "is_watching", "of_index", "unwatched"]
