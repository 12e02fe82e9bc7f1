"""How long things take: the stages of a compilation, and times as text."""

from __future__ import annotations

import time


class Clock:
    """Called with a stage's name when it is over; writes its seconds, which count from the end of the one before."""

    def __init__(self, seconds: dict[str, float]) -> None:
        self.seconds, self._last = seconds, time.perf_counter()

    def __call__(self, stage: str) -> None:
        now = time.perf_counter()
        self.seconds[stage] = now - self._last
        self._last = now


def time_of(ns: float) -> str:
    """A time in its unit: '1.2 ms'."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if ns >= size:
            return f"{ns / size:.3g} {unit}"
    return f"{ns:.3g} ns"


__all__ = ["Clock", "time_of"]
