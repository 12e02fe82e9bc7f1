"""Profiles: what runs between `start_trace` and `stop_trace`, in files that Perfetto, chrome://tracing and TensorBoard
open.

A trace holds the spans of the user's program (`TraceAnnotation`, `StepTraceAnnotation`, `annotate_function`), each
tracing and compilation, each run of a compiled program or of an operation outside of `jit`, and in compiled programs
each kernel with the user's lines. Programs are compiled anew, with clocks in them, where they run first inside of a
trace: run a step before those that you want to look at, inside of the trace, too.
"""

from __future__ import annotations

import functools
import gzip
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pullback.core.explain import explain_all as _explain_all
from pullback.manual import add_pages as _add_pages
from pullback.manual.profiler import PAGES as _PAGES
from pullback.runtime.programs import spans
from pullback.util.absent import absent_names, listed
from pullback.util.locks import Lock

__getattr__ = absent_names(__name__)

__all__ = [
    "ProfileOptions", "StepTraceAnnotation", "TraceAnnotation", "annotate_function", "device_memory_profile",
    "save_device_memory_profile", "start_server", "start_trace", "stop_server", "stop_trace", "trace",
]  # fmt: skip


class ProfileOptions:
    """What a trace holds: `host_tracer_level` 0 leaves out what runs in Python, `device_tracer_level` 0 the kernels.

    `session_id` is the name of the trace's folder, else the time is. Calls of Python functions are not recorded
    (`python_tracer_level`); the other fields are for devices and servers that are not here.
    """

    def __init__(self) -> None:
        self.host_tracer_level = 2
        self.python_tracer_level = 1
        self.device_tracer_level = 1
        self.session_id = ""
        self.advanced_configuration: dict[str, Any] = {}
        self.duration_ms = 0
        self.enable_hlo_proto = True
        self.include_dataset_ops = True
        self.raise_error_on_start_failure = False
        self.repository_path = ""
        self.start_timestamp_ns = 0


class _Wanted:
    """Where and how the trace that is recorded is to be written."""

    def __init__(self, folder: Path, perfetto: bool, link: bool, options: ProfileOptions) -> None:
        self.folder, self.perfetto, self.link, self.options = folder, perfetto, link, options

    def write(self, found: spans.Recording) -> Path:
        """<folder>/plugins/profile/<time>/<host>.xplane.pb, <host>.trace.json.gz and perfetto_trace.json.gz"""
        from pullback.profiler._formats import host_name, trace_json, xspace

        if self.options.host_tracer_level == 0:
            found.spans = [span for span in found.spans if span.kind == "kernel"]
        if self.options.device_tracer_level == 0:
            found.spans = [span for span in found.spans if span.kind != "kernel"]
        session = self.options.session_id or time.strftime("%Y_%m_%d_%H_%M_%S")
        folder = self.folder / "plugins" / "profile" / session
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{host_name()}.xplane.pb").write_bytes(xspace(found))
        compressed = gzip.compress(trace_json(found).encode(), 6)
        path = folder / f"{host_name()}.trace.json.gz"
        path.write_bytes(compressed)
        if self.perfetto or self.link:
            path = folder / "perfetto_trace.json.gz"
            path.write_bytes(compressed)
        return path


_lock = Lock()
_wanted: _Wanted | None = None


def start_trace(
    log_dir: os.PathLike[str] | str,
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: ProfileOptions | None = None,
) -> None:
    """Record from now on; `stop_trace` writes below `log_dir`.

    The files are `<host>.xplane.pb` for TensorBoard and `<host>.trace.json.gz` for Perfetto, too.
    """
    global _wanted
    if profiler_options is not None and not isinstance(profiler_options, ProfileOptions):
        raise TypeError(f"start_trace: profiler_options must be ProfileOptions, got {profiler_options!r}")
    if not isinstance(log_dir, (str, os.PathLike)):
        raise TypeError(f"start_trace: argument 'log_dir' must be a path, got {log_dir!r}")
    folder = Path(log_dir)
    folder.mkdir(parents=True, exist_ok=True)  # where that fails, it fails before a long program has run
    with _lock:
        if not spans.start():
            raise RuntimeError("start_trace: a trace is running; end it with stop_trace() first")
        options = profiler_options or ProfileOptions()
        _wanted = _Wanted(folder, create_perfetto_trace, create_perfetto_link, options)


