"""Contractions with what is zero off a diagonal: no product is left where scaling does, and values agree."""

import math

import numpy as np
import pytest

import pullback.numpy as jnp
from pullback import enable_x64, grad, hessian, jacfwd, jacrev, jit, lax, make_jaxpr, nn, vmap
from pullback.compiler.graph.simplify.rewrite import Rewriter
from pullback.compiler.graph.structure.terms import terms_of
from pullback.compiler.pipelines import optimize_jaxpr

RNG = np.random.default_rng(0)

PRODUCTS = ("dot_general", "inner_product")


def random(*shape):
    return np.random.default_rng(math.prod(shape)).standard_normal(shape).astype(np.float32)


def products(fun, *args):
    """The contracted sizes of all products that are left."""
    found = []
    for eqn in optimize_jaxpr(make_jaxpr(fun)(*args)).jaxpr.eqns:
        if eqn.primitive.name in PRODUCTS:
            found.append(eqn.outvars[0].aval.ndim)
    return sorted(found)


def layer(w, x):
    return x @ w


@pytest.mark.parametrize("mode", [jacfwd, jacrev])
@pytest.mark.parametrize("n, p, o", [(12, 11, 10), (1, 9, 10), (9, 1, 12), (16, 17, 15)])
def test_jacobian_of_a_linear_layer_has_no_product(mode, n, p, o):
    w, x = random(p, o), random(n, p)
    expected = np.einsum("np,oq->nopq", x, np.eye(o, dtype=np.float32))
    np.testing.assert_allclose(jit(mode(layer))(w, x), expected, rtol=1e-6)
    np.testing.assert_allclose(jit(vmap(mode(layer), in_axes=(None, 0)))(w, x), expected, rtol=1e-6)
    if min(n, p, o) > 8:
        assert products(mode(layer), w, x) == []


def test_jacobian_of_softmax_backwards_has_no_product_of_matrices():
    f = lambda x, a: nn.softmax(a @ x)
    x, a = random(20), random(30, 20)
    assert products(jacrev(f), x, a) == [1, 1]
    np.testing.assert_allclose(jit(jacrev(f))(x, a), jit(jacfwd(f))(x, a), atol=1e-6)


def test_jacobians_in_matrices():
    f = lambda a, x: jnp.tanh(a @ x)
    a, x = random(13, 14), random(14)
    assert products(jacfwd(f), a, x) == [1]
    expected = np.einsum("i,ij,k->ijk", 1 - np.tanh(a @ x) ** 2, np.eye(13), x)
    np.testing.assert_allclose(jit(jacfwd(f))(a, x), expected, atol=1e-5)
    np.testing.assert_allclose(jit(jacrev(f))(a, x), expected, atol=1e-5)
    b, c = random(10, 13), random(14, 9)
    both = lambda a: b @ a @ c
    np.testing.assert_allclose(jit(jacrev(both))(a), np.einsum("ij,kl->iljk", b, c), atol=1e-5)
    np.testing.assert_allclose(jit(jacfwd(both))(a), np.einsum("ij,kl->iljk", b, c), atol=1e-5)
    square = lambda a: a @ a
    s, eye = random(9, 9), np.eye(9)
    expected = np.einsum("ik,lj->ijkl", eye, s) + np.einsum("ik,lj->ijkl", s, eye)
    np.testing.assert_allclose(jit(jacfwd(square))(s), expected, atol=1e-6)
    np.testing.assert_allclose(jit(jacrev(square))(s), expected, atol=1e-6)


def test_hessian_of_a_quadratic_form_has_no_product():
    f = lambda x, a: 0.5 * x @ (a @ x)
    x, a = random(20), random(20, 20)
    assert products(hessian(f), x, a) == []
    np.testing.assert_allclose(jit(hessian(f))(x, a), (a + a.T) / 2, rtol=1e-6)


