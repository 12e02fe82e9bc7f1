"""scan, while_loop, fori_loop, cond, switch, map, associative_scan: values, derivatives, batching, types, errors."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import lax

XS = np.linspace(-1, 1, 7, dtype=np.float32)


def cumulative(c, x):
    c = c * 0.5 + x
    return c, c**2


def by_hand(init, xs, reverse=False):
    c, ys = init, []
    for x in xs[::-1] if reverse else xs:
        c, y = cumulative(c, x)
        ys.append(y)
    return c, np.array(ys[::-1] if reverse else ys)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("length", [0, 1, 2, 7])
@pytest.mark.parametrize("unroll", [1, 2, True])
def test_scan(reverse, length, unroll):
    xs = XS[:length]
    c, ys = lax.scan(cumulative, jnp.float32(0.3), xs, reverse=reverse, unroll=unroll)
    want_c, want_ys = by_hand(np.float32(0.3), xs, reverse)
    np.testing.assert_allclose(c, want_c, rtol=1e-6)
    np.testing.assert_allclose(ys, want_ys.reshape(length), rtol=1e-6)
    assert ys.shape == (length,)


def test_scan_over_trees():
    def body(carry, x):
        return {"a": carry["a"] + x["u"], "b": (carry["b"][0] * x["v"][1], None)}, (carry["a"], {"s": x["u"].sum()})

    xs = {"u": jnp.arange(6.0).reshape(3, 2), "v": [jnp.arange(3), jnp.arange(3.0) + 1]}
    carry, (seen, sums) = lax.scan(body, {"a": jnp.zeros(2), "b": (1.0, None)}, xs)
    np.testing.assert_allclose(carry["a"], [6, 9])
    assert float(carry["b"][0]) == 6.0 and carry["b"][1] is None
    np.testing.assert_allclose(seen, [[0, 0], [0, 1], [2, 4]])
    np.testing.assert_allclose(sums["s"], [1, 5, 9])


@pytest.mark.parametrize("loop", ["scan", "while_loop"])
def test_a_weakly_typed_carry_is_not_narrowed_to_another_kind(loop):
    def body(c, _=None):
        new = c.astype(jnp.int32)
        return (new, None) if loop == "scan" else new

    with pytest.raises(TypeError, match="carry"):
        lax.scan(body, 0.0, XS) if loop == "scan" else lax.while_loop(lambda c: c < 3, body, 0.0)


def test_scan_promotes_a_weakly_typed_carry():
    total, _ = lax.scan(lambda c, x: (c + x, None), 0, jnp.arange(3, dtype=jnp.float32))
    assert total.dtype == jnp.float32 and float(total) == 3.0


def test_the_body_of_a_weakly_typed_carry_is_as_it_was_traced():
    """JAX's page on jaxprs shows such a scan: what the body gives back of its carry is no conversion of it."""
    closed = jax.make_jaxpr(lambda x: lax.scan(lambda c, a: (c + a, c), 0.0, x))(jnp.ones(3))
    (body,) = [eqn.params["jaxpr"] for eqn in closed.eqns if eqn.primitive.name == "scan"]
    assert [eqn.primitive.name for eqn in body.eqns] == ["convert_element_type", "add"]
    assert body.jaxpr.outvars[1] is body.jaxpr.invars[0]
    assert [aval.weak_type for aval in (*body.in_avals, *closed.out_avals)] == [True, False, False, True]
    carry, seen = lax.scan(lambda c, a: (c + a, c), 0.0, jnp.ones(3))
    assert (carry.weak_type, seen.weak_type, seen.tolist()) == (False, True, [0, 1, 2])


def test_scan_without_xs():
    c, ys = lax.scan(lambda c, _: (c + 1, c), 0, None, length=4)
    assert int(c) == 4
    np.testing.assert_array_equal(ys, [0, 1, 2, 3])


def test_scan_closes_over_values_under_differentiation():
    def loss(w):
        return lax.scan(lambda c, x: (jnp.tanh(w * c + x), None), 0.0, XS)[0]

    step = 1e-3
    np.testing.assert_allclose(jax.grad(loss)(0.7), (loss(0.7 + step) - loss(0.7 - step)) / (2 * step), rtol=1e-3)


def test_gradient_of_scan_does_not_stack_its_constants():
    w = np.eye(3, dtype=np.float32)

    def loss(w, x):
        return lax.scan(lambda c, _: (jnp.tanh(w @ c), None), x, None, length=5)[0].sum()

    text = str(jax.make_jaxpr(jax.grad(loss))(w, np.ones(3, np.float32)))
    assert "f32[5,3]" in text and "f32[5,3,3]" not in text


