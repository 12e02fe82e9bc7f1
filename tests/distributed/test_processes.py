"""Programs of several processes, by mpiexec: arrays, collectives, and what happens when a process fails."""

from __future__ import annotations

import re
import signal
import subprocess
import sys

import pytest
from launching import HERE, MPIEXEC, environment, launch, needs_mpi, succeed
from patience import PATIENCE

import pullback as jax

pytestmark = needs_mpi

TWO_DEVICES = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2"}


@pytest.mark.parametrize("count, more", [(1, {}), (2, {}), (4, {}), (2, TWO_DEVICES)])
def test_arrays_of_several_processes(count, more):
    assert succeed(count, "global_arrays.py", **more).count("done") == count


@pytest.mark.parametrize("count, more", [(2, {}), (4, {}), (2, TWO_DEVICES)])
def test_collectives(count, more):
    lines = succeed(count, "collectives.py", **more)
    assert len(lines) == count and len(set(lines)) == 1  # the same bits on all


@pytest.mark.parametrize("count", [3, 17])
def test_sums_of_many_processes(count):
    assert succeed(count, "rounds.py") == ["done"] * count


@pytest.mark.parametrize("more", [{}, TWO_DEVICES])
def test_work_beside_large_operations(more):
    lines = succeed(2, "overlap.py", "2", "1", **more)
    assert len(lines) == 2 and len({line.split("seconds")[0] for line in lines}) == 1


def errors(what: str, *more: str, count: int = 2, **seen: str) -> dict[int, str]:
    """The errors that processes print, by their numbers; the program must fail, in time."""
    done = launch(count, "faults.py", what, *more, **seen)
    assert done.returncode != 0, done.stdout + done.stderr
    assert "is well" not in done.stdout
    return {int(m[1]): m[2] for m in re.finditer(r"^process (\d+) after [\d.]+ s: (.*)$", done.stdout, re.M)}


def test_an_exception_on_one_process_reaches_all():
    found = errors("exception", count=3)
    assert found[2] == "ArithmeticError: the loss is nan"
    assert found[0] == found[1] == "RuntimeError: distributed: process 2 ended with ArithmeticError: the loss is nan"


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("after another hook", "ArithmeticError: the loss is nan"),
        ("whose text raises", "NoText: (its text raised KeyError)"),
        ("whose text no file takes", r"ArithmeticError: \ud800 \0"),
    ],
)
def test_unusual_exceptions_are_told(kind, text):
    assert errors(f"exception {kind}")[0] == f"RuntimeError: distributed: process 1 ended with {text}"


def test_what_is_forked_says_nothing_to_the_others():
    done = launch(2, "faults.py", "forks")
    assert done.returncode == 0, done.stdout + done.stderr
    told = re.findall(r"forked: (\w+): this process was forked from process (\d)", done.stdout)
    assert sorted(told) == [(what, p) for what in ("UNAVAILABLE", "distributed") for p in "01"], done.stdout


def test_a_program_that_a_process_starts_is_not_taken_for_it():
    done = launch(2, "faults.py", "starts another")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "another: RuntimeError: distributed.initialize: this program was" in done.stdout


def test_after_shutdown_nothing_is_sent():
    done = launch(2, "faults.py", "after shutdown")
    assert done.returncode != 0 and done.stdout.count("again: distributed.initialize: after distributed.shutdown") == 2
    assert done.stdout.count("RuntimeError: distributed: distributed.shutdown was called") == 2, done.stdout


@pytest.mark.parametrize("what", ["trees", "gathered trees"])
def test_different_trees_are_refused(what):
    found = errors(what)
    assert set(found) == {0, 1} and all("process 1 has PyTreeDef({'a': *})" in text for text in found.values())


def test_a_killed_process_ends_all():
    done = launch(3, "faults.py", "killed")
    assert done.returncode != 0 and "is well" not in done.stdout
    assert re.search("KILLED BY|Killed|signal 9|is gone", done.stdout + done.stderr, re.I)


def test_a_process_that_ends_without_a_word():
    line = [sys.executable, "-m", "pullback", "launch", "-n", "3", str(HERE / "programs" / "faults.py"), "gone"]
    done = subprocess.run(line, env=environment(), capture_output=True, text=True, timeout=PATIENCE, check=False)
    found = re.findall(r"^process (\d) after [\d.]+ s: (.*)$", done.stdout, re.M)
    assert done.returncode != 0 and "is well" not in done.stdout, done.stdout + done.stderr
    assert {p for p, _ in found} == {"0", "1"} and all("process 2 is gone" in text for _, text in found), done.stdout


def test_a_process_is_killed_while_others_wait_at_a_barrier_of_libraries():
    program = str(HERE / "programs" / "faults.py")
    line = [sys.executable, "-m", "pullback", "launch", "-n", "3", program, "killed, others at a barrier"]
    done = subprocess.run(line, env=environment(), capture_output=True, text=True, timeout=PATIENCE, check=False)
    found = re.findall(r"^process (\d) after [\d.]+ s: (.*)$", done.stdout, re.M)
    assert done.returncode != 0 and "is well" not in done.stdout, done.stdout + done.stderr
    assert {p for p, _ in found} <= {"0", "1"} and all("process 2 is gone" in text for _, text in found), done.stdout


