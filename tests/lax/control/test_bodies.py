"""Bodies of loops are traced once where they do the same each time. Functions that are made anew are traced again where
something around them changed."""

import functools
import gc
import sys
import types
import weakref

import numpy as np
import pytest

import pullback as pb
import pullback.numpy as jnp
from pullback import lax
from pullback.lax.control import bodies

XS = jnp.arange(4.0)
SCALE = jnp.float32(2.0)
TABLE = {"scale": 3.0}


@pytest.fixture
def traces(monkeypatch):
    """How often a body was traced."""
    bodies.clear()
    count = [0]
    original = lax.control.common._trace_body

    def counted(*args):
        count[0] += 1
        return original(*args)

    monkeypatch.setattr(lax.control.common, "_trace_body", counted)
    return count


def by_global(carry, x):
    return carry + SCALE * x, carry


def by_table(carry, x):
    return carry + TABLE["scale"] * x, carry


def test_once_for_the_same(traces):
    for k in range(5):
        lax.scan(by_global, jnp.float32(k), XS)
        lax.scan(lambda c, x: (c * x + 1, c), jnp.float32(k), XS)
        lax.fori_loop(0, 3, lambda i, c: c + i, jnp.float32(k))
        lax.while_loop(lambda c: c < 10, lambda c: c + 1, jnp.float32(k))
        lax.map(jnp.sin, XS)
    assert traces[0] == 6
    lax.scan(by_global, 1.0, jnp.arange(4))
    assert traces[0] > 6


def test_again_after_a_change(traces, monkeypatch):
    def total():
        anew = types.FunctionType(by_global.__code__, globals())
        return float(lax.scan(anew, jnp.float32(0), XS)[0])

    assert [total(), total(), traces[0]] == [12, 12, 1]
    monkeypatch.setitem(globals(), "SCALE", jnp.float32(5))
    assert [total(), total(), traces[0]] == [30, 30, 2]

    for k in range(4):  # closures over numbers, arrays, functions
        f = jnp.sin if k % 2 else jnp.cos
        y = jnp.float32(k)
        got = lax.scan(lambda c, x, k=k, f=f: (c + k * f(x) * y, None), 0.0, XS)[0]  # noqa: B023  a closure is meant
        np.testing.assert_allclose(got, k * k * float(jnp.sum(f(XS))), rtol=1e-5)

    def outer(number):
        def inner(x):
            return x * number

        return float(lax.scan(lambda c, x: (c + inner(x), None), 0.0, XS)[0])

    assert [outer(k) for k in (1, 2, 1.0, True, 3)] == [6, 12, 6, 6, 18]


def test_the_same_function_once():
    """Whatever it reads, as jit has it: in loops, branches, checkpoints, and where these are traced."""
    calls = []

    def one(x):
        calls.append(0)
        return x + 1

    def two(c, x):
        calls.append(0)
        return c + x, None

    def small(x):
        calls.append(0)
        return x < 3

    again = pb.checkpoint(one)
    for run, times in [
        (lambda: lax.scan(two, 0.0, XS), 1),
        (lambda: pb.jit(lambda c: lax.scan(two, c, XS)[0])(0.0), 0),
        (lambda: pb.grad(lambda c: lax.scan(two, c, XS)[0])(0.0), 0),
        (lambda: lax.while_loop(small, one, 0), 2),
        (lambda: lax.fori_loop(0, 3, lambda i, x: x, 0), 0),
        (lambda: lax.fori_loop(0, 3, lambda i, x: two(x, i)[0], 0), 3),  # the function is another each time
        (lambda: lax.cond(True, one, one, 1.0), 1),
        (lambda: again(jnp.ones(2)), 1),
        (lambda: pb.grad(lambda x: again(x).sum())(jnp.ones(2)), 0),
    ]:
        calls.clear()
        for _ in range(3):
            run()
        assert len(calls) == times
    calls.clear()
    for n in (3, 3, jnp.int32(4)):
        pb.jit(lambda n: lax.fori_loop(0, n, lambda_of_two, 0))(n)
    assert float(lax.fori_loop(0, 3, lambda_of_two, 1.0)) == 4


def lambda_of_two(i, x):
    return x + i


def test_functions_are_not_kept_alive():
    def make(big):
        return lambda c, x: (c + big[0], None)

    f = make(jnp.ones(2000))
    lax.scan(f, 0.0, XS)
    alive = weakref.ref(f)
    assert id(f) in bodies._own
    number = id(f)
    del f
    assert alive() is None and number not in bodies._own


def test_what_may_change_unseen_is_traced_each_time(traces):
    for k in range(3):
        TABLE["scale"] = float(k)
        assert float(lax.scan(lambda c, x: by_table(c, x), 0.0, XS)[0]) == 6 * k

    class Model:
        scale = 1.0

        def step(self, carry, x):
            return carry + self.scale * x, None

    model = Model()
    data = np.ones(1, np.float32)
    for k in range(3):
        model.scale = float(k)
        data[0] = k
        assert float(lax.scan(model.step, 0.0, XS)[0]) == 6 * k
        assert float(lax.scan(lambda c, x: (c + model.scale * x, None), 0.0, XS)[0]) == 6 * k
        assert float(lax.scan(functools.partial(lambda m, c, x: (c + m.scale * x, None), model), 0.0, XS)[0]) == 6 * k
        assert float(lax.scan(lambda c, x: (c + data[0] * x, None), 0.0, XS)[0]) == 6 * k


