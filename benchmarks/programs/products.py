"""Products of matrices: square, thin, batched, of all types; attention, dense layers, chains, contractions."""

from __future__ import annotations

import math

import numpy as np

from benchmarks.program import Program


def _normal(*shapes, dtype="f4"):
    """Normal arrays of these shapes, of variance one over the contracted size, so that chains stay of one size."""

    def make(rng):
        arrays = [rng.standard_normal(shape) for shape in shapes]
        if dtype[0] == "c":
            arrays = [a + 1j * rng.standard_normal(a.shape) for a in arrays]
        return tuple(a.astype(dtype) for a in arrays)

    return make


def _integers(*shapes, dtype):
    return lambda rng: tuple(rng.integers(-8, 9, shape).astype(dtype) for shape in shapes)


def _matmul(name, x, y, dtype="f4", **more):
    """x @ y, of two shapes."""
    batch = math.prod(np.broadcast_shapes(x[:-2], y[:-2])) if len(x) > 1 and len(y) > 1 else 1
    rows, columns = (x[-2] if len(x) > 1 else 1), (y[-1] if len(y) > 1 else 1)
    inputs = _integers(x, y, dtype=dtype) if dtype[0] in "iu" else _normal(x, y, dtype=dtype)
    return Program(
        name,
        inputs=inputs,
        jax=lambda jax: lambda a, b: a @ b,
        numpy=lambda a, b: a @ b,
        torch=lambda torch: lambda a, b: a @ b,
        operations=2 * batch * rows * columns * x[-1] * (4 if dtype[0] == "c" else 1),
        x64=dtype in ("f8", "c16", "i8"),
        **more,
    )


def _long_rows(m, n, k):
    """Rows of x times rows of y."""

    def f(x, y):
        return x @ y.T

    return Program(
        f"rows {m}x{k} by rows {n}x{k}",
        inputs=_normal((m, k), (n, k)),
        jax=lambda jax: f,
        numpy=f,
        torch=lambda torch: f,
        operations=2 * m * n * k,
    )


def _bf16(n):
    def inputs(rng):
        return tuple(rng.standard_normal((n, n)).astype("f4") for _ in range(2))

    def jax_side(jax):
        jnp = jax.numpy
        return lambda a, b: (a.astype(jnp.bfloat16) @ b.astype(jnp.bfloat16)).astype(jnp.float32)

    return Program(
        f"bfloat16 matmul {n}",
        inputs=inputs,
        jax=jax_side,
        torch=lambda torch: lambda a, b: (a.bfloat16() @ b.bfloat16()).float(),
        tolerance=2e-2,
        operations=2 * n**3,
    )


def _attention(jax):
    jnp = jax.numpy

    def attend(q, k, v):
        scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) / math.sqrt(q.shape[-1])
        return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores, axis=-1), v)

    return attend


def _torch_attention(torch):
    return torch.nn.functional.scaled_dot_product_attention


def _numpy_attention(q, k, v):
    scores = q @ np.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1])
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return (e / e.sum(-1, keepdims=True)) @ v


def _attention_gradient(jax):
    attend = _attention(jax)
    return jax.grad(lambda q, k, v: (attend(q, k, v) ** 2).sum(), argnums=(0, 1, 2))


def _torch_attention_gradient(torch):
    attend = _torch_attention(torch)

    def gradient(q, k, v):
        q, k, v = (a.detach().requires_grad_() for a in (q, k, v))
        return torch.autograd.grad((attend(q, k, v) ** 2).sum(), (q, k, v))

    return gradient


def _attention_programs(batch, heads, length, width):
    shape = (batch, heads, length, width)
    work = 4 * batch * heads * length**2 * width
    yield Program(
        f"attention {batch}x{heads}x{length}x{width}",
        inputs=_normal(shape, shape, shape),
        jax=_attention,
        numpy=_numpy_attention,
        torch=_torch_attention,
        operations=work,
    )
    yield Program(
        f"gradient of attention {batch}x{heads}x{length}x{width}",
        inputs=_normal(shape, shape, shape),
        jax=_attention_gradient,
        torch=_torch_attention_gradient,
        operations=3 * work,
    )


