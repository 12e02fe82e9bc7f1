"""Parts of training: normalization layers with gradients in both orders of axes, attention, updates of parameters."""

from __future__ import annotations

import math
from typing import Any

import numpy as onp

from ._family import family, normal


def _batch_norm(jax, x, scale, shift, axes, shape):
    mean = x.mean(axes, keepdims=True)
    var = x.var(axes, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(var + 1e-5) * scale.reshape(shape) + shift.reshape(shape)


def _loss(jax, y):
    return jax.numpy.sum(jax.numpy.tanh(y) ** 2)


def _batch_norms() -> list[Any]:
    """Gradients of a batch normalization of x (images, height, width, features)."""

    def features_last(jax, x, scale, shift):
        return jax.grad(lambda *a: _loss(jax, _batch_norm(jax, *a, (0, 1, 2), (-1,))), (0, 1, 2))(x, scale, shift)

    def features_first(jax, x, scale, shift):
        def loss(x, scale, shift):
            y = x.transpose(0, 3, 1, 2)
            return _loss(jax, _batch_norm(jax, y, scale, shift, (0, 2, 3), (-1, 1, 1)))

        return jax.grad(loss, (0, 1, 2))(x, scale, shift)

    def flat(jax, x, scale, shift):
        def loss(x, scale, shift):
            return _loss(jax, _batch_norm(jax, x.reshape(-1, x.shape[-1]), scale, shift, (0,), (-1,)))

        return jax.grad(loss, (0, 1, 2))(x, scale, shift)

    def by_squares(jax, x, scale, shift):
        def loss(x, scale, shift):
            m = x.mean((0, 1, 2))
            v = (x * x).mean((0, 1, 2)) - m * m
            return _loss(jax, (x - m) / jax.numpy.sqrt(v + 1e-5) * scale + shift)

        return jax.grad(loss, (0, 1, 2))(x, scale, shift)

    return [features_last, features_first, flat, by_squares]


def _group_norms() -> list[Any]:
    """Gradients of a group normalization of x (images, height, width, features) in 8 groups."""

    def features_last(jax, x, scale, shift):
        def loss(x, scale, shift):
            y = x.reshape(*x.shape[:3], 8, -1)
            m, v = y.mean((1, 2, 4), keepdims=True), y.var((1, 2, 4), keepdims=True)
            return _loss(jax, ((y - m) / jax.numpy.sqrt(v + 1e-5)).reshape(x.shape) * scale + shift)

        return jax.grad(loss, (0, 1, 2))(x, scale, shift)

    def features_first(jax, x, scale, shift):
        def loss(x, scale, shift):
            z = x.transpose(0, 3, 1, 2)
            y = z.reshape(z.shape[0], 8, -1)
            m, v = y.mean(-1, keepdims=True), y.var(-1, keepdims=True)
            z = ((y - m) * jax.lax.rsqrt(v + 1e-5)).reshape(z.shape)
            return _loss(jax, z * scale[:, None, None] + shift[:, None, None])

        return jax.grad(loss, (0, 1, 2))(x, scale, shift)

    def mapped(jax, x, scale, shift):
        def group(y):
            return (y - y.mean()) / jax.numpy.sqrt(y.var() + 1e-5)

        def loss(x, scale, shift):
            y = x.reshape(*x.shape[:3], 8, -1)
            z = jax.vmap(jax.vmap(group, 2, 2))(y)
            return _loss(jax, z.reshape(x.shape) * scale + shift)

        return jax.grad(loss, (0, 1, 2))(x, scale, shift)

    return [features_last, features_first, mapped]


def _attentions() -> list[Any]:
    """Attention of q, k, v (batch, length, heads, features)."""

    def by_function(jax, q, k, v):
        return jax.nn.dot_product_attention(q, k, v)

    def einsum(jax, q, k, v):
        w = jax.nn.softmax(jax.numpy.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(q.shape[-1]))
        return jax.numpy.einsum("bhqk,bkhd->bqhd", w, v)

    def keys_first(jax, q, k, v):
        w = jax.nn.softmax(jax.numpy.einsum("bqhd,bkhd->bkqh", q, k) / math.sqrt(q.shape[-1]), 1)
        return jax.numpy.einsum("bkqh,bkhd->bqhd", w, v)

    def transposed(jax, q, k, v):
        q, k, v = (a.transpose(0, 2, 1, 3) for a in (q, k, v))
        w = jax.nn.softmax(q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1]))
        return (w @ v).transpose(0, 2, 1, 3)

    def mapped(jax, q, k, v):
        def one(q, k, v):
            return jax.nn.softmax(q @ k.T / math.sqrt(q.shape[-1])) @ v

        return jax.vmap(jax.vmap(one, 1, 1))(q, k, v)

    return [by_function, einsum, keys_first, transposed, mapped]


def _updates() -> list[Any]:
    """Adam with gradients divided by the norm of their column."""

    def in_one(jax, p, m, v, g):
        np = jax.numpy
        g = g / (1e-6 + np.sqrt(np.sum(g * g, 0)))
        m = 0.9 * m + 0.1 * g
        v = 0.999 * v + 0.001 * g * g
        return p - 1e-3 * m / (np.sqrt(v) + 1e-8), m, v

    def by_norm(jax, p, m, v, g):
        np = jax.numpy
        g = g / (1e-6 + np.linalg.norm(g, axis=0, keepdims=True))
        m = m + 0.1 * (g - m)
        v = v + 0.001 * (g**2 - v)
        return p - 1e-3 * (m / (v**0.5 + 1e-8)), m, v

    def transposed(jax, p, m, v, g):
        return tuple(a.T for a in _rows(jax, p.T, m.T, v.T, g.T))

    return [in_one, by_norm, transposed]