def test_closed_over_tracers():
    def f(y):
        return lax.scan(lambda c, x: (c * y + x, None), 1.0, XS)[0]

    want = float(pb.jit(pb.grad(f))(2.0))
    for _ in range(3):
        assert float(f(2.0)) == 27
        assert float(pb.grad(f)(2.0)) == pytest.approx(want)
        np.testing.assert_allclose(pb.vmap(f)(jnp.array([2.0, 0.0])), [27, 3])
        np.testing.assert_allclose(pb.jit(f)(2.0), 27)


def test_named_axes():
    def total(x):
        return lax.scan(lambda c, y: (c + lax.psum(y, "i"), None), 0.0, x)[0]

    for size in (2, 3, 2):
        x = jnp.ones((size, 4))
        np.testing.assert_allclose(pb.vmap(total, axis_name="i")(x), [4.0 * size] * size)


def test_large_constants_are_not_kept(traces):
    big = jnp.ones(100_000)
    for _ in range(2):
        assert float(lax.scan(lambda c, x: (c + big[0] * x, None), jnp.float32(0), XS)[0]) == 6
    assert traces[0] == 2 and not bodies._bodies


def test_recursion_and_settings():
    def power(x, n):
        return x if n == 0 else x * power(x, n - 1)

    for n in (1, 2, 3):
        got = lax.scan(lambda c, x: (c + power(x, n), None), 0.0, XS)[0]  # noqa: B023  a closure is meant
        assert float(got) == sum(k ** (n + 1) for k in range(4))
    for _ in range(2):
        with pb.enable_x64(True):
            assert lax.scan(lambda c, x: (c + x, None), np.float64(0), np.ones(3))[0].dtype == np.float64
        assert lax.scan(lambda c, x: (c + x, None), np.float64(0), np.ones(3))[0].dtype == np.float32


def test_what_modules_and_classes_hold_may_change():
    module = types.ModuleType("settings_of_test")

    class Settings:
        rate = 1.0

    module.rate = 1.0

    def run():
        by_class = lax.scan(lambda c, _: (c * Settings.rate, None), 1.0, None, length=2)[0]
        return float(by_class), float(lax.scan(lambda c, _: (c * module.rate, None), 1.0, None, length=2)[0])

    assert run() == (1, 1)
    Settings.rate, module.rate = 5.0, 3.0
    assert run() == (25, 9)


def test_zeros_have_signs():
    def run(s):
        return float(lax.scan(lambda c, _: (c * s, None), 1.0, None, length=1)[0])

    assert [np.signbit(run(s)) for s in (0.0, -0.0, 0.0)] == [False, True, False]


def test_methods_of_containers_may_change():
    """Bound methods of containers say what is in them."""
    table = {"k": 1.0}
    entries = [jnp.float32(1)]

    def totals():
        get = table.get
        item = entries.__getitem__
        return (
            float(lax.scan(lambda c, _: (c + get("k"), None), jnp.float32(0), None, length=3)[0]),
            float(lax.scan(lambda c, _: (c + item(0), None), jnp.float32(0), None, length=3)[0]),
        )

    assert totals() == (3, 3)
    table["k"], entries[0] = 100.0, jnp.float32(100)
    assert totals() == (300, 300)


def test_instances_of_our_classes_may_change():
    from pullback.experimental import sparse

    matrix = sparse.BCOO.fromdense(jnp.ones(1))

    def total():
        return float(lax.scan(lambda c, _: (c + matrix.data[0], None), jnp.float32(0), None, length=3)[0])

    assert total() == 3
    matrix.data = jnp.full(1, 100.0)
    assert total() == 300


def test_our_functions_are_named_by_bodies(traces):
    """Functions of ours by their own names are what they are."""
    from pullback.numpy import add, tanh

    for _ in range(3):
        lax.scan(lambda c, x: (add(tanh(c), x), c), jnp.float32(0), XS)
    assert traces[0] == 1


def test_eval_shape_traces_the_same_function_once():
    calls = []

    def f(x, n=2):
        calls.append(1)
        return {"y": x * n}

    for _ in range(3):
        assert pb.eval_shape(f, jnp.ones(3))["y"].shape == (3,)
    assert len(calls) == 1
    assert pb.eval_shape(f, jnp.ones(4))["y"].shape == (4,) and len(calls) == 2
    assert pb.eval_shape(f, pb.ShapeDtypeStruct((3,), jnp.int32))["y"].dtype == jnp.int32 and len(calls) == 3
    assert pb.jit(lambda x: pb.eval_shape(f, x)["y"].shape[0] * x)(jnp.ones(3))[0] == 3 and len(calls) == 3


