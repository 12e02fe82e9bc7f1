"""Arrays of more than 2^31 elements: offsets must not be computed in 32 bits."""

import contextlib
import os
from pathlib import Path

import numpy as np
import pytest

import pullback
from pullback import lax
from pullback import numpy as jnp

N = 2**31 + 17
CGROUPS = [  # files that say how much this process and its like may have, and have
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
]


def free_memory():
    """Bytes that are left to this process, of the machine and of the container it may run in."""
    found = [os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    for limit, used in CGROUPS:
        with contextlib.suppress(OSError, ValueError):  # there is none, or "max"
            found.append(int(Path(limit).read_text()) - int(Path(used).read_text()))
    return min(found)


def test_numbers_that_are_never_stored():
    with pullback.enable_x64(True):
        total = pullback.jit(lambda: jnp.sum((lax.iota(jnp.int64, N) & 1).astype(jnp.int64)))()
    assert int(total) == N // 2


def test_arrays_beyond_two_gigabytes():
    if free_memory() < 12 << 30:
        pytest.skip("needs 12 GiB of free memory: two arrays of 2 GiB, their results, and room")
    with pullback.enable_x64(True):
        x = np.zeros(N, np.uint8)
        x[[0, 2**31 - 1, 2**31, N - 1]] = 1, 2, 3, 4

        @pullback.jit
        def look(v, k):
            return (
                lax.dynamic_index_in_dim(v, k, keepdims=False), v[-1], jnp.sum(v, dtype=jnp.int64), jnp.argmax(v),
                jnp.flip(v)[:20], jnp.take(v, jnp.array([2**31, -1])),
            )  # fmt: skip

        at, last, total, where, flipped, taken = look(x, 2**31 - 1)
        assert (int(at), int(last), int(total), int(where)) == (2, 4, 10, N - 1)
        np.testing.assert_array_equal(flipped, x[::-1][:20])
        np.testing.assert_array_equal(taken, [3, 4])
        moved = pullback.jit(lambda v: jnp.roll(v + 1, 1))(x)
        assert [int(moved[k]) for k in (0, 1, 2**31, 2**31 + 1)] == [5, 2, 3, 4]