def _layer(activation):
    """activation(x @ w + b) in JAX's terms and in torch's."""

    def jax_side(jax):
        f = getattr(jax.nn, activation)
        return lambda x, w, b: f(x @ w + b)

    def torch_side(torch):
        functional = torch.nn.functional
        f = (
            (lambda y: functional.gelu(y, approximate="tanh"))
            if activation == "gelu"
            else getattr(functional, activation)
        )
        return lambda x, w, b: f(torch.addmm(b, x, w))

    return jax_side, torch_side


def _dense(activation, rows, inner, columns):
    jax_side, torch_side = _layer(activation)
    return Program(
        f"{activation}(x @ w + b) {rows}x{inner}x{columns}",
        inputs=lambda rng: (
            rng.standard_normal((rows, inner)).astype("f4"),
            (rng.standard_normal((inner, columns)) / math.sqrt(inner)).astype("f4"),
            rng.standard_normal(columns).astype("f4"),
        ),
        jax=jax_side,
        torch=torch_side,
        operations=2 * rows * inner * columns,
    )


def _residual(rows, width):
    def jax_side(jax):
        return lambda x, w, b, u, c: x + jax.nn.relu(x @ w + b) @ u + c

    def torch_side(torch):
        return lambda x, w, b, u, c: x + torch.addmm(c, torch.relu(torch.addmm(b, x, w)), u)

    return Program(
        f"x + relu(x @ w + b) @ u + c, {rows}x{width}x{4 * width}",
        inputs=lambda rng: tuple(
            rng.standard_normal(shape).astype("f4") * 0.1
            for shape in ((rows, width), (width, 4 * width), (4 * width,), (4 * width, width), (width,))
        ),
        jax=jax_side,
        numpy=lambda x, w, b, u, c: x + np.maximum(x @ w + b, 0) @ u + c,
        torch=torch_side,
        operations=16 * rows * width**2,
    )


def _chain(n, length):
    def inputs(rng):
        return tuple((rng.standard_normal((n, n)) / math.sqrt(n)).astype("f4") for _ in range(length))

    def product(*matrices):
        result = matrices[0]
        for matrix in matrices[1:]:
            result = result @ matrix
        return result

    return Program(
        f"chain of {length} products, {n}",
        inputs=inputs,
        jax=lambda jax: product,
        numpy=product,
        torch=lambda torch: product,
        operations=2 * (length - 1) * n**3,
    )


def _einsum(spec, *shapes, operations):
    return Program(
        f"einsum {spec}",
        inputs=_normal(*shapes),
        jax=lambda jax: lambda *a: jax.numpy.einsum(spec, *a),
        numpy=lambda *a: np.einsum(spec, *a, optimize=True),
        torch=lambda torch: lambda *a: torch.einsum(spec, *a),
        operations=operations,
    )


def _pairwise(n, d):
    return Program(
        f"squared distances of {n} points in {d}",
        inputs=_normal((n, d)),
        jax=lambda jax: lambda x: (x * x).sum(1)[:, None] - 2 * x @ x.T + (x * x).sum(1),
        numpy=lambda x: (x * x).sum(1)[:, None] - 2 * x @ x.T + (x * x).sum(1),
        torch=lambda torch: lambda x: (x * x).sum(1)[:, None] - 2 * x @ x.T + (x * x).sum(1),
        operations=2 * n * n * d,
    )


def _least_squares_gradient(n, d):
    def torch_side(torch):
        def gradient(a, y, w):
            w = w.detach().requires_grad_()
            return torch.autograd.grad(((a @ w - y) ** 2).mean(), w)[0]

        return gradient

    return Program(
        f"gradient of least squares {n}x{d}",
        inputs=_normal((n, d), (n,), (d,)),
        jax=lambda jax: jax.grad(lambda a, y, w: ((a @ w - y) ** 2).mean(), argnums=2),
        numpy=lambda a, y, w: 2 / n * (a.T @ (a @ w - y)),
        torch=torch_side,
        operations=4 * n * d,
    )


