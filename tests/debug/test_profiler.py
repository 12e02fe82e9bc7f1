"""Traces of annotated spans, events and their listeners, exchange by DLPack."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import threading
import time
import urllib.request

import numpy as np
import pytest
from patience import PATIENCE
from ports import free_port

import pullback
import pullback.numpy as jnp
from pullback import dlpack, monitoring, profiler


def events(folder, name="*.trace.json.gz"):
    (path,) = folder.glob(f"plugins/profile/*/{name}")
    with gzip.open(path, "rt") as file:
        return json.load(file)["traceEvents"]


def spans_of(folder):
    """The spans of a trace by name, each list in order."""
    found = {}
    for event in events(folder):
        if event["ph"] == "X":
            found.setdefault(event["name"], []).append(event)
    return found


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


def inside(inner, outer):
    return outer["ts"] <= inner["ts"] and inner["ts"] + inner["dur"] <= outer["ts"] + outer["dur"]


def test_kernels_with_the_lines_of_the_user(tmp_path):
    traces = []

    def layers(x, w):
        traces.append(1)
        step = lambda c, _: (jnp.tanh(c @ w), c.sum())
        return pullback.lax.scan(step, x, length=3)

    run = pullback.jit(layers, donate_argnums=0)
    w = jnp.eye(40) / 2
    before = np.asarray(run(jnp.ones((40, 40)), w)[1])
    with profiler.trace(tmp_path):
        for step in range(2):
            x = jnp.ones((40, 40))
            with profiler.StepTraceAnnotation("train", step_num=step):
                during = np.asarray(run(x, w)[1])
            assert x.is_deleted()
        large = jnp.ones(100_000)
        (large * 2).block_until_ready()
    np.testing.assert_array_equal(before, during)
    np.testing.assert_array_equal(before, run(jnp.ones((40, 40)), w)[1])
    assert len(traces) == 1  # nothing is traced again, only compiled
    found = spans_of(tmp_path)
    runs = found["layers"]
    assert len(runs) == 2 and {e["args"]["what"] for e in runs} == {"program"}
    assert len(found["compile layers"]) == 1 and inside(found["compile layers"][0], found["train"][0])
    for run_, step in zip(runs, found["train"]):
        kernels = [e for e in found["tanh"] if inside(e, run_)]
        assert len(kernels) == 3 and inside(run_, step)
        assert all(e["args"]["source"].startswith("test_profiler.py:") for e in kernels)
        assert kernels[0]["args"]["program"] == "layers" and kernels[0]["args"]["bytes"] > 0
    processes = {e["pid"]: e["args"]["name"] for e in events(tmp_path) if e["name"] == "process_name"}
    assert [processes[e["pid"]] for e in (runs[0], found["tanh"][0])] == ["/host:CPU", "/device:CPU:0"]
    assert {"mul", "multiply"} & set(found)  # outside of jit, too


PROGRAM_OF_DEVICES = """
import sys, pullback as jax, pullback.numpy as jnp
jax.config.update("jax_num_cpu_devices", 2)
f = jax.pmap(lambda x: jax.lax.psum(jnp.sin(x), "i"), axis_name="i")
x = jnp.ones((2, 1000))
mesh = jax.make_mesh((2,), ("d",))
y = jax.device_put(jnp.ones((8, 300)), jax.NamedSharding(mesh, jax.P("d")))
g = jax.jit(lambda y: jnp.cos(y).sum(0))
f(x), g(y)
with jax.profiler.trace(sys.argv[1]):
    jax.block_until_ready((f(x), g(y)))
