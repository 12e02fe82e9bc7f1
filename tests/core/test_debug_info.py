"""What jaxprs say of the functions that they were traced from."""

import functools
import pickle

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import lax


def f(x, y):
    return {"a": x * y, "b": (x, y)}


def said(closed):
    info = closed.jaxpr.debug_info
    return info.traced_for, info.func_name, info.arg_names, info.result_paths


RESULTS = ("result['a']", "result['b'][0]", "result['b'][1]")


@pytest.mark.parametrize(
    ("make", "want"),
    [
        (lambda: jax.make_jaxpr(f)(1.0, 2.0), ("jit", "f", ("x", "y"), RESULTS)),
        (lambda: jax.jit(f, static_argnums=1).trace(1.0, 2.0).jaxpr, ("jit", "f", ("x",), RESULTS)),
        (lambda: jax.jit(functools.partial(f, y=2.0)).trace(1.0).jaxpr, ("jit", "f", ("x",), RESULTS)),
        (lambda: jax.make_jaxpr(jax.vmap(f))(np.ones(2), np.ones(2)), ("jit", "f", ("x", "y"), RESULTS)),
        (lambda: jax.jit(lambda *a, **k: a[0]).trace(1.0, [2.0], z=3.0).jaxpr,
         ("jit", "<lambda>", ("a[0]", "a[1][0]", "k['z']"), ("result",))),
        (lambda: jax.make_jaxpr(lambda d: None)({"k": 1.0}), ("jit", "<lambda>", ("d['k']",), ())),
    ],
)  # fmt: skip
def test_arguments_and_results_have_names(make, want):
    assert said(make()) == want


def bodies(closed):
    (eqn,) = [eqn for eqn in closed.eqns if eqn.primitive.name in ("scan", "while", "cond", "remat2")]
    params = eqn.params
    inner = [params[k] for k in ("jaxpr", "cond_jaxpr", "body_jaxpr") if k in params] + list(params.get("branches", ()))
    return [said(j if hasattr(j, "consts") else jax.extend.core.ClosedJaxpr(j, ())) for j in inner]


def test_bodies_say_what_they_are_of():
    x = np.ones(3, np.float32)
    scan = jax.make_jaxpr(lambda x: lax.scan(lambda c, a: (c + a, c), 0.0, x))(x)
    assert bodies(scan) == [("scan", "<lambda>", ("c", "a"), ("result[0]", "result[1]"))]
    loop = jax.make_jaxpr(lambda x: lax.while_loop(lambda p: p < 3, lambda q: q + 1, x))(1.0)
    assert bodies(loop) == [
        ("while_cond", "<lambda>", ("p",), ("result",)),
        ("while_body", "<lambda>", ("q",), ("result",)),
    ]
    cond = jax.make_jaxpr(lambda x: lax.cond(x > 0, lambda y: y * 2, lambda z: z * 3, x))(1.0)
    assert bodies(cond) == [("cond", "<lambda>", ("z",), ("result",)), ("cond", "<lambda>", ("y",), ("result",))]
    assert bodies(jax.make_jaxpr(jax.checkpoint(f))(1.0, 2.0)) == [("checkpoint / remat", "f", ("x", "y"), RESULTS)]


def test_places_of_functions_and_pickles():
    info = jax.make_jaxpr(f)(1.0, 2.0).jaxpr.debug_info
    assert info.func_src_info == f"f at {__file__}:{f.__code__.co_firstlineno}"
    assert (info.func_filename, info.func_lineno) == (__file__, f.__code__.co_firstlineno)
    again = pickle.loads(pickle.dumps(info))
    assert repr(again) == repr(info) and again.arg_names == ("x", "y")


def test_names_keep_no_arguments_alive():
    import weakref

    class Held:
        pass

    held = Held()
    closed = jax.make_jaxpr(lambda x, used=held: x + 1)(jnp.ones(3))
    gone = weakref.ref(held)
    del held
    import gc

    gc.collect()
    assert gone() is None and said(closed)[2] == ("x",)


@jax.tree_util.register_pytree_node_class
class _OfNumbers:
    """Its constructor looks at what it is given, as many libraries' do."""

    def __init__(self, value):
        self.value = value + 0

    def tree_flatten(self):
        return (self.value,), None

    @classmethod
    def tree_unflatten(cls, aux, children):
        return cls(*children)


