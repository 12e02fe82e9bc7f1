"""The same computations in several spellings: a family's programs should take the same time, and none more than JAX.

`python -m benchmarks --only variants` ends with how far the spellings of each family lie apart.
"""

from . import (
    bits,
    elements,
    images,
    made,
    pairs,
    parts,
    picks,
    places,
    rows,
    series,
    statistics,
    steps,
    training,
    turns,
)

PROGRAMS = [
    *rows.PROGRAMS,
    *training.PROGRAMS,
    *statistics.PROGRAMS,
    *steps.PROGRAMS,
    *places.PROGRAMS,
    *turns.PROGRAMS,
    *parts.PROGRAMS,
    *picks.PROGRAMS,
    *elements.PROGRAMS,
    *bits.PROGRAMS,
    *made.PROGRAMS,
    *pairs.PROGRAMS,
    *series.PROGRAMS,
    *images.PROGRAMS,
]
