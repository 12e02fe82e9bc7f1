"""Sparse arrays against their dense forms: structure, products, derivatives, transformations, errors."""

import numpy as np
import pytest
import scipy.sparse

import pullback as jax
import pullback.numpy as jnp
from pullback.experimental import sparse
from pullback.util import config

RNG = np.random.default_rng(0)
LAYOUTS = [(0, 0), (1, 0), (0, 1), (1, 1)]


def array(*shape, dtype=np.float32):
    x = RNG.integers(-3, 4, shape) * (RNG.random(shape) < 0.4)
    return x.astype(dtype)


def same(found, expected):
    np.testing.assert_allclose(np.asarray(sparse.todense(found)), expected, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "int32", "complex64", "bool", "bfloat16"])
@pytest.mark.parametrize("n_batch, n_dense", LAYOUTS)
def test_round_trip(n_batch, n_dense, dtype):
    x = jnp.asarray(array(3, 4, 5)).astype(dtype)
    m = sparse.BCOO.fromdense(x, n_batch=n_batch, n_dense=n_dense)
    assert (m.n_batch, m.n_dense, m.n_sparse, m.dtype) == (n_batch, n_dense, 3 - n_batch - n_dense, x.dtype)
    assert (m.todense() == x).all() and (m + 0 * x == x).all() if dtype != "bool" else (m.todense() == x).all()
    more = sparse.BCOO.fromdense(x, n_batch=n_batch, n_dense=n_dense, nse=m.nse + 7)
    assert more.nse == m.nse + 7 and (more.todense() == x).all()
    assert (jax.jit(lambda m: m.todense())(m) == x).all()


@pytest.mark.parametrize("shape", [(0,), (1,), (17,), (3, 0), (0, 3), ()])
def test_sizes(shape):
    x = array(*shape)
    m = sparse.BCOO.fromdense(x)
    same(m, x)
    same(m.sum(), x.sum())
    same(m * 2, x * 2)
    same(m.sort_indices().sum_duplicates(), x)


@pytest.mark.parametrize("n_batch, n_dense", LAYOUTS)
def test_structure(n_batch, n_dense):
    x = array(3, 4, 5)
    m = sparse.BCOO.fromdense(x, n_batch=n_batch, n_dense=n_dense, nse=61 if n_dense == 0 else 14)
    for axis in (None, 0, 1, 2, -1, (0, 2), (0, 1, 2)):
        same(m.sum(axis), x.sum(axis))
    for index in (0, -1, (slice(None), 2), (slice(1, 3), slice(None, None, 2)), (..., slice(4, None, -2)),
                  (1, 2, 3), (slice(2, 2),), ...):  # fmt: skip
        same(m[index], x[index])
    same(abs(m), abs(x))
    same(-m / 2, -x / 2)
    same(m**2, x**2)
    same(m + m, 2 * x)
    same(m - m, 0 * x)
    same((m + m).sum_duplicates(), 2 * x)
    same(m.astype(np.int32), x.astype(np.int32))
    same(3 * m, 3 * x)
    for v in (array(5), array(4, 1), array(3, 4, 5), array(1, 1, 1), np.float32(3)):
        same(m * v, x * v)
    same(sparse.bcoo_extract(m, jnp.asarray(x) * 3), 3 * x)


def test_structure_of_sparse_dimensions():
    x = array(4, 6)
    m = sparse.BCOO.fromdense(x, nse=17)
    same(m.T, x.T)
    same(m.reshape(3, 8), x.reshape(3, 8))
    same(m.reshape(-1), x.reshape(-1))
    same(m[None, :, None], x[None, :, None])
    same(sparse.bcoo_broadcast_in_dim(m[:1], shape=(2, 4, 6), broadcast_dimensions=(1, 2)),
         np.broadcast_to(x[:1], (2, 4, 6)))  # fmt: skip
    same(sparse.bcoo_concatenate([m, m[:2]], dimension=0), np.concatenate([x, x[:2]]))
    same(sparse.bcoo_rev(m, (1,)), x[:, ::-1])
    same(sparse.bcoo_slice(m, start_indices=(1, 0), limit_indices=(4, 5), strides=(2, 1)), x[1:4:2, :5])
    same(sparse.bcoo_squeeze(m[:1], dimensions=(0,)), x[0])
    same(m * m, x * x)
    same(sparse.BCOO.from_scipy_sparse(scipy.sparse.csr_matrix(x)), x)
    same(sparse.eye(3, 5, 1), np.eye(3, 5, 1))
    same(sparse.empty((2, 3)), np.zeros((2, 3)))
    drawn = sparse.random_bcoo(jax.random.key(0), (4, 5), nse=0.5, sorted_indices=True)
    assert drawn.nse == 10 and len({tuple(i) for i in np.asarray(drawn.indices).tolist()}) == 10


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.complex64])
def test_products(dtype):
    x, y = array(4, 6, dtype=dtype), array(6, 3, dtype=dtype)
    m, n = sparse.BCOO.fromdense(x, nse=20), sparse.BCOO.fromdense(y, nse=15)
    same(m @ y, x @ y)
    same(m @ y[:, 0], x @ y[:, 0])
    same(jnp.asarray(y.T) @ m.T, y.T @ x.T)
    same(y.T @ m.T, y.T @ x.T)
    same(y[:, 0] @ m.T, y[:, 0] @ x.T)
    same(m @ n, x @ y)
    same(m.T.T @ n, x @ y)
    assert (sparse.eye(100) @ sparse.eye(100)).nse == 10000
    same(jax.jit(lambda a, b: a @ b)(m, y), x @ y)


