"""Incomplete gamma and beta functions, zeta and polygamma against mpmath: errors measured in units of eps."""

from __future__ import annotations

import importlib
import math
import sys
from pathlib import Path

import mpmath as mp
import numpy as np
import pytest
from loops.math import kit

import pullback
import pullback.numpy as jnp
from pullback import lax
from pullback.loops.ir.interpret import interpret

TOOLS = Path(__file__).resolve().parents[3] / "tools"
INF, NAN = math.inf, math.nan
RNG = np.random.default_rng(0)


def gamma_points(size: int = 25) -> tuple[np.ndarray, np.ndarray]:
    """Shapes from 0.01 to 5000, arguments around them, near them and around 1."""
    a = np.exp(RNG.uniform(np.log(0.01), np.log(5000), size))
    x = [a * RNG.uniform(0.2, 3, size), a * (1 + RNG.normal(size=size) / np.sqrt(a)).clip(0.01)]
    x.append(np.exp(RNG.uniform(-3, 3, size)))
    return np.tile(a, 3), np.concatenate(x)


def beta_points(size: int = 60) -> tuple[np.ndarray, ...]:
    p, q = np.exp(RNG.uniform(-3, 6, (2, size)))
    return p, q, np.clip(p / (p + q) + RNG.normal(size=size) * 0.2, 0.001, 0.999)


def slope(a, x):
    """dP/da by a central difference in 50 digits, of whichever of P and -Q is small."""
    h = mp.mpf(10) ** -15 * max(1, a)
    f = lambda t: mp.gammainc(t, 0, x, regularized=True) if x < a else -mp.gammainc(t, x, mp.inf, regularized=True)
    return (f(a + h) - f(a - h)) / (2 * h)


def log_gamma_density(a, x):
    return (a - 1) * mp.log(x) - x - mp.loggamma(a)


CASES = {
    "igamma": (gamma_points, lambda a, x: mp.gammainc(a, 0, x, regularized=True)),
    "igammac": (gamma_points, lambda a, x: mp.gammainc(a, x, mp.inf, regularized=True)),
    "igamma_grad_a": (lambda: gamma_points(8), slope),
    "random_gamma_grad": (lambda: gamma_points(8), lambda a, x: -slope(a, x) / mp.exp(log_gamma_density(a, x))),
    "regularized_incomplete_beta": (beta_points, lambda p, q, x: mp.betainc(p, q, 0, x, regularized=True)),
    "zeta": (lambda: (1 + np.exp(RNG.uniform(-3, 4, 60)), np.exp(RNG.uniform(-4, 5, 60))), mp.zeta),
    "polygamma": (
        lambda: (RNG.integers(0, 8, 60).astype(float), np.exp(RNG.uniform(-4, 5, 60))),
        lambda m, x: mp.psi(int(m), x),
    ),
}
# In units of eps: f32 is computed in f64. In f64 the exponents of far tails and of B(p, q) cost what they are large.
# The exponent of the incomplete beta is rounded to one double.
BOUNDS = {"regularized_incomplete_beta": 400, "polygamma": 20}
FAR = [(1391.7734699401333, 2807.0409020321517), (3883.218998872048, 3078.1860695839487), (188.9, 5.75), (2.0, 640.0)]


