"""Recurrent networks: GRU and LSTM, forwards and with gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.program import Program

from ._inputs import f32


def _weights(rng: Any, inputs: int, hidden: int, gates: int) -> tuple:
    scale = 1.0 / np.sqrt(hidden)
    return f32(
        rng.uniform(-scale, scale, (inputs, gates * hidden)),
        rng.uniform(-scale, scale, (hidden, gates * hidden)),
        rng.uniform(-scale, scale, gates * hidden),
    )


def _gru_step(np_: Any, sigmoid: Any, w: tuple, h: Any, x: Any) -> Any:
    n = h.shape[-1]
    a, b = x @ w[0] + w[2], h @ w[1]
    update = sigmoid(a[..., :n] + b[..., :n])
    reset = sigmoid(a[..., n : 2 * n] + b[..., n : 2 * n])
    new = np_.tanh(a[..., 2 * n :] + reset * b[..., 2 * n :])
    return update * h + (1.0 - update) * new


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
            _weights(rng, inputs, hidden, 3),
            *f32(np.zeros((*batch, hidden)), rng.standard_normal((steps, *batch, inputs))),
        )

    return make


def _lstm_inputs(steps: int, batch: tuple[int, ...], inputs: int, hidden: int):
    def make(rng):
        zero = np.zeros((*batch, hidden), np.float32)
        return _weights(rng, inputs, hidden, 4), (zero, zero), *f32(rng.standard_normal((steps, *batch, inputs)))

    return make


def _lstm_step(np_: Any, sigmoid: Any, w: tuple, state: tuple, x: Any) -> tuple:
    h, c = state
    n = h.shape[-1]
    gates = x @ w[0] + h @ w[1] + w[2]
    i, f = sigmoid(gates[..., :n]), sigmoid(gates[..., n : 2 * n])
    g, o = np_.tanh(gates[..., 2 * n : 3 * n]), sigmoid(gates[..., 3 * n :])
    c = f * c + i * g
    return o * np_.tanh(c), c


def _hidden(state: Any) -> Any:
    return state[0] if isinstance(state, tuple) else state


def _scanned(cell: Callable) -> Callable:
    def make(jax: Any):
        def run(w, state, xs):
            def step(state, x):
                state = cell(jax.numpy, jax.nn.sigmoid, w, state, x)
                return state, _hidden(state)

            return jax.lax.scan(step, state, xs)[1]

        return run

    return make


def _gradient(cell: Callable) -> Callable:
    def make(jax: Any):
        run = _scanned(cell)(jax)
        return jax.value_and_grad(lambda w, state, xs: (run(w, state, xs) ** 2).mean())

    return make


def _torch(cell: Callable) -> Callable:
    def make(torch: Any):
        def run(w, state, xs):
            hs = []
            for x in xs:
                state = cell(torch, torch.sigmoid, w, state, x)
                hs.append(_hidden(state))
            return torch.stack(hs)

        return run

    return make


def _torch_gradient(cell: Callable) -> Callable:
    def make(torch: Any):
        run = _torch(cell)(torch)

        def both(w, state, xs):
            w = tuple(v.detach().requires_grad_() for v in w)
            loss = (run(w, state, xs) ** 2).mean()
            return loss.detach(), torch.autograd.grad(loss, w)

        return both

    return make


PROGRAMS = [
    Program("GRU 8-32, 100 steps", _gru_inputs(100, (), 8, 32), _scanned(_gru_step), _gru_numpy, _torch(_gru_step)),
    Program(
        "GRU 8-32 gradient, 100 steps",
        _gru_inputs(100, (), 8, 32),
        _gradient(_gru_step),
        torch=_torch_gradient(_gru_step),
    ),
    Program(
        "GRU 16-64 of 64, 50 steps", _gru_inputs(50, (64,), 16, 64), _scanned(_gru_step), _gru_numpy, _torch(_gru_step)
    ),
    Program(
        "GRU 16-64 of 64 gradient, 50 steps",
        _gru_inputs(50, (64,), 16, 64),
        _gradient(_gru_step),
        torch=_torch_gradient(_gru_step),
    ),
    Program(
        "GRU 4-8 of 8 gradient, 100 steps",
        _gru_inputs(100, (8,), 4, 8),
        _gradient(_gru_step),
        torch=_torch_gradient(_gru_step),
    ),
    Program("LSTM 8-32, 100 steps", _lstm_inputs(100, (), 8, 32), _scanned(_lstm_step), torch=_torch(_lstm_step)),
    Program(
        "LSTM 16-64 of 32 gradient, 50 steps",
        _lstm_inputs(50, (32,), 16, 64),
        _gradient(_lstm_step),
        torch=_torch_gradient(_lstm_step),
    ),
    Program(
        "LSTM 64-128 of 64 gradient, 20 steps",
        _lstm_inputs(20, (64,), 64, 128),
        _gradient(_lstm_step),
        torch=_torch_gradient(_lstm_step),
    ),
]
