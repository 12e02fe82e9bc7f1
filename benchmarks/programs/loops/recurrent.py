"""Recurrent networks: GRU and LSTM, forwards and with gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...program import Program
from ._inputs import f32


def _gru_weights(rng: Any, inputs: int, hidden: int) -> tuple:
    scale = 1.0 / np.sqrt(hidden)
    return f32(
        rng.uniform(-scale, scale, (inputs, 3 * hidden)),
        rng.uniform(-scale, scale, (hidden, 3 * hidden)),
        rng.uniform(-scale, scale, 3 * hidden),
    )


def _gru_step(np_: Any, sigmoid: Any, w: tuple, h: Any, x: Any) -> Any:
    n = h.shape[-1]
    a, b = x @ w[0] + w[2], h @ w[1]
    update = sigmoid(a[..., :n] + b[..., :n])
    reset = sigmoid(a[..., n : 2 * n] + b[..., n : 2 * n])
    new = np_.tanh(a[..., 2 * n :] + reset * b[..., 2 * n :])
    return update * h + (1.0 - update) * new


def _gru(jax: Any):
    def run(w, h, xs):
        def step(h, x):
            h = _gru_step(jax.numpy, jax.nn.sigmoid, w, h, x)
            return h, h

        return jax.lax.scan(step, h, xs)[1]

    return run


def _gru_gradient(jax: Any):
    run = _gru(jax)
    return jax.value_and_grad(lambda w, h, xs: (run(w, h, xs) ** 2).mean())


def _gru_torch(torch: Any):
    def run(w, h, xs):
        hs = []
        for x in xs:
            h = _gru_step(torch, torch.sigmoid, w, h, x)
            hs.append(h)
        return torch.stack(hs)

    return run


def _gru_torch_gradient(torch: Any):
    run = _gru_torch(torch)

    def both(w, h, xs):
        w = tuple(v.detach().requires_grad_() for v in w)
        loss = (run(w, h, xs) ** 2).mean()
        return loss.detach(), torch.autograd.grad(loss, w)

    return both


def _sigmoid_numpy(x):
    return 1.0 / (1.0 + np.exp(-x))


def _gru_numpy(w, h, xs):
    hs = []
    for x in xs:
        h = _gru_step(np, _sigmoid_numpy, w, h, x)
        hs.append(h)
    return np.stack(hs)


def _gru_inputs(steps: int, batch: tuple[int, ...], inputs: int, hidden: int):
    def make(rng):
        return (
            _gru_weights(rng, inputs, hidden),
            *f32(np.zeros((*batch, hidden)), rng.standard_normal((steps, *batch, inputs))),
        )

    return make


def _lstm_inputs(steps: int, batch: tuple[int, ...], inputs: int, hidden: int):
    def make(rng):
        scale = 1.0 / np.sqrt(hidden)
        weights = f32(
            rng.uniform(-scale, scale, (inputs, 4 * hidden)),
            rng.uniform(-scale, scale, (hidden, 4 * hidden)),
            rng.uniform(-scale, scale, 4 * hidden),
        )
        zero = np.zeros((*batch, hidden), np.float32)
        return weights, (zero, zero), *f32(rng.standard_normal((steps, *batch, inputs)))

    return make


def _lstm_step(np_: Any, sigmoid: Any, w: tuple, state: tuple, x: Any) -> tuple:
    h, c = state
    n = h.shape[-1]
    gates = x @ w[0] + h @ w[1] + w[2]
    i, f = sigmoid(gates[..., :n]), sigmoid(gates[..., n : 2 * n])
    g, o = np_.tanh(gates[..., 2 * n : 3 * n]), sigmoid(gates[..., 3 * n :])
    c = f * c + i * g
    return o * np_.tanh(c), c


def _lstm(jax: Any):
    def run(w, state, xs):
        def step(state, x):
            state = _lstm_step(jax.numpy, jax.nn.sigmoid, w, state, x)
            return state, state[0]

        return jax.lax.scan(step, state, xs)[1]

    return run


def _lstm_gradient(jax: Any):
    run = _lstm(jax)
    return jax.value_and_grad(lambda w, state, xs: (run(w, state, xs) ** 2).mean())


def _lstm_torch(torch: Any):
    def run(w, state, xs):
        hs = []
        for x in xs:
            state = _lstm_step(torch, torch.sigmoid, w, state, x)
            hs.append(state[0])
        return torch.stack(hs)

    return run


def _lstm_torch_gradient(torch: Any):
    run = _lstm_torch(torch)

    def both(w, state, xs):
        w = tuple(v.detach().requires_grad_() for v in w)
        loss = (run(w, state, xs) ** 2).mean()
        return loss.detach(), torch.autograd.grad(loss, w)

    return both


PROGRAMS = [
    Program("GRU 8-32, 100 steps", _gru_inputs(100, (), 8, 32), _gru, _gru_numpy, _gru_torch),
    Program("GRU 8-32 gradient, 100 steps", _gru_inputs(100, (), 8, 32), _gru_gradient, torch=_gru_torch_gradient),
    Program("GRU 16-64 of 64, 50 steps", _gru_inputs(50, (64,), 16, 64), _gru, _gru_numpy, _gru_torch),
    Program(
        "GRU 16-64 of 64 gradient, 50 steps", _gru_inputs(50, (64,), 16, 64), _gru_gradient, torch=_gru_torch_gradient
    ),
    Program("GRU 4-8 of 8 gradient, 100 steps", _gru_inputs(100, (8,), 4, 8), _gru_gradient, torch=_gru_torch_gradient),
    Program("LSTM 8-32, 100 steps", _lstm_inputs(100, (), 8, 32), _lstm, torch=_lstm_torch),
    Program(
        "LSTM 16-64 of 32 gradient, 50 steps",
        _lstm_inputs(50, (32,), 16, 64),
        _lstm_gradient,
        torch=_lstm_torch_gradient,
    ),
    Program(
        "LSTM 64-128 of 64 gradient, 20 steps",
        _lstm_inputs(20, (64,), 64, 128),
        _lstm_gradient,
        torch=_lstm_torch_gradient,
    ),
]
