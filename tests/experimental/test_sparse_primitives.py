"""The primitives of the older formats: values, derivatives, batches and transposes, against the dense matrix."""

import numpy as np
import pytest

import pullback as pb
import pullback.numpy as jnp
from pullback.experimental import sparse
from pullback.experimental.sparse.coo import COOInfo

DENSE = jnp.array([[0, 1.0, 0], [2, 0, 3], [0, 0, 4], [0, 0, 0]])
V, ROWS = jnp.array([1.0, 2, 3]), jnp.arange(4.0)
INT = np.dtype("int32")


def of_rows(transpose=False):
    _, indices, indptr = sparse.csr_fromdense_p.bind(DENSE, nse=4, index_dtype=INT)
    return lambda d, v: sparse.csr_matvec_p.bind(d, indices, indptr, v, shape=(4, 3), transpose=transpose)


def by_coordinates(transpose=False):
    _, row, col = sparse.coo_fromdense_p.bind(DENSE, nse=4, index_dtype=INT)
    about = COOInfo((4, 3), rows_sorted=True)
    return lambda d, v: sparse.coo_matvec_p.bind(d, row, col, v, spinfo=about, transpose=transpose)


DATA = jnp.array([1.0, 2, 3, 4])


@pytest.mark.parametrize("make", [of_rows, by_coordinates])
def test_products(make):
    f = make()
    for g in (f, pb.jit(f)):
        np.testing.assert_array_equal(g(DATA, V), DENSE @ V)
    np.testing.assert_array_equal(make(transpose=True)(DATA, ROWS), DENSE.T @ ROWS)
    assert pb.make_jaxpr(f)(DATA, V).eqns[0].primitive.name[4:] == "matvec"
    (bar,) = pb.linear_transpose(lambda v: f(DATA, v), V)(ROWS)
    np.testing.assert_array_equal(bar, DENSE.T @ ROWS)
    both = pb.vmap(f, (None, 0))(DATA, jnp.stack([V, 2 * V]))
    np.testing.assert_array_equal(both, jnp.stack([DENSE @ V, 2 * DENSE @ V]))
    by_data, by_vector = pb.jit(pb.grad(lambda d, v: (f(d, v) ** 2).sum(), (0, 1)))(DATA, V)
    np.testing.assert_array_equal(by_vector, 2 * DENSE.T @ (DENSE @ V))
    np.testing.assert_array_equal(by_data, (2 * jnp.outer(DENSE @ V, V))[DENSE.nonzero()])


def test_conversions_and_products_of_matrices():
    parts = sparse.csr_fromdense_p.bind(DENSE, nse=4, index_dtype=INT)
    np.testing.assert_array_equal(sparse.csr_todense_p.bind(*parts, shape=(4, 3)), DENSE)
    two = jnp.arange(6.0).reshape(3, 2)
    np.testing.assert_array_equal(sparse.csr_matmat_p.bind(*parts, two, shape=(4, 3), transpose=False), DENSE @ two)
    about = COOInfo((4, 3))
    parts = sparse.coo_fromdense_p.bind(DENSE, nse=4, index_dtype=INT)
    np.testing.assert_array_equal(sparse.coo_matmat_p.bind(*parts, two, spinfo=about, transpose=False), DENSE @ two)

    def squares(m):
        data, row, col = sparse.coo_fromdense_p.bind(m, nse=4, index_dtype=INT)
        return (sparse.coo_todense_p.bind(data, row, col, spinfo=about) ** 2).sum()

    np.testing.assert_array_equal(pb.grad(squares)(DENSE), 2 * DENSE)
    data, indices, _ = pb.vmap(lambda m: sparse.csr_fromdense_p.bind(m, nse=4, index_dtype=INT))(
        jnp.stack([DENSE, 2 * DENSE])
    )
    np.testing.assert_array_equal(data[1], 2 * data[0])
    np.testing.assert_array_equal(indices[1], indices[0])
