"""Mutable arrays: reads and writes outside and inside of traced functions, and where they end."""

import copy
import functools
import pickle

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import lax
from pullback import ref as refs


def test_reads_and_writes():
    r = jax.new_ref(jnp.arange(3.0))
    assert isinstance(r, jax.Ref) and r.shape == (3,) and r.dtype == np.float32 and r.ndim == 1 and r.size == 3
    r[0] = 5.0
    r[...] += 1
    r[1:] *= 2
    np.testing.assert_array_equal(r[...], [6, 4, 6])
    np.testing.assert_array_equal(r[jnp.array([2, 0])], [6, 6])
    assert float(refs.swap(r, 1, 9.0)) == 4
    refs.set(r, None, jnp.ones(3))
    refs.addupdate(r, jnp.array([0, 0]), jnp.ones(2))
    np.testing.assert_array_equal(refs.get(r), [3, 1, 1])
    kept = r[...]
    r[...] = jnp.zeros(3)
    assert kept[0] == 3 and "Ref(" in repr(r)
    np.testing.assert_array_equal(jax.freeze(r), [0, 0, 0])
    jax.ref.free_ref(r)
    with pytest.raises(ValueError, match="freed"):
        r[...]
    assert jax.empty_ref(jax.ShapeDtypeStruct((2,), jnp.int32))[...].dtype == np.int32


def f(x):
    r = jax.new_ref(x)
    r[...] *= x
    for i in range(3):
        r[i] += i
    return r[...].sum()


def test_inside_of_transformations():
    x = jnp.arange(3.0)
    assert float(f(x)) == float(jax.jit(f)(x)) == 8
    np.testing.assert_array_equal(jax.grad(f)(x), 2 * x)
    np.testing.assert_array_equal(jax.jit(jax.grad(f))(x), 2 * x)
    np.testing.assert_array_equal(jax.vmap(f)(jnp.stack([x, 2 * x])), [8, 23])
    r = jax.new_ref(x)
    assert float(jax.grad(lambda y: (r[...] * y).sum())(1.0)) == 3


def accumulate(x):
    """Loops and branches that read and write references of the function around them."""
    r, total = jax.new_ref(x), jax.new_ref(0.0)

    def body(c, i):
        r[i] = r[i] * c
        total[...] += r[i]
        return c + r[i], r[...]

    c, seen = jax.lax.scan(body, x[0] + 1, jnp.arange(3))

    def negate():
        r[...] = -r[...]
        return total[...]

    d = jax.lax.cond(c > 5, negate, lambda: total[...] * 2)
    e = jax.lax.switch(2, [negate, lambda: 0.0, lambda: total[...] + r[0]])
    jax.lax.fori_loop(0, 3, lambda i, _: total.__setitem__(..., total[...] + r[i] * i), None)
    return c + d + e + seen.sum() + r[...].sum() + total[...]


def accumulate_by_values(x):
    r, total, c, seen = x, 0.0, x[0] + 1, []
    for i in range(3):
        r = r.at[i].multiply(c)
        total, c = total + r[i], c + r[i]
        seen.append(r)
    d, r = jnp.where(c > 5, total, total * 2), jnp.where(c > 5, -r, r)
    e = total + r[0]
    for i in range(3):
        total = total + r[i] * i
    return c + d + e + jnp.stack(seen).sum() + r.sum() + total


def test_loops_and_branches():
    for x in (jnp.arange(1.0, 4.0), jnp.arange(3.0) / 4):
        want = accumulate_by_values(x)
        for run in (accumulate, jax.jit(accumulate), jax.checkpoint(accumulate)):
            for _ in range(2):
                np.testing.assert_allclose(run(x), want, rtol=1e-6)
            np.testing.assert_allclose(jax.grad(run)(x), jax.grad(accumulate_by_values)(x), rtol=1e-5)
            np.testing.assert_allclose(jax.jit(jax.jacfwd(run))(x), jax.grad(accumulate_by_values)(x), rtol=1e-5)
        np.testing.assert_allclose(
            jax.vmap(accumulate)(jnp.stack([x, -x])), [want, accumulate_by_values(-x)], rtol=1e-5
        )


