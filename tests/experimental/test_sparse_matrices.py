"""COO, CSR and CSC; products at given places, dynamic slices, jacobians; spsolve and lobpcg_standard."""

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback.experimental import sparse
from pullback.experimental.sparse import linalg

DENSE = np.array([[0, 1, 0], [2, 0, 3]], np.float32)


@pytest.mark.parametrize("kind", [sparse.COO, sparse.CSR, sparse.CSC])
def test_matrices(kind):
    m, v, b = kind.fromdense(DENSE), np.arange(3.0, dtype=np.float32), np.ones((2, 2), np.float32)
    assert repr(m) == f"{kind.__name__}(float32[2, 3], nse=3)"
    np.testing.assert_array_equal(m.todense(), DENSE)
    np.testing.assert_array_equal(m.T.todense(), DENSE.T)
    np.testing.assert_array_equal(jax.jit(lambda m, v: m @ v)(m, v), DENSE @ v)
    np.testing.assert_array_equal(m.T @ b, DENSE.T @ b)
    np.testing.assert_array_equal(m.sum(0).todense(), DENSE.sum(0))
    assert (m @ v.astype(np.int32)).dtype == np.float32 and m.nse == m.data.size == 3
    places = jax.tree.leaves(m)[1:]
    gradient = jax.grad(lambda data: (kind((data, *places), shape=m.shape) @ v).sum())(m.data)
    np.testing.assert_array_equal(np.sort(gradient), [0, 1, 2])
    more = kind.fromdense(DENSE, nse=5)
    np.testing.assert_array_equal(more.todense(), DENSE)
    np.testing.assert_array_equal(more @ v, DENSE @ v)
    for wrong, error in [
        (lambda: m @ np.ones(4), TypeError), (lambda: m @ m, NotImplementedError),
        (lambda: m @ np.ones((3, 1, 1)), NotImplementedError), (lambda: m.transpose((0, 1)), NotImplementedError),
        (lambda: kind(jax.tree.leaves(m), shape=(2,)), ValueError),
    ]:  # fmt: skip
        with pytest.raises(error):
            wrong()


def test_functions_of_matrices():
    for name, kind in (("coo", sparse.COO), ("csr", sparse.CSR)):
        m = getattr(sparse, f"{name}_fromdense")(DENSE)
        of = {part: getattr(sparse, f"{name}_{part}") for part in ("todense", "matvec", "matmat")}
        assert isinstance(m, kind)
        np.testing.assert_array_equal(of["todense"](m), DENSE)
        np.testing.assert_array_equal(of["matvec"](m, jnp.ones(2), transpose=True), DENSE.sum(0))
        np.testing.assert_array_equal(of["matmat"](m, jnp.eye(3)), DENSE)
        with pytest.raises(TypeError, match=f"must be a {kind.__name__}"):
            of["todense"](DENSE)
        with pytest.raises(ValueError, match="must have 1 dimensions"):
            of["matvec"](m, jnp.eye(3))


def test_jacobians():
    m, v = sparse.BCOO.fromdense(DENSE), jnp.arange(3.0)
    want = jax.jacobian(lambda d: d @ v)(jnp.asarray(DENSE)) * (DENSE != 0)
    for jacobian in (sparse.jacrev, sparse.jacfwd):
        in_both = jacobian(lambda m, v: m @ v, argnums=(0, 1))(m, v)
        np.testing.assert_array_equal(in_both[0].todense(), want)
        np.testing.assert_array_equal(in_both[1], DENSE)
        found, aux = jacobian(lambda m: ({"a": (m @ v).sum()}, 7), has_aux=True)(m)
        np.testing.assert_array_equal(found["a"].todense(), np.where(DENSE != 0, v, 0))
        assert aux == 7
    with pytest.raises(NotImplementedError, match="use BCOO"):
        sparse.jacrev(lambda m: m @ v)(sparse.CSR.fromdense(DENSE))


def test_places():
    x = np.arange(12.0, dtype=np.float32).reshape(3, 4) * (np.arange(12).reshape(3, 4) % 3 == 0)
    for batch in (0, 1):
        m = sparse.BCOO.fromdense(x, n_batch=batch)
        cut = jax.jit(lambda i, m=m: sparse.bcoo_dynamic_slice(m, (i, 2), (2, 2)).todense())
        for i, first in ((0, 0), (1, 1), (7, 1), (-1, 1), (-3, 0)):  # from the end where they are negative
            np.testing.assert_array_equal(cut(i), x[first : first + 2, 2:4])
    m = sparse.BCOO.fromdense(x)
    with pytest.raises(TypeError, match="do not fit"):
        sparse.bcoo_dynamic_slice(m, (0, 0), (4, 1))
    a, b = np.random.default_rng(0).normal(size=(2, 4, 4)).astype(np.float32)
    got = sparse.bcoo_dot_general_sampled(a[:3], b, m.indices, dimension_numbers=(((1,), (0,)), ((), ())))
    np.testing.assert_allclose(got, (a[:3] @ b)[tuple(np.asarray(m.indices).T)], rtol=1e-5)
    assert sparse.bcoo_eliminate_zeros(sparse.BCOO.fromdense(x, nse=9)).nse == 3
    assert sparse.bcsr_eliminate_zeros(sparse.BCSR.fromdense(x, nse=9)).nse == 3


