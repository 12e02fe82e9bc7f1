"""Training steps: loss, gradient and optimizer in one program, the state handed from step to step as users do.

The optimizers are written out here, so that both sides run the same source and nothing but it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.program import Program

OAKS = Path(__file__).parents[2] / "examples" / "data" / "oaks"


def _f32(*arrays: np.ndarray) -> tuple:
    return tuple(np.asarray(a, np.float32) for a in arrays)


def _zeros(tree: Any) -> Any:
    """Zeros like the arrays of a tree of lists, tuples and dicts."""
    if isinstance(tree, dict):
        return {k: _zeros(v) for k, v in tree.items()}
    if isinstance(tree, (list, tuple)):
        return type(tree)(map(_zeros, tree))
    return np.zeros_like(tree)


# ------------------------------------------------------------------------------------------------------- optimizers


def adam(jax: Any, loss: Callable, rate: float = 1e-3) -> Callable:
    """(params, (mean, square, count), *data) -> the same after one step, and the loss."""
    jnp = jax.numpy

    def step(params, state, *data):
        value, gradient = jax.value_and_grad(loss)(params, *data)
        mean, square, count = state
        count = count + 1
        mean = jax.tree_util.tree_map(lambda m, g: 0.9 * m + 0.1 * g, mean, gradient)
        square = jax.tree_util.tree_map(lambda s, g: 0.999 * s + 0.001 * g * g, square, gradient)
        c1, c2 = 1.0 - 0.9**count, 1.0 - 0.999**count
        params = jax.tree_util.tree_map(
            lambda p, m, s: p - rate * (m / c1) / (jnp.sqrt(s / c2) + 1e-8), params, mean, square
        )
        return params, (mean, square, count), value

    return step


def momentum(jax: Any, loss: Callable, rate: float = 1e-2) -> Callable:
    """(params, velocity, *data) -> the same after one step of gradient descent with momentum, and the loss."""

    def step(params, velocity, *data):
        value, gradient = jax.value_and_grad(loss)(params, *data)
        velocity = jax.tree_util.tree_map(lambda v, g: 0.9 * v + g, velocity, gradient)
        params = jax.tree_util.tree_map(lambda p, v: p - rate * v, params, velocity)
        return params, velocity, value

    return step


def _adam_state(params: Any) -> tuple:
    return _zeros(params), _zeros(params), np.float32(0)


def torch_step(torch: Any, loss: Callable, flat: Callable, make: Callable) -> Callable:
    """A step of torch.optim on copies of the parameters, made at the first call and trained from then on.

    `flat(params)` lists the tensors, `make(list)` is the optimizer.
    """
    held: list[Any] = []

    def step(params, _state, *data):
        if not held:
            mine = _torch_copy(params)
            held.extend((mine, make(flat(mine))))
        mine, optimizer = held
        optimizer.zero_grad(set_to_none=True)
        value = loss(mine, *data)
        value.backward()
        optimizer.step()
        return value.detach()

    return step


def _torch_copy(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {k: _torch_copy(v) for k, v in tree.items()}
    if isinstance(tree, (list, tuple)):
        return [_torch_copy(v) for v in tree]
    return tree.detach().clone().requires_grad_()


def _leaves(tree: Any) -> list:
    if isinstance(tree, dict):
        return [leaf for k in sorted(tree) for leaf in _leaves(tree[k])]
    if isinstance(tree, (list, tuple)):
        return [leaf for v in tree for leaf in _leaves(v)]
    return [tree]


def _torch_adam(loss: Callable) -> Callable:
    return lambda torch: torch_step(torch, loss(torch), _leaves, lambda p: torch.optim.Adam(p, lr=1e-3))


# --------------------------------------------------------------------------------------------------- dense networks


def _layers(rng: Any, sizes: list[int]) -> list:
    return [_f32(rng.standard_normal((a, b)) * math.sqrt(2.0 / a), np.zeros(b)) for a, b in itertools.pairwise(sizes)]


def _regression(sizes: list[int], batch: int):
    def inputs(rng):
        params = _layers(rng, sizes)
        x = rng.standard_normal((batch, sizes[0]))
        return params, _adam_state(params), *_f32(x, np.sin(x.sum(1, keepdims=True)))

    return inputs


def _squares(activation: Callable):
    """Mean squared error of a network; `activation(x)` of the library's own."""

    def loss(params, x, y):
        for w, b in params[:-1]:
            x = activation(x @ w + b)
        w, b = params[-1]
        return ((x @ w + b - y) ** 2).mean()

    return loss


