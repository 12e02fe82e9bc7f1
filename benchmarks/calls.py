"""Times whole calls as users write them, eager and jitted, on small values, by all libraries in one process.

    python -m benchmarks.calls --peers /path/to/venv [--only PART_OF_NAME]

A figure is the minimum over interleaved rounds of the CPU time (of large work: the time) of a batch of calls, in
microseconds; the ratio is to NumPy's time of the same operation where it has one, else of its a + b of five elements.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.sides import add_peers

Calls = dict[str, Callable[[], Any]]


def numpy_calls() -> Calls:
    """What NumPy can do of the list."""
    a, b, m = np.arange(5, dtype="f4"), np.ones(5, "f4"), np.ones((10, 10), "f4")
    large, single = np.ones(2_000_000, "f4"), np.ones(1, "f4")
    return {
        "a + b": lambda: a + b,
        "a * 2": lambda: a * 2,
        "a < b": lambda: a < b,
        "-a": lambda: -a,
        "a @ b": lambda: a @ b,
        "a.sum()": lambda: a.sum(),
        "exp(a)": lambda: np.exp(a),
        "where(a > 0, a, 0)": lambda: np.where(a > 0, a, 0),
        "einsum ni,ni->ni": lambda: np.einsum("ni,ni->ni", m, m),
        "m[3:9, 2]": lambda: m[3:9, 2],
        "a[2]": lambda: a[2],
        "a[None]": lambda: a[None],
        "m.T": lambda: m.T,
        "m.reshape(20, 5)": lambda: m.reshape(20, 5),
        "chain of ten": lambda: _chain(np, a, b),
        "array(one, copy)": lambda: np.array(single, copy=True),
        "array([1.0])": lambda: np.array([1.0]),
        "large + large": lambda: large + large,
        "tanh(large)": lambda: np.tanh(large),
    }


def torch_calls(torch: Any) -> Calls:
    """What PyTorch can do of the list, at once or nearly."""
    torch.set_num_threads(1)
    a, b, m = torch.arange(5.0), torch.ones(5), torch.ones((10, 10))
    large = torch.ones(2_000_000)
    return {
        "a + b": lambda: a + b,
        "a * 2": lambda: a * 2,
        "a < b": lambda: a < b,
        "-a": lambda: -a,
        "a @ b": lambda: a @ b,
        "a.sum()": lambda: a.sum(),
        "exp(a)": lambda: torch.exp(a),
        "m[3:9, 2]": lambda: m[3:9, 2],
        "a[2]": lambda: a[2],
        "a[None]": lambda: a[None],
        "m.T": lambda: m.T,
        "m.reshape(20, 5)": lambda: m.reshape(20, 5),
        "chain of ten": lambda: _chain(torch, a, b),
        "large + large": lambda: large + large,
        "tanh(large)": lambda: torch.tanh(large),
    }


def _chain(np: Any, a: Any, b: Any) -> Any:
    return -((((a + b) * a - b) * 2 + a) * b - a) + np.exp(b) * a


def jax_calls(jax: Any) -> Calls:
    """The whole list, by JAX's API."""
    jnp, lax, random = jax.numpy, jax.lax, jax.random
    n = np.arange(5, dtype="f4")
    a, b, m = jnp.asarray(n), jnp.ones(5), jnp.ones((10, 10))
    one, key = jnp.float32(1), random.key(0)
    large, single = jnp.ones(2_000_000), jnp.ones(1)
    increment, product = jax.jit(lambda x: x + 1), jax.jit(lambda x, y: jnp.dot(x, y))
    params = {f"p{k}": jnp.ones(3) for k in range(40)}
    total = jax.jit(lambda d: sum(d.values()))
    tree = [{"a": k, "b": (k, k)} for k in range(333)]
    gradient = jax.grad(lambda x: jnp.sum(jnp.tanh(x) ** 2))

    def body(carry: Any, x: Any) -> Any:
        return carry + x, carry * x

    def double(x: Any) -> Any:
        return jnp.tanh(x) * 2

    return {
        "jitted x + 1": lambda: increment(one),
        "jitted dot of 5": lambda: product(a, b),
        "jitted, 40 arrays": lambda: total(params),
        "jitted, our array": lambda: increment(a),
        "jitted, NumPy array": lambda: increment(n),
        "jitted, float": lambda: increment(2.0),
        "a + b": lambda: a + b,
        "a * 2": lambda: a * 2,
        "a < b": lambda: a < b,
        "-a": lambda: -a,
        "a @ b": lambda: a @ b,
        "a.sum()": lambda: a.sum(),
        "exp(a)": lambda: jnp.exp(a),
        "where(a > 0, a, 0)": lambda: jnp.where(a > 0, a, 0),
        "einsum ni,ni->ni": lambda: jnp.einsum("ni,ni->ni", m, m),
        "m[3:9, 2]": lambda: m[3:9, 2],
        "a[2]": lambda: a[2],
        "a[None]": lambda: a[None],
        "m.T": lambda: m.T,
        "m.reshape(20, 5)": lambda: m.reshape(20, 5),
        "chain of ten": lambda: _chain(jnp, a, b),
        "array(one, copy)": lambda: jnp.array(single, copy=True),
        "array([1.0])": lambda: jnp.array([1.0]),
        "large + large": lambda: (large + large).block_until_ready(),
        "tanh(large)": lambda: jnp.tanh(large).block_until_ready(),
        "grad of sum(tanh^2)": lambda: gradient(a),
        "vmap": lambda: jax.vmap(double)(m),
        "jvp": lambda: jax.jvp(double, (a,), (b,)),
        "vjp": lambda: jax.vjp(double, a)[1](b),
        "scan": lambda: lax.scan(body, one, a),
        "random.normal": lambda: random.normal(key, (5,)),
        "random.split": lambda: random.split(key),
        "a.at[1].set": lambda: a.at[1].set(3.0),
        "a.at[1].add": lambda: a.at[1].add(3.0),
        "tree_map, 1,000": lambda: jax.tree_util.tree_map(abs, tree),
        "tree_flatten, 1,000": lambda: jax.tree_util.tree_flatten(tree),
    }


