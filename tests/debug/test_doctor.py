"""`python -m pullback doctor`: says what is installed, finds nothing wrong here, and names what is."""

from __future__ import annotations

import subprocess
import sys

import pytest
from patience import PATIENCE

import pullback
from pullback import doctor
from pullback.util.switches import switches


def test_command():
    out = subprocess.run([sys.executable, "-m", "pullback", "doctor"], capture_output=True, text=True, timeout=PATIENCE)
    assert out.returncode == 0, out.stdout + out.stderr
    for text in ("pullback  ", "llvm  ", "cpu  ", "blas  ", "threads  ", "compiled programs  ", "ok      loops"):
        assert text in out.stdout
    assert "FAILED" not in out.stdout


def test_what_fails_is_named(monkeypatch):
    def broken():
        raise OSError("no space left")

    monkeypatch.setattr(doctor, "TESTS", (("a thing", broken, "make space"), *doctor.TESTS[3:4]))
    said: list[str] = []
    (found,) = doctor.run_tests(said.append)
    assert found == ("the test of a thing fails: OSError: no space left", "make space")
    assert said[0].startswith("  FAILED  a thing") and said[1].startswith("  ok      loops")


def test_a_wrong_result_fails(monkeypatch):
    monkeypatch.setattr(pullback.numpy, "sin", pullback.numpy.cos)
    assert len(doctor.run_tests(lambda text: None)) >= 1


@pytest.mark.parametrize(("switch", "word"), [("interpret", "PULLBACK_INTERPRET"), ("check", "PULLBACK_CHECK")])
def test_switches_that_make_it_slow(switch, word):
    with switches.set(**{switch: 1}):
        assert any(word in finding.mend for finding in doctor.advice())


def test_more_threads_than_cores():
    before = pullback.get_num_threads()
    try:
        pullback.set_num_threads(500)
        assert any("threads run on" in finding.what for finding in doctor.advice())
    finally:
        pullback.set_num_threads(before)


def test_files_in_the_folders_of_compiled_programs_are_counted(tmp_path):
    from pullback.api.environment import _folder

    (tmp_path / "b1").mkdir()
    (tmp_path / "machine.json").write_bytes(b"12")
    (tmp_path / "b1" / "program").write_bytes(b"345")
    assert _folder(tmp_path) == (2, 5)
    assert _folder(tmp_path / "none") == (0, 0)
