"""Whether a value is stored and read again, or computed wherever it is wanted: a choice by price.

What is stored is computed once, written, and read by each group that wants it, from the cache that still holds it. What
is repeated costs its operations each time, and the arrays that it is made of are read for its sake by each group that
does not read them anyway. Times are the nominal machine's, in ns, so that programs are the same everywhere.

              computed                                        moved
    stored    n * (operations + sources + 1), a load a use    sources once; itself: written, and read by each group
    repeated  evaluations * (operations + sources)            sources that each group would not read otherwise

Measured on two cores of a Zen 4, 16 computations with stencils, fluxes and statistics of 300,000 and 3,000,000 float32,
three forms of each in turn: the choice takes 1.06 of the best of them in the mean, storing whatever costs more than two
additions 1.14 (a stencil with variable coefficients 2.2), never storing 1.06 to 1.08 (a matrix used by rows and by
columns 1.5). The worst choice: a flux of 13 operations is stored that 16 lanes repeat in half the time.
"""

from __future__ import annotations

from collections.abc import Sequence

from pullback.core.avals import ShapedArray
from pullback.loops.schedule.cost import APART, SQUARE_ACCESS
from pullback.loops.schedule.machine import NOMINAL
from pullback.loops.schedule.price import overlapped, source_ns
from pullback.loops.schedule.space import LANES
from pullback.util.record import frozen_record


@frozen_record
class Use:
    """What one group wants of a value."""

    evaluations: float  # at all its indices
    again: int  # bytes of the value's sources that the group would not read otherwise
    turned: bool = False  # neighbours in the innermost loop are not neighbours in memory


def is_repeated(
    aval: ShapedArray,
    operations: float,
    sources: Sequence[ShapedArray],
    uses: Sequence[Use],
    rows: int = 1,
) -> bool:
    """Whether a value that the first cache does not hold is quicker to repeat than to store.

    It takes so many `operations` an element, and reads `sources`; its uses may go through it in so many `rows`, one
    after the other.
    """
    item = aval.dtype.itemsize
    op_ns = NOMINAL.op_ns * max(item, 4) / NOMINAL.vector_bytes
    size, made_of = aval.size * item, sum(v.size * v.dtype.itemsize for v in sources)
    near = (size + made_of) / max(rows, 1)  # bytes that a program goes through from writing a value to reading it
    if not size or near <= NOMINAL.first.bytes:
        return False
    line_ns = source_ns(near, NOMINAL)
    # A larger array is read at elements that lie apart.
    loads = sum(1.0 if v.size < 2 * aval.size else APART * LANES for v in sources)
    once = operations + loads
    written = 2 if near > NOMINAL.last.bytes else 1  # lines that are not in a cache come before they are written
    stored_ops, stored_bytes = aval.size * (once + 1), made_of + size * written
    repeated_ops = repeated_bytes = 0.0
    for use in uses:
        load, far = (SQUARE_ACCESS * LANES, NOMINAL.far) if use.turned else (1.0, 1.0)
        stored_ops += use.evaluations * load
        stored_bytes += size * far
        repeated_ops += use.evaluations * (operations + loads * load)
        repeated_bytes += use.again * far
    byte_ns = line_ns / NOMINAL.line
    stored = overlapped(op_ns * stored_ops, byte_ns * stored_bytes)
    return overlapped(op_ns * repeated_ops, byte_ns * repeated_bytes) <= stored
