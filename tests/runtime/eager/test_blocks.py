"""Elementwise work on large arrays of many sizes: one kernel for all of them."""

import os

import numpy as np
import pytest

import pullback as pb
import pullback.numpy as jnp
from pullback import lax
from pullback.runtime.eager import blocks

RNG = np.random.default_rng(0)
B = blocks.BLOCK
SIZES = [blocks.LARGE, blocks.LARGE + 1, blocks.LARGE + B - 1, 10 * B + 17, 50_000, 123_457, 16 * B]


def array(shape, dtype=np.float32):
    x = RNG.normal(size=shape) * 3
    return (x + 1j * RNG.normal(size=shape)).astype(dtype) if np.dtype(dtype).kind == "c" else x.astype(dtype)


@pytest.fixture
def eager(monkeypatch):
    """As if much work had been done already."""
    monkeypatch.setattr(blocks, "PAYS", 0)
    blocks._work.clear()


def compiled(monkeypatch):
    """The list of what is compiled from now on."""
    seen = []
    original = blocks.compile_jaxpr
    monkeypatch.setattr(blocks, "compile_jaxpr", lambda closed, **kw: seen.append(closed) or original(closed, **kw))
    return seen


FUNCTIONS = [
    (lambda n, x, y: x + y, 0),
    (lambda n, x, y: x * 2.5 - 1, 1e-6),
    (lambda n, x, y: n.where(x > 0, x, -y), 0),
    (lambda n, x, y: n.exp(-n.abs(x)) / (1 + y * y), 2e-6),
    (lambda n, x, y: n.tanh(x) ** 2, 2e-6),
    (lambda n, x, y: n.clip(x, -1, 1), 0),
    (lambda n, x, y: (x > y) & ~(x > 1), 0),
    (lambda n, x, y: n.floor(x).astype(n.int32) // 3, 0),
]


@pytest.mark.parametrize("number", range(len(FUNCTIONS)))
def test_values_at_all_sizes(number, eager):
    function, tolerance = FUNCTIONS[number]
    for shape in [*SIZES, (3, B * 4), (200, 321)]:
        x, y = array(shape), array(shape)
        want = function(np, x, y)
        for _ in range(3):  # Python, then C
            got = function(jnp, jnp.asarray(x), jnp.asarray(y))
            assert got.shape == want.shape
            np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int32", "float16", "bfloat16", "float32", "complex64"])
def test_dtypes(dtype, eager):
    dtype = jnp.dtype(dtype)
    for n in SIZES:
        x = jnp.asarray(array(n, np.complex64 if dtype.kind == "c" else np.float32)).astype(dtype)
        for _ in range(2):
            got = lax.bitwise_or(x, x) if dtype.kind == "b" else lax.add(x, x)
            want = np.asarray(x) if dtype.kind == "b" else np.asarray(x) + np.asarray(x)
            assert got.dtype == dtype
            np.testing.assert_array_equal(np.asarray(got), want)


def test_once_for_all_sizes(eager, monkeypatch):
    seen = compiled(monkeypatch)
    double = pb.api.eager.eager(lambda x, y: jnp.sin(x) * y + 0.125)
    for n in range(blocks.LARGE, blocks.LARGE + 40_000, 1000):
        x = jnp.asarray(array(n))
        for _ in range(2):
            double(x, x)
    whole = [c for c in seen if "sin" in str(c) and len(c.eqns) > 1]
    assert len({str(c) for c in whole}) == 1
    before = len(seen)
    for n in range(100_000, 200_000, 10_001):  # C alone knows what to do
        x = jnp.asarray(array(n))
        got = double(x, x)
        np.testing.assert_allclose(got, np.sin(np.asarray(x)) * np.asarray(x) + 0.125, rtol=1e-5, atol=1e-6)
    assert len(seen) == before


def test_new_sizes_stay_in_c(eager, monkeypatch):
    calls = []

    def function(x, y):
        calls.append(x.shape)
        return x * y + 1

    f = pb.api.eager.eager(function)
    for n in (50_000, 50_000, 50_000, 60_000, 70_001):
        f(jnp.ones(n), 2.0)
    before = len(calls)
    for n in (80_000, 90_000, 33_333):
        assert float(f(jnp.ones(n), 2.0)[-1]) == 3 and f(jnp.ones(n), 2.0).shape == (n,)
    assert len(calls) == before
    for bad in (jnp.ones((300, 300)), jnp.ones(100), jnp.ones(80_000, jnp.int32)):  # other kinds
        f(bad, 2.0)
    assert len(calls) == before + 5  # those of large arrays are traced before they run
    x = jnp.ones(80_001)
    x.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        f(x, 2.0)


def test_any_number_of_threads(eager):
    x, y = jnp.asarray(array(1_000_003)), jnp.asarray(array(1_000_003))
    found = []
    for threads in (1, 2, 3, 8):
        with pb.set_num_threads(threads):
            found += [np.asarray(jnp.tanh(x) * y).tobytes() for _ in range(2)]
    assert len(set(found[2:])) == 1


def test_what_is_not_elementwise(eager):
    x = jnp.asarray(array((250, 200)))
    for function in (
        lambda: x[:, None] * x[None],
        lambda: x.T,
        lambda: x + x[0],
        lambda: x * x[:, :1],
        lambda: jnp.cumsum(x, 0),
        lambda: x.reshape(-1),
        lambda: x[::-1] + x,
        lambda: jnp.arange(50_000) + jnp.zeros(50_000),
    ):
        want = None
        for _ in range(3):
            got = np.asarray(function())
            want = got if want is None else want
            np.testing.assert_array_equal(got, want)
    assert blocks.executable(pb.make_jaxpr(lambda v: v.T)(jnp.ones((300, 300))), "t", ready=True) is None
    assert blocks.executable(pb.make_jaxpr(lambda v: v)(jnp.ones(90_000)), "t", ready=True) is None
    assert blocks.executable(pb.make_jaxpr(lambda v: (v + 1, v.sum()))(jnp.ones(90_000)), "t", ready=True) is None


@pytest.mark.parametrize("fun", [lambda x: x**1, lambda x: lax.integer_pow(x, 1), lambda x: x**0])
def test_results_that_simplify_to_an_operand_are_written(fun):
    """Of ever new values, so that what an earlier call left in memory is wrong."""
    for k in range(40):
        x = np.full((1000, 333), k, np.float32)
        expected = fun(x[:1, :1])  # too small for blocks
        np.testing.assert_array_equal(fun(jnp.asarray(x)), np.broadcast_to(expected, x.shape))


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.complex64])
def test_results_larger_than_the_cache(eager, dtype):
    """They go past it; what is short of a block, and small results beside large operands, do not."""
    cache = os.sysconf("SC_LEVEL3_CACHE_SIZE") if "SC_LEVEL3_CACHE_SIZE" in os.sysconf_names else 0
    n = max(cache * 2 // 5 // np.dtype(dtype).itemsize, 100_000) + 77
    a, b = np.arange(n).astype(dtype), np.arange(n, 0, -1).astype(dtype)
    x, y = jnp.asarray(a), jnp.asarray(b)
    for _ in range(2):
        np.testing.assert_array_equal(x + y, a + b)
        np.testing.assert_array_equal(x == y, a == b)
        np.testing.assert_array_equal(jnp.where(x == y, x, 2 * y), np.where(a == b, a, 2 * b))
