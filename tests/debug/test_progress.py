"""`pullback.progress`: what loops say of themselves, and what is written."""

from __future__ import annotations

import io
import re
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest
from patience import PATIENCE

import pullback as pb
import pullback.numpy as jnp
from pullback import lax
from pullback._ext import _core
from pullback.api import progress_bar
from pullback.util.switches import switches

N = 1 << 21  # steps of a few operations: long enough that a loop asks for Ctrl-C
pytestmark = pytest.mark.skipif(bool(switches.interpret), reason="the interpreter of loop nests has no native loops")


def scan(f, x, n=N):
    return lax.scan(lambda c, i: (f(c, i), ()), x, None, length=n)[0]


def step(c, _=None):
    return jnp.cos(c) * 0.5 + 0.1 * c[..., ::-1]


def told(f, *args):
    """[(number of the loop, steps done, all steps)] of the loops of a call, by a thread that looks all the time."""
    found = {}
    ended = threading.Event()

    def look():
        while not ended.is_set():
            note()

    def note():
        run, loop, done, steps, _, name = _core.read_progress()
        if run != first:
            found[run] = (loop, max(done, found.get(run, (0, 0))[1]), steps)
            if name:
                names.add(name)

    names = set()
    first = _core.read_progress()[0]
    _core.watch_progress(True)
    thread = threading.Thread(target=look)
    thread.start()
    try:
        f(*args)
    finally:
        ended.set()
        thread.join()
        note()
        _core.watch_progress(False)
    return list(found.values()), names


def newton(x):
    """Steps until something is found, which it is not."""
    return lax.while_loop(lambda s: (s[0] < N) & (s[1][0] < 9), lambda s: (s[0] + 1, step(s[1])), (0, x))


def counted(x):
    return lax.while_loop(lambda s: s[0] < N, lambda s: (s[0] + 1, step(s[1])), (0, x))


