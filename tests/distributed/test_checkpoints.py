"""Checkpoints of arrays of several processes, and the keys and values by which libraries agree."""

from __future__ import annotations

import importlib.util
import threading

import pytest
from launching import needs_mpi, succeed

from pullback.distributed.store import Client, Store, opened
from pullback.util.errors import JaxRuntimeError


@needs_mpi
@pytest.mark.skipif(importlib.util.find_spec("orbax") is None, reason="`make test` installs orbax-checkpoint")
def test_orbax_saves_on_four_processes_and_restores_on_fewer(tmp_path):
    path = str(tmp_path / "checkpoint")
    quiet = {"PYTHONWARNINGS": "ignore"}
    assert succeed(4, "checkpoints.py", "save", path, **quiet).count("done") == 4
    for count in (2, 1):
        assert succeed(count, "checkpoints.py", "restore", path, **quiet).count("done") == count


def clients(count: int) -> list[Client]:
    told: list = []

    def broadcast(value):
        told.extend([] if value is None else [value])
        return told[0]

    return [opened(process, count, broadcast, one_host=True) for process in range(count)]


def test_keys_and_values():
    first, second = clients(2)
    first.key_value_set("run/a", "1")
    second.key_value_set("run/b", "2")
    assert second.blocking_key_value_get("run/a", 900_000) == "1" and first.key_value_try_get("run/b") == "2"
    assert first.key_value_dir_get("run") == second.key_value_dir_get("run/") == [("run/a", "1"), ("run/b", "2")]
    with pytest.raises(JaxRuntimeError, match="ALREADY_EXISTS"):
        second.key_value_set("run/a", "3")
    second.key_value_set("run/a", "3", allow_overwrite=True)
    assert first.key_value_try_get("run/a") == "3"
    with pytest.raises(JaxRuntimeError, match="NOT_FOUND"):
        second.key_value_try_get("none")
    with pytest.raises(JaxRuntimeError, match="DEADLINE_EXCEEDED"):
        second.blocking_key_value_get("none", 20)
    assert [first.key_value_increment("n"), second.key_value_increment("n", 2)] == [1, 3]
    second.key_value_delete("run")
    assert first.key_value_dir_get("run") == []
    late = threading.Timer(0.05, lambda: first.key_value_set("late", "x"))
    late.start()
    assert second.blocking_key_value_get("late", 900_000) == "x"
    late.join()


def test_barriers():
    both = clients(3)
    order: list[str] = []

    def come(client, name, members=None):
        client.wait_at_barrier(name, 900_000, members)
        order.append(name)

    for _ in range(2):  # a name may be used again
        threads = [threading.Thread(target=come, args=(c, "all")) for c in both]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert order == ["all"] * 6
    both[1].wait_at_barrier("alone", 900_000, [1])
    with pytest.raises(JaxRuntimeError, match=r"DEADLINE_EXCEEDED.*\[0, 2\] have not come"):
        both[1].wait_at_barrier("nobody else", 20)


def test_strangers_are_not_answered():
    store = Store(2)
    _, second = clients(2)
    stranger = Client(1, None, second.address, b"another secret")
    with pytest.raises(JaxRuntimeError, match="UNAVAILABLE"):
        stranger.key_value_set("a", "1")
    second.key_value_set("a", "2")
    assert second.key_value_try_get("a") == "2" and not store.values