def _classification(sizes: list[int], batch: int):
    def inputs(rng):
        params = _layers(rng, sizes)
        return (
            params,
            _adam_state(params),
            *_f32(rng.standard_normal((batch, sizes[0]))),
            rng.integers(0, sizes[-1], batch).astype(np.int64),
        )

    return inputs


def _classifier_jax(jax: Any):
    def loss(params, x, y):
        for w, b in params[:-1]:
            x = jax.nn.relu(x @ w + b)
        w, b = params[-1]
        log_p = jax.nn.log_softmax(x @ w + b)
        return -jax.numpy.take_along_axis(log_p, y[:, None], 1).mean()

    return loss


def _classifier_torch(torch: Any):
    def loss(params, x, y):
        for w, b in params[:-1]:
            x = torch.relu(torch.addmm(b, x, w))
        w, b = params[-1]
        return torch.nn.functional.cross_entropy(torch.addmm(b, x, w), y)

    return loss


def _mlp_scan(steps: int):
    """The steps in one program."""

    def make(jax: Any):
        step = adam(jax, _squares(jax.nn.relu))

        def run(params, state, x, y):
            def body(carry, _):
                params, state, value = step(*carry, x, y)
                return (params, state), value

            return jax.lax.scan(body, (params, state), None, length=steps)[1]

        return run

    return make


# The network that learns spectral radii: input the parts of complex 2 x 2 matrices, 4 -> 64 -> 64 -> 64 -> 1.


def _radii(batch: int):
    def inputs(rng):
        params = _layers(rng, [4, 64, 64, 64, 1])
        x = rng.standard_normal((batch, 2, 2))
        radius = np.abs(np.linalg.eigvals(x)).max(-1)[:, None]
        return params, _adam_state(params), *_f32(x.reshape(batch, 4), radius)

    return inputs


# ---------------------------------------------------------------------------------------------- logistic regression


def _logistic_inputs(n: int, d: int):
    def inputs(rng):
        x = rng.standard_normal((n, d))
        y = rng.uniform(size=n) < 1.0 / (1.0 + np.exp(-x @ rng.standard_normal(d) / math.sqrt(d)))
        return *_f32(np.zeros(d)), *_f32(np.zeros(d)), *_f32(x, y)

    return inputs


def _logistic(jax: Any):
    jnp = jax.numpy

    def loss(w, x, y):
        logits = x @ w
        return (jnp.logaddexp(0.0, logits) - y * logits).mean() + 1e-3 * (w**2).sum()

    return loss


def _logistic_torch(torch: Any):
    def loss(w, x, y):
        logits = x @ w
        return torch.nn.functional.binary_cross_entropy_with_logits(logits, y) + 1e-3 * (w**2).sum()

    return torch_step(torch, loss, _leaves, lambda p: torch.optim.SGD(p, lr=1e-2, momentum=0.9))


def _logistic_newton(jax: Any):
    """Newton's method by `hessian` and `solve`, 5 steps."""
    loss = _logistic(jax)

    def run(w, _, x, y):
        def step(w, _):
            g, h = jax.grad(loss)(w, x, y), jax.hessian(loss)(w, x, y)
            return w - jax.numpy.linalg.solve(h, g), None

        return jax.lax.scan(step, w, None, length=5)[0]

    return run