X = np.linspace(0.1, 1.0, 4, dtype=np.float32)
LOOPS = {
    "scan": (lambda x: scan(step, x), X, N),
    "fori": (lambda x: lax.fori_loop(0, N, lambda i, c: step(c), x), X, N),
    "while": (newton, X, 0),
    "while up to a known number": (counted, X, N),
    "fori of unknown length": (lambda x: lax.fori_loop(0, x[0].astype(int) + N, lambda i, c: step(c), x), X, 0),
    "vmap": (pb.vmap(lambda x: scan(step, x, N // 8)), np.ones((8, 4), np.float32), N // 8),
    "vmap of while": (pb.vmap(newton), np.ones((3, 4), np.float32), 0),
    "elements that do not meet": (lambda x: scan(lambda c, _: jnp.sin(c) * 0.5, x), np.ones(32, np.float32), N),
    "two loops in turn": (lambda x: scan(step, scan(step, x).sum() + x), X, N),
    "gradient": (pb.grad(lambda x: scan(step, x, N // 16).sum()), X, N // 16),
    "nested": (lambda x: scan(lambda c, _: scan(step, c, 1 << 12), x, 300), X, 300),
    "in a branch": (lambda x: lax.cond(x[0] > 0, lambda x: scan(step, x), lambda x: x, x), X, N),
}


@pytest.mark.parametrize("name", LOOPS)
def test_what_loops_say(name):
    f, x, steps = LOOPS[name]
    found, names = told(pb.jit(f).lower(x).compile(), x)
    loop, done, known = found[-1]
    assert known == steps
    assert done == (steps or N)
    assert loop == (2 if name in ("two loops in turn", "gradient") else 1)
    assert len(found) <= 2
    assert len(names) <= 1  # it is known while the program runs


def test_eager_loops_and_devices():
    found, _ = told(lambda: lax.fori_loop(0, N, lambda i, c: step(c), X))
    assert found == [(1, N, N)]
    f = pb.pmap(lambda x: scan(step, x))
    assert told(f, X[None])[0][-1] == (1, N, N)


def test_short_loops_and_loops_that_nobody_watches_say_nothing():
    f = pb.jit(lambda x: scan(step, x, 100))
    assert told(f, X) == ([], set())
    before = _core.read_progress()
    pb.jit(lambda x: scan(step, x))(X)
    assert _core.read_progress() == before


def test_a_program_is_the_same_whether_it_is_watched_or_not():
    traces = []

    @pb.jit
    def f(x):
        traces.append(1)
        return scan(step, x, 1 << 18)

    plain = f(X)
    with pb.progress(style="log", file=io.StringIO()):
        watched = f(X)
    assert len(traces) == 1 and f._cache_size() == 1
    np.testing.assert_array_equal(plain, watched)


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def at_once(monkeypatch):
    monkeypatch.setattr(progress_bar, "DELAY", 0.0)


def watched(call, make=io.StringIO, **options):
    """What is written while a call runs. Who looks may be kept from running as long as a loop takes, and then there is
    no bar: what ends without one is done again.
    """
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        file = make()
        pb.progress(every=0.005, file=file, **options)(call)(file)
        if file.getvalue():
            break
    return file.getvalue()


LINE = r"(train|all): +\d+% \d+/(\d+) \[\d+:\d\d<(\d+:\d\d|\?), \S+ s(teps/s|/step)\]"


@pytest.mark.parametrize("style", ["log", "line"])
def test_what_is_written(at_once, style):
    @pb.jit
    def train(x):
        return scan(step, x, 8 * N)

    text = watched(lambda _: train(X), Terminal if style == "line" else io.StringIO, style=style)
    assert text.endswith("\n")
    lines = [line.strip() for line in re.split(r"[\r\n]", text) if line]
    assert len(lines) >= 2
    assert all(re.fullmatch(LINE, line) for line in lines), lines
    assert lines[-1].startswith(f"train: 100% {8 * N}/{8 * N}")
    if style == "line":
        assert text.count("\n") == 1


def test_as_decorator_with_the_steps_that_are_expected(at_once):
    run = pb.jit(newton)

    def call(file):
        with pb.progress(file=file):  # the outer one has the bar
            run(X)

    last = watched(call, description="all", total=2 * N).splitlines()[-1]
    assert re.fullmatch(LINE, last) and last.startswith(f"all:  50% {N}/{2 * N}")


def test_an_error_ends_the_line(at_once):
    def check(x):
        if x > 3:
            raise RuntimeError("enough")
        return x

    def body(c, i):
        lax.cond(i == 900, lambda c: pb.debug.callback(check, c[0] + 9), lambda c: None, c)
        return scan(step, c, 1 << 12), ()

    run = pb.jit(lambda x: lax.scan(body, x, jnp.arange(1000)))

    def call(_):
        with pytest.raises(Exception, match="enough"):
            run(X)[0].block_until_ready()

    text = watched(call, Terminal, style="line")
    assert text.endswith("\n")
    assert "100%" not in text
    assert not any(thread.name == "pullback-progress" for thread in threading.enumerate())


def test_interrupted():
    program = """
        import os, signal, threading, time
        import pullback as pb, pullback.numpy as jnp
        import pullback._ext._core
        from pullback.api import progress_bar
        progress_bar.DELAY = 0.0
        f = pb.jit(lambda x: pb.lax.fori_loop(0, 2 * 10**9, lambda i, c: jnp.cos(c) * 0.5 + 0.1 * c[::-1], x))

        def press():
            while not (progress_bar._shown and progress_bar._shown._bar and progress_bar._shown._bar._width):
                time.sleep(0.01)  # until there is a bar
            os.kill(os.getpid(), signal.SIGINT)

        threading.Thread(target=press).start()
        try:
            with pb.progress(style="line"):
                f(jnp.ones(4))
        except KeyboardInterrupt:
            print("interrupted")
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, timeout=PATIENCE, check=False
    )
    assert done.stdout == b"interrupted\n", done.stderr
    assert done.stderr.endswith(b"\n") and done.stderr.startswith(b"\r") and done.stderr.count(b"\n") == 1


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        ({"description": 3}, TypeError, "'description' must be a string"),
        ({"total": "many"}, TypeError, "'total' must be a number of steps"),
        ({"total": 0}, ValueError, "'total' must be at least 1"),
        ({"style": "fancy"}, ValueError, "'style' must be 'tqdm', 'line', 'log' or None"),
        ({"every": 0}, ValueError, "'every' must be above 0"),
        ({"every": "1"}, TypeError, "'every' must be a number of seconds"),
        ({"file": "log.txt"}, TypeError, "'file' must be a text file"),
    ],
)
def test_wrong_arguments(given, error, text):
    with pytest.raises(error, match=text):
        pb.progress(**given)


def test_tqdm(at_once):
    pytest.importorskip("tqdm", reason="an optional dependency")
    run = pb.jit(lambda x: scan(step, x, 4 * N))
    last = watched(lambda _: run(X), Terminal, description="fit", style="tqdm").rstrip().split("\r")[-1]
    assert last.startswith("fit: 100%") and "step/s" in last


def test_rates_of_tqdm_count_from_the_first_step_that_was_seen():
    """The bar is made later, when it is known that the loop takes long."""
    pytest.importorskip("tqdm", reason="an optional dependency")
    bar = progress_bar._TqdmBar("fit", 100, 10, time.perf_counter() - 500, Terminal(), 0.1)
    bar.show(20, time.perf_counter())
    rate = bar._bar.format_dict["rate"]
    bar.close(False)
    assert 0.01 < rate < 0.021  # 10 steps in 500 s, and what this test takes