def test_scan_batched_carry_grows_only_where_it_must():
    def f(x):
        return lax.scan(lambda c, _: ((c[0] + 1, c[1] * x), c[0]), (0, 1.0), None, length=3)

    (count, power), seen = jax.vmap(f, out_axes=((None, 0), None))(jnp.arange(4.0))
    assert count.shape == () and seen.shape == (3,)
    np.testing.assert_allclose(power, np.arange(4.0) ** 3)


@pytest.mark.parametrize("start", [0, 3, 10])
def test_while_loop(start):
    i, total = lax.while_loop(lambda s: s[0] < 10, lambda s: (s[0] + 1, s[1] + s[0]), (start, 0))
    assert (int(i), int(total)) == (max(start, 10), sum(range(start, 10)))


def test_while_loop_batched_predicate_freezes_finished_elements():
    n = jax.vmap(lambda x: lax.while_loop(lambda s: s[0] < 100, lambda s: (s[0] * 2, s[1] + 1), (x, 0)))(
        jnp.array([1.0, 30.0, 200.0])
    )
    np.testing.assert_array_equal(n[0], [128, 120, 200])
    np.testing.assert_array_equal(n[1], [7, 2, 0])


def steps_to(x, n):
    """The smallest power of 2 times x that is at least n, and the steps to there."""
    return lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] * 2, s[1] + 1), (x, 0))


def test_the_condition_of_a_mapped_while_loop_has_the_mapped_axes_in_the_program():
    xs, ns = jnp.array([1.0, 30.0, 200.0]), jnp.array([10.0, 100.0])
    one = jax.vmap(steps_to, (0, None))
    both = jnp.stack([xs, xs + 1])
    for f, args, shape in (
        (one, (xs, 100.0), (3,)),
        (jax.vmap(one, (None, 0)), (xs, ns), (2, 3)),
        (jax.vmap(one, (0, None)), (both, 100.0), (2, 3)),
    ):
        eqn = next(e for e in jax.make_jaxpr(f)(*args).eqns if e.primitive.name == "while")
        assert eqn.params["cond_jaxpr"].out_avals[0].shape == shape


@pytest.mark.parametrize("compile_", [jax.jit, lambda f: f])
def test_mapped_while_loops_are_loops_of_each_element(compile_):
    xs, ns = np.array([1.0, 30.0, 200.0], np.float32), np.array([10.0, 100.0], np.float32)
    wanted = np.array([[[*map(float, steps_to(x, n))] for x in xs] for n in ns])
    table = compile_(jax.vmap(jax.vmap(steps_to, (0, None)), (None, 0)))(xs, ns)
    np.testing.assert_array_equal(np.stack(table, -1), wanted)
    # An axis that only the carry has, and one that only the condition reads.
    f = jax.vmap(lambda y, n: jax.vmap(lambda x: lax.while_loop(
        lambda s: s[0] < n, lambda s: (s[0] * 2, s[1] + y), (x, 0.0)))(xs), (0, None))  # fmt: skip
    np.testing.assert_array_equal(compile_(f)(ns, 100.0)[1], ns[:, None] * wanted[1, :, 1])
    out, dots = compile_(lambda n: jax.jvp(lambda x: jax.vmap(steps_to, (0, None))(x, n)[0], (xs,), (xs,)))(100.0)
    np.testing.assert_array_equal(dots, out)


def test_while_loop_forward_derivative():
    def power(x):
        return lax.while_loop(lambda s: s[0] < 5, lambda s: (s[0] + 1, s[1] * x), (0, 1.0))[1]

    assert jax.jvp(power, (1.5,), (1.0,))[1] == pytest.approx(5 * 1.5**4, rel=1e-6)
    assert jax.jacfwd(power)(1.5) == pytest.approx(5 * 1.5**4, rel=1e-6)
    with pytest.raises(ValueError, match="Reverse-mode differentiation does not work"):
        jax.grad(power)(1.5)


def test_fori_loop_with_traced_bounds():
    f = jax.jit(lambda n: lax.fori_loop(0, n, lambda i, s: s + i, 0))
    assert [int(f(n)) for n in (0, 1, 5, -3)] == [0, 0, 10, 0]