@pytest.mark.parametrize("a, x", FAR)
def test_gamma_functions_in_far_tails(a, x):
    """Exponents that one double would round to hundreds of eps of the result."""
    for name in ("igamma", "igammac"):
        want = CASES[name][1](mp.mpf(a), mp.mpf(x))
        got = kit.compiled(name, np.array([a]), np.array([x]))[0]
        assert abs(got - want) <= 10 * np.finfo(float).eps * want, name


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_the_upper_gamma_function_of_small_shapes(dtype):
    """1 - P would have no digits: Q is about a E1(x)."""
    kind = kit.NP_DTYPE[dtype]
    shapes = [1e-20, 1e-5, 0.01, 0.3, 0.499]
    a, x = (v.ravel() for v in np.meshgrid(np.array(shapes, kind), np.array([1e-30, 1e-5, 0.1, 0.999999, 1.001], kind)))
    got = kit.compiled("igammac", a, x).astype(float)
    with mp.workdps(40):
        want = np.array([float(CASES["igammac"][1](mp.mpf(float(p)), mp.mpf(float(q)))) for p, q in zip(a, x)])
    np.testing.assert_allclose(got, want, rtol=10 * float(np.finfo(kind).eps))


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("name", CASES)
def test_against_mpmath(name, dtype, capsys):
    kind = kit.NP_DTYPE[dtype]
    points, function = CASES[name]
    args = [v.astype(kind) for v in points()]
    got = kit.compiled(name, *args).astype(np.float64)
    with mp.workdps(150 if name == "zeta" else 50):  # mpmath's zeta has so many digits behind the point, of 1e-90 too
        want = np.array([float(function(*(mp.mpf(float(v)) for v in row))) for row in zip(*args)])
    normal = (np.abs(want) > (1e-37 if dtype == "f32" else 1e-290)) & (np.abs(want) < np.finfo(kind).max)
    error = np.where(normal, np.abs(got - want) / np.where(want == 0, 1, np.abs(want)), 0) / np.finfo(kind).eps
    k = int(np.argmax(error))
    with capsys.disabled():
        print(f"\n{name} {dtype}: {error[k]:.3g} eps, 90 % below {np.quantile(error, 0.9):.2g}", end="")
    bound = (2 if name == "polygamma" else 1) if dtype == "f32" else BOUNDS.get(name, 10)
    assert error[k] <= bound, [v[k] for v in args]


EDGES = {
    "igamma": [(1, 0, 0), (0, 1, 1), (0, 0, NAN), (-1, 1, NAN), (1, -1, NAN), (2, INF, 1), (INF, 2, 0), (NAN, 1, NAN)],
    "igammac": [(1, 0, 1), (0, 1, 0), (0, 0, NAN), (-1, 1, NAN), (2, INF, 0), (INF, 2, 1), (1, NAN, NAN)],
    "igamma_grad_a": [(1, 0, 0), (1, INF, 0), (-1, 1, NAN), (1, NAN, NAN)],
    "random_gamma_grad": [(1, 0, 0), (-1, 1, NAN), (1, NAN, NAN)],
    "regularized_incomplete_beta": [
        (1, 2, 0, 0),
        (1, 2, 1, 1),
        (-1, 2, 0.5, NAN),
        (1, 2, 1.5, NAN),
        (1, 1, 0.5, 0.5),
        # Steps at 0 and at 1, as JAX and SciPy have them.
        *[(0, q, x, x > 0) for q in (0.5, 1, 30) for x in (0, 1e-20, 0.5, 1)],
        *[(p, INF, x, x > 0) for p in (0.5, 1, 30) for x in (0, 1e-20, 0.5, 1)],
        *[(p, 0, x, x == 1) for p in (0.5, 1, 30) for x in (0, 1e-20, 0.5, 1)],
        *[(INF, q, x, x == 1) for q in (0.5, 1, 30) for x in (0, 1e-20, 0.5, 1)],
        (0, 0, 0.5, NAN),
        (INF, INF, 0.5, NAN),
        (0, INF, 0.5, 1),
        (INF, 0, 0.5, 0),
        (3e38, 10, 1, 1),
        (NAN, 1, 0.5, NAN),
        (1, NAN, 0.5, NAN),
        (1, 1, NAN, NAN),
    ],
    "zeta": [(1, 2, INF), (0.5, 2, NAN), (2, 0, INF), (NAN, 1, NAN), (2, 1, math.pi**2 / 6), (3000, 2, 0)],
    "polygamma": [(1.5, 2, NAN), (-1, 2, NAN), (1, 0, INF), (2, 0, -INF), (1, 1, math.pi**2 / 6), (1, NAN, NAN)],
}


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("name", EDGES)
def test_edges(name, dtype):
    kind = kit.NP_DTYPE[dtype]
    *args, want = (np.array(column, kind) for column in zip(*EDGES[name]))
    got = kit.compiled(name, *args)
    assert np.allclose(got, want, rtol=4 * np.finfo(kind).eps, atol=0, equal_nan=True), list(zip(*args, got, want))


