import ctypes
import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import weakref

import numpy as np
import pytest
from patience import PATIENCE

from pullback._ext import _core
from pullback.util.errors import JaxRuntimeError


def test_runs(program, aval, array):
    kind = aval((), "float32")
    e = program(program.add_one, (kind,), (kind,), name="add_one")
    (y,) = e.call([array(2.0)])
    assert float(y) == 3.0 and y.aval is kind and y.unsafe_buffer_pointer() % 64 == 0
    assert float(e((array(4.0),))[0]) == 5.0
    assert e.in_avals == e.out_avals == (kind,) and e.name == "add_one" and e.arena_bytes == 0 and e.address
    assert repr(e) == "<Executable 'add_one': 1 inputs, 1 outputs, 0 constants>"


def test_inputs_are_checked(program, aval, array):
    e = program(program.add_one, (aval(()),), (aval(()),), name="p")
    for bad, text in (
        ([], "takes 1 inputs; got 0"),
        (["1"], "expected an Array"),
        ([1], "expected an Array"),
        ([array([1.0])], r"is float32\[1\]; expected float32\[\]"),
        ([array(1, "int32")], r"is int32\[\]; expected"),
        (3, "not iterable"),
    ):
        with pytest.raises(TypeError, match=text):
            e.call(bad)
    assert float(e.call([1.5])[0]) == 2.5
    assert float(e.call([array(1.0, weak_type=True)])[0]) == 2.0  # a weak type has the same layout
    dead = array(1.0)
    dead.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        e.call([dead])
    with pytest.raises(TypeError):
        e(array(1.0), 2)


def test_bad_construction(aval, array):
    kind, wide = aval(()), aval((2,))
    make = _core.Executable
    for args, options, error in [
        ((0, (), ()), {}, ValueError),
        (("f", (), ()), {}, TypeError),
        ((1, 3, ()), {}, TypeError),
        ((1, (object(),), ()), {}, AttributeError),
        ((1, (), (), -1), {}, ValueError),
        ((1, (), ()), {"nonsense": 1}, TypeError),
        ((1, (), (), 0, None, (1.0,)), {}, TypeError),
        ((1, (kind,), (kind,)), {"forward": (1,)}, ValueError),
        ((1, (kind,), (kind,)), {"forward": ()}, ValueError),
        ((1, (wide,), (kind,)), {"forward": (0,)}, ValueError),
        ((1, (kind,), (kind,)), {"alias": (0,)}, ValueError),
        ((1, (kind,), (kind,)), {"donate": (1,)}, ValueError),
        ((1, (kind,), (kind, kind)), {"donate": (0,), "alias": (0, 0)}, ValueError),
        ((1, (kind,), (kind, kind)), {"donate": (0,), "alias": (0, -1), "forward": (-1, 0)}, ValueError),
        ((1, (), ()), {"host_calls": (print,)}, TypeError),
        ((1, (), ()), {"host_calls": ((print, -1),)}, TypeError),
    ]:
        with pytest.raises(error):
            make(*args, **options)


def test_constants_and_arena(program, aval, array):
    kind = aval((), "float32")
    body = (
        program.pointers(2, 1)
        + """
        %a = load float, ptr %in0
        %b = load float, ptr %in1
        %c = fmul float %a, %b
        store float %c, ptr %arena
        %d = load float, ptr %arena
        store float %d, ptr %out0
        ret i32 0"""
    )
    constant = array(10.0)
    e = program(body, (kind,), (kind,), arena_bytes=1000, constants=(constant,))
    assert [float(e.call([array(float(i))])[0]) for i in range(5)] == [0, 10, 20, 30, 40]
    assert e.constants == (constant,)
    in_use = _core.memory_stats()["bytes_in_use"]
    e.call([array(1.0)])
    assert _core.memory_stats()["bytes_in_use"] == in_use
    constant.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        e.call([array(1.0)])


def test_no_inputs_no_outputs_and_empty_arrays(program, aval, array):
    assert program("ret i32 0", (), ()).call([]) == []
    (y,) = program("ret i32 0", (aval((0, 3)),), (aval((3, 0)),)).call([array(np.zeros((0, 3)))])
    assert y.shape == (3, 0)


def test_many_inputs(program, aval, array):
    n = 200
    kind = aval((), "float32")
    e = program("ret i32 0", (kind,) * n, (kind,) * n, forward=tuple(reversed(range(n))))
    xs = [array(float(i)) for i in range(n)]
    assert [float(y) for y in e.call(xs)] == [float(i) for i in reversed(range(n))]