def test_fori_loop_with_static_bounds_has_a_gradient():
    assert jax.grad(lambda x: lax.fori_loop(0, 5, lambda i, y: y * x, 1.0))(2.0) == pytest.approx(80.0)


@pytest.mark.parametrize("p", [True, False])
def test_cond(p):
    f = lambda p, x, y: lax.cond(p, lambda a, b: a * b, lambda a, b: a - b, x, y)
    want = 6.0 if p else -1.0
    assert float(f(p, 2.0, 3.0)) == want
    assert float(jax.jit(f)(p, 2.0, 3.0)) == want
    slopes = jax.jit(jax.grad(f, (1, 2)))(p, 2.0, 3.0)
    assert [float(s) for s in slopes] == ([3.0, 2.0] if p else [1.0, -1.0])


def test_cond_runs_only_one_branch_of_a_recursion():
    f = jax.jit(lambda n: lax.cond(n > 0, lambda: lax.while_loop(lambda i: i < n, lambda i: i + 1, 0), lambda: -1))
    assert int(f(7)) == 7 and int(f(-2)) == -1


@pytest.mark.parametrize("index, want", [(-3, 1.0), (0, 1.0), (1, 4.0), (2, 9.0), (7, 9.0)])
def test_switch_clamps(index, want):
    branches = [lambda x: x, lambda x: x**2, lambda x: x**2 * 2.25]
    x = 1.0 if want == 1.0 else 2.0
    assert float(lax.switch(index, branches, x)) == want
    assert float(jax.jit(lambda i: lax.switch(i, branches, x))(index)) == want


@pytest.mark.parametrize(("number", "want"), [(2**32 + 1, 1), (2**31, 0), (-1, 0)])
def test_indices_of_switch_are_32_bits_before_they_are_clamped(number, want):
    branches = [lambda: 0, lambda: 1, lambda: 2]
    with jax.enable_x64(True):
        index = jnp.asarray(np.int64(number))
        assert int(lax.switch(index, branches)) == want
        assert int(jax.jit(lambda i: lax.switch(i, branches))(index)) == want
        with jax.disable_jit():
            assert int(lax.switch(index, branches)) == want


def test_vmap_of_cond_and_switch():
    xs = jnp.array([1.0, -2.0, 3.0])
    got = jax.vmap(lambda x: lax.cond(x > 0, jnp.sin, jnp.cos, x))(xs)
    np.testing.assert_allclose(got, [np.sin(1), np.cos(-2), np.sin(3)], rtol=1e-6)
    got = jax.vmap(lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, jnp.exp], x))(jnp.array([0, 1, 2]), xs)
    np.testing.assert_allclose(got, [np.sin(1), np.cos(-2), np.exp(3)], rtol=1e-6)


@pytest.mark.parametrize("compile_", [lambda f: f, jax.jit])
def test_derivatives_where_a_branch_is_not_taken_are_not_those_of_it(compile_):
    def root(y):
        return lax.cond(y > 0, jnp.sqrt, lambda z: z * 0.0, y)

    def chosen(y, c):
        return lax.switch((y > 0).astype(int) + 1, [lambda: c, lambda: c * 0.0, lambda: jnp.sqrt(c) * y])

    def steps(y):
        return lax.scan(lambda c, _: (root(c), None), y, None, length=3)[0]

    x = jnp.array([0.0, 1.0])
    for f, want in ((root, [0, 0.5]), (steps, [0, 0.125]), (jax.checkpoint(root), [0, 0.5])):
        np.testing.assert_allclose(compile_(jax.grad(lambda x, f=f: jax.vmap(f)(x).sum()))(x), want)
    np.testing.assert_allclose(compile_(jax.grad(lambda x: jax.vmap(jax.vmap(root))(x).sum()))(x[None]), [[0, 0.5]])
    np.testing.assert_allclose(compile_(jax.hessian(lambda x: jax.vmap(root)(x).sum()))(x), [[0, 0], [0, -0.25]])
    # A number that all elements share has the derivatives of those that choose its branch.
    shared = compile_(jax.grad(lambda c: jax.vmap(chosen, (0, None))(-x, c).sum()))
    np.testing.assert_allclose(shared(jnp.float32(0)), 0)


