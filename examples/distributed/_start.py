"""What the examples of several processes share: joining the others, meshes, and speaking once."""

from __future__ import annotations

import argparse
import importlib
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from examples import _common as common


def options(example: str, description: str, picture: bool = False) -> argparse.ArgumentParser:
    """The options that all of them have."""
    made = common.parser(f"distributed.{example}", description, picture)
    made.add_argument("--time", type=int, metavar="ROUNDS", help="time the program: the least of so many runs")
    return made


def start(name: str) -> Any:
    """The module `jax` or `pullback`, with all processes of the launcher joined. JAX's meet over gloo."""
    jax = common.backend(name)
    if name == "jax":
        if int(os.environ.get("PMI_SIZE", os.environ.get("OMPI_COMM_WORLD_SIZE", "1"))) > 1:
            jax.config.update("jax_cpu_collectives_implementation", "gloo")
            jax.distributed.initialize(cluster_detection_method="mpi4py")
    else:
        jax.distributed.initialize()
    return jax


def mesh(jax: Any, shape: tuple[int, ...], names: tuple[str, ...]) -> Any:
    """A mesh of all devices."""
    return jax.make_mesh(shape, names, axis_types=(jax.sharding.AxisType.Auto,) * len(names))


def say(jax: Any, text: str) -> None:
    """Print on the first process alone."""
    if jax.process_index() == 0:
        print(text, flush=True)


def whole(jax: Any, x: Any) -> np.ndarray:
    """An array over all processes, on each."""
    if not x.is_fully_addressable and not x.is_fully_replicated:
        return _hosts(jax).process_allgather(x, tiled=True)
    return np.asarray(x)


def wait(jax: Any, name: str) -> None:
    """Go on when all processes are here."""
    _hosts(jax).sync_global_devices(name)


def _hosts(jax: Any) -> Any:
    return importlib.import_module(f"{jax.__name__}.experimental.multihost_utils")


def say_seconds(jax: Any, call: Callable[[], Any], rounds: int | None) -> None:
    """Print the least time of some calls, each with the wait for its result; nothing where none are asked for."""
    found = []
    for _ in range(rounds or 0):
        begin = time.perf_counter()
        jax.block_until_ready(call())
        found.append(time.perf_counter() - begin)
    if found:
        say(jax, f"seconds {min(found):.9f}")
