"""The operations of JAX's sparse modules on data and indices, and the primitives that mean them."""

import numpy as np
import pytest

import pullback as pb
import pullback.numpy as jnp
from pullback.experimental import sparse
from pullback.experimental.sparse import bcoo, bcsr, coo, csr, util

DENSE = jnp.array([[0, 1.0, 0], [2, 0, 3], [0, 0, 4], [0, 0, 0]])
B, C = sparse.BCOO.fromdense(DENSE), sparse.BCSR.fromdense(DENSE)
V = jnp.array([1.0, 2, 3])
NUMBERS = (((1,), (0,)), ((), ()))
same = np.testing.assert_array_equal


def test_arrays_by_coordinates():
    data, indices = bcoo._bcoo_fromdense(DENSE, nse=4)
    assert B._bufs[0] is B.data and B._info == util.SparseInfo((4, 3), True, True)
    same(bcoo._bcoo_todense(data, indices, spinfo=B._info), DENSE)
    same(bcoo._bcoo_extract(indices, DENSE * 2), 2 * data)
    about = {"dimension_numbers": NUMBERS, "preferred_element_type": None}
    same(bcoo._bcoo_dot_general(data, indices, V, lhs_spinfo=B._info, **about), DENSE @ V)
    same(bcoo._bcoo_rdot_general(DENSE.T, data, indices, rhs_spinfo=B._info, **about), DENSE.T @ DENSE)
    turned = bcoo._bcoo_transpose(data, indices, permutation=(1, 0), spinfo=B._info)
    other = util.SparseInfo((3, 4))
    found = bcoo._bcoo_spdot_general(data, indices, *turned, lhs_spinfo=B._info, rhs_spinfo=other, **about)
    same(bcoo._bcoo_todense(*found, spinfo=util.SparseInfo((4, 4))), DENSE @ DENSE.T)
    squares = bcoo._bcoo_multiply_sparse(data, indices, data, indices, lhs_spinfo=B._info, rhs_spinfo=B._info)
    same(bcoo._bcoo_todense(*squares[:2], spinfo=util.SparseInfo(squares[2])), DENSE**2)
    sums = bcoo._bcoo_reduce_sum(data, indices, spinfo=B._info, axes=[0])
    same(bcoo._bcoo_todense(*sums[:2], spinfo=util.SparseInfo(sums[2])), DENSE.sum(0))
    assert bcoo._validate_bcoo(data, indices, (4, 3)) == (0, 2, 0, 4)
    with pytest.raises(ValueError, match="do not make an array"):
        bcoo._validate_bcoo(data, indices, (4, 3, 2))
    for nse in (6, 4):
        same(bcoo._bcoo_set_nse(B, nse).todense(), DENSE)
        assert bcoo._bcoo_set_nse(B, nse).nse == nse
    assert int(util._count_stored_elements(DENSE)) == 4 and int(util._count_stored_elements(DENSE, 1)) == 2


def test_arrays_by_rows():
    data, indices, indptr = bcsr._bcsr_fromdense(DENSE, nse=4)
    same(bcsr._bcsr_todense(data, indices, indptr, spinfo=C._info), DENSE)
    same(bcsr._bcsr_to_bcoo(indices, indptr, shape=(4, 3)), B.indices)
    for found, want in zip(bcsr._bcoo_to_bcsr(B.indices, shape=(4, 3), index_dtype="int32"), (indices, indptr)):
        same(found, want)
    same(
        bcsr._bcsr_dot_general(
            data, indices, indptr, V, dimension_numbers=NUMBERS, preferred_element_type=None, lhs_spinfo=C._info
        ),
        DENSE @ V,
    )
    assert bcsr._validate_bcsr(data, indices, indptr, (4, 3)) == (0, 0, 4)


def test_older_formats():
    data, row, col = coo._coo_fromdense(DENSE, nse=4)
    about = coo.COOInfo((4, 3))
    same(coo._coo_todense(data, row, col, spinfo=about), DENSE)
    same(coo._coo_matvec(data, row, col, V, spinfo=about), DENSE @ V)
    same(coo._coo_matmat(data, row, col, DENSE, spinfo=about, transpose=True), DENSE.T @ DENSE)
    data, indices, indptr = csr._csr_fromdense(DENSE, nse=4)
    same(csr._csr_todense(data, indices, indptr, shape=(4, 3)), DENSE)
    same(csr._csr_matvec(data, indices, indptr, V, shape=(4, 3)), DENSE @ V)
    same(csr._csr_matmat(data, indices, indptr, DENSE, shape=(4, 3), transpose=True), DENSE.T @ DENSE)
    for found, want in zip(util._csr_to_coo(indices, indptr), (row, col)):
        same(found, want)
    same(util._csr_extract(indices, indptr, 2 * DENSE), 2 * data)


