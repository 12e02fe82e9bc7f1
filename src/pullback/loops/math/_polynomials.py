"""A polynomial with the statement of what it approximates; the tables in `_tables` are made of these."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Polynomial:
    """sum coefficients[k] (z - centre)^k approximates `target`(z) on `interval`, weighted error at most 2**-bits.

    The claim is about exact arithmetic with the rounded coefficients; a test measures it anew against mpmath.
    """

    dtype: str  # all coefficients are numbers of this type
    target: str
    interval: tuple[float, float]
    bits: float
    coefficients: tuple[float, ...]  # lowest power first
    centre: float = 0.0
