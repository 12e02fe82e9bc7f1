"""Elements of several kinds that take turns in memory: LLVM does not see in which order instructions pick them."""

import dataclasses

import pytest

from pullback.loops.emit.code import Code
from pullback.loops.emit.cpu.target import Target, host_target
from pullback.loops.emit.jit import emit_object
from pullback.loops.emit.module import build_module
from pullback.loops.emit.shuffles import shuffled
from pullback.loops.ir import Builder

from .kit import both, same, sample

AVX512 = Target("x86_64-unknown-linux-gnu", "skylake-avx512", "", 64)


def turns(dtype, kinds, n=70):
    """Each kind less the next one, and the other way round, in turns again."""
    b = Builder()
    x, y = b.input("x", dtype, kinds * n), b.output("y", dtype, kinds * n)
    with b.loop(n, "vector") as i:
        read = [b.load(x, i * kinds + k) for k in range(kinds)]
        for k in range(kinds):
            b.store(y, i * kinds + k, read[(k + 1) % kinds] - read[k])
    return b.function("turns")


@pytest.mark.parametrize("width", [32, 64])
@pytest.mark.parametrize("kinds", [2, 3, 4, 5, 7, 8, 9])
@pytest.mark.parametrize("dtype", ["f32", "f64", "i32", "i16", "i8", "c64", "c128"])
def test_kinds_that_take_turns(dtype, kinds, width):
    function = turns(dtype, kinds)
    (y,) = both(function, [sample(dtype, 70 * kinds, 0, edges=False)], target=_of_width(width))
    same(*y)


@pytest.mark.parametrize("kinds", [2, 3, 7])
def test_some_complex_kinds_up_to_the_end_of_an_array_and_backwards(kinds):
    b, n = Builder(), 70
    x, y, z = b.input("x", "c64", kinds * n), b.output("y", "c64", n), b.output("z", "c64", kinds * n)
    with b.loop(n, "vector") as i:
        some = [b.load(x, i * kinds + k) for k in range(kinds // 2, kinds)]
        b.store(y, i, sum(some[1:], some[0]))
        for k in range(kinds):
            b.store(z, i * kinds + k, b.load(x, (n - 1 - i) * kinds + k))
    y, z = both(b.function("some"), [sample("c64", n * kinds, 0, edges=False)])
    same(*y)
    same(*z)


def test_parts_of_complex_elements_are_shuffled():
    text = build_module(turns("c64", 4), {}, AVX512).text
    assert "vpermi2var.ps" in text and "insertelement" not in text and "extractelement" not in text
    narrow = build_module(turns("c64", 4), {}, dataclasses.replace(AVX512, vector_bytes=32)).text
    assert "insertelement" in narrow


def _of_width(width):
    host = host_target()
    return dataclasses.replace(host, vector_bytes=min(width, host.vector_bytes))


@pytest.mark.parametrize("kinds", [3, 8])
@pytest.mark.parametrize("dtype", ["f32", "f64", "i16"])
def test_instructions_pick_lanes(dtype, kinds):
    text = build_module(turns(dtype, kinds), {}, AVX512).text
    assert "llvm.x86.avx512.vpermi2var" in text
    assert "private global" in text  # no constant: LLVM would combine them
    assert emit_object(text, AVX512, verify=True)


def test_bytes_are_picked_where_an_instruction_does():
    with_bytes = dataclasses.replace(AVX512, features="+avx512f,+avx512bw,+avx512vl,+avx512dq,+avx512vbmi")
    assert "vpermi2var.qi" in build_module(turns("i8", 8), {}, with_bytes).text
    assert "vpermi2var" not in build_module(turns("i8", 8), {}, AVX512).text
    assert "vpermi2var" not in build_module(turns("f32", 8), {}, dataclasses.replace(AVX512, vector_bytes=32)).text


def test_numbers_of_lanes_are_read_outside_a_loop_with_what_they_order():
    code = Code(picks=2)
    code.line("  before")
    code.open_loop(frozenset())
    x = code.define("%x")
    code.line("  inside")
    order = [1, 0, *range(2, 16)]
    outer = shuffled(code, "<16 x float>", "%y", "poison", order)
    inner = shuffled(code, "<16 x float>", x, "poison", order)
    lines = code.text().split("\n")
    code.close()
    inside = lines.index("  inside")
    assert [k for k, line in enumerate(lines) if outer + " =" in line] < [inside] < [len(lines)]
    assert sum("@lanes" in line for line in lines) == 1
    assert any(inner + " =" in line for line in lines[inside:])


def test_blends_are_left_to_the_code_generator():
    code = Code(picks=2)
    shuffled(code, "<8 x float>", "%x", "%y", [0, 9, 2, 11, 4, 13, 6, 15])
    assert "shufflevector" in code.text()
