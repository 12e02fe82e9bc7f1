"""How long the stages of a compilation take."""

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


__all__ = ["Clock"]