def test_diagonal_and_repeated_matrices():
    d, a, v = random(12), random(12, 12), random(36)
    assert products(lambda d, a: jnp.diag(d) @ a @ jnp.diag(d), d, a) == []
    np.testing.assert_allclose(jit(lambda d, a: jnp.diag(d) @ a @ jnp.diag(d))(d, a), d[:, None] * a * d, rtol=1e-5)
    blocks = lambda b, v: jnp.kron(jnp.eye(12, dtype="float32"), b) @ v
    b = random(3, 3)
    np.testing.assert_allclose(jit(blocks)(b, v), np.kron(np.eye(12), b) @ v, atol=1e-5)
    np.testing.assert_allclose(jit(grad(lambda v: blocks(b, v).sum()))(v), np.kron(np.eye(12), b).sum(0), atol=1e-5)


def test_a_sum_without_diagonals_stays_one_product():
    f = lambda u, v, a: (u[:, None] + v) @ a
    assert products(f, random(20), random(20), random(20, 20)) == [2]


def test_terms_are_read_off_equations():
    def f(d, u):
        return jnp.reshape(jnp.diag(d) - u[:, None] * u, (3, 4, 12))

    closed = optimize_jaxpr(make_jaxpr(f)(random(12), random(12)))
    r = Rewriter(closed, {}, "test")
    r.run(lambda inner: inner)
    diagonal, outer = terms_of(r, closed.jaxpr.outvars[0])
    assert diagonal.is_sparse and not outer.is_sparse
    assert [len(axis) for axis in diagonal.axes] == [1, 1, 2]
    assert (diagonal.coefficient, outer.coefficient) == (1.0, -1.0)
    assert len(outer.factors) == 2


def test_norms_of_gradients_of_examples_have_no_outer_product():
    def norms(w, x, y):
        loss = lambda w, x, y: jnp.sum((jnp.tanh(x @ w) - y) ** 2)
        gradients = vmap(grad(loss), in_axes=(None, 0, 0))(w, x, y)
        return jnp.sum(gradients**2, axis=(1, 2))

    w, x, y = random(20, 30), random(16, 20), random(16, 30)
    eqns = optimize_jaxpr(make_jaxpr(norms)(w, x, y)).jaxpr.eqns
    assert max(v.aval.size for eqn in eqns for v in eqn.outvars) <= w.size
    h = np.tanh(x @ w)
    expected = (x**2).sum(1) * ((2 * (h - y) * (1 - h**2)) ** 2).sum(1)
    np.testing.assert_allclose(jit(norms)(w, x, y), expected, rtol=1e-5)


@pytest.mark.parametrize("dtype, first", [("f4", True), ("f8", True), ("c8", True), ("f2", False)])
def test_what_is_repeated_along_what_is_summed_is_multiplied_with_the_sum(dtype, first):
    """Unless sums would be rounded to few bits before."""
    y, m = random(5).astype(dtype), random(6, 7).astype(dtype)
    with enable_x64(dtype == "f8"):
        scanned = lambda y, m: lax.scan(lambda t, y: (t + y * m, None), jnp.zeros_like(m), y)[0]
        for fun in (lambda y, m: (y[:, None, None] * m).sum(0), *([scanned] if first else [])):
            closed = optimize_jaxpr(make_jaxpr(fun)(y, m)).jaxpr
            sizes = {eqn.invars[0].aval.size for eqn in closed.eqns if eqn.primitive.name == "reduce_sum"}
            assert sizes == {5 if first else 210}
            np.testing.assert_allclose(jit(fun)(y, m), y.sum(0) * m, rtol=1e-2 if dtype == "f2" else 1e-5)


