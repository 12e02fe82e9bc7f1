"""Profiles: what runs between `start_trace` and `stop_trace`, as JSON that Perfetto and chrome://tracing read.

A trace holds the annotated spans (`TraceAnnotation`, `StepTraceAnnotation`, `annotate_function`) by thread.
What is inside of compiled programs is not recorded.
"""

from __future__ import annotations

import functools
import gzip
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pullback.util.absent import absent_names
from pullback.util.locks import Lock

__getattr__ = absent_names(__name__)

__all__ = [
    "ProfileOptions", "StepTraceAnnotation", "TraceAnnotation", "annotate_function", "device_memory_profile",
    "save_device_memory_profile", "start_server", "start_trace", "stop_server", "stop_trace", "trace",
]  # fmt: skip


class ProfileOptions:
    """Options that programs set for other profilers; they are kept and have no effect here."""

    def __init__(self) -> None:
        self.host_tracer_level = 2
        self.python_tracer_level = 1
        self.device_tracer_level = 1
        self.advanced_configuration: dict[str, Any] = {}


class _Trace:
    """The trace that is being recorded."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.started = time.perf_counter_ns()
        self.events: list[dict[str, Any]] = []
        self.threads: dict[int, str] = {}

    def add(self, name: str, began: int, ended: int, metadata: dict[str, Any]) -> None:
        thread = threading.get_ident()
        self.threads.setdefault(thread, threading.current_thread().name)
        event = {
            "name": name, "ph": "X", "pid": os.getpid(), "tid": thread,
            "ts": (began - self.started) / 1e3, "dur": (ended - began) / 1e3,
        }  # fmt: skip
        if metadata:
            event["args"] = {k: v if isinstance(v, (int, float, str, bool)) else str(v) for k, v in metadata.items()}
        self.events.append(event)

    def write(self) -> Path:
        """<folder>/plugins/profile/<time>/perfetto_trace.json.gz"""
        folder = self.folder / "plugins" / "profile" / time.strftime("%Y_%m_%d_%H_%M_%S")
        folder.mkdir(parents=True, exist_ok=True)
        names = [
            {"name": "thread_name", "ph": "M", "pid": os.getpid(), "tid": thread, "args": {"name": name}}
            for thread, name in self.threads.items()
        ]
        path = folder / "perfetto_trace.json.gz"
        with gzip.open(path, "wt") as file:
            json.dump({"displayTimeUnit": "ns", "traceEvents": [*names, *self.events]}, file)
        return path


_lock = Lock()
_current: _Trace | None = None


def start_trace(
    log_dir: os.PathLike[str] | str,
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: ProfileOptions | None = None,
) -> None:
    """Record from now on; `stop_trace` writes below `log_dir`. RuntimeError while another trace is recorded.

    NotImplementedError for `create_perfetto_link`, which would serve the trace on a port. The file is one for Perfetto
    also without `create_perfetto_trace`. TypeError for other options than ProfileOptions, whose tracers of devices and
    of the host's libraries are not there.
    """
    global _current
    if profiler_options is not None and not isinstance(profiler_options, ProfileOptions):
        raise TypeError(f"start_trace: profiler_options must be ProfileOptions, got {profiler_options!r}")
    if create_perfetto_link:
        raise NotImplementedError(
            "start_trace: create_perfetto_link=True is not possible; open the file that stop_trace writes in "
            "https://ui.perfetto.dev"
        )
    with _lock:
        if _current is not None:
            raise RuntimeError("Profile has already been started. Only one profile may be run at a time.")
        _current = _Trace(Path(log_dir))


def stop_trace() -> None:
    """End the trace and write it. RuntimeError if none is recorded."""
    global _current
    with _lock:
        if _current is None:
            raise RuntimeError("No profile started")
        done, _current = _current, None
    done.add("trace", done.started, time.perf_counter_ns(), {})
    done.write()


@contextmanager
def trace(
    log_dir: os.PathLike[str] | str,
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: ProfileOptions | None = None,
) -> Iterator[None]:
    """Context manager: record what runs inside; arguments and errors as of `start_trace`."""
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
        found = _current
        if found is not None:
            found.add(self.name, max(self.began, found.started), time.perf_counter_ns(), self.metadata)

    def set_metadata(self, **kwargs: Any) -> None:
        """Add metadata to the span."""
        self.metadata |= kwargs

    @staticmethod
    def is_enabled() -> bool:
        """Whether a trace is recorded."""
        return _current is not None


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
    """NotImplementedError: there is no server for remote profilers."""
    raise NotImplementedError(f"start_server({port}): profiles are written to files, by jax.profiler.trace(log_dir)")


def stop_server() -> None:
    """ValueError, as no server has been started."""
    raise ValueError("No active profiler server.")


def device_memory_profile(backend: str | None = None) -> bytes:
    """What arrays hold memory, and who holds them, compressed in the format of pprof; ValueError unless `backend` is
    None or 'cpu'. Arrays are looked for in variables and containers, which takes some tens of milliseconds.
    """
    if backend not in (None, "cpu"):
        raise ValueError(f"device_memory_profile: argument 'backend' must be None or 'cpu', got {backend!r}")
    from pullback.runtime.arrays.devices import devices
    from pullback.runtime.arrays.held import profile

    stats = devices()[0].memory_stats() or {}
    return profile(stats.get("bytes_in_use"))


def save_device_memory_profile(filename: os.PathLike[str] | str, backend: str | None = None) -> None:
    """Write `device_memory_profile` to a file: `pprof -web memory.prof` shows it. Errors as there, and OSError."""
    found = device_memory_profile(backend)
    Path(filename).write_bytes(found)
