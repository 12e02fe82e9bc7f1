"""What took long to compile is said on a terminal, and nowhere else."""

from __future__ import annotations

import io
import sys
import time

import pytest

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
        until = time.monotonic() + (5 if said else 0.02)
        while not to.getvalue() and time.monotonic() < until:
            time.sleep(0.002)
        before = to.getvalue()
    assert before == "pullback: still compiling step after 0.01 s (PULLBACK_SLOW_COMPILE=0 hides this)\n" * said
    assert to.getvalue().startswith(before + "pullback: compiled step in 0." * said)
    assert said or to.getvalue() == ""


def test_a_compilation_says_so(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    with switches.set(slow_compile=1e-9):
        pb.jit(lambda x: pb.numpy.tanh(x) * 1.2345678)(pb.numpy.ones(77))
    assert "compiled <lambda> in" in sys.stderr.getvalue()
