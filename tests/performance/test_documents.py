"""`python -m benchmarks documents`: sections are measured in processes of their own, kept, and become one page; the
page is made of whatever is known."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks import timing
from benchmarks.documents import command, section
from benchmarks.timing import Figures, fastest
from patience import PATIENCE

ROOT = Path(__file__).parents[2]
PROGRAMS = {
    "F1": command.arrays.programs(quick=True),
    "F2": command.derivatives.programs(20),
    "F3": command.layers.programs(quick=True),
    "F5": command.samples.programs(10),
    "F6": command.sums.programs(),
    "F7": command.radii.programs(4),
    "F9": command.compared.programs(quick=True),
}
NAMES = {key: [p.name for p in programs] for key, programs in PROGRAMS.items()} | {"F4": list(command.pln.pln.LEVELS)}
SIDES = ("pullback", "jax", "numpy", "torch", "torch.compile", "autograd")


def part(key: str, figures: list[Figures], complete: bool = True) -> dict:
    """What is kept of a section."""
    return {
        "figures": [f.as_json() for f in figures],
        "complete": complete,
        "why": "not done after 9 s",
        "quick": False,
        "versions": {"cores": "2", "processor": "a machine", "JAX": "0.10.2"},
    }


def measured(key: str, ours: float) -> list[Figures]:
    """Figures of all programs: pullback takes so many seconds, the peers 2 ms, 3 ms, ..."""
    seconds = {"pullback": ours} | {side: 1e-3 * k for k, side in enumerate(SIDES[1:], 2)}
    return [Figures(key, name, seconds=dict(seconds), first=dict(seconds), values={"jax": -1.0}) for name in NAMES[key]]


def test_without_peers(tmp_path):
    """Two small sections, measured for what is there; a second run resumes."""
    options = [
        "--quick",
        "--rounds",
        "1",
        "--only",
        "F5,F6",
        "--folder",
        str(tmp_path),
        "--json",
        str(tmp_path / "f.json"),
    ]
    run = [sys.executable, "-m", "benchmarks", "documents", *options]
    done = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    known = json.loads((tmp_path / "f.json").read_text())
    assert all(set(f["seconds"]) & {"pullback", "C"} for key in ("F5", "F6") for f in known[key]["figures"])
    text = (tmp_path / "documents.md").read_text()
    assert "| jitted |" in text and "Not measured yet: `python -m benchmarks documents --only F1`." in text
    again = subprocess.run([*run, "--resume"], cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert again.returncode == 0 and "programs in" not in again.stderr
    assert (tmp_path / "documents.md").read_text() == text


def test_the_page_is_made_of_what_was_measured(tmp_path):
    pytest.importorskip("matplotlib", reason="the pictures")
    fast = command.document({key: part(key, measured(key, 1e-3)) for key in command.SECTIONS}, tmp_path)
    assert fast.count("## F") == len(command.SECTIONS)
    assert "Machine: 2 cores of a machine; JAX 0.10.2." in fast
    assert "Jitted, it takes 0.25 times PyTorch's time, and JAX takes 2.00 to 2.00 times" in fast
    assert "Nothing of the table is more than a tenth slower than NumPy." in fast
    assert "Nowhere by more than 5%" in fast
    for picture in (command.arrays.PICTURE, command.layers.PICTURE, command.radii.PICTURE):
        assert f"({picture})" in fast
        assert (tmp_path / picture).read_bytes().startswith(b"\x89PNG")

    slow = command.document({key: part(key, measured(key, 1.0)) for key in command.SECTIONS}, tmp_path)
    assert "JAX takes 0.00 to 0.00 times" in slow
    assert "programs take more than 1.05 times the time of the fastest peer" in slow
    assert "| F5, jitted" in slow.split("## Where pullback is behind")[1]


@pytest.mark.parametrize("key", sorted(NAMES))
def test_failures_are_named(key, tmp_path):
    """A section that was interrupted, and in which JAX failed, still has its text."""
    figures = measured(key, 1e-3)[: max(1, len(NAMES[key]) // 2)]
    for f in figures:
        del f.seconds["jax"]
        f.failed["jax"] = "RuntimeError: the wind"
    text = command.document({key: part(key, figures, complete=False)}, tmp_path)
    assert "(Incomplete: not done after 9 s.)" in text
    assert "the wind" in text


def test_what_does_not_fit_is_a_gap(tmp_path, monkeypatch):
    """By the plan of the compiled program, before it runs."""
    layers = command.layers
    monkeypatch.setattr(layers, "MEMORY", 2000)
    chosen = [p for p in layers.programs(quick=True) if p.name.endswith("n = 10, p = 10, o = 10")]
    figures = list(section.run("F3", chosen, ("pullback",), section.Setting(True, 1, None)))
    assert [f.failed.get("pullback", "").startswith("MemoryError") for f in figures] == [True] * 5
    assert "'timed' is the number of cells, of 1" in "\n".join(layers.render(figures, tmp_path))


def test_cells_that_would_take_long_are_not_begun():
    """Time grows at least as the Jacobian does, but for the overhead of calls."""
    assert not command.layers.is_slow([], 10**9)
    assert not command.layers.is_slow([(10, 1e-3)], 10**9)
    assert not command.layers.is_slow([(100, 0.1), (10, 1e-6)], 1000)
    assert command.layers.is_slow([(100, 0.3), (10, 1e-6)], 1000)
    assert not command.layers.is_slow([(1000, 30.0)], 100)


def test_a_program_that_no_side_is_asked_for():
    figures = timing.measure("F3", command.layers.programs(quick=True)[0], [], None, 1)
    assert figures.seconds == figures.failed == {}


def test_spread():
    assert section.spread([2.0, 8.0, None]) == "2.00 to 8.00 times (4.00 in the geometric mean)"
    assert section.spread([30.0]) == "30 times"
    assert section.spread([None]) == "an unknown number of times"


def test_fastest():
    """Calls are made in turns, and the faster one is found."""
    made = []
    seconds = fastest({"short": lambda: made.append("short"), "long": lambda: sum(range(10_000))}, rounds=2)
    assert seconds["short"] < seconds["long"]
    assert len(made) > 10