def measure(sides: dict[str, Calls], rounds: int, seconds: float) -> dict[str, dict[str, float]]:
    """Microseconds by name of the call and side."""
    names = list(sides["pullback"])
    best: dict[str, dict[str, float]] = {name: {} for name in names}
    for name in names:
        counts = {}
        clock = time.perf_counter if "large" in name else time.process_time  # small work is one thread's
        for side, calls in sides.items():
            if name in calls:
                for _ in range(40):  # what is compiled after some calls is
                    calls[name]()
                counts[side] = max(1, int(seconds / rounds / max(_time(calls[name], 3, clock), 1e-7)))
        for _ in range(rounds):
            for side, count in counts.items():
                took = _time(sides[side][name], count, clock) * 1e6
                best[name][side] = min(took, best[name].get(side, took))
    return best


def _time(call: Callable[[], Any], count: int, clock: Callable[[], float]) -> float:
    started = clock()
    for _ in range(count):
        call()
    return (clock() - started) / count


def main(argv: list[str] | None = None) -> int:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.calls", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--peers", type=Path, metavar="VENV", help="an environment that has JAX and PyTorch")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=0.2, help="for each call and side (default: %(default)s)")
    parser.add_argument("--only", default="", help="calls whose name contains this")
    options = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    import pullback

    sides = {"numpy": numpy_calls(), "pullback": jax_calls(pullback)}
    if options.peers:
        add_peers(options.peers)
        import jax
        import torch

        sides |= {"jax": jax_calls(jax), "torch": torch_calls(torch)}
    chosen = {n for n in sides["pullback"] if options.only in n or n == "a + b"}
    sides = {side: {n: call for n, call in calls.items() if n in chosen} for side, calls in sides.items()}
    best = measure(sides, options.rounds, options.seconds)
    unit = best["a + b"]["numpy"]
    print(f"{'microseconds':24}{''.join(f'{side:>12}' for side in sides)}{'to NumPy':>12}{'JAX to ours':>12}")
    for name, found in best.items():
        ours = found["pullback"]
        cells = "".join(f"{found[side]:12.2f}" if side in found else " " * 12 for side in sides)
        ratio = f"{found['jax'] / ours:12.1f}" if "jax" in found else ""
        print(f"{name:24}{cells}{ours / found.get('numpy', unit):12.2f}{ratio}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