SHARED = {  # name: (the branch that rows take whose first number is positive, what all rows share)
    "a product": (lambda w, x: jnp.sqrt(jnp.log(x) @ w), np.eye(3, dtype=np.float32)),
    "a product, nested": (lambda w, x: jax.jit(lambda v: jnp.sqrt(v @ w))(x), np.eye(3, dtype=np.float32)),
    "sums": (lambda w, x: jnp.sqrt(x + w), np.zeros(3, np.float32)),
    "a lookup": (lambda w, x: jnp.sqrt(w[jnp.int32(x[0])] * x), np.arange(3, dtype=np.float32)),
    "by itself": (lambda w, x: x * jnp.sqrt(w), np.arange(3, dtype=np.float32)),
}


@pytest.mark.parametrize("name", SHARED)
def test_arrays_that_rows_share_have_derivatives_of_rows_that_take_the_branch(name):
    taken, w = SHARED[name]
    rows = np.array([[1.5, 2, 3], [0, 0, 0], [2.5, 1.5, 1.5], [-1, 0, 0]], np.float32)

    def total(w, rows):
        return jax.vmap(lambda x: lax.cond(x[0] > 0, taken, lambda w, x: x, w, x))(rows).sum()

    grad = jax.grad(total)
    for f in (grad, jax.jit(grad)):
        by_rows = [jax.grad(lambda w, x: taken(w, x).sum())(w, x) for x in rows[::2]]
        np.testing.assert_allclose(f(w, rows), sum(by_rows), rtol=1e-5)
        np.testing.assert_array_equal(f(w, rows[1::2]), 0)
    tangent = jax.jvp(lambda w: total(w, rows[1::2]), (w,), (w,))[1]
    np.testing.assert_array_equal(tangent, 0)


def test_an_array_that_rows_share_is_not_copied_for_their_derivatives():
    def total(w, rows):
        return jax.vmap(lambda x: lax.cond(x[0] > 0, lambda: jnp.tanh(x @ w).sum(), lambda: 0.0))(rows).sum()

    made = jax.make_jaxpr(jax.grad(total))(jnp.ones((7, 5)), jnp.ones((3, 7)))
    assert max([v.aval.size for eqn in made.eqns for v in eqn.outvars]) == 7 * 5


def test_map():
    np.testing.assert_allclose(lax.map(lambda x: x**2, XS), XS**2, rtol=1e-6)
    np.testing.assert_allclose(lax.map(lambda x: x**2, XS, batch_size=3), XS**2, rtol=1e-6)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 8, 13])
@pytest.mark.parametrize("reverse", [False, True])
def test_associative_scan(n, reverse):
    xs = np.arange(1.0, n + 1, dtype=np.float32)
    got = lax.associative_scan(jnp.add, xs, reverse=reverse)
    want = np.cumsum(xs[::-1])[::-1] if reverse else np.cumsum(xs)
    np.testing.assert_allclose(got, want)


def test_associative_scan_of_matrices_along_an_axis():
    ms = np.random.default_rng(0).standard_normal((2, 5, 3, 3)).astype(np.float32)
    got = lax.associative_scan(lambda a, b: jnp.matmul(b, a), ms, axis=1)
    want = ms.copy()
    for i in range(1, 5):
        want[:, i] = ms[:, i] @ want[:, i - 1]
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "call, error, text",
    [
        (lambda: lax.scan(lambda c, x: (jnp.stack([c, c]), x), 0.0, XS), TypeError, "do not match"),
        (lambda: lax.scan(lambda c, x: ((c, c), x), 0.0, XS), TypeError, "same pytree structure"),
        (lambda: lax.scan(lambda c, x: c, 0.0, XS), TypeError, "must be a pair"),
        (lambda: lax.scan(cumulative, 0.0, (XS, XS[:3])), ValueError, "different leading axis sizes"),
        (lambda: lax.scan(cumulative, 0.0, XS, length=3), ValueError, "other leading axis sizes"),
        (lambda: lax.scan(cumulative, 0.0, 1.0), ValueError, "no leading axis"),
        (lambda: lax.scan(lambda c, x: (c, x), 0.0), ValueError, "give arrays in 'xs', or 'length'"),
        (lambda: lax.scan(3, 0.0, XS), TypeError, "must be a function"),
        (lambda: lax.while_loop(lambda x: x, lambda x: x + 1, 0), TypeError, "must return a boolean scalar"),
        (lambda: lax.while_loop(lambda x: True, lambda x: (x, x), 0), TypeError, "same pytree structure"),
        (lambda: lax.cond(jnp.ones(2) > 0, jnp.sin, jnp.cos, 1.0), TypeError, "must be a scalar"),
        (
            lambda: lax.cond(True, lambda x: x, lambda x: (x, x), 1.0),
            TypeError,
            "cond: every branch must give the same",
        ),
        (lambda: lax.cond(True, lambda x: x, lambda x: x > 0, 1.0), TypeError, "equal output types"),
        (lambda: lax.switch(0, []), ValueError, "'branches' is empty"),
        (lambda: lax.switch(1.0, [jnp.sin, jnp.cos], 1.0), TypeError, "must be an integer"),
        (lambda: lax.fori_loop(0.0, 3, lambda i, x: x, 1), TypeError, "'lower' is of float32, 'upper' of int32"),
    ],
)
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_the_carry_error_names_the_component():
    with pytest.raises(TypeError, match=r"carry\['b'\].*f32\[\].*i32\[\].*dtypes"):
        lax.scan(
            lambda c, _: ({"a": c["a"], "b": jnp.int32(1)}, None), {"a": 1.0, "b": jnp.float32(1.0)}, None, length=2
        )


