"""Truth values that a loop carries are bytes: LLVM takes vectors of bits that go from block to block apart."""

import re

import numpy as np
import pytest

import pullback as jax

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