def test_loops_inside_of_loops():
    r = jax.new_ref(0.0)

    def outer(c, _):
        def inner(d, _):
            r[...] += 1
            return d + r[...], None

        return jax.lax.scan(inner, c, None, length=2)[0], r[...]

    for k in range(3):
        total, seen = jax.lax.scan(outer, 0.0, None, length=3)
        np.testing.assert_array_equal(seen, 6 * k + jnp.array([2.0, 4, 6]))
        assert float(total) == 36 * k + 21 and float(r[...]) == 6 * k + 6

    def body(c):
        r[...] -= c
        return c + 1

    assert int(jax.lax.while_loop(lambda c: r[...] > 0, body, 1)) == 7 and float(r[...]) == -3
    read_only = jax.new_ref(jnp.arange(3.0))
    np.testing.assert_array_equal(
        jax.vmap(lambda x: jax.lax.fori_loop(0, 3, lambda i, s: s + x * read_only[i], 0.0))(jnp.ones(2)), [3, 3]
    )


def test_jitted_functions_close_over_references():
    r, s = jax.new_ref(0.0), jax.new_ref(jnp.ones(2))
    traced = []

    @jax.jit
    def f(x, k=1):
        traced.append(x)
        r[...] += x
        return r[...] * s[...] * k

    for i in range(1, 5):
        np.testing.assert_array_equal(f(1.0), [i, i])
    seen = len(traced)
    for i in range(5, 9):
        np.testing.assert_array_equal(f(1.0), [i, i])
    assert len(traced) == seen  # nothing is traced again
    s[...] = jnp.array([1.0, 2.0])
    np.testing.assert_array_equal(f(2.0, k=2), [20, 40])
    assert float(r[...]) == 10
    np.testing.assert_array_equal(jax.lax.scan(lambda c, x: (c, f(x)), 0.0, jnp.ones(2))[1], [[11, 22], [12, 24]])
    np.testing.assert_array_equal(jax.jit(lambda: f(1.0) + f(1.0))(), [27, 54])
    jax.ref.free_ref(s)
    with pytest.raises(ValueError, match="freed"):
        f(1.0)


def test_references_as_arguments_of_jitted_functions():
    traced = []

    @functools.partial(jax.jit, static_argnames="n")
    def step(state, x, n=1):
        traced.append(x)
        state["w"][0] += x * n
        state["count"][...] += 1
        return state["w"][...].sum()

    for _ in range(2):
        state = {"w": jax.new_ref(jnp.zeros(3)), "count": jax.new_ref(0)}
        for i in range(1, 4):
            assert float(step(state, 2.0)) == 2 * i and int(state["count"][...]) == i
        assert float(step(state, 2.0, n=3)) == 12
        np.testing.assert_array_equal(state["w"][...], [12, 0, 0])
    assert len(traced) <= 4

    def loop(x):
        r = jax.new_ref(x)
        jax.lax.fori_loop(0, 3, lambda i, _: jax.jit(lambda r: r.__setitem__(..., r[...] * 2))(r), None)
        return r[...]

    assert float(jax.grad(loop)(1.0)) == 8 and float(jax.jit(loop)(1.0)) == 8


