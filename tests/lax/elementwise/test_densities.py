"""Derivatives of igamma, igammac and betainc in x are densities, against mpmath: logarithms of gamma cancel there."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest

import pullback as pb
from pullback import lax

Z = np.array([-5.0, -1.5, -0.2, 0.3, 2.0, 5.0])  # standard deviations from the mean


def log_gamma_density(a, x):
    return (a - 1) * mp.log(x) - x - mp.loggamma(a)


def log_beta_density(a, b, x):
    log_beta = mp.loggamma(a) + mp.loggamma(b) - mp.loggamma(a + b)
    return (a - 1) * mp.log(x) + (b - 1) * mp.log(1 - x) - log_beta


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_densities_of_large_parameters(kind):
    """In f32 that of gamma(1e5) was 5 % off, and that of beta(1e5, 1e5) 36 %."""
    eps = float(np.finfo(kind).eps)
    a = np.repeat([0.5, 9.0, 11.0, 1e3, 1e5, 1e9], 6)
    x = a + np.sqrt(a) * np.resize(Z, a.size)
    a, x = (v[x > 0].astype(kind) for v in (a, x))
    pairs = [(0.5, 2.0), (1e5, 1e5), (1e8, 1e6), (0.01, 1e6), (0.5, 1e4), (15.0, 1e9), (2.5, 20.0)]
    p, q = np.repeat(np.array(pairs + [pair[::-1] for pair in pairs]), 6, axis=0).T
    mean, deviation = p / (p + q), np.sqrt(p * q / (p + q) ** 3)
    y = mean + deviation * np.resize(Z, p.size)
    inside = (y.astype(kind) > 0) & (y.astype(kind) < 1)
    p, q, y = (v[inside].astype(kind) for v in (p, q, y))
    with pb.enable_x64(True), mp.workdps(40):
        slope = lambda f, place: pb.jit(pb.vmap(pb.grad(f, place)))
        lower, upper = slope(lax.igamma, 1)(a, x), slope(lax.igammac, 1)(a, x)
        assert np.array_equal(lower, -upper)
        want = [mp.exp(log_gamma_density(*map(mp.mpf, row))) for row in zip(a.tolist(), x.tolist())]
        # Beside the exponent's own rounding, far out.
        error = [abs(float(v) / w - 1) / (eps * (2 + abs(mp.log(w)))) for v, w in zip(lower, want)]
        assert max(error) < 20

        first, second = slope(lax.betainc, 2)(p, q, y), slope(pb.grad(lax.betainc, 2), 2)(p, q, y)
        for *row, f, s in zip(p.tolist(), q.tolist(), y.tolist(), first.tolist(), second.tolist()):
            c, d, t = map(mp.mpf, row)
            value = mp.exp(log_beta_density(c, d, t))
            growth = (c - 1) / t - (d - 1) / (1 - t)
            if not 1e-30 < value < 1e30:
                continue
            moved = 2 + abs(mp.log(value)) + abs(growth * t)  # what a rounded x changes
            assert abs(f / value - 1) < 20 * eps * moved, (row, f, float(value))
            change = abs(growth) * moved + (c + d) / (t * (1 - t))
            assert abs(s - value * growth) < 20 * eps * value * change, (row, s, float(value * growth))


def test_densities_at_the_ends():
    """0 or infinite, as the powers of x and 1 - x are."""
    slope = pb.vmap(pb.grad(lax.igamma, 1))
    a = np.array([2.0, 11.0, 0.5, 11.0, 300.0], np.float32)
    x = np.array([0.0, 0.0, 0.0, np.inf, 1e20], np.float32)
    for way in (lambda f: f, pb.jit):
        found = way(slope)(a, x)
        assert np.array_equal(found[:3], [0, 0, np.inf]) and np.array_equal(found[4:], [0])
        a3 = np.array([2.0, 20.0, 0.5, 3.0, 0.0], np.float32)
        b3 = np.array([30.0, 30.0, 30.0, 20.0, 20.0], np.float32)
        x3 = np.array([0.0, 0.0, 0.0, 1.0, 0.5], np.float32)
        assert np.array_equal(way(pb.vmap(pb.grad(lax.betainc, 2)))(a3, b3, x3), [0, 0, np.inf, 0, 0])