PROGRAMS = [
    *[_matmul(f"matmul {n}", (n, n), (n, n)) for n in (8, 16, 32, 64, 128, 256, 512, 1024, 2048)],
    *[_matmul(f"matmul {n}, float64", (n, n), (n, n), "f8") for n in (8, 32, 64, 128, 256, 1024)],
    *[_matmul(f"matmul {n}", (n, n), (n, n)) for n in (31, 100, 300)],
    _matmul("x.T-like product 100x1000x30", (100, 1000), (1000, 30)),
    _matmul("batched 16x16, 1000", (1000, 16, 16), (1000, 16, 16)),
    _matmul("batched 4x4, 10000", (10000, 4, 4), (10000, 4, 4)),
    _matmul("batched 64x64, 100", (100, 64, 64), (100, 64, 64)),
    _matmul("batched 16x16, 1000, float64", (1000, 16, 16), (1000, 16, 16), "f8"),
    _matmul("batch of matrices times one, 1000x16x16", (1000, 16, 16), (16, 16)),
    _matmul("batched 30x20x10, 500", (500, 30, 20), (500, 20, 10)),
    _matmul("matrix times vector 1000", (1000, 1000), (1000,)),
    _matmul("matrix times vector 4000", (4000, 4000), (4000,)),
    _matmul("matrix times vector 100", (100, 100), (100,)),
    _matmul("vector times matrix 1000", (1000,), (1000, 1000)),
    _matmul("vector times matrix 4000", (4000,), (4000, 4000)),
    _matmul("matrix times vector 1000, float64", (1000, 1000), (1000,), "f8"),
    _matmul("inner product 1e6", (1_000_000,), (1_000_000,)),
    Program(
        "outer product 2000",
        inputs=_normal((2000,), (2000,)),
        jax=lambda jax: lambda a, b: jax.numpy.outer(a, b),
        numpy=lambda a, b: np.outer(a, b),
        torch=lambda torch: lambda a, b: torch.outer(a, b),
        operations=2000**2,
    ),
    _matmul("thin 10000x8 by 8x8", (10000, 8), (8, 8)),
    _matmul("thin 10000x64 by 64x10", (10000, 64), (64, 10)),
    _matmul("thin 30000x9 by 9x2", (30000, 9), (9, 2)),
    _long_rows(60, 60, 1000),
    _long_rows(10, 64, 2000),
    _matmul("thin 64x10000 by 10000x64", (64, 10000), (10000, 64)),
    _matmul("thin 4x1000 by 1000x1000", (4, 1000), (1000, 1000)),
    _matmul("thin 1000x4 by 4x1000", (1000, 4), (4, 1000)),
    _matmul("int32 matmul 256", (256, 256), (256, 256), "i4"),
    _matmul("int32 matmul 64", (64, 64), (64, 64), "i4"),
    _matmul("complex64 matmul 256", (256, 256), (256, 256), "c8"),
    _matmul("complex128 matmul 64", (64, 64), (64, 64), "c16"),
    _bf16(256),
    _bf16(1024),
    *_attention_programs(8, 8, 128, 64),
    *_attention_programs(1, 8, 1024, 64),
    *_attention_programs(4, 4, 32, 16),
    _dense("gelu", 128, 768, 3072),
    _dense("gelu", 1024, 512, 512),
    _dense("relu", 64, 64, 64),
    _dense("relu", 256, 784, 512),
    _dense("silu", 32, 128, 256),
    _residual(256, 256),
    _chain(64, 8),
    _chain(512, 4),
    _chain(10, 20),
    _einsum("ij,jk,kl->il", (100, 200), (200, 50), (50, 300), operations=2 * 100 * 200 * 50 + 2 * 100 * 50 * 300),
    _einsum("bij,bjk->bik", (64, 50, 60), (64, 60, 70), operations=2 * 64 * 50 * 60 * 70),
    _einsum("bij,kj->bki", (32, 40, 64), (128, 64), operations=2 * 32 * 40 * 64 * 128),
    _einsum("ijk,jil->kl", (30, 40, 50), (40, 30, 60), operations=2 * 30 * 40 * 50 * 60),
    _einsum("abcd,cdef->abef", (8, 9, 10, 11), (10, 11, 12, 13), operations=2 * 72 * 110 * 156),
    _einsum("bn,bm->bnm", (1000, 50), (1000, 50), operations=1000 * 2500),
    _einsum("bi,ij,bj->b", (1000, 100), (100, 100), (1000, 100), operations=2 * 1000 * 100 * 101),
    _pairwise(1000, 3),
    _pairwise(500, 100),
    _least_squares_gradient(10_000, 100),
]
