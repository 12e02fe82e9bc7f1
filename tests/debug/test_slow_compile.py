"""What took long to compile is said on a terminal, and nowhere else."""

from __future__ import annotations

import io
import sys

import pytest

import pullback as pb
from pullback.util.logs import say_slow
from pullback.util.switches import switches


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("stream", "limit", "seconds", "said"),
    [(Terminal, 2.0, 2.5, True), (Terminal, 2.0, 1.9, False), (Terminal, 0, 99, False), (io.StringIO, 2.0, 99, False)],
)
def test_who_is_told(monkeypatch, stream, limit, seconds, said):
    monkeypatch.setattr(sys, "stderr", stream())
    with switches.set(slow_compile=limit):
        say_slow("step", seconds)
    text = sys.stderr.getvalue()
    assert (text == f"pullback: compiled step in {seconds:.1f} s (PULLBACK_SLOW_COMPILE=0 hides this)\n") == said
    assert said or text == ""


def test_a_compilation_says_so(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    with switches.set(slow_compile=1e-9):
        pb.jit(lambda x: pb.numpy.tanh(x) * 1.2345678)(pb.numpy.ones(77))
    assert "compiled <lambda> in" in sys.stderr.getvalue()
