"""PULLBACK_CPU: code for lesser CPUs than this one has their instructions only, and gives the same results."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import llvmlite.binding as llvm
import numpy as np
import pytest
from cpu_levels import cpus

import pullback as jax
import pullback.numpy as jnp
from pullback.compiler.products.kernels import product_shape
from pullback.export._cpu import cpu_for
from pullback.loops.emit.cpu import target as targets
from pullback.loops.emit.cpu.target import host_target
from pullback.util.cpu_levels import LEVELS
from pullback.util.switches import switches

from .kit import same

BYTES = {"x86-64": 16, "x86-64-v2": 16, "x86-64-v3": 32, "x86-64-v4": 64}
on_x86 = pytest.mark.skipif(not llvm.get_process_triple().startswith("x86_64"), reason="levels are of x86-64")


def step(w, x, h, k):
    """Products, functions, sums, a sort, a gather, short floats, a loop, and lanes of several types."""
    y = jnp.tanh(x @ w) + jnp.exp(-jnp.abs(x[:, ::-1][:, : w.shape[1]]))
    y = jax.lax.fori_loop(0, 3, lambda i, y: y * 0.5 + jnp.sort(y, axis=1), y)
    taken = jnp.take_along_axis(y, k % y.shape[1], axis=1)
    return y, taken.sum(axis=0), (h * 2 + 1).cumsum(), jnp.argmax(y, axis=0), (k.astype(jnp.uint8) * 7) >> 1


ARGUMENTS = (
    np.random.default_rng(0).normal(size=(70, 37)).astype(np.float32),
    np.random.default_rng(1).normal(size=(53, 70)).astype(np.float32),
    np.linspace(-2, 2, 41).astype(np.float16),
    np.random.default_rng(2).integers(0, 1000, (53, 5)).astype(np.int32),
)


@pytest.mark.parametrize("cpu", dict.fromkeys([*cpus(), *(["x86-64"] if len(cpus()) > 1 else [])]))
def test_results_and_instructions(cpu):
    with switches.set(cpu=cpu):
        program = jax.jit(step).lower(*ARGUMENTS).compile()
        loops, assembly = program.as_text("loops"), program.as_text("asm")
        got = program(*ARGUMENTS)
        width = host_target().vector_bytes
        kernel = "pb_panels_f32_{}x{}(".format(*product_shape("f32", 53, 37))
    assert cpu == "host" or width == BYTES[cpu]
    assert kernel in loops
    if cpu != "host":
        assert bool(re.search(r"%[yz]mm", assembly)) == (width > 16)
        assert bool(re.search(r"%zmm", assembly)) == (width > 32)
        assert ("vfmadd" in assembly) == ("fma" in LEVELS[cpu])
    with jax.disable_jit():
        want = step(*map(jnp.asarray, ARGUMENTS))
    for a, b in zip(got, want):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=2e-3, atol=2e-4)


@pytest.mark.parametrize("cpu", cpus())
def test_every_half_and_what_rounds_to_it(cpu):
    """Without instructions for them (before AVX2), halves are converted by hand."""
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    with np.errstate(invalid="ignore", over="ignore"):
        exact = halves.astype(np.float32)
        between = (exact[:-1] + exact[1:]) / 2  # ties, and their neighbours
        singles = np.concatenate([exact, between, np.nextafter(between, np.inf), np.nextafter(between, -np.inf)])
        more = np.random.default_rng(0).integers(0, 1 << 32, 99_999, dtype=np.uint32).view(np.float32)
        singles = np.concatenate([singles, more, np.array([65519.996, 65520, 1e38, 2.0**-25, 2.0**-149], np.float32)])
        want = singles.astype(np.float16)
    with switches.set(cpu=cpu):
        got = np.asarray(jax.jit(lambda x: x.astype(np.float32))(halves))
        rounded = np.asarray(jax.jit(lambda x: x.astype(np.float16))(singles))
        one = jax.jit(lambda x: x.astype(np.float16).astype(np.float32) + x)(np.float32(1 / 3))
    same(got, exact)
    same(rounded, want)
    assert one == np.float32(np.float16(np.float32(1 / 3))) + np.float32(1 / 3)


@on_x86
def test_programs_and_kernels_are_kept_apart_by_level(tmp_path):
    """In memory and on disk: what one level has compiled is not taken for another."""
    code = """
import sys
import numpy as np, pullback as jax
x = np.ones((24, 48), np.float32)
y = np.ones((48, 64), np.float32)
program = jax.jit(lambda x, y: x @ y).lower(x, y).compile()
assert (np.asarray(program(x, y)) == 48).all()
print(sorted(set(part for part in program.as_text("asm").replace(",", " ").split() if part.startswith("%ymm")))[:1])
"""
    found = []
    for cpu in ("host", "x86-64", "host"):
        env = os.environ | {"PULLBACK_CPU": cpu, "PULLBACK_CACHE_DIR": str(tmp_path)}
        done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        found.append({path.name for path in tmp_path.rglob("*") if path.is_file()})
    assert found[0] < found[1] == found[2]
    keys = len(found[0])
    assert len(found[1]) == 2 * keys


def test_a_level_that_the_machine_has_not_is_an_error(monkeypatch):
    monkeypatch.setattr(llvm, "get_process_triple", lambda: "x86_64-unknown-linux-gnu")
    has = dict.fromkeys(LEVELS["x86-64-v4"], True) | {"avx512dq": False, "avx512vl": False}
    monkeypatch.setattr(llvm, "get_host_cpu_features", lambda: has)
    targets.target_of.cache_clear()
    try:
        with switches.set(cpu="x86-64-v3"):
            assert host_target().vector_bytes == 32
        with switches.set(cpu="x86-64-v4"):
            message = r"PULLBACK_CPU='x86-64-v4': this CPU .* for want of avx512dq, avx512vl; expected 'host' or"
            with pytest.raises(ValueError, match=message):
                host_target()
            with pytest.raises(ValueError, match=message):
                jax.jit(lambda x: jnp.sin(x) * 3.25)(np.ones(7))
        monkeypatch.setattr(llvm, "get_process_triple", lambda: "aarch64-unknown-linux-gnu")
        targets.target_of.cache_clear()
        with switches.set(cpu="x86-64-v3"), pytest.raises(ValueError, match=r"this machine is aarch64.*'host'"):
            host_target()
    finally:
        targets.target_of.cache_clear()


@on_x86
def test_libraries_for_the_host_are_for_the_level():
    with switches.set(cpu="x86-64-v2"):
        assert cpu_for("host") == cpu_for("x86-64-v2")
