import ctypes
import itertools
import os
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest
from patience import PATIENCE

from pullback._ext import _core

BODY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
parallel_for = ctypes.CFUNCTYPE(None, BODY, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(
    _core.symbol_addresses()["pb_parallel_for"]
)


@pytest.fixture(autouse=True)
def threads():
    before = _core.num_threads()
    yield
    _core.set_num_threads(before)


def parts_of(n, grain):
    parts = []
    parallel_for(BODY(lambda ctx, begin, end: parts.append((begin, end))), None, n, grain)
    return sorted(parts)


@pytest.mark.parametrize("count", [1, 2, 3, 8])
@pytest.mark.parametrize("n", [-5, 0, 1, 2, 7, 64, 1000])
@pytest.mark.parametrize("grain", [-1, 0, 1, 3, 64, 2000])
def test_covers_everything_once(count, n, grain):
    _core.set_num_threads(count)
    parts = parts_of(n, grain)
    if n <= 0:
        assert parts == []
        return
    assert parts[0][0] == 0 and parts[-1][1] == n
    assert all(a[1] == b[0] for a, b in itertools.pairwise(parts))
    assert all(begin % max(grain, 1) == 0 for begin, _ in parts)
    if count == 1 or n <= grain:
        assert len(parts) == 1


def test_uses_threads():
    _core.set_num_threads(2)
    seen = set()
    meet = threading.Barrier(2, timeout=PATIENCE)

    def body(ctx, begin, end):
        if len(seen) < 2:
            seen.add(threading.get_ident())
            meet.wait()

    parallel_for(BODY(body), None, 2, 1)
    assert len(seen) == 2


def test_the_caller_begins_with_what_it_had_in_the_loop_before():
    _core.set_num_threads(2)
    for _ in range(3):
        meet, first = threading.Barrier(2, timeout=PATIENCE), {}

        def body(ctx, begin, end, meet=meet, first=first):
            thread = threading.get_ident()
            if thread not in first:
                first[thread] = begin
                meet.wait()

        parallel_for(BODY(body), None, 80, 1)
        assert first.pop(threading.get_ident()) == 0
        assert list(first.values()) == [40]


def test_nested_loops_are_serial():
    _core.set_num_threads(4)
    inner_parts = []

    def outer(ctx, begin, end):
        for _ in range(begin, end):
            parallel_for(BODY(lambda ctx, b, e: inner_parts.append((b, e))), None, 100, 1)

    parallel_for(BODY(outer), None, 10, 1)
    assert inner_parts == [(0, 100)] * 10
    assert len(parts_of(100, 1)) > 1  # and the pool is as it was


def test_callers_from_many_threads():
    _core.set_num_threads(3)
    sums = []

    def work():
        for n in range(1, 200):
            parts = parts_of(n, 1)
            sums.append(sum(e - b for b, e in parts) == n)

    callers = [threading.Thread(target=work) for _ in range(4)]
    for t in callers:
        t.start()
    for t in callers:
        t.join()
    assert len(sums) == 4 * 199 and all(sums)


def test_many_loops_in_quick_succession(program, aval, array):
    # Native bodies, so that loops begin and end within microseconds and workers come late.
    declarations = """
declare void @pb_parallel_for(ptr, ptr, i64, i64)
define void @body(ptr %ctx, i64 %begin, i64 %end) {
entry: br label %loop
loop:
  %i = phi i64 [ %begin, %entry ], [ %next, %loop ]
  %p = getelementptr i64, ptr %ctx, i64 %i
  %old = load i64, ptr %p
  %new = add i64 %old, 1
  store i64 %new, ptr %p
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %end
  br i1 %more, label %loop, label %done
done: ret void
}"""
    body = """
entry:
  %out0 = load ptr, ptr %out
  call void @llvm.memset.p0.i64(ptr %out0, i8 0, i64 800, i1 false)
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  call void @pb_parallel_for(ptr @body, ptr %out0, i64 100, i64 3)
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, 3000
  br i1 %more, label %loop, label %done
done: ret i32 0"""
    e = program(
        body,
        (),
        (aval((100,), "int64"),),
        declarations + "\ndeclare void @llvm.memset.p0.i64(ptr, i8, i64, i1)\n",
        release_gil=True,
    )
    for count in (2, 5):
        _core.set_num_threads(count)
        (out,) = e.call([])
        np.testing.assert_array_equal(np.asarray(out), 3000)


def test_number_of_threads():
    _core.set_num_threads(5)
    assert _core.num_threads() == 5
    for bad in (0, -1):
        with pytest.raises(ValueError, match="at least 1"):
            _core.set_num_threads(bad)
    with pytest.raises(TypeError):
        _core.set_num_threads("two")
    wanted = {"pb_parallel_for", "pb_interrupt_pending", "pb_host_call", "pb_host_call_index"}
    assert wanted <= set(_core.symbol_addresses())


CHILD = """
    import ctypes, os, sys, warnings
    warnings.simplefilter("ignore", DeprecationWarning)
    from pullback._ext import _core
    BODY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
    parallel_for = ctypes.CFUNCTYPE(None, BODY, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(
        _core.symbol_addresses()["pb_parallel_for"])
    _core.set_num_threads(4)
    def total():
        parts = []
        parallel_for(BODY(lambda c, b, e: parts.append(e - b)), None, 1000, 1)
        return sum(parts)
    assert total() == 1000
"""


def run(code):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(CHILD) + textwrap.dedent(code)],
        timeout=PATIENCE,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")
def test_fork():
    out = run("""
        pid = os.fork()
        assert total() == 1000
        if pid == 0:
            print("child", flush=True)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        print("parent")
    """)
    assert out == "child\nparent\n"


def test_exit_with_sleeping_workers():
    assert run("import time; time.sleep(0.01); print('end')") == "end\n"


@pytest.mark.skipif(
    not hasattr(os, "sched_setaffinity") or len(os.sched_getaffinity(0)) < 2, reason="needs two cores to choose from"
)
def test_late_workers_are_sent_to_other_cores_and_may_come_back():
    script = """
        import ctypes, os, time
        from pullback._ext import _core

        BODY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
        parallel_for = ctypes.CFUNCTYPE(None, BODY, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(
            _core.symbol_addresses()["pb_parallel_for"]
        )
        cores = sorted(os.sched_getaffinity(0))[:2]
        os.sched_setaffinity(0, cores[:1])
        _core.set_num_threads(2)
        parallel_for(BODY(lambda ctx, begin, end: None), None, 8, 1)
        named = {int(task): open(f"/proc/self/task/{task}/comm").read() for task in os.listdir("/proc/self/task")}
        (worker,) = (task for task, name in named.items() if name == "pullback-pool\\n")
        sent = 0

        def body(ctx, begin, end):
            global sent
            if begin == 0:
                os.sched_setaffinity(worker, cores)  # it waits for the core of its caller
            sent += os.sched_getaffinity(worker) == set(cores[1:])
            until = time.perf_counter() + 0.0005
            while time.perf_counter() < until:
                pass

        for _ in range(5000):
            os.sched_setaffinity(worker, cores[:1])
            parallel_for(BODY(body), None, 8, 1)
            if sent:
                break
        assert sent, "no worker was late in 5000 loops, or none was sent elsewhere"
        until = time.perf_counter() + 600
        while os.sched_getaffinity(worker) != set(cores) and time.perf_counter() < until:
            parallel_for(BODY(lambda ctx, begin, end: time.sleep(0.001)), None, 8, 1)
        assert os.sched_getaffinity(worker) == set(cores)
        print("came back")
    """
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=PATIENCE
    )
    assert result.stdout == "came back\n", result.stderr
