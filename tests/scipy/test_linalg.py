"""scipy.linalg against SciPy, or by the equation that defines the result; batches; errors."""

import functools

import numpy as np
import pytest
import scipy.linalg as theirs

import pullback as jax
import pullback.numpy as jnp
from pullback.scipy import linalg as ours
from pullback.util import config

RNG = np.random.default_rng(0)
A = RNG.normal(size=(4, 4))
B = RNG.normal(size=(4, 2))
COMPLEX = A + 1j * RNG.normal(size=(4, 4))
TALL = RNG.normal(size=(5, 3))
POSITIVE = A @ A.T + np.eye(4)


pytestmark = pytest.mark.usefixtures("x64")


def close(actual, expected, tolerance=1e-10):
    np.testing.assert_allclose(np.asarray(actual), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name,args", [
    ("cholesky", (POSITIVE,)), ("cholesky", (POSITIVE, True)), ("det", (A,)), ("inv", (A,)), ("solve", (A, B)),
    ("solve", (A, B[:, 0])), ("expm", (A,)), ("expm", (100 * A / np.abs(A).sum(),)), ("expm", (COMPLEX,)),
    ("sqrtm", (POSITIVE,)), ("sqrtm", (COMPLEX,)), ("toeplitz", (A[0],)), ("toeplitz", (A[0], A[1])),
    ("hankel", (A[0],)), ("hankel", (A[0], A[1])), ("circulant", (A[0],)), ("companion", (A[0],)), ("fiedler", (A[0],)),
    ("fiedler_companion", (np.arange(1.0, 8.0),)), ("fiedler_companion", (np.arange(1.0, 3.0),)), ("hadamard", (8,)),
    ("helmert", (4,)), ("helmert", (4, True)), ("hilbert", (4,)), ("invhilbert", (4,)), ("pascal", (5,)),
    ("pascal", (5, "lower")), ("invpascal", (5,)), ("leslie", (A[0], A[1, :3])), ("dft", (5,)), ("dft", (5, "sqrtn")),
    ("block_diag", (A, B, 3.0)), ("convolution_matrix", (A[0], 6)), ("convolution_matrix", (A[0], 6, "same")),
    ("convolution_matrix", (A[0], 6, "valid")), ("convolution_matrix", (A[0], 2, "valid")),
])  # fmt: skip
def test_same_as_scipy(name, args):
    close(getattr(ours, name)(*args), getattr(theirs, name)(*args))


@pytest.mark.parametrize(
    "call",
    [
        lambda a: ours.det(a, overwrite_a=[True]),
        lambda a: ours.solve(a, a, debug=[]),
        lambda a: ours.svd(a, lapack_driver=["gesdd"]),
        lambda a: ours.qr_multiply(a, a, overwrite_c=[0]),
    ],
)
def test_flags_without_effect_are_looked_at(call):
    with pytest.raises(ValueError, match="Non-hashable static"):
        call(jnp.eye(2))


def test_factorizations_multiply_to_the_matrix():
    for a in (A, COMPLEX):
        p, lower, upper = ours.lu(a)
        close(np.asarray(p) @ np.asarray(lower) @ np.asarray(upper), a)
        t, z = ours.schur(a, output="complex")
        close(np.asarray(z) @ np.asarray(t) @ np.asarray(z).conj().T, a)
        h, q = ours.hessenberg(a, calc_q=True)
        close(np.asarray(q) @ np.asarray(h) @ np.asarray(q).conj().T, a)
        close(np.tril(np.asarray(h), -2), 0)
        u, positive = ours.polar(a)
        close(np.asarray(u) @ np.asarray(positive), a)
        u, positive = ours.polar(a, side="left")
        close(np.asarray(positive) @ np.asarray(u), a)
    for a in (TALL, TALL.T):
        pl, upper = ours.lu(a, permute_l=True)
        close(np.asarray(pl) @ np.asarray(upper), a)
        for mode in ("full", "economic"):
            q, r = ours.qr(a, mode=mode)
            close(np.asarray(q) @ np.asarray(r), a)
            q, r, p = ours.qr(a, mode=mode, pivoting=True)
            close(np.asarray(q) @ np.asarray(r), a[:, np.asarray(p)])
        u, s, vh = ours.svd(a, full_matrices=False)
        close(np.asarray(u) * np.asarray(s) @ np.asarray(vh), a)
    t, z = theirs.schur(A)
    t2, z2 = ours.rsf2csf(t, z)
    close(np.asarray(z2) @ np.asarray(t2) @ np.asarray(z2).conj().T, A)
    close(np.tril(np.asarray(t2), -1), 0)


