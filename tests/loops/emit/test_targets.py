"""Other vector widths mean the same, and other processors compile."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from pullback._ext import _core
from pullback.compiler.pipelines import optimize_loops
from pullback.loops.emit.cpu.identity import identity_of
from pullback.loops.emit.cpu.target import Target, host_target, target_scope
from pullback.loops.emit.jit import emit_object
from pullback.loops.emit.machines import machine_of
from pullback.loops.emit.module import build_module
from pullback.loops.ir import Builder

from .kit import both, compiled, same, sample

OTHERS = [
    Target("x86_64-unknown-linux-gnu", "skylake-avx512", "", 64),
    Target("x86_64-unknown-linux-gnu", "x86-64", "", 16),
    Target("aarch64-unknown-linux-gnu", "neoverse-n1", "", 16),
]


def mixture(n):
    """Several types, masks, a gather, reductions and a column sum."""
    b = Builder()
    x, h, k, m = b.input("x", "f32", n), b.input("h", "bf16", n), b.input("k", "i8", n), b.input("m", "bool", n)
    c = b.input("c", "c64", n)
    y, z, w, s = b.output("y", "f64", n), b.output("z", "bf16", n), b.output("w", "c64", n), b.output("s", "f32", 3)
    with b.loop(n, "vector") as i:
        v = b.select(b.load(m, i), b.load(x, b.min(i + 2, n - 1)), b.convert(b.load(k, i), "f32"))
        b.store(y, i, b.convert(v, "f64") + b.convert(i, "f64"))
        b.store(z, i, b.load(h, i) * b.convert(v, "bf16"))
        b.store(w, i, b.select(b.lt(i, n - 3), b.load(c, i + 3), b.load(c, i)) * b.load(c, n - 1 - i))
    with b.carried_loop(n, [((b.const("f32", 0),), "add"), ((b.const("f32", 0),), "max")], "vector") as r:
        r.update(r.vars[0] + b.load(x, r.i), b.max(r.vars[1], b.load(x, r.i)))
    b.store(s, 0, r.results[0])
    b.store(s, 1, r.results[1])
    with b.carried_loop(n, [((b.index(0),), "add")], "vector") as r:
        r.update(r.var + b.convert(b.load(k, r.i), "i64"))
    b.store(s, 2, b.convert(r.result, "f32"))
    return b.function("mixture")


@pytest.mark.parametrize("n", [3, 8, 33, 100])
@pytest.mark.parametrize("width", [16, 32, 64])
def test_every_vector_width(width, n):
    target = dataclasses.replace(host_target(), vector_bytes=width)
    inputs = [sample(dtype, n, k, edges=False) for k, dtype in enumerate(("f32", "bf16", "i8", "bool", "c64"))]
    (y, z, w, s) = both(mixture(n), inputs, target=target)
    same(*y)
    same(*z)
    same(*w, ulp=4)
    assert np.allclose(*s, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("width", [16, 64])
def test_passes_and_widths(width):
    b = Builder()
    x, y = b.input("x", "f32", 40 * 50), b.output("y", "f32", 40 * 50)
    with b.loop(40) as i, b.loop(50) as j:
        b.store(y, i * 50 + j, b.sin(b.exp(b.load(x, j * 40 + i))))
    function = b.function("f")
    target = dataclasses.replace(host_target(), vector_bytes=width)
    with target_scope(target):
        function = optimize_loops(function)
    data = np.linspace(-3, 3, 2000, dtype=np.float32)
    (got,) = compiled(function, [data], target=target)
    assert np.allclose(got, np.sin(np.exp(data.reshape(50, 40).T)).reshape(-1), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("target", OTHERS, ids=lambda target: target.cpu)
def test_other_processors_compile(target):
    text = build_module(mixture(1000), {}, target).text
    assert len(emit_object(text, target, verify=True)) > 1000


def _assembly(function, target):
    import llvmlite.binding as llvm

    return machine_of(target).emit_assembly(llvm.parse_assembly(build_module(function, {}, target).text))


def test_512_bit_registers_are_used_where_there_are_some():
    b = Builder()
    x, y = b.input("x", "f32", 1000), b.output("y", "f32", 1000)
    with b.loop(1000, "vector") as i:
        b.store(y, i, b.load(x, i) * 2.0)
    assert "zmm" in _assembly(b.function("f"), OTHERS[0])


def test_no_masked_stores_where_some_lanes_keep_what_they_had():
    """AMD's cores are slow at those of AVX2."""
    b = Builder()
    c, x, y = b.input("c", "bool", 1000), b.input("x", "f32", 1000), b.output("y", "f32", 1000)
    with b.loop(1000, "vector") as i:
        before = b.let(b.load(y, i))
        b.store(y, i, b.select(b.load(c, i), b.load(x, i) + before, before))
    asm = _assembly(b.function("f"), Target("x86_64-unknown-linux-gnu", "haswell", "", 32))
    assert "ymm" in asm and "maskmov" not in asm


@pytest.mark.parametrize("width, length, whole", [(32, 100, True), (64, 20, True), (64, 300, False)])
def test_which_rows_that_keep_some_lanes_are_written_whole(width, length, whole):
    """A step that reads what a masked store wrote waits for the cache; long rows are there by then."""
    b = Builder()
    x, y = b.input("x", "f32", 50 * length), b.output("y", "f32", length)
    with b.loop(length, "vector") as i:
        b.store(y, i, b.const("f32", 0))
    with b.loop(50, "sequential") as step, b.loop(length, "vector") as i:
        new = b.load(x, step * length + i)
        b.store(y, i, b.select(b.lt(b.load(y, i), new), new, b.load(y, i)))
    text = build_module(b.function("row"), {}, Target("x86_64-unknown-linux-gnu", "skylake-avx512", "", width)).text
    assert ("store volatile" in text) == whole


@pytest.mark.skipif(not Path("/proc/cpuinfo").exists(), reason="LLVM says what the CPU is")
def test_code_on_disk_is_for_the_level_that_the_cpu_states(monkeypatch):
    """An emulator has fewer instructions than /proc/cpuinfo lists, and finds no code that was stored outside of it."""
    texts = []
    for level in (3, 4):
        monkeypatch.setattr(_core, "CPU_LEVEL", level)
        texts.append(identity_of.__wrapped__("host"))
    assert texts[0] != texts[1]
