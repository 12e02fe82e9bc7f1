"""Equations: diffrax, lineax, optimistix, jaxopt and tinygp."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.libraries.work import work


def _lotka_volterra(t: Any, y: Any, args: Any) -> Any:
    import jax.numpy as jnp

    a, b, c, d = args
    return jnp.stack([a * y[0] - b * y[0] * y[1], -c * y[1] + d * y[0] * y[1]])


def _solve(parameters: Any, **options: Any) -> Any:
    import diffrax
    import jax.numpy as jnp

    return diffrax.diffeqsolve(
        diffrax.ODETerm(_lotka_volterra), diffrax.Tsit5(), 0.0, 10.0, 0.1, jnp.array([10.0, 10.0]),
        args=parameters, saveat=diffrax.SaveAt(ts=jnp.linspace(0, 10, 50)),
        stepsize_controller=diffrax.PIDController(rtol=1e-4, atol=1e-4), **options,
    ).ys  # fmt: skip


@work("diffrax", "Lotka-Volterra by Tsit5 with adaptive steps")
def ode() -> Callable[[], Any]:
    import jax
    import jax.numpy as jnp

    run, parameters = jax.jit(_solve), jnp.array([0.1, 0.02, 0.4, 0.02])
    return lambda: run(parameters)


@work("diffrax", "64 of them at once, under vmap")
def odes() -> Callable[[], Any]:
    import jax
    import jax.numpy as jnp

    parameters = jnp.array([0.1, 0.02, 0.4, 0.02]) * jnp.linspace(0.8, 1.2, 64)[:, None]
    run = jax.jit(jax.vmap(_solve))
    return lambda: run(parameters)


@work("diffrax", "its gradient through checkpoints", 5e-3)
def ode_gradient() -> Callable[[], Any]:
    import jax
    import jax.numpy as jnp

    parameters = jnp.array([0.1, 0.02, 0.4, 0.02])
    run = jax.jit(jax.grad(lambda p: (_solve(p) ** 2).mean()))
    return lambda: run(parameters)


@work(
    "diffrax", "its gradient by a solve backwards in time", 2e-2, "the adjoint's steps are as exact as their tolerance"
)
def ode_adjoint() -> Callable[[], Any]:
    import diffrax
    import jax
    import jax.numpy as jnp

    parameters = jnp.array([0.1, 0.02, 0.4, 0.02])
    run = jax.jit(jax.grad(lambda p: (_solve(p, adjoint=diffrax.BacksolveAdjoint()) ** 2).mean()))
    return lambda: run(parameters)


@work("diffrax", "a stiff reaction (Robertson) by Kvaerno5", 5e-3)
def stiff() -> Callable[[], Any]:
    import diffrax
    import jax
    import jax.numpy as jnp

    def field(t: Any, y: Any, args: Any) -> Any:
        f0 = -0.04 * y[0] + 1e4 * y[1] * y[2]
        f2 = 3e7 * y[1] ** 2
        return jnp.stack([f0, -f0 - f2, f2])

    def solve(y: Any) -> Any:
        return diffrax.diffeqsolve(
            diffrax.ODETerm(field), diffrax.Kvaerno5(), 0.0, 100.0, 2e-4, y,
            stepsize_controller=diffrax.PIDController(rtol=1e-4, atol=1e-6),
            saveat=diffrax.SaveAt(ts=jnp.array([0.0, 1.0, 10.0, 100.0])),
        ).ys  # fmt: skip

    run, start = jax.jit(solve), jnp.array([1.0, 0.0, 0.0])
    return lambda: run(start)


@work("diffrax", "64 paths of a stochastic equation, Heun, 100 steps, virtual Brownian tree")
def sde() -> Callable[[], Any]:
    import diffrax
    import jax
    import jax.numpy as jnp

    def path(key: Any) -> Any:
        motion = diffrax.VirtualBrownianTree(0.0, 1.0, 1e-3, (), key)
        terms = diffrax.MultiTerm(
            diffrax.ODETerm(lambda t, y, _: -y), diffrax.ControlTerm(lambda t, y, _: 0.1 + 0.1 * jnp.sin(y), motion)
        )
        return diffrax.diffeqsolve(terms, diffrax.Heun(), 0.0, 1.0, 0.01, jnp.array(1.0)).ys

    run, keys = jax.jit(jax.vmap(path)), jax.random.split(jax.random.key(0), 64)
    return lambda: run(keys)


@work("diffrax", "a step of training of a neural controlled equation, 16 series of 30 points", 5e-3)
def cde() -> Callable[[], Any]:
    import diffrax
    import equinox as eqx
    import jax
    import jax.numpy as jnp

    class Field(eqx.Module):
        mlp: eqx.nn.MLP

        def __call__(self, t: Any, y: Any, args: Any) -> Any:
            return self.mlp(y).reshape(8, 3)

    field = Field(eqx.nn.MLP(8, 24, 32, 1, final_activation=jnp.tanh, key=jax.random.key(0)))
    ts = jnp.linspace(0.0, 1.0, 30)
    rng = np.random.default_rng(0)
    series = jnp.asarray(np.cumsum(0.1 * rng.normal(size=(16, 30, 3)), axis=1).astype("f"))

    def loss(field: Any, series: Any) -> Any:
        def one(ys: Any) -> Any:
            control = diffrax.CubicInterpolation(ts, diffrax.backward_hermite_coefficients(ts, ys))
            term = diffrax.ControlTerm(field, control).to_ode()
            return diffrax.diffeqsolve(term, diffrax.Tsit5(), 0.0, 1.0, 0.05, jnp.ones(8)).ys[-1]

        return jnp.mean(jax.vmap(one)(series) ** 2)

    step = eqx.filter_jit(eqx.filter_value_and_grad(loss))

    def call() -> Any:
        value, slope = step(field, series)
        return value, slope.mlp.layers[0].weight

    return call


@work("lineax", "64 systems of 50 by LU, QR and conjugate gradients")
def systems() -> Callable[[], Any]:
    import jax
    import jax.numpy as jnp
    import lineax as lx

    rng = np.random.default_rng(0)
    a = rng.normal(size=(64, 50, 50)).astype("f")
    a = jnp.asarray(a @ a.transpose(0, 2, 1) / 50 + np.eye(50, dtype="f"))
    b = jnp.asarray(rng.normal(size=(64, 50)).astype("f"))

    def solve(a: Any, b: Any) -> Any:
        positive = lx.MatrixLinearOperator(a, lx.positive_semidefinite_tag)
        plain = lx.MatrixLinearOperator(a)
        return (
            lx.linear_solve(plain, b, lx.LU()).value,
            lx.linear_solve(plain, b, lx.QR()).value,
            lx.linear_solve(positive, b, lx.CG(rtol=1e-5, atol=1e-5)).value,
        )

    run = jax.jit(jax.vmap(solve))
    return lambda: run(a, b)


@work("optimistix", "a least-squares fit by Levenberg-Marquardt, with its gradient, and a root by Newton's method")
def fits() -> Callable[[], Any]:
    import jax
    import jax.numpy as jnp
    import optimistix as optx

    t = jnp.linspace(0.0, 2.0, 100)
    y = 2.0 * jnp.exp(-1.3 * t) + 0.05 * jnp.sin(40 * t)

    def fit(y: Any) -> Any:
        solver = optx.LevenbergMarquardt(rtol=1e-5, atol=1e-5)
        return optx.least_squares(lambda p, y: p[0] * jnp.exp(-p[1] * t) - y, solver, jnp.ones(2), args=y).value

    def root(y: Any) -> Any:
        solver = optx.Newton(rtol=1e-5, atol=1e-5)
        return optx.root_find(lambda x, y: x**3 + x - y[:20], solver, jnp.ones(20), args=y).value

    run = jax.jit(lambda y: (fit(y), jax.grad(lambda y: fit(y).sum())(y), root(y)))
    return lambda: run(y)


@work("optimistix", "BFGS on the Rosenbrock function of 10 numbers", 1e-2)
def bfgs() -> Callable[[], Any]:
    import jax
    import jax.numpy as jnp
    import optimistix as optx

    def f(x: Any, _: Any) -> Any:
        return jnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

    run = jax.jit(lambda x: optx.minimise(f, optx.BFGS(1e-5, 1e-5), x, max_steps=2000).value)
    start = jnp.zeros(10)
    return lambda: run(start)


@work("jaxopt", "a logistic regression of 500 x 20 by L-BFGS, and a lasso by proximal gradients", 5e-3)
def regressions() -> Callable[[], Any]:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        import jaxopt
    import jax
    import jax.numpy as jnp

    rng = np.random.default_rng(0)
    x = jnp.asarray(rng.normal(size=(500, 20)).astype("f"))
    y = jnp.asarray((rng.random(500) < 0.5).astype("i4"))

    def both(x: Any, y: Any) -> Any:
        logistic = jaxopt.LBFGS(jaxopt.objective.l2_multiclass_logreg, maxiter=100, tol=1e-3)
        w = logistic.run(jnp.zeros((20, 2)), l2reg=0.1, data=(x, y)).params
        lasso = jaxopt.ProximalGradient(jaxopt.objective.least_squares, jaxopt.prox.prox_lasso, maxiter=200, tol=1e-4)
        return w, lasso.run(jnp.zeros(20), hyperparams_prox=0.02, data=(x, x[:, 0] - 0.5 * x[:, 3])).params

    run = jax.jit(both)
    return lambda: run(x, y)


@work("tinygp", "the likelihood of 300 points and its gradient, and a quasiseparable one of 5,000")
def processes() -> Callable[[], Any]:
    import jax
    import jax.numpy as jnp
    import tinygp

    rng = np.random.default_rng(0)
    x, long = jnp.asarray(np.sort(rng.uniform(0, 10, 300)).astype("f")), jnp.linspace(0.0, 100.0, 5000)

    def dense(p: Any) -> Any:
        kernel = jnp.exp(p[0]) * tinygp.kernels.Matern32(jnp.exp(p[1]))
        return tinygp.GaussianProcess(kernel, x, diag=0.1).log_probability(jnp.sin(x))

    def quick(p: Any) -> Any:
        kernel = jnp.exp(p[0]) * tinygp.kernels.quasisep.Matern32(jnp.exp(p[1]))
        return tinygp.GaussianProcess(kernel, long, diag=0.1).log_probability(jnp.sin(long))

    run = jax.jit(lambda p: (jax.value_and_grad(dense)(p), jax.value_and_grad(quick)(p)))
    start = jnp.zeros(2)
    return lambda: run(start)