def test_primitives_have_derivatives_and_batches():
    def f(data, v):
        return sparse.bcoo_dot_general_p.bind(
            data, B.indices, v, dimension_numbers=NUMBERS, preferred_element_type=None, lhs_spinfo=B._info
        )

    same(pb.jit(f)(B.data, V), DENSE @ V)
    same(pb.vmap(f, (None, 0))(B.data, jnp.stack([V, V])), jnp.stack([DENSE @ V] * 2))
    by_data, by_vector = pb.grad(lambda d, v: f(d, v).sum(), (0, 1))(B.data, V)
    same(by_vector, DENSE.sum(0))
    same(by_data, V[B.indices[:, 1]])
    same(pb.grad(lambda m: sparse.bcoo_extract_p.bind(B.indices, m, assume_unique=True).sum())(DENSE), DENSE != 0)
    assert "bcoo_todense" in str(
        pb.make_jaxpr(lambda d: sparse.bcoo_todense_p.bind(d, B.indices, spinfo=B._info))(B.data)
    )


@pytest.mark.parametrize(("n_batch", "n_dense"), [(0, 1), (1, 1), (0, 2), (1, 2), (2, 1), (0, 3), (1, 0), (0, 0)])
def test_products_along_dense_dimensions(n_batch, n_dense):
    rng = np.random.default_rng(0)
    x = jnp.asarray(rng.integers(-2, 3, (2, 3, 4)).astype(np.float32) * (rng.random((2, 3, 4)) < 0.5))
    mat = sparse.BCOO.fromdense(x, n_batch=n_batch, n_dense=n_dense)
    for contract, batch, shape in [
        (((2,), (0,)), ((), ()), (4, 5)),
        (((1,), (0,)), ((), ()), (3, 2)),
        (((0,), (1,)), ((), ()), (3, 2)),
        (((1, 2), (0, 1)), ((), ()), (3, 4, 2)),
        (((), ()), ((), ()), (2,)),
        (((1,), (1,)), ((0,), (0,)), (2, 3, 2)),
        (((2,), (1,)), ((1,), (0,)), (3, 4)),
        (((), ()), ((2,), (0,)), (4,)),
    ]:
        y = jnp.asarray(rng.integers(-2, 3, shape).astype(np.float32))
        same(
            sparse.bcoo_dot_general(mat, y, dimension_numbers=(contract, batch)),
            pb.lax.dot_general(x, y, (contract, batch)),
        )
        turned = (contract[::-1], batch[::-1])
        same(sparse.bcoo_dot_general(y, mat, dimension_numbers=turned), pb.lax.dot_general(y, x, turned))


@pytest.mark.parametrize(("left", "right"), [(0, 0), (1, 0), (2, 0), (1, 1), (2, 1), (2, 2)])
def test_products_of_batches_of_sparse_arrays(left, right):
    rng = np.random.default_rng(1)
    x, y = (
        jnp.asarray(rng.integers(-2, 3, s).astype(np.float32)) * (rng.random(s) < 0.5) for s in ((2, 3, 4), (2, 3, 4))
    )
    a, b = sparse.BCOO.fromdense(x, n_batch=left), sparse.BCOO.fromdense(y, n_batch=right)
    for batch in range(min(left, right) + 1):
        numbers = (((2,), (2,)), (tuple(range(batch)), tuple(range(batch))))
        if right > batch and left < 2:  # batch dimensions behind a sparse one
            with pytest.raises(NotImplementedError, match="right operand"):
                sparse.bcoo_dot_general(a, b, dimension_numbers=numbers)
            continue
        found = sparse.bcoo_dot_general(a, b, dimension_numbers=numbers)
        assert found.n_batch == left + right - batch
        same(found.todense(), pb.lax.dot_general(x, y, numbers))
    for numbers in ((((0,), (0,)), ((), ())), (((2,), (2,)), ((1,), (1,)))):
        if left and right < 2:
            with pytest.raises(NotImplementedError):
                sparse.bcoo_dot_general(a, b, dimension_numbers=numbers)


def test_slices_from_the_end():
    x = jnp.arange(1.0, 7).reshape(2, 3)
    for start in ((-1, 0), (0, -1), (-5, 7), (1, -3)):
        found = sparse.bcoo_dynamic_slice(sparse.BCOO.fromdense(x), start, (1, 2))
        same(found.todense(), pb.lax.dynamic_slice(x, start, (1, 2)))
