"""Decompositions, solvers and determinants: many small matrices, some of middle size, and one large."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.program import Program

SHAPES = ((1000, 4, 4), (100, 32, 32), (1, 500, 500))


def _general(shape: tuple[int, ...], dtype: str = "f4") -> Callable:
    return lambda rng: (rng.standard_normal(shape).astype(dtype),)


def _positive(shape: tuple[int, ...], dtype: str = "f4") -> Callable:
    def inputs(rng: np.random.Generator) -> tuple:
        x = rng.standard_normal(shape)
        return ((x @ np.swapaxes(x, -1, -2) / shape[-1] + np.eye(shape[-1])).astype(dtype),)

    return inputs


def _system(shape: tuple[int, ...], columns: int, dtype: str = "f4") -> Callable:
    def inputs(rng: np.random.Generator) -> tuple:
        a = rng.standard_normal(shape) + 2 * np.sqrt(shape[-1]) * np.eye(shape[-1])
        return a.astype(dtype), rng.standard_normal((*shape[:-1], columns)).astype(dtype)

    return inputs


def _triangular(shape: tuple[int, ...], columns: int) -> Callable:
    def inputs(rng: np.random.Generator) -> tuple:
        a = np.tril(rng.standard_normal(shape)) / np.sqrt(shape[-1]) + 2 * np.eye(shape[-1])
        return a.astype("f4"), rng.standard_normal((*shape[:-1], columns)).astype("f4")

    return inputs


def _named(name: str, inputs: Callable, label: str, tolerance: float | None = 2e-3, **options: Any) -> Program:
    """One function of `linalg`, of the same name everywhere."""
    return Program(
        f"{name} {label}",
        inputs,
        jax=lambda jax: getattr(jax.numpy.linalg, name),
        numpy=getattr(np.linalg, name),
        torch=lambda torch: getattr(torch.linalg, name),
        tolerance=tolerance,
        **options,
    )


def _of_shape(shape: tuple[int, ...]) -> list[Program]:
    label = "x".join(map(str, shape))
    system = _system(shape, 1)
    return [
        _named("cholesky", _positive(shape), label),
        # Signs of columns may differ between libraries, and eigenvalues have no order.
        _named("qr", _general(shape), label, None),
        _inverse(shape, label),
        _named("solve", system, label),
        Program(
            f"eigh {label}",
            _positive(shape),
            jax=lambda jax: jax.numpy.linalg.eigh,
            numpy=np.linalg.eigh,
            torch=lambda torch: torch.linalg.eigh,
            tolerance=None,
        ),
        _named("eigvalsh", _positive(shape), label),
        _named("svd", _general(shape), label, None),
        Program(
            f"svd {label}, values alone",
            _general(shape),
            jax=lambda jax: lambda x: jax.numpy.linalg.svd(x, compute_uv=False),
            numpy=lambda x: np.linalg.svd(x, compute_uv=False),
            torch=lambda torch: torch.linalg.svdvals,
        ),
        _named("eig", _general(shape), label, None),
        _named("det", _general(shape), label, None if shape[-1] > 100 else 2e-3),
        _named("slogdet", _general(shape), label, None),
        Program(
            f"triangular_solve {label}",
            _triangular(shape, shape[-1]),
            jax=lambda jax: lambda a, b: jax.lax.linalg.triangular_solve(a, b, left_side=True, lower=True),
            torch=lambda torch: lambda a, b: torch.linalg.solve_triangular(a, b, upper=False),
        ),
        Program(
            f"lstsq {label}",
            _system(shape, 1),
            jax=lambda jax: lambda a, b: jax.vmap(lambda a, b: jax.numpy.linalg.lstsq(a, b)[0])(a, b),
            torch=lambda torch: lambda a, b: torch.linalg.lstsq(a, b, driver="gelsd")[0],
        ),
    ]


def _inverse(shape: tuple[int, ...], label: str) -> Program:
    def inputs(rng: np.random.Generator) -> tuple:
        return _system(shape, 1)(rng)[:1]

    return _named("inv", inputs, label)


# Spectral radii.


def _radius(jnp: Any) -> Callable:
    return lambda m: jnp.max(jnp.abs(jnp.linalg.eigvals(m)))


def _radii() -> list[Program]:
    inputs = _general((128, 3, 3))

    def looped(jax: Any) -> Callable:
        radius = _radius(jax.numpy)
        return lambda ms: [radius(m) for m in ms]

    def jitted_loop(jax: Any) -> Callable:
        radius = jax.jit(_radius(jax.numpy))
        return lambda ms: [radius(m) for m in ms]

    def by_hand(jax: Any) -> Callable:
        return lambda ms: jax.numpy.abs(jax.numpy.linalg.eigvals(ms)).max(-1)

    def numpy_looped(ms):
        return [np.abs(np.linalg.eigvals(m)).max() for m in ms]

    def numpy_batched(ms):
        return np.abs(np.linalg.eigvals(ms)).max(-1)

    def torch_looped(torch: Any) -> Callable:
        return lambda ms: [torch.linalg.eigvals(m).abs().max() for m in ms]

    def torch_batched(torch: Any) -> Callable:
        return lambda ms: torch.linalg.eigvals(ms).abs().amax(-1)

    name = "spectral radius of 128 3x3"
    return [
        Program(f"{name}: looped", inputs, jax=looped, numpy=numpy_looped, torch=torch_looped, jit=False),
        Program(f"{name}: loop of jitted", inputs, jax=jitted_loop, numpy=numpy_looped, torch=torch_looped, jit=False),
        Program(
            f"{name}: vmap",
            inputs,
            jax=lambda jax: jax.vmap(_radius(jax.numpy)),
            numpy=numpy_batched,
            torch=torch_batched,
            jit=False,
        ),
        Program(
            f"{name}: jitted vmap",
            inputs,
            jax=lambda jax: jax.vmap(_radius(jax.numpy)),
            numpy=numpy_batched,
            torch=torch_batched,
        ),
        Program(f"{name}: batched by hand", inputs, jax=by_hand, numpy=numpy_batched, torch=torch_batched),
        Program(
            f"{name}: gradients",
            inputs,
            jax=lambda jax: jax.vmap(jax.grad(_radius(jax.numpy))),
            torch=lambda torch: torch.func.vmap(torch.func.grad(lambda m: torch.linalg.eigvals(m).abs().max())),
        ),
    ]


# Gaussian processes.


def _gaussian_process(n: int) -> list[Program]:
    def inputs(rng: np.random.Generator) -> tuple:
        x = rng.uniform(-3, 3, (n, 2))
        return np.array([0.1, -0.2, -1.0]), x, np.sin(x.sum(1)) + 0.1 * rng.standard_normal(n)

    def likelihood(jax: Any) -> Callable:
        jnp = jax.numpy

        def f(theta, x, y):
            scale, length, noise = jnp.exp(theta[0]), jnp.exp(theta[1]), jnp.exp(theta[2])
            distances = jnp.sum((x[:, None] - x[None]) ** 2, -1)
            k = scale * jnp.exp(-0.5 * distances / length**2) + (noise + 1e-6) * jnp.eye(n)
            factor = jnp.linalg.cholesky(k)
            z = jax.lax.linalg.triangular_solve(factor, y, left_side=True, lower=True)
            return -0.5 * z @ z - jnp.sum(jnp.log(jnp.diagonal(factor)))

        return f

    def torch_likelihood(torch: Any) -> Callable:
        def f(theta, x, y):
            scale, length, noise = torch.exp(theta[0]), torch.exp(theta[1]), torch.exp(theta[2])
            distances = ((x[:, None] - x[None]) ** 2).sum(-1)
            k = scale * torch.exp(-0.5 * distances / length**2) + (noise + 1e-6) * torch.eye(n, dtype=x.dtype)
            factor = torch.linalg.cholesky(k)
            z = torch.linalg.solve_triangular(factor, y[:, None], upper=False)[:, 0]
            return -0.5 * z @ z - torch.log(torch.diagonal(factor)).sum()

        return f

    return [
        Program(
            f"Gaussian process, {n}: log-likelihood",
            inputs,
            jax=likelihood,
            torch=torch_likelihood,
            x64=True,
        ),
        Program(
            f"Gaussian process, {n}: gradient of the log-likelihood",
            inputs,
            jax=lambda jax: jax.grad(likelihood(jax)),
            torch=lambda torch: torch.func.grad(torch_likelihood(torch)),
            x64=True,
        ),
    ]


def _gradients() -> list[Program]:
    def of_solve(jax: Any) -> Callable:
        return jax.grad(lambda a, b: jax.numpy.sum(jax.numpy.linalg.solve(a, b) ** 2))

    def torch_of_solve(torch: Any) -> Callable:
        return torch.func.grad(lambda a, b: (torch.linalg.solve(a, b) ** 2).sum())

    def of_values(jax: Any) -> Callable:
        return jax.grad(lambda a: jax.numpy.sum(jax.numpy.linalg.eigh(a)[0] ** 2))

    def torch_of_values(torch: Any) -> Callable:
        return torch.func.grad(lambda a: (torch.linalg.eigvalsh(a) ** 2).sum())

    found = []
    for shape in SHAPES:
        label = "x".join(map(str, shape))
        found += [
            Program(f"solve {label}: grad", _system(shape, 1), jax=of_solve, torch=torch_of_solve),
            Program(
                f"eigenvalues {label}: grad", _positive(shape), jax=of_values, torch=torch_of_values, tolerance=1e-2
            ),
        ]
    return found


PROGRAMS = [
    *(program for shape in SHAPES for program in _of_shape(shape)),
    _named("solve", _system((86_000, 3, 3), 1, "f8"), "86000x3x3, float64", x64=True, limit=6e-3, thread=36927),
    _named("solve", _system((86_000, 3, 3), 1), "86000x3x3", limit=6e-3, thread=36927),
    _named("inv", _inverse((10_000, 3, 3), "").inputs, "10000x3x3"),
    _named("cholesky", _positive((10_000, 8, 8)), "10000x8x8"),
    _named("solve", _system((2000, 16, 16), 4, "f8"), "2000x16x16, 4 columns, float64", x64=True),
    _named("solve", _system((5, 5), 1), "5x5"),
    _named("cholesky", _positive((1, 1000, 1000), "f8"), "1x1000x1000, float64", x64=True),
    *_radii(),
    *_gaussian_process(300),
    *_gradients(),
]