def test_a_process_leaves_with_an_error_while_others_wait_at_a_barrier_of_libraries():
    found = errors("leaves, others at a barrier", count=3)
    assert all("process 2 ended with status 3" in found[p] for p in (0, 1)) and found[2] == "SystemExit: 3"


def test_a_process_that_hangs_is_ended():
    line = [sys.executable, "-m", "pullback", "launch", "-n", "3", str(HERE / "programs" / "faults.py"), "hangs"]
    seen = environment(PULLBACK_COMM_TIMEOUT="5")
    done = subprocess.run(line, env=seen, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode != 0 and "is well" not in done.stdout and "has waited" in done.stdout, done.stdout


def test_nans_are_found_on_the_process_that_has_them():
    found = errors("nan")
    assert found[1] == "FloatingPointError: invalid value (nan) encountered in log" == found[0].split("with ")[-1]


@pytest.mark.parametrize("what", ["program", "shape", "mesh"])
def test_different_programs_are_refused_before_anything_is_exchanged(what):
    found = errors(what)
    assert set(found) == {0, 1}
    for text in found.values():
        assert "processes have come to different programs" in text
        assert what != "shape" or ("f32[2,4]" in text and "f32[2,5]" in text)
        parts = re.search(r"part where process 0 has '(.*)', process 1 '(.*)'", text)
        assert parts and parts[1] != parts[2]
        assert what != "program" or ("2.0" in parts[2] and "3.0" in parts[1])


def test_values_of_one_process_that_differ_are_warned_of():
    done = launch(2, "faults.py", "values")
    assert done.returncode == 0, done.stderr
    warned = re.findall(r"<lambda>: (\w+) (\d) \(f32\[3\]\) is not the same on processes 0 and 1", done.stderr)
    assert sorted(warned) == [("argument", "1")] * 2 + [("constant", "0")] * 2


@pytest.mark.parametrize("what", ["old program", "order", "calls"])
def test_processes_that_part_later(what):
    found = errors(what)
    assert set(found) == {0, 1} and any("has come to another step" in text for text in found.values())
    if what == "calls":
        assert re.search(r"operation (\d+) of those between the two; process \d has come to operation (?!\1)", found[0])


def test_two_threads_do_not_meet_other_processes_at_one_time():
    found = errors("threads")
    assert any(re.search("two threads of process . are in programs between processes", text) for text in found.values())


def test_a_process_that_comes_too_late(tmp_path):
    found = errors("late", str(tmp_path / "given up"), PULLBACK_COMM_TIMEOUT="5")
    assert re.search(r"process 0 has waited \d+(\.\d+)? s for process 1 \(PULLBACK_COMM_TIMEOUT", found[0]), found
    assert "has waited" in found[1]


def test_a_process_that_leaves_early():
    found = errors("leaves")
    assert "has come to another step" in found[0]
    assert "the end of the program" in found[0] and "all_reduce" in found[0]


def test_the_status_of_a_process_that_leaves_early_is_seen():
    line = [sys.executable, "-m", "pullback", "launch", "-n", "2", str(HERE / "programs" / "faults.py"), "leaves", "3"]
    done = subprocess.run(line, env=environment(), capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 3, done.stdout + done.stderr  # of the other it is 1; MPICH joins their bits


def test_a_process_that_never_joins():
    done = launch(2, "faults.py", "absent")
    assert done.returncode != 0 and "not all of the 2 processes have come within 2 s" in done.stderr


def test_ctrl_c_ends_all():
    command = [str(MPIEXEC), "-n", "2", sys.executable, str(HERE / "programs" / "faults.py"), "interrupt"]
    running = subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert running.stdout is not None and running.stdout.readline() == "ready\n"
    running.send_signal(signal.SIGINT)
    out, _ = running.communicate(timeout=PATIENCE)
    assert running.returncode != 0 and "is well" not in out


def test_waits_are_traced():
    done = launch(2, "faults.py", "slow", PULLBACK_COMM="trace")
    assert done.returncode == 0
    # Process 0 waits for the other, which sleeps for 0.5 s five times.
    waits = re.findall(
        r"pullback comm: process ([01]) waited (\d+)\.\d+ ms in all_reduce .*, last for process ([01])", done.stderr
    )
    assert max(int(wait) for who, wait, whom in waits if who != whom) > 100, done.stderr


def test_one_process_needs_no_mpi():
    program = (
        "import sys, pullback as jax; jax.distributed.initialize(); jax.numpy.ones(2) + 1; "
        "assert 'mpi4py' not in sys.modules and 'pullback.distributed.connection' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], env=environment(), check=True)


def test_counts_that_disagree():
    with pytest.raises(ValueError, match="process_id is 2; expected 0 to 1"):
        jax.distributed.initialize("localhost:1234", num_processes=2, process_id=2)
