"""How long eager work takes without compilation, and what a compilation is worth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from pullback._ext import _core
from pullback.core.primitive import Primitive

BLAS = "fdFD"  # types of products that NumPy leaves to a library
COMPILATION = _core.COMPILATION  # nanoseconds that one takes
GAIN = 0.5  # the part of a plan's time that compiled code is likely to save
HOST_CALL = 36_000  # a reference takes about 20,000, of which compiled code saves nine tenths, not half
DECOMPOSITION = 30_000  # what NumPy does around LAPACK for one matrix
# And for each matrix of a stack: most references call LAPACK from Python, one by one, which takes 30,000, nearly all of
# which compiled code saves: eigenvalues of 128 of 3 x 3 took 4 ms in each of the first 8 calls, compiled 0.1.
MATRIX = 60_000
UNCOMPILED = 1_000  # plans that take fewer nanoseconds stay plans


def uses_before_compilation(nanoseconds: float) -> int:
    """How many runs of a plan would pay for a compilation; 0: it is not worth one."""
    return 1 + int(COMPILATION / (GAIN * nanoseconds)) if nanoseconds > UNCOMPILED else 0


def is_too_long(nanoseconds: float) -> bool:
    """Whether one run of a plan takes longer than a compilation may: it is compiled before it has run at all.

    Compiled code hears Ctrl-C, too (loops/emit/interrupt.py). A plan does not, as NumPy's loops and references do not.
    """
    return GAIN * nanoseconds > COMPILATION


# What NumPy does for a term of a product or window, as a part of what it does for an element of an array. The routines
# of LAPACK take from 1 / 40 to 1 / 2 of it for each of the n^3 of a matrix.
TERM, TERM_OF_BLAS, TERM_OF_LAPACK = 1.0, 0.02, 0.02


def work(primitive: Primitive, avals: Sequence[Any], outs: Sequence[Any], params: dict[str, Any]) -> float:
    """About what the reference does, in elements that NumPy handles."""
    size = max((a.size for a in (*avals, *outs)), default=0)
    if "matrices" in primitive.traits and avals and avals[0].ndim >= 2:
        return max(size, TERM_OF_LAPACK * size * min(avals[0].shape[-2:]))
    if primitive.name == "dot_general":
        ((contracted, _), _) = params["dimension_numbers"]
        terms = math.prod([avals[0].shape[d] for d in contracted])
    elif "product" in primitive.traits and len(avals) == 2:  # convolutions
        terms = avals[1].size // max(1, outs[0].shape[params["dimension_numbers"].out_spec[1]])
    elif "window_dimensions" in params:
        return max(size, TERM * size * math.prod(params["window_dimensions"]))
    else:
        return size
    return max(size, outs[0].size * terms * (TERM_OF_BLAS if avals[0].dtype.char in BLAS else TERM))
