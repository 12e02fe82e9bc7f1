"""What several processes do together; where there is only one, it is soon done.

Values go between processes as bytes, with the types that all must agree on.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pullback import tree_util
from pullback.api import device_put
from pullback.api.global_arrays import make_array_from_process_local_data
from pullback.core.explain import explain_all as _explain_all
from pullback.core.tracer import Array
from pullback.manual import add_pages as _add_pages
from pullback.manual.experimental.multihost_utils import PAGES as _PAGES
from pullback.runtime.arrays.devices import process_count, process_index
from pullback.sharding import NamedSharding, PartitionSpec
from pullback.util.absent import absent_names, listed
from pullback.util.errors import Explained


class ProcessFailureError(Explained, RuntimeError):
    """Other processes have failed: `failed_devices` are theirs."""

    def __init__(self, failed_devices: Any = ()) -> None:
        super().__init__(f"devices failed: {failed_devices}")
        self.failed_devices = failed_devices


def _value(x: Any) -> np.ndarray:
    return np.asarray(device_put(x))


def _is_spread(x: Any) -> bool:
    """Whether it lies on several processes."""
    return isinstance(x, Array) and not getattr(x, "is_fully_addressable", True)


def _packed(x: np.ndarray) -> bytes:
    return f"{x.dtype.name}|{','.join(map(str, x.shape))}|".encode() + np.ascontiguousarray(x).tobytes()


def _unpacked(data: bytes) -> np.ndarray:
    name, shape, values = data.split(b"|", 2)
    return np.frombuffer(values, np.dtype(name.decode())).reshape([int(n) for n in shape.decode().split(",") if n])


def _gathered(x: np.ndarray, what: str) -> list[np.ndarray]:
    """What each process has. ValueError for different types."""
    from pullback.distributed import connection

    found = [_unpacked(data) for data in connection.gathered_bytes(_packed(x), what)]
    if any(y.shape != x.shape or y.dtype != x.dtype for y in found):
        raise ValueError(f"{what}: the processes have values of different types: {[(y.shape, y.dtype) for y in found]}")
    return found


def broadcast_one_to_all(in_tree: Any, is_source: bool | None = None) -> Any:
    """What the process with `is_source` has (by default the first), as NumPy arrays, on all processes.

    Every process gives a tree of the same structure and types; ValueError on all of them if not.
    """
    if process_count() == 1:
        return tree_util.tree_map(np.asarray, in_tree)
    from pullback.distributed import connection

    what = "broadcast_one_to_all"
    mine = process_index() == 0 if is_source is None else bool(is_source)
    leaves, tree = tree_util.tree_flatten(in_tree)
    values = list(map(_value, leaves))
    said = f"{tree}: {', '.join(f'{v.dtype}{v.shape}' for v in values)}"
    found = connection.gathered_bytes(bytes([mine]) + said.encode(), what)
    sources = [p for p, data in enumerate(found) if data[0]]
    if len(sources) != 1:
        raise ValueError(f"{what}: exactly one process must be the source, but {sources} are")
    trees = [data[1:].decode() for data in found]
    if (other := next((p for p, text in enumerate(trees) if text != trees[sources[0]]), None)) is not None:
        raise ValueError(f"{what}: the source has {trees[sources[0]]}; process {other} has {trees[other]}")
    out = [_unpacked(connection.broadcast_bytes(_packed(v) if mine else None, sources[0], what)) for v in values]
    return tree_util.tree_unflatten(tree, out)


def sync_global_devices(name: str) -> None:
    """Wait until all processes have come here."""
    if not isinstance(name, str):
        raise TypeError(f"sync_global_devices: expected a str as argument 'name', got {name!r}")
    if process_count() == 1:
        return
    from pullback.distributed import connection

    found = [data.decode() for data in connection.gathered_bytes(name.encode(), "sync_global_devices")]
    if set(found) != {name}:
        raise AssertionError(f"sync_global_devices name mismatch ('{name}'). Expected: {found[0]!r}; got: {name!r}.")


def process_allgather(in_tree: Any, tiled: bool = False) -> Any:
    """What all processes have, as NumPy arrays: joined along the first axis if `tiled`, else along a new one. Of an
    array that lies on several processes the whole, which takes tiled=True.

    Every process gives a tree of the same structure and types; ValueError on all of them if not.
    """

    def gather(x: Any) -> np.ndarray:
        if _is_spread(x):
            if not tiled:
                raise ValueError(
                    "process_allgather: an array over several processes is whole already, which is tiled=True"
                )
            if not isinstance(x.sharding, NamedSharding):
                raise ValueError(f"process_allgather: an array with sharding {x.sharding} can't be gathered")
            return np.asarray(device_put(x, x.sharding.update(spec=PartitionSpec())))
        alone = process_count() == 1
        one = np.asarray(x) if alone else _value(x)
        parts = [one] if alone else _gathered(one, "process_allgather")
        return np.concatenate(parts) if tiled and one.ndim else np.stack(parts)

    leaves, tree = tree_util.tree_flatten(in_tree)
    if process_count() > 1:
        _check_same_trees(tree, "process_allgather")
    return tree_util.tree_unflatten(tree, list(map(gather, leaves)))


def _check_same_trees(tree: Any, what: str) -> None:
    """ValueError on all processes if the trees that they give are not of the same structure."""
    from pullback.distributed import connection

    trees = [data.decode() for data in connection.gathered_bytes(str(tree).encode(), what)]
    if (other := next((p for p, text in enumerate(trees) if text != trees[0]), None)) is not None:
        raise ValueError(f"{what}: process 0 has {trees[0]}; process {other} has {trees[other]}")


def assert_equal(in_tree: Any, fail_message: str = "") -> None:
    """Nothing if all processes have the same; AssertionError with `fail_message` else."""
    expected = broadcast_one_to_all(in_tree)

    def same(x: Any, y: Any) -> bool:
        return bool(np.all(np.equal(_value(x), y) | (np.asarray(y) != np.asarray(y))))

    equal = tree_util.tree_all(tree_util.tree_map(same, in_tree, expected))
    if process_count() > 1:  # all shall hear of it, the source too
        equal = all(bool(x) for x in _gathered(np.asarray(equal), "assert_equal"))
    if not equal:
        raise AssertionError(f"{fail_message} Expected: {expected}; got: {in_tree}.")


def reached_preemption_sync_point(step_id: int) -> bool:
    """Whether the processes are asked to stop after this step; here they never are, so False."""
    int(step_id)
    return False


def _each(name: str, inputs: Any, pspecs: Any, one: Any) -> Any:
    if pspecs is None:
        raise ValueError(
            f"{name}: argument 'pspecs' is None; PartitionSpec() says that each device has the whole array"
        )
    leaves, tree = tree_util.tree_flatten(inputs)
    spec = isinstance(pspecs, PartitionSpec)
    flat = [pspecs] * len(leaves) if spec else tree.flatten_up_to(pspecs)
    return tree_util.tree_unflatten(tree, [one(x, s) for x, s in zip(leaves, flat, strict=True)])


def host_local_array_to_global_array(local_inputs: Any, global_mesh: Any, pspecs: Any) -> Any:
    """Arrays over `global_mesh`, each spread as its PartitionSpec says, of which each process gives the part that is to
    lie on its devices.
    """

    def one(x: Any, spec: PartitionSpec) -> Any:
        if _is_spread(x):
            return x  # it is one already
        sharding = NamedSharding(global_mesh, spec)
        if sharding.is_fully_addressable:
            return x if isinstance(x, Array) and isinstance(x.sharding, NamedSharding) else device_put(x, sharding)
        return make_array_from_process_local_data(sharding, _value(x))

    return _each("host_local_array_to_global_array", local_inputs, pspecs, one)


def global_array_to_host_local_array(global_inputs: Any, global_mesh: Any, pspecs: Any) -> Any:
    """Of arrays over `global_mesh` the part that lies on the devices of this process, spread over these."""

    def one(x: Any, spec: PartitionSpec) -> Any:
        sharding = NamedSharding(global_mesh, spec)
        if sharding.is_fully_addressable:
            return x if isinstance(x, Array) and isinstance(x.sharding, NamedSharding) else device_put(x, sharding)
        x = device_put(x, sharding)
        shards = x.addressable_shards
        low = [min(s.index[d].indices(n)[0] for s in shards) for d, n in enumerate(x.shape)]
        high = [max(s.index[d].indices(n)[1] for s in shards) for d, n in enumerate(x.shape)]
        block = np.empty([b - a for a, b in zip(low, high, strict=True)], x.dtype)
        for shard in shards:
            at = [slice(*(k - a for k in i.indices(n)[:2])) for i, n, a in zip(shard.index, x.shape, low, strict=True)]
            block[tuple(at)] = np.asarray(shard.data)
        return device_put(block, NamedSharding(global_mesh.local_mesh, spec))

    return _each("global_array_to_host_local_array", global_inputs, pspecs, one)


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

_explain_all(globals())
_add_pages(globals(), _PAGES)

__dir__ = listed(__name__)
