"""Polynomials with the statement of what they approximate; the tables in `_tables` are made of these."""

from __future__ import annotations

from pullback.util.record import frozen_record


@frozen_record
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


@frozen_record
class Pieces:
    """A function of x on [0, limit] by one polynomial for each of 8 or 16 pieces; an odd one rounds to 1 at the limit.

    Piece k, on x within 1/2 of k / density, is sum coefficients[j][k] h^j with h = x - centres[k], of an odd function
    h more; the error is at most `ulps` units in the last place, in exact arithmetic with the rounded coefficients. A
    test measures it anew against mpmath.
    """

    dtype: str
    target: str
    limit: float
    density: float
    ulps: float
    odd: bool
    centres: tuple[float, ...]
    coefficients: tuple[tuple[float, ...], ...]  # lowest power first
