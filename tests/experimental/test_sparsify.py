"""Functions of dense arrays on sparse ones: every rule against the dense result, control flow, transformations."""

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import lax
from pullback.experimental import sparse
from pullback.experimental.sparse import transform

RNG = np.random.default_rng(0)
X = (RNG.normal(size=(4, 6)) * (RNG.random((4, 6)) < 0.4)).astype("f")
Y = RNG.normal(size=(6, 3)).astype("f")
V = RNG.normal(size=6).astype("f")


def entries():
    """X, one entry of it in two parts, and padding."""
    m = sparse.BCOO.fromdense(X, nse=20)
    data = m.data.at[0].multiply(0.25)
    data, indices = jnp.append(data, m.data[0] * 0.75), jnp.concatenate([m.indices, m.indices[:1]])
    return sparse.BCOO((data, indices), shape=X.shape)


SPARSE = {
    "sin": jnp.sin,
    "tanh(2x)": lambda x: jnp.tanh(2 * x),
    "square": lambda x: x**2,
    "sqrt": lambda x: jnp.sqrt(abs(x)),
    "astype": lambda x: (x * 10).astype(int),
    "copy": lambda x: -x.copy(),
    "transpose": lambda x: x.T,
    "row": lambda x: x[1],
    "slices": lambda x: x[1:, ::-2],
    "reshape": lambda x: x.reshape(3, -1),
    "broadcast": lambda x: jnp.broadcast_to(x, (2, 4, 6)),
    "sum": lambda x: x.sum(1),
    "mean": lambda x: jnp.mean(x, 0, keepdims=True),
    "scaled": lambda x: x * V / 3,
    "x - 2x": lambda x: x - 2 * x,
    "x * x": lambda x: x * jnp.log1p(abs(x)),
    "x x^T": lambda x: x @ x.T,
    "concatenate": lambda x: jnp.concatenate([x, x]),
    "jit": jax.jit(jnp.sin),
    "checkpoint": jax.checkpoint(jnp.sin),
    "fori_loop": lambda x: lax.fori_loop(0, 3, lambda i, x: jnp.sin(2 * x), x),
    "while_loop": lambda x: lax.while_loop(lambda x: abs(x).sum() < 100, lambda x: 2 * x, x),
    "cond": lambda x: lax.cond(x.sum() > 100, lambda x: x, lambda x: jnp.sin(x), x),
}
DENSE = {
    "product": lambda x: x @ Y,
    "of the left": lambda x: Y.T @ x.T,
    "einsum": lambda x: jnp.einsum("ij,jk->k", x, Y),
    "norm": jnp.linalg.norm,
    "sum of both": lambda x: x + jnp.ones((4, 6)),
    "difference": lambda x: jnp.ones((4, 6)) - x,
    "scan": lambda x: lax.scan(lambda v, a: (jnp.tanh(v @ x.T @ x + a), v.sum()), V, jnp.arange(3.0))[1],
}


@pytest.mark.parametrize("name", [*SPARSE, *DENSE])
def test_results(name):
    f = {**SPARSE, **DENSE}[name]
    m, expected = entries(), f(jnp.asarray(X))
    for g in (sparse.sparsify(f), jax.jit(sparse.sparsify(f))):
        found = g(m)
        assert isinstance(found, sparse.BCOO) == (name in SPARSE)
        assert found.shape == expected.shape and found.dtype == expected.dtype
        np.testing.assert_allclose(sparse.todense(found), expected, rtol=2e-6, atol=2e-6)


def test_trees_and_formats():
    f = sparse.sparsify(lambda p, v, *, k: {"y": p["w"] @ v * k, "w": p["w"], "v": v})
    found = f({"w": sparse.BCSR.fromdense(X)}, V, k=2.0)
    np.testing.assert_allclose(found["y"], X @ V * 2, rtol=1e-5)
    assert isinstance(found["w"], sparse.BCSR) and found["v"].shape == (6,)
    np.testing.assert_array_equal(sparse.sparsify(jnp.sin)(V), jnp.sin(V))
    m = sparse.BCOO.fromdense(X)
    np.testing.assert_allclose(sparse.sparsify(lambda v: m @ v)(V), X @ V, rtol=1e-5)


def test_scan_over_a_batch():
    x = np.stack([X, 2 * X, 0 * X])
    f = lambda x: lax.scan(lambda s, m: (s + (m @ V).sum(), jnp.sin(m)), 0.0, x)
    total, ys = sparse.sparsify(f)(sparse.BCOO.fromdense(x, n_batch=1))
    expected = f(x)
    np.testing.assert_allclose(total, expected[0], rtol=1e-5)
    np.testing.assert_allclose(ys.todense(), expected[1], rtol=1e-6)
    with pytest.raises(NotImplementedError, match="n_batch"):
        sparse.sparsify(f)(sparse.BCOO.fromdense(x))


def test_derivatives():
    f = lambda x: (jnp.tanh(jnp.sin(x) @ V) ** 2).sum()
    m = sparse.BCOO.fromdense(X)
    found = sparse.grad(sparse.sparsify(f))(m)
    dense = np.asarray(jax.grad(f)(X))
    np.testing.assert_allclose(found.data, dense[tuple(np.asarray(m.indices).T)], rtol=1e-4, atol=1e-6)


def test_errors():
    m = entries()
    for f, name in ((jnp.exp, "exp"), (lambda x: jnp.where(x > 0, x, 0), "gt"), (jnp.sort, "sort")):
        with pytest.raises(NotImplementedError, match=f"sparsify: {name} .*todense"):
            sparse.sparsify(f)(m)
    with pytest.raises(NotImplementedError, match="todense"):
        sparse.sparsify(lambda x: x + 1)(m)
    same = sparse.sparsify(lambda x, y: x @ y, use_tracer=True)(sparse.BCOO.fromdense(jnp.eye(2)), jnp.ones(2))
    assert same.tolist() == [1, 1]
    with pytest.raises(TypeError):
        sparse.sparsify(3)


