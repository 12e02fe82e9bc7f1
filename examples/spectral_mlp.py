"""A network that learns the spectral radius of complex 2 x 2 matrices, on one device and on two that share each batch.

The matrix's four elements go through layers of 64, 64 and 64 units to one number; the first layer is followed by
squares of absolute values, which make it real, the others by ReLU. Adam with step size 3e-4 reduces the mean squared
error. With two devices each computes the gradient on its half of a batch (`pmap`), and the mean of both (`pmean`) is
what one device would have found; so the losses are the same.

    python -m examples.spectral_mlp --picture spectral_mlp.png
    python -m examples.spectral_mlp --epochs 5
    python -m examples.spectral_mlp --backend jax          # the same source on JAX
"""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from examples import _common as common

STEP_SIZE = 3e-4
DEVICES = 2
TOLERANCE = 2e-3  # between an epoch's losses on one device and on two: sums of other order, over thousands of steps
EXAMPLE = [[1, -1], [1, 1]]  # of which the spectral radius is the square root of 2


class Program(NamedTuple):
    """What can be done with the network; `params` and `state` are pytrees."""

    data: Callable[[Any, int], tuple[Any, Any]]  # key, count -> matrices c64[count, 4], radii f32[count]
    start: Callable[[Any], Any]  # key -> state
    epoch: Callable[[Any, Any, Any], tuple[Any, Any]]  # state, batches -> state, losses f32[batches]
    epoch_on_devices: Callable[[Any, Any, Any], tuple[Any, Any]]  # the same with a leading axis of devices
    copied: Callable[[Any], Any]  # state -> state with a leading axis of devices
    first: Callable[[Any], Any]  # the reverse
    predict: Callable[[Any, Any], Any]  # state, c64[count, 4] -> f32[count]


def make_program(jax: Any) -> Program:
    """The network and its training, written against an implementation of JAX's API."""
    jnp, lax = jax.numpy, jax.lax
    stax = importlib.import_module(f"{jax.__name__}.example_libraries.stax")
    optimizers = importlib.import_module(f"{jax.__name__}.example_libraries.optimizers")

    network_init, network = stax.serial(
        stax.Dense(64),
        stax.elementwise(lambda z: jnp.real(z * jnp.conj(z))),
        stax.Dense(64),
        stax.Relu,
        stax.Dense(64),
        stax.Relu,
        stax.Dense(1),
    )
    optimizer_init, update, params_of = optimizers.adam(STEP_SIZE)

    def data(key: Any, count: int) -> tuple[Any, Any]:
        matrices = jax.random.normal(key, (count, 2, 2), np.complex64)
        return matrices.reshape(count, 4), jnp.abs(jnp.linalg.eigvals(matrices)).max(-1)

    def start(key: Any) -> Any:
        return np.int32(0), optimizer_init(network_init(key, (-1, 4))[1])

    def loss(params: Any, matrices: Any, radii: Any) -> Any:
        return jnp.mean((network(params, matrices)[:, 0] - radii) ** 2)

    def steps(mean: Callable[[Any], Any]) -> Callable:
        def step(state: Any, batch: tuple[Any, Any]) -> tuple[Any, Any]:
            number, optimizer = state
            value, gradient = mean(jax.value_and_grad(loss)(params_of(optimizer), *batch))
            return (number + 1, update(number, gradient, optimizer)), value

        return lambda state, matrices, radii: lax.scan(step, state, (matrices, radii))

    return Program(
        data,
        start,
        jax.jit(steps(lambda tree: tree)),
        jax.pmap(steps(lambda tree: lax.pmean(tree, "devices")), axis_name="devices"),
        lambda state: jax.tree.map(lambda x: np.stack([np.asarray(x)] * DEVICES), state),
        lambda state: jax.tree.map(lambda x: x[0], state),
        jax.jit(lambda state, matrices: network(params_of(state[1]), matrices)[:, 0]),
    )


