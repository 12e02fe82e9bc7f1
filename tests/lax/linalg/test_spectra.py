"""Eigenvalues and singular values of stacks of small matrices, one in each lane: residuals, orthogonality, order, for
degenerate, singular, graded, huge, tiny and broken matrices, any number of threads, and their derivatives."""

import numpy as np
import pytest

import pullback as pb
import pullback.numpy as jnp
from pullback._ext import _core
from pullback.compiler.lower.program import lower_program
from pullback.compiler.pipelines import optimize_jaxpr
from pullback.loops.ir import Call
from pullback.loops.ir.visit import statements

pytestmark = pytest.mark.usefixtures("x64")


def matrices(dtype, m, n, count=37):
    """Random matrices, the first of which are such that something divides by zero, vanishes, or overflows."""
    rng = np.random.default_rng(m * 16 + n)
    x = rng.standard_normal((count, m, n))
    limit = float(np.finfo(dtype).max) ** 0.9
    x[0], x[1], x[2] = 0, np.eye(m, n), 1
    x[3] *= limit
    x[4] /= limit
    x[5] = np.outer(rng.standard_normal(m), rng.standard_normal(n))
    x[6, 0], x[7, :, -1] = 0, x[7, :, 0]
    x[8] *= 10.0 ** -np.arange(m)[:, None]  # rows, and columns, of ever smaller size
    x[9] *= 10.0 ** (-3.0 * np.arange(n))
    x[10], x[11] = 0, -np.eye(m, n)
    x[10, -1, -1] = 1
    x[12] = np.round(x[12])
    return x.astype(dtype)


def size(x):
    largest = np.abs(x).max((-2, -1))
    return np.where(largest == 0, 1, largest)


def norm(x):
    """The largest singular value of each, 1 of zeros."""
    scale = size(x)
    largest = np.linalg.norm((x / scale[:, None, None]).astype(np.float64), 2, (1, 2))
    return np.where(largest == 0, 1, largest * scale)


def orthogonality(q):
    return np.abs(q.swapaxes(-1, -2) @ q - np.eye(q.shape[-1])).max()


def exactly(*arrays):
    return [np.asarray(a).astype(np.longdouble) for a in arrays]


