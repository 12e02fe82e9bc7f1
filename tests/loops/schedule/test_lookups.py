"""Lookups are gathered or loaded one by one, by what the machine takes for them."""

from dataclasses import replace

import numpy as np
import pytest

import pullback as jax
from pullback.loops.ir import Builder
from pullback.loops.ir.ir import SINGLY, Loop
from pullback.loops.ir.visit import statements
from pullback.loops.schedule.lookups import lookups
from pullback.loops.schedule.machine import AVX2_SERVER, AVX512_SERVER, ZEN4_SERVER, of_system, using


def looked_up(n, size):
    """z[i] = x[p[i]] and y[i] = x[i]."""
    b = Builder()
    x, p = b.input("x", "f32", size), b.input("p", "i32", n)
    y, z = b.output("y", "f32", n), b.output("z", "f32", n)
    with b.loop(n, "vector") as i:
        b.store(z, i, b.load(x, b.convert(b.load(p, i), "i64")))
    with b.loop(n, "vector") as i:
        b.store(y, i, b.load(x, i))
    return b.function("looked_up")


@pytest.mark.parametrize(("machine", "want"), [(ZEN4_SERVER, [True, False]), (AVX512_SERVER, [False, False])])
def test_marked_are_lookups_that_gathers_would_slow_down(machine, want):
    with using(machine):
        function = lookups(looked_up(20, 100))
    assert [SINGLY in s.attrs for s in statements(function.body) if isinstance(s, Loop)] == want


def test_both_read_the_same_elements():
    rng = np.random.default_rng(0)
    x, p = rng.standard_normal((7, 20_001)).astype("f4"), rng.integers(-20_001, 20_001, 333).astype("i4")
    for machine in (replace(AVX2_SERVER, gathered=0.5), replace(AVX2_SERVER, gathered=2.0)):
        with using(machine):
            np.testing.assert_array_equal(jax.jit(lambda x, p: x[:, p])(x, p), x[:, p])


def test_this_machine_gathers_as_one_that_is_known():
    assert of_system().gathered in {machine.gathered for machine in (AVX2_SERVER, AVX512_SERVER, ZEN4_SERVER)}
