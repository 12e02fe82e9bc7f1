"""A multilayer perceptron on a grid of processes: samples are spread along one axis, its hidden units along the other.

On the axis 'model' each device has some of the hidden units; their contributions to the output are summed. On the axis
'data' the gradients are. Both sums follow from the specs: a parameter that is the same along an axis has the sum of the
devices' gradients as its gradient.

    mpiexec -n 4 python -m examples.distributed.mlp
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from examples.distributed import _start as common

GRIDS = {1: (1, 1), 2: (1, 2), 4: (2, 2)}


def make(jax: Any, mesh: Any, rate: float, steps: int) -> Any:
    """(params, x, y) -> (params, losses): so many steps of gradient descent in one program."""
    jnp, lax = jax.numpy, jax.lax
    P = jax.sharding.PartitionSpec

    def loss(params, x, y):
        hidden = jnp.tanh(x @ params["in"] + params["bias"])
        out = lax.psum(hidden @ params["out"], "model")
        return lax.pmean(jnp.mean((out - y) ** 2), "data")

    def fit(params, x, y):
        losses = []
        for _ in range(steps):
            value, slope = jax.value_and_grad(loss)(params, x, y)
            params = jax.tree_util.tree_map(lambda p, g: p - rate * g, params, slope)
            losses.append(value)
        return params, jnp.stack(losses)

    spec = {"in": P(None, "model"), "bias": P("model"), "out": P("model")}
    specs = {"in_specs": (spec, P("data"), P("data")), "out_specs": (spec, P())}
    return jax.jit(jax.shard_map(fit, mesh=mesh, **specs)), spec


def main(argv: list[str] | None = None) -> int:
    """Train on a made-up function, and print the losses."""
    options = common.options("mlp", __doc__)
    options.add_argument("--samples", type=int, default=256)
    options.add_argument("--hidden", type=int, default=64)
    options.add_argument("--calls", type=int, default=5, help="calls of the program, of four steps each")
    given = options.parse_args(argv)
    jax = common.start(given.backend)
    count = jax.device_count()
    P, NamedSharding = jax.sharding.PartitionSpec, jax.sharding.NamedSharding
    mesh = common.mesh(jax, GRIDS.get(count, (count, 1)), ("data", "model"))
    rng = np.random.default_rng(0)
    x = rng.normal(size=(given.samples, 8)).astype(np.float32)
    y = np.sin(x.sum(1, keepdims=True)).astype(np.float32)
    params = {
        "in": (rng.normal(size=(8, given.hidden)) / 8**0.5).astype(np.float32),
        "bias": np.zeros(given.hidden, np.float32),
        "out": (rng.normal(size=(given.hidden, 1)) / given.hidden**0.5).astype(np.float32),
    }
    run, spec = make(jax, mesh, 0.1, 4)

    def spread(x: np.ndarray, s: Any) -> Any:
        return jax.make_array_from_callback(x.shape, NamedSharding(mesh, s), lambda index: x[index])

    params = {k: spread(v, spec[k]) for k, v in params.items()}
    x, y = spread(x, P("data")), spread(y, P("data"))
    for _ in range(given.calls):
        params, losses = run(params, x, y)
        common.say(jax, f"loss {float(losses[-1]):.8f}")
    common.say_seconds(jax, lambda: run(params, x, y), given.time)
    return 0


if __name__ == "__main__":
    sys.exit(main())
