"""What products cost, by which it is decided who computes them, and what is copied first.

Threads share a product where that saves more than they hand over to each other. One that waits begins within a third of
a microsecond. What takes longer is that one reads what another has written: the first lines one by one, until they come
in a stream, and then the writer must take them back. Inputs and constants lie in all caches alike, so a product of
these alone is worth threads far sooner than one in the middle of a program. Results are the same either way, as they
are however operands are read.

Measured (two cores of a Xeon with AMX, float32, a product in each step of a scan): shared, 64 x 64 x 64 took 6.0 us,
now 3.2; 100 x 100 x 100 and tanh of it 22.9, now 16.8; 128 x 128 x 128, still shared, 20.6 where one thread takes 24.2;
50 steps of an LSTM of 32 x 64 1,030, now 800. Alone in a program 64 x 64 x 64 stays shared, 3.6 us for 4.1.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter

from pullback.compiler.lower.storage import Storage
from pullback.compiler.products.kernels import CHAIN
from pullback.loops.emit.access import SCRATCH_BYTES
from pullback.loops.ir import ITEMSIZE
from pullback.loops.schedule.machine import host
from pullback.loops.schedule.row_blocks import BYTES, SHARED

REAL = {"c64": "f32", "c128": "f64"}

JOIN_NS = 1000.0  # until a thread that waits has begun and its end is seen, and what its caches lack
LINE_NS, STREAMED_NS = 12.0, 0.6  # a line that another core has written, back and forth; one of many
FIRST_LINES = 400  # lines before they come in a stream
SPREAD_BYTES = 1 << 17  # bytes from which threads share what writes or reads them, too: each has its part already
LAST_THREAD_SHARE = 1.2  # times its share that the last thread works
MULTIPLY_ADD_NS = 0.18  # of one core, for a vector of them: two of these a cycle, less what the kernel takes to begin
CACHED_BYTES = 1 << 14  # bytes of y that may be read in place, since the first cache holds them
FEW_ROWS = 64  # rows of x below which y in a near cache is read too seldom to be packed
FORESEEN_BYTES = 2048  # bytes of a row: from there on one is not foreseen
RUN_BYTES = 512  # bytes of such a row that are read together, where they can be
PACKING_VISITS = 4  # of a line in the second cache when it is packed: written, looked up, and read twice
MAX_ROW_BLOCKS = 16  # blocks of rows that large products are cut into; beyond that columns are cut
LONGEST_PANEL = 4096  # contracted elements up to which a panel of y stays in the second cache
OTHER_LINES = 2  # lines of each set of the first cache through which y and the results go


def threads_pay(ns: float, out: Storage, *operands: Storage) -> bool:
    """Whether threads had better share work of so many nanoseconds of one core on these operands."""
    machine = host()
    written = [s for s in operands if s.buffer.space not in ("input", "constant")]
    if out.buffer.space != "output":  # which nothing may read here
        written.append(out)
    sizes = list(map(_bytes, written))
    lines = 0 if any([size >= SPREAD_BYTES for size in sizes]) else sum(sizes) / machine.line
    handed_ns = JOIN_NS + LINE_NS * min(lines, FIRST_LINES) + STREAMED_NS * max(0, lines - FIRST_LINES)
    return ns * (1 - LAST_THREAD_SHARE / machine.cores) > handed_ns


def _bytes(s: Storage) -> float:
    return math.prod(s.shape) * ITEMSIZE[s.dtype]


def parts(s: Storage) -> int:
    """Real numbers in an element."""
    return 2 if s.dtype in REAL else 1


def work_ns(out: Storage, multiply_adds: float) -> float:
    """What so many multiply-adds of elements take one core."""
    real = REAL.get(out.dtype, out.dtype)
    return multiply_adds * parts(out) ** 2 * ITEMSIZE[real] / host().vector_bytes * MULTIPLY_ADD_NS


def alone_pays(dtype: str, count: int, work: int) -> bool:
    """Whether each matrix of a batch is better one thread's own than shared by all, who then begin twice for each: to
    pack, and to multiply. The results are the same.
    """
    machine = host()
    one = work * machine.op_ns * ITEMSIZE[dtype] / machine.vector_bytes
    return -(-count // machine.cores) * one <= count * (one / machine.cores + 2 * machine.wake_ns)


def copy_pays(x: Storage, m: int, n: int, rows: int, columns: int) -> bool:
    """Whether rows of x are better copied to other places: a line that the first cache does not keep is fetched again
    for each of its elements and each panel of y, a copy reads and writes it once.
    """
    lost = _competing(x.strides[0] * ITEMSIZE[x.dtype], rows)
    if not lost or m < rows:
        return False
    machine = host()
    held = machine.second if x.size * ITEMSIZE[x.dtype] <= machine.second.bytes else machine.last
    again = x.size * lost / rows * -(-n // columns) * machine.second.line_ns
    return again > 2 * x.size * ITEMSIZE[x.dtype] / machine.line * held.line_ns + machine.wake_ns


def _competing(apart: int, rows: int) -> int:
    """Lines of the first cache that a block of rows, so many bytes apart, reads and cannot keep there."""
    first, line = host().first, host().line
    places = Counter(row * apart % first.way // line for row in range(rows))
    spare = first.ways - OTHER_LINES
    return sum(count for count in places.values() if count > spare)


def packing_pays(size: int, row: int, m: int, rows: int) -> bool:
    """Whether y of so many bytes, in rows of so many, is better packed once than read where it lies by each block of
    `rows` of the m rows of x: of long rows a panel is on another page for each, which no prefetcher foresees.

    Measured (two cores of a Xeon): 16 and 32 rows by 1024 x 1024 in place 229 and 455 us, packed 170 and 250; by 512 x
    512, which stay in the second cache, in place 42 and 98 us of one core, packed 76 and 129.
    """
    machine = host()
    if size <= CACHED_BYTES:
        return False
    if size // machine.cores <= machine.second.bytes * 3 // 4 or row < FORESEEN_BYTES:
        return m >= FEW_ROWS
    line_ns = machine.last.line_ns if size <= machine.last.bytes else machine.memory_ns
    return -(-m // rows) * machine.far * line_ns > line_ns + PACKING_VISITS * machine.second.line_ns


def together_ns(out: Storage, x: Storage, y: Storage, rows: int) -> float:
    """What it costs, beside the product, that one thread packs y for all: they wait for it, fetch it from its caches,
    and again for each block of rows. Nests that read a large result join such blocks, and no others.
    """
    (m, k), n, machine = x.shape, y.shape[1], host()
    size = _itemsize(out)
    if k * n * size <= SHARED and m * n * size >= BYTES:
        return 0.0
    others = machine.cores * k * n * size / machine.line * machine.last.line_ns
    again = _read_ns(min(m // rows, MAX_ROW_BLOCKS) * k * n, k * n, size)
    return _packing_ns(k * n * size) + others + again + machine.cores * machine.join_ns


def own_panels_ns(out: Storage, x: Storage, y: Storage, rows: int, columns: int) -> float:
    """The same where threads pack panels of y of their own, just before they multiply all of x with them: y goes
    through the caches once, and x once for each panel. Infinite where there are too few panels, or no place for sums.
    """
    (m, k), n, machine = x.shape, y.shape[1], host()
    size = _itemsize(out)
    if n < 2 * columns or k > LONGEST_PANEL:
        return math.inf
    group, pieces = groups(out.dtype, y, columns, m + rows)
    if pieces > 1 and _sums(out.dtype, n, columns, group, m + rows) > SCRATCH_BYTES:
        return math.inf
    uneven = _busiest(n, columns, group) * machine.cores * columns / n - 1
    again = _read_ns(n // columns * m * k, m * k // pieces, size)
    return _packing_ns(k * n * size) / machine.cores + again + uneven * work_ns(out, m * n * k)


def own_copies_ns(out: Storage, x: Storage, y: Storage, rows: int, columns: int) -> float:
    """The same where each thread packs all of y for itself and takes a block of rows; infinite where y is too large."""
    (m, k), n, machine = x.shape, y.shape[1], host()
    held = -(-n // columns) * columns * k * _itemsize(out)
    if n < columns or held > SCRATCH_BYTES or m // rows < machine.cores:
        return math.inf
    most = -(-(m // rows) // machine.cores) * rows + m % rows
    return _packing_ns(held) + work_ns(out, (most - m / machine.cores) * n * k)


def _itemsize(out: Storage) -> int:
    """Bytes of a panel's elements: of complex numbers they are there twice."""
    return ITEMSIZE[out.dtype] * parts(out)