def test_products_with_batches():
    x, y = array(2, 3, 4), array(2, 4, 5)
    for n_batch in (0, 1, 2):
        m = sparse.BCOO.fromdense(x, n_batch=n_batch)
        same(m @ y[0], x @ y[0])
        numbers = ((1,), (0,)), ((), ())
        same(sparse.bcoo_dot_general(m, array(3, 5) * 0 + 1, dimension_numbers=numbers),
             np.tensordot(x, np.ones((3, 5)), ((1,), (0,))))  # fmt: skip
        same(sparse.bcoo_dot_general(np.ones((5, 2), "f"), m, dimension_numbers=(((1,), (0,)), ((), ()))),
             np.tensordot(np.ones((5, 2)), x, ((1,), (0,))))  # fmt: skip
        if n_batch:
            same(m @ y, x @ y)
            same(jax.vmap(lambda m, y: m @ y)(m, y), x @ y)
    assert jax.vmap(lambda m: 2 * m)(sparse.BCOO.fromdense(x, n_batch=1)).shape == x.shape


def test_derivatives():
    x, v = array(4, 6) + 0.0, RNG.normal(size=6).astype("f")
    m = sparse.BCOO.fromdense(x)

    def loss(m):
        return (jnp.tanh(m @ v) ** 2).sum() + (m * m).sum() + (m @ m.T).sum()

    value, gradient = sparse.value_and_grad(loss)(m)
    dense = jax.grad(lambda x: (jnp.tanh(x @ v) ** 2).sum() + (x * x).sum() + (x @ x.T).sum())(x)
    at = tuple(np.asarray(m.indices).T)
    np.testing.assert_allclose(gradient.data, np.asarray(dense)[at], rtol=1e-4, atol=1e-5)
    h = RNG.normal(size=m.nse).astype("f")
    _, slope = jax.jvp(lambda d: loss(m.with_data(d)), (m.data,), (h,))
    np.testing.assert_allclose(slope, gradient.data @ h, rtol=1e-4)
    (both, wrt_v), aux = sparse.grad(lambda m, v: ((m @ v).sum(), 5), argnums=(0, 1), has_aux=True)(m, v)
    np.testing.assert_allclose(wrt_v, x.sum(0), rtol=1e-5)
    assert both.shape == x.shape and aux == 5 and np.isfinite(float(value))


def test_bools_stay_bools():
    x, v = array(3, 4) != 0, array(4) != 0
    m = sparse.BCOO.fromdense(x, nse=11)
    twice = sparse.bcoo_concatenate([m, m], dimension=0)
    twice = sparse.BCOO((twice.data, twice.indices % np.array([3, 4])), shape=(3, 4))
    results = [
        (twice.sum_duplicates(), x),
        (m @ v, x @ v),
        (m @ m.T, x @ x.T),
        (sparse.bcoo_multiply_sparse(m, m), x),
        (m * v, x * v),
        (m[:, ::2], x[:, ::2]),
        (sparse.BCOO.fromdense(x[0, 0]), x[0, 0]),
        (sparse.bcoo_extract(twice, x), x),
        (sparse.bcoo_reshape(m[:, 0], new_sizes=(1, 3)), x[None, :, 0]),
    ]
    for found, expected in results:
        assert found.dtype == bool
        np.testing.assert_array_equal(sparse.todense(found), expected)