# ----------------------------------------------------------------------------------------------------- convolutions


def _cnn_inputs(rng):
    params = {
        "conv1": _f32(rng.standard_normal((8, 1, 3, 3)) / 3, np.zeros(8)),
        "conv2": _f32(rng.standard_normal((16, 8, 3, 3)) / 9, np.zeros(16)),
        "dense": _f32(rng.standard_normal((16 * 7 * 7, 10)) / 28, np.zeros(10)),
    }
    return (
        params,
        _adam_state(params),
        *_f32(rng.standard_normal((32, 1, 28, 28))),
        rng.integers(0, 10, 32).astype(np.int64),
    )


def _cnn(jax: Any):
    lax, jnp = jax.lax, jax.numpy

    def pool(x):
        return lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")

    def loss(params, x, y):
        for name in ("conv1", "conv2"):
            w, b = params[name]
            x = lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NCHW", "OIHW", "NCHW"))
            x = pool(jax.nn.relu(x + b[None, :, None, None]))
        w, b = params["dense"]
        log_p = jax.nn.log_softmax(x.reshape(x.shape[0], -1) @ w + b)
        return -jnp.take_along_axis(log_p, y[:, None], 1).mean()

    return adam(jax, loss)


def _cnn_torch(torch: Any):
    nn = torch.nn.functional

    def loss(params, x, y):
        for name in ("conv1", "conv2"):
            w, b = params[name]
            x = nn.max_pool2d(torch.relu(nn.conv2d(x, w, b, padding=1)), 2)
        w, b = params["dense"]
        return nn.cross_entropy(torch.addmm(b, x.flatten(1), w), y)

    return loss


# ----------------------------------------------------------------------------------------------------- transformer


def _transformer_inputs(batch: int, length: int, width: int, heads: int):
    def inputs(rng):
        draw = lambda *shape: rng.standard_normal(shape) / math.sqrt(shape[0])
        params = {
            "qkv": _f32(draw(width, 3 * width)),
            "out": _f32(draw(width, width)),
            "up": _f32(draw(width, 4 * width), np.zeros(4 * width)),
            "down": _f32(draw(4 * width, width), np.zeros(width)),
            "norm1": _f32(np.ones(width), np.zeros(width)),
            "norm2": _f32(np.ones(width), np.zeros(width)),
        }
        return params, _adam_state(params), *_f32(*rng.standard_normal((2, batch, length, width)))

    return inputs


