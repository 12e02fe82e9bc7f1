"""hyp1f1 and hyp2f1 and their derivatives by every argument, against mpmath."""

import mpmath as mp
import numpy as np
import pytest

import pullback as pb
from pullback.scipy import special

INF, NAN = np.inf, np.nan
RNG = np.random.default_rng(0)


def arguments(count, size, low, high, first, last):
    return [*RNG.uniform(low, high, (count, size)), RNG.uniform(first, last, size)]


FIRST = [
    np.concatenate(v)
    for v in zip(*(arguments(2, 12, *r) for r in [(0.1, 5, -60, 60), (-3, 3, -3, 900), (1, 9, -900, 3)]))
]
RANGES = [(0.1, 5, -1, 0.5), (0.1, 5, 0.5, 1), (-4, 4, -10, 1), (-3, 3, -1000, 0), (0.1, 2, 0.99, 1)]
SECOND = [np.concatenate(v) for v in zip(*(arguments(3, 12, *r) for r in RANGES))]
CASES = {"hyp1f1": (special.hyp1f1, mp.hyp1f1, FIRST), "hyp2f1": (special.hyp2f1, mp.hyp2f1, SECOND)}


@pytest.mark.parametrize("name", CASES)
def test_values(name):
    function, true, args = CASES[name]
    with mp.workdps(30):
        want = np.array([float(true(*v)) for v in zip(*args)])
        narrow = [np.float32(v) for v in args]
        single = np.array([float(true(*map(float, v))) for v in zip(*narrow)])
    with pb.enable_x64(True):
        for found in (function(*args), pb.jit(function)(*args), pb.vmap(function)(*args)):
            assert found.dtype == np.float64
            np.testing.assert_allclose(found, want, rtol=1e-11)
    usual = (abs(single) < 3e38) & (abs(single) > 1e-37)
    found = np.asarray(function(*narrow))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found[usual], single[usual], rtol=2e-7)  # by float64 inside


@pytest.mark.parametrize("name", CASES)
def test_derivatives_by_every_argument(name):
    function, true, args = CASES[name]
    args = [v[::5] for v in args]
    args[-1] = np.where(abs(args[-1]) > 40, -7.25, args[-1])
    count = len(args)
    with pb.enable_x64(True), mp.workdps(30):
        slopes = pb.jit(pb.grad(lambda *v: function(*v).sum(), range(count)))(*args)
        for k in range(count):
            want = [float(mp.diff(lambda t, v=v, k=k: true(*v[:k], t, *v[k + 1 :]), v[k])) for v in zip(*args)]
            np.testing.assert_allclose(slopes[k], want, rtol=1e-9)
        point = [1.5, 2.5, 0.5] if count == 3 else [1.5, 1.5, 3.25, 0.75]
        orders = [(0, count - 1), (1, 1), (count - 1, count - 1)]
        second = pb.hessian(function, range(count))(*point)
        for i, j in orders:
            each = tuple((k == i) + (k == j) for k in range(count))
            np.testing.assert_allclose(second[i][j], float(mp.diff(true, tuple(point), each)), rtol=1e-9)
        # A parameter that ends the series does not end the derivative by it.
        ended = [-2.0, *point[1:]]
        want = float(mp.diff(lambda t: true(t, *ended[1:]), -2.0))
        np.testing.assert_allclose(pb.grad(function)(*ended), want, rtol=1e-9)


def test_edges_and_types():
    with pb.enable_x64(True):
        for args, want in {
            (0, 0, 1): 1, (1, 0, 1): INF, (1, 1, INF): INF, (1, 1, -INF): 0, (1, -1, 1): INF, (-1, -2, 1): 1.5,
            (1, 2, NAN): NAN, (NAN, 1, 1): NAN, (1, 2, 0): 1, (1, 2, 800): INF, (1, 2, -800): 1 / 800,
            (-1, 2, 1e6): 1 - 5e5,
        }.items():  # fmt: skip
            np.testing.assert_allclose(special.hyp1f1(*args), want, rtol=1e-14)
        for args, want in {
            (1, 2, 3, 1): INF, (1, 2, 3, 2): INF, (1, 1, 3, 1): 2, (1, 2, 0, 0.5): INF, (-1, 2, -3, 0.5): 4 / 3,
            (1, 2, -1, 0.5): INF, (-2, 2, -1, 0.5): INF, (1, 2, 3, 0): 1, (-3, 2, 4.5, 5): -6.132867132867133,
            (1, 2, 3, NAN): NAN, (1, 1, 1, -INF): 0, (0, 2, 3, 9): 1,
        }.items():  # fmt: skip
            np.testing.assert_allclose(special.hyp2f1(*args), want, rtol=1e-13)
    assert special.hyp1f1(np.float16(1), 2, 3).dtype == np.float16
    assert special.hyp1f1(1, 2, np.ones((0, 3))).shape == (0, 3)
    assert special.hyp2f1(np.ones((2, 1)), 2, np.ones(3), 0.5).shape == (2, 3)
    with pytest.raises(ValueError, match="hyp1f1 does not support complex-valued inputs"):
        special.hyp1f1(1j, 2, 3)
    with pytest.raises(TypeError, match="hyp2f1 does not support complex-valued inputs"):
        special.hyp2f1(1j, 2, 3, 0.5)
    with pytest.raises(ValueError, match="shapes"):
        special.hyp2f1(np.ones(3), np.ones(2), 1.0, 1.0)


def test_beyond_one_where_the_transformation_of_euler_ends_the_series():
    points = [(1, 0.5, 0.5, 1.5), (2, 0.5, -1.5, 30), (0.5, 1, 0.5, 100), (5, 0.5, 0.5, 1.5), (1, 2, 2, 3)]
    with pb.enable_x64(True):
        for args in points:
            np.testing.assert_allclose(special.hyp2f1(*args), float(mp.hyp2f1(*args)), rtol=1e-13)
            want = float(args[0] * args[1] / args[2] * mp.hyp2f1(*(v + 1 for v in args[:3]), args[3]))
            np.testing.assert_allclose(pb.grad(special.hyp2f1, 3)(*map(float, args)), want, rtol=1e-13)