@pytest.mark.parametrize("name", ["igamma", "random_gamma_grad", "regularized_incomplete_beta", "zeta"])
def test_interpreted_is_compiled(name):
    """The loops that these functions write mean the same to the interpreter of the loop IR."""
    args = [v[:12] for v in CASES[name][0]()]
    function, _ = kit.program(name, args, {})
    with np.errstate(all="ignore"):
        (want,) = interpret(function, args)
    assert np.allclose(kit.compiled(name, *args), want, rtol=1e-12, atol=0)


def incomplete_beta(p, q, x):
    """I_x(p, q) in 40 digits, by the integral over log(t / (1 - t)) of whichever tail is the smaller, in panels."""
    p, q, x = map(mp.mpf, (p, q, x))
    swap = x > p / (p + q)
    if swap:
        p, q = q, p
    u, v = (1 - x, x) if swap else (x, 1 - x)
    log_density = lambda t, rest: p * mp.log(t) + q * mp.log(rest)
    top = log_density(u, v)
    f = lambda s: mp.exp(log_density(1 / (1 + mp.exp(-s)), 1 / (1 + mp.exp(s))) - top)
    end, total = mp.log(u / v), mp.mpf(0)
    slope, bend = p - (p + q) * u, (p + q) * u * v
    width = min(20 / (slope + mp.sqrt(slope * slope + 60 * bend)), mp.mpf(6))  # the integrand bends within 2 pi
    while True:
        panel = mp.quad(f, [end - width, end], maxdegree=5)
        total, end = total + panel, end - width
        if panel < total * mp.mpf(10) ** -18:
            break
        width *= mp.mpf("1.5")
    tail = total * mp.exp(top - mp.loggamma(p) - mp.loggamma(q) + mp.loggamma(p + q))
    return 1 - tail if swap else tail


def test_incomplete_beta_of_large_parameters():
    """Equal ones, and one small and one large, up to 1e10, around the mean and far out; within what x rounded changes.

    A fraction of fixed length alone was off by 6e-4 for 1e5 and 1e5, and by 15 % for 1e6 and 1e6.
    """
    pairs = [(5e3, 5e3), (2e4, 3e4), (1e5, 1e5), (1e6, 1e6), (1e10, 1e10), (1e8, 1e10)]
    pairs += [(small, large) for small, large in ((0.01, 1e10), (2.5, 1e10), (19.0, 1e5), (21.0, 1e10), (700.0, 1e4))]
    pairs += [pair[::-1] for pair in pairs]
    points = []
    for p, q in pairs:
        mean, deviation = p / (p + q), math.sqrt(p * q / (p + q) ** 3)
        points += [(p, q, mean + z * deviation) for z in (-6, -0.3, 0.1, 5)]
    points = np.array([row for row in points if 0 < row[2] < 1])
    with pullback.enable_x64(True), mp.workdps(30):
        for kind, bound in ((np.float32, 1.0), (np.float64, 100.0)):
            rows = points[:: 1 if kind == np.float64 else 3].astype(kind)
            rows = rows[(rows[:, 2] > 0) & (rows[:, 2] < 1)]
            got = np.asarray(pullback.jit(lax.betainc)(*rows.T), np.float64)
            for row, found in zip(rows.astype(np.float64), got):
                p, q, x = map(mp.mpf, row)
                want = incomplete_beta(p, q, x)
                log_density = (p - 1) * mp.log(x) + (q - 1) * mp.log(1 - x)
                density = mp.exp(log_density - mp.loggamma(p) - mp.loggamma(q) + mp.loggamma(p + q))
                rounded = 0 if kind == np.float32 else x * density  # by a relative change of x, f32 being exact in f64
                unit = np.finfo(kind).eps * (want + rounded)
                assert abs(found - want) <= bound * unit, (kind, row, found, float(want))


