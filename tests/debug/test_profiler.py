"""Traces of annotated spans, events and their listeners, exchange by DLPack."""

from __future__ import annotations

import gzip
import json
import threading

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import dlpack, monitoring, profiler


def events(folder):
    (path,) = folder.glob("plugins/profile/*/perfetto_trace.json.gz")
    with gzip.open(path, "rt") as file:
        return json.load(file)["traceEvents"]


def test_spans_are_written(tmp_path):
    @profiler.annotate_function
    def inner():
        return jnp.ones(3).block_until_ready()

    def other():
        with profiler.TraceAnnotation("elsewhere"):
            pass

    with profiler.trace(tmp_path):
        assert profiler.TraceAnnotation.is_enabled()
        for step in range(2):
            with profiler.StepTraceAnnotation("train", step_num=step):
                inner()
        thread = threading.Thread(target=other, name="worker")
        thread.start()
        thread.join()
    inner()  # not recorded any more
    found = events(tmp_path)
    spans = {e["name"]: e for e in found if e["ph"] == "X"}
    assert [e["args"]["step_num"] for e in found if e["name"] == "train"] == [0, 1]
    assert sum(e["name"].endswith("inner") for e in found) == 2
    step, call = spans["train"], next(e for name, e in spans.items() if name.endswith("inner"))
    assert step["ts"] <= call["ts"] and call["ts"] + call["dur"] <= step["ts"] + step["dur"]
    assert spans["elsewhere"]["tid"] != step["tid"]
    assert {e["args"]["name"] for e in found if e["name"] == "thread_name"} >= {"worker"}


def test_one_trace_at_a_time(tmp_path):
    profiler.start_trace(str(tmp_path), create_perfetto_trace=True, profiler_options=profiler.ProfileOptions())
    with pytest.raises(RuntimeError, match="Only one profile"):
        profiler.start_trace(tmp_path)
    profiler.stop_trace()
    with pytest.raises(RuntimeError, match="No profile started"):
        profiler.stop_trace()
    assert not profiler.TraceAnnotation.is_enabled()
    assert len(events(tmp_path)) >= 1


def test_what_is_not_there_says_so(tmp_path):
    with pytest.raises(NotImplementedError, match="create_perfetto_link"):
        profiler.start_trace(tmp_path, create_perfetto_link=True)
    with pytest.raises(NotImplementedError, match="profiles are written to files"):
        profiler.start_server(9999)
    with pytest.raises(ValueError, match="No active profiler server"):
        profiler.stop_server()
    with pytest.raises(ValueError, match="'backend' must be None or 'cpu', got 'gpu'"):
        profiler.save_device_memory_profile(tmp_path / "memory.prof", "gpu")


def fields(data):
    """(number, value) of each field of a message of protocol buffers: whole numbers, and bytes."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
        else:
            assert key & 7 == 2
            size = varint()
            yield key >> 3, data[at : at + size]
            at += size


held_by_this_module = jnp.ones((123, 7))


def test_memory_profile(tmp_path):
    mine = {"weights": [jnp.zeros((40_000,))]}
    local = jnp.ones((11, 3))
    path = tmp_path / "memory.prof"
    profiler.save_device_memory_profile(path)
    message = list(fields(gzip.decompress(path.read_bytes())))
    strings = [value.decode() for number, value in message if number == 6]
    assert strings[0] == ""
    names = {}
    for number, value in message:
        if number == 5:  # a function
            entry = dict(fields(value))
            names[entry[1]] = strings[entry[2]]
    lines = {}
    for number, value in message:
        if number == 4:  # a location
            entry = dict(fields(value))
            lines[entry[1]] = names[dict(fields(entry[4]))[1]]
    kinds = [[strings[v] for _, v in fields(value)] for number, value in message if number == 1]
    assert kinds == [["allocations", "count"], ["space", "bytes"]]
    found = {}
    for number, value in message:
        if number == 2:
            entry = dict(fields(value))
            stack = [lines[v] for v in _varints(entry[1])]
            found[tuple(stack)] = _varints(entry[2])
    by_shape = {stack[0]: (stack[1], values) for stack, values in found.items()}
    assert by_shape["f32[11,3]"][0].startswith("local in test_memory_profile")
    assert by_shape["f32[11,3]"][1] == [1, local.nbytes]
    assert by_shape["f32[40000]"] == ("in a list", [1, mine["weights"][0].nbytes])
    assert by_shape["f32[123,7]"][1] == [1, held_by_this_module.nbytes]
    assert by_shape["f32[123,7]"][0].endswith(".held_by_this_module")


def _varints(packed):
    values, value, shift = [], 0, 0
    for byte in packed:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            values.append(value)
            value = shift = 0
    return values


def test_listeners():
    seen = []
    listeners = [
        (monitoring.register_event_listener, lambda e, **k: seen.append((e, k))),
        (monitoring.register_event_duration_secs_listener, lambda e, d, **k: seen.append((e, d, k))),
        (monitoring.register_event_time_span_listener, lambda e, a, b, **k: seen.append((e, a, b, k))),
        (monitoring.register_scalar_listener, lambda e, v, **k: seen.append((e, v, k))),
    ]
    for register, callback in listeners:
        register(callback)
    monitoring.record_event("/a", n=1)
    monitoring.record_event_duration_secs("/b", 0.5)
    monitoring.record_event_time_span("/c", 1.0, 2.0)
    monitoring.record_scalar("/d", 3, unit="x")
    assert seen == [("/a", {"n": 1}), ("/b", 0.5, {}), ("/c", 1.0, 2.0, {}), ("/d", 3, {"unit": "x"})]
    monitoring.unregister_event_listener(listeners[0][1])
    with pytest.raises(ValueError, match="not registered"):
        monitoring.unregister_event_listener(listeners[0][1])
    monitoring.clear_event_listeners()
    monitoring.record_scalar("/d", 3)
    assert len(seen) == 4


def test_dlpack():
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    y = dlpack.from_dlpack(x)
    assert isinstance(y, pullback.Array)
    np.testing.assert_array_equal(y, x)
    np.testing.assert_array_equal(np.from_dlpack(y), x)
    assert dlpack.is_supported_dtype(np.float32) and dlpack.is_supported_dtype(jnp.bfloat16)
    assert not dlpack.is_supported_dtype(pullback.float0)
    with pytest.raises(TypeError, match="__dlpack__"):
        dlpack.from_dlpack(3)
