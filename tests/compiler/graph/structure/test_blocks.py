"""Loops over batches whose elements do not meet: blocks of elements that go on until they are done."""

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import lax
from pullback.compiler.pipelines import optimize_jaxpr

RNG = np.random.default_rng(0)


def names(f, *args):
    return [e.primitive.name for e in optimize_jaxpr(pullback.make_jaxpr(f)(*args)).eqns]


def collatz(n):
    step = lambda s: (jnp.where(s[0] % 2 == 0, s[0] // 2, 3 * s[0] + 1), s[1] + 1)
    return lax.while_loop(lambda s: s[0] != 1, step, (n, 0))[1]


def halvings(x):
    return lax.while_loop(lambda s: (abs(s[0]) > 1e-3) & (s[1] < 60), lambda s: (s[0] * 0.5, s[1] + 1), (x, 0))


def collatz_by_hand(n):
    steps = 0
    while n != 1:
        n, steps = (n // 2 if n % 2 == 0 else 3 * n + 1), steps + 1
    return steps


# A divisor that fills lanes, none (so that some elements are left), and few.
@pytest.mark.parametrize("n", [800, 997, 300, 64, 2])
@pytest.mark.parametrize("mapping", [pullback.vmap, lambda f: lambda x: lax.map(f, x)])
def test_numbers_of_steps(n, mapping):
    x = np.arange(1, n + 1)
    got = pullback.jit(mapping(collatz))(x)
    np.testing.assert_array_equal(got, [collatz_by_hand(int(k)) for k in x])


def test_what_is_done_stays_as_it_is_bit_for_bit():
    x = (RNG.standard_normal((30, 40)) * 10.0 ** RNG.integers(-9, 9, (30, 40))).astype(np.float32)
    x[0, :4] = np.nan, np.inf, -0.0, 0.0
    got = pullback.jit(pullback.vmap(pullback.vmap(halvings)))(x)
    assert "scan" in names(pullback.vmap(pullback.vmap(halvings)), x)
    one = pullback.jit(halvings)
    want = [one(v) for v in x.reshape(-1)]
    for k in (0, 1):
        mine = np.asarray(got[k]).reshape(-1)
        assert mine.tobytes() == np.asarray([np.asarray(w[k]) for w in want], mine.dtype).tobytes()


def test_operands_of_all_elements_and_numbers():
    x, limit = RNG.uniform(1, 9, 1000).astype("f4"), RNG.uniform(20, 90, 1000).astype("f4")

    def grown(x, limit, factor):
        return lax.while_loop(lambda y: y < limit, lambda y: y * factor + 1, x)

    got = pullback.jit(pullback.vmap(grown, (0, 0, None)))(x, limit, np.float32(1.5))
    want = x.copy()
    while (want < limit).any():
        want = np.where(want < limit, want * np.float32(1.5) + 1, want)
    np.testing.assert_array_equal(got, want)
    tangent = pullback.jit(
        lambda x: pullback.jvp(lambda x: pullback.vmap(grown, (0, 0, None))(x, limit, 1.5), (x,), (x,))
    )
    np.testing.assert_array_equal(tangent(x)[0], want)


def test_elements_that_meet_wait_for_all():
    x = RNG.standard_normal(400).astype("f4")
    # The condition is not what is chosen by, an element reads another, or one that is done goes on.
    loops = (
        lambda x: lax.while_loop(lambda s: jnp.any(s < 9), lambda s: jnp.where(s < 20, s + 1, s), x),
        lambda x: lax.while_loop(lambda s: jnp.any(s < 9), lambda s: jnp.where(s < 9, jnp.roll(s, 1) + 2, s), x),
        lambda x: lax.while_loop(lambda s: jnp.any(s < 9), lambda s: s + 1, x),
        lambda x: lax.while_loop(lambda s: jnp.all(s < 9), lambda s: jnp.where(s < 9, s + 1, s), x),
    )
    for loop in loops:
        assert "while" in names(loop, x)


def test_any_number_of_threads():
    x = np.arange(1, 4097)
    f = pullback.vmap(collatz)
    assert "threads" in pullback.jit(f).lower(x).as_text("nests")
    assert "local" in pullback.jit(f).lower(x).as_text("nests")
