"""The examples of several processes: the same results on 1, 2 and 4, and a fit that goes on where one was killed."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from launching import ROOT, environment, needs_mpi, started
from patience import PATIENCE

from pullback.distributed import launch

pytestmark = needs_mpi


def example(count: int, name: str, *arguments: str, code: int | None = 0) -> str:
    """What an example prints."""
    command = started(count, "-m", f"examples.distributed.{name}", *arguments)
    done = subprocess.run(command, env=environment(), cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE)
    assert code is None or done.returncode == code, done.stdout + done.stderr
    return done.stdout


def numbers(text: str, word: str) -> list[float]:
    """The numbers on lines that begin with a word."""
    lines = [line for line in text.splitlines() if line.startswith(word)]
    assert lines, text
    return [float(x) for line in lines for x in re.findall(r"-?\d+\.\d+(?:e-?\d+)?", line)]


@pytest.mark.parametrize(
    "name, word, arguments, rtol",
    [
        ("pln", "loss", ("--iterations", "40"), 1e-8),
        ("mlp", "loss", (), 1e-5),
        ("water", "heights", ("--size", "64", "--steps", "60"), 1e-5),
        ("attention", "sum", ("--length", "256"), 1e-6),
    ],
)
def test_an_example_gives_the_same_on_any_number_of_processes(name, word, arguments, rtol, tmp_path):
    one, two, four = (numbers(example(count, name, *arguments), word) for count in (1, 2, 4))
    assert one == pytest.approx(two, rel=rtol, abs=1e-6) and one == pytest.approx(four, rel=rtol, abs=1e-6)


def test_a_fit_goes_on_from_its_checkpoint_on_another_number_of_processes(tmp_path):
    arguments = ("--iterations", "30", "--chunk", "10")
    whole = numbers(example(1, "pln", *arguments), "loss")
    kept = ("--checkpoint", str(tmp_path / "state.npz"))
    killed = example(4, "pln", *arguments, *kept, "--fail-at", "2", code=None)
    assert "iteration 20" in killed and "loss" not in killed
    again = example(2, "pln", *arguments, *kept)
    assert "goes on after 20 iterations" in again
    assert numbers(again, "loss") == pytest.approx(whole, rel=1e-8)


def test_launch_draws_the_picture(tmp_path):
    picture = tmp_path / "water.png"
    command = [sys.executable, "-m", "pullback", "launch", "-n", "2", "-m", "examples.distributed.water"]
    command += ["--picture", str(picture), "--size", "32", "--steps", "5"]
    done = subprocess.run(command, env=environment(), cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0 and picture.stat().st_size > 1000, done.stdout + done.stderr


def test_launch_wants_a_number_of_processes(capsys):
    assert launch.launch(["x.py"]) == 2 and "usage" in capsys.readouterr().err