def test_what_is_not_supported_says_so():
    r = jax.new_ref(jnp.zeros(3))

    def write(x):
        r[...] = x

    def write_one(x):
        r[0] = x

    def write_under_vmap(c, x):
        jax.vmap(write_one)(jnp.ones(3))
        return c, x

    for bad in (lambda: jax.vmap(write_one)(jnp.ones(3)), lambda: jax.jit(jax.vmap(write_one))(jnp.ones(3)),
                lambda: jax.vmap(jax.jit(write_one))(jnp.ones(3)),
                lambda: jax.lax.scan(write_under_vmap, 1.0, None, 3)):  # fmt: skip
        with pytest.raises(Exception, match="a batched value is written to an unbatched array reference"):
            bad()
    for bad in (lambda: jax.jvp(write, (jnp.ones(3),), (jnp.ones(3),)),
                lambda: jax.jit(lambda x: jax.jvp(write, (x,), (x,)))(jnp.ones(3))):  # fmt: skip
        with pytest.raises(
            Exception, match="value that has a derivative is written to a non-differentiated array reference"
        ):
            bad()
    with pytest.raises(TypeError, match="closes over a Ref; make it an argument"):
        jax.jit(write).lower(jnp.ones(3))

    def write_condition(c):
        r[...] += 1
        return c < 3

    with pytest.raises(NotImplementedError, match="cond_fun writes"):
        jax.lax.while_loop(write_condition, lambda c: c + 1, 0)
    with pytest.raises(ValueError, match=r"traced for jit returned a mutable array reference(.|\n)*the argument r\."):
        jax.jit(lambda r: r)(r)
    with pytest.raises(ValueError, match=r"returned a mutable array reference(.|\n)*made by"):
        jax.jit(lambda: [jax.new_ref(1.0)])()
    with pytest.raises(ValueError, match="mutable array references cannot be returned"):
        jax.vmap(lambda r: r)(r)
    with pytest.raises(ValueError, match=r"of type Ref{float32\[3\]} came at both r and s"):
        jax.jit(lambda r, s: r[...] + s[...])(r, r)
    for _ in range(2):
        with pytest.raises(ValueError, match="both closed over and passed in, as argument s"):
            jax.jit(lambda s: r[...] + s[...])(r)
    for bad in (lambda: jax.grad(lambda r: r[0])(r), lambda: jnp.sin(r), lambda: r + 1):
        with pytest.raises(TypeError):
            bad()
    for bad in (lambda r: jnp.sin(r), lambda r: r + 1, lambda r: jax.grad(lambda r: r[0])(r), lambda r: bool(r)):
        with pytest.raises((TypeError, ValueError)):
            jax.jit(bad)(r)
    for bad in (lambda: jax.jit(jax.freeze)(r), lambda: jax.jit(lambda: jax.freeze(r))()):
        with pytest.raises(ValueError, match="made outside of the function"):
            bad()
    assert float(jax.jit(lambda x: jax.freeze(jax.new_ref(x)))(1.0)) == 1
    for end in (jax.freeze, jax.free_ref):
        with pytest.raises(TypeError, match=f"^{end.__name__}: argument 'ref' must be a Ref, got"):
            end(jnp.arange(3))
    with pytest.raises(ValueError, match="Out of bound indexer: idx=3, dim=3"):
        r[3]
    for bad, text in (((0, 0), "too many"), (slice(None, None, -1), "step"), (jax.ds(2, 2), "Out of bound slice")):
        for read in (lambda r, bad=bad: r[bad], jax.jit(lambda r, bad=bad: r[bad])):
            with pytest.raises(ValueError, match=text):
                read(r)
    with pytest.raises(ValueError, match="Ref has dtype int32, the value float32"):
        jax.new_ref(jnp.arange(3))[0] = 1.5
    np.testing.assert_array_equal(r[...], [0, 0, 0])
    with pytest.raises(ValueError, match="shape"):
        r[...] = jnp.ones(4)
    with pytest.raises(ValueError, match="dtype"):
        r[0] = jnp.complex64(1j)
    with pytest.raises(TypeError, match="Ref itself"):
        jax.new_ref(r)
    kept = []
    jax.jit(lambda x: kept.append(jax.new_ref(x)))(1.0)
    with pytest.raises(ValueError, match="has ended"):
        kept[0][...]


