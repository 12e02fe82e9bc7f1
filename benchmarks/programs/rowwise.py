"""Row-wise programs: softmax, layer normalization and their gradients, along each axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.program import Program


def floats(*shape, dtype="f4", extra=0):
    """Inputs: an array of normal numbers, and `extra` more of the same shape."""
    return lambda rng: tuple(rng.standard_normal(shape).astype(dtype) for _ in range(1 + extra))


def _softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def _log_softmax(x, axis):
    shifted = x - x.max(axis, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis, keepdims=True))


def _softmax_grad(x, y, axis):
    s = _softmax(x, axis)
    return s * (y - (y * s).sum(axis, keepdims=True))


def _log_softmax_grad(x, y, axis):
    return y - _softmax(x, axis) * y.sum(axis, keepdims=True)


def _normalize(x, axis):
    mean = x.mean(axis, keepdims=True)
    var = ((x - mean) ** 2).mean(axis, keepdims=True)
    return (x - mean) / np.sqrt(var + np.float32(1e-5))


def _normalize_grad(x, y, axis):
    mean = x.mean(axis, keepdims=True)
    rstd = 1 / np.sqrt(((x - mean) ** 2).mean(axis, keepdims=True) + np.float32(1e-5))
    z = (x - mean) * rstd
    return rstd * (y - y.mean(axis, keepdims=True) - z * (y * z).mean(axis, keepdims=True))


def _jax_normalize(jax, x, axis):
    mean = jax.numpy.mean(x, axis=axis, keepdims=True)
    var = jax.numpy.var(x, axis=axis, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(var + 1e-5)


def _torch_normalize(torch, x, axis):
    if axis in (-1, x.dim() - 1):
        return torch.nn.functional.layer_norm(x, (x.shape[-1],))
    mean = x.mean(axis, keepdim=True)
    return (x - mean) * torch.rsqrt(x.var(axis, correction=0, keepdim=True) + 1e-5)


def _row(
    name: str,
    shape: tuple[int, ...],
    axis: int,
    jax: Callable[[Any, Any, int], Any],
    numpy: Callable,
    torch: Callable[[Any, Any, int], Any],
    dtype: str = "f4",
) -> Program:
    return Program(
        _name(name, shape, axis, dtype),
        inputs=floats(*shape, dtype=dtype),
        jax=lambda lib: lambda x: jax(lib, x, axis),
        numpy=lambda x: numpy(x, axis),
        torch=lambda lib: lambda x: torch(lib, x, axis),
        x64=dtype == "f8",
    )


def _gradient(
    name: str,
    shape: tuple[int, ...],
    axis: int,
    jax: Callable[[Any, Any, int], Any],
    numpy: Callable,
    torch: Callable[[Any, Any, int], Any],
) -> Program:
    """The cotangent of x for the cotangent y of the result."""

    def by_torch(lib):
        def run(x, y):
            x = x.detach().requires_grad_()
            (grad,) = lib.autograd.grad(torch(lib, x, axis), x, y)
            return grad

        return run

    return Program(
        _name(name + " gradient", shape, axis, "f4"),
        inputs=floats(*shape, extra=1),
        jax=lambda lib: lambda x, y: lib.grad(lambda x: lib.numpy.sum(jax(lib, x, axis) * y))(x),
        numpy=lambda x, y: numpy(x, y, axis),
        torch=by_torch,
    )


def _name(name: str, shape: tuple[int, ...], axis: int, dtype: str) -> str:
    return f"{name}, {' x '.join(map(str, shape))}{'' if dtype == 'f4' else ' ' + dtype} over axis {axis}"


SOFTMAX = (lambda jax, x, axis: jax.nn.softmax(x, axis=axis), _softmax, lambda torch, x, axis: torch.softmax(x, axis))
LOG_SOFTMAX = (
    lambda jax, x, axis: jax.nn.log_softmax(x, axis=axis),
    _log_softmax,
    lambda torch, x, axis: torch.log_softmax(x, axis),
)
NORMALIZE = (_jax_normalize, _normalize, _torch_normalize)


def _affine(shape: tuple[int, int]) -> Program:
    """Layer normalization with scale and shift."""
    return Program(
        f"layer norm with scale and shift, {shape[0]} x {shape[1]}",
        inputs=lambda rng: tuple(rng.standard_normal(s).astype("f4") for s in (shape, shape[1:], shape[1:])),
        jax=lambda jax: lambda x, g, b: _jax_normalize(jax, x, -1) * g + b,
        numpy=lambda x, g, b: _normalize(x, -1) * g + b,
        torch=lambda torch: lambda x, g, b: torch.nn.functional.layer_norm(x, (shape[1],), g, b),
    )


def _affine_gradients(shape: tuple[int, int]) -> Program:
    """Its gradients: of x by rows, of scale and shift by columns."""

    def by_jax(jax):
        def loss(x, g, b, y):
            return jax.numpy.sum((_jax_normalize(jax, x, -1) * g + b) * y)

        return lambda x, g, b, y: jax.grad(loss, argnums=(0, 1, 2))(x, g, b, y)

    def by_numpy(x, g, b, y):
        return _normalize_grad(x, y * g, -1), (_normalize(x, -1) * y).sum(0), y.sum(0)

    def by_torch(torch):
        def run(x, g, b, y):
            inputs = [t.detach().requires_grad_() for t in (x, g, b)]
            out = torch.nn.functional.layer_norm(inputs[0], (shape[1],), inputs[1], inputs[2])
            return torch.autograd.grad(out, inputs, y)

        return run

    return Program(
        f"gradients of layer norm with scale and shift, {shape[0]} x {shape[1]}",
        inputs=lambda rng: tuple(rng.standard_normal(s).astype("f4") for s in (shape, shape[1:], shape[1:], shape)),
        jax=by_jax,
        numpy=by_numpy,
        torch=by_torch,
    )


def _cross_entropy(shape: tuple[int, int]) -> Program:
    """Mean of -log softmax at the label, and its gradient."""

    def by_jax(jax):
        def loss(x, labels):
            logits = jax.nn.log_softmax(x)
            return -jax.numpy.mean(jax.numpy.take_along_axis(logits, labels[:, None], axis=1))

        return lambda x, labels: jax.value_and_grad(loss)(x, labels)

    def by_numpy(x, labels):
        rows = np.arange(shape[0])
        logits = _log_softmax(x, 1)
        grad = np.exp(logits)
        grad[rows, labels] -= 1
        return -logits[rows, labels].mean(), grad / np.float32(shape[0])

    def by_torch(torch):
        def run(x, labels):
            x = x.detach().requires_grad_()
            loss = torch.nn.functional.cross_entropy(x, labels.long())
            return loss.detach(), torch.autograd.grad(loss, x)[0]

        return run

    return Program(
        f"cross entropy and gradient, {shape[0]} x {shape[1]}",
        inputs=lambda rng: (rng.standard_normal(shape).astype("f4"), rng.integers(0, shape[1], shape[0]).astype("i4")),
        jax=by_jax,
        numpy=by_numpy,
        torch=by_torch,
    )


SHAPES = [((100, 1_000), 1), ((100, 1_000), 0), ((1_000, 1_000), 1), ((1_000, 1_000), 0), ((10_000, 1_000), 1)]

PROGRAMS = [
    *(_row("softmax", shape, axis, *SOFTMAX) for shape, axis in SHAPES),
    _row("softmax", (10_000, 1_000), 0, *SOFTMAX),
    *(_row("softmax", (100_000, 10), axis, *SOFTMAX) for axis in (0, 1)),
    *(_row("softmax", (32, 8, 64, 64), axis, *SOFTMAX) for axis in (1, 3)),
    _row("softmax", (1_000, 1_000), 1, *SOFTMAX, "f8"),
    *(_row("log_softmax", shape, axis, *LOG_SOFTMAX) for shape, axis in SHAPES),
    *(_row("normalization", shape, axis, *NORMALIZE) for shape, axis in SHAPES),
    *(_gradient("softmax", shape, axis, SOFTMAX[0], _softmax_grad, SOFTMAX[2]) for shape, axis in SHAPES),
    *(_gradient("log_softmax", s, axis, LOG_SOFTMAX[0], _log_softmax_grad, LOG_SOFTMAX[2]) for s, axis in SHAPES),
    *(_gradient("normalization", s, axis, NORMALIZE[0], _normalize_grad, NORMALIZE[2]) for s, axis in SHAPES),
    _affine((1_000, 768)),
    _affine_gradients((1_000, 768)),
    *(_cross_entropy(shape) for shape in ((128, 10), (1_000, 1_000))),
]
