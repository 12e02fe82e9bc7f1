"""Passes from loop IR to loop IR, and the plan of the arena. Each is a pure function; CPU_PASSES is their order."""

from collections.abc import Callable

from ..loop_ir.ir import Function
from .buffers import plan_buffers
from .columns import columns
from .counters import counters
from .expand_math import expand_math
from .interchange import interchange
from .outline import outline
from .parallelize import parallelize
from .row_blocks import row_blocks
from .simplify import simplify
from .split import split
from .tile import tile
from .unroll import unroll
from .vectorize import vectorize

Pass = Callable[[Function], Function]

CPU_PASSES: list[Pass] = [
    counters,  # what elements share keeps a loop from being interchanged
    interchange,  # before all others, since it takes kernels apart
    simplify,  # strides are read off indices
    split,  # conditions on indices are known in each part
    unroll,  # straight code has a stride everywhere
    expand_math,  # before costs are estimated: exp is not one op
    columns,  # before lanes are chosen: it writes vector loops of its own
    vectorize,
    tile,  # knows along which axis lanes run
    parallelize,  # knows what runs in lanes, so how long it takes
]

__all__ = [
    "CPU_PASSES",
    "Pass",
    "columns",
    "counters",
    "expand_math",
    "interchange",
    "outline",
    "parallelize",
    "plan_buffers",
    "row_blocks",
    "simplify",
    "tile",
    "unroll",
    "vectorize",
]
