"""The coefficient tables keep what they claim: each polynomial's error is measured anew against mpmath."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import mpmath as mp
import numpy as np
import pytest
import scipy.special as sp
from loops.math import kit

TOOLS = Path(__file__).resolve().parents[3] / "tools"


def _targets():
    sys.path.insert(0, str(TOOLS))
    try:
        return [importlib.import_module(name) for name in ("minimax", "minimax_targets", "piece_tables")]
    finally:
        sys.path.remove(str(TOOLS))


MINIMAX, TARGETS, PIECES = _targets()
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


@pytest.mark.parametrize("target", PIECES.TARGETS, ids=[target.name for target in PIECES.TARGETS])
def test_pieces_are_as_claimed(target):
    """The polynomials, and what is computed with them: exactly 1 where the function rounds to 1, and never more."""
    table = getattr(importlib.import_module("pullback.loops.math._tables.pieces"), target.name)
    assert (table.limit, table.density) == (target.limit, target.density)
    with mp.workdps(40):
        assert PIECES.error(target, [list(row) for row in table.coefficients], list(table.centres), 12) <= table.ulps
    root, (variable,) = kit.expansion(target.text.split()[-2], ("f32",), lookups=target.register // 4)
    x = np.concatenate([np.geomspace(1e-45, 20, 300_000).astype(np.float32), kit.spread("f32", 4000)])
    got = kit.evaluate(root, {variable: x})
    with np.errstate(invalid="ignore"):
        want = {"erf": sp.erf, "erfc": sp.erfc, "tanh": np.tanh}[target.text.split()[-2]](x.astype(np.float64))
    error, place = kit.worst(got, want, x)
    print(f"{target.name}: {error:.3f} ulp")
    assert error <= (1.2 if target.odd else 1.9), place
    if not target.odd:
        return
    assert (got[np.abs(x) >= target.limit] == np.sign(x[np.abs(x) >= target.limit])).all()
    assert np.nanmax(np.abs(got)) == 1 and (np.signbit(got) == np.signbit(x))[~np.isnan(x)].all()


def test_remez_finds_a_known_polynomial():
    """The best quadratic for x^3 on [-1, 1] is 3/4 x: the error is the Chebyshev polynomial T3 / 4."""
    target = MINIMAX.Target("t", "f64", "", lambda x: x**3, lambda x: mp.mpf(1), mp.mpf(-1), mp.mpf(1), 2)
    coefficients, bits = MINIMAX.polynomial(target)
    assert np.allclose(coefficients, [0, 0.75, 0], atol=1e-3) and abs(bits - 2) < 1e-2