"""


def test_each_device_has_a_row(tmp_path):
    subprocess.run([sys.executable, "-c", PROGRAM_OF_DEVICES, str(tmp_path)], check=True, timeout=PATIENCE)
    processes = {e["pid"]: e["args"]["name"] for e in events(tmp_path) if e["name"] == "process_name"}
    assert list(processes.values()) == ["/host:CPU", "/device:CPU:0", "/device:CPU:1"]
    rows = {}
    for event in events(tmp_path):
        if event["ph"] == "X" and event["args"].get("what") == "kernel":
            rows.setdefault(processes[event["pid"]], []).append(event["args"].get("operations", ""))
    for row in rows.values():
        assert any("sin" in text for text in row) and any("cos" in text for text in row)
        assert any("exchange" in text or "psum" in text for text in row)


def test_the_file_for_tensorboard(tmp_path):
    with profiler.trace(tmp_path), profiler.StepTraceAnnotation("train", step_num=7):
        jnp.sin(jnp.ones(5)).block_until_ready()
    (path,) = tmp_path.glob("plugins/profile/*/*.xplane.pb")
    planes = [list(fields(value)) for number, value in fields(path.read_bytes()) if number == 1]
    (host,) = [plane for plane in planes if dict(plane)[2] == b"/host:CPU"]
    tables = {}
    for key in (4, 5):
        entries = [dict(fields(value)) for number, value in host if number == key]
        tables[key] = {e[1]: dict(fields(e[2]))[2].decode() for e in entries}
    (line,) = [list(fields(value)) for number, value in host if number == 3]
    found = {}
    for number, value in line:
        if number == 4:
            event = dict(fields(value))
            stats = [dict(fields(v)) for n, v in fields(value) if n == 4]
            found[tables[4][event[1]]] = event, {tables[5][s[1]]: s.get(4, s.get(5)) for s in stats}
    event, stats = found["train"]
    assert stats == {"step_num": 7, "_r": 1}
    inner, _ = found["sin"]
    assert event[2] <= inner[2] and inner[2] + inner[3] <= event[2] + event[3]  # ps


@pytest.mark.parametrize("level, kinds", [("host_tracer_level", {"kernel"}), ("device_tracer_level", {"program"})])
def test_levels_and_names(tmp_path, level, kinds):
    options = profiler.ProfileOptions()
    setattr(options, level, 0)
    options.session_id = "mine"
    with profiler.trace(tmp_path, create_perfetto_trace=True, profiler_options=options):
        pullback.jit(lambda x: jnp.sin(x) + 1)(jnp.ones(5000)).block_until_ready()
    assert {path.parent.name for path in tmp_path.rglob("*.gz")} == {"mine"}
    found = events(tmp_path, "perfetto_trace.json.gz")
    what = {e["args"]["what"] for e in found if e["ph"] == "X" and "args" in e}
    assert what & {"kernel", "program"} == kinds


def test_a_link_for_perfetto(tmp_path, capsys, monkeypatch):
    from pullback.profiler import _link

    got = []

    def browser():
        until = time.monotonic() + PATIENCE
        while not got and time.monotonic() < until:
            try:
                with urllib.request.urlopen(address, timeout=PATIENCE) as answer:
                    got.append((answer.headers["Access-Control-Allow-Origin"], answer.read()))
            except OSError:  # nobody listens yet
                time.sleep(0.05)

    with free_port() as port:
        monkeypatch.setattr(_link, "PORT", port)
        address = f"http://127.0.0.1:{port}/perfetto_trace.json.gz"
        thread = threading.Thread(target=browser)
        thread.start()
        with profiler.trace(tmp_path, create_perfetto_link=True):
            pass
        thread.join()
    assert address in capsys.readouterr().out
    (path,) = tmp_path.rglob("perfetto_trace.json.gz")
    assert got == [("https://ui.perfetto.dev", path.read_bytes())]


def test_one_trace_at_a_time(tmp_path):
    profiler.start_trace(str(tmp_path), create_perfetto_trace=True, profiler_options=profiler.ProfileOptions())
    with pytest.raises(RuntimeError, match="a trace is running"):
        profiler.start_trace(tmp_path)
    profiler.stop_trace()
    with pytest.raises(RuntimeError, match="No profile started"):
        profiler.stop_trace()
    assert not profiler.TraceAnnotation.is_enabled()
    assert len(events(tmp_path)) >= 1


def test_a_folder_that_cannot_be_is_refused_at_once(tmp_path):
    (tmp_path / "file").write_text("")
    for folder, error in ((tmp_path / "file" / "below", OSError), (3, TypeError)):
        with pytest.raises(error):
            profiler.start_trace(folder)
        with pytest.raises(RuntimeError, match="No profile started"):
            profiler.stop_trace()


def test_what_is_not_there_says_so(tmp_path):
    with pytest.raises(TypeError, match="must be ProfileOptions"):
        profiler.start_trace(tmp_path, profiler_options={})
    assert not profiler.TraceAnnotation.is_enabled()
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
