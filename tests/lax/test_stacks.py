"""Stacks of matrices: chunks over threads, results that nothing reads, and values for all matrices of a stack."""

import numpy as np
import pytest

import pullback.numpy as jnp
from pullback import jit, lax, make_jaxpr
from pullback.loop_ir import Call, Loop
from pullback.loop_ir.visit import statements
from pullback.lower.program import lower_program
from pullback.pipelines import optimize_jaxpr


def lowered(fun, *args):
    return lower_program(optimize_jaxpr(make_jaxpr(fun)(*args))).function


def called(function, routine):
    """The calls of a routine, and the strings that they get as first arguments."""
    found = [s for s in statements(function.body) if isinstance(s, Call) and s.symbol.endswith(routine)]
    return [chr(int(call.args[0].buffer.data[0])) for call in found]


@pytest.mark.parametrize("fun", [jnp.linalg.eigh, jnp.linalg.svd, jnp.linalg.eig, jnp.linalg.qr])
def test_stacks_are_cut_into_chunks_over_threads(fun):
    function = lowered(fun, np.ones((200, 9, 9), np.float32))
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
