"""Loops and branches: values, and carries that are updated in place."""

import numpy as np
import pytest
from lowering_checks import check, lax, normal, total

from pullback.loop_ir import Loop
from pullback.loop_ir.visit import statements

F, I = np.float32, np.int32


def test_scan_updates_its_carry_in_place():
    def body(c, x):
        return lax.add(lax.mul(c, F(0.9)), x), total(c)

    r = check(lambda c, xs: lax.scan(body, c, xs), normal(4), normal(10, 4))
    assert r.buffers("temporary") == 0


def test_carries_that_swap():
    def body(c, x):
        a, b, d = c
        return (b, lax.add(a, x), d), lax.sub(a, b)

    def fun(a, b, d, xs):
        (a, b, d), ys = lax.scan(body, (a, b, d), xs)
        return a, b, d, ys

    check(fun, normal(3), normal(3, seed=1), normal(2), normal(7, 3))


def test_carry_read_after_its_update_is_copied():
    def body(c, x):
        new = lax.add(lax.rev(c, (0,)), x)
        return new, lax.mul(new, c)

    check(lambda c, xs: lax.scan(body, c, xs), normal(5), normal(6, 5))


@pytest.mark.parametrize("n", [15, 16, 17, 40])
def test_carry_that_other_rows_of_its_nest_still_read(n):
    """new[j] needs all of the carry, and its nest shares its loop with the reduction that reads it."""

    def body(c, x):
        return lax.add(lax.log(lax.reduce_sum(lax.exp(outer(c, w)), axes=(0,))), x), x[0]

    def outer(c, w):
        return lax.add(lax.broadcast_in_dim(c, (n, n), (0,)), w)

    w = normal(n, n, seed=3)
    check(lambda c, xs: lax.scan(body, c, xs), normal(n), normal(3, n))


@pytest.mark.parametrize("reverse", [False, True])
def test_scan_in_both_directions(reverse):
    check(lambda c, xs: lax.scan(lambda c, x: (lax.mul(c, x), c), c, xs, reverse=reverse), F(1.5), normal(6))


def test_scan_of_no_steps():
    check(lambda c, xs: lax.scan(lambda c, x: (lax.add(c, x), c), c, xs), normal(3), normal(0, 3))


def test_loops_in_loops():
    def inner(c, x):
        return lax.add(c, x), lax.mul(c, x)

    def outer(c, row):
        c, ys = lax.scan(inner, c, row)
        return lax.mul(c, F(0.5)), total(ys)

    check(lambda c, xs: lax.scan(outer, c, xs), F(0), normal(4, 5))


def test_while_loop():
    def fun(n):
        return lax.while_loop(
            lambda s: lax.lt(s[0], n), lambda s: (lax.add(s[0], I(1)), lax.mul(s[1], F(1.5))), (I(0), F(1))
        )

    check(fun, I(5))
    check(fun, I(0))


@pytest.mark.parametrize("flag", [0, 1])
def test_cond_over_arrays(flag):
    def fun(flag, x):
        return lax.cond(lax.gt(flag, I(0)), lambda x: lax.exp(x), lambda x: lax.rev(x, (0,)), x)

    check(fun, I(flag), normal(4, 3))


@pytest.mark.parametrize("index", [-1, 0, 1, 2, 9])
def test_switch_clamps(index):
    def fun(i, x):
        return lax.switch(i, [lambda x: lax.add(x, F(1)), lambda x: lax.mul(x, F(2)), lax.neg], x)

    check(fun, I(index), normal(3))


def test_window_updates_are_in_place():
    def body(c, i):
        return lax.dynamic_update_slice(c, lax.reshape(lax.convert_element_type(i, np.float32), (1,)), (i,)), None

    def fun(c):
        return lax.scan(body, c, lax.iota(np.int32, 6))[0]

    r = check(fun, normal(6))
    loop = next(s for s in r.lowered.function.body if isinstance(s, Loop) and s.role == "sequential")
    assert not any(isinstance(s, Loop) for s in statements(loop.body))