def test_loops_run_in_python_when_jit_is_disabled():
    seen = []
    with jax.disable_jit():
        lax.fori_loop(0, 3, lambda i, x: (seen.append(float(x)), x + 1.0)[1], 0.0)
    assert seen == [0.0, 1.0, 2.0]


def test_counters_that_are_floats():
    assert float(lax.fori_loop(0.0, 2.5, lambda i, x: x + i, 0.0)) == 3
    f = jax.jit(lambda n: lax.fori_loop(jnp.float32(1), n, lambda i, x: x * i, jnp.float32(1)))
    assert float(f(jnp.float32(5))) == 24 and float(f(0.0)) == 1
    with jax.disable_jit():
        assert float(lax.fori_loop(0.5, 3.0, lambda i, x: x + i, 0.0)) == 4.5
    for lower, upper in ((0, 2.0), (jnp.float32(0), jnp.float16(1)), (0, True), (0, 2j)):
        with pytest.raises(TypeError, match=r"must have equal types|expected a scalar"):
            lax.fori_loop(lower, upper, lambda i, x: x, 0)


def test_branches_that_are_one_function_are_traced_once():
    traced = []

    def f(x):
        traced.append(1)
        return x * 2

    assert float(lax.switch(2, [f, lambda x: x, f, f], 1.5)) == 3 and len(traced) == 1
    assert float(jax.jit(lambda p, x: lax.cond(p, f, f, x))(True, 2.0)) == 4 and len(traced) == 2


def test_elements_of_no_rows():
    empty, index = jnp.zeros((0, 2, 3)), jnp.zeros(0, int)
    for f, shape in (
        (lambda x, i: x[i], (0, 3)),
        (lambda x, i: x[i, i], (0,)),
        (lambda x, i: lax.dynamic_slice(x, (i, 0), (1, 2)), (0, 1, 2)),
        (lambda x, i: x.at[i].set(x[:, i][0]), (0, 2, 3)),
    ):
        assert jax.vmap(f)(empty, index).shape == jax.jit(jax.vmap(f))(empty, index).shape == shape


def test_closed_jaxprs_have_what_jaxprs_have():
    closed = jax.make_jaxpr(lambda x: x + np.arange(3))(1)
    for name in ("constvars", "invars", "outvars", "debug_info", "eqns", "effects"):
        assert getattr(closed, name) is getattr(closed.jaxpr, name)


