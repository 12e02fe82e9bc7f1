"""The files of a trace: JSON as chrome://tracing, Perfetto and TensorBoard's trace viewer read it, and XSpace, the
message of protocol buffers that TensorBoard's profiler and `jax.profiler.ProfileData` read (xplane.proto of XLA).

A process is shown for the host, with a row for each thread, and one for each device, with the kernels that ran there.
"""

from __future__ import annotations

import json
import re
import socket
import threading
from collections.abc import Iterator
from typing import Any

from pullback.runtime.programs.spans import Recording, Span
from pullback.util.protobuf import field, number

HOST = "/host:CPU"
ROOT = "_r"  # what the profiler of TensorBoard finds the steps of a program by


def host_name() -> str:
    """The name of this machine, as file names may have it."""
    return re.sub(r"[^\w.-]", "_", socket.gethostname()) or "localhost"


def _planes(found: Recording) -> list[tuple[str, list[tuple[int, str, list[Span]]]]]:
    """(name of the process, its rows (thread, name, spans)) of the host and of each device."""
    names = {thread.ident or 0: thread.name for thread in threading.enumerate()} | found.threads
    host: dict[int, list[Span]] = {}
    devices: dict[int, dict[int, list[Span]]] = {}
    for span in found.spans:
        rows = devices.setdefault(span.device, {}) if span.kind == "kernel" else host
        rows.setdefault(span.thread, []).append(span)
    planes = [(HOST, host), *((f"/device:CPU:{d}", devices[d]) for d in sorted(devices))]
    main = threading.main_thread().ident
    return [
        (
            plane,
            [
                (thread, names.get(thread, f"thread {k}"), sorted(rows[thread], key=lambda s: (s.began, -s.ended)))
                for k, thread in enumerate(sorted(rows, key=lambda t: (t != main, t)))
            ],
        )
        for plane, rows in planes
    ]


def _facts(span: Span) -> dict[str, Any]:
    """What a viewer shows of a span that is clicked."""
    kind = {} if span.kind == "python" else {"what": span.kind}
    return kind | {
        name: value if isinstance(value, (int, float, str, bool)) else str(value) for name, value in span.facts.items()
    }


def trace_json(found: Recording) -> str:
    """The trace as JSON, with times in us from its beginning."""
    events: list[dict[str, Any]] = []
    for pid, (plane, rows) in enumerate(_planes(found), 1):
        events.append({"ph": "M", "pid": pid, "name": "process_name", "args": {"name": plane}})
        events.append({"ph": "M", "pid": pid, "name": "process_sort_index", "args": {"sort_index": pid}})
        for tid, (_, name, spans) in enumerate(rows, 1):
            events.append({"ph": "M", "pid": pid, "tid": tid, "name": "thread_name", "args": {"name": name}})
            events.append({"ph": "M", "pid": pid, "tid": tid, "name": "thread_sort_index", "args": {"sort_index": tid}})
            for span in spans:
                event: dict[str, Any] = {
                    "ph": "X", "pid": pid, "tid": tid, "name": span.name,
                    "ts": (span.began - found.began) / 1e3, "dur": (span.ended - span.began) / 1e3,
                }  # fmt: skip
                if facts := _facts(span):
                    event["args"] = facts
                events.append(event)
    about = {"spans that were too many and are not here": found.lost} if found.lost else {}
    return json.dumps({"displayTimeUnit": "ns", "metadata": about, "traceEvents": events})


class _Numbers(dict[str, int]):
    """Names with numbers from 1 on, as they come up."""

    def __missing__(self, name: str) -> int:
        self[name] = len(self) + 1
        return self[name]


def xspace(found: Recording) -> bytes:
    """The trace as a message XSpace."""
    out = bytearray()
    for k, (plane, rows) in enumerate(_planes(found), 1):
        events, facts = _Numbers(), _Numbers()
        lines = bytearray()
        for tid, (_, name, spans) in enumerate(rows, 1):
            line = bytearray(number(1, tid) + field(2, name.encode()) + number(3, found.began))
            for span in spans:
                line += field(4, b"".join(_event(span, found, events, facts)))
            lines += field(3, bytes(line))
        message = number(1, k) + field(2, plane.encode()) + bytes(lines)
        for key, names in ((4, events), (5, facts)):
            for name, n in names.items():
                entry = number(1, n) + field(2, name.encode())
                message += field(key, number(1, n) + field(2, entry))
        out += field(1, message)
    if found.lost:
        out += field(3, f"{found.lost} spans were too many and are not here".encode())
    out += field(4, host_name().encode())
    return bytes(out)


def _event(span: Span, found: Recording, events: _Numbers, facts: _Numbers) -> Iterator[bytes]:
    yield number(1, events[span.name])
    yield number(2, (span.began - found.began) * 1000)  # ps
    yield number(3, (span.ended - span.began) * 1000)
    shown = _facts(span)
    if "step_num" in shown:
        shown[ROOT] = 1
    for name, value in shown.items():
        whole = isinstance(value, int)
        content = number(4, int(value)) if whole else field(5, str(value).encode())
        yield field(4, number(1, facts[name]) + content)


__all__ = ["host_name", "trace_json", "xspace"]