def test_special_matrices_are_made_of_stacks_and_keep_types():
    stack = jnp.asarray(np.abs(A) + 1)
    close(ours.fiedler_companion(stack), np.stack([theirs.fiedler_companion(np.asarray(a)) for a in stack]))
    assert ours.fiedler_companion(jnp.ones((2, 1))).shape == (2, 0, 0) and ours.dft(-1).shape == (0, 0)
    assert ours.convolution_matrix(stack > 1.5, 2).dtype == bool
    for solve in (ours.cho_solve, ours.lu_solve):
        with pytest.raises(ValueError, match="scalar"):
            solve((jnp.eye(2), jnp.arange(2)), 1.0)


def test_one_factor_goes_with_stacks_of_the_other():
    product, r, p = ours.qr_multiply(A, np.stack([B.T, B.T]), pivoting=True)
    assert product.shape == (2, 2, 4) and r.shape == (2, 4, 4) and p.shape == (2, 4)
    t, z = ours.schur(A)
    for found, one in zip(ours.rsf2csf(jnp.stack([t, t]), z), ours.rsf2csf(t, z)):
        close(found, np.stack([one, one]))
    with jax.numpy_rank_promotion("raise"):
        assert ours.hadamard(4).shape == (4, 4)
    assert ours.expm_frechet(A.tolist(), A.tolist(), compute_expm=False).shape == (4, 4)


@pytest.mark.parametrize("lower", [False, True])
def test_the_derivative_of_a_definite_system_is_that_of_the_equation(lower):
    def total(a, b, **options):
        return jnp.real(ours.solve(a, b, **options)).sum()

    matrix, right = jnp.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 2.0]]), jnp.arange(3.0)
    for a, b in ((matrix, right), (matrix * (1 + 0j), right + 1j)):
        found = jax.grad(functools.partial(total, lower=lower, assume_a="pos"), (0, 1))(a, b)
        for x, expected in zip(found, jax.grad(total, (0, 1))(a, b)):
            close(x, expected)
    matrices, rights = jnp.stack([matrix, 2 * matrix]), jnp.stack([right, right + 1])
    batched = jax.vmap(functools.partial(ours.solve, assume_a="pos"))(matrices, rights)
    close(batched, np.linalg.solve(matrices, rights[..., None])[..., 0])
    with pytest.raises(ValueError, match="must have 3 rows"):
        ours.solve(matrix, jnp.ones(2), assume_a="pos")


@pytest.mark.parametrize("lower", [False, True])
def test_solvers(lower):
    close(ours.cho_solve(ours.cho_factor(POSITIVE, lower), B), theirs.solve(POSITIVE, B))
    close(ours.cho_solve(ours.cho_factor(POSITIVE, lower), B[:, 0]), theirs.solve(POSITIVE, B[:, 0]))
    close(ours.solve(POSITIVE, B, lower=lower, assume_a="pos"), theirs.solve(POSITIVE, B))
    for trans in (0, 1, 2):
        expected = theirs.lu_solve(theirs.lu_factor(COMPLEX), B, trans)
        close(ours.lu_solve(ours.lu_factor(COMPLEX), B, trans), expected)
        close(ours.solve_triangular(COMPLEX, B, trans, lower), theirs.solve_triangular(COMPLEX, B, trans, lower))
    values, vectors = ours.eigh(POSITIVE, lower=lower)
    close(POSITIVE @ np.asarray(vectors), np.asarray(vectors) * np.asarray(values))


