import ctypes
import resource
import threading
from pathlib import Path

import numpy as np
import pytest

from pullback._ext import _core


@pytest.fixture
def limit():
    before = _core.memory_stats()["cache_limit"]
    yield _core.set_memory_cache_limit
    _core.set_memory_cache_limit(before)


def test_blocks_are_counted_and_reused(aval):
    kind = aval((1 << 20,), "uint8")
    start = _core.memory_stats()
    x = _core.zeros(kind)
    assert _core.memory_stats()["bytes_in_use"] - start["bytes_in_use"] == 1 << 20
    address = x.unsafe_buffer_pointer()
    del x
    after = _core.memory_stats()
    assert after["bytes_in_use"] == start["bytes_in_use"] and after["bytes_cached"] >= 1 << 20
    y = _core.zeros(kind)
    assert y.unsafe_buffer_pointer() == address and _core.memory_stats()["num_reused"] > after["num_reused"]
    assert not np.asarray(y).any()


@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 255, 256, 257, 1000, 4097, 2**21 - 1, 2**21, 2**21 + 1, 5 * 2**20])
def test_sizes(aval, size):
    x, memory = _core.writable(aval((size,), "uint8"))
    memory[...] = 7
    assert x.unsafe_buffer_pointer() % 64 == 0 and x.nbytes == size
    assert np.asarray(x).sum(dtype=np.int64) == 7 * size


def test_the_cache_is_bounded(aval, limit):
    _core.trim_memory()
    assert _core.memory_stats()["bytes_cached"] == 0
    limit(1 << 20)
    arrays = [_core.zeros(aval((1 << 19,), "uint8")) for _ in range(8)]
    arrays.append(_core.zeros(aval((1 << 22,), "uint8")))
    del arrays
    assert 0 < _core.memory_stats()["bytes_cached"] <= 1 << 20
    limit(0)
    assert _core.memory_stats()["bytes_cached"] == 0


def test_threads(aval):
    kinds = [aval((n,), "uint8") for n in (10, 1000, 100_000)]
    failures = []

    def work(seed):
        rng = np.random.default_rng(seed)
        live = []
        for i in range(2000):
            x, memory = _core.writable(kinds[rng.integers(3)])
            memory[...] = i % 251
            live.append((x, i % 251))
            if len(live) > 10:
                y, value = live.pop(int(rng.integers(len(live))))
                if not (np.asarray(y)[[0, -1]] == value).all():
                    failures.append(value)

    threads = [threading.Thread(target=work, args=(s,)) for s in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures


def test_bad_arguments():
    for call in (
        lambda: _core.set_memory_cache_limit(-1),
        lambda: _core.trim_memory("all"),
        lambda: _core.set_memory_cache_limit(),
    ):
        with pytest.raises(TypeError):
            call()


def test_many_avals_without_users(aval):
    # Avals come and go; the table of what C knows of them must not grow for ever, nor mix them up.
    class Aval:
        def __init__(self, n):
            self.shape, self.dtype, self.weak_type = (n,), np.dtype("uint8"), False

    kept = [_core.zeros(Aval(n)) for n in range(5)]
    for n in range(140_000):
        x = _core.zeros(Aval(n % 7))
        assert x.size == n % 7
    assert [x.size for x in kept] == list(range(5))


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="only glibc can give back parts of its heap")
def test_memory_among_what_is_in_use_is_given_back(aval):
    """free() keeps what does not lie at the end of the heap: clear_caches left a third of it."""

    def resident():
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

    kind = aval((1 << 16,), "uint8")
    arrays = [_core.zeros(kind) for _ in range(2000)]
    arrays = arrays[::40]
    before = resident()
    _core.trim_memory()
    assert before - resident() > 90_000_000
    assert not any(np.asarray(x).any() for x in arrays)
