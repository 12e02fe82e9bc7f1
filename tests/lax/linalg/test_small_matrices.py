"""Stacks of small matrices, one in each lane: against LAPACK, for all shapes, ragged ends and singular matrices."""

import numpy as np
import pytest

import pullback.numpy as jnp
from pullback import enable_x64, grad, jit, lax, make_jaxpr
from pullback.compiler.lower.program import lower_program
from pullback.compiler.pipelines import optimize_jaxpr
from pullback.loops.ir import Call, Loop
from pullback.loops.ir.visit import statements

FEW = [(1, 1), (2, 2), (3, 3), (4, 4), (2, 4), (4, 3), (3, 2, 2), (5, 3, 3)]
SHAPES = [*FEW, (16, 1, 1), (17, 3, 3), (33, 3, 5), (33, 5, 3), (40, 16, 16), (16, 31, 2), (4, 5, 9, 9), (2000, 2, 2)]


def stack(shape, dtype=np.float32):
    return np.random.default_rng(0).standard_normal(shape).astype(dtype)


def test_no_routine_is_called():
    for fun in (jnp.linalg.cholesky, jnp.linalg.inv, jnp.linalg.qr, lax.linalg.lu, jnp.linalg.slogdet):
        function = lower_program(optimize_jaxpr(make_jaxpr(fun)(np.ones((100, 9, 9), np.float32)))).function
        assert not any(isinstance(s, Call) for s in statements(function.body))
        assert any(isinstance(s, Loop) and s.role == "vector" for s in statements(function.body))


def test_of_few_no_routine_is_called_either():
    eye = np.eye(4, dtype=np.float32)
    for fun in (jnp.linalg.cholesky, jnp.linalg.inv, jnp.linalg.det, lambda a: jnp.linalg.solve(a, a + 1)):
        for a in (eye, np.stack([eye] * 3)):
            function = lower_program(optimize_jaxpr(make_jaxpr(fun)(a))).function
            assert not any(isinstance(s, Call) for s in statements(function.body))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_few_are_as_accurate_as_with_pivots(dtype):
    """Small pivots, exchanged rows, singular matrices and those with nan: one and three matrices."""
    with enable_x64(dtype == np.float64):
        eps = np.finfo(dtype).eps
        for n in (1, 2, 3, 4):
            rows = stack((3, n, n), dtype)
            rows[1, 0, 0] = eps / 4  # without exchanges the result would have no digits
            exact = np.linalg.inv(rows.astype(np.float64))
            for a, expected in ((rows, exact), (rows[1], exact[1])):
                inverse = np.asarray(jit(jnp.linalg.inv)(a))
                assert inverse.dtype == dtype
                sizes = np.abs(expected).max((-1, -2)) * np.linalg.cond(a.astype(np.float64))
                assert (np.abs(inverse - expected).max((-1, -2)) <= 8 * eps * sizes).all()
        assert not np.isfinite(jit(jnp.linalg.inv)(np.zeros((2, 2), dtype))).any()
        factor = jit(jnp.linalg.cholesky)(np.asarray([[1, 2], [2, 1]], dtype))
        np.testing.assert_array_equal(factor, [[np.nan, 0], [np.nan, np.nan]])


def test_few_in_the_steps_of_a_loop():
    a, b = stack((50, 3, 3)) + 3 * np.eye(3, dtype=np.float32), stack((50, 3))

    def run(a, b):
        def step(x, ab):
            x = jnp.linalg.solve(ab[0], ab[1] + x)
            return x, x

        return lax.scan(step, jnp.zeros(3), (a, b))[1]

    x, expected = np.zeros(3), []
    for matrix, right in zip(a.astype(float), b):
        x = np.linalg.solve(matrix, right + x)
        expected.append(x)
    np.testing.assert_allclose(jit(run)(a, b), expected, rtol=1e-4, atol=1e-5)
    slope = jit(grad(lambda b: run(a, b).sum()))(b)
    change = (run(a, b + 0.5) - run(a, b - 0.5)).sum()  # linear in b
    np.testing.assert_allclose(slope.sum(), change, rtol=1e-3)


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
    for batch, n, columns in (((19,), 3, 1), ((19,), 9, 4), ((), 3, 6), ((2,), 4, 1)):
        a = stack((*batch, n, n)) / n + 2 * np.eye(n, dtype=np.float32)
        b = stack((*batch, n, columns) if left else (*batch, columns, n))
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