def test_sums_of_products_without_common_axes():
    u, v, m = random(20), random(30), random(20, 5)
    np.testing.assert_allclose(jit(lambda u, v: (u[:, None] * v).sum())(u, v), u.sum() * v.sum(), rtol=1e-4)
    f = lambda u, v, m: jnp.einsum("i,j,ik->ijk", u, v, m).sum((0, 1))
    np.testing.assert_allclose(jit(f)(u, v, m), (u @ m) * v.sum(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
@pytest.mark.parametrize(
    "f",
    [
        lambda x, y: (x[:, None] * y).sum(-1),
        lambda x, y: (x[None] * y[:, None] * 2).mean(-1),
        lambda x, y: vmap(lambda a: vmap(lambda b: (a * b).sum())(y))(x),
        lambda x, y: vmap(jnp.outer)(x.T, y.T).sum(0),
        lambda x, y: (x[:, None] * y * y[0]).sum(-1),
        lambda x, y: (x.reshape(3, 4, 1, 11) * y.reshape(1, 1, 9, 11)).sum(-1),
        lambda x, y: (x.reshape(4, 3, 1, 11) * y[:3].reshape(1, 3, 1, 11) * y.reshape(1, 1, 9, 11)).sum((1, 3)),
    ],
)
def test_sums_of_repeated_arrays_are_products_of_matrices(f, dtype):
    rng = np.random.default_rng(0)
    with enable_x64(dtype == "float64"):
        x, y = (jnp.asarray(rng.standard_normal(shape).astype(dtype)) for shape in ((12, 11), (9, 11)))
        text = jit(f).lower(x, y).as_text("jaxpr")
        assert "dot_general" in text
        np.testing.assert_allclose(jit(f)(x, y), f(x, y), rtol=1e-5, atol=1e-5)


def test_other_sums_of_products_stay_sums():
    x, y = jnp.ones((12, 11)), jnp.ones((9, 11))
    for f in (
        lambda x, y: (x * y[0]).sum(-1),  # one row for all
        lambda x, y: (x[:, None, :5] * y[:, :5]).sum(-1),  # over a few elements
        lambda x, y: ((x[:, None] - y) * y).sum(-1),
        lambda x, y: (lambda p: (p.sum(-1), p))(x[:, None] * y),  # the elements are wanted, too
    ):
        assert "dot_general" not in jit(f).lower(x, y).as_text("jaxpr")


def test_products_by_kronecker_are_products_with_each():
    """None has as many elements as the matrix."""
    a, b, c = (RNG.normal(size=n).astype("f4") for n in ((20, 12), (7, 15), (3, 4)))
    for shape in ((180,), (180, 6)):
        x = RNG.normal(size=shape).astype("f4")
        f = lambda a, b, x: jnp.kron(a, b) @ x
        sizes = [eqn.outvars[0].aval.size for eqn in optimize_jaxpr(make_jaxpr(f)(a, b, x)).jaxpr.eqns]
        assert max(sizes) <= 20 * 15 * 6 * 2
        want = np.kron(a, b).astype("f8") @ x
        np.testing.assert_allclose(jit(f)(a, b, x), want, rtol=2e-5, atol=2e-4)
    x = RNG.normal(size=12 * 15 * 4).astype("f4")
    f = lambda a, b, c, x: jnp.kron(jnp.kron(a, b), c) @ x
    np.testing.assert_allclose(jit(f)(a, b, c, x), np.kron(np.kron(a, b), c).astype("f8") @ x, rtol=2e-5, atol=2e-4)


def test_a_diagonal_and_a_matrix_are_multiplied_apart():
    a, d, x = (RNG.normal(size=n).astype("f4") for n in ((90, 90), 90, 90))
    f = lambda a, d, x: (jnp.diag(d) - a) @ x
    found = optimize_jaxpr(make_jaxpr(f)(a, d, x)).jaxpr
    assert [eqn.invars[0] for eqn in found.eqns if eqn.primitive.name == "dot_general"] == [found.invars[0]]
    np.testing.assert_allclose(jit(f)(a, d, x), (np.diag(d) - a).astype("f8") @ x, rtol=2e-5, atol=2e-5)