def test_indices_outside_are_padding():
    data = np.array([1, 5, 7], np.float32)
    m = sparse.BCOO((data, np.array([[0, 1], [-1, 0], [1, -3]])), shape=(2, 3))
    expected = np.array([[0, 1, 0], [0, 0, 0]], np.float32)
    v = np.array([[1, 2, 3]], np.float32)
    for found in (m, m.sum_duplicates(), m * np.ones((2, 3)), m / np.ones((2, 3)), m.T.T, m.reshape(3, 2).reshape(2, 3),
                  sparse.bcoo_extract(m, np.ones((2, 3))), (m + m) / 2, m[:, :], m.astype(bool).astype("f"),
                  m @ np.eye(3), np.eye(2) @ m, m @ sparse.eye(3), m * sparse.BCOO.fromdense(expected)):  # fmt: skip
        same(found, expected)
    for factor in (v, v.T[:2], v[:, :1]):
        same(m * factor, expected * factor)
        same(m / factor, expected / factor)
    same(m.sum(), 1)
    same(m[::-1], expected[::-1])


@pytest.mark.parametrize("n_batch, n_dense", LAYOUTS)
def test_quotients(n_batch, n_dense):
    x = RNG.normal(size=(3, 4, 5)).astype("f") * (RNG.random((3, 4, 5)) < 0.5)
    m = sparse.BCOO.fromdense(x, n_batch=n_batch, n_dense=n_dense, nse=61 if n_dense == 0 else 14)
    for shape in ((5,), (4, 1), (3, 4, 5), (1, 1, 1), ()):
        v = RNG.normal(size=shape).astype("f")
        found = jax.jit(lambda m, v: m / v)(m, v)
        np.testing.assert_array_equal(found.todense(), x / v)
    v = np.arange(1, 200, dtype="f")
    np.testing.assert_array_equal((sparse.BCOO.fromdense(v) / v).data, np.ones(199, "f"))
    np.testing.assert_array_equal((sparse.BCOO.fromdense(v.astype(int)) / v.astype(int)).data, np.ones(199, "f"))


def test_quotients_by_zero():
    m = sparse.BCOO((np.array([0, 2, 3, 0, 0], "f"), np.array([[0], [1], [3], [4], [-1]])), shape=(4,))
    v = np.array([0, 0, 0, 2], np.float32)
    np.testing.assert_array_equal((m / v).todense(), [np.nan, np.inf, 0, 1.5])
    slope = jax.grad(lambda v: (m / v).data[2:].sum())(v)
    np.testing.assert_array_equal(slope[2:], [0, -0.75])
    assert not np.isnan((m / v).data[3:]).any()


def test_arguments_of_derivatives():
    m, v = sparse.BCOO.fromdense(array(3, 4)), jnp.ones(4)

    def f(m, v):
        return (m @ v).sum()

    same(sparse.grad(f, -1)(m, v), m.todense().sum(0))
    same(sparse.grad(f, np.int64(1))(m, v), m.todense().sum(0))
    for argnums in (2, 5, -3, (0, 2)):
        with pytest.raises(ValueError if argnums == -3 else TypeError, match="positional arguments"):
            sparse.grad(f, argnums)(m, v)
    with pytest.raises(TypeError, match="positional arguments"):
        sparse.value_and_grad(f)()
    with pytest.raises(TypeError, match="argnums must be an integer"):
        sparse.grad(f, 1.0)
    with pytest.raises(TypeError, match="twice"):
        sparse.grad(f, (0, -2))(m, v)


def test_dimensions_that_do_not_fit():
    x = array(2, 3)
    m = sparse.BCOO.fromdense(x)
    same(sparse.bcoo_rev(m, (-1,)), x[:, ::-1])
    for dimensions in ((2,), (-3,)):
        with pytest.raises(TypeError, match="bcoo_rev: dimensions"):
            sparse.bcoo_rev(m, dimensions)
    for sizes in ((-2, -3), (-1, -1), (4, -1), (5,), ()):
        with pytest.raises(TypeError, match="cannot reshape"):
            m.reshape(sizes)
    for places in ((0, 0), (1, 0), (0, 2), (0,), (-1, 1)):
        with pytest.raises(ValueError, match="bcoo_broadcast_in_dim"):
            sparse.bcoo_broadcast_in_dim(sparse.eye(3), shape=(3, 3), broadcast_dimensions=places)
    for nse in (1.5, 1.0):
        with pytest.raises(TypeError, match="nse"):
            sparse.random_bcoo(jax.random.key(0), (3, 3), nse=nse)
    assert sparse.random_bcoo(jax.random.key(0), (3, 3), nse=0.0).nse == 0
    assert repr(jax.tree.map(jnp.shape, m)) == f"BCOO((({m.nse},), ({m.nse}, 2)), shape=(2, 3))"


