"""Arrays written to and read from files, in the formats of TensorStore.

Functions raise ModuleNotFoundError where the package tensorstore is not installed, ValueError for files that are not
there.
"""

from __future__ import annotations

import abc
import asyncio
import os
import re
import threading
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import numpy as np

from pullback import numpy as jnp
from pullback.api import ShapeDtypeStruct
from pullback.core import hooks
from pullback.sharding._layout import Format

_REMOTE = {"gs": "gcs", "s3": "s3"}
_URL = re.compile(r"^(gs|s3)://([^/]*)/(.*)$")


def get_tensorstore_spec(
    ckpt_path: str | os.PathLike[str],
    *,
    ocdbt: bool = False,
    process_idx: int | None = None,
    arr: Any = None,
    driver: str = "zarr",
) -> dict[str, Any]:
    """Where and how TensorStore keeps an array: a file, or an object of a bucket (gs://, s3://).

    ocdbt: one database a folder, in which the array has the name of the last part of the path; process_idx: in the
    folder of this process. arr: the array, whose shape is said then.
    """
    path = os.fspath(ckpt_path).rstrip("/")
    found = _URL.match(path)

    def store(inside: str) -> dict[str, Any]:
        if found is None:
            return {"driver": "file", "path": inside}
        return {"driver": _REMOTE[found[1]], "bucket": found[2], "path": inside}

    inside = path if found is None else found[3]
    if ocdbt:
        folder, name = os.path.split(inside)
        folder = folder if process_idx is None else os.path.join(folder, f"process_{process_idx}")
        spec: dict[str, Any] = {"driver": driver, "kvstore": {"driver": "ocdbt", "base": store(folder), "path": name}}
    else:
        spec = {"driver": driver, "kvstore": store(inside)}
    if arr is not None:
        spec["metadata"] = {"compressor": {"id": "zstd"}, "shape": tuple(arr.shape), "chunks": list(arr.shape)}
    return spec


def is_remote_storage(tspec: dict[str, Any] | str) -> bool:
    """Whether a path, or what get_tensorstore_spec gives, is elsewhere than on this machine."""
    if isinstance(tspec, str):
        return _URL.match(f"{tspec.rstrip('/')}/") is not None
    return any(
        (key == "driver" and value in _REMOTE.values())
        or (key in ("base", "kvstore") and isinstance(value, (dict, str)) and is_remote_storage(value))
        for key, value in tspec.items()
    )


def _metadata(x: Any) -> dict[str, Any]:
    return {"compressor": {"id": "zstd"}, "shape": list(x.shape), "chunks": [max(1, n) for n in x.shape]}


async def async_serialize(
    arr_inp: Any, tensorstore_spec: dict[str, Any], commit_future: list[Any] | None = None, **options: Any
) -> None:
    """Write an array as told. With a list as commit_future, the futures of what remains to be done are added to it.

    options: `context` and `transaction`, as TensorStore has them; TypeError for others.
    """
    import tensorstore

    _check_options("async_serialize", options)
    spec = dict(tensorstore_spec)
    if spec.get("driver") == "zarr":
        spec["metadata"] = _metadata(arr_inp) | spec.get("metadata", {})
    value = np.array(arr_inp)
    store = await tensorstore.open(
        tensorstore.Spec(spec),
        create=True,
        open=True,
        dtype=tensorstore.dtype(value.dtype),
        shape=value.shape,
        **options,
    )
    written = store.write(value)
    await written.copy
    if commit_future is None:
        await written.commit
    else:
        commit_future.append(written.commit)


class _Room:
    """So many bytes that may be on the way; what is larger than all of it goes alone."""

    def __init__(self, size: float) -> None:
        self.size, self.used = size, 0.0
        self.changed = asyncio.Condition()

    async def take(self, count: float) -> None:
        async with self.changed:
            await self.changed.wait_for(lambda: self.used == 0 or self.used + count <= self.size)
            self.used += count

    async def give_back(self, count: float) -> None:
        async with self.changed:
            self.used -= count
            self.changed.notify_all()


def _check_options(name: str, options: dict[str, Any]) -> None:
    for option in set(options) - {"context", "transaction"}:
        raise TypeError(f"{name}: argument {option!r} is for parts of arrays on several machines, and is not supported")


async def async_deserialize(
    in_type: Any,
    tensorstore_spec: Any,
    global_shape: Sequence[int] | None = None,
    dtype: Any = None,
    byte_limiter: Any = None,
    **options: Any,
) -> Any:
    """The array at a place, laid out as in_type says: a Sharding, a Format, or a ShapeDtypeStruct with one of them.

    It is cut or filled up with zeros to `global_shape`, and converted to `dtype`, where these are given. options: as of
    async_serialize. byte_limiter: how much may be read at a time, from run_deserialization.
    """
    import tensorstore

    _check_options("async_deserialize", options)
    if isinstance(in_type, ShapeDtypeStruct):
        global_shape = in_type.shape if global_shape is None else global_shape
        dtype = in_type.dtype if dtype is None else dtype
        in_type = in_type.sharding
    sharding = in_type.sharding if isinstance(in_type, Format) else in_type
    store = await tensorstore.open(tensorstore.Spec(tensorstore_spec), open=True, **options)
    count = store.size * store.dtype.numpy_dtype.itemsize
    if byte_limiter is not None:
        await byte_limiter.take(count)
    value = await store.read()
    if global_shape is not None and tuple(global_shape) != value.shape:
        common = tuple(slice(0, min(a, b)) for a, b in zip(global_shape, value.shape, strict=True))
        whole = np.zeros(tuple(global_shape), value.dtype)
        whole[common] = value[common]
        value = whole
    x = jnp.asarray(value if dtype is None else value.astype(dtype))
    del value
    if byte_limiter is not None:
        await byte_limiter.give_back(count)
    return x if sharding is None else hooks.device_put(x, sharding)