def _transformer(heads: int):
    def make(jax: Any):
        jnp = jax.numpy

        def norm(x, scale, shift):
            mean = x.mean(-1, keepdims=True)
            variance = ((x - mean) ** 2).mean(-1, keepdims=True)
            return (x - mean) / jnp.sqrt(variance + 1e-5) * scale + shift

        def attention(params, x):
            b, n, d = x.shape
            q, k, v = jnp.split(x @ params["qkv"][0], 3, axis=-1)
            q, k, v = (t.reshape(b, n, heads, d // heads).transpose(0, 2, 1, 3) for t in (q, k, v))
            scores = q @ k.transpose(0, 1, 3, 2) / math.sqrt(d // heads)
            scores = jnp.where(jnp.tril(jnp.ones((n, n), bool)), scores, -1e9)
            mixed = jax.nn.softmax(scores, axis=-1) @ v
            return mixed.transpose(0, 2, 1, 3).reshape(b, n, d) @ params["out"][0]

        def loss(params, x, y):
            x = x + attention(params, norm(x, *params["norm1"]))
            h = jax.nn.gelu(norm(x, *params["norm2"]) @ params["up"][0] + params["up"][1])
            x = x + h @ params["down"][0] + params["down"][1]
            return ((x - y) ** 2).mean()

        return adam(jax, loss)

    return make


def _transformer_torch(heads: int):
    def make(torch: Any):
        nn = torch.nn.functional

        def loss(params, x, y):
            b, n, d = x.shape
            q, k, v = (nn.layer_norm(x, (d,), *params["norm1"]) @ params["qkv"][0]).chunk(3, -1)
            q, k, v = (t.reshape(b, n, heads, d // heads).transpose(1, 2) for t in (q, k, v))
            mixed = nn.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + mixed.transpose(1, 2).reshape(b, n, d) @ params["out"][0]
            h = nn.gelu(
                nn.layer_norm(x, (d,), *params["norm2"]) @ params["up"][0] + params["up"][1], approximate="tanh"
            )
            x = x + h @ params["down"][0] + params["down"][1]
            return ((x - y) ** 2).mean()

        return loss

    return make


# ------------------------------------------------------------------------------------------------- other models


def _matrix_factorization(jax: Any):
    def loss(params, rows, columns, ratings):
        u, v, a, b = params
        guess = (u[rows] * v[columns]).sum(1) + a[rows] + b[columns]
        return ((guess - ratings) ** 2).mean() + 1e-4 * ((u**2).mean() + (v**2).mean())

    return adam(jax, loss)


def _factorization_inputs(rng):
    params = _f32(
        0.1 * rng.standard_normal((1000, 16)), 0.1 * rng.standard_normal((500, 16)), np.zeros(1000), np.zeros(500)
    )
    rows, columns = rng.integers(0, 1000, 8192), rng.integers(0, 500, 8192)
    return (
        params,
        _adam_state(params),
        rows.astype(np.int32),
        columns.astype(np.int32),
        *_f32(rng.standard_normal(8192)),
    )


def _factorization_torch(torch: Any):
    def loss(params, rows, columns, ratings):
        u, v, a, b = params
        rows, columns = rows.long(), columns.long()
        guess = (u[rows] * v[columns]).sum(1) + a[rows] + b[columns]
        return ((guess - ratings) ** 2).mean() + 1e-4 * ((u**2).mean() + (v**2).mean())

    return loss


def _autoencoder(jax: Any):
    """Variational, noise given: 256 -> 64 -> 8 -> 64 -> 256."""
    jnp = jax.numpy

    def loss(params, x, noise):
        (w1, b1), (wm, bm), (ws, bs), (w2, b2), (w3, b3) = params
        h = jnp.tanh(x @ w1 + b1)
        mean, log_variance = h @ wm + bm, h @ ws + bs
        z = mean + jnp.exp(0.5 * log_variance) * noise
        logits = jnp.tanh(z @ w2 + b2) @ w3 + b3
        fit = (jnp.logaddexp(0.0, logits) - x * logits).sum(1)
        divergence = 0.5 * (jnp.exp(log_variance) + mean**2 - 1.0 - log_variance).sum(1)
        return (fit + divergence).mean()

    return adam(jax, loss)


def _autoencoder_torch(torch: Any):
    def loss(params, x, noise):
        (w1, b1), (wm, bm), (ws, bs), (w2, b2), (w3, b3) = params
        h = torch.tanh(x @ w1 + b1)
        mean, log_variance = h @ wm + bm, h @ ws + bs
        z = mean + torch.exp(0.5 * log_variance) * noise
        logits = torch.tanh(z @ w2 + b2) @ w3 + b3
        fit = (torch.nn.functional.softplus(logits) - x * logits).sum(1)
        divergence = 0.5 * (torch.exp(log_variance) + mean**2 - 1.0 - log_variance).sum(1)
        return (fit + divergence).mean()

    return loss


def _autoencoder_inputs(rng):
    shapes = [(256, 64), (64, 8), (64, 8), (8, 64), (64, 256)]
    params = [_f32(rng.standard_normal(s) / math.sqrt(s[0]), np.zeros(s[1])) for s in shapes]
    return params, _adam_state(params), *_f32(rng.uniform(size=(128, 256)) < 0.3, rng.standard_normal((128, 8)))


# ------------------------------------------------------------------- the Poisson log-normal model, see examples/pln.py


def _oaks(repeat: int):
    def inputs(_):
        counts = np.loadtxt(OAKS / "counts.csv", delimiter=",", skiprows=1)
        offsets = np.log(np.loadtxt(OAKS / "offsets.csv", delimiter=",", skiprows=1))
        trees = np.loadtxt(OAKS / "covariates.csv", delimiter=",", skiprows=1, usecols=0, dtype=str)
        covariates = (trees[:, None] == np.unique(trees)[None, :]).astype(float)
        data = _f32(*(np.tile(a, (repeat, 1)) for a in (counts, covariates, offsets)))
        n, p = data[0].shape
        params = dict(zip("BMS", _f32(np.zeros((covariates.shape[1], p)), np.zeros((n, p)), np.ones((n, p)))))
        return params, _adam_state(params), *data

    return inputs


def _pln(jax: Any):
    """One step of the fit: Sigma in closed form, then Adam with rectified variance and clipped updates."""
    jnp, tree_map = jax.numpy, jax.tree_util.tree_map

    def loss(params, omega, counts, covariates, offsets):
        n = counts.shape[0]
        mean = offsets + covariates @ params["B"] + params["M"]
        variance = params["S"] ** 2
        rates = jnp.exp(mean + 0.5 * variance)
        fit = (counts * mean - rates + 0.5 * jnp.log(variance)).sum()
        second_moment = params["M"].T @ params["M"] + jnp.diag(variance.sum(0))
        return -fit - 0.5 * n * jnp.linalg.slogdet(omega)[1] + 0.5 * (omega * second_moment).sum()

    def step(params, state, *data):
        n = params["M"].shape[0]
        sigma = (params["M"].T @ params["M"] + jnp.diag((params["S"] ** 2).sum(0))) / n
        value, gradient = jax.value_and_grad(loss)(params, jnp.linalg.inv(sigma), *data)
        mean, square, count = state
        count = count + 1.0
        mean = tree_map(lambda m, g: 0.9 * m + 0.1 * g, mean, gradient)
        square = tree_map(lambda s, g: 0.999 * s + 0.001 * g * g, square, gradient)
        most = 2.0 / (1.0 - 0.999) - 1.0
        power = 0.999**count
        length = most - 2.0 * count * power / (1.0 - power)
        rectified = jnp.sqrt(
            jnp.maximum((length - 4) * (length - 2) * most, 1e-6)
            / ((most - 4) * (most - 2) * jnp.maximum(length, 1e-6))
        )

        def update(p, m, s):
            m = m / (1.0 - 0.9**count)
            scaled = rectified * m / (jnp.sqrt(s / (1.0 - power)) + 1e-8)
            return p + jnp.clip(-0.05 * jnp.where(length > 5.0, scaled, m), -0.1, 0.1)

        return tree_map(update, params, mean, square), (mean, square, count), value

    return step


def _pln_scan(steps: int):
    def make(jax: Any):
        step = _pln(jax)

        def run(params, state, *data):
            def body(carry, _):
                params, state, value = step(*carry, *data)
                return (params, state), value

            return jax.lax.scan(body, (params, state), None, length=steps)[1]

        return run

    return make


def _pln_torch(torch: Any):
    held: list[Any] = []

    def step(params, _, counts, covariates, offsets):
        if not held:
            mine = _torch_copy(params)
            held.extend((mine, torch.optim.RAdam(_leaves(mine), lr=0.05)))
        mine, optimizer = held
        b, m, s = mine["B"], mine["M"], mine["S"]
        n = counts.shape[0]
        with torch.no_grad():
            omega = torch.linalg.inv((m.T @ m + torch.diag((s**2).sum(0))) / n)
        optimizer.zero_grad(set_to_none=True)
        mean = offsets + covariates @ b + m
        variance = s**2
        fit = (counts * mean - torch.exp(mean + 0.5 * variance) + 0.5 * torch.log(variance)).sum()
        second_moment = m.T @ m + torch.diag(variance.sum(0))
        value = -fit - 0.5 * n * torch.linalg.slogdet(omega)[1] + 0.5 * (omega * second_moment).sum()
        value.backward()
        optimizer.step()
        return value.detach()

    return step


def _dense(activation: str) -> tuple[Callable, Callable]:
    """(step of Adam for JAX's API, the same for PyTorch) of a dense network for regression."""
    return (
        lambda jax: adam(jax, _squares(getattr(jax.nn, activation))),
        _torch_adam(lambda torch: _squares(getattr(torch, activation))),
    )


def _program(name: str, inputs: Callable, step: Callable, torch: Callable | None, **more: Any) -> Program:
    """A step is compared by its own tests; PyTorch's side keeps its state to itself."""
    return Program(name, inputs, step, torch=torch, tolerance=None if torch is not None else 2e-3, **more)


_RELU, _TANH = _dense("relu"), _dense("tanh")
_CLASSIFIER = (lambda jax: adam(jax, _classifier_jax(jax)), _torch_adam(_classifier_torch))

PROGRAMS = [
    _program("MLP 8-64-64-64-1, batch 64", _regression([8, 64, 64, 64, 1], 64), *_RELU),
    _program(
        "MLP 8-64-64-64-1, batch 64, 100 steps in a scan", _regression([8, 64, 64, 64, 1], 64), _mlp_scan(100), None
    ),
    _program("MLP 4-64-64-64-1 of spectral radii, batch 128", _radii(128), *_RELU),
    _program("MLP 4-64-64-64-1 of spectral radii, batch 1024", _radii(1024), *_RELU),
    _program("MLP 2-16-16-1 tanh, batch 16", _regression([2, 16, 16, 1], 16), *_TANH),
    _program("MLP 32-256-256-8 tanh, batch 256", _regression([32, 256, 256, 8], 256), *_TANH),
    _program("MLP 784-512-512-10, batch 128", _classification([784, 512, 512, 10], 128), *_CLASSIFIER),
    _program("MLP 784-128-10, batch 32", _classification([784, 128, 10], 32), *_CLASSIFIER),
    _program("CNN 28 x 28, 8 and 16 channels, batch 32", _cnn_inputs, _cnn, _torch_adam(_cnn_torch)),
    _program(
        "logistic regression 1000 x 20",
        _logistic_inputs(1000, 20),
        lambda jax: momentum(jax, _logistic(jax)),
        _logistic_torch,
    ),
    _program(
        "logistic regression 50,000 x 100",
        _logistic_inputs(50_000, 100),
        lambda jax: momentum(jax, _logistic(jax)),
        _logistic_torch,
    ),
    _program("logistic regression 1000 x 20, Newton by hessian", _logistic_inputs(1000, 20), _logistic_newton, None),
    _program(
        "transformer block 8 x 32 x 64, 4 heads",
        _transformer_inputs(8, 32, 64, 4),
        _transformer(4),
        _torch_adam(_transformer_torch(4)),
    ),
    _program(
        "transformer block 4 x 128 x 256, 8 heads",
        _transformer_inputs(4, 128, 256, 8),
        _transformer(8),
        _torch_adam(_transformer_torch(8)),
    ),
    _program(
        "matrix factorization 1000 x 500, 8192 ratings",
        _factorization_inputs,
        _matrix_factorization,
        _torch_adam(_factorization_torch),
    ),
    _program(
        "variational autoencoder 256-64-8, batch 128",
        _autoencoder_inputs,
        _autoencoder,
        _torch_adam(_autoencoder_torch),
    ),
    _program("PLN 1160 x 114, a step", _oaks(10), _pln, _pln_torch),
    _program("PLN 11,600 x 114, a step", _oaks(100), _pln, _pln_torch),
    _program("PLN 11,600 x 114, 20 steps in a scan", _oaks(100), _pln_scan(20), None, limit=0.12),
]
