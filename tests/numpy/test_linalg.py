"""Linear algebra: factors that multiply to the matrix, solutions that solve, norms as NumPy's, derivatives, errors."""

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback.numpy import linalg

RNG = np.random.RandomState(3)
A = RNG.randn(2, 4, 4).astype(np.float32)
C = (RNG.randn(3, 3) + 1j * RNG.randn(3, 3)).astype(np.complex64)
S = A @ np.swapaxes(A, 1, 2) + 2 * np.eye(4, dtype=np.float32)
R = RNG.randn(5, 3).astype(np.float32)
B = RNG.randn(4, 2).astype(np.float32)


def close(x, y, tolerance=2e-4):
    np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=tolerance, atol=tolerance)


VALUES = {
    "det": lambda m, a, s, r, b: (m.det(a), m.det(a[:, :3, :3]), m.det(a[:, :2, :2]), m.det(a[:, :1, :1])),
    "slogdet": lambda m, a, s, r, b: tuple(m.slogdet(a)),
    "inv": lambda m, a, s, r, b: m.inv(s),
    "solve": lambda m, a, s, r, b: (m.solve(s[0], b), m.solve(s[0], b[:, 0])),
    "cholesky": lambda m, a, s, r, b: m.cholesky(s),
    "eigvalsh": lambda m, a, s, r, b: m.eigvalsh(s),
    "svdvals": lambda m, a, s, r, b: m.svd(r, compute_uv=False),
    "pinv": lambda m, a, s, r, b: (m.pinv(r), m.pinv(r.T)),
    "matrix_power": lambda m, a, s, r, b: (m.matrix_power(a, 3), m.matrix_power(s, -1), m.matrix_power(a, 0)),
    "matrix_rank": lambda m, a, s, r, b: (m.matrix_rank(a), m.matrix_rank(r @ r.T)),
    "cond": lambda m, a, s, r, b: (m.cond(s), m.cond(s[0], 1), m.cond(s[0], "fro"), m.cond(r)),
    "multi_dot": lambda m, a, s, r, b: m.multi_dot([r, r.T, r]),
    "norms of matrices": lambda m, a, s, r, b: [
        m.norm(r, o) for o in (None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf)
    ],
    "norms of vectors": lambda m, a, s, r, b: [m.norm(r[0], o) for o in (None, 0, 1, -1, 2, 3, 0.5, np.inf, -np.inf)],
    "norms along axes": lambda m, a, s, r, b: (
        m.norm(r, axis=1),
        m.norm(a, axis=(0, 2), keepdims=True),
        m.norm(r, 3, axis=0),
    ),
    "vector_norm": lambda m, a, s, r, b: (m.vector_norm(r), m.vector_norm(r, axis=0, ord=3), m.matrix_norm(a)),
    "tensorsolve": lambda m, a, s, r, b: m.tensorsolve(s[0].reshape(2, 2, 2, 2), b[:, 0].reshape(2, 2)),
    "tensorinv": lambda m, a, s, r, b: m.tensorinv(s[0].reshape(2, 2, 4), ind=2),
    "lstsq": lambda m, a, s, r, b: m.lstsq(r, r @ b[:3], rcond=None)[0],
    "products": lambda m, a, s, r, b: (m.outer(r[0], r[1]), m.cross(r[0], r[1]), m.trace(a), m.diagonal(a, offset=1)),
}


@pytest.mark.parametrize("name", sorted(VALUES))
def test_against_numpy(same, name):
    same(lambda m, *xs: VALUES[name](m.linalg, *xs), A, S, R, B, tolerance=2e-3)


