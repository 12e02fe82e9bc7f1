"""Stacks of small matrices, one in each lane: against LAPACK, for all shapes, ragged ends and singular matrices."""

import numpy as np
import pytest

import pullback.numpy as jnp
from pullback import jit, lax, make_jaxpr
from pullback.compiler.lower.program import lower_program
from pullback.compiler.pipelines import optimize_jaxpr
from pullback.loops.ir import Call, Loop
from pullback.loops.ir.visit import statements

SHAPES = [(16, 1, 1), (17, 3, 3), (33, 3, 5), (33, 5, 3), (40, 16, 16), (16, 31, 2), (4, 5, 9, 9), (2000, 2, 2)]


def stack(shape, dtype=np.float32):
    return np.random.default_rng(0).standard_normal(shape).astype(dtype)


def test_no_routine_is_called():
    for fun in (jnp.linalg.cholesky, jnp.linalg.inv, jnp.linalg.qr, lax.linalg.lu, jnp.linalg.slogdet):
        function = lower_program(optimize_jaxpr(make_jaxpr(fun)(np.ones((100, 9, 9), np.float32)))).function
        assert not any(isinstance(s, Call) for s in statements(function.body))
        assert any(isinstance(s, Loop) and s.role == "vector" for s in statements(function.body))


@pytest.mark.parametrize("shape", SHAPES)
def test_lu(shape):
    a = stack(shape)
    packed, pivots, order = map(np.asarray, jit(lax.linalg.lu)(a))
    expected = lax.linalg.lu_p.reference(a)
    np.testing.assert_allclose(packed, expected[0], rtol=1e-2, atol=1e-4)
    np.testing.assert_array_equal(pivots, expected[1])
    np.testing.assert_array_equal(order, expected[2])


def test_lu_of_singular_matrices():
    a = stack((20, 4, 4))
    a[3], a[5, :, 2], a[7, 1, 1] = 0, 0, np.nan
    packed, pivots, order = map(np.asarray, jit(lax.linalg.lu)(a))
    assert (packed[3] == 0).all() and (order[3] == range(4)).all() and (pivots[3] == range(4)).all()
    assert np.isfinite(packed[5]).all() and packed[5, 2, 2] == 0
    assert np.isnan(packed[7]).any() and not np.isnan(np.delete(packed, 7, 0)).any()
    assert (jit(jnp.linalg.slogdet)(a)[0][3:6:2] == 0).all()


@pytest.mark.parametrize("n", [1, 2, 3, 5, 16, 32])
def test_cholesky(n):
    x = stack((37, n, n))
    a = x @ np.swapaxes(x, -1, -2) + np.eye(n, dtype=np.float32)
    a[4], a[6, 0, 0] = -a[4], np.nan
    factor = np.asarray(jit(jnp.linalg.cholesky)(a))
    lower = np.tril_indices(n)
    assert np.isnan(factor[4][lower]).all() and np.isnan(factor[6][lower]).all()
    assert (np.triu(factor, 1)[..., ~np.tri(n, dtype=bool)] == 0).all()
    good = [k for k in range(37) if k not in (4, 6)]
    np.testing.assert_allclose(factor[good], np.linalg.cholesky(a[good]), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("left", [False, True])
def test_triangular_solve(left, lower, turned, unit):
    for n, columns in ((3, 1), (9, 4)):
        a = stack((19, n, n)) / n + 2 * np.eye(n, dtype=np.float32)
        b = stack((19, n, columns) if left else (19, columns, n))
        flags = {"left_side": left, "lower": lower, "transpose_a": turned, "unit_diagonal": unit}
        x = jit(lambda a, b, flags=flags: lax.linalg.triangular_solve(a, b, **flags))(a, b)
        expected = lax.linalg.triangular_solve_p.reference(a, b, conjugate_a=False, **flags)
        np.testing.assert_allclose(x, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", ["reduced", "complete"])
@pytest.mark.parametrize("shape", SHAPES)
def test_qr(shape, mode):
    a = stack(shape)
    q, r = jit(lambda a: jnp.linalg.qr(a, mode=mode))(a)
    expected = np.linalg.qr(a, mode=mode)
    np.testing.assert_allclose(q, expected[0], atol=2e-4)
    np.testing.assert_allclose(r, expected[1], atol=2e-4)


def test_qr_of_large_and_vanishing_elements():
    a = stack((16, 3, 3))
    a[0] *= 1e30
    a[1], a[2, 1:, 0] = 0, 0
    q, r = map(np.asarray, jit(jnp.linalg.qr)(a))
    np.testing.assert_allclose(q @ r, a, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(q[1], np.eye(3))
    assert r[2, 0, 0] == a[2, 0, 0]


def test_signs_of_zeros_turn_qr_as_in_lapack():
    a = stack((64, 5, 3))
    a[:, 0, 0] = np.copysign(0, a[:, 1, 1])
    for found, expected in zip(jit(jnp.linalg.qr)(a), np.linalg.qr(a)):
        np.testing.assert_allclose(found, expected, atol=2e-4)