@pytest.mark.parametrize("n", [1, 2, 3, 4, 6, 9, 16, 33])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_eigh(dtype, n):
    x = matrices(dtype, n, n)
    x = np.tril(x) + np.tril(x, -1).swapaxes(1, 2)
    x[13] = np.diag(np.arange(n)[::-1] // 2)
    eps = np.finfo(dtype).eps
    for lower in (True, False):
        other = np.triu if lower else np.tril
        given = x + other(np.full_like(x, 7), 1 if lower else -1)  # the other triangle is not read
        got = pb.jit(lambda x, lower=lower: pb.lax.linalg.eigh(x, lower=lower, symmetrize_input=False))(given)
        v, w, a = exactly(*got, x)
        scale = norm(a)
        assert (np.diff(w, axis=1) >= 0).all() and orthogonality(v) <= 4 * n * eps
        assert (np.abs(a @ v - v * w[:, None, :]).max((1, 2)) <= 4 * n * eps * scale).all()
    only = np.asarray(pb.jit(jnp.linalg.eigvalsh)(x))
    np.testing.assert_allclose(only / scale[:, None], w / scale[:, None], atol=8 * n * eps)
    np.testing.assert_array_equal(np.asarray(got[0])[11], np.eye(n))


@pytest.mark.sample(11)
@pytest.mark.parametrize(
    "shape", [(1, 1), (2, 2), (3, 3), (4, 4), (8, 8), (5, 3), (3, 5), (9, 2), (1, 6), (4, 1), (13, 22)]
)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_svd(dtype, shape):
    x = matrices(dtype, *shape)
    eps, length, k = np.finfo(dtype).eps, max(shape), min(shape)
    got = pb.jit(lambda x: jnp.linalg.svd(x, full_matrices=False))(x)
    u, s, vt, a = exactly(*got, x)
    scale = size(a)
    assert u.shape == (37, shape[0], k) and vt.shape == (37, k, shape[1])
    assert (np.diff(s, axis=1) <= 0).all() and (s >= 0).all()
    assert max(orthogonality(u), orthogonality(vt.swapaxes(1, 2))) <= 6 * length * eps
    assert (np.abs((u * s[:, None, :]) @ vt - a).max((1, 2)) <= 4 * length * eps * scale).all()
    only = np.asarray(pb.jit(lambda x: jnp.linalg.svd(x, compute_uv=False))(x))
    np.testing.assert_allclose(only / scale[:, None], s / scale[:, None], atol=8 * length * eps)
    np.testing.assert_array_equal(np.asarray(got[1])[0], 0)
    right = pb.jit(lambda x: jnp.linalg.svd(x, full_matrices=False)[2])(x)  # one side alone
    np.testing.assert_array_equal(right, got[2])


def test_singular_values_where_the_bidiagonal_matrix_has_zeros():
    """Matrices that are bidiagonal already stay so; each has zeros at other places, beside equal and tiny elements."""
    n = 7
    x = np.zeros((64, n, n))
    for k in range(64):
        on = [0.0 if k >> j % 6 & 1 else 1.0 + j for j in range(n)]
        off = [(1.0, 0.0, 1e-9, 1e-20)[(k + j) % 4] for j in range(n - 1)]
        x[k] = np.diag(on) + np.diag(off, 1)
    got = pb.jit(lambda x: jnp.linalg.svd(x, full_matrices=False))(x.astype("f4"))
    u, s, vt, a = exactly(*got, x.astype("f4"))
    eps, scale = np.finfo("f4").eps, size(a)
    np.testing.assert_allclose(s, np.linalg.svd(x, compute_uv=False), atol=2 * n * eps * scale.max())
    assert max(orthogonality(u), orthogonality(vt.swapaxes(1, 2))) <= 6 * n * eps
    assert (np.abs((u * s[:, None, :]) @ vt - a).max((1, 2)) <= 4 * n * eps * scale).all()


def test_broken_matrices_spoil_no_others():
    x = matrices("f4", 3, 3, 20)
    x[14, 0, 0], x[15, 2, 1], x[16, 1, 1] = np.nan, np.inf, -np.inf
    good = np.delete(np.arange(20), [14, 15, 16])
    for function in (jnp.linalg.eigh, jnp.linalg.svd, lambda x: jnp.linalg.svd(jnp.tile(x, (1, 2, 2)))):
        got = pb.jit(function)(x)
        for part, expected in zip(got, pb.jit(function)(np.where(np.isfinite(x), x, 0))):
            assert np.isnan(np.asarray(part)[14:17]).all()
            np.testing.assert_array_equal(np.asarray(part)[good], np.asarray(expected)[good])


def test_results_do_not_depend_on_threads():
    x = np.random.default_rng(0).standard_normal((3001, 5, 5)).astype(np.float32)
    run = pb.jit(lambda x: (jnp.linalg.eigh(x), jnp.linalg.eigvalsh(x[:300]), jnp.linalg.svd(x)))
    before, found = _core.num_threads(), []
    try:
        for threads in (1, 3):
            _core.set_num_threads(threads)
            found.append([np.asarray(leaf) for leaf in pb.tree.leaves(run(x))])
    finally:
        _core.set_num_threads(before)
    for one, several in zip(*found):
        np.testing.assert_array_equal(one, several)


def test_derivatives():
    """Those of what does not depend on signs, against the same of single matrices, by LAPACK."""
    x = np.random.default_rng(1).standard_normal((20, 4, 4)) + np.diag([9.0, 5, 2, 0])

    def by_values(x):
        v, w = pb.lax.linalg.eigh(x)
        u, s, vt = jnp.linalg.svd(x)
        return (
            jnp.sum(jnp.sin(w)) + jnp.sum(v[..., 0, :] ** 2 * w) + jnp.sum(s**1.5) + jnp.sum((u @ vt)[..., 1, :] ** 3)
        )

    together = pb.jit(pb.grad(lambda x: jnp.sum(pb.vmap(by_values)(x))))(x)
    single = pb.jit(pb.grad(by_values))
    np.testing.assert_allclose(together, np.stack([single(one) for one in x]), rtol=1e-8, atol=1e-9)


def test_which_are_done_so():
    def calls(function, shape, dtype="f4"):
        program = lower_program(optimize_jaxpr(pb.make_jaxpr(function)(np.ones(shape, dtype)))).function
        return any(isinstance(s, Call) for s in statements(program.body))

    for function in (jnp.linalg.eigh, jnp.linalg.eigvalsh, jnp.linalg.svd, lambda x: jnp.linalg.norm(x, 2, (-2, -1))):
        assert not calls(function, (100, 8, 8)) and not calls(function, (4, 4, 3, 3), "f8")
        assert calls(function, (8, 8)) and calls(function, (100, 65, 65)) and calls(function, (100, 3, 3), "c8")
    for function in (jnp.linalg.eigh, jnp.linalg.eigvalsh):
        assert not calls(function, (20, 64, 64))
    assert not calls(lambda x: jnp.linalg.svd(x, full_matrices=False), (20, 48, 33))


def test_eager_results_are_those_of_compiled_code():
    """Signs of vectors, and vectors of equal values, are not LAPACK's: they changed when a call was compiled, and a
    call that ran often was."""
    x = np.random.default_rng(0).standard_normal((16, 3, 3))
    x = x + x.swapaxes(1, 2)
    x[:4] = np.eye(3)
    for function in (
        jnp.linalg.eigh,
        lambda x: pb.vmap(lambda a: pb.lax.linalg.eigh(a, lower=False))(x),
        lambda x: pb.lax.linalg.svd(x, full_matrices=False),
        lambda x: pb.jvp(lambda a: jnp.linalg.eigh(a)[1], (x[4:],), (x[4:] ** 2,)),
    ):
        want = [np.asarray(leaf) for leaf in pb.tree.leaves(pb.jit(function)(x))]
        for _ in range(3):
            for got, leaf in zip(pb.tree.leaves(function(x)), want):
                np.testing.assert_allclose(got, leaf, rtol=1e-6, atol=1e-6)
