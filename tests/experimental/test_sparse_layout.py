"""Layouts of BCOO arrays changed into each other, and sparse convolution."""

import itertools

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import lax
from pullback.experimental import sparse

M = np.where(np.arange(24).reshape(2, 3, 4) % 3 == 1, np.arange(24).reshape(2, 3, 4), 0).astype(np.float32)
LAYOUTS = [(b, d) for b in range(4) for d in range(4 - b)]


@pytest.mark.parametrize(("before", "after"), list(itertools.product(LAYOUTS, LAYOUTS)))
def test_layouts(before, after):
    mat = sparse.BCOO.fromdense(M, n_batch=before[0], n_dense=before[1], nse=None)
    new = sparse.bcoo_update_layout(mat, n_batch=after[0], n_dense=after[1], on_inefficient=None)
    assert (new.n_batch, new.n_dense, new.shape, new.dtype) == (*after, mat.shape, mat.dtype)
    np.testing.assert_array_equal(new.todense(), M)


def test_layouts_with_padding_and_under_transformations():
    mat = sparse.BCOO.fromdense(M[0], nse=9)
    for after in ((1, 0), (0, 1), (1, 1), (2, 0), (0, 2)):
        change = lambda m: m.update_layout(n_batch=after[0], n_dense=after[1], on_inefficient=None)  # noqa: B023
        np.testing.assert_array_equal(jax.jit(change)(mat).todense(), M[0])
        back = jax.jit(lambda m: change(m).update_layout(n_batch=0, n_dense=0))(mat)  # noqa: B023
        np.testing.assert_array_equal(back.todense(), M[0])
        slope = jax.grad(lambda data: (change(mat.with_data(data)).todense() * 3).sum())(mat.data)  # noqa: B023
        np.testing.assert_array_equal(slope, np.where(np.arange(9) < (M[0] != 0).sum(), 3, 0))
    with pytest.raises(sparse.SparseEfficiencyError):
        mat.update_layout(n_batch=1)
    with pytest.warns(sparse.SparseEfficiencyWarning):
        mat.update_layout(n_batch=1, on_inefficient="warn")
    for wrong in ({"n_batch": 3}, {"n_dense": -1}, {"on_inefficient": "shout"}):
        with pytest.raises(ValueError, match=r"n_batch|on_inefficient"):
            mat.update_layout(**wrong)


@pytest.mark.parametrize("padding", ["SAME", "VALID", [(2, 0)], [(0, 3)]])
def test_convolution(padding):
    x = np.array([[[1, 0, 2, 0, 0, 3]]], np.float32)
    k = np.array([[[1, 0, 5]]], np.float32)
    want = lax.conv_general_dilated(x, k, (1,), padding)
    sx, sk = sparse.BCOO.fromdense(x, nse=4), sparse.BCOO.fromdense(k)
    found = jax.jit(lambda a, b: sparse.bcoo_conv_general_dilated(a, b, window_strides=(1,), padding=padding))(sx, sk)
    np.testing.assert_array_equal(found.todense(), want)
    with pytest.raises(NotImplementedError, match="strides"):
        sparse.bcoo_conv_general_dilated(sx, sk, window_strides=(2,), padding=padding)


def test_dynamic_slices_in_sparsified_functions():
    mat = sparse.BCOO.fromdense(M[0])
    found = sparse.sparsify(lambda m, i: lax.dynamic_slice(m, (i, 1), (2, 3)))(mat, jnp.int32(1))
    np.testing.assert_array_equal(found.todense(), M[0][1:3, 1:4])


def _agrees(sparse_array, wanted, nse=None):
    np.testing.assert_array_equal(sparse_array.todense(), wanted)
    assert nse is None or sparse_array.nse <= nse


@pytest.mark.parametrize(("n_batch", "n_dense"), LAYOUTS)
def test_parts_and_shapes_in_every_layout(n_batch, n_dense):
    x = (np.arange(24).reshape(2, 3, 4) * 7 % 3).astype(np.float32)
    m = sparse.BCOO.fromdense(x, n_batch=n_batch, n_dense=n_dense)
    for index in (0, -1, 7, np.s_[1:], np.s_[:, ::-2], np.s_[..., None], np.s_[None, :, 1], np.s_[0, 1, 2]):
        _agrees(m[index], np.asarray(jnp.asarray(x)[index]))
    one, two = np.array([1, 0, 5]), np.array([[0], [-1]])
    for index in (one, (slice(None), one), (one, one), (two, 1), (0, two), (one, slice(None), one), (None, one, 0)):
        _agrees(m[index], np.asarray(jnp.asarray(x)[index]))
    _agrees(m[np.array([True, False])], x[[True, False]])
    _agrees(m[1], x[1], max(np.prod(x.shape[n_batch or 1 : 3 - n_dense], dtype=int), 1))
    for shape, dims in (((5, 2, 3, 4), (1, 2, 3)), ((2, 5, 3, 4), (0, 2, 3)), ((2, 3, 4, 5), (0, 1, 2))):
        wanted = np.asarray(jax.lax.broadcast_in_dim(x, shape, dims))
        _agrees(sparse.bcoo_broadcast_in_dim(m, shape=shape, broadcast_dimensions=dims), wanted)
    for shape in ((1, 2, 3, 4), (2, 3, 4, 1), (2, 3, 1, 4)):
        if not n_dense or not n_batch or n_batch + n_dense < 3:
            _agrees(m.reshape(shape), x.reshape(shape))
    for dimension in range(3 - n_dense):
        _agrees(sparse.bcoo_concatenate([m, m[:, :, :]], dimension=dimension), np.concatenate([x, x], dimension))
    numbers = jax.lax.GatherDimensionNumbers((0, 2), (1,), (1, 2))
    places, sizes = jnp.array([[0, 0], [2, 1], [9, 9]]), (2, 1, 3)
    wanted = jax.lax.gather(x, places, numbers, sizes, mode="clip")
    _agrees(sparse.bcoo_gather(m, places, numbers, sizes), np.asarray(wanted))
    if not n_dense and not n_batch:
        _agrees(m.reshape(4, 6), x.reshape(4, 6))
        turned = sparse.bcoo_reshape(m, new_sizes=(4, 6), dimensions=(2, 0, 1))
        _agrees(turned, np.asarray(jax.lax.reshape(x, (4, 6), (2, 0, 1))))
    _agrees(m * m, x * x)
    if not n_dense:
        _agrees(m * sparse.BCOO.fromdense(x[:1]), x * x[:1])


def test_matrices_in_every_format():
    for name in ("bcoo", "bcsr", "coo", "csr", "csc"):
        np.testing.assert_array_equal(sparse.eye(3, 4, 1, sparse_format=name).todense(), np.eye(3, 4, 1))
        assert sparse.empty((2, 3), dtype=int, sparse_format=name).todense().shape == (2, 3)
    for n_batch, n_dense in LAYOUTS:
        if n_batch + n_dense < 3:
            _agrees(sparse.eye(3, 4, -1, n_batch=n_batch, n_dense=n_dense), np.eye(3, 4, -1))
    with pytest.raises(ValueError, match="not recognized"):
        sparse.eye(3, sparse_format="dok")
    with pytest.raises(NotImplementedError, match="COO"):
        sparse.eye(3, sparse_format="coo") + 1
    with pytest.raises(jax.errors.ConcretizationTypeError):
        jax.vmap(sparse.BCOO.fromdense)(jnp.ones((2, 3)))
