"""What the machine can do at most: bytes copied and multiply-additions a second, measured with NumPy on all cores."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass

import numpy as np

COPY_BYTES = 1 << 27
PRODUCT = 2048


@dataclass(frozen=True)
class Limits:
    """Rates of the machine."""

    bytes_per_second: float  # read and written
    operations_per_second: float  # float32 additions and multiplications

    def seconds(self, moved: float, operations: float) -> float:
        """The least time for so many bytes and operations."""
        return max(moved / self.bytes_per_second, operations / self.operations_per_second)


def measure_limits(rounds: int = 5) -> Limits:
    """Time a large copy, a part of it by each core, and a large product."""
    cores = len(os.sched_getaffinity(0))
    source = np.ones(COPY_BYTES // 4, np.float32)
    target = np.zeros_like(source)
    parts = list(zip(np.array_split(source, cores), np.array_split(target, cores)))

    def copy() -> None:
        threads = [threading.Thread(target=np.copyto, args=(b, a)) for a, b in parts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    matrix = np.ones((PRODUCT, PRODUCT), np.float32)
    copied = min(_seconds(copy) for _ in range(rounds))
    product = min(_seconds(lambda: matrix @ matrix) for _ in range(rounds))
    return Limits(2 * COPY_BYTES / copied, 2 * PRODUCT**3 / product)


def _seconds(call) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start
