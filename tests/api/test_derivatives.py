"""Arguments and errors of the derivatives, and of rules of the user's own."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import lax

FLAG = jnp.array(1)  # that programs do not know

X = np.arange(3, dtype=np.float32)


def test_aux_can_be_anything():
    assert jax.jvp(lambda x: (x * 2, "s"), (1.0,), (1.0,), has_aux=True)[2] == "s"
    assert jax.grad(lambda x: (x * 2, "s"), has_aux=True)(1.0)[1] == "s"
    assert jax.vjp(lambda x: (x * 2, {"k": "s"}), 1.0, has_aux=True)[2] == {"k": "s"}


@pytest.mark.parametrize(
    "call, error, text",
    [
        (lambda: jax.jvp(lambda x: x * x, (2,), (1,)), TypeError, "float0"),
        (lambda: jax.jvp(jnp.sin, (X,), (np.ones(2, np.float32),)), ValueError, "shape"),
        (lambda: jax.linearize(jnp.sin, X)[1](np.ones(3, np.int32)), ValueError, "linearized function"),
        (lambda: jax.vjp(lambda x: x * x, 2.0)[1](1), ValueError, "JAX type"),
        (lambda: jax.vjp(lambda x: x, X)[1](np.ones(2, np.float32)), ValueError, "JAX type"),
        (lambda: jax.vmap(lambda x: x)("a"), TypeError, "argument x is 'a'"),
        (lambda: jax.checkpoint(lambda x: x, static_argnums=(3,))(2.0), ValueError, "static_argnums"),
        (lambda: lax.fori_loop(jnp.int8(0), jnp.int32(3), lambda i, c: c, 0), TypeError, "equal types"),
        (lambda: lax.fori_loop(0, "a", lambda i, c: c, 0), TypeError, "'upper' must be an integer"),
        (lambda: lax.while_loop(lambda c: (c < 3,), lambda c: c + 1, 0), TypeError, "boolean scalar"),
        (lambda: lax.associative_scan(jnp.add, X, axis=5), ValueError, "'axis' is 5"),
        (
            lambda: lax.cond(True, lambda: {"a": 1}, lambda: {"a": 1.0}),
            TypeError,
            r"output\['a'\] is f32\[\] in false_fun",
        ),
        (lambda: lax.scan(lambda c, x: (c, {"y": "a"}), 0.0, X), TypeError, r"component \[1\]\['y'\]"),
    ],
)
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_cotangents_of_integers_are_not_used():
    _out, pull = jax.vjp(lambda x: (x * 2, x.astype(int)), X)
    for bar in (np.zeros(3, jax.float0), np.ones(3, np.int32)):
        np.testing.assert_array_equal(pull((X, bar))[0], X * 2)


def test_forward_and_backward_as_two_functions():
    forward, backward = jax.fwd_and_bwd(lambda x, y: x * y, argnums=(0, 1))
    out, residuals = forward(2.0, 3.0)
    assert out == 6 and tuple(map(float, backward(residuals, 1.0))) == (3, 2)
    with pytest.raises(ValueError, match="at least 3 positional arguments"):
        jax.fwd_and_bwd(lambda x, y: x * y, argnums=2, jitted=False)[0](1.0, 2.0)
    forward, backward = jax.fwd_and_bwd(lambda x: (x**2, "aux"), argnums=0, has_aux=True, jitted=False)
    out, residuals, aux = forward(3.0)
    assert (out, aux, backward(residuals, 1.0)) == (9, "aux", 6)


def test_what_vmap_does_not_map_is_passed_as_given():
    power = jax.jit(lambda x, n: x**n, static_argnums=1)
    np.testing.assert_array_equal(jax.vmap(power, in_axes=(0, None))(X, 2), X**2)


def test_cond_takes_the_old_form_and_traces_the_true_branch_first():
    assert lax.cond(False, 1.0, lambda x: x, 2.0, lambda y: y * 3) == 6
    order = []
    lax.cond(True, lambda: order.append("true"), lambda: order.append("false"))
    assert order == ["true", "false"]


def test_branches_share_what_they_close_over():
    jaxpr = jax.make_jaxpr(lambda p, x: lax.cond(p, lambda: x * 2, lambda: x))(True, X)
    assert len(jaxpr.eqns[-1].invars) == 2


def test_scanned_rows_are_not_stored_again_for_the_gradient():
    jaxpr = jax.make_jaxpr(jax.grad(lambda c, xs: lax.scan(lambda c, x: (c * x, None), c, xs)[0]))(jnp.float32(1), X)
    forwards = next(eqn for eqn in jaxpr.eqns if eqn.primitive.name == "scan")
    assert [v.aval.shape for v in forwards.outvars] == [()]
    np.testing.assert_allclose(jax.grad(lambda c: lax.scan(lambda c, x: (c * x, None), c, X + 1)[0])(2.0), 6.0)


# rules of the user's own


def symbolic(seen):
    @jax.custom_vjp
    def f(x, y):
        return x * y, x + y

    def fwd(x, y):
        seen.append((x.perturbed, y.perturbed))
        return (x.value * y.value, x.value + y.value), (x.value, y.value)

    def bwd(residuals, bars):
        seen.append([type(bar).__name__ for bar in bars])
        return bars[0] * residuals[1], bars[0] * residuals[0]

    f.defvjp(fwd, bwd, symbolic_zeros=True)
    return f


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_custom_vjp_with_symbolic_zeros(wrap):
    seen = []
    f = symbolic(seen)
    assert wrap(jax.grad(lambda x: f(x, 3.0)[0]))(2.0) == 3
    assert seen[0] == (True, False)
    assert seen[1][1] == "SymbolicZero" and seen[1][0] != "SymbolicZero"
    np.testing.assert_allclose(jax.vmap(jax.grad(lambda x: f(x, 3.0)[0]))(X), [3, 3, 3])


def test_mistakes_in_rules():
    @jax.custom_vjp
    def f(x):
        return x

    f.defvjp(lambda x: (x, "residual"), lambda r, g: (g,))
    with pytest.raises(TypeError, match=r"residual.*'residual'"):
        jax.grad(f)(1.0)
    with pytest.raises(TypeError, match=r"f\(x\): too many positional arguments"):
        f(1.0, 2.0)
    f.defvjp(lambda x: (x, None), lambda r, g: (g,))
    with pytest.raises(TypeError, match="forward-mode"):
        jax.jacfwd(f)(1.0)

    @jax.custom_jvp
    def g(x, y):
        return x * y

    g.defjvps(lambda t, out, x, y: t * y)
    with pytest.raises(ValueError, match="2 arguments, but 1 rules"):
        jax.grad(g)(1.0, 2.0)
    g.defjvp(lambda primals, tangents: (primals[0], 1))
    with pytest.raises(TypeError, match=r"tangent i32\[\]; its tangent must be f32\[\]"):
        jax.grad(g)(1.0, 2.0)


def test_numbers_that_are_not_traced_reach_functions_with_rules_and_the_rules_as_such():
    """As in JAX: they may be sizes, keys and static arguments, with the dtype that they have as arrays."""
    powers = jax.jit(lambda x, n: x**n, static_argnums=1)
    slopes = {2: "square", 3: "cube"}

    @jax.custom_vjp
    def f(x, n, flag):
        assert type(flag) is bool and n.dtype == np.int32 and slopes[n]
        return powers(x, n)

    def bwd(kept, out_bar):
        x, n = kept
        return out_bar * n * powers(x, n - 1), None, None

    f.defvjp(lambda x, n, flag: (f(x, n, flag), (x, n)), bwd)

    @jax.custom_jvp
    def g(x, n):
        return sum(x for _ in range(n)) + powers(x, n)

    g.defjvp(lambda primals, dots: (g(*primals), dots[0] * (primals[1] + len(slopes[primals[1]]))))
    assert f(2.0, 3, True) == 8 and f(2.0, n=2, flag=False) == 4 and jax.grad(f)(2.0, 3, True) == 12
    assert jax.vmap(lambda x: f(x, 2, True))(jnp.arange(3.0)).tolist() == [0, 1, 4]
    assert g(2.0, 3) == 14 and jax.grad(g)(2.0, 3) == 7 and jax.jvp(lambda x: g(x, 2), (1.0,), (1.0,))[1] == 8
    with pytest.raises(jax.errors.TracerIntegerConversionError):
        jax.jit(g)(2.0, 3)
    jax.custom_jvp(lambda n: n + 1).defjvps(None)
    double = jax.custom_vjp(lambda n: n * 2)
    double.defvjp(lambda n: (n * 2, None), lambda _, g: (g,))
    assert [(type(y), y) for y in map(double, (3, 1.5, 2j))] == [(int, 6), (float, 3.0), (complex, 4j)]
    assert jax.jit(double)(3).dtype == np.int32 and isinstance(double(np.float32(2)), jax.Array)
    square = jax.custom_jvp(lambda x: x**2)
    square.defjvp(lambda primals, dots: (square(*primals), 2 * primals[0] * dots[0]))
    assert [type(y) for y in jax.jvp(square, (3.0,), (1.0,))] == [float, float]
    assert jax.jvp(square, (3.0,), (1.0,)) == jax.jit(lambda x: jax.jvp(square, (x,), (1.0,)))(3.0) == (9, 6)
    sine = jax.custom_vjp(lambda x: jnp.sin(x))
    sine.defvjp(lambda x: (jnp.sin(x), x), lambda x, g: (g * jnp.cos(x),))
    assert all(sine(1.5).weak_type and (sine(1.5) * jnp.bfloat16(2)).dtype == jnp.bfloat16 for _ in range(3))


def test_python_scalars_among_residuals_reach_bwd_as_what_they_are():
    seen = []

    @jax.custom_vjp
    def f(x):
        return x * 2

    f.defvjp(
        lambda x: (x * 2, {"n": 2, "flag": True, "x": x}), lambda kept, g: (seen.append(kept), (g * kept["n"],))[1]
    )
    for transformed, x in ((jax.grad(f), 1.0), (jax.jit(jax.grad(f)), 1.0), (jax.vmap(jax.grad(f)), jnp.ones(3))):
        np.testing.assert_array_equal(transformed(x), np.full(np.shape(x), 2.0))
    assert all(type(kept["n"]) is int and kept["flag"] is True for kept in seen) and len(seen) == 3

    f.defvjp(lambda x: (x * 2, {"here": "text"}), lambda kept, g: (g,))
    with pytest.raises(TypeError, match=r"residual \['here'\] is 'text'"):
        jax.grad(f)(1.0)


def test_none_in_cotangents_of_trees():
    @jax.custom_vjp
    def f(tree):
        return tree["a"] * tree["b"][0]

    def fwd(tree):
        return f(tree), tree

    f.defvjp(fwd, lambda tree, g: ({"a": g * tree["b"][0], "b": None, "c": None},))
    given = {"a": 2.0, "b": (3.0, 4.0), "c": None}
    assert jax.tree.map(float, jax.grad(f)(given)) == {"a": 3.0, "b": (0.0, 0.0), "c": None}
    f.defvjp(fwd, lambda tree, g: ({"a": g, "b": (g,), "c": None},))
    with pytest.raises(TypeError, match="the bwd rule of f returned the structure"):
        jax.grad(f)(given)


def test_errors_of_rules_say_where_the_rule_is():
    f, g = jax.custom_jvp(lambda x: x), jax.custom_vjp(lambda x: x)
    f.defjvp(lambda x, x_dot: x[0])
    g.defvjp(lambda x: (x, None), lambda kept, g: g)
    here = rf"\nThe rule is <lambda> at .*{re.escape(Path(__file__).name)}:\d+\.$"
    for function, what in ((f, "custom_jvp"), (g, "custom_vjp")):
        with pytest.raises(TypeError, match=f"{what}: the .*rule of <lambda> must return[^\n]*{here}"):
            jax.grad(function)(1.0)


def test_zero_from_primal():
    zeros = jax.custom_derivatives.zero_from_primal({"x": jnp.ones(2), "n": jnp.arange(3)})
    assert zeros["x"].shape == (2,) and zeros["n"].dtype == jax.dtypes.float0
    symbolic = jax.custom_derivatives.zero_from_primal(jnp.arange(3), symbolic_zeros=True)
    assert isinstance(symbolic, jax.custom_derivatives.SymbolicZero) and symbolic.dtype == jax.dtypes.float0


def test_callbacks_in_branches_not_taken_do_not_run_while_compiling():
    def fail(x):
        raise ValueError("ran")

    def f(take):
        known = jnp.float32(3)
        failing = lambda: jax.pure_callback(fail, jax.ShapeDtypeStruct((), np.float32), known)
        return jax.lax.cond(take, failing, lambda: known)

    assert float(jax.jit(f)(False)) == 3
    with pytest.raises(jax.errors.JaxRuntimeError, match="ran"):
        jax.jit(f)(True)


def test_argnums_may_be_anything_that_gives_integers():
    product = lambda x, y: x * y
    for argnums in (range(2), [0, 1], np.array([0, 1]), (np.int64(0), 1)):
        assert [float(g) for g in jax.grad(product, argnums)(2.0, 3.0)] == [3.0, 2.0]
        assert all(len(d(product, argnums)(2.0, 3.0)) == 2 for d in (jax.jacfwd, jax.jacrev))
    with pytest.raises(TypeError, match=r"argnums must be an integer or a sequence of integers, got 1\.5"):
        jax.grad(product, 1.5)


def _rule(bwd):
    """x -> 2 x with such a backward function."""
    double = jax.custom_vjp(lambda x: x * 2)
    double.defvjp(lambda x: (x * 2, None), lambda _, bar: (bwd(bar),))
    return double


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float8_e4m3fn", "float8_e5m2", "float32", "complex64"])
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit])
def test_custom_vjp_of_every_type(dtype, wrap):
    double = _rule(lambda bar: bar)

    def loss(x):
        return double(x).astype("complex64").real.sum()

    found = wrap(jax.grad(loss))(jnp.ones(2, dtype))
    assert found.dtype == dtype
    np.testing.assert_array_equal(np.asarray(found, np.complex64), 1)


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit])
def test_a_backward_function_may_give_another_type(wrap):
    seen = []
    outer = jax.custom_vjp(lambda x: x.astype("float32"))
    outer.defvjp(lambda x: (outer(x), None), lambda _, bar: (bar / 3,))
    inner = _rule(lambda bar: (seen.append(bar.dtype), bar)[1])
    found = wrap(jax.grad(lambda x: outer(inner(x)).sum()))(jnp.ones(2, "bfloat16"))
    assert seen == [np.float32]
    np.testing.assert_array_equal(found, np.float32(1) / 3)
    found = wrap(jax.grad(lambda x: outer(x * 2).sum()))(jnp.ones(2, "bfloat16"))
    assert found.dtype == "bfloat16"


def _through_a_branch(f):
    return lambda x: lax.cond(x > 0, f, lambda x: x, x)


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit, _through_a_branch, jax.checkpoint])
def test_backward_functions_are_asked_where_cotangents_vanish(wrap):
    """A bwd may hand on statistics as its argument's gradient, whatever the cotangent."""
    nothing, seven = _rule(lambda bar: None), _rule(lambda bar: bar + 7)

    def grad(f):
        return jax.grad(wrap(f))(3.0)

    assert grad(lambda x: nothing(seven(x))) == 7
    np.testing.assert_allclose(grad(lambda x: nothing(seven(jnp.sin(x)))), 7 * np.cos(3.0), rtol=1e-6)
    assert grad(lambda x: nothing(jnp.sin(seven(x)))) == 7
    assert grad(lambda x: nothing(x)) == 0
    assert grad(lambda x: (seven(x), x)[1]) == 1
    assert grad(lambda x: lax.stop_gradient(seven(x)) + x) == 1


