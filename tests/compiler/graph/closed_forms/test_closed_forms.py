"""Sums over indices and loops that only count: no loop is left, and the values are those of the loop."""

from __future__ import annotations

import math

import numpy as np
import pytest
from lowering_checks import check

import pullback
import pullback.numpy as jnp
from pullback import lax
from pullback.compiler.graph.closed_forms import polynomials as poly
from pullback.compiler.pipelines import optimize_jaxpr

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
SIZES = [0, 1, 2, 3, 15, 16, 17, 300, 50_000]


def run(fun, *args, left=0):
    """fun(*args) compiled, after counting the loops that are left."""
    result = check(lambda *xs: fun(*xs), *args, rtol=0, atol=0)
    assert result.loops == left
    assert "while" not in str(result.lowered.function) and "reduce" not in str(result.lowered.function)
    outs = [np.asarray(x) for x in result.outputs]
    return outs[0] if len(outs) == 1 else outs


def wrapped(number: int, dtype) -> np.ndarray:
    bits = 8 * np.dtype(dtype).itemsize
    return np.asarray(number & ((1 << bits) - 1), f"u{bits // 8}").astype(dtype)


def left(fun, *args):
    """The primitives of the optimized program, those inside of loops too."""
    closed = pullback.make_jaxpr(fun)(*args)
    return [eqn.primitive.name for eqn in optimize_jaxpr(closed).eqns]


pytestmark = pytest.mark.usefixtures("x64")


# The arithmetic.


def value(p, *at):
    return sum(c * math.prod(math.comb(at[i], k) for i, k in m) for m, c in p.items())


def test_polynomials_in_newtons_basis():
    i, j = poly.index(0), poly.index(1)
    p = poly.add(poly.multiply(poly.multiply(i, i), poly.add(j, poly.constant(-3))), poly.scale(i, 5))
    for a in range(5):
        for b in range(5):
            assert value(p, a, b) == a * a * (b - 3) + 5 * a
            assert value(poly.mirrored(p, 0, 7), a, b) == value(p, 6 - a, b)
            assert value(poly.accumulated(p, 0), a, b) == sum(value(p, k, b) for k in range(a))
            assert value(poly.summed(p, 0, 6), 0, b) == sum(value(p, k, b) for k in range(6))
    low, high = poly.bounds(p, {0: 5, 1: 5})
    assert all(low <= value(p, a, b) <= high for a in range(5) for b in range(5))
    assert poly.sign(poly.add(i, poly.constant(1)), {0: 9}) == 1
    assert poly.sign(poly.add(i, poly.constant(-3)), {0: 9}) == 0
    assert poly.sign(poly.scale(poly.add(i, poly.constant(2)), -1), {0: 9}) == -1
    with pytest.raises(poly.TooComplex):
        big = i
        for _ in range(poly.MOST_DEGREE):
            big = poly.multiply(big, i)


# Sums.


