"""minimize with limited memory: minima, its limits, and that it runs compiled and mapped."""

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback.scipy.optimize import minimize

METHOD = "l-bfgs-experimental-do-not-rely-on-this"


def rosenbrock(x):
    return jnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


@pytest.mark.parametrize("maxcor", [1, 3, 10])
def test_minima(maxcor):
    with jax.enable_x64(True):
        found = minimize(rosenbrock, jnp.zeros(6), method=METHOD, options={"maxcor": maxcor, "ftol": 0.0, "gtol": 1e-7})
        np.testing.assert_allclose(found.x, np.ones(6), atol=1e-6)
        assert found.success and found.status == 0 and found.hess_inv is None
        np.testing.assert_allclose(found.jac, jax.grad(rosenbrock)(found.x), atol=1e-12)
        shifted = minimize(lambda x, a: jnp.sum(jnp.cosh(x - a)), jnp.zeros(30), (2.0,), method=METHOD, tol=1e-6)
        np.testing.assert_allclose(shifted.x, np.full(30, 2.0), atol=1e-5)


def test_limits_and_transformations():
    def run(x, **options):
        return minimize(rosenbrock, x, method=METHOD, options=options)

    assert run(jnp.zeros(3), maxiter=2).nit == 2 and run(jnp.zeros(3), maxiter=2).status == 1
    assert run(jnp.zeros(3), maxfun=5).nfev < 5 + 20
    starts = jnp.stack([jnp.zeros(3), jnp.full(3, 0.5)])
    ends = jax.jit(jax.vmap(lambda x: run(x, ftol=0.0).x))(starts)
    np.testing.assert_allclose(ends, np.ones((2, 3)), atol=1e-3)
    with pytest.raises(TypeError, match="unknown options"):
        run(jnp.zeros(3), line_search_maxiter=3)
    with pytest.raises(ValueError, match="Method"):
        minimize(rosenbrock, jnp.zeros(3), method="l-bfgs")
