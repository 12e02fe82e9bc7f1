"""Sparse matrices by rows against their dense forms: structure, products, derivatives, transformations, errors."""

import numpy as np
import pytest
import scipy.sparse

import pullback as jax
import pullback.numpy as jnp
from pullback.experimental import sparse

RNG = np.random.default_rng(0)


def array(*shape, dtype=np.float32):
    x = RNG.integers(-3, 4, shape) * (RNG.random(shape) < 0.4)
    return x.astype(dtype)


def same(found, expected):
    np.testing.assert_allclose(np.asarray(sparse.todense(found)), expected, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "int32", "complex64", "bool", "bfloat16"])
@pytest.mark.parametrize("n_batch, n_dense", [(0, 0), (1, 0), (0, 1), (1, 1), (2, 0)])
def test_round_trip(n_batch, n_dense, dtype):
    x = jnp.asarray(array(*(2, 3)[:n_batch], 4, 5, *(2,)[:n_dense])).astype(dtype)
    m = sparse.BCSR.fromdense(x, n_batch=n_batch, n_dense=n_dense)
    assert (m.n_batch, m.n_dense, m.n_sparse, m.dtype) == (n_batch, n_dense, 2, x.dtype)
    assert m.indptr.shape == (*x.shape[:n_batch], 5) and (m.todense() == x).all()
    more = sparse.bcsr_fromdense(x, n_batch=n_batch, n_dense=n_dense, nse=m.nse + 7)
    assert more.nse == m.nse + 7 and (jax.jit(sparse.bcsr_todense)(more) == x).all()
    entries = sparse.BCOO.fromdense(x, n_batch=n_batch, n_dense=n_dense, nse=m.nse + 2)
    assert (sparse.BCSR.from_bcoo(entries).to_bcoo().todense() == x).all()
    assert (sparse.bcsr_extract(more.indices, more.indptr, x) == more.data).all()


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (1, 1), (17, 16), (0, 0)])
def test_sizes(shape):
    x, y = array(*shape), array(shape[1], 3)
    m = sparse.BCSR.fromdense(x)
    same(m, x)
    same(m @ y, x @ y)


def test_entries():
    x = np.array([[1, 0, 2], [0, 0, 0], [0, 3, 0]], np.float32)
    theirs = scipy.sparse.csr_matrix(x)
    for m in (sparse.BCSR.fromdense(x), sparse.BCSR.from_scipy_sparse(theirs)):
        for part in ("data", "indices", "indptr"):
            np.testing.assert_array_equal(getattr(m, part), getattr(theirs, part))
    m = sparse.BCSR.fromdense(x, nse=5)
    np.testing.assert_array_equal(m.indices, [0, 2, 1, 3, 3])
    assert m.sum_duplicates().nse == 3
    # Unsorted, one place twice, padding in front.
    data, indices = np.array([9, 3, 1, 1, 1], "f"), np.array([[-1, 2], [2, 1], [0, 2], [0, 0], [0, 2]])
    found = sparse.BCSR.from_bcoo(sparse.BCOO((data, indices), shape=(3, 3)))
    same(found, x)
    np.testing.assert_array_equal(found.indptr, [0, 3, 3, 4])
    same(sparse.bcsr_sum_duplicates(found, nse=4), x)
    same(sparse.bcsr_concatenate([m, m], dimension=0), np.concatenate([x, x]))
    same(sparse.bcsr_concatenate([m, m], dimension=1), np.concatenate([x, x], 1))
    same(sparse.bcsr_broadcast_in_dim(sparse.BCSR.fromdense(x[:1]), shape=(4, 3), broadcast_dimensions=(0, 1)),
         np.broadcast_to(x[:1], (4, 3)))  # fmt: skip
    same(sparse.eye(3, 4, sparse_format="bcsr"), np.eye(3, 4))
    same(sparse.empty((2, 3), sparse_format="bcsr", nse=2), np.zeros((2, 3)))
    assert repr(m) == "BCSR(float32[3, 3], nse=5)"
    leaves, tree = jax.tree.flatten(m)
    assert [leaf.shape for leaf in leaves] == [(5,), (5,), (4,)]
    same(jax.tree.unflatten(tree, leaves), x)


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.complex64])
def test_products(dtype):
    x, y = array(4, 6, dtype=dtype), array(6, 3, dtype=dtype)
    m, n = sparse.BCSR.fromdense(x, nse=20), sparse.BCOO.fromdense(y)
    same(m @ y, x @ y)
    same(m @ y[:, 0], x @ y[:, 0])
    same(x.T[:, :4] @ m, x.T[:, :4] @ x)
    same(m @ n, x @ y)
    same(n.T @ sparse.BCSR.fromdense(x.T), y.T @ x.T)
    same(jax.jit(lambda a, b: a @ b)(m, y), x @ y)
    batch = array(2, 4, 6, dtype=dtype)
    m = sparse.BCSR.fromdense(batch, n_batch=1)
    same(jax.vmap(lambda m: m @ y)(m), batch @ y)
    numbers = ((2,), (1,)), ((0,), (0,))
    other = array(2, 6, 3, dtype=dtype)
    same(sparse.bcsr_dot_general(m, other, dimension_numbers=numbers), batch @ other)


def test_derivatives():
    x, v = array(4, 6), RNG.normal(size=6).astype("f")
    m = sparse.BCSR.fromdense(x)
    found = sparse.grad(lambda m: (jnp.tanh(m @ v) ** 2).sum())(m)
    dense = jax.grad(lambda x: (jnp.tanh(x @ v) ** 2).sum())(x)
    np.testing.assert_allclose(found.data, np.asarray(dense)[x != 0], rtol=1e-5)
    np.testing.assert_array_equal(found.indptr, m.indptr)


def test_errors():
    ones = jnp.ones(3)
    places = jnp.zeros(3, int)
    with pytest.raises(ValueError, match="indptr must be"):
        sparse.BCSR((ones, places, places), shape=(3, 3))
    with pytest.raises(ValueError, match="data must be"):
        sparse.BCSR((ones, places[:2], jnp.zeros(4, int)), shape=(3, 3))
    with pytest.raises(ValueError, match="integers"):
        sparse.BCSR((ones, ones, jnp.zeros(4, int)), shape=(3, 3))
    with pytest.raises(ValueError, match="sparse dimensions"):
        sparse.BCSR.fromdense(array(2, 3, 4))
    m = sparse.BCSR.fromdense(array(3, 4))
    for wrong in (lambda: m + m, lambda: 2 * m, lambda: m[0], lambda: -m, lambda: m.T, lambda: m.sum()):
        with pytest.raises(NotImplementedError, match="to_bcoo"):
            wrong()
    with pytest.raises(TypeError, match="contracting dimensions"):
        m @ m