def test_references_are_arguments_of_vmap():
    def add(r, x):
        r[...] = r[...] + x
        return r[...] * 2

    r = jax.new_ref(jnp.zeros(3))
    np.testing.assert_array_equal(jax.vmap(add)(r, jnp.arange(3.0)), [0, 2, 4])
    np.testing.assert_array_equal(jax.vmap(add, (0, None))(r, 1.0), [2, 4, 6])
    np.testing.assert_array_equal(r[...], [1, 2, 3])

    def put(r, i, x):
        r[i] = x

    m = jax.new_ref(jnp.zeros((2, 3)))
    i = jnp.array([1, 2])
    for mapped in (jax.vmap(put), jax.jit(jax.vmap(put)), jax.vmap(jax.jit(put))):
        m[...] = jnp.zeros((2, 3))
        mapped(m, i, jnp.ones(2))
        np.testing.assert_array_equal(m[...], [[0, 1, 0], [0, 0, 1]])
    jax.vmap(put, (1, 0, 0))(m, jnp.array([1, 1, 0]), jnp.full(3, 5.0))
    np.testing.assert_array_equal(m[...], [[0, 1, 5], [5, 5, 1]])
    one = jax.new_ref(0.0)
    with pytest.raises(NotImplementedError, match="unbatched array reference"):
        jax.vmap(add, (None, 0))(one, jnp.arange(3.0))
    with pytest.raises(ValueError, match="twice"):
        jax.vmap(lambda a, b: a[...] + b[...])(m, m)
    assert float(one[...]) == 0


def test_values_that_do_not_move_leave_derivatives():
    def f(x, r):
        r[...] = lax.stop_gradient(x)
        return x * 2

    r = jax.new_ref(0.0)
    for number, g in enumerate([jax.grad(f), jax.jit(jax.grad(f)), lambda x, r: jax.value_and_grad(f)(x, r)[1]]):
        assert float(g(number + 1.0, r)) == 2 and float(r[...]) == number + 1 and r[...].weak_type
    with pytest.raises(NotImplementedError, match="non-differentiated array reference"):
        jax.grad(lambda x: refs.swap(r, ..., x))(1.0)

    p, t = jax.new_ref(1.0), jax.new_ref(0.5)

    def g(x, r):
        r[...] = x * r[...]
        return r[...] * 2

    assert [float(v) for v in jax.jvp(g, (3.0, p), (2.0, t))] == [6.0, 7.0]
    assert (float(p[...]), float(t[...])) == (3.0, 3.5)
    with pytest.raises(TypeError, match="Ref of its tangent"):
        jax.jvp(g, (3.0, p), (2.0, 1.0))
    assert jax.vjp(g, 1.0, p)[0] == g(1.0, jax.new_ref(p[...]))


def test_custom_rules_write_references():
    @jax.custom_vjp
    def probe(x, r):
        return x

    def bwd(r, bar):
        r[...] = bar
        return bar, None

    probe.defvjp(lambda x, r: (x, r), bwd)
    r, rows = jax.new_ref(0.0), jax.new_ref(jnp.zeros(2))
    f = lambda x, r: jnp.sin(probe(x, r))
    assert float(jax.grad(f)(0.0, r)) == 1 == float(r[...])
    assert float(jax.jit(jax.grad(f))(jnp.pi, r)) == float(r[...]) < -0.99
    np.testing.assert_array_equal(jax.vmap(jax.grad(f))(jnp.zeros(2), rows), rows[...])
    assert float(probe(2.0, r)) == 2

    @jax.custom_jvp
    def twice(x, r):
        return 2 * x

    twice.defjvp(lambda p, t: (twice(*p), t[0] * p[1][...]))
    r[...] = 7.0
    assert float(jax.grad(twice)(1.0, r)) == 7


def test_loops_and_branches_take_references():
    r = jax.new_ref(jnp.arange(3.0))

    def body(c, row):
        row[0][...] = row[0][...] * 2 + c
        return c + row[1], row[0][...]

    for run in (
        lambda r: lax.scan(body, 0.0, (r, jnp.ones(3))),
        jax.jit(lambda r: lax.scan(body, 0.0, (r, jnp.ones(3)))),
    ):
        run(r)
    np.testing.assert_array_equal(r[...], [0, 7, 14])
    lax.scan(lambda c, row: (row[...], refs.addupdate(row, ..., c)), 1.0, r, reverse=True)
    np.testing.assert_array_equal(r[...], [7, 21, 15])
    with pytest.raises(ValueError, match="leading sizes"):
        lax.scan(lambda c, _: (c, None), 0.0, (r, jax.new_ref(jnp.zeros(2))))

    def put(r):
        r[0] = 4.0
        return 1

    assert int(lax.cond(True, put, lambda r: 2, r)) == 1 and float(r[0]) == 4
    assert int(lax.switch(1, [put, lambda r: 2], r)) == 2
    for loop in (
        lambda: lax.scan(lambda c, _: (c, None), r, None, 2),
        lambda: lax.fori_loop(0, 2, lambda i, c: c, r),
        lambda: lax.while_loop(lambda c: False, lambda c: c, r),
    ):
        with pytest.raises(ValueError, match="a Ref cannot be a part of the carry"):
            loop()
    assert [float(x) for x in r] == [4, 21, 15] and len(r) == 3


