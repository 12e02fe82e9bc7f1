"""What several processes do together; of these there is one, so that it is soon done."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pullback import tree_util
from pullback.api import device_put
from pullback.runtime.arrays.devices import process_index
from pullback.sharding import NamedSharding, PartitionSpec
from pullback.util.absent import absent_names


class ProcessFailureError(RuntimeError):
    """Other processes have failed: `failed_devices` are theirs."""

    def __init__(self, failed_devices: Any = ()) -> None:
        super().__init__(f"devices failed: {failed_devices}")
        self.failed_devices = failed_devices


def broadcast_one_to_all(in_tree: Any, is_source: bool | None = None) -> Any:
    """What the process with `is_source` has (by default the first), as NumPy arrays: here what this one has.

    >>> broadcast_one_to_all([1.0])
    [array(1., dtype=float32)]
    """
    del is_source  # one process is the source in any case
    return tree_util.tree_map(lambda x: np.asarray(device_put(x)), in_tree)


def sync_global_devices(name: str) -> None:
    """Wait until all processes have come here."""
    if not isinstance(name, str):
        raise TypeError(f"sync_global_devices: expected a str as argument 'name', got {name!r}")


def process_allgather(in_tree: Any, tiled: bool = False) -> Any:
    """What all processes have, as NumPy arrays: joined along the first axis if `tiled`, else along a new one.

    >>> process_allgather(np.arange(3, dtype=np.int32))
    array([[0, 1, 2]], dtype=int32)
    """

    def gather(x: Any) -> np.ndarray:
        one = np.asarray(device_put(x))
        return one if tiled and one.ndim else one[None]

    return tree_util.tree_map(gather, in_tree)


def assert_equal(in_tree: Any, fail_message: str = "") -> None:
    """Nothing if all processes have the same; AssertionError with `fail_message` else."""
    expected = broadcast_one_to_all(in_tree)

    def same(x: Any, y: Any) -> bool:
        return bool(np.all(np.equal(np.asarray(device_put(x)), y) | (np.asarray(y) != np.asarray(y))))

    if not tree_util.tree_all(tree_util.tree_map(same, in_tree, expected)):
        raise AssertionError(f"{fail_message} Expected: {expected}; got: {in_tree}.")


def reached_preemption_sync_point(step_id: int) -> bool:
    """Whether processes shall stop after this step: nobody has asked for it."""
    int(step_id)
    return False


def _placed(name: str, inputs: Any, global_mesh: Any, pspecs: Any) -> Any:
    if pspecs is None:
        raise ValueError(f"`None` is not a valid input to the pspecs argument of {name}. Please use "
                         "jax.sharding.PartitionSpec() if you wanted to replicate your input.")  # fmt: skip
    leaves, tree = tree_util.tree_flatten(inputs)
    spec = isinstance(pspecs, PartitionSpec)
    flat = [pspecs] * len(leaves) if spec else tree.flatten_up_to(pspecs)
    placed = [device_put(x, NamedSharding(global_mesh, s)) for x, s in zip(leaves, flat, strict=True)]
    return tree_util.tree_unflatten(tree, placed)


def host_local_array_to_global_array(local_inputs: Any, global_mesh: Any, pspecs: Any) -> Any:
    """The arrays of all processes as one over `global_mesh`, each spread as its PartitionSpec says."""
    return _placed("host_local_array_to_global_array", local_inputs, global_mesh, pspecs)


def global_array_to_host_local_array(global_inputs: Any, global_mesh: Any, pspecs: Any) -> Any:
    """The part of arrays over all processes that this process has: all of it."""
    return _placed("global_array_to_host_local_array", global_inputs, global_mesh, pspecs)


@contextlib.contextmanager
def live_devices(devices: Sequence[Any]) -> Iterator[list[Any]]:
    """A context manager that gives those of the devices that have not failed. ValueError if none is of this process."""
    if not any(device.process_index == process_index() for device in devices):
        raise ValueError("Provided devices do not have any local devices.")
    yield list(devices)


__getattr__ = absent_names(__name__)

__all__ = [
    "ProcessFailureError", "assert_equal", "broadcast_one_to_all", "global_array_to_host_local_array",
    "host_local_array_to_global_array", "live_devices", "process_allgather", "reached_preemption_sync_point",
    "sync_global_devices",
]  # fmt: skip
