"""Handwritten digits: a convolutional network learns to read the 1,797 pictures that come with scikit-learn.

The pictures have 8 x 8 points. Two layers of convolutions, written with `lax.conv_general_dilated`, one of products;
a quarter of the pictures is kept aside to be read at the end. Adam of optax takes the steps, an epoch is one compiled
`scan` over shuffled batches.

    python -m examples.digits --picture digits.png
    python -m examples.digits --epochs 3
    python -m examples.digits --backend jax                   # the same source on JAX
"""

from __future__ import annotations

import importlib
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from examples import _common as common

BATCH = 64
READ = 0.95  # of the pictures aside that a network that has learnt reads rightly


def data() -> tuple[np.ndarray, np.ndarray]:
    """(pictures f32[n, 8, 8, 1] from 0 to 1, digits i32[n]), in a random order."""
    given = importlib.import_module("sklearn.datasets").load_digits()
    order = np.random.default_rng(0).permutation(len(given.target))
    return (given.images[order, :, :, None] / 16).astype(np.float32), given.target[order].astype(np.int32)


def make_program(jax: Any, pictures: np.ndarray, digits: np.ndarray) -> tuple[Any, Any, Any]:
    """(state, epoch, scores): epoch(state, key) gives (state, losses), scores(state, pictures) f32[n, 10]."""
    jnp, lax, optax = jax.numpy, jax.lax, importlib.import_module("optax")
    optimizer = optax.adam(2e-3)

    def start(key: Any) -> dict:
        shapes = {"first": (3, 3, 1, 16), "second": (3, 3, 16, 32), "last": (128, 10)}
        keys = jax.random.split(key, len(shapes))
        return {
            name: {"w": jax.random.normal(k, shape) * (2 / np.prod(shape[:-1])) ** 0.5, "b": jnp.zeros(shape[-1])}
            for k, (name, shape) in zip(keys, shapes.items())
        }

    def convolved(layer: dict, x: Any) -> Any:
        kinds = ("NHWC", "HWIO", "NHWC")
        y = lax.conv_general_dilated(x, layer["w"], (1, 1), "SAME", dimension_numbers=kinds) + layer["b"]
        return lax.reduce_window(jax.nn.relu(y), -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")

    def network(p: dict, x: Any) -> Any:
        x = convolved(p["second"], convolved(p["first"], x))
        return x.reshape(len(x), -1) @ p["last"]["w"] + p["last"]["b"]

    def loss(p: dict, x: Any, y: Any) -> Any:
        return optax.softmax_cross_entropy_with_integer_labels(network(p, x), y).mean()

    def step(state: Any, batch: Any) -> tuple[Any, Any]:
        p, moments = state
        value, slopes = jax.value_and_grad(loss)(p, *batch)
        updates, moments = optimizer.update(slopes, moments)
        return (optax.apply_updates(p, updates), moments), value

    x, y = jnp.asarray(pictures), jnp.asarray(digits)

    @jax.jit
    def epoch(state: Any, key: Any) -> tuple[Any, Any]:
        order = jax.random.permutation(key, len(digits))[: len(digits) // BATCH * BATCH].reshape(-1, BATCH)
        return lax.scan(step, state, (x[order], y[order]))

    p = start(jax.random.key(0))
    return (p, optimizer.init(p)), epoch, jax.jit(lambda state, x: network(state[0], x))


def draw(path: Path, pictures: np.ndarray, digits: np.ndarray, read: np.ndarray, rates: list[float]) -> None:
    """Pictures that are read wrongly, and others, with what they are read as; how the share grows."""
    with common.picture(path, rows=2, columns=6) as axes:
        wrong = np.flatnonzero(read != digits)[:5]
        shown = np.concatenate([wrong, np.flatnonzero(read == digits)])[: axes.size - 1]
        for axis, k in zip(axes.ravel(), shown):
            axis.imshow(pictures[k, :, :, 0], cmap="gray_r")
            axis.set_title(f"{read[k]}" + (f", is {digits[k]}" if read[k] != digits[k] else ""))
            axis.set_axis_off()
        axes[1][5].plot(np.arange(1, len(rates) + 1), rates)
        axes[1][5].set(xlabel="epoch", title="read rightly")


def main(argv: list[str] | None = None) -> int:
    """Run the example; 0 if it reads most pictures."""
    parser = common.parser("digits", __doc__)
    parser.add_argument("--epochs", type=int, default=20, help="passes over the pictures (default: %(default)s)")
    options = parser.parse_args(argv)
    jax = common.backend(options.backend, as_jax=True)
    pictures, digits = data()
    aside = len(digits) // 4
    state, epoch, scores = make_program(jax, pictures[aside:], digits[aside:])

    rates, marks = [], []
    for k in range(options.epochs):
        began = time.perf_counter()
        state, losses = jax.block_until_ready(epoch(state, jax.random.key(k)))
        marks.append(time.perf_counter() - began)
        read = np.asarray(scores(state, pictures[:aside])).argmax(1)
        rates.append(float(np.mean(read == digits[:aside])))
        common.progress(f"epoch {k + 1} of {options.epochs}: loss {losses.mean():.3f}, read {rates[-1]:.1%}")
    common.progress("")
    print(f"{rates[-1]:.1%} of {aside} pictures are read rightly after {options.epochs} epochs")
    print(f"an epoch: {1e3 * min(marks):.1f} ms; the first, with compilation: {marks[0]:.1f} s")
    if options.picture:
        draw(options.picture, pictures[:aside], digits[:aside], read, rates)
    return int(rates[-1] < (READ if options.epochs > 5 else 0.7))


if __name__ == "__main__":
    sys.exit(main())