def _packing_ns(size: float) -> float:
    machine = host()
    return size / machine.line * PACKING_VISITS * machine.second.line_ns


def _read_ns(elements: int, held: int, size: int) -> float:
    """Reading so many elements of what has `held` ones: half of a cache is for others, and of the second one the kernel
    does not wait.
    """
    machine = host()
    if 2 * held * size <= machine.second.bytes:
        return 0.0
    near = 2 * held * size <= machine.last.bytes
    return elements * size / machine.line * (machine.last.line_ns if near else machine.memory_ns)


def read_far(y: Storage) -> bool:
    """Whether y, read along its rows in short runs, is waited for at each: its lines come from beyond the second cache,
    and no prefetcher sees the next one.
    """
    (k, n), size, machine = y.shape, ITEMSIZE[y.dtype], host()
    if y.strides[1] != 1 or k < 2 or y.strides[0] * size < FORESEEN_BYTES:
        return False
    return k * n * size // machine.cores > machine.second.bytes * 3 // 4


def groups(dtype: str, y: Storage, columns: int, m: int, below: bool = False) -> tuple[int, int]:
    """(panels that are packed together, pieces of the contracted axis): these take an eighth of the second cache, and
    half of what a thread keeps at most, as its last group may have a panel more.

    Two panels are longer runs of y, and as many as make RUN_BYTES where it is `read_far`, of shorter pieces; not where
    a thread has a tenth more to do by that, or sums that it cannot keep. With `below` it is one, in pieces of two.

    Measured (two cores of a Zen 3, two panels at a time and eight, us): 8 x 4096 by 4096 x 1024 in float32 and float64
    2,840 and 6,900, now 1,980 and 3,700; 64 x 1024 by 1024 x 1024 1,590 and 3,670, now 1,390 and 3,040.
    """
    k, n = y.shape
    row = columns * ITEMSIZE[dtype] * (2 if dtype in REAL else 1)
    held = min(host().second.bytes // 8, SCRATCH_BYTES // 2)

    def pieces_of(group: int, held: int) -> int:
        most = max(held // (group * row) // CHAIN, 1) * CHAIN
        return min(-(-k // most), max(k // CHAIN, 1))

    def suits(group: int, pieces: int) -> bool:
        even = 10 * _busiest(n, columns, group) <= 11 * _busiest(n, columns, 1)
        return even and (pieces == 1 or _sums(dtype, n, columns, group, m) <= SCRATCH_BYTES)

    group = RUN_BYTES // row
    while group > 2 and not below and read_far(y):
        pieces = pieces_of(group, min(host().second.bytes // 4, SCRATCH_BYTES // 2))
        if suits(group, pieces):
            return group, pieces
        group //= 2
    pieces = pieces_of(2, held)
    return 2 if not below and suits(2, pieces) else 1, pieces


def _sums(dtype: str, n: int, columns: int, group: int, m: int) -> int:
    """Bytes of the sums of pieces that a thread keeps for m rows: of as many panels as the largest group has."""
    full = n // columns
    most = -(-full // -(-full // group)) + (n % columns > 0)
    return m * most * columns * ITEMSIZE[dtype]


def tasks_of(n: int, columns: int, group: int) -> tuple[int, int]:
    """(tasks, panels that they share) for n columns in groups of panels, of which a task has one whole one at least:
    what is left of n columns is a panel that overlaps the one before.
    """
    full, panels, cores = n // columns, -(-n // columns), host().cores
    tasks = min(-(-full // (group * cores)) * cores, full)
    return tasks, panels if panels > tasks else full


def _busiest(n: int, columns: int, group: int) -> int:
    """Panels that one thread takes at most, where they go in groups: threads begin with equal shares of the tasks."""
    tasks, units = tasks_of(n, columns, group)
    shares = [k * tasks // host().cores * units // tasks for k in range(host().cores + 1)]
    return max(b - a for a, b in itertools.pairwise(shares)) + (-(-n // columns) > units)
