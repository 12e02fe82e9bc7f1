"""Long short-term memory: layers in one or both directions, with weights as one vector in the order of cuDNN."""

from __future__ import annotations

import math
from typing import Any

import pullback.numpy as jnp
from pullback import lax, random
from pullback.core.explain import explain_all as _explain_all
from pullback.numpy import tanh
from pullback.util.absent import absent_names

PRNGKeyArray = Any
Weights = dict[int, Any]
PARTS = ("W_ih", "W_hh", "b_ih", "b_hh")


def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x))."""
    return lax.logistic(x)


def _shapes(input_size: int, hidden_size: int, num_layers: int, bidirectional: bool) -> list[tuple[str, int, tuple]]:
    """(part, layer, shape) of each array in the vector of weights: matrices of all layers, then vectors of all."""
    ways, gates = 2 if bidirectional else 1, 4 * hidden_size
    found: list[tuple[str, int, tuple]] = []
    for layer in range(num_layers * ways):
        width = input_size if layer < ways else ways * hidden_size
        found += [("W_ih", layer, (gates, width)), ("W_hh", layer, (gates, hidden_size))]
    for layer in range(num_layers * ways):
        found += [("b_ih", layer, (gates,)), ("b_hh", layer, (gates,))]
    return found


def get_num_params_in_lstm(input_size: int, hidden_size: int, num_layers: int, bidirectional: bool) -> int:
    """How many weights there are.

    >>> get_num_params_in_lstm(3, 2, 1, False)
    56
    """
    return sum(math.prod(shape) for *_, shape in _shapes(input_size, hidden_size, num_layers, bidirectional))


def init_lstm_weight(rng: Any, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool) -> Any:
    """A vector of weights, uniform in +- 1 / sqrt(hidden_size)."""
    bound = math.sqrt(1 / hidden_size)
    count = get_num_params_in_lstm(input_size, hidden_size, num_layers, bidirectional)
    return random.uniform(rng, (count,), dtype=jnp.float32, minval=-bound, maxval=bound)


def _cut(weights: Any, sizes: tuple[int, int, int, bool]) -> list[tuple[str, int, Any]]:
    total = get_num_params_in_lstm(*sizes)
    if jnp.shape(weights) != (total,):
        raise ValueError(f"lstm: expected a vector of {total} weights, got shape {jnp.shape(weights)}")
    found, at = [], 0
    for part, layer, shape in _shapes(*sizes):
        size = math.prod(shape)
        found.append((part, layer, weights[at : at + size].reshape(shape)))
        at += size
    return found


def unpack_lstm_weights(
    weights: Any, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> tuple[Weights, Weights, Weights, Weights]:
    """(W_ih, W_hh, b_ih, b_hh), each by layer; gates are input, forget, cell, output. ValueError for another size."""
    parts: dict[str, Weights] = {name: {} for name in PARTS}
    for part, layer, value in _cut(weights, (input_size, hidden_size, num_layers, bidirectional)):
        parts[part][layer] = value
    return tuple(parts[name] for name in PARTS)  # type: ignore[return-value]


def swap_lstm_gates(weights: Any, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool) -> Any:
    """The weights with the gates of the cell and of the output in each other's place."""
    swapped = []
    for _, _, value in _cut(weights, (input_size, hidden_size, num_layers, bidirectional)):
        first, second, cell, output = jnp.split(value, 4, axis=0)
        swapped.append(jnp.concatenate([first, second, output, cell], axis=0).ravel())
    return jnp.concatenate(swapped)


def lstm_ref(
    x: Any, h_0: Any, c_0: Any, W_ih: Weights, W_hh: Weights, b_ih: Weights, b_hh: Weights, seq_lengths: Any,
    input_size: int, hidden_size: int, num_layers: int, dropout: float, bidirectional: bool,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """(y[batch, length, ways * hidden], h[ways * layers, batch, hidden], c as h) of x[batch, length, input].

    Steps from a sequence's length on give 0 and leave the state alone. NotImplementedError for `dropout` other than 0.
    """
    if dropout != 0.0:
        raise NotImplementedError("lstm: dropout is not supported, only 0.0")
    if jnp.shape(x)[2:] != (input_size,):
        raise ValueError(f"lstm: x of shape {jnp.shape(x)} is not [batch, length, {input_size}]")
    ways = 2 if bidirectional else 1
    if not jnp.shape(h_0) == jnp.shape(c_0) == (ways * num_layers, jnp.shape(x)[0], hidden_size):
        raise ValueError(f"lstm: states of shapes {jnp.shape(h_0)} and {jnp.shape(c_0)} do not fit")
    times = jnp.arange(x.shape[1])
    y, states = jnp.swapaxes(x, 0, 1), []
    lengths = jnp.asarray(seq_lengths)
    for layer in range(num_layers):
        outs = []
        for way in range(ways):
            k = layer * ways + way

            def step(carry: Any, given: Any, k: int = k) -> Any:
                h, c = carry
                inputs, t = given
                gates = inputs @ W_ih[k].T + b_ih[k] + h @ W_hh[k].T + b_hh[k]
                i, f, g, o = jnp.split(gates, 4, axis=1)
                new_c = sigmoid(f) * c + sigmoid(i) * tanh(g)
                new_h = sigmoid(o) * tanh(new_c)
                there = (t < lengths)[:, None]
                kept = jnp.where(there, new_h, h), jnp.where(there, new_c, c)
                return kept, jnp.where(there, new_h, 0)

            state, out = lax.scan(step, (h_0[k], c_0[k]), (y, times), reverse=way == 1)
            states.append(state)
            outs.append(out)
        y = jnp.concatenate(outs, axis=-1)
    h_n, c_n = (jnp.stack(part) for part in zip(*states, strict=True))
    return jnp.swapaxes(y, 0, 1), h_n, c_n


def lstm(
    x: Any, h_0: Any, c_0: Any, weights: Any, seq_lengths: Any, input_size: int, hidden_size: int, num_layers: int,
    dropout: float, bidirectional: bool, precision: Any = None,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """(y, h, c) as `lstm_ref`, with the weights as one vector. `precision` is for GPUs: products here are exact."""
    del precision
    parts = unpack_lstm_weights(weights, input_size, hidden_size, num_layers, bidirectional)
    return lstm_ref(
        x, h_0, c_0, *parts, seq_lengths, input_size, hidden_size, num_layers, dropout, bidirectional
    )  # fmt: skip


__getattr__ = absent_names(__name__)

__all__ = [
    "PRNGKeyArray", "get_num_params_in_lstm", "init_lstm_weight", "lstm", "lstm_ref", "sigmoid", "swap_lstm_gates",
    "tanh", "unpack_lstm_weights",
]  # fmt: skip

_explain_all(globals())