def test_rules_may_give_numpy_arrays():
    ones = np.ones((3, 5), np.float32)
    by_vjp, by_jvp = jax.custom_vjp(lambda x: (ones, x)), jax.custom_jvp(lambda x: (ones, x))
    by_vjp.defvjp(lambda x: ((ones, 2 * x), None), lambda _, bars: (3 * bars[1],))
    by_jvp.defjvp(lambda primals, dots: ((ones, 2 * primals[0]), (np.zeros_like(ones), 3 * dots[0])))
    for f in (by_vjp, by_jvp):

        def g(x, f=f):
            a, b = f(x)
            return jnp.einsum("ij,ij->i", a, a).sum() * b

        for _ in range(3):  # from the second call on it is remembered how a function of ours is differentiated
            assert jax.value_and_grad(g)(2.0) == (60, 45)
        np.testing.assert_array_equal(jax.vmap(jax.grad(g))(np.ones(2, np.float32)), [45, 45])


def test_jvp_hands_on_numbers_as_they_are():
    """What is only handed on stays a number, as in JAX, also by a library's primitive; our rules have arrays."""
    (x, y), (x_dot, y_dot) = jax.jvp(lambda x: (x, jnp.sin(x)), (0.5,), (2.0,))
    assert type(x) is float and type(x_dot) is float and x_dot == 2.0
    assert y.dtype == y_dot.dtype == jnp.float32 and y.weak_type
    p = jax.extend.core.Primitive("doubled")
    p.def_impl(lambda x: 2 * x)
    jax.interpreters.ad.primitive_jvps[p] = lambda primals, tangents: (p.bind(*primals), 2 * tangents[0])
    assert jax.jvp(p.bind, (1.5,), (1.0,)) == (3.0, 2.0) and type(jax.jvp(p.bind, (1.5,), (1.0,))[0]) is float
    for f in (lambda x: x**2, lambda x: x % 2, jnp.abs, jax.nn.relu, jax.grad(jnp.sin), lambda x: jnp.clip(x, 0, 1)):
        for g in (f, jax.jit(f)):
            want = jax.jvp(g, (jnp.array(0.5),), (jnp.array(2.0),))
            assert [float(v) for v in jax.jvp(g, (0.5,), (2.0,))] == [float(v) for v in want]
            inside = jax.jit(lambda g=g: jax.jvp(g, (0.5,), (2.0,)))()
            np.testing.assert_allclose(inside, want, rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.int32, np.uint8])