def test_pullbacks_add_to_references():
    x, y = jnp.array([1.0, 2.0]), jnp.array([3.0, 4.0])
    _, pull = jax.vjp(lambda p, y: p["a"] * y, {"a": x}, y)
    a, b = jax.new_ref(jnp.zeros(2)), jax.new_ref(jnp.ones(2))
    one = jnp.ones(2)
    assert repr(pull.with_refs({"a": a}, b)(one)) == "({'a': GradRef()}, GradRef())"
    np.testing.assert_array_equal(a[...], y)
    np.testing.assert_array_equal(b[...], 1 + x)
    given = pull.with_refs({"a": jax.ad.DontWant()}, jax.ad.GradValue())(one)
    assert repr(given[0]["a"]) == "DidntWant()"
    np.testing.assert_array_equal(given[1], x)
    with pytest.raises(ValueError, match="structure"):
        pull.with_refs(a, b)
    # What is not wanted is not computed.
    _, of_product = jax.vjp(lambda w, x: jnp.tanh(w @ x), jnp.eye(2), x)
    for wants, count in (((jax.ad.GradValue(),) * 2, 2), ((jax.ad.GradValue(), jax.ad.DontWant()), 1)):
        text = str(jax.make_jaxpr(lambda wants=wants: of_product.with_refs(*wants)(one))())
        assert text.count("dot_general[") == count
    weights, nothing = of_product.with_refs(jax.ad.GradValue(), jax.ad.DontWant())(one)
    np.testing.assert_array_equal(weights, of_product(one)[0])
    assert repr(nothing) == "DidntWant()"
    # Nor where rules have been seen before, and are recorded as calls of what was traced then.
    for _ in range(3):
        _, of_product = jax.vjp(lambda w, x: jnp.sin(w @ x), jnp.eye(2), x)
    text = str(jax.make_jaxpr(lambda: of_product.with_refs(jax.ad.GradValue(), jax.ad.DontWant())(one))())
    assert text.count("dot_general[") == 1
    assert [e.primitive.name for e in of_product.jaxpr.eqns] == ["dot_general", "dot_general", "add_any", "mul"]
    # What is kept: the primals are told from the rest, can be taken out, and put back.
    assert pull.opaque_residuals == [] and pull.args_res[0][0] is x and pull.args_res[1] is y
    pull.args_res[1] = None
    with pytest.raises(ValueError, match="taken out"):
        pull(one)
    pull.args_res[1] = 10 * y
    np.testing.assert_array_equal(jax.jit(lambda pull, bar: pull(bar))(pull, one)[0]["a"], 10 * y)
    _, pull = jax.vjp(lambda x, y: jnp.sin(x) + y, x, y)
    assert repr(pull.args_res) == "[NotNeeded(), NotNeeded()]" and len(jax.tree.leaves(pull)) == 1

    _, pull = jax.vjp(lambda none, x, both: x * both[1], None, x, (None, y))  # trees without leaves among the primals
    assert pull.args_res[0] == () and pull.args_res[1] is x and pull.args_res[2][0] is y
    np.testing.assert_array_equal(pull(one)[2][1], x)

    @jax.jit
    def accumulate(total, w, xs):
        def step(_, x):
            jax.vjp(lambda w: jnp.sum(jnp.tanh(x * w)), w)[1].with_refs(total)(jnp.float32(1))
            return (), None

        lax.scan(step, (), xs)

    a[...] = jnp.zeros(2)
    xs = jnp.arange(6.0).reshape(3, 2)
    accumulate(a, y, xs)
    np.testing.assert_allclose(a[...], (xs / jnp.cosh(xs * y) ** 2).sum(0), rtol=1e-5, atol=1e-6)