@pytest.mark.parametrize("dtype, n", [("int32", n) for n in SIZES] + [(d, n) for d in INTEGERS for n in (2, 127)])
def test_sum_of_integers(dtype, n):
    got = run(lambda: jnp.sum(lax.iota(dtype, n), dtype=dtype))
    if n <= np.iinfo(dtype).max:
        np.testing.assert_array_equal(got, wrapped(n * (n - 1) // 2, dtype))


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("n", [2, 127])
def test_polynomials_of_integers_wrap_around(dtype, n):
    def fun(a, b):
        i = lax.iota(dtype, n)
        return jnp.sum((a * i - b) * i * i + (i << 3) - 7, dtype=dtype)

    a, b = np.dtype(dtype).type(101), np.dtype(dtype).type(77)
    got = run(fun, a, b)
    np.testing.assert_array_equal(got, wrapped(sum((101 * i - 77) * i * i + 8 * i - 7 for i in range(n)), dtype))


def test_sums_along_axes():
    a = np.arange(5, dtype=np.int32) - 2

    def fun(a):
        i = jnp.arange(7, dtype=np.int32)
        grid = a[:, None] * i[None, :] ** 2 + jnp.arange(3, 8, dtype=np.int32)[:, None] * i
        return [jnp.sum(grid, 1, dtype=np.int32)]

    got = run(fun, a, left=1)
    i = np.arange(7)
    np.testing.assert_array_equal(got, (a[:, None] * i**2 + np.arange(3, 8)[:, None] * i).sum(1))
    # Along the axis of the outside values nothing is known.
    assert "reduce_sum" in left(lambda a: jnp.sum(a[:, None] * jnp.arange(7), 0), a)
    got = run(
        lambda: jnp.sum(lax.broadcasted_iota(np.int32, (4, 5, 6), 1) * lax.broadcasted_iota(np.int32, (4, 5, 6), 2))
    )
    assert int(got) == 4 * 10 * 15


def test_reversed_ranges_with_steps():
    got = run(lambda: jnp.sum(jnp.arange(-50, 1000, 7)[::-1] ** 3))
    assert int(got) == int((np.arange(-50, 1000, 7, dtype=np.int64) ** 3).sum())
    got = run(lambda: jnp.sum(jnp.arange(10, -90, -3)))
    assert int(got) == sum(range(10, -90, -3))


def test_types_in_between():
    """Narrower ones wrap around in each element, so what is made wider then is no polynomial."""
    small = jnp.arange(100, dtype=np.uint8)
    assert left(lambda: jnp.sum(jnp.arange(100, dtype=np.uint8) ** 2, dtype=np.uint32)) != []
    got = pullback.jit(lambda: jnp.sum(jnp.arange(100, dtype=np.uint8) ** 2, dtype=np.uint32))()
    assert int(got) == int((np.asarray(small) ** 2).sum(dtype=np.uint32))
    assert int(run(lambda: jnp.sum((jnp.arange(15, dtype=np.uint8) ** 2).astype(np.int32)))) == 1015
    assert int(run(lambda: jnp.sum((jnp.arange(1000) ** 3).astype(np.int8), dtype=np.int8))) == int(
        wrapped(sum(i**3 for i in range(1000)), np.int8)
    )
    assert float(run(lambda: jnp.sum(jnp.arange(1000).astype(np.float32)))) == 499500.0
    assert int(run(lambda: jnp.sum(jnp.arange(1000.0).astype(np.int32)))) == 499500


@pytest.mark.parametrize("n", [1, 2, 10, 200])
def test_python_sum_over_an_array(n):
    assert int(run(lambda: sum(jnp.arange(n)))) == n * (n - 1) // 2


# Sums of floats.


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "float64"])
@pytest.mark.parametrize("n", [1, 2, 17, 120])
def test_sum_of_exact_floats(dtype, n):
    got = run(lambda: jnp.sum(jnp.arange(n, dtype=dtype) * 2 - 3))
    assert got == np.asarray(sum(2 * i - 3 for i in range(n))).astype(got.dtype)


