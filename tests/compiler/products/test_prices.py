"""Products that threads share, and those that one had better compute alone; the bits are the same."""

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback._ext import _core
from pullback.compiler.products import panels
from pullback.loops.schedule.machine import AVX2_SERVER, AVX512_SERVER, using


def square(n):
    return np.random.default_rng(n).standard_normal((n, n)).astype(np.float32) / np.float32(np.sqrt(n))


def repeated(a):
    return jax.lax.scan(lambda c, _: (jnp.tanh(a @ c), None), a, None, length=3)[0]


def is_shared(function, *args):
    return "threads" in jax.jit(function).lower(*args).compile().as_text("loops")


@pytest.mark.parametrize("machine", [AVX2_SERVER, AVX512_SERVER], ids=lambda m: m.name)
def test_small_products_of_what_was_just_written_are_not_shared(machine):
    """A step of 64 x 64 took 6 us with two threads and takes 3 with one; as a program of its own two are quicker."""
    with using(machine):
        a = square(64)
        assert is_shared(jnp.matmul, a, a + 1) and not is_shared(repeated, a)
        assert is_shared(repeated, square(300)) and not is_shared(jnp.matmul, square(16), square(16))


@pytest.mark.parametrize("count", [1, 5])
def test_stacks_are_shared_by_price_too(count):
    with using(AVX512_SERVER):
        small, large = (np.stack([square(n)] * 8 * count) for n in (8, 96))
        assert not is_shared(jnp.matmul, small[:4], small[:4]) and is_shared(jnp.matmul, large, large)


def test_the_bits_are_the_same(monkeypatch):
    a, results, before = square(70), [], _core.num_threads()
    try:
        for shared in (False, True):
            monkeypatch.setattr(panels.prices, "threads_pay", lambda *args, shared=shared: shared)
            program = jax.jit(lambda a, shared=shared: (repeated(a), a @ jnp.cos(a), shared)).lower(a).compile()
            assert ("threads" in program.as_text("loops")) == shared
            for threads in (1, 2):
                _core.set_num_threads(threads)
                results.append([np.asarray(x) for x in program(a)[:2]])
    finally:
        _core.set_num_threads(before)
    for result in results[1:]:
        for x, y in zip(result, results[0]):
            np.testing.assert_array_equal(x, y)
