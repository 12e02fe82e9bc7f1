"""What took long to compile is said on a terminal, and nowhere else."""

from __future__ import annotations

import io
import re
import sys
import threading
import time

import pytest
from patience import PATIENCE

import pullback as pb
from pullback.util.logs import saying_slow
from pullback.util.switches import switches


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("stream", "limit", "said"),
    [(Terminal, 0.01, True), (Terminal, 60.0, False), (Terminal, 0, False), (io.StringIO, 0.01, False)],
)
def test_who_is_told(monkeypatch, stream, limit, said):
    to = stream()
    monkeypatch.setattr(sys, "stderr", to)
    with switches.set(slow_compile=limit), saying_slow("step"):
        until = time.monotonic() + (PATIENCE if said else 0.02)
        while not to.getvalue() and time.monotonic() < until:
            time.sleep(0.002)
        before = to.getvalue()
    assert before == "pullback: still compiling step after 0.01 s (PULLBACK_SLOW_COMPILE=0 hides this)\n" * said
    assert re.fullmatch(r"pullback: compiled step in \d+\.\d+ s.*\n" * said, to.getvalue().removeprefix(before))


def test_lines_are_whole_and_in_order(monkeypatch):
    writes, begun = [], threading.Event()

    class Slow(Terminal):
        def write(self, text):
            if "still" in text:
                begun.set()
                time.sleep(0.05)  # the compilation ends meanwhile
            writes.append(text)

    monkeypatch.setattr(sys, "stderr", Slow())
    with switches.set(slow_compile=0.01), saying_slow("step"):
        begun.wait(PATIENCE)
    assert [text.split()[1] for text in writes] == ["still", "compiled"]
    assert all(text.endswith("\n") for text in writes)


def test_a_compilation_says_so(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "stderr", Terminal())
    with switches.set(slow_compile=1e-9, cache_dir=str(tmp_path)):  # where it is not found
        pb.jit(lambda x: pb.numpy.tanh(x) * 1.2345678)(pb.numpy.ones(77))
    assert "compiled <lambda> in" in sys.stderr.getvalue()
