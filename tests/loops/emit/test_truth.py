"""Truth values that a loop carries are bytes: LLVM takes vectors of bits that go from block to block apart."""

import re

import numpy as np
import pytest
from cpu_levels import cpus

import pullback as jax
import pullback.numpy as jnp
from pullback.util.switches import switches

RNG = np.random.default_rng(0)

CARRIED = {
    "product": (lambda a, b: a @ b, lambda a, b: (a.astype(int) @ b.astype(int)) > 0),
    "any": (lambda a, b: (a[:, :, None] & b).any(1), lambda a, b: (a.astype(int) @ b.astype(int)) > 0),
    "all": (lambda a, b: (a[:, :, None] | b).all(1), lambda a, b: (a[:, :, None] | b).all(1)),
}


@pytest.mark.parametrize("name", CARRIED)
@pytest.mark.parametrize("sizes", [(40, 50, 130), (3, 1, 2), (2, 0, 5)])
def test_no_loop_carries_bits(name, sizes):
    f, plain = CARRIED[name]
    m, k, n = sizes
    a, b = RNG.random((m, k)) < 0.2, RNG.random((k, n)) < 0.2
    text = jax.jit(f).lower(a, b).as_text("llvm")
    assert not re.search(r"phi <\d+ x i1>", text), text
    np.testing.assert_array_equal(jax.jit(f)(a, b), plain(a, b))


NUMBERS = RNG.standard_normal((2, 999)).astype(np.float32), RNG.integers(-9, 9, (2, 999)).astype(np.int32)
LOGIC = {
    "and": lambda np, x, y, k, m: np.where((x > 0) & (y < 1) & (k > 3), x, y),
    "mixed": lambda np, x, y, k, m: np.where((x > 0) ^ (~(k < 5) | (y == x)), k, m),
    "complex": lambda np, x, y, k, m: x + 1j * y == y + 1j * x,
    "stored": lambda np, x, y, k, m: (x > 0) & (k > m) | (y > 1),
    "summed": lambda np, x, y, k, m: ((x > 0) & (k > m) & (y < 1)).sum(),
    "wider": lambda np, x, y, k, m: np.where((x > 0) & (k.astype(np.int8) > 2) & (y > 0), x, y),
}


@pytest.mark.parametrize("name", LOGIC)
@pytest.mark.parametrize("size", [7, 16, 999])
def test_conditions_of_several_registers_are_as_wide_as_what_is_compared(name, size):
    arguments = [part[:size] for numbers in NUMBERS for part in numbers]
    with switches.set(cpu="x86-64-v3"):
        compiled = jax.jit(lambda *xs: LOGIC[name](jnp, *xs))
        text = compiled.lower(*arguments).as_text("llvm")
        np.testing.assert_array_equal(compiled(*arguments), LOGIC[name](np, *arguments))
    if name != "wider":  # bytes beside words
        assert not re.search(r"(and|or|xor) <(16|32) x i1>", text), text


@pytest.mark.skipif("x86-64-v4" not in cpus(), reason="this CPU has no AVX-512")
def test_conditions_have_registers_of_their_own_where_the_cpu_has_such():
    arguments = [part for numbers in NUMBERS for part in numbers]
    with switches.set(cpu="x86-64-v4"):
        text = jax.jit(lambda *xs: LOGIC["and"](jnp, *xs)).lower(*arguments).as_text("llvm")
    assert re.search(r"and <(16|32) x i1>", text) and "sext" not in text, text