def test_every_transformation_of_a_program_with_references():
    """Each against the function on values: references in loops, inside of branches, inside of jitted functions."""

    def f(x):
        r, k = jax.new_ref(jnp.zeros(3)), jax.new_ref(0)

        @jax.jit
        def step(s, v):
            s[...] = s[...] * v + 1

            def once(c):
                k[...] += 1
                s[k[...] % 3] += v
                return c + 1

            lax.while_loop(lambda c: (c < 2) & (k[...] < 5), once, 0)
            return s[0]

        def body(c, y):
            lax.cond(c > 0, lambda: step(r, y), lambda: r[1])
            return c + r[0], r[...].sum()

        c, ys = lax.scan(body, x[0], x)
        return c + ys.sum() + r[...].sum() * k[...]

    def g(x):
        r, k, c, total = jnp.zeros(3), 0, x[0], 0.0
        for y in x:
            if c > 0:
                r = r * y + 1
                for _ in range(2):
                    if k < 5:
                        k += 1
                        r = r.at[k % 3].add(y)
            c, total = c + r[0], total + r.sum()
        return c + total + r.sum() * k

    x = jnp.array([0.5, -0.25, 1.5])
    h = jax.grad(g)
    for run in (f, jax.jit(f), jax.checkpoint(f), jax.jit(jax.checkpoint(f))):
        np.testing.assert_allclose(run(x), g(x), rtol=1e-6)
        np.testing.assert_allclose(jax.jacfwd(run)(x), h(x), rtol=1e-5)
        np.testing.assert_allclose(jax.linearize(run, x)[1](x), h(x) @ x, rtol=1e-5)
        np.testing.assert_allclose(jax.vmap(run)(jnp.stack([x, 2 * x])), [g(x), g(2 * x)], rtol=1e-5)
    closed = jax.make_jaxpr(f)(x)
    np.testing.assert_allclose(jax.core.eval_jaxpr(closed.jaxpr, closed.consts, x)[0], g(x), rtol=1e-6)
    np.testing.assert_allclose(jax.jit(lambda x: jax.vmap(f)(x))(jnp.stack([x, 2 * x])), [g(x), g(2 * x)], rtol=1e-5)

    def linear(x):
        r = jax.new_ref(jnp.zeros(3))
        r[0] = x[0] * 2
        lax.fori_loop(1, 3, lambda i, _: r.__setitem__(i, r[i - 1] + x[1]), None)
        return r[...]

    np.testing.assert_array_equal(jax.linear_transpose(linear, jnp.ones(2))(jnp.ones(3))[0], [6, 3])
    np.testing.assert_array_equal(jax.jit(lambda x: jax.vjp(linear, x)[1](jnp.ones(3))[0])(jnp.ones(2)), [6, 3])


def test_masks_keys_and_scalars():
    r = jax.new_ref(jnp.arange(4.0))
    r[np.array([True, False, True, False])] = np.float32([9, 9])
    np.testing.assert_array_equal(r[...], [9, 1, 9, 3])
    keys = jax.new_ref(jax.random.key(0))

    @jax.jit
    def draw(keys):
        keys[...], key = jax.random.split(keys[...])
        return jax.random.normal(key)

    assert float(draw(keys)) != float(draw(keys))
    n = jax.new_ref(0)
    jax.jit(lambda: n.__setitem__(..., n[...] + 1))()
    assert int(n[...]) == 1 and n[...].weak_type


def test_custom_rules_inside_of_jitted_functions_that_refer():
    r = jax.new_ref(1.0)

    @jax.custom_vjp
    def scaled(x):
        return x * r[...]

    scaled.defvjp(lambda x: (x * r[...], None), lambda _, bar: (bar * 100,))
    assert float(jax.grad(scaled)(2.0)) == 100 and float(jax.jit(scaled)(2.0)) == 2
    assert float(jax.jit(jax.grad(scaled))(2.0)) == 100 == float(jax.grad(jax.jit(scaled))(2.0))


