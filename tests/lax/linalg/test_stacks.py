"""Stacks of matrices: chunks over threads, results that nothing reads, and values for all matrices of a stack."""

import numpy as np
import pytest

import pullback.numpy as jnp
from pullback import jit, jvp, lax, make_jaxpr
from pullback.compiler.lower.program import lower_program
from pullback.compiler.pipelines import optimize_jaxpr
from pullback.loops.ir import Call, Loop
from pullback.loops.ir.visit import statements


def lowered(fun, *args):
    return lower_program(optimize_jaxpr(make_jaxpr(fun)(*args))).function


def called(function, routine):
    """The calls of a routine, and the strings that they get as first arguments."""
    found = [s for s in statements(function.body) if isinstance(s, Call) and s.symbol.endswith(routine)]
    return [chr(int(call.args[0].buffer.data[0])) for call in found]


@pytest.mark.parametrize("fun", [jnp.linalg.eigh, jnp.linalg.svd, jnp.linalg.eig, jnp.linalg.qr])
def test_stacks_are_cut_into_chunks_over_threads(fun):
    function = lowered(fun, np.ones((200, 70, 70), np.float32))
    threads = [s for s in statements(function.body) if isinstance(s, Loop) and s.role == "threads"]
    assert any(any(isinstance(s, Call) for s in statements(loop.body)) for loop in threads)
    assert not any(
        isinstance(s, Loop) and s.role == "threads" for s in statements(lowered(fun, np.ones((9, 9), np.float32)).body)
    )


def test_vectors_that_nothing_reads_are_not_computed():
    x = np.ones((9, 9), np.float32)
    assert called(lowered(jnp.linalg.eigh, x), "syevd") == ["V"]
    assert called(lowered(jnp.linalg.eigvalsh, x), "syevd") == ["N"]
    assert called(lowered(lambda x: jnp.linalg.svd(x)[1], x), "gesdd") == ["N"]
    assert called(lowered(lambda x: jnp.linalg.eig(x)[0], x), "geev") == ["N"]
    assert called(lowered(lambda x: jnp.linalg.qr(x)[1], x), "orgqr") == []


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
@pytest.mark.parametrize("shape", [(0, 3, 3), (1, 3, 3), (2, 0, 0), (3, 1, 1), (17, 9, 9), (2, 40, 5, 5)])
def test_eigenvalues_and_vectors_of_stacks(shape, dtype):
    rng = np.random.default_rng(0)
    a = (rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if dtype == np.complex64 else 0)).astype(dtype)
    w, left, right = jit(lambda x: lax.linalg.eig(x))(a)
    assert w.shape == shape[:-1] and left.shape == right.shape == shape
    np.testing.assert_allclose(a @ np.asarray(right), np.asarray(right) * np.asarray(w)[..., None, :], atol=1e-4)
    adjoint = np.conj(np.swapaxes(np.asarray(left), -1, -2))
    np.testing.assert_allclose(adjoint @ a, np.asarray(w)[..., :, None] * adjoint, atol=1e-4)


def test_matrices_with_infinities_have_no_eigenvalues():
    a = np.zeros((3, 2, 2), np.float32)
    a[1, 0, 1], a[2, 1, 1] = np.inf, np.nan
    w, v = jit(jnp.linalg.eig)(a)
    assert np.isnan(w).all(1).tolist() == [False, True, True]
    assert np.isnan(v).all((1, 2)).tolist() == [False, True, True]


@pytest.mark.parametrize("shape", [(3, 3), (5, 2), (2, 5), (20, 3, 2), (0, 2)])
def test_raw_qr_is_what_lapack_returns(shape):
    a = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    packed, taus = jnp.linalg.qr(a, mode="raw")
    compiled = jit(lambda a: jnp.linalg.qr(a, mode="raw"))(a)
    assert taus.shape == (*shape[:-2], min(shape[-2:]))
    if a.size:
        expected = np.linalg.qr(a, mode="raw")
        for found in ((packed, taus), compiled):
            np.testing.assert_allclose(found[0], expected[0], atol=1e-5)
            np.testing.assert_allclose(found[1], expected[1], atol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (2, 4, 2)])
def test_derivative_of_full_singular_vectors(shape, dtype):
    rng = np.random.default_rng(0)
    a, a_dot = (
        (rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if dtype == np.complex64 else 0)).astype(dtype)
        for _ in range(2)
    )
    (u, s, vt), (u_dot, s_dot, vt_dot) = (
        [np.asarray(x) for x in found] for found in jvp(lambda a: jnp.linalg.svd(a, full_matrices=True), (a,), (a_dot,))
    )
    k = s.shape[-1]
    # The product is the matrix, and both sides stay unitary.
    left, right = u[..., :k], vt[..., :k, :]
    found = (u_dot[..., :k] * s[..., None, :]) @ right + (left * s_dot[..., None, :]) @ right
    found = found + (left * s[..., None, :]) @ vt_dot[..., :k, :]
    np.testing.assert_allclose(found, a_dot, atol=1e-4)
    for x, x_dot in ((u, u_dot), (np.conj(np.swapaxes(vt, -1, -2)), np.conj(np.swapaxes(vt_dot, -1, -2)))):
        turn = np.conj(np.swapaxes(x, -1, -2)) @ x_dot
        np.testing.assert_allclose(turn + np.conj(np.swapaxes(turn, -1, -2)), 0, atol=1e-4)


def test_eager_stacks_agree_with_compiled_ones():
    a = np.random.default_rng(0).standard_normal((20, 4, 4)).astype(np.float32)
    for fun in (jnp.linalg.eigvals, jnp.linalg.eigvalsh, jnp.linalg.svdvals):
        np.testing.assert_allclose(np.sort(fun(a), -1), np.sort(jit(fun)(a), -1), atol=1e-4)
