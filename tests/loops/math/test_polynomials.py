"""The coefficient tables keep what they claim: each polynomial's error is measured anew against mpmath."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import mpmath as mp
import numpy as np
import pytest

TOOLS = Path(__file__).resolve().parents[3] / "tools"


def _targets():
    sys.path.insert(0, str(TOOLS))
    try:
        return importlib.import_module("minimax"), importlib.import_module("minimax_targets")
    finally:
        sys.path.remove(str(TOOLS))


MINIMAX, TARGETS = _targets()
ALL = [(subject, target) for subject, targets in TARGETS.TARGETS.items() for target in targets]


@pytest.mark.parametrize(("subject", "target"), ALL, ids=[target.name for _, target in ALL])
def test_error_is_as_claimed(subject, target):
    table = importlib.import_module(f"pullback.loops.math._tables.{subject}")
    polynomial = getattr(table, target.name)
    assert len(polynomial.coefficients) == target.degree + 1
    assert polynomial.dtype == target.dtype and polynomial.target == target.text
    low, high = polynomial.interval
    assert abs(low - target.low) < 1e-9 and abs(high - target.high) < 1e-9
    rounded = [float(np.float32(c)) if target.dtype == "f32" else c for c in polynomial.coefficients]
    with mp.workdps(60):
        bits = MINIMAX.bits_of(target, rounded, polynomial.centre, count=41)
    assert bits >= polynomial.bits - 0.05


def test_remez_finds_a_known_polynomial():
    """The best quadratic for x^3 on [-1, 1] is 3/4 x: the error is the Chebyshev polynomial T3 / 4."""
    target = MINIMAX.Target("t", "f64", "", lambda x: x**3, lambda x: mp.mpf(1), mp.mpf(-1), mp.mpf(1), 2)
    coefficients, bits = MINIMAX.polynomial(target)
    assert np.allclose(coefficients, [0, 0.75, 0], atol=1e-3) and abs(bits - 2) < 1e-2
