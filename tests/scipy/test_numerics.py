"""scipy.{fft, integrate, interpolate, ndimage, optimize, cluster, sparse.linalg} against SciPy in double precision."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.cluster.vq
import scipy.fft
import scipy.integrate
import scipy.interpolate
import scipy.ndimage
import scipy.optimize

import pullback
import pullback.experimental.ode
import pullback.image
import pullback.numpy as jnp
from pullback.scipy import cluster, fft, integrate, interpolate, ndimage, optimize
from pullback.scipy.sparse import linalg

RNG = np.random.default_rng(0)


pytestmark = pytest.mark.usefixtures("x64")


# Cosine transforms.


@pytest.mark.parametrize("norm", [None, "ortho"])
@pytest.mark.parametrize("n", [1, 2, 3, 8, 15, 16, 17])
def test_cosine_transforms(n, norm):
    x = RNG.normal(size=(3, n, 2))
    np.testing.assert_allclose(fft.dct(x, axis=1, norm=norm), scipy.fft.dct(x, axis=1, norm=norm), atol=1e-12)
    np.testing.assert_allclose(fft.idct(x, axis=1, norm=norm), scipy.fft.idct(x, axis=1, norm=norm), atol=1e-12)
    np.testing.assert_allclose(fft.dctn(x, norm=norm), scipy.fft.dctn(x, norm=norm), atol=1e-11)
    np.testing.assert_allclose(fft.idctn(fft.dctn(x, norm=norm), norm=norm), x, atol=1e-12)
    for m in (n + 2, max(n - 1, 1)):
        np.testing.assert_allclose(
            fft.dct(x, n=m, axis=1, norm=norm), scipy.fft.dct(x, n=m, axis=1, norm=norm), atol=1e-12
        )


def test_cosine_transforms_of_parts():
    x = RNG.normal(size=(4, 5, 6))
    np.testing.assert_allclose(fft.dctn(x, s=(3, 7), axes=(2, 0)), scipy.fft.dctn(x, s=(3, 7), axes=(2, 0)), atol=1e-12)
    np.testing.assert_allclose(fft.idctn(x, s=(3, 7)), scipy.fft.idctn(x, s=(3, 7)), atol=1e-12)
    np.testing.assert_array_equal(fft.dctn(x, s=(3, 7), axes=(1,)), fft.dct(x, n=3, axis=1))
    np.testing.assert_array_equal(fft.idctn(x, s=(3,), axes=(1, 0)), fft.idct(fft.idct(x, n=3, axis=1), axis=0))
    np.testing.assert_array_equal(fft.dctn(x, s=(3, 7), axes=()), x)
    assert fft.dct(np.arange(5)).dtype == np.float64
    assert fft.dct(np.ones(5, np.float32)).dtype == np.float32
    got = pullback.grad(lambda x: jnp.sum(fft.dct(x) ** 2))(x[0, 0])
    basis = scipy.fft.dct(np.eye(6), axis=0)
    np.testing.assert_allclose(got, 2 * basis.T @ basis @ x[0, 0], atol=1e-10)


def test_errors_of_cosine_transforms():
    with pytest.raises(NotImplementedError, match="Only DCT type 2"):
        fft.dct(np.ones(3), type=3)
    with pytest.raises(ValueError, match="'norm' is 'forward'"):
        fft.idct(np.ones(3), norm="forward")
    with pytest.raises(ValueError, match="'axis' is 1"):
        fft.dct(np.ones(3), axis=1)
    with pytest.raises(ValueError, match="'n' is 0"):
        fft.dct(np.ones(3), n=0)


# Integrals, interpolation, images.


def test_trapezoid():
    y, x = RNG.normal(size=(4, 9)), np.sort(RNG.normal(size=9))
    np.testing.assert_allclose(integrate.trapezoid(y, x), scipy.integrate.trapezoid(y, x))
    np.testing.assert_allclose(integrate.trapezoid(y, dx=0.3, axis=0), scipy.integrate.trapezoid(y, dx=0.3, axis=0))


@pytest.mark.parametrize("method", ["linear", "nearest"])
@pytest.mark.parametrize("fill_value", [np.nan, 7.0, None])
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("rest", [(), (3,)])
def test_interpolation_on_grids(method, fill_value, descending, rest):
    points = [np.array([0.0, 1, 3, 4, 6]), np.linspace(-1, 2, 7)]
    points[1] = points[1][::-1].copy() if descending else points[1]
    values = RNG.normal(size=(5, 7, *rest))
    xi = RNG.uniform(-2, 7, size=(4, 10, 2))
    options = dict(method=method, bounds_error=False, fill_value=fill_value)
    ours = interpolate.RegularGridInterpolator(points, values, **options)
    theirs = scipy.interpolate.RegularGridInterpolator(points, values, **options)
    np.testing.assert_allclose(ours(xi), theirs(xi), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(pullback.jit(lambda x: ours(x))(xi), theirs(xi), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(ours((xi[..., 0], xi[..., 1])), theirs(xi), rtol=1e-10, atol=1e-10)


def test_errors_of_interpolation():
    grid = interpolate.RegularGridInterpolator
    with pytest.raises(ValueError, match="method 'cubic'"):
        grid(([0, 1],), np.ones(2), "cubic")
    with pytest.raises(ValueError, match="strictly ascending"):
        grid(([0, 0, 1],), np.ones(3))
    with pytest.raises(ValueError, match="2 points and 3 values in dimension 0"):
        grid(([0, 1],), np.ones(3))
    with pytest.raises(ValueError, match="out of bounds in dimension 0"):
        grid(([0.0, 1.0],), np.ones(2), bounds_error=True)(np.array([[2.0]]))
    with pytest.raises(ValueError, match="'xi' has 2 coordinates a point"):
        grid(([0.0, 1.0],), np.ones(2))(np.ones((3, 2)))
    assert np.isnan(grid(([0.0, 1.0],), np.ones(2), fill_value=None)(np.array([[np.nan]])))[0]


# SciPy's modes that end at the outermost samples; 'wrap' has a period of n here, which SciPy calls 'grid-wrap'.
@pytest.mark.parametrize("mode", ["nearest", "mirror", "reflect", "wrap"])
@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("shape", [(7, 5), (1, 4), (2, 3, 4)])
def test_map_coordinates(mode, order, shape):
    x = RNG.normal(size=shape)
    at = [RNG.uniform(-20, 20, size=(6, 5)) for _ in shape]
    want = scipy.ndimage.map_coordinates(x, at, order=order, mode="grid-wrap" if mode == "wrap" else mode)
    np.testing.assert_allclose(ndimage.map_coordinates(x, at, order, mode), want, atol=1e-10)


@pytest.mark.parametrize(
    ("image", "at", "order", "want"),
    [
        (np.array([8388609, 3], np.int32), 0.0, 1, 8388609),  # + 0.5 would be 8388610 in float32
        (np.array([10.0, 20.0], np.float32), 0.49999997, 0, 10.0),  # + 0.5 would be 1
    ],
)
def test_map_coordinates_rounds_what_it_has(image, at, order, want):
    assert float(ndimage.map_coordinates(image, [jnp.float32(at)], order)) == want


def test_map_coordinates_outside_is_a_constant():
    x = np.arange(12.0).reshape(3, 4)
    at = [np.array([0.0, 0.5, -0.4, 2.5, 9.0]), np.array([0.0, 1.5, 0.0, 1.0, 9.0])]
    np.testing.assert_allclose(ndimage.map_coordinates(x, at, 1, cval=-1.0), [0, 3.5, -0.4, 4.0, -1])
    np.testing.assert_allclose(np.asarray(ndimage.map_coordinates(x, at, 0, cval=-1.0))[[0, 2, 4]], [0, 0, -1])
    whole = ndimage.map_coordinates(x.astype(np.int32), at, 1, "nearest")
    assert whole.dtype == np.int32
    np.testing.assert_array_equal(whole, [0, 4, 0, 9, 11])
    slope = pullback.grad(lambda s: ndimage.map_coordinates(x, [s, 1.0 * s], 1))(0.5)
    assert float(slope) == 5.0


def test_errors_of_map_coordinates():
    x = np.ones((2, 2))
    with pytest.raises(ValueError, match="1 arrays of coordinates for 2 axes"):
        ndimage.map_coordinates(x, [np.ones(3)], 1)
    with pytest.raises(NotImplementedError, match="argument 'order' is 3"):
        ndimage.map_coordinates(x, [np.ones(3)] * 2, 3)
    with pytest.raises(NotImplementedError, match="mode 'edge' is not supported"):
        ndimage.map_coordinates(x, [np.ones(3)] * 2, 1, mode="edge")


def test_vector_quantization():
    obs, codes = RNG.normal(size=(30, 4)), RNG.normal(size=(6, 4))
    for got, want in zip(cluster.vq.vq(obs, codes), scipy.cluster.vq.vq(obs, codes)):
        np.testing.assert_allclose(got, want)
    for got, want in zip(cluster.vq.vq(obs[:, 0], codes[:, 0]), scipy.cluster.vq.vq(obs[:, :1], codes[:, :1])):
        np.testing.assert_allclose(got, want)
    with pytest.raises(ValueError, match="4 features, but codes have 3"):
        cluster.vq.vq(obs, codes[:, :3])


# Minimization.


def rosenbrock(x):
    return jnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def himmelblau(x):
    return (x[0] ** 2 + x[1] - 11) ** 2 + (x[0] + x[1] ** 2 - 7) ** 2


def matyas(x):
    return 0.26 * (x[0] ** 2 + x[1] ** 2) - 0.48 * x[0] * x[1]


def eggholder(x):
    return -(x[1] + 47) * jnp.sin(jnp.sqrt(jnp.abs(x[0] / 2 + x[1] + 47))) - x[0] * jnp.sin(
        jnp.sqrt(jnp.abs(x[0] - x[1] - 47))
    )


@pytest.mark.parametrize(
    "fun, start", [(rosenbrock, [-1.2, 1.0]), (rosenbrock, [0.0] * 6), (himmelblau, [1.0, 1.0]), (matyas, [3.0, -2.0]),
                   (eggholder, [100.0, 100.0])],
)  # fmt: skip
def test_bfgs(fun, start):
    ours = optimize.minimize(fun, np.array(start), method="BFGS")
    theirs = scipy.optimize.minimize(lambda x: float(fun(jnp.asarray(x))), np.array(start), method="BFGS", tol=1e-5)
    assert bool(ours.success) and int(ours.status) == 0
    assert float(jnp.abs(ours.jac).max()) < 1e-5
    if fun is not eggholder:  # which has many minima
        np.testing.assert_allclose(ours.x, theirs.x, atol=2e-4)
    assert float(ours.fun) <= float(theirs.fun) + 1e-6 or fun is eggholder
    assert int(ours.nit) <= 2 * theirs.nit + 10


def test_bfgs_transformed():
    def best(a):
        return optimize.minimize(lambda x, a: jnp.sum((x - a) ** 4 + (x - a) ** 2), jnp.zeros(3), (a,), method="bfgs").x

    a = RNG.normal(size=(4, 3))
    np.testing.assert_allclose(pullback.jit(pullback.vmap(best))(a), a, atol=1e-5)
    result = optimize.minimize(rosenbrock, np.array([-1.2, 1.0]), method="BFGS", options={"maxiter": 3})
    assert not bool(result.success) and int(result.status) == 1 and int(result.nit) == 3
    bad = optimize.minimize(lambda x: jnp.sum(jnp.log(x)) * jnp.nan, np.ones(2), method="BFGS")
    assert not bool(bad.success) and int(bad.status) == 5
    assert optimize.minimize(matyas, np.ones(2, np.float32), method="BFGS").x.dtype == np.float32


def test_errors_of_minimize():
    with pytest.raises(ValueError, match="Method foo not recognized"):
        optimize.minimize(rosenbrock, np.ones(2), method="foo")
    with pytest.raises(TypeError, match=r"argument 'args' is .* expected a tuple"):
        optimize.minimize(rosenbrock, np.ones(2), [1], method="BFGS")
    with pytest.raises(ValueError, match="unknown options"):
        optimize.minimize(rosenbrock, np.ones(2), method="BFGS", options={"disp": True})
    with pytest.raises(ValueError, match="one dimension"):
        optimize.minimize(rosenbrock, np.ones((2, 2)), method="BFGS")


# Linear systems.


def system(n, kind, definite):
    a = RNG.normal(size=(n, n)) + (1j * RNG.normal(size=(n, n)) if kind == "c" else 0)
    return (a @ a.conj().T if definite else a / 4) + n * np.eye(n)


METHODS = [(linalg.cg, True), (linalg.bicgstab, False), (linalg.gmres, False)]


@pytest.mark.parametrize("method, definite", METHODS)
@pytest.mark.parametrize("kind", ["f", "c"])
@pytest.mark.parametrize("n", [1, 2, 17, 60])
def test_krylov_methods(method, definite, kind, n):
    A, b = system(n, kind, definite), RNG.normal(size=n) + (1j * RNG.normal(size=n) if kind == "c" else 0)
    for operator in (A, lambda x: jnp.asarray(A) @ x):
        x, info = method(operator, b, tol=1e-10)
        assert info is None or (method is linalg.gmres and int(info) == 0)
        np.testing.assert_allclose(x, np.linalg.solve(A, b), rtol=1e-7, atol=1e-9)
    x, _ = method(A, b, x0=np.ones(n), tol=1e-10, M=np.diag(1 / np.diag(A)))
    np.testing.assert_allclose(x, np.linalg.solve(A, b), rtol=1e-7, atol=1e-9)
    np.testing.assert_array_equal(method(A, np.zeros(n))[0], np.zeros(n))
    np.testing.assert_allclose(method(A, b.real, tol=1e-10)[0], np.linalg.solve(A, b.real), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("method, definite", METHODS)
def test_krylov_methods_transformed(method, definite):
    n = 9
    A, b = system(n, "f", definite), RNG.normal(size=n)

    def solve(A, b):
        return method(A, b, tol=1e-12)[0]

    np.testing.assert_allclose(pullback.jit(solve)(A, b), np.linalg.solve(A, b), rtol=1e-8)
    bs = RNG.normal(size=(3, n))
    np.testing.assert_allclose(pullback.vmap(solve, (None, 0))(A, bs), np.linalg.solve(A, bs.T).T, rtol=1e-7, atol=1e-9)
    got = pullback.grad(lambda A, b: jnp.sum(solve(A, b) ** 2), (0, 1))(A, b)
    x = np.linalg.solve(A, b)
    back = np.linalg.solve(A.T, 2 * x)
    np.testing.assert_allclose(got[1], back, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(got[0], -np.outer(back, x), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("method, definite", METHODS)
def test_krylov_methods_on_trees(method, definite):
    b = {"u": np.arange(3.0), "v": np.ones((2, 2))}
    x, _ = method(lambda t: {"u": 2 * t["u"], "v": 3 * t["v"]}, b, tol=1e-10)
    np.testing.assert_allclose(x["u"], b["u"] / 2, atol=1e-9)
    np.testing.assert_allclose(x["v"], b["v"] / 3, atol=1e-9)


def test_restarts_and_limits():
    A, b = system(40, "f", False), RNG.normal(size=40)
    x, _ = linalg.gmres(A, b, restart=5, tol=1e-10)
    np.testing.assert_allclose(x, np.linalg.solve(A, b), rtol=1e-6, atol=1e-9)
    rough, _ = linalg.cg(system(40, "f", True), b, maxiter=1)
    assert float(jnp.abs(rough).max()) > 0
    with pytest.raises(ValueError, match="the shapes in b are"):
        linalg.cg(A, b, x0=np.ones(3))
    with pytest.raises(ValueError, match="the tree structure of b"):
        linalg.cg(A, b, x0=[b])
    with pytest.raises(ValueError, match="square matrix"):
        linalg.bicgstab(A[:3], b)
    with pytest.raises(ValueError, match="solve_method"):
        linalg.gmres(A, b, solve_method="foo")
    with pytest.raises(ValueError, match="the operator gives"):
        linalg.cg(lambda x: x[:2], b)


def test_numerics_in_the_types_that_jax_gives():
    x = jnp.arange(12.0).reshape(3, 4)
    made = lambda v: interpolate.RegularGridInterpolator((jnp.arange(3.0), jnp.arange(4.0)), v)
    assert pullback.jit(lambda v: made(v)(jnp.ones(2)))(x).tolist() == [5.0]
    for f in (fft.dct, fft.idct, fft.dctn, fft.idctn):
        assert f(x.astype(jnp.bfloat16)).dtype == f(x.astype(jnp.float16)).dtype == jnp.float32
    moved = pullback.image.scale_and_translate(x.astype("float16"), (3, 4), (0,), jnp.ones(1), jnp.zeros(1), "linear")
    assert moved.dtype == jnp.float16
    with pytest.raises(TypeError, match="argument 't' has type int64; expected floating"):
        pullback.experimental.ode.odeint(lambda y, t: -y, 1.0, jnp.array([0, 1]))
    for start, info in ((jnp.ones(2), 0), (jnp.array([jnp.nan, 1.0]), -1)):
        assert int(linalg.gmres(lambda v: 2 * v, jnp.ones(2), x0=start)[1]) == info


@pytest.mark.parametrize("dtype", ["float32", "complex64", "bfloat16", "int32"])
@pytest.mark.parametrize("name", ["cg", "bicgstab", "gmres"])
def test_solvers_promote_freely_and_operators_as_users_say(name, dtype):
    solve = getattr(linalg, name)
    matrix, b = (4 * jnp.eye(4)).astype(dtype), jnp.arange(4).astype(dtype)
    with pullback.numpy_rank_promotion("raise"), pullback.numpy_dtype_promotion("strict"):
        for operator in (matrix, lambda x: x * jnp.asarray(4, x.dtype)):
            x, _ = pullback.jit(lambda b, operator=operator: solve(operator, b))(b)
            np.testing.assert_allclose(np.asarray(x).astype(complex), np.arange(4) / 4, rtol=1e-2)
        with pytest.raises(ValueError, match="no available implicit dtype promotion"):
            solve(lambda x: x * jnp.ones(4, "int16"), b)


def test_nearest_codes_of_complex_observations():
    rng = np.random.default_rng(4)
    obs, book = (rng.normal(size=s) + 1j * rng.normal(size=s) for s in ((7, 2), (3, 2)))
    code, distance = cluster.vq.vq(obs.astype(np.complex64), book.astype(np.complex64))
    apart = np.linalg.norm(obs[:, None] - book[None], axis=-1)
    np.testing.assert_array_equal(code, apart.argmin(1))
    np.testing.assert_allclose(distance, apart.min(1), rtol=1e-5)
    assert distance.dtype == np.float32


def test_integers_are_promoted_inside_whatever_is_set():
    grid = jnp.arange(4, dtype=jnp.int32)

    def results():
        inside = jnp.array([0.5, 2.25], jnp.float32)
        return [
            pullback.scipy.ndimage.map_coordinates(10 * grid, [inside], 1),
            pullback.scipy.ndimage.map_coordinates(10 * grid, [grid], 1),
            pullback.scipy.interpolate.RegularGridInterpolator((grid,), 10 * grid)(inside),
            pullback.scipy.stats.multinomial.logpmf(grid, jnp.int32(6), jnp.full(4, 0.25, jnp.float32)),
            pullback.scipy.stats.multinomial.logpmf(grid[:1], jnp.int32(0), jnp.ones(1, jnp.int32)),
        ]

    want = results()
    with pullback.numpy_rank_promotion("raise"), pullback.numpy_dtype_promotion("strict"):
        for found, expected in zip(results(), want, strict=True):
            assert found.dtype == expected.dtype
            np.testing.assert_allclose(found, expected, rtol=1e-6)
    np.testing.assert_allclose(want[2], [5, 22.5])


@pytest.mark.parametrize("method", [linalg.cg, linalg.bicgstab, linalg.gmres])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_solutions_of_half_systems_are_in_their_type(method, dtype):
    matrix, b = jnp.diag(jnp.arange(1, 4)).astype(dtype), jnp.arange(3).astype(dtype)
    x = method(matrix, b)[0]
    assert x.dtype == dtype
    np.testing.assert_allclose(np.asarray(x, float), [0, 1 / 2, 2 / 3], rtol=1e-2)  # half a unit of bfloat16
    assert method(matrix, b.astype("float32"))[0].dtype == "float32"

    def apply(v):
        assert v["a"].dtype == dtype
        return {"a": matrix @ v["a"]}

    with pullback.numpy_dtype_promotion("strict"):
        assert method(apply, {"a": b})[0]["a"].dtype == dtype