def test_names_of_leaves_need_no_class_that_takes_what_is_no_number():
    class Callable:
        def __call__(self, given):
            return {"out": _OfNumbers(given["in"][1].value * given["x"])}

    given = {"in": (1.0, _OfNumbers(2.0)), "x": 3.0}
    for fun in (Callable(), functools.partial(Callable().__call__), lambda given: Callable()(given)):
        assert jax.jit(fun)(given)["out"].value == 6
        info = jax.make_jaxpr(fun)(given).jaxpr.debug_info
        assert list(info.arg_names) == ["given['in'][0]", "given['in'][1][<flat index 0>]", "given['x']"]
        assert list(info.result_paths) == ["result['out'][<flat index 0>]"]


def test_functions_with_rules_say_what_their_arguments_are():
    @functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
    def scaled(n, x, given):
        return x * given["by"][0] * n

    scaled.defjvp(lambda n, primals, tangents: (scaled(n, *primals), tangents[0]))
    given = {"by": [2.0]}
    for fun in (functools.partial(scaled, 3), jax.vmap(functools.partial(scaled, 3), (0, None))):
        (eqn,) = jax.make_jaxpr(fun)(np.ones(2, np.float32), given).eqns
        assert said(eqn.params["call_jaxpr"]) == ("custom_jvp fun", "scaled", ("x", "given['by'][0]"), None)


def test_bodies_of_counted_loops_name_the_users_function_and_arguments():
    def body(i, c):
        return c * 2.0

    counted = jax.make_jaxpr(lambda x: lax.fori_loop(0, 3, body, x))(1.0)
    assert bodies(counted) == [("fori_loop", "body", ("i", "c"), ("result[0][0]", "result[0][1]"))]
    traced = jax.make_jaxpr(lambda x, n: lax.fori_loop(0, n, body, x))(1.0, 3)
    carry = ("loop_carry[0]", "loop_carry[1]", "loop_carry[2]")
    assert bodies(traced) == [
        ("while_cond", "_fori_cond_fun", carry, ("result",)),
        ("fori_loop", "body", ("i", "", "c"), ("result[0]", "result[1]", "result[2]")),
    ]


def test_transformed_programs_keep_the_functions_name_but_not_names_that_are_no_longer_true():
    def name_and_names(fun, *args):
        return [said(eqn.params["jaxpr"])[1:] for eqn in jax.make_jaxpr(fun)(*args).eqns if eqn.primitive.name == "jit"]

    x = np.ones(3, np.float32)

    @jax.jit
    def inner(c):
        return jnp.exp(c)

    assert name_and_names(jax.vmap(inner), x) == [("inner", ("c",), None)]
    assert name_and_names(lambda x: jax.jvp(inner, (x,), (x,)), x) == [("inner", None, None)]
    assert name_and_names(lambda x: jax.vjp(inner, x)[1](x), x) == [("inner", None, None)] * 2


def test_functions_that_reduce_have_names():
    fun = jax.make_jaxpr(lambda x: lax.reduce(x, 0.0, lambda a, b: a * b + a, (0,)))
    (eqn,) = fun(np.ones(3, np.float32)).eqns
    info = eqn.params["jaxpr"].debug_info
    names = info.func_name, info.arg_names, info.result_paths
    assert (info.traced_for, *names) == ("reduce comp", "<lambda>", ("a", "b"), ("result",))


def test_functions_of_linear_solves_have_names():
    def turned(v):
        return v * 2

    fun = jax.make_jaxpr(lambda x: lax.custom_linear_solve(turned, x, lambda _, b: b / 2, symmetric=True))
    (eqn,) = fun(np.ones(3, np.float32)).eqns
    assert list(eqn.params["const_lengths"]) == [0, 0, 0, 0]
    matvec, vecmat, solve, transpose_solve = eqn.params["jaxprs"]
    assert said(matvec) == said(vecmat) == ("custom_linear_solve", "turned", ("v",), ("result",))
    assert said(solve) == ("custom_linear_solve solve", "<lambda>", ("b",), ("result",))
    assert said(transpose_solve)[0] == "custom_linear_solve transpose_solve"