def test_factors():
    for x in (S, R, R.T, C):
        u, s, vh = linalg.svd(x, full_matrices=False)
        close((u * np.asarray(s)[..., None, :]) @ vh, x)
        q, r = linalg.qr(x)
        close(q @ r, x)
        close(np.asarray(r), np.triu(r))
    assert linalg.qr(R, mode="complete").Q.shape == (5, 5) and linalg.qr(R, mode="r").shape == (3, 3)
    assert linalg.qr(R, mode="full").Q.shape == (5, 3)  # NumPy's old name of "reduced"
    assert linalg.svd(R).U.shape == (5, 5)
    w, v = linalg.eigh(S)
    close(S @ np.asarray(v), np.asarray(v) * np.asarray(w)[:, None, :], 1e-3)
    hermitian = C + C.conj().T
    w, v = linalg.eigh(hermitian)
    close(hermitian @ np.asarray(v), np.asarray(v) * np.asarray(w))
    for x in (A[0], C):
        w, v = linalg.eig(x)
        close(x @ np.asarray(v), np.asarray(v) * np.asarray(w))
        close(np.sort_complex(linalg.eigvals(x)), np.sort_complex(np.linalg.eigvals(x)))
    u, s, vh = linalg.svd(S[0] - 3 * np.eye(4), hermitian=True)
    close((u * np.asarray(s)) @ vh, S[0] - 3 * np.eye(4))
    close(linalg.cholesky(S, upper=True), np.swapaxes(np.linalg.cholesky(S), 1, 2))
    assert np.isnan(linalg.cholesky(-np.eye(2, dtype=np.float32))).any()


def test_names_of_results():
    assert linalg.eigh(S[0])._fields == ("eigenvalues", "eigenvectors")
    assert linalg.slogdet(S[0])._fields == ("sign", "logabsdet")
    assert linalg.svd(R)._fields == ("U", "S", "Vh")
    assert linalg.qr(R)._fields == ("Q", "R")


def test_types():
    assert linalg.inv(np.eye(2, dtype=np.int8)).dtype == np.float32
    assert linalg.eigvals(np.eye(2, dtype=np.int32)).dtype == np.complex64
    assert linalg.norm(C).dtype == np.float32


def test_x64(x64):
    s = S[0].astype(np.float64)
    np.testing.assert_allclose(linalg.inv(s) @ s, np.eye(4), atol=1e-10)
    assert linalg.det(s).dtype == np.float64


def test_empty():
    assert linalg.det(jnp.zeros((0, 0))) == 1
    assert linalg.slogdet(jnp.zeros((2, 0, 0))).logabsdet.tolist() == [0, 0]
    for dtype in (jnp.float16, jnp.bfloat16):  # which LAPACK has not: two by two by formula, as in JAX
        signs, logs = linalg.slogdet(jnp.array([[[2, 1], [1, 3]], [[0, 2], [1, 0]], [[1, 1], [1, 1]]], dtype))
        assert signs.dtype == logs.dtype == dtype and signs.tolist() == [1, -1, 0] and logs[2] == -np.inf
        np.testing.assert_allclose(logs[:2].astype(float), np.log([5, 2]), 4e-3)
        with pytest.raises(NotImplementedError, match="Unsupported dtype"):
            linalg.slogdet(jnp.eye(3, dtype=dtype))
    assert linalg.pinv(jnp.zeros((0, 3))).shape == (3, 0)


# ---- derivatives, against differences in double precision

