"""Loops and branches: values, and carries that are updated in place."""

import importlib

import numpy as np
import pytest
from lowering_checks import check, lax, normal, pullback, spread, total

from pullback.compiler.lower import turns
from pullback.compiler.pipelines import optimize_loops
from pullback.loops.ir import If, Loop, While
from pullback.loops.ir.visit import statements

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


def test_carry_that_is_left_for_each_step_is_written_by_the_nest_that_reads_it():
    def body(c, x):
        return lax.add(lax.mul(c, F(0.5)), lax.mul(x, spread(total(c), (40,), ()))), c

    r = check(lambda c, xs: lax.scan(body, c, xs), normal(40), F(0.01) * normal(6, 40))
    assert r.buffers("temporary") <= 1  # the sum; the carry is changed in place
    assert len(_full_passes(r, 40)) == 2


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

    r = check(fun, normal(20))  # of which few are written: no batch
    loop = next(s for s in r.lowered.function.body if isinstance(s, Loop) and s.role == "sequential")
    assert not any(isinstance(s, Loop) for s in statements(loop.body))


def _full_passes(r, size):
    """Loops over `size` elements inside of the program's sequential loops."""
    steps = [s for s in r.lowered.function.body if isinstance(s, Loop) and s.role == "sequential"]
    assert steps
    return [s for loop in steps for s in statements(loop.body) if isinstance(s, Loop) and s.extent.value == size]


def _gradient(fun, *args):
    return pullback.grad(lambda *xs: total(fun(*xs)), argnums=tuple(range(len(args))))(*args)


@pytest.mark.parametrize("n", [17, 40])
def test_gradient_of_rows_read_and_written_in_a_loop_touches_rows_only(n):
    def fun(table, row):
        def step(i, state):
            table, row = state
            row = lax.add(lax.mul(row, F(0.5)), lax.dynamic_index_in_dim(table, i, keepdims=False))
            return lax.dynamic_update_slice(table, lax.reshape(lax.sin(row), (1, 5)), (i, I(0))), row

        return lax.fori_loop(0, n, step, (table, row))[0]

    r = check(lambda *xs: _gradient(fun, *xs), normal(n, 5), normal(5, seed=1))
    assert not _full_passes(r, 5 * n)


def test_gradient_of_element_updates_touches_elements_only():
    def fun(x):
        def step(i, x):
            at = lax.expand_dims(i, (0,))
            numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
            new = lax.reshape(lax.sin(lax.dynamic_index_in_dim(x, i)), ())
            return lax.scatter(x, at, new, numbers, unique_indices=True, indices_are_sorted=True)

        return lax.fori_loop(0, 50, step, x)

    r = check(lambda x: _gradient(fun, x), normal(50))
    assert not _full_passes(r, 50)


def test_element_wanted_after_its_array_was_changed_is_taken_out_before():
    def body(c, i):
        old = lax.dynamic_index_in_dim(c, i, keepdims=False)
        new = lax.dynamic_update_slice(c, lax.reshape(lax.add(old, F(1)), (1,)), (i,))
        return new, lax.mul(lax.dynamic_index_in_dim(new, lax.sub(I(39), i), keepdims=False), old)

    r = check(lambda c, i: lax.scan(body, c, i), normal(40), np.arange(40, dtype=I))
    assert not _full_passes(r, 40)


def test_start_of_a_loop_is_computed_where_its_carry_lies():
    r = check(
        lambda x: lax.scan(lambda c, y: (lax.sub(y, c), None), lax.sin(x), spread(x, (3, 50), (1,)))[0], normal(50)
    )
    assert r.buffers("temporary") == 1  # the rows
    # An argument of the program is not overwritten, nor is a value that is used again.
    check(
        lambda x: (lax.scan(lambda c, y: (lax.sub(y, c), None), lax.sin(x), spread(x, (3, 50), (1,)))[0], lax.sin(x)),
        normal(50),
    )
    check(lambda x: (lax.while_loop(lambda c: lax.lt(c[0], F(9)), lambda c: lax.add(c, F(1)), x), x), normal(50))


def test_changes_of_an_array_that_is_read_again_are_made_on_a_copy():
    def body(c, i):
        new = lax.dynamic_update_slice(c, spread(total(c), (1,), ()), (i,))
        return lax.add(new, lax.rev(c, (0,))), lax.mul(new, c)

    check(lambda c, i: lax.scan(body, c, i), normal(40), np.arange(4, dtype=I))


