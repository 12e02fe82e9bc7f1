"""The Poisson log-normal model of the oak leaves (examples/pln.py), its samples spread over the processes.

Each device holds its samples and their variational parameters M and S; the regression coefficients B and the sums that
make Sigma are the same on all. An iteration takes two all-reduces: of p x p moments, and of the gradient of B.

With --checkpoint the state is written after each chunk of iterations, and found there at the next start, on any number
of processes; --fail-at kills the last process after so many chunks, to try it.

    mpiexec -n 4 python -m examples.distributed.pln
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import numpy as np

from examples.distributed import _start as common
from examples.pln import load

RATE, KEEP, KEEP_SQUARES, SMALL = 0.1, 0.9, 0.999, 1e-8  # of Adam


def make(jax: Any, mesh: Any, samples: int) -> Any:
    """(state, data, length) -> (state, losses): so many iterations of the fit, all in one program."""
    jnp, lax = jax.numpy, jax.lax
    P = jax.sharding.PartitionSpec

    def negative_elbo(params, omega, counts, covariates, offsets):
        """This device's part of it, up to a constant."""
        mean = offsets + covariates @ params["B"] + params["M"]
        variance = params["S"] ** 2
        fit = (counts * mean - jnp.exp(mean + 0.5 * variance) + 0.5 * jnp.log(variance)).sum()
        moment = params["M"].T @ params["M"] + jnp.diag(variance.sum(0))
        return 0.5 * (omega * moment).sum() - fit

    def step(state, data):
        params, first, second, count = state
        moment = params["M"].T @ params["M"] + jnp.diag((params["S"] ** 2).sum(0))
        sigma = lax.psum(moment, "samples") / samples
        omega = jnp.linalg.inv(sigma)
        part, slope = jax.value_and_grad(negative_elbo)(params, omega, *data)
        slope = {**slope, "B": lax.psum(slope["B"], "samples")}
        loss = lax.psum(part, "samples") + 0.5 * samples * jnp.linalg.slogdet(sigma)[1]
        count = count + 1
        first = jax.tree_util.tree_map(lambda m, g: KEEP * m + (1 - KEEP) * g, first, slope)
        second = jax.tree_util.tree_map(lambda v, g: KEEP_SQUARES * v + (1 - KEEP_SQUARES) * g * g, second, slope)
        scale = RATE * jnp.sqrt(1 - KEEP_SQUARES**count) / (1 - KEEP**count)
        params = jax.tree_util.tree_map(lambda p, m, v: p - scale * m / (jnp.sqrt(v) + SMALL), params, first, second)
        return (params, first, second, count), loss

    def run(length):
        def fit(params, first, second, count, *data):
            state, losses = lax.scan(lambda s, _: step(s, data), (params, first, second, count), length=length)
            return (*state, losses)

        spec = {"B": P(), "M": P("samples"), "S": P("samples")}
        data = (P("samples"),) * 3
        # Sums are written out above, so nothing is to be added by itself.
        mapped = jax.shard_map(
            fit, mesh=mesh, in_specs=(spec, spec, spec, P(), *data), out_specs=(spec, spec, spec, P(), P()),
            check_vma=False,
        )  # fmt: skip
        return jax.jit(mapped)

    return run


def main(argv: list[str] | None = None) -> int:
    """Fit, and print the loss."""
    options = common.options("pln", __doc__)
    options.add_argument("--iterations", type=int, default=60)
    options.add_argument("--chunk", type=int, default=20, help="iterations between checkpoints")
    options.add_argument("--repeat", type=int, default=1, help="how often each sample is taken")
    options.add_argument("--checkpoint", type=Path, metavar="FILE")
    options.add_argument("--fail-at", type=int, metavar="CHUNK", help="kill the last process before this chunk")
    given = options.parse_args(argv)
    jax = common.start(given.backend)
    jax.config.update("jax_enable_x64", True)
    P, NamedSharding = jax.sharding.PartitionSpec, jax.sharding.NamedSharding
    mesh = common.mesh(jax, (jax.device_count(),), ("samples",))
    rows, everywhere = NamedSharding(mesh, P("samples")), NamedSharding(mesh, P())

    def spread(x: np.ndarray, sharding: Any) -> Any:
        return jax.make_array_from_callback(x.shape, sharding, lambda index: x[index])

    counts, covariates, offsets = load(given.repeat, "float64")
    n, p = counts.shape
    data = [spread(x, rows) for x in (counts, covariates, offsets)]
    places = {"B": everywhere, "M": rows, "S": rows}
    start = {"B": np.zeros((covariates.shape[1], p)), "M": np.zeros((n, p)), "S": np.ones((n, p))}
    zeros = {k: np.zeros_like(v) for k, v in start.items()}
    host: dict[str, Any] = {"params": start, "first": zeros, "second": zeros, "count": np.zeros(()), "losses": []}
    if given.checkpoint and given.checkpoint.exists():
        found = np.load(given.checkpoint)
        host = {part: {k: found[f"{part}.{k}"] for k in start} for part in ("params", "first", "second")}
        host |= {"count": found["count"], "losses": list(found["losses"])}
        common.say(jax, f"goes on after {len(host['losses'])} iterations")
    trees = [{k: spread(v, places[k]) for k, v in host[part].items()} for part in ("params", "first", "second")]
    state = (*trees, spread(host["count"], everywhere))
    losses = list(host["losses"])
    make_program = make(jax, mesh, n)
    programs: dict[int, Any] = {}  # by the number of iterations

    def program(length: int) -> Any:
        return programs.setdefault(length, make_program(length))

    while len(losses) < given.iterations:
        if given.fail_at is not None and len(losses) >= given.fail_at * given.chunk:
            common.wait(jax, "the state is written")
            if jax.process_index() == jax.process_count() - 1:
                os.kill(os.getpid(), signal.SIGKILL)
        *state, part = program(min(given.chunk, given.iterations - len(losses)))(*state, *data)
        losses += [float(x) for x in np.asarray(part)]
        common.say(jax, f"iteration {len(losses)}: {losses[-1] / n:.9f}")
        if given.checkpoint:
            names = ("params", "first", "second")
            arrays = {f"{a}.{k}": common.whole(jax, v) for a, tree in zip(names, state[:3]) for k, v in tree.items()}
            if jax.process_index() == 0:
                new = given.checkpoint.with_suffix(".new.npz")
                np.savez(new, count=np.asarray(state[3]), losses=losses, **arrays)
                new.replace(given.checkpoint)  # whole, or not at all
    common.say(jax, f"loss {losses[-1] / n:.9f}")
    common.say_seconds(jax, lambda: program(min(given.chunk, given.iterations))(*state, *data), given.time)
    return 0


if __name__ == "__main__":
    sys.exit(main())