def test_sum_of_many_floats_is_rounded_once():
    got = run(lambda: jnp.sum(jnp.arange(50_000, dtype=np.float32)))
    assert got == np.float32(50_000 * 49_999 // 2)
    got = run(lambda: jnp.sum(jnp.arange(50_000, dtype=np.float32) ** 2))
    assert got == np.float32(sum(i * i for i in range(50_000)))
    got = run_close(lambda: jnp.sum(jnp.arange(3000, dtype=np.float32) * np.float32(0.1)))
    assert got == np.float32(np.float64(np.float32(0.1)) * (3000 * 2999 // 2))


def test_outside_values_as_coefficients():
    def fun(a, b, c):
        i = jnp.arange(1000, dtype=np.float32)
        return jnp.sum(a * i * i + b * i + c)

    rng = np.random.default_rng(0)
    i = np.arange(1000.0)
    for _ in range(20):
        a, b, c = rng.normal(size=3).astype(np.float32)
        got = run_close(fun, a, b, c)
        exact = float(a) * (i * i).sum() + float(b) * i.sum() + 1000 * float(c)
        assert abs(float(got) - exact) <= np.spacing(np.float32(abs(exact)))
    # Terms that cancel: 1 * i * i - 999 * i, of which all elements are exact.
    assert run_close(fun, np.float32(3), np.float32(-1998), np.float32(1.5)) == np.float32(
        (3 * i * i - 1998 * i + 1.5).sum()
    )


def run_close(fun, *args):
    result = check(fun, *args, rtol=1e-4, atol=1e30)
    assert result.loops == 0
    return np.asarray(result.outputs[0])


@pytest.mark.parametrize("special", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("place", range(3))
@pytest.mark.parametrize("kind", range(8))
def test_infinite_coefficients(special, place, kind):
    """The closed form is infinite, nan or finite where the sum of the elements is."""
    args = [np.float32(x) for x in (1.5, -0.5, 2.0)]
    args[place] = np.float32(special)

    def elements(i, a, b, c):
        return [
            a * i * i + b * i + c,
            a * i + a,
            a * (i + 1) + b * c * i,
            (i + 1) * a - (2 * i + 3) * b,
            a * (i - 5) + c,
            (i - 100) * b + (-i - 1) * a,
            c * i + a * i - b * i,
            (a * i) * b + c * 0.0,
        ][kind]

    with np.errstate(all="ignore"):
        got = pullback.jit(lambda *xs: jnp.sum(elements(jnp.arange(40, dtype=np.float32), *xs)))(*args)
        want = elements(np.arange(40, dtype=np.float32), *args).sum()
    assert np.isnan(got) == np.isnan(want) and np.isinf(got) == np.isinf(want)
    assert np.isnan(want) or np.sign(got) == np.sign(want)
    np.testing.assert_allclose(got, want, rtol=1e-5)


def test_programs_about_rounding_stay():
    big = np.float32(1.5 * 2**23)
    i = np.arange(100, dtype=np.float32)

    def rounds(x):
        return jnp.sum((jnp.arange(100, dtype=np.float32) * x + big) - big)

    def error():
        x = jnp.arange(100, dtype=np.float32) * np.float32(0.3)
        return jnp.sum(x - x.astype(jnp.bfloat16).astype(np.float32))

    assert float(pullback.jit(rounds)(np.float32(0.25))) == float(np.rint(i / 4).sum())
    assert float(pullback.jit(lambda: rounds(np.float32(0.25)))()) == float(np.rint(i / 4).sum())
    x = i * np.float32(0.3)
    assert float(pullback.jit(error)()) == pytest.approx(float((x - x.astype(jnp.bfloat16).astype(np.float32)).sum()))
    assert "reduce_sum" in left(rounds, np.float32(0.25)) and "reduce_sum" in left(error)


def test_products_of_sums_with_infinities_stay():
    def fun(a, b, c):
        return jnp.sum((a * jnp.arange(1, 100, dtype=np.float32) + b) * c)

    assert "reduce_sum" in left(fun, *np.float32([1, 1, 1]))
    assert np.isposinf(pullback.jit(fun)(*np.float32([1, 1, np.inf])))


def test_float64_with_several_terms_stays():
    assert "reduce_sum" in left(lambda a, b: jnp.sum(a * jnp.arange(100.0) + b), 1.0, 2.0)
    assert "reduce_sum" not in left(lambda a: jnp.sum(a * jnp.arange(100.0)), 1.0)


# Loops.


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("n", [0, 1, 2, 127])
def test_counting_loops(dtype, n):
    kind = np.dtype(dtype).type

    def fun(start):
        def body(i, carry):
            s, t = carry
            return s + i * i - 3, t + s

        return lax.fori_loop(kind(0), kind(n), body, (start, kind(5)))

    s, t = run(fun, kind(100))
    want_s, want_t = 100, 5
    for i in range(n):
        want_s, want_t = want_s + i * i - 3, want_t + want_s
    np.testing.assert_array_equal(s, wrapped(want_s, dtype))
    np.testing.assert_array_equal(t, wrapped(want_t, dtype))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_counting_loops_with_traced_bounds(dtype):
    info = np.iinfo(dtype)
    kind = np.dtype(dtype).type

    def fun(lower, upper, start):
        return lax.fori_loop(lower, upper, lambda i, s: s + 3 * i - 1, start)

    pairs = [
        (0, 0),
        (0, 1),
        (0, 2),
        (5, 3),
        (info.min, info.min + 3),
        (info.max - 9, info.max),
        (0, min(info.max, 50_000)),
    ]
    if info.min < 0:
        pairs += [(-7, 5), (-100, -90), (-1, 0), (0, -1)]
    for lower, upper in pairs:
        want = wrapped(11 + sum(3 * i - 1 for i in range(lower, upper)), dtype)
        got = pullback.jit(fun)(kind(lower), kind(upper), kind(11))
        np.testing.assert_array_equal(got, want)
    run(fun, kind(0), kind(9), kind(0))


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint32", "int64"])
def test_extreme_counts(dtype):
    """All values of the type but one are counted through; only a closed form ends before the test does."""
    info = np.iinfo(dtype)
    kind = np.dtype(dtype).type
    got = pullback.jit(lambda a, b: lax.fori_loop(a, b, lambda i, s: s + i, kind(0)))(kind(info.min), kind(info.max))
    n = int(info.max) - int(info.min)
    np.testing.assert_array_equal(got, wrapped(n * (n - 1) // 2 + n * int(info.min), dtype))


@pytest.mark.parametrize("degree", [1, 2, 3, 4, 6])
@pytest.mark.parametrize("dtype", ["int8", "int32"])
def test_sums_of_powers_with_a_traced_count(degree, dtype):
    def fun(n):
        return lax.fori_loop(0, n, lambda i, s: s + (i**degree).astype(dtype), jnp.zeros((), dtype))

    run(fun, np.int32(5))
    for n in (0, 1, 2, 3, 4, 5, 6, 7, 1000, 50_000):
        np.testing.assert_array_equal(pullback.jit(fun)(np.int32(n)), wrapped(sum(i**degree for i in range(n)), dtype))


def test_sums_of_squares_in_64_bits_with_a_traced_count():
    def fun(n):
        return lax.fori_loop(0, n, lambda i, s: s + i * i, np.int64(0))

    run(fun, np.int64(5))
    for n in (0, 1, 2, 3, 50_000, 10**7, 10**15 + 1):
        np.testing.assert_array_equal(pullback.jit(fun)(np.int64(n)), wrapped((n - 1) * n * (2 * n - 1) // 6, np.int64))
    # The cube needs a division by 4 of more than 64 bits.
    assert "while" in left(lambda n: lax.fori_loop(0, n, lambda i, s: s + i * i * i, np.int64(0)), np.int64(3))


@pytest.mark.parametrize("n", [0, 1, 2, 3, 10, 1000])
def test_affine_maps(n):
    def fun(x, a, b):
        power = lax.fori_loop(0, n, lambda i, s: s * 3, x)
        generator = lax.fori_loop(0, n, lambda i, s: s * 1664525 + 1013904223, x)
        outside = lax.fori_loop(0, n, lambda i, s: a * s + b, x)
        flipped = lax.fori_loop(0, n, lambda i, s: 5 - s, x)
        last = lax.fori_loop(0, n, lambda i, s: i * 2 + a, x)
        return power, generator, outside, flipped, last

    x, a, b = np.int32(7), np.int32(-1234567), np.int32(99)
    got = run(fun, x, a, b)
    want = [7, 7, 7, 7, 7]
    for i in range(n):
        p, g, o, f, _ = want
        want = [p * 3, g * 1664525 + 1013904223, -1234567 * o + 99, 5 - f, 2 * i - 1234567]
    np.testing.assert_array_equal(got, [wrapped(w, np.int32) for w in want])


def test_while_loops():
    def count(cond, step, start):
        return lambda u: lax.while_loop(lambda c: cond(c[0], u), lambda c: (c[0] + step, c[1] + c[0]), (start, 0))[1]

    run(count(lambda i, u: i < u, 1, -5), 20)
    run(count(lambda i, u: u > i, 1, -5), 20)
    run(count(lambda i, u: i > u, -1, 20), -3)
    run(count(lambda i, u: i != u, 1, 3), 20)
    run(lambda: count(lambda i, u: i < u, 3, 2)(100))
    run(lambda: count(lambda i, u: i <= u, 3, 2)(101))
    run(lambda: count(lambda i, u: i >= u, -2, 51)(-10))
    run(lambda: count(lambda i, u: i != u, 5, 0)(100))
    # Steps that may jump over the end of the type are run.
    assert "while" in left(count(lambda i, u: i < u, 3, 2), 100)
    assert "while" in left(count(lambda i, u: i <= u, 1, 2), 100)
    assert "while" in left(lambda: count(lambda i, u: i < u, 3, np.int8(0))(np.int8(127)))


def test_scans_over_ranges():
    i = np.arange(20)

    def fun(a):
        return lax.scan(lambda s, i: (s + a * i, s + i), np.int64(1), jnp.arange(20))

    s, rows = run(fun, np.int64(3), left=1)
    assert int(s) == 1 + 3 * 190
    np.testing.assert_array_equal(rows, 1 + 3 * (i * (i - 1) // 2) + i)

    def backwards(a):
        return lax.scan(lambda s, i: (s + 1, i * s), a, jnp.arange(20), reverse=True)

    s, rows = run(backwards, np.int64(3), left=1)
    assert int(s) == 23
    np.testing.assert_array_equal(rows, i * (3 + 19 - i))


def test_nested_loops():
    def fun(a):
        return lax.fori_loop(0, 30, lambda i, s: lax.fori_loop(0, 20, lambda j, s: s + i * j + a, s), a)

    assert int(run(fun, np.int64(2))) == 2 + 600 * 2 + 190 * 435


def test_invariants_are_computed_before_the_loop():
    def fun(a, b):
        return lax.fori_loop(0, 100, lambda i, s: s + jnp.maximum(a, b) * i, a)

    assert int(run(fun, np.int32(3), np.int32(5))) == 3 + 5 * 4950


def test_arrays_as_carries():
    v = np.arange(5, dtype=np.int32)
    got = run(lambda v: lax.fori_loop(0, 10, lambda i, s: s + v * i + jnp.arange(5, dtype=np.int32), v), v, left=1)
    np.testing.assert_array_equal(got, v + 45 * v + 10 * np.arange(5))


def test_only_what_is_closed_leaves_the_loop():
    def fun(x, v):
        def body(i, carry):
            x, s, count = carry
            return jnp.sin(x), s + i, count + 2

        return lax.fori_loop(0, 100, body, (x, v, v))

    closed = pullback.make_jaxpr(fun)(np.float32(1), np.int32(0))
    (loop,) = [eqn for eqn in optimize_jaxpr(closed).eqns if eqn.primitive.name == "scan"]
    assert len(loop.outvars) == 1
    x, s, count = pullback.jit(fun)(np.float32(1), np.int32(7))
    assert (int(s), int(count)) == (7 + 4950, 207)
    assert 0 < float(x) < 1


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_loops_of_exact_floats(dtype):
    kind = np.dtype(dtype).type
    got = run(lambda: lax.fori_loop(0, 40, lambda i, s: s + i.astype(dtype), kind(0.5)))
    assert got == kind(780.5)
    # Where a step is rounded the loop runs, and gives what rounding gives.
    tenth = kind(0.1)
    assert "scan" in left(lambda: lax.fori_loop(0, 60, lambda i, s: s + tenth, kind(0)))
    large = kind(2.0 ** (np.finfo(dtype).nmant + 1))
    assert "scan" in left(lambda: lax.fori_loop(0, 60, lambda i, s: s + i.astype(dtype), large))
    assert "scan" in left(lambda x: lax.fori_loop(0, 60, lambda i, s: s + i.astype(dtype), x), kind(0))


def test_loops_with_effects_and_other_loops_stay():
    def prints(i, s):
        pullback.debug.callback(lambda s: None, s)
        return s + i

    assert "scan" in left(lambda: lax.fori_loop(0, 10, prints, 0))
    assert "scan" in left(lambda: lax.fori_loop(0, 100, lambda i, s: s ^ i, 0))
    assert "scan" in left(lambda: lax.fori_loop(0, 100, lambda i, s: s * i, 1))
    assert "scan" in left(lambda: lax.fori_loop(0, 100, lambda i, s: (s[1], s[0] + s[1]), (0, 1)))


# With the other transformations.


def test_under_vmap():
    a = np.arange(6, dtype=np.int32)
    got = run(pullback.vmap(lambda a: lax.fori_loop(0, 10, lambda i, s: s + a * i, a)), a, left=1)
    np.testing.assert_array_equal(got, a + 45 * a)
    got = run(pullback.vmap(lambda a: jnp.sum(a * jnp.arange(1000, dtype=np.int32) ** 2, dtype=np.int32)), a, left=1)
    np.testing.assert_array_equal(got, a * (np.arange(1000) ** 2).sum())
    # Counts that differ between elements are a loop of as many iterations as the longest needs.
    got = pullback.jit(pullback.vmap(lambda n: lax.fori_loop(0, n, lambda i, s: s + i, 0)))(a)
    np.testing.assert_array_equal(got, a * (a - 1) // 2)


def test_under_grad():
    def loss(a):
        i = jnp.arange(100, dtype=np.float32)
        return jnp.sum(a * i * i + a * a * i)

    got = run(pullback.grad(loss), np.float32(2))
    assert got == np.float32(328350 + 4 * 4950)
    assert float(pullback.grad(pullback.grad(loss))(np.float32(2))) == 2 * 4950
    got = pullback.jit(pullback.grad(lambda a: lax.fori_loop(0, 10, lambda i, s: s + a * i, a)))(np.float32(2))
    assert float(got) == 46.0


def test_text_of_the_lowered_program_shows_it():
    text = pullback.jit(lambda: jnp.sum(jnp.arange(50_000, dtype=np.int32), dtype=np.int32)).lower().as_text()
    assert "y0[0] = 1249975000:i32" in text
    text = pullback.jit(lambda n: lax.fori_loop(0, n, lambda i, s: s + i, 0)).lower(10).as_text()
    assert "while" not in text


def test_counts_of_numbers_that_wrap_around():
    def f():
        s = lax.reduce_sum(lax.iota(np.int32, 65536), axes=(0,))
        return lax.while_loop(lambda c: c[0] < 10, lambda c: (c[0] + 1, c[1] + 1), (s * 2, 0))

    assert [int(x) for x in pullback.jit(f)()] == [10, 65546]
