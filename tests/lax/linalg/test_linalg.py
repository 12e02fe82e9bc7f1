"""Decompositions: identities that define them, derivatives along symmetric directions, failures as NaN, batches."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.linalg

import pullback
import pullback.numpy as jnp
from pullback import lax
from pullback._ext import _core
from pullback.lax import linalg

pytestmark = pytest.mark.usefixtures("x64")


RNG = np.random.default_rng(0)


def matrix(*shape, complex_=False):
    x = RNG.normal(size=shape)
    return x + 1j * RNG.normal(size=shape) if complex_ else x


def hermitian(*shape, complex_=False):
    x = matrix(*shape, complex_=complex_)
    q, _ = np.linalg.qr(x)
    return (q * np.arange(1.0, shape[-1] + 1)) @ np.conj(np.swapaxes(q, -1, -2))


def adjoint(x):
    return np.conj(np.swapaxes(np.asarray(x), -1, -2))


def check_derivative(fun, x, x_dot, step=1e-6):
    """Forward mode against differences, and reverse mode against forward mode, for a real-valued fun."""
    got = pullback.jvp(fun, (x,), (x_dot,))[1]
    want = (np.asarray(fun(x + step * x_dot)) - np.asarray(fun(x - step * x_dot))) / (2 * step)
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-5, atol=1e-7)
    out, pull = pullback.vjp(fun, x)
    bar = RNG.normal(size=np.shape(out))
    (x_bar,) = pull(bar)
    np.testing.assert_allclose(
        np.sum(np.asarray(got) * bar), np.real(np.sum(np.asarray(x_bar) * x_dot)), rtol=1e-8, atol=1e-8
    )


def for_threads(program, a):
    """What a program gives of an array on one, two and three threads, which must be the same."""
    before, results = _core.num_threads(), []
    try:
        for threads in (1, 2, 3):
            _core.set_num_threads(threads)
            results.append([np.asarray(x) for x in program(a)])
    finally:
        _core.set_num_threads(before)
    for result in results:
        for x, y in zip(result, results[0]):
            np.testing.assert_array_equal(x, y)
    return results[0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("m, n, full", [(64, 64, False), (97, 65, True), (70, 231, False), (300, 129, False)])
def test_threads_share_the_blocks_of_one_qr(m, n, full, dtype):
    a = matrix(m, n, complex_=np.dtype(dtype).kind == "c").astype(dtype)
    a[:, 5], a[:, 40] = 0, a[:, 4]  # a column without length, and one that depends on another
    program = pullback.jit(lambda x: linalg.qr(x, full_matrices=full)).lower(a).compile()
    assert "larft" in program.as_text("loops")
    q, r = for_threads(program, a)
    assert q.shape == (m, m if full else min(m, n)) and not np.tril(r, -1).any()
    allowed = 10 * np.sqrt(max(m, n)) * np.finfo(dtype).eps
    assert np.linalg.norm(q @ r - a) <= allowed * np.linalg.norm(a)
    assert np.linalg.norm(adjoint(q) @ q - np.eye(q.shape[1])) <= allowed * np.sqrt(m)
    k = min(m, n)
    _, want = np.linalg.qr(a[:, :5])
    np.testing.assert_allclose(r[:5, :5], want, atol=100 * k * np.finfo(dtype).eps)  # LAPACK's signs


def test_blocks_of_one_qr_pass_on_what_is_not_a_number():
    a = matrix(80, 80)
    a[70, 10] = np.nan
    q, r = pullback.jit(linalg.qr)(a)
    assert np.isnan(np.asarray(q)).any() and np.isnan(np.asarray(r)[10:, 10:]).any()
    np.testing.assert_array_equal(
        np.asarray(r)[:10, :10], np.asarray(pullback.jit(linalg.qr)(np.nan_to_num(a))[1])[:10, :10]
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
@pytest.mark.parametrize("m, n", [(210, 210), (97, 65), (70, 131), (449, 449), (500, 385), (769, 770)])
def test_threads_share_the_blocks_of_one_lu(m, n, dtype):
    a = matrix(m, n, complex_=dtype is np.complex128).astype(dtype)
    a[:, n // 2] = a[:, n // 4]  # singular, and nothing is divided by its zero
    program = pullback.jit(linalg.lu).lower(a).compile()
    assert "laswp" in program.as_text("loops")
    factors, pivots, permutation = for_threads(program, a)
    k = min(m, n)
    lower, upper = np.tril(factors[:, :k], -1) + np.eye(m, k), np.triu(factors[:k])
    assert np.abs(lower).max() <= np.sqrt(2) + 1e-6  # rows were exchanged; LAPACK compares |re| + |im|
    assert np.abs(lower @ upper - a[permutation]).max() <= 1000 * np.finfo(dtype).eps * np.abs(a).max()
    order = np.arange(m)
    for i, j in enumerate(pivots):
        order[[i, j]] = order[[j, i]]
    np.testing.assert_array_equal(order, permutation)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [13, 16, 33, 64, 209])
def test_lu_factors_in_lanes(n, dtype):
    a = matrix(5, n, n).astype(dtype)
    a[1, :, n // 2] = a[1, :, 2]  # singular, and nothing is divided by its zero
    a[2] = 0
    a[3, n - 1, 1], a[4] = np.nan, np.nan
    program = pullback.jit(linalg.lu).lower(a).compile()
    assert "getrf" not in program.as_text("loops")
    for factors, pivots, permutation in (map(np.asarray, program(a)), zip(*map(pullback.jit(linalg.lu), a))):
        for x, lu, swaps, order in zip(a[:3], factors, pivots, permutation):
            lower, upper = np.tril(lu, -1) + np.eye(n), np.triu(lu)
            assert np.abs(lower).max() <= 1
            assert np.abs(lower @ upper - x[order]).max() <= 16 * np.finfo(dtype).eps * n
            np.testing.assert_array_equal(linalg.lu_pivots_to_permutation(np.array(swaps), n), order)
        np.testing.assert_array_equal(pivots[0], scipy.linalg.lu_factor(a[0])[1])
        np.testing.assert_array_equal(pivots[4], np.arange(n))
        assert np.isnan(factors[3]).any() and np.isnan(factors[4]).all()
        assert all(sorted(np.array(order)) == list(range(n)) for order in permutation)
    assert pullback.jit(jnp.linalg.det)(a[2]) == 0 and np.isnan(pullback.jit(jnp.linalg.det)(a[4]))


@pytest.mark.parametrize("complex_", [False, True])
@pytest.mark.parametrize("compiled", [False, True])
def test_cholesky(complex_, compiled):
    a = hermitian(2, 4, 4, complex_=complex_)
    factor = np.asarray((pullback.jit(linalg.cholesky) if compiled else linalg.cholesky)(a))
    np.testing.assert_allclose(factor @ adjoint(factor), a, atol=1e-12)
    assert np.array_equal(factor, np.tril(factor))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [28, 33, 64, 191, 239])
def test_cholesky_factors_in_lanes(n, dtype):
    x = matrix(3, n, n)
    a = (x @ adjoint(x) + adjoint(x @ adjoint(x)) + n * np.eye(n)).astype(dtype)
    a[1, n - 2, n - 2] = -1
    a[2, n - 1, 3] = np.nan
    for factor in (pullback.jit(linalg.cholesky)(a), [pullback.jit(linalg.cholesky)(each) for each in a]):
        factor = np.asarray(factor)
        assert np.array_equal(factor[0], np.tril(factor[0]))
        error = np.abs(factor[0] @ factor[0].T - a[0]).max()
        assert error <= 16 * np.finfo(dtype).eps * np.abs(a[0]).max()
        assert np.isnan(factor[1:][:, *np.tril_indices(n)]).all() and (factor[1:][:, *np.triu_indices(n, 1)] == 0).all()
    triangle = pullback.jit(lambda a: linalg.cholesky(a, symmetrize_input=False))
    assert np.array_equal(triangle(np.where(np.tri(n, dtype=bool), a[0], np.nan)), factor[0])


@pytest.mark.parametrize(
    "n, dtype",
    [(192, np.complex128)] + [(n, dtype) for n in (240, 769) for dtype in (np.float32, np.float64, np.complex128)],
)
def test_threads_share_the_blocks_of_one_cholesky_factor(n, dtype):
    x = matrix(n, n, complex_=dtype is np.complex128)
    a = (x @ adjoint(x) + n * np.eye(n)).astype(dtype)
    program = pullback.jit(lambda a: linalg.cholesky(a, symmetrize_input=False)).lower(a).compile()
    assert "potrf" in program.as_text("loops") and "gemm" in program.as_text("loops")
    (factor,) = for_threads(lambda a: [program(a)], a)
    assert np.array_equal(factor, np.tril(factor))
    error = np.abs(factor @ adjoint(factor) - a).max()
    assert error <= 16 * np.finfo(dtype).eps * np.abs(a).max()
    rows = program(np.where(np.arange(n * n).reshape(n, n) == (n - 1) * n + 3, np.nan, a).astype(dtype))
    broken = np.isnan(np.asarray(rows))[np.tril_indices(n)]
    assert broken[3 - n :].all() and (broken.all() or not broken[: 3 - n].any())  # LAPACK may have noticed
    for bad in (3, n - 2):  # in the first block of columns, and in the last
        broken = a.copy()
        broken[bad, bad] = -1
        assert np.isnan(np.asarray(program(broken))[np.tril_indices(n)]).all()


@pytest.mark.parametrize("compiled", [False, True])
def test_cholesky_of_indefinite_is_nan(compiled):
    out = np.asarray((pullback.jit(linalg.cholesky) if compiled else linalg.cholesky)(-np.eye(3)))
    assert np.isnan(out[np.tril_indices(3)]).all() and (out[np.triu_indices(3, 1)] == 0).all()


@pytest.mark.parametrize("complex_", [False, True])
def test_cholesky_derivative(complex_):
    a, a_dot = hermitian(4, 4, complex_=complex_), hermitian(4, 4, complex_=complex_)
    w = matrix(4, 4)
    check_derivative(lambda x: lax.reduce_sum(lax.mul(_real(linalg.cholesky(x)), w), (0, 1)), a, a_dot)


def _real(x):
    return lax.real(x) if x.dtype.kind == "c" else x


@pytest.mark.parametrize("complex_", [False, True])
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 3), (3, 5)])
def test_svd_and_qr(shape, complex_, compiled):
    a = matrix(*shape, complex_=complex_)
    wrap = pullback.jit if compiled else lambda f: f
    u, s, vt = wrap(lambda x: linalg.svd(x, full_matrices=False))(a)
    np.testing.assert_allclose((np.asarray(u) * np.asarray(s)[..., None, :]) @ np.asarray(vt), a, atol=1e-12)
    np.testing.assert_allclose(np.asarray(s), np.linalg.svd(a, compute_uv=False), atol=1e-12)
    u, s, vt = wrap(linalg.svd)(a)
    np.testing.assert_allclose(adjoint(u) @ np.asarray(u), np.broadcast_to(np.eye(shape[-2]), np.shape(u)), atol=1e-12)
    np.testing.assert_allclose(
        np.asarray(vt) @ adjoint(vt), np.broadcast_to(np.eye(shape[-1]), np.shape(vt)), atol=1e-12
    )
    for full in (False, True):
        q, r = wrap(lambda x, full=full: linalg.qr(x, full_matrices=full))(a)
        np.testing.assert_allclose(np.asarray(q) @ np.asarray(r), a, atol=1e-12)
        assert np.allclose(np.asarray(r), np.triu(np.asarray(r)))
    q, r, p = wrap(lambda x: linalg.qr(x, pivoting=True))(a)
    np.testing.assert_allclose(
        np.asarray(q) @ np.asarray(r), np.take_along_axis(a, np.asarray(p)[..., None, :], -1), atol=1e-12
    )


@pytest.mark.parametrize("shape", [(3, 0), (3, 1), (2, 4, 2)])
@pytest.mark.parametrize("complex_", [False, True])
def test_derivative_of_the_columns_that_complete_q(shape, complex_):
    a, a_dot = matrix(*shape, complex_=complex_), matrix(*shape, complex_=complex_)[..., ::-1]
    (q, r), (q_dot, r_dot) = pullback.jvp(linalg.qr, (a,), (a_dot,))
    above, below = linalg.qr(a + 1e-6 * a_dot), linalg.qr(a - 1e-6 * a_dot)
    np.testing.assert_allclose(q_dot, (above[0] - below[0]) / 2e-6, atol=1e-6)
    np.testing.assert_allclose(r_dot, (above[1] - below[1]) / 2e-6, atol=1e-6)
    (a_bar,) = pullback.vjp(linalg.qr, a)[1]((np.conj(q), np.zeros(r.shape, r.dtype)))
    np.testing.assert_allclose(a_bar, np.zeros(shape), atol=1e-12)  # the norm of Q does not change


def test_derivative_of_q_without_reflections():
    q_dot, _ = pullback.jvp(linalg.qr, (np.eye(4, 2),), (np.ones((4, 2)),))[1]
    np.testing.assert_array_equal(q_dot, [[0, -1, -1, -1], [1, 0, -1, -1], [1, 1, 0, 0], [1, 1, 0, 0]])


@pytest.mark.parametrize("shape", [(4, 2), (3, 1), (2, 2)])
def test_polar_factors_of_a_part(shape):
    m, n = shape
    a = matrix(4, 2)
    expected = linalg.qdwh(a[:m, :n])[:2]
    found = pullback.jit(lambda *shape: linalg.qdwh(a, dynamic_shape=shape)[:2])(m, n)
    for x, want, size in zip(found, expected, ((4, 2), (2, 2))):
        whole = np.zeros(size)
        whole[: want.shape[0], : want.shape[1]] = want
        np.testing.assert_allclose(x, whole, atol=1e-12)


@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4)])
@pytest.mark.parametrize("complex_", [False, True])
def test_svd_derivative(shape, complex_):
    """Of what does not depend on the signs of singular vectors: projections and the matrix that the three make."""
    a, a_dot = matrix(*shape, complex_=complex_), matrix(*shape, complex_=complex_)
    w = matrix(*shape)

    def fun(x):
        u, s, vt = linalg.svd(x, full_matrices=False)
        scaled = lax.mul(u, lax.convert_element_type(lax.broadcast_in_dim(lax.square(s), u.shape, (1,)), u.dtype))
        return lax.reduce_sum(lax.mul(_real(lax.dot(scaled, vt)), w), (0, 1))

    check_derivative(fun, a, a_dot)
    check_derivative(lambda x: lax.reduce_sum(lax.sin(linalg.svd(x, compute_uv=False)), (0,)), a, a_dot)


def test_cotangents_of_matrices_that_are_not_made_hermitian_are_not_either():
    a, weights = hermitian(4, 4), matrix(4, 4)

    def loss(a, symmetrize):
        v, _ = linalg.eigh(a, symmetrize_input=symmetrize)
        return lax.reduce_sum(lax.mul(lax.integer_pow(v, 4), weights), (0, 1))

    one, other = (np.asarray(pullback.grad(loss)(a, s)) for s in (False, True))
    np.testing.assert_allclose((one + one.T) / 2, other, rtol=1e-9, atol=1e-11)
    assert not np.allclose(one, one.T)


@pytest.mark.parametrize("complex_", [False, True])
def test_eigh(complex_):
    a, a_dot = hermitian(4, 4, complex_=complex_), hermitian(4, 4, complex_=complex_)
    for wrap in (lambda f: f, pullback.jit):
        v, w = wrap(linalg.eigh)(a)
        np.testing.assert_allclose((np.asarray(v) * np.asarray(w)) @ adjoint(v), a, atol=1e-12)
        assert np.all(np.diff(np.asarray(w)) > 0)
    z = matrix(4, 4)

    def fun(x):
        v, w = linalg.eigh(x)
        scaled = lax.mul(v, lax.convert_element_type(lax.broadcast_in_dim(lax.exp(w), v.shape, (1,)), v.dtype))
        return lax.reduce_sum(
            lax.mul(
                _real(lax.dot(scaled, lax.conj(lax.transpose(v, (1, 0))) if complex_ else lax.transpose(v, (1, 0)))), z
            ),
            (0, 1),
        )

    check_derivative(fun, a, a_dot)


@pytest.mark.parametrize("dtype, n", [(np.float32, 401), (np.float64, 384), (np.complex64, 385)])
def test_threads_share_the_halves_of_one_eigenproblem(dtype, n):
    x = matrix(n, n, complex_=np.dtype(dtype).kind == "c")
    x = x + adjoint(x)
    apart, limits = np.where(np.arange(n)[:, None] // 100 == np.arange(n) // 100, x, 0), np.finfo(dtype)
    huge, tiny = x * float(limits.max) ** 0.93, x * float(limits.tiny / limits.eps)
    graded = x * 10.0 ** -(np.add.outer(np.arange(n), np.arange(n)) ** 0.3)
    lower = pullback.jit(lambda a: linalg.eigh(a, symmetrize_input=False))
    upper = pullback.jit(lambda a: linalg.eigh(a, lower=False, symmetrize_input=False))
    assert "laed1" in lower.lower(x.astype(dtype)).compile().as_text("loops")
    for a in (x, apart, huge, tiny, graded, np.ones((n, n)), np.zeros((n, n))):
        a = a.astype(dtype)
        for function, other in ((lower, np.triu), (upper, np.tril)):
            v, w = for_threads(function, a + other(np.full_like(a, np.nan), 1 if other is np.triu else -1))
            scale = float(np.abs(a).max()) or 1.0
            values, scaled = w / scale, (a / scale).astype(np.result_type(dtype, np.float64))
            size = np.abs(values).max() or 1.0
            assert (np.diff(w) >= 0).all()
            assert np.abs(adjoint(v) @ v - np.eye(n)).max() <= n * limits.eps
            assert np.abs(scaled @ v - v * values).max() <= n * limits.eps * size
    for bad in (np.nan, np.inf):
        a = x.astype(dtype)
        a[n - 2, 3] = bad
        assert all(np.isnan(part).all() for part in lower(a))


def test_one_triangle_is_read():
    a = hermitian(3, 3)
    garbage = np.tril(a) + np.triu(matrix(3, 3), 1)
    for wrap in (lambda f: f, pullback.jit):
        np.testing.assert_allclose(
            np.asarray(wrap(lambda x: linalg.eigh(x, symmetrize_input=False)[1])(garbage)),
            np.linalg.eigvalsh(a),
            atol=1e-12,
        )
        np.testing.assert_allclose(
            np.asarray(wrap(lambda x: linalg.cholesky(x, symmetrize_input=False))(garbage)),
            np.linalg.cholesky(a),
            atol=1e-12,
        )


def test_what_is_not_finite_gives_nan():
    bad = np.full((3, 3), np.nan)
    for wrap in (lambda f: f, pullback.jit):
        assert np.isnan(np.asarray(wrap(linalg.eigh)(bad)[1])).all()
        assert np.isnan(np.asarray(wrap(lambda x: linalg.svd(x, compute_uv=False))(bad))).all()
    assert np.isnan(np.asarray(linalg.eig(bad)[0])).all()


def test_eigenvalue_derivative():
    a, a_dot = matrix(3, 3) * 0.3 + np.diag([1.0, 3.0, 5.0]), matrix(3, 3)

    def fun(x):
        (w,) = linalg.eig(x, compute_left_eigenvectors=False, compute_right_eigenvectors=False)
        return lax.real(lax.reduce_sum(lax.mul(w, w), (0,)))

    check_derivative(fun, a, a_dot)
    with pytest.raises(NotImplementedError, match="eigenvectors"):
        pullback.jvp(linalg.eig, (a,), (a_dot,))


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("flags", [{"lower": True}, {"transpose_a": True}, {"lower": True, "unit_diagonal": True}])
def test_right_sides_of_one_matrix_are_shared_by_threads(left, flags):
    rng = np.random.default_rng(0)
    a = rng.normal(size=(170, 170)).astype(np.float32) / 170 + 2 * np.eye(170, dtype=np.float32)
    b = rng.normal(size=(170, 201) if left else (201, 170)).astype(np.float32)
    solve = pullback.jit(lambda a, b: linalg.triangular_solve(a, b, left_side=left, **flags))
    before, found = _core.num_threads(), []
    try:
        for threads in (1, 2, 3):
            _core.set_num_threads(threads)
            found.append(np.asarray(solve(a, b)))
    finally:
        _core.set_num_threads(before)
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])
    given = {"lower": False, "transpose_a": False, "conjugate_a": False, "unit_diagonal": False} | flags
    expected = linalg.triangular_solve_p.reference(a.astype("f8"), b.astype("f8"), left_side=left, **given)
    np.testing.assert_allclose(found[0], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.complex128])
@pytest.mark.parametrize("n, batch, count", [(1, (), 1), (37, (), 1), (40, (3,), 1), (37, (), 19), (33, (2,), 8)])
def test_every_triangular_system(n, batch, count, dtype):
    rng = np.random.default_rng(0)
    a = rng.normal(size=(*batch, n, n)) / n + 2 * np.eye(n)
    b = rng.normal(size=(*batch, n, count))
    if dtype is np.complex128:
        a, b = a + 1j * rng.normal(size=a.shape) / n, b + 1j * rng.normal(size=b.shape)
    a, b = a.astype(dtype), b.astype(dtype)
    names = ("left_side", "lower", "transpose_a", "conjugate_a", "unit_diagonal")
    chosen = [dict(zip(names, flags)) for flags in itertools.product((True, False), repeat=5)]
    sides = [b if flags["left_side"] else np.swapaxes(b, -1, -2) for flags in chosen]
    # All at once: a program for each would take long to compile.
    solve = pullback.jit(lambda a, bs: [linalg.triangular_solve(a, b, **flags) for b, flags in zip(bs, chosen)])
    for x, side, flags in zip(solve(a, sides), sides, chosen):
        full = np.tril(a) if flags["lower"] else np.triu(a)
        if flags["unit_diagonal"]:
            full = np.where(np.eye(n, dtype=bool), 1, full)
        full = np.conj(full) if flags["conjugate_a"] else full
        full = np.swapaxes(full, -1, -2) if flags["transpose_a"] else full
        back = full @ np.asarray(x) if flags["left_side"] else np.asarray(x) @ full
        np.testing.assert_allclose(back, side, rtol=0, atol=100 * np.finfo(dtype).eps)


def test_triangular_solve_of_vectors_and_batches():
    a, b = np.tril(matrix(3, 3)) + 3 * np.eye(3), matrix(3)
    np.testing.assert_allclose(
        np.asarray(linalg.triangular_solve(a, b, left_side=True, lower=True)), np.linalg.solve(a, b)
    )
    many = matrix(5, 3)
    got = pullback.vmap(lambda x: linalg.triangular_solve(a, x, left_side=True, lower=True))(many)
    np.testing.assert_allclose(np.asarray(got), np.linalg.solve(a, many.T).T)
    with pytest.raises(ValueError, match=r"'b' of shape \(2, 2\) does not fit 'a' of shape \(3, 3\)"):
        linalg.triangular_solve(a, np.ones((2, 2)), left_side=True)


def test_lu_of_wide_and_tall():
    for shape in [(3, 5), (5, 3), (2, 3, 3)]:
        a = matrix(*shape)
        for wrap in (lambda f: f, pullback.jit):
            lu, pivots, p = map(np.asarray, wrap(linalg.lu)(a))
            m, n = shape[-2:]
            k = min(m, n)
            lower, upper = np.tril(lu[..., :k], -1) + np.eye(m, k), np.triu(lu[..., :k, :])
            np.testing.assert_allclose(lower @ upper, np.take_along_axis(a, p[..., None], -2), atol=1e-12)
            assert np.array_equal(np.asarray(linalg.lu_pivots_to_permutation(pivots.astype(np.int32), m)), p)


def test_tridiagonal_solve_derivative():
    dl, d, du, b = matrix(4), matrix(4) + 4, matrix(4), matrix(4, 2)
    dense = np.diag(d) + np.diag(dl[1:], -1) + np.diag(du[:-1], 1)
    np.testing.assert_allclose(np.asarray(linalg.tridiagonal_solve(dl, d, du, b)), np.linalg.solve(dense, b))
    check_derivative(lambda x: lax.reduce_sum(lax.sin(linalg.tridiagonal_solve(dl, x, du, b)), (0, 1)), d, matrix(4))


@pytest.mark.parametrize(
    "function, message",
    [
        (linalg.svd, "svd: expected a matrix or a stack"),
        (linalg.qr, "qr: expected a matrix or a stack"),
        (linalg.lu, "lu: expected a matrix or a stack"),
    ],
)
def test_rank_errors(function, message):
    with pytest.raises(TypeError, match=message):
        function(np.ones(3))


@pytest.mark.parametrize("call,error", [
    (lambda: linalg.cholesky(np.ones((2, 3))), TypeError),
    (lambda: linalg.cholesky(np.ones((2, 3)), symmetrize_input=False), ValueError),
    (lambda: linalg.eigh(np.ones((2, 3))), TypeError),
    (lambda: linalg.eigh(np.ones((2, 3)), symmetrize_input=False), ValueError),
    (lambda: linalg.eig(np.ones((2, 3))), ValueError),
    (lambda: linalg.triangular_solve(np.ones((2, 3)), np.ones((2, 3)), left_side=True), ValueError),
    (lambda: linalg.triangular_solve(np.eye(3), np.ones((2, 3, 3))), TypeError),
    (lambda: linalg.householder_product(np.eye(3), np.eye(3)), TypeError),
    (lambda: linalg.eigh(np.eye(3, dtype=int), symmetrize_input=False), TypeError),
    (lambda: linalg.cholesky(np.eye(3, dtype=int), symmetrize_input=False), TypeError),
])  # fmt: skip
def test_errors_for_shapes_and_types(call, error):
    with pytest.raises(error):
        call()


def test_hermitian_matrices_of_integers_become_floats_where_they_are_symmetrized():
    a = np.array([[4, 2], [0, 3]])
    np.testing.assert_allclose(linalg.cholesky(a), [[2, 0], [0.5, 2.75**0.5]], rtol=1e-6)
    np.testing.assert_allclose(linalg.eigh(a)[1], np.linalg.eigvalsh([[4.0, 1], [1, 3]]), rtol=1e-6)


@pytest.mark.parametrize("dtype", ["f4", "c8"])
def test_vectors_in_single_precision_point_the_same_way_eager_and_compiled(dtype):
    """NumPy decomposes them in double precision, which turned about every third vector around."""
    rng = np.random.default_rng(0)
    for shape in ((5, 5), (9, 13, 13)):
        x = sum(part * rng.standard_normal(shape) for part in ((1, 1j) if dtype == "c8" else (1,))).astype(dtype)
        for function in (pullback.numpy.linalg.eigh, pullback.numpy.linalg.svd, pullback.numpy.linalg.eig):
            for eager, compiled in zip(function(pullback.numpy.asarray(x)), pullback.jit(function)(x)):
                np.testing.assert_allclose(eager, compiled, atol=2e-4)


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_reflectors_of_empty_matrices(dtype):
    """The product of no reflectors is the identity."""
    for a, c in (((3, 0), (3, 2)), ((3, 0), (3, 0)), ((0, 0), (0, 2)), ((2, 3, 0), (2, 3, 1))):
        c = np.ones(c, dtype)
        taus = np.zeros((*a[:-2], min(a[-2:])), dtype)
        out = lax.linalg.ormqr(np.zeros(a, dtype), taus, c)
        assert out.shape == c.shape and out.dtype == dtype and (np.asarray(out) == c).all()


def test_reflectors_and_their_factors_are_of_one_stack_and_type():
    a, taus = np.eye(3, dtype=np.float32), np.ones(3, np.float32)
    for wrong, error in (
        (lambda: lax.linalg.ormqr(a[None], taus, a), TypeError),
        (lambda: lax.linalg.ormqr(a[:, :1], taus, a), ValueError),
        (lambda: lax.linalg.ormqr(a.astype(np.float16), taus, a), TypeError),
        (lambda: lax.linalg.householder_product(a.astype(np.float16), taus), TypeError),
        (lambda: lax.linalg.cholesky_update(a.astype(np.float16), taus), TypeError),
    ):
        with pytest.raises(error):
            wrong()


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float8_e4m3fn"])
def test_triangular_systems_of_narrow_floats(dtype):
    a = np.tril(np.random.default_rng(0).uniform(1, 2, (3, 4, 4))).astype(dtype)
    b = np.random.default_rng(1).normal(size=(3, 4, 2)).astype(dtype)
    for f in (linalg.triangular_solve, pullback.jit(linalg.triangular_solve, static_argnames=("left_side", "lower"))):
        x = f(a, b, left_side=True, lower=True)
        want = np.linalg.solve(a.astype(np.float64), b.astype(np.float64)).astype(np.float32).astype(dtype)
        assert x.dtype == dtype
        np.testing.assert_allclose(np.asarray(x, np.float32), want.astype(np.float32), rtol=0.13, atol=0.02)


def test_cholesky_of_integers():
    got = linalg.cholesky(np.array([[4, 2], [2, 5]], np.int32))
    np.testing.assert_array_equal(got, np.array([[2, 0], [1, 2]], np.float32), strict=True)


def test_cholesky_of_what_is_not_symmetrized_has_the_plain_derivative():
    """L phi(L^-1 dA L^-H) of dA as it is; where the operand is symmetrized, of its mean with its adjoint."""
    rng = np.random.default_rng(2)
    a = rng.normal(size=(4, 4)).astype(np.float32)
    a, d = a @ a.T + 4 * np.eye(4, dtype=np.float32), rng.normal(size=(4, 4)).astype(np.float32)
    factor = np.linalg.cholesky(a)

    def derivative(d):
        middle = np.linalg.solve(factor, np.linalg.solve(factor, d.T).T)
        return factor @ (np.tril(middle) - 0.5 * np.diag(np.diag(middle)))

    for symmetrize, want in ((True, derivative((d + d.T) / 2)), (False, derivative(d))):
        _, found = pullback.jvp(lambda x: lax.linalg.cholesky(x, symmetrize_input=symmetrize), (a,), (d,))  # noqa: B023
        np.testing.assert_allclose(found, want, rtol=1e-3, atol=1e-4)


def test_decompositions_that_are_lists():
    x = np.eye(3, dtype=np.float32)
    assert all(type(f(x)) is list for f in (lax.linalg.lu, lax.linalg.hessenberg, lax.linalg.tridiagonal))


@pytest.mark.parametrize("fun", [jnp.linalg.inv, jnp.linalg.cholesky, lambda a: jnp.linalg.solve(a, a)])
def test_rows_and_columns_that_fill_up_a_matrix_are_whole_vectors(fun):
    """The frame of the identity around 114 rows: lane by lane it was a fifth of a PLN step's code."""
    a = np.eye(114, dtype=np.float32) + np.float32(0.001)
    assert "extractelement" not in pullback.jit(fun).lower(a).as_text("llvm")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_symmetric_products_of_any_floating_type(dtype):
    a, c = np.arange(6.0).reshape(3, 2) / 4, np.eye(3)
    out = lax.linalg.symmetric_product(jnp.asarray(a, dtype), jnp.asarray(c, dtype), alpha=2.0, beta=0.5)
    assert out.dtype == dtype
    np.testing.assert_array_equal(np.asarray(out, float), 2 * a @ a.T + 0.5 * c)  # of few bits, so exact in all types


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_decompositions_of_empty_matrices_of_narrow_types(dtype):
    u, s, vt = jnp.linalg.svd(jnp.zeros((0, 3), dtype))
    assert (u.dtype, s.shape, vt.dtype) == (dtype, (0,), dtype) and np.array_equal(vt.astype(float), np.eye(3))
    q, r = jnp.linalg.qr(jnp.zeros((2, 3, 0), dtype))
    assert (q.shape, r.shape, q.dtype, r.dtype) == ((2, 3, 0), (2, 0, 0), dtype, dtype)
    with pytest.raises(ValueError, match="square"):  # which is looked at before the type
        lax.linalg.eig(jnp.ones((2, 3), dtype))
