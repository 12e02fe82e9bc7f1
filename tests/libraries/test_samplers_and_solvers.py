"""blackjax, jaxopt, tinygp and jraph from PyPI, unmodified: a small problem each."""

from __future__ import annotations

import warnings

import blackjax
import jax
import jax.numpy as jnp
import jraph
import numpy as np
import pytest
import tinygp

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # it says that it is no longer maintained
    import jaxopt

KEY = jax.random.key(0)
X = np.linspace(-1, 1, 40, dtype=np.float32)
Y = (1 + 2 * X + 0.1 * np.sin(30 * X)).astype(np.float32)
START = {"a": 0.0, "b": 0.0}


def log_density(p):
    return -12.5 * ((Y - p["a"] - p["b"] * X) ** 2).sum() - 0.5 * (p["a"] ** 2 + p["b"] ** 2)


def mean_of_chain(kernel, state, steps):
    def step(state, key):
        state, _ = kernel.step(key, state)
        return state, state.position["b"]

    _, drawn = jax.lax.scan(step, state, jax.random.split(KEY, steps))
    return float(drawn[steps // 4 :].mean())


def test_nuts_with_adaptation():
    adaptation = blackjax.window_adaptation(blackjax.nuts, log_density)
    (state, parameters), _ = adaptation.run(KEY, START, 200)
    assert abs(mean_of_chain(blackjax.nuts(log_density, **parameters), state, 200) - 1.98) < 0.05


@pytest.mark.parametrize(
    "kernel, steps",
    [
        (blackjax.hmc(log_density, 0.02, jnp.ones(2), 10), 300),
        (blackjax.mala(log_density, 1e-3), 2000),
        (blackjax.barker(log_density, 0.05), 2000),
    ],
    ids=["hmc", "mala", "barker"],
)
def test_kernels(kernel, steps):
    assert abs(mean_of_chain(kernel, kernel.init(START), steps) - 1.98) < 0.05


def test_jaxopt():
    a, b = jnp.array([[2.0, 1], [1, 3]]), jnp.array([1.0, 2])

    def ridge(x, weight):
        return ((a @ x - b) ** 2).sum() + weight * (x**2).sum()

    want = np.linalg.solve(a.T @ a + 0.1 * np.eye(2), a.T @ b)
    for solver in (jaxopt.LBFGS(ridge), jaxopt.NonlinearCG(ridge)):
        np.testing.assert_allclose(solver.run(jnp.zeros(2), 0.1).params, want, atol=1e-3)
    slope = jax.grad(lambda w: jaxopt.LBFGS(ridge, implicit_diff=True).run(jnp.zeros(2), w).params.sum())(0.1)
    np.testing.assert_allclose(slope, -np.linalg.solve(a.T @ a + 0.1 * np.eye(2), want).sum(), rtol=2e-2)


def test_jaxopt_derivatives_of_quadratic_programs():
    """Solutions on a box and their derivatives, batched: a solver's loop and a linear solve in each rule."""
    scale, slopes = jnp.array([2.0, 4.0]), jnp.array([[-1.0, -1.0], [1.0, -8.0], [-0.5, 2.0]])
    solver = jaxopt.OSQP(tol=1e-5)
    sides = jnp.concatenate([-jnp.eye(2), jnp.eye(2)]), jnp.array([0.0, 0.0, 1.0, 1.0])

    def solution(slope):
        return solver.run(params_obj=(jnp.diag(scale), slope), params_ineq=sides).params.primal

    free = -slopes / scale
    np.testing.assert_allclose(jax.vmap(solution)(slopes), np.clip(free, 0, 1), atol=1e-3)
    inside = (free > 0) & (free < 1)
    want = -np.eye(2) * np.where(inside, 1 / scale, 0)[:, None]
    np.testing.assert_allclose(jax.vmap(jax.jacrev(solution))(slopes), want, atol=1e-3)


def test_tinygp():
    x = jnp.linspace(0, 3, 20)

    def loss(p):
        kernel = jnp.exp(p[0]) * tinygp.kernels.ExpSquared(jnp.exp(p[1]))
        return -tinygp.GaussianProcess(kernel, x, diag=1e-3).log_probability(jnp.sin(x))

    value, slope = jax.jit(jax.value_and_grad(loss))(jnp.zeros(2))
    assert np.isfinite(float(value)) and bool(jnp.isfinite(slope).all())
    process = tinygp.GaussianProcess(tinygp.kernels.Matern32(1.0), x, diag=0.01)
    found = process.condition(jnp.sin(x), x + 0.1).gp.mean
    np.testing.assert_allclose(found, np.sin(x + 0.1), atol=0.1)
    quick = tinygp.GaussianProcess(tinygp.kernels.quasisep.Matern32(1.0), x, diag=0.01)
    np.testing.assert_allclose(quick.log_probability(jnp.sin(x)), process.log_probability(jnp.sin(x)), rtol=1e-3)


def test_jraph():
    graph = jraph.GraphsTuple(
        nodes=jnp.ones((3, 2)), edges=jnp.ones((2, 1)), senders=jnp.array([0, 1]), receivers=jnp.array([1, 2]),
        n_node=jnp.array([3]), n_edge=jnp.array([2]), globals=jnp.ones((1, 1)),
    )  # fmt: skip
    network = jraph.GraphNetwork(
        lambda e, s, r, g: e + s.sum(-1, keepdims=True), lambda n, s, r, g: n + r, lambda n, e, g: g + n.sum()
    )
    np.testing.assert_array_equal(jax.jit(network)(graph).nodes, [[1, 1], [4, 4], [4, 4]])
    assert jraph.unbatch(jraph.batch([graph, graph]))[1].nodes.shape == (3, 2)