def test_maps_of_integers_in_jitted_functions_have_transposes(dtype):
    """furax has operators of integers."""
    struct = jax.ShapeDtypeStruct((3,), dtype)
    bar = jnp.array([1, 2, 3], dtype)
    inner = jax.jit(lambda x: (x[::-1] * np.array(2, dtype), x.sum(dtype=dtype)))
    for f in (inner, jax.jit(inner)):
        (found,) = jax.linear_transpose(f, struct)((bar, jnp.array(5, dtype)))
        np.testing.assert_array_equal(found, np.array([11, 9, 7], dtype))
        assert found.dtype == dtype
    _, pull = jax.vjp(jax.jit(lambda x, n: (x * n, n + 1)), 2.0, 3)
    assert pull((1.0, np.zeros((), jax.dtypes.float0)))[0] == 3


@pytest.mark.parametrize(
    "f, bar, want",
    [
        (lambda x: lax.scan(lambda c, a: (c + 2 * a, 3 * a + c), np.int32(0), x), (2, [1, 2, 3]), [17, 16, 13]),
        (lambda x: lax.scan(lambda c, a: (2 * c, None), x, None, length=3)[0], [0, 1, 2], [0, 8, 16]),
        (lambda x: lax.scan(lambda c, a: (c, x * a), 0, np.arange(4))[1], np.ones((4, 3)), [6, 6, 6]),
        (lambda x: lax.fori_loop(0, 3, lambda i, c: c * 2 + x, x), [0, 1, 2], [0, 15, 30]),
        (lambda x: lax.scan(lambda c, a: ((c[0] + a, c[1] * 2.0), a), (np.int32(0), 1.0), x)[0][0], 5, [5, 5, 5]),
        (lambda x: lax.cond(FLAG > 0, lambda x: 2 * x, lambda x: x, x), [0, 1, 2], [0, 2, 4]),
        (lambda x: lax.switch(FLAG, [lambda x: x, lambda x: lax.rev(x, (0,)) * 2], x), [1, 1, 2], [4, 2, 2]),
    ],
)
def test_maps_of_integers_in_loops_and_branches_have_transposes(f, bar, want):
    bar = jax.tree.map(lambda b: jnp.asarray(b, np.int32), bar, is_leaf=lambda b: not isinstance(b, tuple))
    for function in (f, jax.jit(f)):
        (found,) = jax.linear_transpose(function, jax.ShapeDtypeStruct((3,), np.int32))(bar)
        assert found.dtype == np.int32
        np.testing.assert_array_equal(found, want)