def test_nodes_of_the_quadrature():
    """They are the zeros of Legendre's polynomial of degree 32, and the rule is exact up to degree 63."""
    from pullback.loops.math._tables.quadrature import NODES, WEIGHTS

    with mp.workdps(40):
        assert max(abs(mp.legendre(32, 2 * mp.mpf(t) - 1)) for t in NODES) < 1e-13
        nodes = [mp.mpf(t) for t in NODES] + [1 - mp.mpf(t) for t in NODES]
        for power in (0, 1, 2, 17, 62, 63):
            total = mp.fsum(w * t**power for w, t in zip(WEIGHTS * 2, nodes))
            assert abs(total * (power + 1) - 1) < 1e-14


def test_coefficients_of_the_uniform_expansion():
    """The table is what the recurrences give, and the expansion at x = a is half of one minus DLMF 8.11.12's terms."""
    from pullback.loops.math._tables.incomplete import TEMME

    sys.path.insert(0, str(TOOLS))
    try:
        tool = importlib.import_module("uniform_gamma")
    finally:
        sys.path.remove(str(TOOLS))
    with mp.workdps(60):
        rows = tool.coefficients()
        assert [[float(c) for c in row] for row in rows] == [list(row) for row in TEMME]
        a = mp.mpf(30)
        at_a = mp.mpf(1) / 2 + mp.fsum(row[0] * a**-k for k, row in enumerate(rows)) / mp.sqrt(2 * mp.pi * a)
        assert abs(at_a - mp.gammainc(a, a, mp.inf, regularized=True)) < mp.mpf(10) ** -17


def test_all_of_the_distribution_lies_below_infinity():
    """At x = inf for every a, infinite ones as well; eager and compiled."""
    import pullback as pb
    from pullback import lax

    for dtype in (np.float32, np.float64):
        with pb.enable_x64(True):
            a, x = np.array([np.inf, 2, 0, np.inf, -1], dtype), np.array([np.inf, np.inf, np.inf, 3, np.inf], dtype)
            for way in (lambda f: f, pb.jit):
                assert np.array_equal(way(lax.igamma)(a, x), [1, 1, 1, 0, np.nan], equal_nan=True)
                assert np.array_equal(way(lax.igammac)(a, x), [0, 0, 0, 1, np.nan], equal_nan=True)


@pytest.mark.parametrize("size", [1, 37, 70_001])
def test_functions_by_loops_are_reduced_where_they_are_computed(size):
    x = np.linspace(0.5, 3, size).astype(np.float32)
    y = x[::-1].copy()
    functions = {
        "igamma": lax.igamma, "zeta": lambda a, b: lax.zeta(a + 1, b), "polygamma": lax.polygamma,
        "betainc": lambda a, b: lax.betainc(a, b, a / (a + b)), "random_gamma_grad": lax.random_gamma_grad,
    }  # fmt: skip
    for name, f in functions.items():
        want = np.asarray(f(x, y), np.float64)
        for reduce, total in ((jnp.sum, np.sum(want)), (jnp.max, np.max(want)), (jnp.mean, np.mean(want))):
            found = pullback.jit(lambda a, b, reduce=reduce, f=f: reduce(f(a, b)))(x, y)
            np.testing.assert_allclose(found, total, rtol=1e-5, err_msg=name)


def test_the_slope_of_gamma_samples_grows_without_bound_at_0():
    """d/dx of dx/da = -x (log x - digamma(a + 1)) / a + ...; it is NaN for a = 0, as dx/da is."""
    a, x = np.array([0.5, 2.0, 0.0], np.float32), np.array([0.0, 0.0, 0.0], np.float32)
    for way in (lambda f: f, pullback.jit):
        slope = way(lambda a, x: pullback.jvp(lambda x: lax.random_gamma_grad(a, x), (x,), (jnp.ones_like(x),))[1])
        assert np.array_equal(slope(a, x), [np.inf, np.inf, np.nan], equal_nan=True)
