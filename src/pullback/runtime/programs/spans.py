"""What is written down while a trace is recorded (pullback.profiler): spans of Python, of compilations, of programs and
of their kernels.

Runs of programs are written down by the extension (ext/programs/spans.h), whatever compiled them. Kernels are known
of programs that are compiled while a trace is recorded: before and behind each stands a call that reads the clock. So
programs are compiled anew when they run first in a trace, are kept for later traces, and the code that runs without
one has no clocks in it. Times are in ns, of time.perf_counter_ns.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from typing import Any

from pullback._ext import _core
from pullback.util.locks import Lock
from pullback.util.record import mutable_record, record


@mutable_record
class Span:
    """Something that took time: `kind` is "python", "compile", "program", "plan", "eager", "devices" or "kernel"."""

    name: str
    kind: str
    thread: int
    began: int
    ended: int
    facts: dict[str, Any] = field(default_factory=dict)
    device: int = 0


@mutable_record
class Recording:
    """What a trace holds."""

    began: int
    ended: int
    spans: list[Span]
    threads: dict[int, str]
    lost: int  # spans that were too many


@record
class Known:
    """A kernel of a program with clocks: its name, and what its span says."""

    name: str
    facts: dict[str, Any]


_lock = Lock()
_listeners: list[Callable[[], None]] = []
_programs: list[tuple[str, tuple[Known, ...]]] = []  # of programs with clocks, by number
_recording: Recording | None = None


def is_recording() -> bool:
    """Whether a trace is recorded."""
    return _recording is not None


def start() -> bool:
    """Record from now on; False if a trace is recorded already."""
    global _recording
    with _lock:
        if _recording is not None:
            return False
        _core.take_spans()
        _recording = Recording(time.perf_counter_ns(), 0, [], {}, 0)
        _core.record_spans(True)
    _tell()
    return True


def stop() -> Recording | None:
    """What has been recorded, and no more from now on; None if nothing was."""
    global _recording
    with _lock:
        if _recording is None:
            return None
        found, _recording = _recording, None
        _core.record_spans(False)
        found.ended = time.perf_counter_ns()
        runs, kernels, found.lost = _core.take_spans()
    _tell()
    found.spans += [Span(name, kind, thread, began, ended) for name, kind, thread, began, ended in runs]
    for program, number, device, thread, began, ended in kernels:
        name, known = _programs[program]
        kernel = known[number]
        found.spans.append(Span(kernel.name, "kernel", thread, began, ended, {"program": name, **kernel.facts}, device))
    found.spans = [span for span in found.spans if span.ended >= found.began]
    for span in found.spans:
        span.began = max(span.began, found.began)
    return found


def add(name: str, kind: str, began: int, ended: int, facts: dict[str, Any] | None = None) -> None:
    """A span of this thread, if a trace is recorded."""
    found = _recording
    if found is not None:
        thread = threading.get_ident()
        found.threads.setdefault(thread, threading.current_thread().name)
        found.spans.append(Span(name, kind, thread, began, ended, facts or {}))


@contextmanager
def span(name: str, kind: str, facts: dict[str, Any] | None = None) -> Iterator[None]:
    """A span around what runs inside; `facts` are read at its end."""
    began = time.perf_counter_ns()
    try:
        yield
    finally:
        add(name, kind, began, time.perf_counter_ns(), facts)


def add_program(name: str, kernels: Sequence[Any]) -> int:
    """The number of a program with clocks, whose kernels (runtime/programs/kernel_list.py) are known from now on."""
    known = tuple(Known(kernel.name, _facts(kernel)) for kernel in kernels)
    with _lock:
        _programs.append((name, known))
        return len(_programs) - 1


def _facts(kernel: Any) -> dict[str, Any]:
    lines = [f"{os.path.basename(line.file)}:{line.line}" for line in kernel.lines]
    files = [f"{line.file}:{line.line} ({line.function})" for line in kernel.lines[:1]]
    found = {
        "source": ", ".join(lines[:8]),
        "source_stack": files[0] if files else "",
        "operations": ", ".join(dict.fromkeys(eqn.primitive.name for eqn in kernel.equations)),
        "kind": kernel.kind,
        "loops": kernel.shape,
        "form": kernel.form,
        "bytes": int(kernel.least_bytes),
        "expected_us": None if kernel.expected_ns is None else round(kernel.expected_ns / 1e3, 3),
        "limit_us": round(kernel.limit_ns / 1e3, 3) or None,
    }
    return {name: value for name, value in found.items() if value not in ("", None)}


def add_listener(listener: Callable[[], None]) -> None:
    """Have `listener()` called when recording begins or ends."""
    _listeners.append(listener)


def _tell() -> None:
    for listener in _listeners:
        listener()


__all__ = [
    "Recording", "Span", "add", "add_listener", "add_program", "is_recording", "span", "start", "stop",
]  # fmt: skip
