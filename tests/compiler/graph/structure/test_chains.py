"""Products of products and sums of products: in which order, and that results stay."""

import numpy as np
import pytest
from lowering_checks import normal

import pullback as pb
import pullback.numpy as jnp
from pullback import lax
from pullback.compiler.pipelines import optimize_jaxpr

A, B, V, W = normal(80, 90), normal(90, 70, seed=1), normal(70, seed=2), normal(80, seed=3)
X, SMALL = normal(500, 20, seed=4), normal(20, seed=5)
AS, BS, VS = normal(6, 40, 50, seed=6), normal(6, 50, 45, seed=7), normal(6, 45, seed=8)


def products_of(f, *args):
    """The shapes of the products that are left of a program."""
    closed = optimize_jaxpr(pb.make_jaxpr(f)(*args))
    return sorted(e.outvars[0].aval.shape for e in closed.eqns if e.primitive.name in ("dot_general", "inner_product"))


CASES = {
    "vector on the right": (lambda a, b, v: a @ b @ v, (A, B, V)),
    "on the left": (lambda a, b, w: w @ (a @ b), (A, B, W)),
    "a multiple": (lambda a, b, v: (2 * (a @ b) / 7) @ v, (A, B, V)),
    "a traced multiple": (lambda a, b, v: (a @ b / jnp.sum(v)) @ v, (A, B, V)),
    "transposed": (lambda a, b, w: (a @ b).T @ w, (A, B, W)),
    "on the right of a vector, transposed": (lambda a, b, v: v @ (b.T @ a.T), (A, B, V)),
    "batches": (lambda a, b, v: jnp.einsum("nij,nj->ni", a @ b, v), (AS, BS, VS)),
    "mapped": (pb.vmap(lambda a, b, v: v @ (b.T @ a.T)), (AS, BS, VS)),
    "mapped on one side": (lambda a, b, v: pb.vmap(lambda a: a @ b @ v)(a), (AS, BS[0], VS[0])),
    "two columns": (lambda a, b, v: a @ b @ v[:, None] @ jnp.ones((1, 2), v.dtype), (A, B, V)),
    "quadratic form": (lambda x, w: w @ (x.T @ x / len(x)) @ w, (X, SMALL)),
    "of few elements": (lambda x, v: x @ x.T @ v, (X[:, :5], X[:, 7])),
    "sums of rows": (lambda a, b: (a @ b).sum(1), (A, B)),
    "sums of columns": (lambda a, b: (a @ b).mean(0), (A, B)),
    "sum": (lambda a, b: (a @ b).sum(), (A, B)),
    "sum of a batch": (lambda a, b: (a @ b).sum(0), (AS, BS)),
    "sum of a batch and columns": (lambda a, b: (a @ b).sum((0, 2)), (AS, BS)),
}
MATRICES = {"sum of a batch": 1}  # products that are no matter of a vector


@pytest.mark.parametrize("dtype", ["float32", "complex64", "int32"])
@pytest.mark.parametrize("name", CASES)
def test_less_is_multiplied(name, dtype):
    f, args = CASES[name]
    if dtype == "complex64":
        args = [x + 1j * x[::-1] for x in args]
    elif dtype == "int32":
        args = [np.round(5 * x) for x in args]
    args = [x.astype(dtype) for x in args]
    wide = {"float32": "float64", "complex64": "complex128", "int32": "int64"}[dtype]
    with pb.enable_x64(True):
        want = np.asarray(f(*[jnp.asarray(x, wide) for x in args]))
    got = np.asarray(pb.jit(f)(*args))
    np.testing.assert_allclose(got, want, rtol=2e-4, atol=2e-4 * np.abs(want).max())
    if dtype != "int32":
        left = [s for s in products_of(f, *args) if len([n for n in s if n > 6]) > 1]
        assert len(left) == MATRICES.get(name, 0), left