def test_forwarded_outputs(program, aval, array):
    kind, weak = aval((2,), "float32"), aval((2,), "float32", True)
    null = program.pointers(1, 1) + "%n = ptrtoint ptr %out0 to i32\nret i32 %n"  # fails unless the address is null
    constant = array([5.0, 6.0])
    e = program(null, (kind,), (weak, kind), constants=(constant,), forward=(0, 1))
    x = array([1.0, 2.0])
    y, c = e.call([x])
    assert y is not x and y.weak_type and y.unsafe_buffer_pointer() == x.unsafe_buffer_pointer()
    assert c.unsafe_buffer_pointer() == constant.unsafe_buffer_pointer()
    x.delete()
    assert y.tolist() == [1.0, 2.0]


def test_donation(program, aval, array):
    kind = aval((), "float32")
    e = program(program.add_one, (kind,), (kind,), donate=(0,), alias=(0,))
    x = _core.zeros(kind)
    address = x.unsafe_buffer_pointer()
    (y,) = e.call([x])
    assert x.is_deleted() and y.unsafe_buffer_pointer() == address and float(y) == 1.0
    # memory that somebody else sees is not overwritten
    x = _core.zeros(kind)
    view = np.asarray(x)
    (y,) = e.call([x])
    assert x.is_deleted() and float(y) == 1.0 and float(view) == 0.0
    two = program(program.add_one, (kind, kind), (kind,), donate=(0,), alias=(0,))
    x = _core.zeros(kind)
    with pytest.raises(JaxRuntimeError, match="donated twice"):
        two.call([x, x])
    assert not x.is_deleted() and float(two.call([x, _core.zeros(kind)])[0]) == 1.0 and x.is_deleted()
    # donated without a taker
    plain = program(program.add_one, (kind,), (kind,), donate=(0,))
    x = array(1.0)
    assert float(plain.call([x])[0]) == 2.0 and x.is_deleted()


def test_failure_code(program, aval):
    e = program("ret i32 7", (), (aval(()),), name="broken")
    in_use = _core.memory_stats()["bytes_in_use"]
    with pytest.raises(RuntimeError, match="program 'broken' failed with code 7"):
        e.call([])
    assert _core.memory_stats()["bytes_in_use"] == in_use
    with pytest.raises(KeyboardInterrupt):
        program("ret i32 2", (), ()).call([])


# ---- calls into Python

HOST_CALL = "declare i32 @pb_host_call_index(i64, ptr)\ndeclare i32 @pb_host_call(ptr, ptr)"


def host_program(program, aval, function, **options):
    body = """
        %pair = alloca ptr, i64 2
        %in0 = load ptr, ptr %in
        %out0 = load ptr, ptr %out
        store ptr %in0, ptr %pair
        %second = getelementptr ptr, ptr %pair, i64 1
        store ptr %out0, ptr %second
        %code = call i32 @pb_host_call_index(i64 0, ptr %pair)
        ret i32 %code"""
    kind = aval((), "float32")
    return program(body, (kind,), (kind,), HOST_CALL, host_calls=((function, 2),), **options)


def as_float(address):
    return ctypes.c_float.from_address(address)


def test_host_call(program, aval, array):
    def function(addresses):
        source, target = addresses
        as_float(target).value = as_float(source).value * 2
        assert not _core.is_tracing()

    assert float(host_program(program, aval, function).call([array(4.0)])[0]) == 8.0


def test_host_call_errors(program, aval, array):
    def fail(addresses):
        raise LookupError("from the callback")

    e = host_program(program, aval, fail)
    for _ in range(3):
        with pytest.raises(LookupError, match="from the callback") as caught:
            e.call([array(1.0)])
        assert any(frame.name == "fail" for frame in caught.traceback)
    index = program("%c = call i32 @pb_host_call_index(i64 5, ptr null)\nret i32 %c", (), (), HOST_CALL)
    with pytest.raises(RuntimeError, match="code 3"):
        index.call([])


def test_host_calls_nest(program, aval, array):
    def outer(addresses):
        source, target = addresses
        if as_float(source).value <= 0:
            raise ValueError("bottom")
        as_float(target).value = float(e.call([array(as_float(source).value - 1)])[0])

    e = host_program(program, aval, outer)
    with pytest.raises(ValueError, match="bottom"):
        e.call([array(5.0)])


