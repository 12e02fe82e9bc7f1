"""The CPUs that code can be made for on this machine: its own, and the levels of x86-64 that it has.

Tests of code generation are spread over these: their directories import `some_cpu`, which gives each test one of them,
by its name. A test must hold for all.
"""

from __future__ import annotations

import functools
import zlib

import pytest

from pullback.util.cpu_levels import LEVELS
from pullback.util.switches import switches


@functools.cache
def cpus() -> tuple[str, ...]:
    """Values of PULLBACK_CPU: that of this process, and each level from v2 on."""
    import llvmlite.binding as llvm

    own = (switches.cpu,)
    if not llvm.get_process_triple().startswith("x86_64"):
        return own
    has = llvm.get_host_cpu_features()
    levels = [name for name, features in LEVELS.items() if features and all(has.get(f) for f in features)]
    return (*own, *(name for name in levels if name not in own))


@pytest.fixture(autouse=True)
def some_cpu(request):
    """Code is for one of `cpus()` while the test runs; which one a failure's report says."""
    cpu = cpus()[zlib.crc32(request.node.nodeid.encode()) % len(cpus())]
    request.node.add_report_section("setup", "cpu", f"PULLBACK_CPU={cpu}")
    with switches.set(cpu=cpu):
        yield
