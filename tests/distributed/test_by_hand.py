"""Processes that no launcher starts, and that meet at the address of process 0."""

from __future__ import annotations

import signal
import socket
import subprocess
import time

import pytest
from launching import HERE, environment, needs_mpi, python
from patience import PATIENCE
from ports import free_port

import pullback as jax
from pullback.distributed import rendezvous

pytestmark = needs_mpi
PROGRAMS = HERE / "programs"


@pytest.fixture
def address():
    with free_port() as port:
        yield f"127.0.0.1:{port}"


def start(address, count, number, *program, patience=90):
    command = [*python(), str(PROGRAMS / "by_hand.py"), address, str(count), str(number), *program]
    more = environment(PULLBACK_COMM_TIMEOUT=str(patience))
    return subprocess.Popen(command, env=more, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def outputs(processes, limit=PATIENCE):
    """What each prints; all are ended."""
    end = time.monotonic() + limit
    try:
        return [p.communicate(timeout=max(1, end - time.monotonic()))[0] for p in processes]
    finally:
        for p in processes:
            p.kill()
            p.wait()


@pytest.mark.parametrize("count, program", [(4, "global_arrays.py"), (2, "collectives.py")])
def test_programs_run_as_under_a_launcher(count, program, address):
    processes = [start(address, count, k, str(PROGRAMS / program)) for k in reversed(range(count))]
    found = outputs(processes)
    assert [p.returncode for p in processes] == [0] * count, found
    if program == "collectives.py":
        assert len(set(found)) == 1 and found[0].strip()
    else:
        assert all("done" in text for text in found)


def test_an_exception_reaches_all(address):
    processes = [start(address, 3, k, str(PROGRAMS / "faults.py"), "exception") for k in range(3)]
    found = outputs(processes)
    assert all(p.returncode for p in processes)
    assert all("ArithmeticError: the loss is nan" in text for text in found), found


def test_a_killed_process_ends_all(tmp_path, address):
    program = tmp_path / "endless.py"
    program.write_text(
        "from pullback.experimental import multihost_utils as together\n"
        "import time\n"
        "print('here', flush=True)\n"
        "while True:\n    together.sync_global_devices('again')\n    time.sleep(0.01)\n"
    )
    processes = [start(address, 2, k, str(program), patience=900) for k in range(2)]
    assert processes[1].stdout.readline() == "here\n"
    processes[1].send_signal(signal.SIGKILL)
    found = outputs(processes[:1])  # nobody has asked for the end of the other yet
    assert processes[0].returncode and "process 1 is gone" in found[0], found
    processes[1].communicate()


def by_thread(monkeypatch, count, number, timeout=2.0, address="127.0.0.1:1"):
    monkeypatch.setattr(rendezvous.os, "environ", {})
    return rendezvous.meet(address, count, number, timeout)


def test_what_is_wrong_is_said(monkeypatch, address):
    with pytest.raises(RuntimeError, match=r"processes \[1, 2\] of 3 have not come to process 0"):
        by_thread(monkeypatch, 3, 0, 0.2, address)
    with pytest.raises(RuntimeError, match="process 1 does not reach process 0"):
        by_thread(monkeypatch, 2, 1, 0.2, address)
    with socket.create_server(("127.0.0.1", int(address.rpartition(":")[2]))):
        with pytest.raises(RuntimeError, match="process 0 cannot listen at port"):
            rendezvous.meet(address, 2, 0, 0.2, bind_address=address)
        with pytest.raises(RuntimeError, match="process 0 has ended, or others have not come"):
            by_thread(monkeypatch, 2, 1, 0.2, address)
    for bad in ("localhost", "localhost:", "localhost:99999", ":x"):
        with pytest.raises(ValueError, match="coordinator_address must be 'host:port'"):
            by_thread(monkeypatch, 2, 1, 0.2, bad)


@pytest.mark.parametrize("others, text", [([(1, 3)], "num_processes=3"), ([(1, 2), (1, 2)], "process_id=1")])
def test_processes_that_disagree(others, text, address):
    count = 2 if len(others) == 1 else 3
    others = [(number, theirs if len(others) == 1 else 3) for number, theirs in others]
    processes = [start(address, count, 0, "-"), *(start(address, n, k, "-") for k, n in others)]
    found = outputs(processes)
    assert all(p.returncode for p in processes)
    assert text in found[0] and any(text in one for one in found[1:]), found


def test_strangers_at_the_port_are_left_out(tmp_path, address):
    program = tmp_path / "sum.py"
    program.write_text(
        "import numpy as np\nfrom pullback.experimental import multihost_utils as together\n"
        "print(together.process_allgather(np.arange(2)).sum())\n"
    )
    first = start(address, 2, 0, str(program))
    host, port = address.split(":")
    for _ in range(200):
        try:
            with socket.create_connection((host, int(port)), timeout=1) as stranger:
                stranger.sendall(b"GET / HTTP/1.1\r\n\r\n")
            break
        except OSError:
            time.sleep(0.05)
    second = start(address, 2, 1, str(program))
    assert outputs([first, second]) == ["2\n", "2\n"]


def test_arguments():
    with pytest.raises(ValueError, match="coordinator_address was not given"):
        jax.distributed.initialize(num_processes=2)
    with pytest.raises(ValueError, match="process_id, which no launcher has set"):
        jax.distributed.initialize("localhost:1234", num_processes=2)
    assert not jax.distributed.is_initialized()


def test_machines():
    assert rendezvous.mapping(["a", "a", "b", "a"]) == "(vector,(0,1,2),(1,1,1),(0,1,1))"