def test_solver_and_eigenvalues():
    data, indices, indptr = jnp.array([2.0, 1, 3]), jnp.array([0, 0, 1]), jnp.array([0, 1, 3])
    b = jnp.array([1.0, 2.0])

    def dense(data):
        return jnp.zeros((2, 2)).at[jnp.array([0, 1, 1]), indices].set(data)

    def ours(data, b):
        return jnp.sin(linalg.spsolve(data, indices, indptr, b)).sum()

    def plain(data, b):
        return jnp.sin(jnp.linalg.solve(dense(data), b)).sum()

    np.testing.assert_allclose(jax.jit(linalg.spsolve)(data, indices, indptr, b), [0.5, 0.5], rtol=1e-6)
    got, want = (jax.grad(f, (0, 1))(data, b) for f in (ours, plain))
    np.testing.assert_allclose(got[0], want[0], rtol=1e-5)
    np.testing.assert_allclose(got[1], want[1], rtol=1e-5)
    with pytest.raises(TypeError, match="does not fit indptr"):
        linalg.spsolve(data, indices, indptr, jnp.ones(3))
    rng = np.random.default_rng(0)
    a, x = rng.normal(size=(30, 30)).astype(np.float32), rng.normal(size=(30, 3)).astype(np.float32)
    a = a @ a.T
    for operator in (a, lambda v: jnp.asarray(a) @ v):
        values, vectors, steps = linalg.lobpcg_standard(operator, x, m=100)
        np.testing.assert_allclose(values, np.linalg.eigvalsh(a)[::-1][:3], rtol=1e-4)
        np.testing.assert_allclose(a @ vectors, vectors * values, atol=2e-2)
        assert 1 < int(steps) <= 100
    with pytest.raises(ValueError, match=r"search dim \* 5"):
        linalg.lobpcg_standard(a, np.ones((30, 6), np.float32))


@pytest.mark.parametrize("kind", [sparse.COO, sparse.CSR, sparse.CSC])
def test_matrices_of_numpy_are_counted_while_a_program_is_recorded(kind):
    m = np.array([[0, 1, 0, 2], [0, 0, 0, 0], [3, 0, 4, 0]], np.float32)
    made = jax.jit(lambda: kind.fromdense(m))()
    assert made.nse == 4
    np.testing.assert_array_equal(made.todense(), m)
    with pytest.raises(TypeError, match="nse"):
        jax.jit(kind.fromdense)(m)


def test_solvers_take_sparse_matrices_of_every_format():
    dense = jnp.array([[4.0, 1, 0], [1, 3, 1], [0, 1, 5]])
    want = np.linalg.solve(np.asarray(dense), np.ones(3))
    for form in (sparse.BCOO, sparse.BCSR, sparse.COO, sparse.CSR):
        mat = form.fromdense(dense)
        for solve in (jax.scipy.sparse.linalg.cg, jax.scipy.sparse.linalg.gmres):
            np.testing.assert_allclose(solve(mat, jnp.ones(3))[0], want, rtol=1e-5)
    with pytest.raises(ValueError, match="square"):
        jax.scipy.sparse.linalg.cg(sparse.BCOO.fromdense(jnp.ones((2, 3))), jnp.ones(3))


def test_todense_of_a_sparsified_function_is_dense():
    mat = sparse.BCOO.fromdense(jnp.array([[0.0, 1], [2, 0]]))
    assert isinstance(sparse.sparsify(sparse.todense)(mat), jax.Array)
    np.testing.assert_array_equal(sparse.sparsify(lambda x: sparse.todense(x) + 1)(mat), [[1, 2], [3, 1]])
    np.testing.assert_array_equal(jax.jit(sparse.todense)(jnp.ones(2)), [1, 1])


def test_only_batch_dimensions_are_mapped():
    dense = jnp.array([[0.0, 1], [2, 0]])
    with pytest.raises(ValueError, match="n_batch=0"):
        jax.vmap(lambda x: x)(sparse.BCOO.fromdense(dense))
    got = jax.vmap(lambda x: x @ jnp.ones(2))(sparse.BCOO.fromdense(jnp.stack([dense, dense]), n_batch=1))
    np.testing.assert_array_equal(got, [[1, 2], [1, 2]])
    assert sparse.BCSR._empty((2, 3)).nse == 0 and sparse.BCSR._empty((2, 2, 3), n_batch=1, nse=1).nse == 1