def batches(key: int, matrices: Any, radii: Any, batch: int) -> tuple[Any, Any]:
    """The data in another order, as [batches, batch, ...]."""
    order = np.random.default_rng(key).permutation(len(radii))[: len(radii) // batch * batch]
    return tuple(np.asarray(x)[order].reshape(-1, batch, *x.shape[1:]) for x in (matrices, radii))


def shared(batched: tuple[Any, Any]) -> tuple[Any, ...]:
    """Batches [batches, batch, ...] as [devices, batches, batch / devices, ...]."""
    return tuple(np.stack(np.split(x, DEVICES, axis=1)) for x in batched)


def on_one(program: Program, key: Any, data: tuple[Any, Any], batch: int, epochs: int) -> Iterator[tuple]:
    """(state, losses) after each epoch."""
    state = program.start(key)
    for epoch in range(epochs):
        state, losses = program.epoch(state, *batches(epoch, *data, batch))
        yield state, np.asarray(losses)


def on_two(program: Program, key: Any, data: tuple[Any, Any], batch: int, epochs: int) -> Iterator[tuple]:
    """(state, losses) after each epoch; every device has the same state and losses."""
    state = program.copied(program.start(key))
    for epoch in range(epochs):
        state, losses = program.epoch_on_devices(state, *shared(batches(epoch, *data, batch)))
        yield program.first(state), np.asarray(losses[0])


WAYS = {"one device": on_one, "two devices": on_two}


def draw(path: Path, curves: dict[str, np.ndarray], title: str) -> None:
    """The loss of each epoch, on a logarithmic axis."""
    with common.picture(path) as axes:
        for style, (name, losses) in zip(("-", "--"), curves.items()):
            axes.plot(np.arange(1, len(losses) + 1), losses.mean(1), style, label=name)
        axes.set(xlabel="epoch", ylabel="mean squared error", yscale="log", title=title)
        axes.legend()
        axes.grid(alpha=0.3)


def main(argv: list[str] | None = None) -> int:
    """Run the example; 0 if both ways have the same losses."""
    parser = common.parser("spectral_mlp", __doc__)
    parser.add_argument("--count", type=int, default=16384, help="matrices to learn from (default: %(default)s)")
    parser.add_argument(
        "--batch", type=int, default=64, help="matrices per step, of all devices (default: %(default)s)"
    )
    parser.add_argument("--epochs", type=int, default=40, help="passes over the matrices (default: %(default)s)")
    options = parser.parse_args(argv)
    if options.batch % DEVICES:
        parser.error(f"--batch: {options.batch} matrices cannot be shared by {DEVICES} devices")
    jax = common.backend(options.backend)
    jax.config.update("jax_num_cpu_devices", DEVICES)
    program = make_program(jax)
    data_key, test_key, key = jax.random.split(jax.random.PRNGKey(0), 3)
    data, (test, test_radii) = program.data(data_key, options.count), program.data(test_key, 1000)

    curves, rows = {}, []
    for name, way in WAYS.items():
        found, marks = [], [time.perf_counter()]
        for epoch in way(program, key, data, options.batch, options.epochs):
            state, losses = epoch
            found.append(losses)
            marks.append(time.perf_counter())
            common.progress(f"{name}: epoch {len(found)} of {options.epochs}, loss {losses.mean():.4f}")
        common.progress("")
        curves[name] = np.stack(found)
        error = float(np.mean((np.asarray(program.predict(state, test)) - np.asarray(test_radii)) ** 2))
        (of_example,) = np.asarray(program.predict(state, np.reshape(np.array(EXAMPLE, np.complex64), (1, 4))))
        rows.append(
            [
                name,
                f"{found[0][0]:.3f}",
                f"{found[-1].mean():.4f}",
                f"{error:.4f}",
                f"{of_example:.3f}",
                float(np.min(np.diff(marks)) / len(losses)),
            ]
        )

    header = ["", "first loss", "last loss", "on new matrices", f"of {EXAMPLE}", "a step"]
    print("\n" + common.table(header, rows))
    one, two = curves.values()
    apart = float(np.max(np.abs(one.mean(1) - two.mean(1))))
    print(f"\nlargest difference of an epoch's losses: {apart:.1e}; the radius of {EXAMPLE} is {2**0.5:.3f}")
    if options.picture:
        draw(options.picture, curves, f"learning spectral radii, {options.backend}")
    return int(apart > TOLERANCE)


if __name__ == "__main__":
    sys.exit(main())
