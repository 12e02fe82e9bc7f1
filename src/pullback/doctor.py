"""`python -m pullback doctor`: what this installation consists of, whether it works, what is wrong and how to mend it.

The self-test compiles one program of each kind and compares what it gives with NumPy; it takes a few seconds. The exit
status is 0 if nothing is wrong, and 1 if a test fails.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import numpy as np

from pullback.util.record import NamedTuple


class Finding(NamedTuple):
    """Something that is wrong, or slow, and what to do."""

    what: str
    mend: str


# ---- tests: each raises AssertionError, or anything else, if it fails


def _elementwise() -> None:
    import pullback as jax
    import pullback.numpy as jnp

    x = np.linspace(-3, 3, 10_000, dtype=np.float32)
    np.testing.assert_allclose(
        jax.jit(lambda x: jnp.sin(x) * jnp.exp(x))(x), np.sin(x) * np.exp(x), rtol=2e-5, atol=1e-6
    )


def _products() -> None:
    import pullback as jax

    a = np.random.default_rng(0).standard_normal((200, 300), dtype=np.float32)
    np.testing.assert_allclose(jax.jit(lambda a: a @ a.T)(a), a @ a.T, rtol=1e-3, atol=1e-3)


def _derivatives() -> None:
    import pullback as jax
    import pullback.numpy as jnp

    x = np.linspace(0.1, 1, 50, dtype=np.float32)
    np.testing.assert_allclose(jax.jit(jax.grad(lambda x: jnp.sum(jnp.tanh(x) ** 2)))(x),
                               2 * np.tanh(x) * (1 - np.tanh(x) ** 2), rtol=1e-4, atol=1e-6)  # fmt: skip


def _loops() -> None:
    import pullback as jax
    import pullback.numpy as jnp

    total, steps = jax.jit(lambda n: jax.lax.scan(lambda c, t: (c + t, c * t), 0, jnp.arange(100)))(0)
    assert int(total) == 4950 and steps.shape == (100,), f"a scan gave {total}"


def _libraries() -> None:
    import pullback as jax
    import pullback.numpy as jnp

    a = np.eye(40, dtype=np.float32) * 3 + np.random.default_rng(1).standard_normal((40, 40), dtype=np.float32) / 9
    np.testing.assert_allclose(jax.jit(jnp.linalg.inv)(a) @ a, np.eye(40), atol=1e-4)
    np.testing.assert_allclose(jax.jit(jnp.fft.fft)(a[0]), np.fft.fft(a[0]), rtol=1e-3, atol=1e-3)
    np.testing.assert_array_equal(jax.jit(jnp.sort)(a), np.sort(a))


def _random_numbers() -> None:
    import pullback as jax

    found = jax.random.bits(jax.random.key(0), (2,))
    assert [int(x) for x in found] == [4070199207, 4202968722], f"bits of key 0 are {found}"


def _threads() -> None:
    import pullback as jax
    import pullback.numpy as jnp

    x = np.random.default_rng(2).standard_normal(1_000_000, dtype=np.float32)
    many, before = jax.jit(lambda x: jnp.sum(jnp.sin(x)))(x), jax.get_num_threads()
    try:
        jax.set_num_threads(1)
        one = jax.jit(lambda x: jnp.sum(jnp.sin(x)))(x)
    finally:
        jax.set_num_threads(before)
    assert float(one) == float(many), f"one thread gives {one}, {before} give {many}"


def _disk() -> None:
    from pullback.loops.emit.folder import default_folder, usable

    folder = default_folder()
    if not usable(folder, make=True):
        raise OSError(f"{folder} cannot be used: it cannot be made, or other users could write to it")
    with tempfile.NamedTemporaryFile(dir=folder, prefix="doctor-"):
        pass


TESTS: tuple[tuple[str, Callable[[], None], str], ...] = (
    ("elementwise functions", _elementwise, "reinstall: pip install --force-reinstall llvmlite pullback"),
    ("matrix products", _products, "try PULLBACK_CPU=x86-64-v3, and report what `python -m pullback doctor` says"),
    ("derivatives", _derivatives, "reinstall pullback"),
    ("loops", _loops, "reinstall pullback"),
    ("LAPACK, FFT, sort", _libraries, "reinstall: pip install --force-reinstall numpy"),
    ("random numbers", _random_numbers, "reinstall pullback"),
    ("threads give the same bits", _threads, "set PULLBACK_NUM_THREADS=1, and report it"),
    ("programs kept on disk", _disk, "set PULLBACK_CACHE_DIR to a folder of your own"),
)


def run_tests(say: Callable[[str], None]) -> list[Finding]:
    """Run the self-test; what failed."""
    found = []
    for name, test, mend in TESTS:
        started = time.perf_counter()
        try:
            test()
        except Exception as error:
            last = traceback.format_exception_only(error)[-1].strip().splitlines()[0]
            say(f"  FAILED  {name}: {last}")
            found.append(Finding(f"the test of {name} fails: {last}", mend))
        else:
            say(f"  ok      {name} ({time.perf_counter() - started:.1f} s)")
    return found


# ---- what is slow or surprising


def _quota() -> float | None:
    """Cores that the container lets this process use; None: all of them."""
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        return None if quota == "max" else int(quota) / int(period)
    except (OSError, ValueError):
        return None


def advice() -> list[Finding]:
    """What makes programs slower than they need be, and what to do."""
    from pullback.api.threads import get_num_threads
    from pullback.loops.emit.cpu.target import host_target
    from pullback.util.switches import switches

    found, threads = [], get_num_threads()
    if host_target().vector_bytes < 32:
        found.append(
            Finding("code is made without AVX2", "unset PULLBACK_CPU, or use a machine (or an emulation) that has AVX2")
        )
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    allowed = min(allowed, max(1, int(_quota() or allowed)))
    if threads > allowed:
        found.append(
            Finding(
                f"{threads} threads run on {allowed} cores", f"set PULLBACK_NUM_THREADS={allowed}, or leave it unset"
            )
        )
    if switches.interpret:
        found.append(Finding("programs are interpreted, not compiled", "unset PULLBACK_INTERPRET"))
    if switches.disable_jit:
        found.append(Finding("jit does nothing", "unset PULLBACK_DISABLE_JIT and JAX_DISABLE_JIT"))
    if switches.check:
        found.append(Finding("each pass of the compiler is checked, which is slow", "unset PULLBACK_CHECK"))
    source = Path(__file__)
    compiled = Path(__import__("importlib.util").util.cache_from_source(str(source)))
    if sys.dont_write_bytecode and not compiled.exists():
        found.append(
            Finding("Python may not keep compiled modules: each import takes half a second more",
                    f"unset PYTHONDONTWRITEBYTECODE, or run: {sys.executable} -m compileall -q {source.parent}")
        )  # fmt: skip
    return found


def main() -> int:
    """The command: prints, and gives the exit status."""
    from pullback.api.environment import environment

    print("pullback: what is installed")
    for name, value in environment().items():
        print(f"  {name:18} {value}")
    print("Self-test")
    failed = run_tests(print)
    slow = advice()
    if not failed and not slow:
        print("Nothing is wrong.")
        return 0
    print("What to do")
    for finding in (*failed, *slow):
        print(f"  - {finding.what}.\n    {finding.mend}.")
    return 1 if failed else 0


__all__ = ["Finding", "advice", "main", "run_tests"]
