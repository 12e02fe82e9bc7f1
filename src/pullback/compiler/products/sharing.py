"""Whether threads had better share a product: what that saves against what they hand over to each other.

A thread that waits begins within a third of a microsecond. What takes longer is that one reads what another has
written: the first lines one by one, until they come in a stream, and then the writer must take them back. Inputs and
constants lie in all caches alike, so a product of these alone is worth threads far sooner than one in the middle of a
program. Results are the same either way.

Measured (two cores of a Xeon with AMX, float32, a product in each step of a scan): shared, 64 x 64 x 64 took 6.0 us,
now 3.2; 100 x 100 x 100 and tanh of it 22.9, now 16.8; 128 x 128 x 128, still shared, 20.6 where one thread takes 24.2;
50 steps of an LSTM of 32 x 64 1,030, now 800. Alone in a program 64 x 64 x 64 stays shared, 3.6 us for 4.1.
"""

from __future__ import annotations

import math

from pullback.compiler.lower.storage import Storage
from pullback.loops.ir import ITEMSIZE
from pullback.loops.schedule.machine import host

JOIN_NS = 1000.0  # until a thread that waits has begun and its end is seen, and what its caches lack
LINE_NS, STREAMED_NS = 12.0, 0.6  # a line that another core has written, back and forth; one of many
FIRST = 400  # lines before they come in a stream
SPREAD = 1 << 17  # bytes from which threads share what writes or reads them, too: each has its part already
UNEVEN = 1.2  # times its share that the last thread works


def pays(work_ns: float, out: Storage, *operands: Storage) -> bool:
    """Whether threads had better share work of so many nanoseconds of one core on these operands."""
    machine = host()
    written = [s for s in operands if s.buffer.space not in ("input", "constant")]
    if out.buffer.space != "output":  # which nothing may read here
        written.append(out)
    sizes = list(map(_bytes, written))
    lines = 0 if any([size >= SPREAD for size in sizes]) else sum(sizes) / machine.line
    handed_ns = JOIN_NS + LINE_NS * min(lines, FIRST) + STREAMED_NS * max(0, lines - FIRST)
    return work_ns * (1 - UNEVEN / machine.cores) > handed_ns


def _bytes(s: Storage) -> float:
    return math.prod(s.shape) * ITEMSIZE[s.dtype]


__all__ = ["pays"]