def test_functions_of_matrices():
    close(ours.funm(A, jnp.exp), theirs.expm(A), 1e-8)
    error = ours.funm(A, jnp.exp, disp=False)[1]
    assert 0 < error < 1e-6  # as SciPy's
    value, slope = ours.expm_frechet(A, B @ B.T)
    expected = theirs.expm_frechet(A, B @ B.T)
    close(value, expected[0])
    close(slope, expected[1])
    batch = np.stack([A, 2 * A, 0 * A])
    close(ours.expm(batch), np.stack([theirs.expm(x) for x in batch]))
    assert np.isnan(np.asarray(ours.expm(1e9 * A))).all()
    with config.enable_x64(False):
        close(ours.expm(A.astype(np.float32)), theirs.expm(A), 1e-4)


@pytest.mark.parametrize("name", ["sqrtm", "funm"])
def test_functions_of_large_matrices_are_loops(name):
    """Once an equation for each element: 20 x 20 took 69 ms a call, and larger ones could not be compiled."""
    a = RNG.normal(size=(40, 40)) + 8 * np.eye(40)
    fun, exact = {
        "sqrtm": (ours.sqrtm, theirs.sqrtm), "funm": (lambda a: ours.funm(a, jnp.sin), theirs.sinm)
    }[name]  # fmt: skip
    close(fun(a), exact(a), 1e-8)
    lengths = {len(jax.make_jaxpr(fun)(np.eye(n)).eqns) for n in (5, 40)}
    assert len(lengths) == 1 and max(lengths) < 200


def test_square_roots_of_singular_matrices():
    singular = np.array([[0.0, 2.0, 0.0], [0.0, 4.0, 0.0], [0.0, 0.0, 0.0]])
    close(ours.sqrtm(singular), np.array([[0, 1, 0], [0, 2, 0], [0, 0, 0]]))
    assert ours.sqrtm(np.zeros((2, 0, 0))).shape == (2, 0, 0)
    defective = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 4.0]])  # whose block of zeros has no root
    close(np.asarray(ours.sqrtm(defective))[:, 2], [0, 0, 2])


def test_derivatives():
    h = 1e-6
    for name, a in (("expm", A), ("det", A), ("cholesky", POSITIVE)):
        function = getattr(ours, name)
        weights = RNG.normal(size=np.shape(function(a)))
        direction = RNG.normal(size=a.shape)
        direction = direction + direction.T if name == "cholesky" else direction
        slope = jax.grad(lambda x, f=function, w=weights: (f(x) * w).sum())(a)
        difference = (np.asarray(function(a + h * direction)) - np.asarray(function(a - h * direction))) / (2 * h)
        ours_along = (np.asarray(slope) * direction).sum()
        np.testing.assert_allclose(ours_along, (difference * weights).sum(), rtol=1e-6)


def test_errors():
    with pytest.raises(ValueError, match=r"cholesky: expected a square matrix, got f64\[5,3\]"):
        ours.cholesky(TALL)
    with pytest.raises(TypeError, match=r"lu: expected a matrix"):
        ours.lu(A[0])
    with pytest.raises(ValueError, match="Invalid 'trans' value 5"):
        ours.solve_triangular(A, B, 5)
    with pytest.raises(ValueError, match="power of 2"):
        ours.hadamard(6)
    with pytest.raises(NotImplementedError, match="eigh: argument 'b'"):
        ours.eigh(A, A)
    with pytest.raises(ValueError, match="assume_a"):
        ours.solve(A, B, assume_a="foo")


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("m, n", [(1, 1), (4, 3), (17, 16), (3, 0)])
def test_solve_sylvester(m, n, dtype):
    with config.enable_x64(True):
        rng = np.random.default_rng(0)
        a, b, c = (
            (rng.normal(size=s) + (1j * rng.normal(size=s) if dtype[0] == "c" else 0)).astype(dtype)
            for s in ((2, m, m), (n, n), (2, m, n))
        )
        f = ours.solve_sylvester
        x = jax.jit(f)(a, b, c)
        assert x.dtype == dtype and x.shape == (2, m, n)
        size = np.linalg.norm(x) * (np.linalg.norm(a) + np.linalg.norm(b))
        assert np.linalg.norm(a @ x + x @ b - c) <= 20 * np.finfo(dtype).eps * size
        if dtype == "float64" and n:
            h, k = rng.normal(size=a.shape), rng.normal(size=b.shape)
            slope = jax.jvp(lambda a, b: f(a, b, c), (a, b), (h, k))[1]
            d = 1e-6
            difference = (f(a + d * h, b + d * k, c) - f(a - d * h, b - d * k, c)) / (2 * d)
            np.testing.assert_allclose(slope, difference, rtol=1e-4, atol=1e-4 * abs(difference).max())
            bars = jax.grad(lambda a, b: (f(a, b, c) * c).sum(), (0, 1))(a, b)
            np.testing.assert_allclose((bars[0] * h).sum() + (bars[1] * k).sum(), (slope * c).sum(), rtol=1e-6)


