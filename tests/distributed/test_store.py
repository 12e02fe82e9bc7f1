"""Keys and values between processes, by the ends of one connection in one process."""

from __future__ import annotations

import socket
import threading

import pytest

from pullback.distributed import store
from pullback.util.errors import JaxRuntimeError


@pytest.fixture
def ends():
    """(the client of process 0, address, secret)."""
    said = []
    client = store.opened(0, 2, said.append, one_host=True)
    return client, *said[0]


def other(address, secret):
    """The client of process 1."""
    return store.opened(1, 2, lambda _: (address, secret), one_host=True)


def test_values_come_to_who_waits_for_them(ends):
    client, address, secret = ends
    threading.Timer(0.1, client.key_value_set, ("a/b", "1")).start()
    away = other(address, secret)
    assert away.blocking_key_value_get("a/b", 900_000) == "1"
    away.key_value_set("a/c", "2")
    assert client.key_value_dir_get("a") == [("a/b", "1"), ("a/c", "2")]
    with pytest.raises(JaxRuntimeError, match="ALREADY_EXISTS"):
        away.key_value_set("a/c", "3")
    away.key_value_delete("a")
    with pytest.raises(JaxRuntimeError, match="NOT_FOUND"):
        client.key_value_try_get("a/b")
    assert [away.key_value_increment("n"), client.key_value_increment("n", 3)] == [1, 4]


def test_barriers(ends):
    client, address, secret = ends
    away = other(address, secret)
    waits = threading.Thread(target=away.wait_at_barrier, args=("here", 900_000))
    waits.start()
    client.wait_at_barrier("here", 900_000)
    waits.join()
    with pytest.raises(JaxRuntimeError, match=r"DEADLINE_EXCEEDED.*\[1\]"):
        client.wait_at_barrier("again", 10)


@pytest.mark.parametrize("what", ["gone", "failed"])
def test_who_waits_for_a_process_hears_that_it_comes_no_more(ends, what):
    client, address, secret = ends
    away = other(address, secret)
    reason = {"gone": "process 1 is gone", "failed": "process 1 ended with ValueError"}[what]
    end = {"gone": lambda: away.life.close(), "failed": lambda: away.fail(reason)}[what]
    threading.Timer(0.1, end).start()
    with pytest.raises(JaxRuntimeError, match=f"UNAVAILABLE: Barrier failed. Id: here: {reason}"):
        client.wait_at_barrier("here", 900_000)
    with pytest.raises(JaxRuntimeError, match=f"UNAVAILABLE: no value came for the key a: {reason}"):
        client.blocking_key_value_get("a", 900_000)
    with pytest.raises(JaxRuntimeError, match="NOT_FOUND"):
        client.key_value_try_get("a")
    client.wait_at_barrier("here", 900_000, [0])
    client.fail("process 0 ended with OSError")
    with pytest.raises(JaxRuntimeError, match="process 0 ended with OSError"):
        other(address, secret).wait_at_barrier("here", 900_000)
    with pytest.raises(JaxRuntimeError, match=reason) as found:
        client.blocking_key_value_get("b", 900_000)
    assert "OSError" not in str(found.value)  # what comes later may only follow from it


def test_strangers_keep_nobody_waiting(ends):
    client, address, secret = ends
    with socket.create_connection(address):  # says nothing
        away = other(address, secret)
        away.key_value_set("x", "1")
        assert client.key_value_try_get("x") == "1"
        with pytest.raises(JaxRuntimeError, match="UNAVAILABLE"):
            other(address, b"not the secret").key_value_set("x", "2", True)
    assert client.key_value_try_get("x") == "1"