def test_custom_rules_write_references_from_inside_of_what_is_differentiated():
    r, x = jax.new_ref(jnp.zeros(2)), jnp.array([1.0, 2.0])

    @jax.custom_vjp
    def stash(x, r):
        return x

    def bwd(r, bar):
        r[...] += bar
        return bar, None

    stash.defvjp(lambda x, r: (x, r), bwd)
    loss = lambda x, r: (stash(jnp.sin(x), r) ** 2).sum()
    inside = lambda x, r: jax.jit(loss)(x, r)
    by_scan = lambda x, r: lax.scan(lambda c, _: (stash(c, r), None), jnp.sin(x), None, length=1)[0]
    by_cond = lambda x, r: lax.cond(x[0] > 0, lambda c: stash(c, r), lambda c: c, jnp.sin(x))
    for f in (jax.jit(loss), jax.jit(inside), jax.checkpoint(loss), lambda x, r: (by_scan(x, r) ** 2).sum(),
              jax.jit(lambda x, r: (by_cond(x, r) ** 2).sum())):  # fmt: skip
        for g in (jax.grad(f), jax.jit(jax.grad(f)), lambda x, r, f=f: jax.vjp(lambda x: f(x, r), x)[1](1.0)[0]):
            r[...] = jnp.zeros(2)
            np.testing.assert_allclose(g(x, r), jnp.sin(2 * x), rtol=1e-5)
            np.testing.assert_allclose(r[...], 2 * jnp.sin(x), rtol=1e-5)
    rows = jax.new_ref(jnp.zeros((3, 2)))
    jax.vmap(jax.grad(jax.jit(loss)))(jnp.stack([x] * 3), rows)
    np.testing.assert_allclose(rows[...], [2 * jnp.sin(x)] * 3, rtol=1e-5)


def test_custom_rules_write_what_they_close_over():
    calls = jax.new_ref(0.0)

    @jax.custom_vjp
    def same(x):
        return x

    def fwd(x):
        calls[...] += 1
        return x, None

    def bwd(_, bar):
        calls[...] += 100
        return (2 * bar,)

    same.defvjp(fwd, bwd)
    scanned = lambda x: lax.scan(lambda c, _: (same(c), None), x, None, length=3)[0]
    chosen = lambda x: lax.cond(x > 0, same, lambda c: c, x)
    for f, n in ((same, 1), (scanned, 3), (chosen, 1), (lambda x: lax.fori_loop(0, 3, lambda _, c: same(c), x), 3)):
        for g in (jax.grad(f), jax.grad(jax.jit(f)), jax.jit(jax.grad(f))):
            calls[...] = 0.0
            assert float(g(1.0)) == 2**n and float(calls[...]) == 101 * n

    @jax.custom_jvp
    def moved(x):
        return x

    @moved.defjvp
    def _(primals, tangents):
        calls[...] += 1
        return primals[0], 3 * tangents[0]

    loop = lambda x: lax.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, moved(c[1])), (0, x))[1]
    for f, n in ((moved, 1), (jax.jit(moved), 1), (loop, 2), (jax.jit(loop), 2)):
        calls[...] = 0.0
        assert float(jax.jvp(f, (1.0,), (1.0,))[1]) == 3**n and float(calls[...]) == n