def _run(tasks: Sequence[Coroutine[Any, Any, Any]]) -> list[Any]:
    async def together() -> list[Any]:
        return list(await asyncio.gather(*tasks))

    return asyncio.run(together())


def run_serialization(arrays: Sequence[Any], tensorstore_specs: Sequence[dict[str, Any]]) -> None:
    """Write arrays, and wait until that is done."""
    _run([async_serialize(x, spec) for x, spec in zip(arrays, tensorstore_specs, strict=True)])


def run_deserialization(
    shardings: Sequence[Any],
    tensorstore_specs: Sequence[Any],
    global_shapes: Sequence[Any] | None = None,
    dtypes: Sequence[Any] | None = None,
    concurrent_gb: int = 32,
) -> list[Any]:
    """The arrays at these places. `concurrent_gb` bounds how much is read at a time."""
    shapes = [None] * len(shardings) if global_shapes is None else global_shapes
    types = [None] * len(shardings) if dtypes is None else dtypes
    room = _Room(concurrent_gb * 10**9)
    tasks = zip(shardings, tensorstore_specs, shapes, types, strict=True)
    return _run([async_deserialize(*task, byte_limiter=room) for task in tasks])


class GlobalAsyncCheckpointManagerBase(abc.ABC):
    """Writes and reads arrays, without making the caller wait for the disk."""

    @abc.abstractmethod
    def check_for_errors(self) -> None:
        """Raise what has gone wrong since."""

    @abc.abstractmethod
    def wait_until_finished(self) -> None:
        """Wait until all is written; raise what has gone wrong."""

    @abc.abstractmethod
    def serialize(self, arrays: Any, tensorstore_specs: Any, *, on_commit_callback: Callable[[], None]) -> None:
        """Write arrays, and call the function once that is done."""

    @abc.abstractmethod
    def deserialize(
        self, shardings: Any, tensorstore_specs: Any, global_shapes: Any = None, dtypes: Any = None
    ) -> Sequence[Any]:
        """The arrays at these places."""


class GlobalAsyncCheckpointManager(GlobalAsyncCheckpointManagerBase):
    """Writes arrays to files in a thread, one list of them at a time."""

    def __init__(self, timeout_secs: float = 300) -> None:
        self._timeout = timeout_secs
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    def check_for_errors(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            raise error

    def wait_until_finished(self) -> None:
        if self._thread is not None:
            self._thread.join(self._timeout)
            if self._thread.is_alive():
                raise TimeoutError(f"arrays are still being written after {self._timeout} s")
            self._thread = None
        self.check_for_errors()

    def serialize(
        self,
        arrays: Any,
        tensorstore_specs: Any,
        *,
        on_commit_callback: Callable[[], None] | None = None,
        transaction: Any = None,
    ) -> None:
        self.wait_until_finished()
        commits: list[Any] = []
        options = {} if transaction is None else {"transaction": transaction}
        tasks = zip(arrays, tensorstore_specs, strict=True)
        _run([async_serialize(x, spec, commits, **options) for x, spec in tasks])

        def finish() -> None:
            try:
                for commit in commits:
                    commit.result()
                if on_commit_callback is not None:
                    on_commit_callback()
            except BaseException as error:
                self._error = error

        self._thread = threading.Thread(target=finish)
        self._thread.start()

    def serialize_with_paths(self, arrays: Sequence[Any], paths: Sequence[str], **options: Any) -> None:
        """Write arrays to files; options as of `serialize`."""
        self.serialize(arrays, [get_tensorstore_spec(path) for path in paths], **options)

    def deserialize(
        self,
        shardings: Any,
        tensorstore_specs: Any,
        global_shapes: Any = None,
        dtypes: Any = None,
        concurrent_gb: int = 32,
    ) -> Sequence[Any]:
        self.wait_until_finished()
        return run_deserialization(shardings, tensorstore_specs, global_shapes, dtypes, concurrent_gb)

    def deserialize_with_paths(self, shardings: Sequence[Any], paths: Sequence[str], *more: Any, **options: Any) -> Any:
        """The arrays in files; further arguments as of `deserialize`."""
        return self.deserialize(shardings, [get_tensorstore_spec(path) for path in paths], *more, **options)


def __getattr__(name: str) -> Any:
    if name != "TS_CONTEXT":  # levanter opens its files with it
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import tensorstore

    globals()[name] = tensorstore.Context({"file_io_concurrency": {"limit": 128}})
    return globals()[name]


__all__ = [
    "GlobalAsyncCheckpointManager", "GlobalAsyncCheckpointManagerBase", "async_deserialize", "async_serialize",
    "get_tensorstore_spec", "is_remote_storage", "run_deserialization", "run_serialization",
]  # fmt: skip