def test_solve_sylvester_refuses():
    f, one = ours.solve_sylvester, np.ones((1, 1), np.float32)
    assert np.isnan(f(one, -one, one)).all()
    with pytest.raises(ValueError, match="do not fit"):
        f(one, np.eye(2), one)
    with pytest.raises(ValueError, match="method"):
        f(one, one, one, method="x")


def test_solve_sylvester_by_eigenvectors_is_the_same():
    rng = np.random.default_rng(4)
    for kind in (float, complex):
        a, b, c = (
            rng.normal(size=s) + (1j * rng.normal(size=s) if kind is complex else 0)
            for s in ((2, 4, 4), (3, 3), (4, 3))
        )
        with jax.enable_x64(True):
            x, wanted = (
                jax.jit(ours.solve_sylvester, static_argnames="method")(a, b, c, method=m) for m in ("eigen", "schur")
            )
            assert x.dtype == wanted.dtype == kind
            np.testing.assert_allclose(x, wanted, 1e-9, 1e-9)
            one = np.ones((1, 1))
            assert np.isnan(ours.solve_sylvester(one, -one, one, method="eigen")).all()


@pytest.mark.parametrize("pivoting", [False, True])
@pytest.mark.parametrize("conjugate", [False, True])
@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 4)])
def test_qr_multiply(shape, conjugate, pivoting):
    rng = np.random.default_rng(0)
    a = (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(np.complex64)
    k = min(shape)
    for mode, sizes in (("left", ((k,), (k, 2))), ("right", ((shape[0],), (2, shape[0])))):
        for size in sizes:
            c = rng.normal(size=size).astype(np.float32)
            product, *rest = ours.qr_multiply(a, c, mode, pivoting, conjugate)
            q, *expected = ours.qr(a, mode="economic", pivoting=pivoting)
            q = q.conj() if conjugate else q
            np.testing.assert_allclose(product, q @ c if mode == "left" else c @ q, rtol=1e-4, atol=1e-5)
            assert len(rest) == len(expected)
        with pytest.raises(ValueError, match="differ"):
            ours.qr_multiply(a, np.ones(7, np.float32), mode)
    with pytest.raises(ValueError, match="mode"):
        ours.qr_multiply(a, a, "middle")


@pytest.mark.parametrize("n", [1, 2, 5, 40])
def test_eigh_tridiagonal(n):
    rng = np.random.default_rng(n)
    d, e = rng.normal(size=n), rng.normal(size=n - 1)
    w, v = ours.eigh_tridiagonal(d.astype("f4"), e.astype("f4"))
    matrix = np.diag(d) + np.diag(e, 1) + np.diag(e, -1)
    expected = theirs.eigh_tridiagonal(d, e, eigvals_only=True)
    tolerance = 20 * np.finfo(np.float32).eps * np.abs(expected).max()
    np.testing.assert_allclose(w, expected, atol=tolerance)
    np.testing.assert_allclose(matrix @ v, np.asarray(v) * w, atol=4 * tolerance)
    first, last = n // 3, n // 2
    few, vectors = ours.eigh_tridiagonal(
        d.astype("f4"), e.astype("f4"), select="i", select_range=(first, last), tol=0.1, key=jax.random.key(0)
    )
    assert vectors.shape == (n, last - first + 1)
    np.testing.assert_allclose(few, expected[first : last + 1], atol=tolerance)
    alone = ours.eigh_tridiagonal(d.astype("c8"), 1j * e.astype("f4"), eigvals_only=True)
    np.testing.assert_allclose(alone, expected, atol=tolerance)


def test_eigh_tridiagonal_under_transformations():
    d, e = jnp.array([[1.0, 2, 4], [3, 1, 2]]), jnp.array([[1.0, 0.5], [2, 1]])
    batched = jax.vmap(ours.eigh_tridiagonal)(d, e)
    for one, other in zip(batched, jax.jit(ours.eigh_tridiagonal)(d, e)):
        np.testing.assert_allclose(one, other, rtol=1e-5)
    _, v = ours.eigh_tridiagonal(d[0], e[0])
    slope = jax.grad(lambda d: ours.eigh_tridiagonal(d, e[0], eigvals_only=True)[0])(d[0])
    np.testing.assert_allclose(slope, v[:, 0] ** 2, rtol=1e-4)
    assert ours.eigh_tridiagonal(d[0, :0], e[0, :0], eigvals_only=True).shape == (0,)
    with pytest.raises(NotImplementedError, match="select='v'"):
        ours.eigh_tridiagonal(d[0], e[0], select="v", select_range=(0, 1))


def test_right_sides_of_batched_systems():
    a = jnp.stack([k * jnp.array([[4.0, 1.0], [1.0, 3.0]]) for k in (1, 2, 4)])
    ways = {
        "solve": ours.solve,
        "cho": lambda a, b: ours.cho_solve(ours.cho_factor(a), b),
        "lu": lambda a, b: ours.lu_solve(ours.lu_factor(a), b),
        "triangle": lambda a, b: ours.solve_triangular(jnp.triu(a), b),
    }
    for name, solve in ways.items():
        matrix = np.triu(a) if name == "triangle" else np.asarray(a)
        for shape in ((2,), (2, 4), (1, 2, 4), (3, 2, 1), (5, 1, 2, 3)):
            b = np.arange(float(np.prod(shape))).reshape(shape).astype(np.float32)
            wanted = np.linalg.solve(matrix, b[:, None])[..., 0] if len(shape) == 1 else np.linalg.solve(matrix, b)
            np.testing.assert_allclose(solve(a, b), wanted, rtol=1e-5, atol=1e-6)
        if name != "solve":
            with pytest.warns(FutureWarning, match="batched vectors"):
                assert solve(a, jnp.ones((3, 2))).shape == (3, 2)
    assert jnp.linalg.cond(jnp.zeros((0, 2, 2))).shape == (0,)
    assert ours.hessenberg(jnp.zeros((0, 0))).shape == (0, 0)


def test_lists_and_refusals():
    a = A[:2, :2].tolist()
    close(ours.solve_sylvester(a, a, a), 0.5 * np.eye(2))
    close(ours.qr_multiply(a, a)[0], theirs.qr_multiply(a, a)[0])
    for error, call in (
        (ValueError, lambda: ours.helmert(0)),
        (TypeError, lambda: ours.expm(np.eye(2, dtype=np.float16))),
        (TypeError, lambda: ours.eigh_tridiagonal(np.ones(3), np.ones(2, complex), select="v")),
        (NotImplementedError, lambda: ours.eigh_tridiagonal(np.ones(3), np.ones(2), select="v")),
    ):
        with pytest.raises(error):
            call()


def test_second_derivatives_of_sylvester_equations_of_short_floats():
    a = jnp.array([[3.0, 1.0], [0.0, 2.0]], jnp.bfloat16)
    hessian = jax.hessian(lambda x: ours.solve_sylvester(a, x, a).astype(np.float32).sum())(a)
    wide = a.astype(np.float32)
    want = jax.hessian(lambda x: ours.solve_sylvester(wide, x, wide).sum())(wide)
    assert hessian.dtype == jnp.bfloat16
    np.testing.assert_allclose(hessian.astype(np.float32), want, rtol=0.1, atol=0.02)  # 8 bits, in some roundings


def test_complex_schur_forms_of_stacks():
    t, z = ours.schur(np.random.default_rng(3).normal(size=(2, 4, 4)).astype(np.float32))
    forms, bases = ours.rsf2csf(t, z)
    for k in range(2):
        form, basis = ours.rsf2csf(t[k], z[k])
        np.testing.assert_allclose(forms[k], form, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(bases[k], basis, rtol=1e-4, atol=1e-4)
    with pytest.raises(ValueError, match="of one order"):
        ours.rsf2csf(t, z[:, :2, :2])