def test_eval_shape_of_a_function_that_closes_over_tracers():
    @pb.vmap
    def outer(y):
        def f(x):
            return x + y

        assert pb.eval_shape(f, y).shape == pb.eval_shape(f, y).shape == ()
        return y

    assert outer(jnp.ones(2)).shape == (2,)


@pytest.mark.parametrize(
    "call",
    [
        lambda f: pb.make_jaxpr(f)(XS, XS),
        lambda f: lax.reduce(XS, np.float32(0), f, (0,)),
        lambda f: lax.reduce_window(XS, np.float32(0), f, (2,), (1,), "VALID"),
    ],
)
def test_what_takes_a_function_traces_it_once_for_the_same_types(call):
    runs = []

    def f(x, y):
        runs.append(1)
        return x + y * 2

    first, again = call(f), call(f)
    assert len(runs) == 1 and str(first) == str(again)


def test_functions_that_outlive_the_package_are_let_go_in_silence(monkeypatch):
    """At exit the globals of modules may be gone before a function is; programs ended in 'Exception ignored in'."""
    ignored = []
    monkeypatch.setattr(sys, "unraisablehook", ignored.append)
    fun = lambda c, x: (c + x, c)
    lax.scan(fun, 0.0, jnp.ones(3))
    assert id(fun) in bodies._own
    monkeypatch.setattr(bodies, "_own", None)
    del fun
    gc.collect()
    assert not ignored


class _Unequal:
    """Metadata that does not compare, as a tracer, which neighbor lists of jax-md have there."""

    def __hash__(self):
        return 3

    def __eq__(self, other):
        raise ValueError("no truth")


class _List:
    def __init__(self, x, error):
        self.x, self.error = x, error


pb.tree_util.register_pytree_node(_List, lambda n: ((n.x,), n.error), lambda error, xs: _List(*xs, error))


def test_bodies_on_trees_whose_metadata_does_not_compare_are_traced_each_time():
    def doubled(n):
        return n.x * 2

    def steps(of):
        def step(i, x):
            return x + lax.cond(x > 0, lambda n: n.x, of, _List(x, _Unequal()))

        return lax.fori_loop(0, 2, step, 1.0)

    for _ in range(3):
        assert steps(lambda n: n.x * 2) == 4.0
        assert steps(doubled) == 4.0


def test_values_that_cannot_be_shown_do_not_take_the_place_of_the_error():
    class Hidden:
        def __repr__(self):
            raise RuntimeError("not shown")

    with pytest.raises(TypeError, match="an object of type Hidden"):
        jnp.sum(Hidden())


def test_errors_inside_of_branches_in_the_old_form_of_cond_are_the_users():
    def fails(x):
        raise TypeError("of the user")

    with pytest.raises(TypeError, match=r"^of the user"):
        lax.cond(True, 1.0, fails, 2.0, lambda x: x)
    assert lax.cond(True, 1.0, lambda x: x + 1, 2.0, lambda x: x) == 2.0
    with pytest.raises(TypeError, match="should be callable"):
        lax.cond(True, 1.0, 2.0)


@pytest.mark.parametrize("size", [3, 16, 40])
@pytest.mark.parametrize(
    "use",
    [
        lambda x: pb.jit(lambda a: a + x)(1.0),
        lambda x: pb.jit(pb.grad(lambda a: (jnp.sin(a) * x).sum()))(2.0),
        lambda x: lax.scan(lambda c, a: (c + x, a), jnp.zeros(x.size), jnp.ones(3)),
        lambda x: lax.fori_loop(0, 3, lambda i, c: c + x, jnp.zeros(x.size)),
        lambda x: lax.cond(True, lambda: x, lambda: -x),
        lambda x: pb.grad(lambda a: pb.checkpoint(lambda b: (jnp.sin(b) * x).sum())(a))(2.0),
        lambda x: pb.jit(lambda a: lax.fori_loop(0, 3, lambda i, c: c * x[0], a))(2.0),
    ],
)
def test_arrays_that_functions_close_over_are_not_kept_alive(use, size):
    x = jnp.arange(size, dtype=np.float32) + 0.5
    alive = weakref.ref(x)
    results = [pb.tree.map(np.array, use(x)) for _ in range(3)]
    for result in results[1:]:
        pb.tree.map(np.testing.assert_array_equal, result, results[0])
    del x
    gc.collect()
    assert alive() is None


def test_keys_that_functions_close_over_are_not_kept_alive_and_not_confused():
    def drawn(key):
        return float(pb.jit(lambda a: pb.random.uniform(key) + a)(0.0))

    first, second, other = pb.random.key(3), pb.random.key(4), pb.random.key(3, impl="rbg")
    alive = weakref.ref(first)
    expected = float(pb.random.uniform(first))
    assert drawn(first) == drawn(first) == expected
    assert drawn(second) != expected and drawn(other) == float(pb.random.uniform(other))
    del first
    gc.collect()
    assert alive() is None
    assert drawn(pb.random.key(3)) == expected