def test_host_call_by_record(program, aval):
    seen = []
    record = _core.register_host_call(seen.append, 0)
    body = f"%c = call i32 @pb_host_call(ptr inttoptr (i64 {record} to ptr), ptr null)\nret i32 %c"
    program(body, (), (), HOST_CALL, release_gil=True).call([])
    program(body, (), (), HOST_CALL).call([])
    assert seen == [(), ()]
    _core.release_host_call(record)
    with pytest.raises(ValueError, match="not the address of a registered call"):
        _core.release_host_call(record)
    for bad in ((3, 1), (print, -1), (print, "a")):
        with pytest.raises(TypeError):
            _core.register_host_call(*bad)


PARALLEL_HOST_CALL = (
    HOST_CALL
    + """
declare void @pb_parallel_for(ptr, ptr, i64, i64)
define void @body(ptr %ctx, i64 %begin, i64 %end) {
    %code = call i32 @pb_host_call_index(i64 0, ptr null)
    ret void
}"""
)


def test_host_calls_from_the_threads_of_a_loop(program):
    before = _core.num_threads()
    _core.set_num_threads(4)
    try:
        threads, others = set(), threading.Event()

        def function(addresses):
            threads.add(threading.get_ident())
            if len(threads) > 1:
                others.set()
            others.wait(PATIENCE)  # the first one, for the others' part of the loop

        body = "call void @pb_parallel_for(ptr @body, ptr null, i64 16, i64 1)\nret i32 0"
        program(body, (), (), PARALLEL_HOST_CALL, host_calls=((function, 0),)).call([])
        assert len(threads) > 1

        def fail(addresses):
            raise ValueError("in a worker")

        raised = []
        before_hook, sys.unraisablehook = sys.unraisablehook, lambda info: raised.append(info.exc_value)
        try:
            with pytest.raises(ValueError, match="in a worker"):
                body = "call void @pb_parallel_for(ptr @body, ptr null, i64 16, i64 1)\nret i32 1"
                program(body, (), (), PARALLEL_HOST_CALL, host_calls=((fail, 0),)).call([])
        finally:
            sys.unraisablehook = before_hook
        assert all(isinstance(e, ValueError) for e in raised)
    finally:
        _core.set_num_threads(before)


# ---- the GIL, deletion meanwhile, interruption


def test_gil_is_released(program, aval, array):
    # The program says that it runs, and waits until another Python thread has written to its input.
    body = (
        program.pointers(2, 1)
        + """
        store atomic i32 1, ptr %in1 release, align 4
        br label %wait
    wait:
        %x = load atomic i32, ptr %in0 acquire, align 4
        %still = icmp eq i32 %x, 0
        br i1 %still, label %wait, label %done
    done:
        store i32 %x, ptr %out0
        ret i32 0"""
    )
    kind = aval((), "int32")
    e = program(body, (kind, kind), (kind,), release_gil=True)
    (x, memory), (flag, runs) = _core.writable(kind), _core.writable(kind)
    memory[...] = runs[...] = 0

    def write():
        while not runs[()]:
            time.sleep(0.001)
        x.delete()  # the program must be able to go on reading
        memory[...] = 5

    writer = threading.Thread(target=write)
    writer.start()
    (y,) = e.call([x, flag])
    writer.join()
    assert int(y) == 5 and x.is_deleted()


FOREVER = """
loop:
  %stop = call i32 @pb_interrupt_pending()
  %go = icmp eq i32 %stop, 0
  br i1 %go, label %loop, label %done
done:
  ret i32 2"""
FOREVER = "br label %loop\n" + FOREVER