def stop_trace() -> None:
    """End the trace and write it."""
    global _wanted
    with _lock:
        wanted, _wanted = _wanted, None
        if wanted is None:
            raise RuntimeError("No profile started")
        found = spans.stop()
    assert found is not None
    path = wanted.write(found)
    if wanted.link:
        from pullback.profiler._link import show

        show(path)


@contextmanager
def trace(
    log_dir: os.PathLike[str] | str,
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: ProfileOptions | None = None,
) -> Iterator[None]:
    """Context manager: record what runs inside, as between `start_trace` and `stop_trace`."""
    start_trace(log_dir, create_perfetto_link, create_perfetto_trace, profiler_options)
    try:
        yield
    finally:
        stop_trace()


class TraceAnnotation:
    """Context manager: a named span of the trace, with metadata; it costs next to nothing where none is recorded."""

    def __init__(self, name: str, **kwargs: Any) -> None:
        self.name, self.metadata = name, kwargs

    def __enter__(self) -> TraceAnnotation:
        self.began = time.perf_counter_ns()
        return self

    def __exit__(self, *exc: object) -> None:
        spans.add(self.name, "python", self.began, time.perf_counter_ns(), self.metadata)

    def set_metadata(self, **kwargs: Any) -> None:
        """Add metadata to the span."""
        self.metadata |= kwargs

    @staticmethod
    def is_enabled() -> bool:
        """Whether a trace is recorded."""
        return spans.is_recording()


class StepTraceAnnotation(TraceAnnotation):
    """A span that is one step of a program: `with StepTraceAnnotation("train", step_num=i)`."""


def annotate_function(func: Callable[..., Any], name: str | None = None, **decorator_kwargs: Any) -> Callable[..., Any]:
    """`func`, each of whose calls is a span of the trace."""
    label = str(name or getattr(func, "__qualname__", type(func).__name__))

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        with TraceAnnotation(label, **decorator_kwargs):
            return func(*args, **kwargs)

    return wrapped


def start_server(port: int, requires_backend: bool = True) -> Any:
    """There is no server for remote profilers: profiles are written to files, by `trace`."""
    raise NotImplementedError(
        f"start_server({port}): there is no server for remote profilers, which would need gRPC; profiles are written "
        "to files that TensorBoard and Perfetto open, by jax.profiler.trace(log_dir)"
    )


def stop_server() -> None:
    """There is no server, so that none can be stopped."""
    raise ValueError("No active profiler server.")


def device_memory_profile(backend: str | None = None) -> bytes:
    """What arrays hold memory, and who holds them, compressed in the format of pprof.

    Arrays are looked for in variables and containers, which takes some tens of milliseconds.
    """
    if backend not in (None, "cpu"):
        raise ValueError(f"device_memory_profile: argument 'backend' must be None or 'cpu', got {backend!r}")
    from pullback.runtime.arrays.devices import devices
    from pullback.runtime.arrays.held import profile

    stats = devices()[0].memory_stats() or {}
    return profile(stats.get("bytes_in_use"))


def save_device_memory_profile(filename: os.PathLike[str] | str, backend: str | None = None) -> None:
    """Write `device_memory_profile` to a file: `pprof -web memory.prof` shows it."""
    found = device_memory_profile(backend)
    Path(filename).write_bytes(found)


_explain_all(globals())
_add_pages(globals(), _PAGES)

__dir__ = listed(__name__)