def test_arrays_of_64_bits_have_derivatives_where_these_are_not_enabled():
    with jax.enable_x64(True):
        x = jnp.arange(3.0)
    for f in (lambda x: x.sum(), lambda x: (x * x).sum(), lambda x: jnp.sin(x) @ x):
        assert jax.grad(f)(x).dtype == np.float64
    np.testing.assert_array_equal(jax.grad(lambda x: (x * x).sum())(x), [0.0, 2.0, 4.0])


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x[1],
        lambda x: x[::-1][0],
        lambda x: lax.cummax(x)[2],
        jnp.max,
        jnp.prod,
        lambda x: jnp.cumprod(x)[2],
        lambda x: lax.cond(True, lambda x: x.sum(), lambda x: (x * x).sum(), x),
        lambda x: lax.scan(lambda c, a: (c * a, c), x[0], x)[0],
        lambda x: lax.fori_loop(0, 3, lambda i, a: a * a, x)[0],
    ],
)
def test_such_arrays_have_derivatives_of_moves_and_extremes_and_loops(f):
    with jax.enable_x64(True):
        x = jnp.array([0.5, 1.5, 0.25])
        want, zeros = jax.grad(f)(x), jnp.zeros_like(x)
    for g in (jax.grad(f), jax.jit(jax.grad(f))):
        found = g(x)
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, want, rtol=1e-6)  # constants may have been rounded to 32 bits
    np.testing.assert_allclose(jax.jvp(f, (x,), (zeros,))[1], 0)


def test_gradients_are_no_weaker_typed_than_their_arguments():
    def f(x):  # the carry is weakly typed, and so are its values for each step
        return lax.scan(lambda c, y: (c + y, c), 0.0, x)[1]

    def loss(x):
        return jnp.sum(jnp.sin(f(x)))

    x = jnp.arange(4.0, dtype=jnp.float32)
    found = [
        jax.grad(loss)(x),
        jax.jit(jax.grad(loss))(x),
        jax.value_and_grad(loss)(x)[1],
        jax.vjp(f, x)[1](f(x))[0],
        jax.jacrev(f)(x),
        jax.linear_transpose(f, x)(f(x))[0],
        jax.vmap(jax.grad(loss))(x[None]),
    ]
    assert not any(jax.typeof(g).weak_type for g in found)
    assert jax.typeof(jax.grad(lambda y: y * 2)(1.0)).weak_type  # as its argument