def test_products_of_three_begin_where_that_is_less():
    a, b, v, w = normal(60, 30), normal(30, 50, seed=1), normal(50, seed=2), normal(60, seed=3)
    for f in (
        lambda a, b, v, w: a @ b @ v,
        lambda a, b, v, w: w @ (a @ b),
        lambda a, b, v, w: (b.T @ a.T) @ w,
        lambda a, b, v, w: jnp.stack([v, v + 1]) @ (a @ b).T,
        lambda a, b, v, w: (a @ b).T @ jnp.stack([w, 2 * w], 1),
        lambda a, b, v, w: jnp.einsum("ij,lj->li", (b.T @ a.T).T, jnp.stack([v, v + 1, v])),
    ):
        sizes = [int(np.prod(s)) for s in products_of(f, a, b, v, w)]
        assert max(sizes, default=0) <= 180, sizes
        want = np.asarray(f(*(jnp.asarray(x) for x in (a, b, v, w))))
        np.testing.assert_allclose(pb.jit(f)(a, b, v, w), want, rtol=2e-4, atol=2e-4)
    large = lambda a, b: (a @ b) @ jnp.tanh(a.T @ a @ b).T
    np.testing.assert_allclose(pb.jit(large)(a, b), large(jnp.asarray(a), jnp.asarray(b)), rtol=1e-3, atol=1e-2)


def test_other_readers_keep_the_product():
    assert products_of(lambda a, b, v: (a @ b, a @ b @ v), A, B, V) == [(80,), (80, 70)]
    assert products_of(lambda a, b: (a @ b, (a @ b).sum(1)), A, B) == [(80, 70)]


def test_what_is_the_same_in_each_step_is_multiplied_once():
    flat, tall = normal(10, 1000, seed=9), normal(1000, 10, seed=10)
    f = lambda a, b, v: lax.fori_loop(0, 30, lambda _, v: jnp.tanh(a @ b @ v), v)
    closed = optimize_jaxpr(pb.make_jaxpr(f)(flat, tall, SMALL[:10]))
    assert [e.outvars[0].aval.shape for e in closed.eqns if e.primitive.name == "dot_general"] == [(10, 10)]
    np.testing.assert_allclose(
        pb.jit(f)(flat / 30, tall / 30, SMALL[:10]), f(flat / 30, tall / 30, SMALL[:10]), rtol=2e-3, atol=1e-5
    )


def test_gradients():
    loss = lambda a, b, v: jnp.sum(jnp.sin(a @ b @ v)) + (a @ b).sum()
    for got, want in zip(pb.jit(pb.grad(loss, (0, 1, 2)))(A, B, V), pb.grad(loss, (0, 1, 2))(A, B, V)):
        np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-3)


def test_empty_and_infinite():
    for n, k, m in [(0, 3, 2), (3, 0, 2), (3, 2, 0)]:
        a, b, v = np.ones((n, k), "f4"), np.ones((k, m), "f4"), np.ones(m, "f4")
        np.testing.assert_array_equal(pb.jit(lambda a, b: (a @ b).sum(1))(a, b), (a @ b).sum(1))
        np.testing.assert_array_equal(pb.jit(lambda a, b, v: a @ b @ v)(a, b, v), a @ b @ v)
    infinite = A.copy()
    infinite[3, 4] = np.inf
    got = pb.jit(lambda a, b, v: a @ b @ v)(infinite, np.abs(B), np.abs(V))
    assert np.flatnonzero(~np.isfinite(got)).tolist() == [3]


def test_a_factor_stays_at_the_operand_that_it_keeps_in_range():
    x, y = np.full((16, 64), 300, np.float16), np.full((64, 16), 300, np.float16)
    scaled = pb.jit(lambda x, y: (x * (1 / 1024)) @ y)(x, y)
    np.testing.assert_allclose(scaled, np.full((16, 16), 5625), rtol=1e-3)


def test_a_product_of_a_stored_multiple_has_the_bits_of_one_by_itself():
    def f(x, y):
        y = y * 0.3
        return x @ y, y

    product, y = pb.jit(f)(A, B)
    np.testing.assert_array_equal(product, pb.jit(jnp.matmul)(A, y))