def test_quotients_of_integers_are_rounded():
    """As lax.div does; entries of one place are summed before."""
    m = sparse.BCOO((jnp.array([3, 4, -7]), jnp.array([[1], [1], [2]])), shape=(4,))
    by = jnp.array([2, 2, 2, 0])
    found = sparse.sparsify(jax.lax.div)(m, by)
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found.todense(), [0, 3, -3, 0])


def test_functions_that_keep_zeros_keep_rows():
    m = np.array([[0, 1, 0, 2], [0, 0, 0, 0], [3, 0, 4, 0]], np.float32)
    rows = sparse.BCSR.fromdense(m, nse=6)
    for f in (jnp.sin, jnp.abs, lambda x: -x, lambda x: x**2, lambda x: x):
        found = sparse.sparsify(f)(rows)
        assert isinstance(found, sparse.BCSR) and found.indices is rows.indices
        np.testing.assert_allclose(found.todense(), f(m), rtol=1e-6)
    assert isinstance(sparse.sparsify(lambda x: x * 2)(rows), sparse.BCOO)
    np.testing.assert_array_equal(sparse.sparsify(lambda x: x @ x.T)(rows).todense(), m @ m.T)


@pytest.mark.parametrize("layout", [{}, {"n_batch": 1}, {"n_dense": 1}])
def test_elements_at_arrays_of_indices(layout):
    dense = jnp.arange(20.0).reshape(4, 5) * (jnp.arange(20).reshape(4, 5) % 2)
    mat, rows = sparse.BCOO.fromdense(dense, **layout), jnp.array([0, 2])
    for f in (lambda m: m[rows], lambda m: m[:, rows], lambda m: m[rows, 1:3], lambda m: m[rows[None], -rows]):
        found = sparse.sparsify(f)(mat)
        assert isinstance(found, sparse.BCOO)
        np.testing.assert_array_equal(found.todense(), f(dense))
    with pytest.raises(NotImplementedError, match="sparse indices"):
        at_promised = lambda i: rows.at[i].get(mode="promise_in_bounds", wrap_negative_indices=False)
        sparse.sparsify(at_promised)(sparse.BCOO.fromdense(rows // 2))


def test_what_is_passed_on_keeps_its_class():
    for cls in (sparse.COO, sparse.CSR, sparse.CSC, sparse.BCSR):
        m = cls.fromdense(X)
        found, doubled = sparse.sparsify(lambda x: (x, 2 * x))(m)
        assert found is m
        np.testing.assert_array_equal(doubled.todense(), 2 * X)


def test_values_in_an_environment():
    env = transform.SparsifyEnv()
    mat, rows = sparse.BCOO.fromdense(X), sparse.BCSR.fromdense(X)
    m, v, r = transform.arrays_to_spvalues(env, (mat, V, rows))
    assert m.is_bcoo() and m.is_sparse() and v.is_dense() and r.is_bcsr() and (m.ndim, m.shape) == (2, X.shape)
    assert env.data(m) is mat.data and env.indices(m) is mat.indices and env.indptr(r) is rows.indptr
    assert transform.spvalues_to_avals(env, {"a": m})["a"] == jax.core.ShapedArray(X.shape, np.float32)
    for given, value in ((mat, m), (rows, r)):
        again = transform.spvalues_to_arrays(env, value)
        assert type(again) is type(given) and again.data is given.data and again.unique_indices
    (doubled, product), tree = transform.sparsify_raw(lambda x, y: {"p": x @ y, "d": 2 * x})(env, m, v)
    assert doubled.indices_ref == m.indices_ref and doubled.data_ref != m.data_ref and tree.num_leaves == 2
    np.testing.assert_allclose(transform.spvalues_to_arrays(env, product), X @ V, rtol=1e-5)
    closed = jax.make_jaxpr(lambda x, y: x @ y)(X, V)
    (product,) = transform.eval_sparse(closed.jaxpr, closed.consts, [m, v], env)
    np.testing.assert_allclose(env.data(product), X @ V, rtol=1e-5)
    scaled = env.sparse(m.shape, data=3 * mat.data, indices_ref=m.indices_ref, unique_indices=True)
    np.testing.assert_array_equal(transform.spvalues_to_arrays(env, scaled).todense(), 3 * X)
    with pytest.raises(ValueError, match="'indices_ref' must be given"):
        env.sparse((2, 2), data=V)
    with pytest.raises(ValueError, match="has no indptr"):
        env.indptr(m)


def test_rows_stay_rows_where_they_are_broadcast_and_in_jacobians():
    m = jnp.array([[0.0, 1, 0], [2, 0, 3]])
    rows = sparse.BCSR.fromdense(m)
    stacked = sparse.sparsify(lambda x: jnp.broadcast_to(x, (4, 2, 3)))(rows)
    assert isinstance(stacked, sparse.BCSR) and stacked.n_batch == 1
    np.testing.assert_array_equal(stacked.todense(), jnp.broadcast_to(m, (4, 2, 3)))
    wanted = jax.jacobian(lambda x: x @ jnp.arange(3.0))(m) * (m != 0)
    for jacobian in (sparse.jacfwd, sparse.jacrev):
        found = jacobian(lambda x: x @ jnp.arange(3.0))(rows)
        assert isinstance(found, sparse.BCSR) and found.shape == (2, 2, 3)
        np.testing.assert_array_equal(found.todense(), wanted)