FUNCTIONS = {
    "inv": linalg.inv,
    "solve": lambda x: linalg.solve(x, x.T),
    "det": linalg.det,
    "det of 3x3": lambda x: linalg.det(x[:3, :3]),
    "slogdet": lambda x: linalg.slogdet(x)[1],
    "cholesky": lambda x: linalg.cholesky(x @ x.T),
    "eigvalsh": lambda x: linalg.eigvalsh(x + x.T),
    "svdvals": linalg.svdvals,
    "qr": lambda x: linalg.qr(x)[1],
    "pinv": lambda x: linalg.pinv(x[:, :3]),
    "pinv of Hermitian": lambda x: linalg.pinv(x, hermitian=True),
    "lstsq": lambda x: linalg.lstsq(x[:, :3], x[:, 3])[0],
    "norm": lambda x: linalg.norm(x, axis=0),
    "matrix_power": lambda x: linalg.matrix_power(x, 3),
}


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_derivatives(name, x64):
    f = FUNCTIONS[name]
    x = S[0].astype(np.float64) + np.triu(np.ones((4, 4)))
    y = np.asarray(f(x))
    w = np.cos(np.arange(y.size)).reshape(y.shape)
    scalar = lambda x: jnp.sum(f(x) * w)
    gradient = np.asarray(pullback.grad(scalar)(x))
    direction = np.sin(np.arange(16.0)).reshape(4, 4)
    step = 1e-5
    expected = (float(scalar(x + step * direction)) - float(scalar(x - step * direction))) / (2 * step)
    np.testing.assert_allclose(np.sum(gradient * direction), expected, rtol=1e-6, atol=1e-7)
    y_dot = np.asarray(pullback.jvp(f, (x,), (direction,))[1])
    np.testing.assert_allclose(np.sum(y_dot * w), expected, rtol=1e-6, atol=1e-7)


def test_determinant_of_singular_matrices(x64):
    """The derivative is the adjugate, which exists without an inverse."""
    for n in (3, 4):
        x = np.arange(float(n * n)).reshape(n, n) ** 1.5
        x[-1] = x[0] + x[1]
        step, gradient = 1e-6, np.asarray(pullback.grad(linalg.det)(x))
        for i in range(n):
            for j in range(n):
                e = np.zeros((n, n))
                e[i, j] = step
                expected = (np.linalg.det(x + e) - np.linalg.det(x - e)) / (2 * step)
                np.testing.assert_allclose(gradient[i, j], expected, rtol=1e-5, atol=1e-5)


def test_vmap():
    close(pullback.vmap(linalg.det)(S), np.linalg.det(S), 1e-3)
    close(
        pullback.vmap(linalg.solve, (0, None))(S, B[:, 0]),
        np.linalg.solve(S, np.broadcast_to(B[:, :1], (2, 4, 1)))[..., 0],
        1e-3,
    )


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: linalg.inv(R), ValueError, r"must have shape \[..., n, n\], got \(5, 3\)"),
        (lambda: linalg.det(R), ValueError, r"must have shape \[..., n, n\]"),
        (lambda: linalg.solve(R, R), ValueError, r"a\[..., m, m\]"),
        (lambda: linalg.solve(S[0], R), ValueError, "inconsistent size"),
        (lambda: linalg.eigh(S, "X"), ValueError, "argument 'UPLO' .* got 'X'"),
        (lambda: linalg.qr(R, mode="foo"), ValueError, "Unsupported QR decomposition mode 'foo'"),
        (lambda: linalg.norm(R, "foo"), ValueError, "Invalid order 'foo' for matrix norm"),
        (lambda: linalg.norm(R[0], "fro"), ValueError, "Invalid order 'fro' for vector norm"),
        (lambda: linalg.norm(A, 2), ValueError, "a vector norm is along one axis"),
        (lambda: linalg.inv([1]), TypeError, "list"),
        (lambda: linalg.matrix_power(R, 2), TypeError, "expected square matrices"),
        (lambda: linalg.cholesky(R), TypeError, r"must have shape \[..., n, n\]"),
        (lambda: linalg.cholesky(R, symmetrize_input=False), ValueError, r"must have shape \[..., n, n\]"),
        (lambda: linalg.eigh(R, symmetrize_input=False), ValueError, r"must have shape \[..., n, n\]"),
        (lambda: linalg.outer(R, R[0]), ValueError, "expected two vectors"),
        (lambda: linalg.cross(np.ones(2), np.ones(2)), ValueError, "length 2 in x1 and 2 in x2; expected 3"),
        (lambda: linalg.slogdet(S, method="foo"), ValueError, "Unknown slogdet method"),
        (lambda: linalg.cond(R, 1), ValueError, "must be square"),
        (lambda: linalg.tensorinv(S, ind=1), ValueError, "must be equal"),
    ],
)
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_norms_of_nothing_are_0():
    for shape in ((0, 3), (3, 0), (0, 0)):
        for order in (2, "nuc", "fro", None):
            assert jnp.linalg.norm(jnp.zeros(shape), ord=order) == 0
    assert jnp.linalg.norm(jnp.zeros((0, 3)), ord=np.inf) == 0 == jnp.linalg.norm(jnp.zeros((3, 0)), ord=1)
    assert jnp.linalg.norm(jnp.zeros(0), ord=np.inf) == 0 == jnp.linalg.vector_norm(jnp.zeros(0, int), ord=np.inf)
    np.testing.assert_array_equal(jnp.linalg.norm(jnp.zeros((2, 0, 3)), ord=2, axis=(1, 2)), np.zeros(2))
    for order in (-np.inf, -2):
        with pytest.raises(ValueError, match="zero-size"):
            jnp.linalg.norm(jnp.zeros((0, 3)), ord=order)


