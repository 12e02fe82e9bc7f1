"""Derivatives: gradients, Jacobians, Hessians and their products, whole and per example."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.program import Program


def _by_mode(label: str, inputs: Callable, modes: tuple[str, ...], jax: Callable, torch: Callable) -> list[Program]:
    """One program for each named transformation; `jax` and `torch` give the function that is transformed."""

    def of(mode: str) -> Program:
        return Program(
            f"{label}: {mode}",
            inputs,
            jax=lambda module: getattr(module, mode)(jax(module)),
            torch=lambda module: getattr(module.func, mode)(torch(module)),
        )

    return [of(mode) for mode in modes]


def _least_squares(jax: Any) -> Any:
    def f(x, a, b):
        return jax.numpy.sum((a @ x - b) ** 2)

    return f


def _least_squares_inputs(n: int) -> Any:
    return lambda rng: (rng.standard_normal(n), rng.standard_normal((n, n)), rng.standard_normal(n))


def _torch_least_squares(torch: Any) -> Any:
    return lambda x, a, b: ((a @ x - b) ** 2).sum()


def _autograd_least_squares(anp: Any) -> Any:
    return lambda x, a, b: anp.sum((anp.dot(a, x) - b) ** 2)


def _least_squares_programs(n: int) -> list[Program]:
    given: dict[str, Any] = {"inputs": _least_squares_inputs(n), "x64": True}
    return [
        Program(
            f"least squares {n}: gradient by formula",
            jax=lambda jax: lambda x, a, b: 2 * a.T @ (a @ x - b),
            numpy=lambda x, a, b: 2 * a.T @ (a @ x - b),
            torch=lambda torch: lambda x, a, b: 2 * a.T @ (a @ x - b),
            operations=4 * n * n,
            **given,
        ),
        Program(
            f"least squares {n}: grad",
            jax=lambda jax: jax.grad(_least_squares(jax)),
            torch=lambda torch: torch.func.grad(_torch_least_squares(torch)),
            autograd=lambda autograd, anp: autograd.grad(_autograd_least_squares(anp)),
            operations=4 * n * n,
            **given,
        ),
        Program(
            f"least squares {n}: Hessian by formula",
            jax=lambda jax: lambda x, a, b: 2 * a.T @ a,
            numpy=lambda x, a, b: 2 * a.T @ a,
            torch=lambda torch: lambda x, a, b: 2 * a.T @ a,
            operations=n * n * (n + 1),
            **given,
        ),
        Program(
            f"least squares {n}: hessian",
            jax=lambda jax: jax.hessian(_least_squares(jax)),
            torch=lambda torch: torch.func.hessian(_torch_least_squares(torch)),
            operations=n * n * (n + 1),
            **given,
        ),
        Program(
            f"least squares {n}: jacrev(jacrev)",
            jax=lambda jax: jax.jacrev(jax.jacrev(_least_squares(jax))),
            torch=lambda torch: torch.func.jacrev(torch.func.jacrev(_torch_least_squares(torch))),
            operations=n * n * (n + 1),
            **given,
        ),
    ]


# Jacobians of vectors.


def _softmax_programs(m: int, n: int) -> list[Program]:
    def inputs(rng: np.random.Generator) -> tuple:
        return rng.standard_normal(n), rng.standard_normal((m, n)) / np.sqrt(n), rng.standard_normal(m)

    def f(jax: Any) -> Any:
        return lambda x, a, b: jax.nn.softmax(a @ x + b)

    def torch_f(torch: Any) -> Any:
        return lambda x, a, b: torch.softmax(a @ x + b, 0)

    def autograd_f(anp: Any) -> Any:
        def g(x, a, b):
            y = anp.exp(anp.dot(a, x) + b)
            return y / anp.sum(y)

        return g

    given: dict[str, Any] = {"inputs": inputs, "x64": True, "operations": 4 * m * n}
    return [
        Program(
            f"softmax(Ax + b), {m} x {n}: jacfwd",
            jax=lambda jax: jax.jacfwd(f(jax)),
            torch=lambda torch: torch.func.jacfwd(torch_f(torch)),
            **given,
        ),
        Program(
            f"softmax(Ax + b), {m} x {n}: jacrev",
            jax=lambda jax: jax.jacrev(f(jax)),
            torch=lambda torch: torch.func.jacrev(torch_f(torch)),
            autograd=(lambda autograd, anp: autograd.jacobian(autograd_f(anp))) if m * n <= 160_000 else None,
            **given,
        ),
    ]


def _elementwise_programs(n: int) -> list[Program]:
    def inputs(rng: np.random.Generator) -> tuple:
        return (rng.standard_normal(n).astype(np.float32),)

    def f(jax: Any) -> Any:
        return lambda x: jax.numpy.sin(x) * jax.numpy.tanh(x)

    def g(torch: Any) -> Any:
        return lambda x: torch.sin(x) * torch.tanh(x)

    return [
        *_by_mode(f"sin(x) tanh(x), {n}", inputs, ("jacfwd", "jacrev"), f, g),
        Program(
            f"sum of sin(x) tanh(x), {n}: hessian",
            inputs,
            jax=lambda jax: jax.hessian(lambda x: f(jax)(x).sum()),
            torch=lambda torch: torch.func.hessian(lambda x: g(torch)(x).sum()),
        ),
    ]


def _difference_programs(n: int) -> list[Program]:
    """Jacobians with few diagonals: neighbours of a vector."""

    def inputs(rng: np.random.Generator) -> tuple:
        return (rng.standard_normal(n).astype(np.float32),)

    def heat(x):
        return x[1:-1] + 0.1 * (x[2:] - 2 * x[1:-1] + x[:-2]) * x[1:-1]

    def rosenbrock(x):
        return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()

    return [
        *_by_mode(f"heat equation, {n}", inputs, ("jacfwd", "jacrev"), lambda _: heat, lambda _: heat),
        *_by_mode(f"Rosenbrock, {n}", inputs, ("hessian",), lambda _: rosenbrock, lambda _: rosenbrock),
    ]


# Hessians and their products.


def _log_sum_exp_programs(m: int, n: int) -> list[Program]:
    def inputs(rng: np.random.Generator) -> tuple:
        return rng.standard_normal(n).astype("f4"), (rng.standard_normal((m, n)) / np.sqrt(n)).astype("f4")

    return [
        Program(
            f"logsumexp(Ax), {m} x {n}: hessian",
            inputs,
            jax=lambda jax: jax.hessian(lambda x, a: jax.nn.logsumexp(a @ x)),
            torch=lambda torch: torch.func.hessian(lambda x, a: torch.logsumexp(a @ x, 0)),
        ),
    ]


def _quadratic_programs(n: int) -> list[Program]:
    def inputs(rng: np.random.Generator) -> tuple:
        return rng.standard_normal(n).astype("f4"), rng.standard_normal((n, n)).astype("f4")

    def f(x, a):
        return 0.5 * x @ (a @ x)

    return _by_mode(f"quadratic form, {n}", inputs, ("grad", "hessian"), lambda _: f, lambda _: f)


def _logistic(jax: Any) -> Any:
    def f(w, x, y):
        z = x @ w
        return jax.numpy.mean(jax.numpy.logaddexp(0.0, z) - y * z)

    return f


def _torch_logistic(torch: Any) -> Any:
    def f(w, x, y):
        z = x @ w
        return (torch.nn.functional.softplus(z) - y * z).mean()

    return f


def _logistic_programs(m: int, n: int) -> list[Program]:
    def inputs(rng: np.random.Generator) -> tuple:
        x = rng.standard_normal((m, n)).astype("f4")
        return (rng.standard_normal(n) / np.sqrt(n)).astype("f4"), x, (rng.random(m) < 0.5).astype("f4")

    def with_direction(rng: np.random.Generator) -> tuple:
        return *inputs(rng), rng.standard_normal(n).astype("f4")

    def hvp(jax: Any) -> Any:
        f = _logistic(jax)
        return lambda w, x, y, v: jax.jvp(lambda w: jax.grad(f)(w, x, y), (w,), (v,))[1]

    def gauss_newton(jax: Any) -> Any:
        def product(w, x, y, v):
            z, z_dot = jax.jvp(lambda w: x @ w, (w,), (v,))
            loss = jax.grad(lambda z: jax.numpy.mean(jax.numpy.logaddexp(0.0, z) - y * z))
            h_dot = jax.jvp(loss, (z,), (z_dot,))[1]
            return jax.vjp(lambda w: x @ w, w)[1](h_dot)[0]

        return product

    def torch_hvp(torch: Any) -> Any:
        f = _torch_logistic(torch)
        return lambda w, x, y, v: torch.func.jvp(lambda w: torch.func.grad(f)(w, x, y), (w,), (v,))[1]

    return [
        Program(
            f"logistic regression {m} x {n}: value_and_grad",
            inputs,
            jax=lambda jax: jax.value_and_grad(_logistic(jax)),
            torch=lambda torch: torch.func.grad_and_value(_torch_logistic(torch)),
            tolerance=None,
        ),
        Program(
            f"logistic regression {m} x {n}: hessian",
            inputs,
            jax=lambda jax: jax.hessian(_logistic(jax)),
            torch=lambda torch: torch.func.hessian(_torch_logistic(torch)),
        ),
        Program(f"logistic regression {m} x {n}: HVP", with_direction, jax=hvp, torch=torch_hvp),
        Program(f"logistic regression {m} x {n}: Gauss-Newton product", with_direction, jax=gauss_newton),
    ]


def _hvp_programs(n: int) -> list[Program]:
    def inputs(rng: np.random.Generator) -> tuple:
        return tuple(rng.standard_normal(s) for s in (n, (n, n), n, n))

    def f(jax: Any) -> Any:
        return lambda x, a, b: jax.numpy.sum(jax.nn.softmax(a @ x + b) ** 2)

    def forward_over_reverse(jax: Any) -> Any:
        return lambda x, a, b, v: jax.jvp(lambda x: jax.grad(f(jax))(x, a, b), (x,), (v,))[1]

    def reverse_over_forward(jax: Any) -> Any:
        return lambda x, a, b, v: jax.grad(lambda x: jax.jvp(lambda x: f(jax)(x, a, b), (x,), (v,))[1])(x)

    def torch_f(torch: Any) -> Any:
        return lambda x, a, b: (torch.softmax(a @ x + b, 0) ** 2).sum()

    def torch_hvp(torch: Any) -> Any:
        g = torch.func.grad(torch_f(torch))
        return lambda x, a, b, v: torch.func.jvp(lambda x: g(x, a, b), (x,), (v,))[1]

    given: dict[str, Any] = {"inputs": inputs, "x64": True}
    return [
        Program(
            f"|Ax - b|^2, {n}: HVP",
            jax=lambda jax: lambda x, a, b, v: jax.jvp(lambda x: jax.grad(_least_squares(jax))(x, a, b), (x,), (v,))[1],
            torch=lambda torch: (
                lambda x, a, b, v: torch.func.jvp(
                    lambda x: torch.func.grad(_torch_least_squares(torch))(x, a, b), (x,), (v,)
                )[1]
            ),
            **given,
        ),
        Program(
            f"|softmax(Ax + b)|^2, {n}: HVP, forward over reverse", jax=forward_over_reverse, torch=torch_hvp, **given
        ),
        Program(f"|softmax(Ax + b)|^2, {n}: HVP, reverse over forward", jax=reverse_over_forward, **given),
    ]


# Linear layers: x is n x p, w is p x o.


def _layer_programs(n: int, p: int, o: int) -> list[Program]:
    def inputs(rng: np.random.Generator) -> tuple:
        return rng.standard_normal((p, o)).astype("f4"), rng.standard_normal((n, p)).astype("f4")

    def layer(w, x):
        return x @ w

    def scalar(w, x):  # of one output: w is a column
        return x @ w

    def torch_two(torch: Any) -> Any:
        inner = torch.func.vmap(torch.func.grad(scalar), in_dims=(1, None))
        return torch.func.vmap(inner, in_dims=(None, 0))

    def mapped(mode: str) -> Program:
        return Program(
            f"{label}: vmap({mode})",
            inputs,
            jax=lambda jax: jax.vmap(getattr(jax, mode)(layer), in_axes=(None, 0)),
            torch=lambda torch: torch.func.vmap(getattr(torch.func, mode)(layer), in_dims=(None, 0)),
        )

    label = f"linear layer {n}x{p}x{o}"
    return [
        *_by_mode(label, inputs, ("jacfwd", "jacrev"), lambda _: layer, lambda _: layer),
        mapped("jacfwd"),
        mapped("jacrev"),
        Program(
            f"{label}: vmap(vmap(grad))",
            inputs,
            jax=lambda jax: jax.vmap(jax.vmap(jax.grad(scalar), in_axes=(1, None)), in_axes=(None, 0)),
            torch=torch_two,
        ),
    ]


# Matrices as arguments.


def _matrix_programs(n: int) -> list[Program]:
    def inputs(rng: np.random.Generator) -> tuple:
        return rng.standard_normal((n, n)).astype("f4"), rng.standard_normal(n).astype("f4")

    def tanh_product(xp: Any) -> Any:
        return lambda a, x: xp.tanh(a @ x)

    return [
        *_by_mode(
            f"tanh(Ax) in A, {n} x {n}",
            inputs,
            ("jacfwd", "jacrev"),
            lambda jax: tanh_product(jax.numpy),
            tanh_product,
        ),
        Program(
            f"x^T A x in A, {n} x {n}: hessian in x",
            inputs,
            jax=lambda jax: jax.hessian(lambda a, x: x @ a @ x, argnums=1),
            torch=lambda torch: torch.func.hessian(lambda a, x: x @ a @ x, argnums=1),
        ),
        Program(
            f"log det(A A^T + I), {n} x {n}: grad",
            inputs,
            jax=lambda jax: jax.grad(
                lambda a, x: jax.numpy.linalg.slogdet(a @ a.T + jax.numpy.eye(n, dtype="float32"))[1]
            ),
            torch=lambda torch: torch.func.grad(lambda a, x: torch.linalg.slogdet(a @ a.T + torch.eye(n))[1]),
        ),
    ]


# Networks.


def _mlp(tanh: Any) -> Any:
    def apply(params, x):
        for w, b in params[:-1]:
            x = tanh(x @ w + b)
        w, b = params[-1]
        return x @ w + b

    return apply


def _mlp_inputs(sizes: tuple[int, ...], batch: int) -> Any:
    def inputs(rng: np.random.Generator) -> tuple:
        params = [
            ((rng.standard_normal((m, n)) / np.sqrt(m)).astype("f4"), rng.standard_normal(n).astype("f4"))
            for m, n in itertools.pairwise(sizes)
        ]
        return (
            params,
            rng.standard_normal((batch, sizes[0])).astype("f4"),
            rng.standard_normal((batch, sizes[-1])).astype("f4"),
        )

    return inputs


def _mlp_programs(sizes: tuple[int, ...], batch: int) -> list[Program]:
    label = f"MLP {'-'.join(map(str, sizes))}, {batch}"
    inputs = _mlp_inputs(sizes, batch)

    def loss(jax: Any) -> Any:
        apply = _mlp(jax.numpy.tanh)
        return lambda params, x, y: ((apply(params, x) - y) ** 2).sum()

    def torch_loss(torch: Any) -> Any:
        apply = _mlp(torch.tanh)
        return lambda params, x, y: ((apply(params, x) - y) ** 2).sum()

    def per_example_norms(jax: Any) -> Any:
        gradients = jax.vmap(jax.grad(loss(jax)), in_axes=(None, 0, 0))

        def norms(params, x, y):
            return sum((g**2).reshape(batch, -1).sum(1) for pair in gradients(params, x, y) for g in pair)

        return norms

    return [
        Program(
            f"{label}: grad",
            inputs,
            jax=lambda jax: jax.grad(loss(jax)),
            torch=lambda torch: torch.func.grad(torch_loss(torch)),
        ),
        Program(
            f"{label}: per-example gradients",
            inputs,
            jax=lambda jax: jax.vmap(jax.grad(loss(jax)), in_axes=(None, 0, 0)),
            torch=lambda torch: torch.func.vmap(torch.func.grad(torch_loss(torch)), in_dims=(None, 0, 0)),
        ),
        Program(f"{label}: norms of per-example gradients", inputs, jax=per_example_norms),
        Program(
            f"{label}: Jacobian in the inputs, per example",
            inputs,
            jax=lambda jax: lambda params, x, y: jax.vmap(jax.jacrev(lambda x: _mlp(jax.numpy.tanh)(params, x)))(x),
            torch=lambda torch: (
                lambda params, x, y: torch.func.vmap(torch.func.jacrev(lambda x: _mlp(torch.tanh)(params, x)))(x)
            ),
        ),
        Program(
            f"{label}: Laplacian, per example",
            inputs,
            jax=lambda jax: (
                lambda params, x, y: jax.vmap(
                    lambda x: jax.numpy.trace(jax.hessian(lambda x: _mlp(jax.numpy.tanh)(params, x).sum())(x))
                )(x)
            ),
            torch=lambda torch: (
                lambda params, x, y: torch.func.vmap(
                    lambda x: torch.func.hessian(lambda x: _mlp(torch.tanh)(params, x).sum())(x).trace()
                )(x)
            ),
        ),
    ]


PROGRAMS = [
    *_least_squares_programs(1000),
    *_least_squares_programs(100),
    *_softmax_programs(1000, 1000),
    *_softmax_programs(1000, 10),
    *_softmax_programs(400, 400),
    *_softmax_programs(10, 1000),
    *_elementwise_programs(1000),
    *_difference_programs(1000),
    *_log_sum_exp_programs(1000, 300),
    *_log_sum_exp_programs(100, 50),
    *_quadratic_programs(1000),
    *_logistic_programs(10_000, 50),
    *_logistic_programs(1000, 300),
    *_hvp_programs(3000),
    *_hvp_programs(300),
    *_layer_programs(10, 10, 10),
    *_layer_programs(100, 10, 10),
    *_layer_programs(10, 100, 10),
    *_layer_programs(10, 10, 100),
    *_layer_programs(50, 50, 50),
    *_matrix_programs(100),
    *_mlp_programs((8, 64, 64, 1), 64),
    *_mlp_programs((32, 128, 128, 10), 256),
]