def test_bodies_run_once_where_only_weak_types_change():
    runs = []

    def noted(value):
        runs.append(value)
        return value

    cases = [
        (0.0, lambda c, x: (noted(c + x), c), 1, (3.0, [0.0, 0.0, 1.0]), (False, True)),
        (0.0, lambda c, x: (noted(jnp.float32(1)), c), 1, (1.0, [0.0, 1.0, 1.0]), (False, True)),
        (0.0, lambda c, x: (noted(c + 1.0), c), 1, (3.0, [0.0, 1.0, 2.0]), (True, True)),
        (0, lambda c, x: (noted(c + x), c), 2, (3.0, [0.0, 0.0, 1.0]), (False, False)),  # another dtype
        (0, lambda c, x: (noted(c + 1.0), c), 2, (3.0, [0.0, 1.0, 2.0]), (False, False)),
    ]
    for init, body, count, want, weak in cases:
        runs.clear()
        carry, ys = jax.lax.scan(body, init, jnp.arange(3.0))
        assert len(runs) == count
        assert (float(carry), ys.tolist(), (carry.weak_type, ys.weak_type)) == (*want, weak)
    for init, body, count, weak in [
        (0.0, lambda c: noted(c + jnp.float32(1)), 1, False),
        (0.0, lambda c: noted(c + 1.0), 1, True),
        (0, lambda c: noted(c + 1.0), 2, False),
    ]:
        runs.clear()
        out = jax.lax.while_loop(lambda c: c < 3, body, init)
        assert (len(runs), float(out), out.dtype, out.weak_type) == (count, 3.0, jnp.float32, weak)

    # Carries that take each other's places settle one after another; tracers from outside stay arguments.
    def moved(c, a):
        noted(a)
        return (c[1] * a, c[1] + jnp.float32(1)), c[0]

    runs.clear()
    f = jax.jit(jax.grad(lambda a: jax.lax.scan(lambda c, _: moved(c, a), (0.0, 0.0), None, length=3)[0][0]))
    assert float(f(2.0)) == 2.0 and len(runs) == 1
    with pytest.raises(TypeError, match="carry"):
        jax.lax.scan(lambda c, _: (c[:1], c), jnp.zeros(2), None, length=2)


@pytest.mark.parametrize("length", [2.0, np.float32(2), np.int8(2)])
def test_a_length_may_be_a_whole_float(length):
    assert lax.scan(lambda c, _: (c + 1, c), 0.0, None, length=length)[1].shape == (2,)


@pytest.mark.parametrize("length", [2.5, float("nan"), float("inf"), "2"])
def test_a_length_with_a_fraction_is_refused(length):
    with pytest.raises(TypeError, match="length"):
        lax.scan(lambda c, _: (c + 1, c), 0.0, None, length=length)


def test_what_no_step_of_a_while_loop_changes_is_no_part_of_its_carry():
    f = lambda x: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1], c[2]), (0, x, 1.0))
    (eqn,) = jax.make_jaxpr(f)(2.0).eqns
    assert len(eqn.outvars) == 1 and eqn.params["cond_nconsts"] == 0
    for run in (lambda g: g, jax.jit):
        assert float(run(jax.grad(lambda x: f(x)[1] * x))(2.0)) == 4
        assert [float(v) for v in run(f)(2.0)] == [3, 2, 1]
    np.testing.assert_array_equal(jax.vmap(f)(jnp.arange(2.0))[1], [0, 1])
    swapped = lax.while_loop(lambda c: c[0] < 1, lambda c: (c[0] + 1, c[2], c[1]), (0, 1.0, 2.0))
    assert [float(v) for v in swapped] == [1, 2, 1]
    to_its_bound = lambda n: lax.while_loop(lambda c: c[0] < c[1], lambda c: (c[0] + 1, c[1]), (0, n))
    np.testing.assert_array_equal(jax.vmap(to_its_bound)(jnp.arange(3))[0], [0, 1, 2])


@pytest.mark.parametrize("loop", ["scan", "cond", "jit"])
def test_nothing_is_left_for_derivatives_that_are_zero(loop):
    """Softmax stops the gradient of the maximum: where it is need not be kept."""

    def f(x):
        if loop == "scan":
            return lax.scan(lambda c, _: (jax.nn.softmax(c) * 2, None), x, None, length=3)[0].sum()
        if loop == "cond":
            return lax.cond(x[0, 0] > 0, lambda x: jax.nn.softmax(x) * x, lambda x: x, x).sum()
        return jax.jit(lambda x: jax.nn.softmax(x) * x)(x).sum()

    jaxpr = jax.make_jaxpr(jax.grad(f))(jnp.ones((4, 5)))
    types = [v.aval for eqn in jaxpr.eqns for v in eqn.outvars if eqn.primitive.name in ("scan", "cond", "jit")]
    assert types and not any(t.dtype == bool and t.size > 1 for t in types), types


def test_scans_have_the_parameters_that_jax_reads():
    f = lambda x: lax.scan(lambda c, a: (jnp.sin(c * a), c), 1.0, x)[0]
    for traced, x in ((f, XS), (jax.grad(f), XS), (jax.vmap(f), XS[None]), (jax.vmap(jax.grad(f)), XS[None])):
        eqns = [eqn for eqn in jax.make_jaxpr(traced)(x).eqns if eqn.primitive.name == "scan"]
        assert eqns
        for eqn in eqns:
            assert sorted(eqn.params) == ["jaxpr", "length", "num_carry", "num_consts", "reverse", "unroll"]