@pytest.mark.parametrize("n", [1, 2, 3])
def test_small_state_of_a_loop_is_straight_code(n):
    """Products of n x n matrices: without loops inside the steps, state can live in registers."""
    numbers = (((1,), (0,)), ((), ()))

    def fun(a, s):
        def body(s, _):
            s = lax.dot_general(a, s, numbers)
            return lax.div(s, lax.sqrt(total(lax.mul(s, s)))), None

        return lax.scan(body, s, None, length=20)[0]

    r = check(fun, normal(n, n), normal(n, n, seed=1))
    after = optimize_loops(r.lowered.function)
    assert [s.role for s in statements(after.body) if isinstance(s, Loop)] == ["sequential"]


def test_one_element_of_a_carry_is_taken_out_before_the_carry_is_overwritten():
    def body(c, i):
        one = lax.dynamic_index_in_dim(c, i, keepdims=False)
        return lax.add(lax.mul(c, F(0.5)), one), one

    r = check(lambda c, i: lax.scan(body, c, i), normal(40), np.arange(5, dtype=I))
    assert len(_full_passes(r, 40)) == 1


@pytest.mark.parametrize("length", [20, 21])
@pytest.mark.parametrize("reverse", [False, True])
def test_large_carries_go_from_one_place_to_another_by_turns(length, reverse, monkeypatch):
    """Each of two steps reads where the other has written; of an odd number one is made before."""
    monkeypatch.setattr(turns, "COMPILED_NS", 0)

    def body(c, x):
        u, v, n = c
        w = lax.add(lax.sub(lax.rev(u, (0,)), lax.mul(v, F(0.5))), x)
        return (w, lax.add(v, lax.mul(lax.rev(w, (1,)), F(0.1))), lax.add(n, I(1))), total(u)

    def fun(u, v, xs):
        return [
            *lax.scan(body, (u, v, I(0)), xs, reverse=reverse)[0],
            lax.scan(body, (u, v, I(0)), xs, reverse=reverse)[1],
        ]

    r = check(fun, normal(20, 9), normal(20, 9, seed=1), normal(length, seed=2))
    loops = [s for s in statements(r.lowered.function.body) if isinstance(s, Loop) and s.var.name == "pair"]
    assert loops and all(loop.extent.value == length // 2 for loop in loops)


@pytest.mark.parametrize("steps", [0, 1, 2, 7])
def test_large_states_of_loops_of_unknown_length_go_by_turns(steps, monkeypatch):
    """Steps write what the next ones read; after an odd number of them the state is copied to where results are."""
    monkeypatch.setattr(turns, "COMPILED_NS", 0)

    def body(s):
        n, u, v, _ = s
        w = lax.add(lax.rev(u, (0,)), lax.mul(v, F(0.5)))
        return lax.add(n, I(1)), w, u, total(lax.sub(w, u))

    def fun(n, u, v):
        more = lambda s: lax.bitwise_and(lax.lt(s[0], n), lax.lt(s[3], F(1e6)))
        return lax.while_loop(more, body, (I(0), u, v, F(0)))

    r = check(fun, I(steps), normal(20, 9), normal(20, 9, seed=1))
    (loop,) = [s for s in r.lowered.function.body if isinstance(s, While)]
    assert any(isinstance(s, If) for s in loop.body)


def _inside(u, place):
    return lax.slice(u, (1 + place[0], 1 + place[1]), (19 + place[0], 8 + place[1]))


def _neighbours(u):
    return lax.add(lax.add(_inside(u, (1, 0)), _inside(u, (-1, 0))), lax.mul(_inside(u, (0, 1)), F(0.3)))


@pytest.mark.parametrize("steps", [1, 2, 7])
@pytest.mark.parametrize("loop", ["scan", "while"])
def test_what_no_step_sets_is_copied_once(loop, steps, monkeypatch):
    """Rims stay, or are set after the inside; an array that is changed where it is, alone, has one place."""
    monkeypatch.setattr(turns, "COMPILED_NS", 0)

    def body(s):
        n, u, v, w = s
        new = lax.dynamic_update_slice(u, lax.mul(_neighbours(u), F(0.3)), (I(1), I(1)))
        edge = lax.dynamic_update_slice(v, lax.mul(lax.add(_neighbours(new), _neighbours(v)), F(0.2)), (I(1), I(1)))
        edge = lax.dynamic_update_slice(edge, lax.mul(lax.slice(u, (0, 0), (20, 1)), F(2)), (I(0), I(0)))
        own = lax.dynamic_update_slice(w, lax.mul(_inside(w, (0, 0)), F(0.5)), (I(1), I(1)))
        return lax.add(n, I(1)), new, edge, own

    def fun(end, *arrays):
        start = (I(0), *arrays)
        if loop == "while":
            return lax.while_loop(lambda s: lax.lt(s[0], end), body, start)
        state, ys = lax.scan(lambda s, _: (body(s), total(lax.sub(s[1], s[2]))), start, None, length=steps)
        return *state, ys

    r = check(fun, I(steps), *(normal(20, 9, seed=k) for k in range(3)))
    others = [b for b in r.lowered.function.buffers if b.name.startswith("turn")]
    assert len(others) == (0 if (loop, steps) == ("scan", 1) else 2)


def test_conditions_that_show_something_are_asked_once(monkeypatch, capfd):
    monkeypatch.setattr(turns, "COMPILED_NS", 0)

    def more(s):
        pullback.debug.print("asked {}", s[0])
        return lax.lt(s[0], I(3))

    def fun(u):
        return lax.while_loop(more, lambda s: (lax.add(s[0], I(1)), lax.rev(s[1], (0,))), (I(0), u))

    pullback.block_until_ready(pullback.jit(fun)(normal(20, 9)))
    pullback.effects_barrier()
    assert capfd.readouterr().out.split() == [word for n in range(4) for word in ("asked", str(n))]


def test_carries_that_are_worth_no_second_step():
    step = lambda _, c: lax.rev(lax.sin(c), (0,))
    r = check(lambda c: [lax.fori_loop(0, 20, step, c)], normal(30, 30))
    assert "pair" not in {s.var.name for s in statements(r.lowered.function.body) if isinstance(s, Loop)}


def _set(i, c):
    return lax.dynamic_update_slice(c, spread(lax.convert_element_type(i, F), (1,), ()), (i,))


def _handed_on(i, c):
    return c


@pytest.mark.parametrize("other", [_handed_on, lambda i, c: lax.rev(c, (0,)), lambda i, c: lax.full_like(c, 2)])
def test_what_a_branch_hands_on_or_changes_stays_where_it_is(other):
    """In loops that keep few checkpoints, a branch that does nothing copied all of them, in each step."""

    def step(state):
        i, c, flags = state
        branches = (lambda i, c, f: (_set(i, c), f)), (lambda i, c, f: (other(i, c), f))
        return lax.add(i, I(1)), *lax.cond(lax.lt(i, I(3)), *branches, i, c, flags)

    r = check(lambda c, f: lax.while_loop(lambda s: lax.lt(s[0], I(5)), step, (I(0), c, f)), normal(7), normal(9))
    sizes = [b.size for b in r.lowered.function.buffers if b.space == "temporary"]
    assert 9 not in sizes and (other is not _handed_on or 7 not in sizes)


def test_branches_that_swap_what_they_are_given():
    def first_twice(a, b):
        return a, a

    def step(i, state):
        branches = [lambda a, b: (b, a), lambda a, b: (a, lax.rev(b, (0,))), first_twice]
        return lax.switch(lax.rem(i, I(3)), branches, *state)

    check(lambda a, b: lax.fori_loop(0, 7, step, (a, b)), normal(4), normal(4, seed=1))


def test_nested_branches_are_looked_through_once(monkeypatch):
    """Which argument each result of a branch is: asked of inner branches again for each result, it is exponential."""
    looked = []
    cond = importlib.import_module("pullback.lax.control.cond")
    made_of = cond._made_of
    monkeypatch.setattr(cond, "_made_of", lambda jaxpr, *rest: looked.append(jaxpr) or made_of(jaxpr, *rest))

    def nested(depth, x):
        if depth == 0:
            return [lax.add(a, F(1)) for a in x]
        go = lax.gt(total(x[0]), F(depth))
        return lax.cond(go, lambda x: nested(depth - 1, x), lambda x: [lax.mul(a, F(2)) for a in x], x)

    x = [normal(3), normal(3), normal(3)]
    pullback.make_jaxpr(lambda x: nested(5, x))(x)
    pullback.jit(lambda x: nested(5, x)).lower(x).compile()
    assert len(looked) <= 20
