"""Products of which few places are wanted, or with few numbers, without the whole product and with its values."""

import numpy as np
import pytest

import pullback as pb
import pullback.numpy as jnp
from pullback import lax
from pullback.compiler.pipelines import optimize_jaxpr

RNG = np.random.default_rng(0)
N = 80
X, Y = (RNG.integers(-3, 4, (N, 24)).astype("f4") for _ in range(2))  # whose products are exact
I, J = (RNG.integers(0, N, 30).astype("i4") for _ in range(2))
U = RNG.integers(-3, 4, 30).astype("f4")


def largest(f, *args):
    """Elements of the largest array that the optimized program computes."""
    eqns = optimize_jaxpr(pb.make_jaxpr(f)(*args)).jaxpr.eqns
    return max(out.aval.size for eqn in eqns for out in eqn.outvars)


def is_small(f, *args, want):
    assert largest(f, *args) < N * N
    got = pb.jit(f)(*args)
    np.testing.assert_array_equal(got, want)
    assert got.dtype == want.dtype


def test_elements_of_a_product():
    whole = X @ Y.T
    is_small(lambda x, y, i, j: (x @ y.T)[i, j], X, Y, I, J, want=whole[I, J])
    is_small(
        lambda x, y, i, j: (x @ y.T).at[i, j].get(mode="clip"), X, Y, I + 60, J, want=whole[np.minimum(I + 60, 79), J]
    )
    is_small(lambda x, y, j: jnp.take_along_axis(x @ y.T, j[:, None], 1), X, Y, J[:1].repeat(N), want=whole[:, J[:1]])


@pytest.mark.parametrize("dtype", ["int32", "complex64"])
def test_rows_and_columns(dtype):
    x, y, few = X.astype(dtype), Y.astype(dtype), I[:9].reshape(3, 3)
    whole = x @ y.T
    is_small(lambda x, y, i: (x @ y.T)[i], x, y, few, want=whole[few])
    is_small(lambda x, y, i: jnp.einsum("ik,jk->ij", x, y)[:, i], x, y, few, want=whole[:, few])


def test_elements_outside_are_filled():
    i = np.array([0, 80, -81, 79], np.int32)
    want = np.where((i < 0) | (i > 79), np.float32(7), (X @ Y.T)[np.clip(i, 0, 79), 3])
    is_small(lambda x, y, i: (x @ y.T).at[i, 3].get(mode="fill", fill_value=7), X, Y, i, want=want)


def test_batches_are_chosen_too():
    x, y = X.reshape(8, 10, 24), Y.reshape(8, 10, 24)
    b, i, j = I[:12] % 8, I[:12] % 10, J[:12] % 10
    whole = np.einsum("bik,bjk->bij", x, y)
    f = lambda x, y, b, j: jnp.einsum("bik,bjk->bij", x, y)[b, :, j]
    np.testing.assert_array_equal(pb.jit(f)(x, y, b, j), whole[b, :, j])
    g = lambda x, y, b, i, j: jnp.einsum("bik,bjk->bij", x, y)[b, i, j]
    assert largest(g, x, y, b, i, j) < whole.size
    np.testing.assert_array_equal(pb.jit(g)(x, y, b, i, j), whole[b, i, j])


def sparse(i, j, u, mode=None):
    return jnp.zeros((N, N), u.dtype).at[i, j].add(u, mode=mode)


def test_entries():
    whole = np.zeros((N, N), "f4")
    np.add.at(whole, (I, J), U)
    is_small(lambda i, j, u, y: sparse(i, j, u) @ y, I, J, U, Y, want=whole @ Y)
    is_small(lambda i, j, u, y: sparse(i, j, u) @ y[:, 0], I, J, U, Y, want=whole @ Y[:, 0])
    is_small(lambda i, j, u, y: y.T @ sparse(i, j, u).T, I, J, U, Y, want=Y.T @ whole.T)
    # Both axes of the sparse array are summed over.
    is_small(lambda i, j, u, y: jnp.tensordot(sparse(i, j, u), y), I, J, U, X @ Y.T, want=np.sum(whole * (X @ Y.T)))


def test_rows_with_numbers():
    rows = X[:6]
    whole = np.zeros((N, 24), "f4")
    np.add.at(whole, I[:6], rows)
    f = lambda i, rows, y: jnp.zeros((N, 24), "f4").at[i].add(rows) @ y
    is_small(f, I[:6], rows, Y[:24], want=whole @ Y[:24])
    g = lambda i, rows, y: y.T @ jnp.zeros((N, 24), "f4").at[i].add(rows)
    is_small(g, I[:6], rows, X, want=X.T @ whole)


def test_updates_outside_are_dropped_whatever_they_are():
    u, j = U.copy(), J.copy()
    u[3], j[3] = np.inf, 80
    u[4], j[4] = np.nan, -81
    got = pb.jit(lambda i, j, u, y: sparse(i, j, u, "drop") @ y)(I, j, u, Y)
    keep = ~np.isin(np.arange(30), (3, 4))
    whole = np.zeros((N, N), "f4")
    np.add.at(whole, (I[keep], J[keep]), U[keep])
    np.testing.assert_array_equal(got, whole @ Y)


def test_derivatives_are_of_the_places():
    def loss(x, y, i, j):
        return jnp.sum((x @ y.T)[i, j] ** 2)

    assert largest(pb.grad(loss, (0, 1)), X, Y, I, J) < N * N
    g = 2 * np.sum(X[I] * Y[J], 1)
    want = np.zeros_like(X)
    np.add.at(want, I, g[:, None] * Y[J])
    np.testing.assert_allclose(pb.jit(pb.grad(loss))(X, Y, I, J), want, rtol=1e-6)


def test_many_places_are_left_to_the_product():
    i = np.arange(N * N, dtype="i4") // N
    j = np.arange(N * N, dtype="i4") % N
    names = [
        eqn.primitive.name
        for eqn in optimize_jaxpr(pb.make_jaxpr(lambda x, y, i, j: (x @ y.T)[i, j])(X, Y, i, j)).jaxpr.eqns
    ]
    assert "dot_general" in names
    f = lambda x, y, i: lax.dot_general(x, y, (((1,), (1,)), ((), ())))[i]
    np.testing.assert_array_equal(pb.jit(f)(X, Y, i), (X @ Y.T)[i])