def test_reshape_to_sizes_beyond_32_bits():
    n = 100_000
    places = np.array([[0, 0], [n - 1, n - 1], [n, n]], np.int32)
    with pytest.raises(ValueError, match="jax_enable_x64"):
        sparse.BCOO((np.ones(3, "f"), places), shape=(n, n)).reshape(-1)
    with config.enable_x64(True):
        m = sparse.BCOO((np.ones(3, "f"), places), shape=(n, n))
        np.testing.assert_array_equal(m.reshape(-1).indices[:, 0], [0, n * n - 1, n * n])
        np.testing.assert_array_equal(m.reshape(-1).reshape(n, n).indices, places)
        assert m.reshape(10 * n, -1).indices.dtype == np.int32
    small = sparse.BCOO((np.ones(1, "f"), np.array([[3, 99]], np.int8)), shape=(4, 100))
    np.testing.assert_array_equal(small.reshape(400).indices, [[399]])


def test_errors():
    m = sparse.BCOO.fromdense(array(3, 4))
    with pytest.raises(TypeError, match="contracting dimensions"):
        m @ m
    with pytest.raises(NotImplementedError, match="todense"):
        m + 1.0
    with pytest.raises(NotImplementedError, match="todense"):
        _ = m == m
    with pytest.raises(TypeError, match="nse"):
        jax.jit(sparse.BCOO.fromdense)(jnp.ones(3))
    with pytest.raises(ValueError, match="must add up"):
        sparse.BCOO((jnp.ones(3), jnp.zeros((3, 1), int)), shape=(3, 3))
    with pytest.raises(IndexError, match="Too many"):
        m[0, 0, 0]
    for index in ("a", [0, 1], jnp.ones(2), 1.5):
        with pytest.raises(TypeError, match="index"):
            m[index]
    with pytest.raises(NotImplementedError, match="among themselves"):
        sparse.BCOO.fromdense(array(3, 4), n_batch=1).transpose()
    with pytest.raises(TypeError, match="unhashable"):
        hash(m)
    assert repr(m).startswith("BCOO(float32[3, 4], nse=")


@pytest.mark.parametrize(
    "left, right",
    [
        ((4, 3), (2, 3, 1)), ((4, 3), (3, 2, 3, 5)), ((2, 4, 3), (3, 2, 3, 5)), ((3, 2, 4, 3), (2, 3, 5)),
        ((2, 1, 4, 3), (3, 3, 5)), ((3, 4, 3), (2, 1, 3, 5)), ((1, 4, 3), (2, 3, 1)), ((4, 3), (2, 0, 3, 1)),
        ((3,), (2, 3, 5)), ((2, 4, 3), (3,)),
    ],
)  # fmt: skip
def test_batches_of_products_broadcast(left, right):
    generator = np.random.default_rng(0)
    x, y = (generator.integers(-2, 3, shape).astype(np.float32) for shape in (left, right))
    sparse_x, sparse_y = (sparse.BCOO.fromdense(jnp.asarray(z), n_batch=max(z.ndim - 2, 0)) for z in (x, y))
    np.testing.assert_allclose(sparse_x @ y, x @ y)
    np.testing.assert_allclose(x @ sparse_y, x @ y)
    if x.ndim == 2 and y.size:  # of two sparse arrays neither may have a batch
        product = sparse_x @ sparse.BCOO.fromdense(jnp.asarray(y))
        np.testing.assert_allclose(product.todense(), x @ y)


def test_batches_that_do_not_broadcast():
    with pytest.raises(ValueError, match="do not broadcast"):
        sparse.BCOO.fromdense(jnp.ones((2, 4, 3)), n_batch=1) @ jnp.ones((3, 3, 5))


@pytest.mark.parametrize("layout", [{}, {"n_batch": 1}, {"n_dense": 1}])
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 1)])
def test_sums_that_keep_their_axes(layout, axis):
    x = np.array([[1, 0, 2], [0, 0, 3]], np.float32)
    m = sparse.BCOO.fromdense(x, **layout)
    same(m.sum(axis, keepdims=True), x.sum(axis, keepdims=True))
    assert m.sum(axis, dtype=jnp.int32, keepdims=True).dtype == np.int32 == m.sum(axis, jnp.int32).dtype


def test_sums_along_no_axis_or_twice():
    m = sparse.eye(3)
    for axis in (3, (0, 0)):
        with pytest.raises(ValueError, match="axis"):
            m.sum(axis)
    with pytest.raises(NotImplementedError, match="'out'"):
        m.sum(out=jnp.zeros(()))


