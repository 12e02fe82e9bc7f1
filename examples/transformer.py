"""A small transformer that learns to write: letters of Python's documentation, two layers, some minutes at most.

The text is the one that `help()` shows, which comes with Python. The network sees 64 letters and says how likely each
letter is to be the next; layers of attention and of products, with normalized inputs, are written out in plain
functions (Vaswani et al., "Attention Is All You Need", NeurIPS 2017). Adam of optax takes the steps, all of them inside
of one compiled `scan`. Then it writes, letter by letter, in another scan.

    python -m examples.transformer --picture transformer.png
    python -m examples.transformer --steps 100 --width 32
    python -m examples.transformer --backend jax              # the same source on JAX
"""

from __future__ import annotations

import importlib
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import numpy as np

from examples import _common as common

CONTEXT, LAYERS, HEADS, BATCH, CHUNK = 64, 2, 4, 32, 100


def corpus() -> tuple[np.ndarray, str]:
    """(numbers of the letters i32[n], the letters)."""
    topics = importlib.import_module("pydoc_data.topics").topics
    text = "\n".join(topics[name] for name in sorted(topics))
    letters = "".join(sorted(set(text)))
    number = {letter: k for k, letter in enumerate(letters)}
    return np.array([number[letter] for letter in text], np.int32), letters


def make_program(jax: Any, text: np.ndarray, letters: int, width: int) -> tuple[Any, Any, Any]:
    """(state, train, write): train(state, key) takes CHUNK steps, write(state, key) gives letters i32[n]."""
    jnp, lax, optax = jax.numpy, jax.lax, importlib.import_module("optax")
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(3e-3))

    def start(key: Any) -> Any:
        def normal(*shape: int) -> Any:
            nonlocal key
            key, one = jax.random.split(key)
            return jax.random.normal(one, shape) / shape[0] ** 0.5

        layer = lambda: {
            "qkv": normal(width, 3 * width), "out": normal(width, width),
            "up": normal(width, 4 * width), "down": normal(4 * width, width),
        }  # fmt: skip
        place = 0.1 * normal(CONTEXT, width)
        return {"letter": normal(letters, width), "place": place, "layers": [layer() for _ in range(LAYERS)]}

    def normalized(x: Any) -> Any:
        return (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5)

    def attention(layer: Any, x: Any) -> Any:
        split = lambda part: part.reshape(CONTEXT, HEADS, width // HEADS)
        q, k, v = map(split, jnp.split(normalized(x) @ layer["qkv"], 3, axis=-1))
        scores = jnp.einsum("qhd,khd->hqk", q, k) / (width // HEADS) ** 0.5
        earlier = jnp.tril(jnp.ones((CONTEXT, CONTEXT), bool))
        weights = jax.nn.softmax(jnp.where(earlier, scores, -jnp.inf))
        return jnp.einsum("hqk,khd->qhd", weights, v).reshape(CONTEXT, width) @ layer["out"]

    def network(p: Any, numbers: Any) -> Any:
        """i32[CONTEXT] -> f32[CONTEXT, letters], of the letter behind each."""
        x = p["letter"][numbers] * width**0.5 + p["place"]
        for layer in p["layers"]:
            x = x + attention(layer, x)
            x = x + jax.nn.gelu(normalized(x) @ layer["up"]) @ layer["down"]
        return normalized(x) @ p["letter"].T

    def loss(p: Any, pieces: Any) -> Any:
        scores = jax.nn.log_softmax(jax.vmap(network, (None, 0))(p, pieces[:, :-1]))
        return -jnp.take_along_axis(scores, pieces[:, 1:, None], 2).mean()

    whole = jnp.asarray(text)

    def step(state: Any, key: Any) -> tuple[Any, Any]:
        p, moments = state
        at = jax.random.randint(key, (BATCH, 1), 0, len(text) - CONTEXT - 1)
        value, slopes = jax.value_and_grad(loss)(p, whole[at + jnp.arange(CONTEXT + 1)])
        updates, moments = optimizer.update(slopes, moments, p)
        return (optax.apply_updates(p, updates), moments), value

    def write(state: Any, key: Any) -> Any:
        def one(window: Any, key: Any) -> tuple[Any, Any]:
            letter = jax.random.categorical(key, network(state[0], window)[-1] / 0.7).astype(jnp.int32)
            return jnp.append(window[1:], letter), letter

        return lax.scan(one, whole[:CONTEXT], jax.random.split(key, 400))[1]

    p = start(jax.random.key(0))
    train = jax.jit(lambda state, key: lax.scan(step, state, jax.random.split(key, CHUNK)))
    return (p, optimizer.init(p)), train, jax.jit(write)


def draw(path: Path, losses: np.ndarray, written: str) -> None:
    """How well it learns, and what it writes."""
    with common.picture(path, columns=2) as axes:
        left, right = axes[0]
        left.plot(losses)
        left.set(title="nats a letter", xlabel="step")
        lines = [line for part in written.splitlines() for line in textwrap.wrap(part, 44) or [""]]
        right.text(0, 1, "\n".join(lines[:16]), va="top", family="monospace", fontsize=7, transform=right.transAxes)
        right.set_axis_off()


def main(argv: list[str] | None = None) -> int:
    """Run the example; 0 if it learns."""
    parser = common.parser("transformer", __doc__)
    parser.add_argument("--steps", type=int, default=1500, help="in hundreds (default: %(default)s)")
    parser.add_argument("--width", type=int, default=64, help="numbers for each letter (default: %(default)s)")
    options = parser.parse_args(argv)
    jax = common.backend(options.backend, as_jax=True)
    text, letters = corpus()
    state, train, write = make_program(jax, text, len(letters), options.width)

    found, marks = [], [time.perf_counter()]
    for k in range(max(1, options.steps // CHUNK)):
        state, losses = train(state, jax.random.key(k))
        found.append(np.asarray(losses))
        marks.append(time.perf_counter())
        common.progress(f"step {(k + 1) * CHUNK} of {options.steps}, {found[-1].mean():.2f} nats a letter")
    common.progress("")
    losses = np.concatenate(found)
    written = "".join(letters[k] for k in np.asarray(write(state, jax.random.key(7))))
    print(f"{written}\n\n{losses[0]:.2f} nats a letter at first, {losses[-20:].mean():.2f} after {len(losses)} steps")
    times = np.diff(marks) / CHUNK
    print(f"a step: {1e3 * min(times):.2f} ms; the first {CHUNK}, with compilation: {marks[1] - marks[0]:.1f} s")
    if options.picture:
        draw(options.picture, losses, written)
    return int(not losses[-20:].mean() < 0.8 * losses[0])


if __name__ == "__main__":
    sys.exit(main())