@pytest.mark.parametrize("shape", [(2, 3), (3, 2), (2, 3, 4)])
def test_all_singular_values_as_a_subset(shape):
    a, k = np.random.default_rng(0).standard_normal(shape).astype(np.float32), min(shape[-2:])
    for way in (lambda f: f, pullback.jit, lambda f: lambda a: pullback.vmap(f)(a[None])):
        for found, want in zip(way(lambda a: linalg.svd(a, subset_by_index=(0, k)))(a), linalg.svd(a), strict=True):
            np.testing.assert_allclose(np.reshape(found, want.shape), want, rtol=1e-5, atol=1e-6)


def test_bounds_of_ranks_are_absolute():
    x = jnp.diag(jnp.array([8.0, 4.0, 1.0]))
    assert [int(jnp.linalg.matrix_rank(x, r)) for r in (0.5, 2.0, 5.0, 9.0)] == [3, 2, 1, 0]
    assert int(jnp.linalg.matrix_rank(x, tol=2.0)) == 2 and int(jnp.linalg.matrix_rank(x)) == 3
    np.testing.assert_array_equal(jnp.linalg.matrix_rank(jnp.stack([x, x]), rtol=jnp.array([2.0, 5.0])), [2, 1])
    assert jnp.linalg.matrix_rank(jnp.zeros((0, 3)), rtol=jnp.array([0.1])).shape == (1,)  # one rank for each rtol


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_squares_of_short_floats_are_not_rounded(dtype):
    x = jnp.asarray(np.random.default_rng(0).standard_normal((20, 30)) * 300).astype(dtype)
    wide = np.asarray(x.astype("float32")).astype("f8")
    for found, want in (
        (jnp.linalg.norm(x), np.linalg.norm(wide)),
        (jnp.linalg.norm(x, axis=0), np.linalg.norm(wide, axis=0)),
        (jnp.linalg.vector_norm(x, axis=1, keepdims=True), np.linalg.norm(wide, axis=1, keepdims=True)),
    ):
        assert found.dtype == x.dtype and np.isfinite(np.asarray(found.astype("float32"))).all()
        np.testing.assert_allclose(found.astype("float32"), want, rtol=2**-8)  # rounded to 8 bits or more, once


def test_residuals_that_are_left_out_and_axes_from_the_end():
    a = np.random.RandomState(0).randn(3, 4)
    with pullback.enable_x64(True):
        assert jnp.linalg.lstsq(a.astype(np.float32), a[:, :2], numpy_resid=True)[1].dtype == np.float64
    cube = (a.T @ a + np.eye(4)).reshape(2, 2, 4)
    ours = jnp.linalg.tensorsolve(cube, np.ones((2, 2)), axes=(-1,))
    np.testing.assert_allclose(ours, np.linalg.tensorsolve(cube, np.ones((2, 2)), axes=(2,)), rtol=1e-4)
    with pytest.raises(ValueError, match="out of bounds"):
        jnp.linalg.tensorsolve(cube, np.ones((2, 2)), axes=(5,))
