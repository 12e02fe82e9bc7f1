"""What must hold of numbers whatever the compiler does: accuracy of sums, equality for any number of threads, tails."""

import numpy as np
import pytest

import pullback
from pullback import lax, nn
from pullback import numpy as jnp
from pullback._ext import _core

SIZES = (0, 1, 2, 15, 16, 17, 31, 33, 255, 1023, 1025, 100_003)


@pytest.fixture
def threads():
    """Sets the number of threads; the old one comes back."""
    before = _core.num_threads()
    yield _core.set_num_threads
    _core.set_num_threads(before)


def data(*shape, seed=0, dtype=np.float32):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("n", [1_000, 65_537, 1_000_003])
@pytest.mark.parametrize("offset", [0.0, 1.0, 1000.0])
def test_sums_are_at_least_as_accurate_as_pairwise_ones(n, offset):
    """On average: one sum may be exact by luck, in whatever order."""
    total, found = pullback.jit(jnp.sum), []
    for seed in range(max(1, min(30, 3_000_000 // n))):
        x = data(n, seed=seed) + np.float32(offset)
        exact = np.sum(x.astype(np.float64))
        found.append((float(total(x)) - exact, float(np.sum(x)) - exact, np.finfo(np.float32).eps * exact))
    ours, pairwise, unit = np.sqrt(np.mean(np.square(found), axis=0))
    assert ours <= pairwise + unit


@pytest.mark.parametrize("axis", [0, 1])
def test_sums_along_an_axis_are_at_least_as_accurate_as_pairwise_ones(axis):
    x = data(4_001, 4_003) + np.float32(10)
    exact = np.sum(x, axis, dtype=np.float64)
    pairwise = np.sum(np.ascontiguousarray(np.moveaxis(x, axis, -1)), -1)
    worst = np.abs(pairwise - exact).max()
    unit = np.finfo(np.float32).eps * np.abs(exact).max()
    assert np.abs(np.asarray(pullback.jit(lambda v: jnp.sum(v, axis))(x)) - exact).max() <= worst + unit


PROGRAMS = {
    "chain": lambda x: jnp.tanh(x) * jnp.exp(-(x**2)),
    "sum": jnp.sum,
    "mean and variance": lambda x: (jnp.mean(x), jnp.var(x)),
    "rows": lambda x: nn.softmax(x.reshape(-1, 7) if x.size % 7 == 0 else x[None], -1),
    "columns": lambda x: jnp.sum(jnp.outer(x[:311], x), 0),
    "running sum": jnp.cumsum,
    "extremes": lambda x: (jnp.max(x), jnp.argmax(x), jnp.min(x)) if x.size else x,
    "norm gradient": pullback.grad(lambda x: jnp.sqrt(jnp.sum(x**2) + 1)),
    "product": lambda x: jnp.outer(x[:501], x[:257]) @ jnp.outer(x[:257], x[:301]) if x.size > 600 else x,
    "scattered": lambda x: jnp.zeros(50, x.dtype).at[(jnp.arange(x.size) * 7) % 50].add(x),
    "sorted": jnp.sort,
    "random": lambda x: pullback.random.normal(pullback.random.key(3), x.shape) + x,
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_equal_for_any_number_of_threads(name, threads):
    for n in (17, 1_025, 300_007):
        x = data(n)
        found = []
        for number in (1, 2, 3, 7):
            threads(number)
            found.append([np.asarray(leaf).tobytes() for leaf in pullback.tree.leaves(pullback.jit(PROGRAMS[name])(x))])
        assert all(f == found[0] for f in found), f"{name} of {n}"


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8", "bool", "complex64"])
def test_ragged_tails(n, dtype):
    with pullback.enable_x64(True):
        x = (data(n) * 50).astype(dtype)
        y = np.roll(x, 1)
        for fun, numpy_fun in (
            (lambda a, b: a + b if a.dtype != bool else a | b, None),
            (lambda a, b: jnp.where(a == b, a, b), lambda a, b: np.where(a == b, a, b)),
            (lambda a, b: a[::-1] * b, lambda a, b: a[::-1] * b),
            (lambda a, b: jnp.concatenate([a, b, a[:3]]), lambda a, b: np.concatenate([a, b, a[:3]])),
        ):
            want = (numpy_fun or (lambda a, b: a + b))(x, y)
            got = np.asarray(pullback.jit(fun)(x, y))
            assert got.dtype == want.dtype
            np.testing.assert_allclose(got, want, rtol=1e-6)


def test_product_of_each_row_then_a_sum_beyond_a_power_of_two():
    """jax-ml/jax 39103: a matrix times each of 16,385 rows, then a sum, was wrong when compiled."""
    with pullback.enable_x64(True):
        n = 16_385
        rows, matrix = data(n, 3, dtype=np.float64), data(3, 3, seed=1, dtype=np.float64)
        got = pullback.jit(lambda r: jnp.sum(pullback.vmap(lambda row: matrix @ row)(r), 0))(rows)
        np.testing.assert_allclose(got, np.sum(rows @ matrix.T, 0), rtol=1e-12, atol=1e-10)


def test_overlapping_and_strided_views_as_arguments():
    base = data(1_000)
    views = [
        base[::-1], base[::3], np.lib.stride_tricks.as_strided(base, (100, 50), (4, 8)), base.reshape(10, 100).T,
        np.broadcast_to(base[:7], (5, 7)), base[1:],
    ]  # fmt: skip
    for view in views:
        np.testing.assert_array_equal(pullback.jit(lambda v: v * 2)(view), view * 2)
    got = pullback.jit(lambda a, b: a - b)(base[:-1], base[1:])
    np.testing.assert_array_equal(got, base[:-1] - base[1:])


def test_special_values_pass_through_reductions_and_rows():
    nan, inf = np.nan, np.inf
    x = np.array([[1, nan, 3], [inf, 1, -inf], [-inf, -inf, -inf], [0, -0.0, 0]], np.float32)
    with np.errstate(all="ignore"):
        for ours, theirs in ((jnp.max, np.max), (jnp.min, np.min), (jnp.sum, np.sum), (jnp.argmax, np.argmax)):
            for axis in (0, 1, None):
                np.testing.assert_array_equal(pullback.jit(lambda v: ours(v, axis))(x), theirs(x, axis))  # noqa: B023
        shifted = np.where(np.isneginf(x.max(1, keepdims=True)), -inf, x - x.max(1, keepdims=True))
        want = np.log(np.exp(shifted).sum(1)) + x.max(1)
    got = np.asarray(pullback.jit(lambda v: nn.logsumexp(v, 1))(x))
    np.testing.assert_array_equal(np.isnan(got[:1]), [True])
    assert got[1] == inf and got[2] == -inf
    np.testing.assert_allclose(got[3], want[3])


def test_loops_of_scan_equal_unrolled_ones():
    x = data(40, 3)

    def step(c, row):
        c = jnp.sin(c + row) * 0.9
        return c, c * row

    def unrolled(rows):
        c, out = jnp.zeros(3), []
        for row in rows:
            c, y = step(c, row)
            out.append(y)
        return c, jnp.stack(out)

    looped = pullback.jit(lambda rows: lax.scan(step, jnp.zeros(3), rows))(x)
    for a, b in zip(looped, pullback.jit(unrolled)(x)):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6)