def check_interrupted(call):
    """Ctrl-C from another process, as this one may hold the GIL, a tenth of a second after the call has begun."""
    command = ["sh", "-c", f"read begun; sleep 0.1; kill -INT {os.getpid()}"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as sender, pytest.raises(KeyboardInterrupt):
        os.write(sender.stdin.fileno(), b"\n")
        call()


@pytest.mark.parametrize("release_gil", [False, True])
def test_interrupt(program, release_gil):
    e = program(FOREVER, (), (), "declare i32 @pb_interrupt_pending()", interruptible=True, release_gil=release_gil)
    handler = signal.getsignal(signal.SIGINT)
    for _ in range(2):
        check_interrupted(lambda: e.call([]))
    assert signal.getsignal(signal.SIGINT) is handler
    with pytest.raises(KeyboardInterrupt):  # and Python's own handling is as before
        signal.raise_signal(signal.SIGINT)
        time.sleep(1)


def test_a_run_apart(program, aval, array):
    # The caller is told at once; the run, which asks, ends then, and what it had is freed.
    e = program(FOREVER, (aval((1000,), "float32"),), (aval((1000,), "float32"),),
                "declare i32 @pb_interrupt_pending()", apart=True)  # fmt: skip
    x = array(np.zeros(1000, np.float32))
    in_use = _core.memory_stats()["bytes_in_use"]
    for _ in range(3):
        check_interrupted(lambda: e.call([x]))
    until = time.monotonic() + PATIENCE
    while _core.memory_stats()["bytes_in_use"] != in_use and time.monotonic() < until:
        time.sleep(0.01)
    assert _core.memory_stats()["bytes_in_use"] == in_use
    # One that ends by itself gives its results, or its error.
    kinds = aval((), "float32"), aval((4,), "float32")
    add = program(
        program.pointers(2, 1)
        + """
        %a = load float, ptr %in0
        %b = load float, ptr %in1
        %c = fadd float %a, %b
        store float %c, ptr %out0
        ret i32 0""",
        kinds,
        kinds[:1],
        apart=True,
    )
    assert float(add.call([2.0, array(np.ones(4, np.float32))])[0]) == 3.0
    with pytest.raises(RuntimeError, match="failed with code 7"):
        program("ret i32 7", (), (), apart=True).call([])


def test_own_signal_handler_is_heard(program):
    heard = []

    def handler(number, frame):
        heard.append(number)
        if len(heard) == 2:
            raise RuntimeError("stop")

    before = signal.signal(signal.SIGINT, handler)
    try:
        e = program(FOREVER, (), (), "declare i32 @pb_interrupt_pending()", interruptible=True, release_gil=True)

        def press():
            for k in range(2):
                while len(heard) < k:  # two signals that come at once are one
                    time.sleep(0.001)
                time.sleep(0.05)
                os.kill(os.getpid(), signal.SIGINT)

        thread = threading.Thread(target=press)
        thread.start()
        with pytest.raises(RuntimeError, match="stop"):
            e.call([])
        thread.join()
        assert heard == [signal.SIGINT] * 2
    finally:
        signal.signal(signal.SIGINT, before)


def test_no_interrupt_elsewhere(program):
    once = "%s = call i32 @pb_interrupt_pending()\nret i32 %s"
    e = program(once, (), (), "declare i32 @pb_interrupt_pending()", interruptible=True)
    assert e.call([]) == []
    results = []
    thread = threading.Thread(target=lambda: results.append(e.call([])))
    thread.start()
    thread.join()
    assert results == [[]]


@pytest.mark.parametrize("kind", ["plain", "host call"])
def test_exit_while_a_daemon_thread_computes(kind):
    code = textwrap.dedent(f"""
        import sys, threading, time
        sys.path.insert(0, {os.path.dirname(os.path.dirname(__file__))!r})
        import conftest
        from pullback._ext import _core
        declarations = "declare i32 @pb_host_call_index(i64, ptr)"
        call = "%c = call i32 @pb_host_call_index(i64 0, ptr null)\\nret i32 %c"
        body = call if {kind!r} == "host call" else "ret i32 0"
        address, owner = conftest.compile_ir(body, declarations)
        e = _core.Executable(address, (), (), keepalive=owner, release_gil=True, host_calls=((lambda a: None, 0),))
        def forever():
            while True:
                e.call([])
        for _ in range(3):
            threading.Thread(target=forever, daemon=True).start()
        time.sleep(0.05)
    """)
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", code], timeout=PATIENCE, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr


# ---- life times


def test_what_is_kept_alive(program, aval, array):
    class Owner:
        pass

    owner = Owner()
    address, code = program(program.add_one, (aval(()),), (aval(()),)).address, None
    del code
    e = _core.Executable(address, (aval(()),), (aval(()),), keepalive=owner)
    reference = weakref.ref(owner)
    owner.cycle = e
    del owner
    gc.collect()
    assert reference() is not None and reference().cycle is e
    dead = weakref.ref(e)
    del e
    gc.collect()
    assert reference() is None and dead() is None


def test_host_call_functions_can_be_in_cycles(program, aval):
    holder = {}
    e = host_program(program, aval, lambda addresses: holder)
    holder["self"] = e
    dead = weakref.ref(e)
    e = holder = None
    gc.collect()
    assert dead() is None