def _rows(jax, p, m, v, g):
    np = jax.numpy
    g = g / (1e-6 + np.sqrt(np.sum(g * g, 1, keepdims=True)))
    m = 0.9 * m + 0.1 * g
    v = 0.999 * v + 0.001 * g * g
    return p - 1e-3 * m / (np.sqrt(v) + 1e-8), m, v


def _clipped() -> list[Any]:
    """A step of momentum whose gradients are scaled by their norm over all parameters."""

    def over_trees(jax, p, m, g):
        np = jax.numpy
        norm = np.sqrt(sum(np.sum(x * x) for x in jax.tree.leaves(g)))
        g = jax.tree.map(lambda x: x * np.minimum(1, 1 / norm), g)
        m = jax.tree.map(lambda a, b: 0.9 * a + b, m, g)
        return jax.tree.map(lambda a, b: a - 0.01 * b, p, m), m

    def by_vdot(jax, p, m, g):
        np = jax.numpy
        norm = np.sqrt(sum(np.vdot(x, x) for x in jax.tree.leaves(g)))
        scale = np.where(norm > 1, 1 / norm, 1)
        m = jax.tree.map(lambda a, b: 0.9 * a + scale * b, m, g)
        return jax.tree.map(lambda a, b: a - 0.01 * b, p, m), m

    def flat(jax, p, m, g):
        np = jax.numpy
        flat, back = jax.flatten_util.ravel_pytree(g)
        g = back(flat / np.maximum(1, np.linalg.norm(flat)))
        m = jax.tree.map(lambda a, b: 0.9 * a + b, m, g)
        return jax.tree.map(lambda a, b: a - 0.01 * b, p, m), m

    return [over_trees, by_vdot, flat]


def _trees(rng):
    shapes = {"a": (784, 256), "b": (256,), "c": (256, 100), "d": (100,)}
    return tuple({k: rng.standard_normal(s).astype("f4") for k, s in shapes.items()} for _ in range(3))


def _dense() -> list[Any]:
    """A dense layer with bias, activation and residual."""

    def by_functions(jax, x, w, b):
        return x + jax.nn.gelu(x @ w + b)

    def einsum(jax, x, w, b):
        return jax.nn.gelu(jax.numpy.einsum("ni,ij->nj", x, w) + b[None]) + x

    def mapped(jax, x, w, b):
        return jax.vmap(lambda v: v + jax.nn.gelu(v @ w + b))(x)

    def transposed(jax, x, w, b):
        return x + jax.nn.gelu((w.T @ x.T).T + b)

    return [by_functions, einsum, mapped, transposed]


def _cross_entropies() -> list[Any]:
    """The binary cross entropy of logits z for labels y, with its gradient."""

    def log_sigmoids(jax, z, y):
        return -(y * jax.nn.log_sigmoid(z) + (1 - y) * jax.nn.log_sigmoid(-z)).mean()

    def softplus(jax, z, y):
        return (jax.nn.softplus(z) - y * z).mean()

    def logaddexp(jax, z, y):
        return (jax.numpy.logaddexp(z, 0) - y * z).mean()

    def by_cases(jax, z, y):
        return -jax.numpy.where(y > 0, jax.nn.log_sigmoid(z), jax.nn.log_sigmoid(-z)).mean()

    def largest_first(jax, z, y):
        jnp = jax.numpy
        return (jnp.maximum(z, 0) - z * y + jnp.log1p(jnp.exp(-jnp.abs(z)))).mean()

    def with_gradient(loss):
        def both(jax, z, y):
            return jax.value_and_grad(lambda z: loss(jax, z, y))(z)

        both.__name__ = loss.__name__
        return both

    return [with_gradient(f) for f in (log_sigmoids, softplus, logaddexp, by_cases, largest_first)]


def _logits(rng):
    return rng.standard_normal(200_000).astype("f4"), (rng.random(200_000) < 0.5).astype("f4")


def _adam(rng):
    p, m, g = (rng.standard_normal((3000, 200)).astype("f4") for _ in range(3))
    return p, m, onp.abs(m), g


IMAGES = normal((16, 28, 28, 64), (64,), (64,))

PROGRAMS = [
    *family("gradient of batch norm, 16 x 28 x 28 x 64", IMAGES, *_batch_norms()),
    *family("gradient of group norm, 16 x 28 x 28 x 64", IMAGES, *_group_norms()),
    *family("attention, 4 x 256 x 8 x 32", normal(*[(4, 256, 8, 32)] * 3), *_attentions()),
    *family("Adam with column norms, 3000 x 200", _adam, *_updates()),
    *family("momentum with clipping", _trees, *_clipped()),
    *family("binary cross entropy of 200000 with gradient", _logits, *_cross_entropies()),
    *family("dense layer, 512 x 256", normal((512, 256), (256, 256), (256,)), *_dense()),
]