def test_solves_and_linear_calls_read_references():
    scale = jax.new_ref(2.0)

    def matvec(x):
        r = jax.new_ref(x)
        r[...] *= scale[...]
        return r[...]

    f = lambda b: lax.custom_linear_solve(matvec, b, lambda m, b: b / scale[...], symmetric=True)
    b = jnp.arange(3.0)
    for run in (f, jax.jit(f), jax.vmap(f), jax.jit(jax.vmap(f))):
        np.testing.assert_array_equal(run(b), b / 2)
    for run in (jax.grad(lambda b: f(b).sum()), jax.jit(jax.grad(lambda b: f(b).sum()))):
        np.testing.assert_array_equal(run(b), [0.5, 0.5, 0.5])
    twice = lambda _, x: matvec(x)
    g = jax.jit(lambda b: jax.custom_derivatives.linear_call(twice, twice, (), b))
    np.testing.assert_array_equal(g(b), 2 * b)
    np.testing.assert_array_equal(jax.grad(lambda b: g(b).sum())(b), [2, 2, 2])
    with pytest.raises(NotImplementedError, match="writes a Ref that was made outside"):
        lax.custom_linear_solve(lambda x: (scale.__setitem__(..., 3.0), x)[1], b, lambda m, b: b, symmetric=True)


def test_references_are_arguments_of_shard_map():
    mesh = jax.make_mesh((1,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
    spec = jax.sharding.PartitionSpec("i")
    r = jax.new_ref(jnp.arange(4.0))
    double = jax.shard_map(lambda r: r.__setitem__(..., r[...] * 2), mesh=mesh, in_specs=spec, out_specs=None)
    assert jax.jit(double)(r) is None and double(r) is None
    np.testing.assert_array_equal(r[...], [0, 4, 8, 12])
    read = jax.shard_map(lambda r, x: r[...] + x, mesh=mesh, in_specs=(spec, spec), out_specs=spec)
    np.testing.assert_array_equal(jax.jit(read)(r, jnp.ones(4)), [1, 5, 9, 13])

    def made_inside(x):
        r = jax.new_ref(x)
        double(r)
        return r[...]

    np.testing.assert_array_equal(jax.jit(made_inside)(jnp.ones(2)), [2, 2])
    np.testing.assert_array_equal(jax.grad(lambda x: made_inside(x).sum())(jnp.ones(2)), [2, 2])


def test_references_have_methods():
    def f(x):
        r = jax.new_ref(x)
        r.set(7.0, 0)
        r.addupdate(1.0, 1)
        old = r.swap(9.0, 2)
        r.set(r.get() * 2)
        return r.get(1), old, r.get((2,)), r[...]

    for call in (f, jax.jit(f), lambda x: jax.jvp(f, (x,), (x,))[0]):
        one, old, two, whole = call(jnp.arange(3.0))
        assert (float(one), float(old), float(two)) == (4.0, 2.0, 18.0)
        np.testing.assert_array_equal(whole, [14, 4, 18])


def test_integers_outside_of_their_axis_are_the_nearest_in_a_program():
    r = jax.new_ref(jnp.arange(4.0))
    assert float(r[-9]) == 0
    assert [float(x) for x in jax.jit(lambda r: (r[9], r[-9]))(r)] == [3, 0]
    text = str(jax.make_jaxpr(lambda r: (r[-9], r[-1], r[jax.ds(1, 2)], r[3:1], r[()]))(r))
    assert [line.split("<- a")[1] for line in text.split("\n") if "<-" in line] == [
        "[-9]",
        "[-1]",
        "[1:3]",
        "[3:3]",
        "[...]",
    ]
    assert "a[:,1]" in str(jax.make_jaxpr(lambda r: r[..., 1])(jax.new_ref(jnp.ones((2, 3)))))


def test_what_was_frozen_is_a_reference_still():
    r = jax.new_ref(jnp.arange(3))
    x = jax.freeze(r)
    r[0] = 5
    np.testing.assert_array_equal(x, [0, 1, 2])
    np.testing.assert_array_equal(r[...], [5, 1, 2])

    def f(x):
        r = jax.new_ref(x)
        y = jax.freeze(r)
        return y, r[...]

    for g in (f, jax.jit(f), jax.vmap(f)):
        np.testing.assert_array_equal(g(jnp.ones(2)), jnp.ones((2, 2)))


def test_copies_of_references():
    r = jax.new_ref(1.0)
    assert copy.copy(r) is r
    for other in (copy.deepcopy(r), pickle.loads(pickle.dumps(r))):
        other[...] = 2.0
        assert (float(r[...]), float(other[...])) == (1, 2)