def test_new_axes_of_rows_and_comparisons():
    x = np.array([[1, 0, 2], [0, 0, 3]], np.float32)
    m = sparse.BCSR.fromdense(x)
    same(m[None], x[None])
    same(m[None, None, ..., :], x[None, None])
    same(m[:], x)
    assert (m[None].n_batch, m[...].n_batch) == (1, 0)
    for index in (0, (slice(None), None), slice(1)):
        with pytest.raises(NotImplementedError, match="to_bcoo"):
            m[index]
    for a in (m, sparse.COO.fromdense(x), sparse.CSR.fromdense(x)):
        assert a == a and a != 3
        for wrong in (lambda a=a: a < a, lambda a=a: a / 2, lambda a=a: abs(a)):
            with pytest.raises(TypeError):
                wrong()
        with pytest.raises(NotImplementedError):
            a + a


@pytest.mark.parametrize(
    "one, two, layouts",
    [
        ((3, 1), (1, 4), (0, 0, 0)),
        ((3, 1, 2), (3, 4, 2), (0, 0, 1)),
        ((2, 1, 4), (1, 3, 4), (1, 1, 0)),
        ((1, 4), (0, 1), (0, 0, 0)),
        ((4,), (3, 1), (0, 1, 0)),
    ],
)
def test_products_repeat_no_entry_along_sizes_of_one(one, two, layouts):
    rng = np.random.default_rng(0)
    x, y = (np.float32(rng.normal(size=s) * (rng.random(s) < 0.5)) for s in (one, two))
    left, right, n_dense = layouts
    a = sparse.BCOO.fromdense(x, n_batch=left, n_dense=n_dense)
    b = sparse.BCOO.fromdense(y, n_batch=right, n_dense=n_dense)
    product = sparse.bcoo_multiply_sparse(a, b)
    np.testing.assert_array_equal(product.todense(), x * y)
    if left == right:
        assert product.nse == a.nse * b.nse


def test_a_kronecker_product_of_sparse_arrays_is_sparse():
    a = np.float32(np.diag([1, 2, 3], 1))
    product = sparse.sparsify(jnp.kron)(sparse.BCOO.fromdense(a), sparse.BCOO.fromdense(a.T))
    assert product.nse == 9
    np.testing.assert_array_equal(product.todense(), np.kron(a, a.T))


def test_entries_outside_of_a_part_are_zeros():
    """Those who add up `data` see what is in the part only."""
    dense = np.zeros((6, 6), np.float32)
    dense[[0, 1, 2, 5], [3, 1, 4, 5]] = [1, 2, 3, 4]
    mat = sparse.BCOO.fromdense(jnp.asarray(dense))
    for part, sizes in ((mat[1:4, :5], (3, 5)), (mat[::2], (3, 6)), (mat[:, 2:], (6, 4))):
        outside = np.any(np.asarray(part.indices) >= sizes, -1)
        np.testing.assert_array_equal(np.asarray(part.data)[outside], 0)
        assert all(tuple(place) == sizes for place in np.asarray(part.indices)[outside])
    assert float(mat[1:4, :5].data.sum()) == 5 and float(mat[::2].data.sum()) == 4


def test_symbolic_sizes():
    (b,) = jax.export.symbolic_shape("b")
    x = jax.ShapeDtypeStruct((b, 3, 3), jnp.float32)

    def inside(x):
        mat = sparse.BCOO.fromdense(x, nse=1)
        return mat, sparse.bcoo_transpose(mat, permutation=(0, 2, 1)), mat.todense(), sparse.COO.fromdense(x[0], nse=2)

    assert [r.shape for r in jax.eval_shape(inside, x)] == [(b, 3, 3)] * 3 + [(3, 3)]
    rows = jax.eval_shape(lambda x: sparse.BCSR.fromdense(x, nse=2, n_batch=1), x)
    assert rows.shape == (b, 3, 3)


def test_summed_entries_of_value_zero_stay():
    """Unless they are asked to go: where entries are is information of its own."""
    m = sparse.BCOO((jnp.array([[1, 2], [0, 0], [1, 0]]), jnp.array([[1], [0], [1]])), shape=(3, 2))
    found = sparse.bcoo_sum_duplicates(m)
    assert found.indices.tolist() == [[0], [1]] and found.data.tolist() == [[0, 0], [2, 2]]
    assert sparse.bcoo_sum_duplicates(m, nse=3).indices.tolist() == [[0], [1], [3]]
    assert m.sum_duplicates().indices.tolist() == [[1]]
