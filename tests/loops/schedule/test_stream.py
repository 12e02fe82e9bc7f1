"""Results that the caches cannot keep go past them: what is marked, and that each element arrives."""

import re

import numpy as np
import pytest
from tests.loops.emit.kit import sample

import pullback
import pullback.numpy as jnp
from pullback.loops.emit.cpu.target import host_target
from pullback.loops.emit.jit import compile_function
from pullback.loops.emit.module import build_module
from pullback.loops.ir import NP_DTYPE, Builder, Loop
from pullback.loops.ir.ir import STREAMED
from pullback.loops.ir.visit import statements, with_nests
from pullback.loops.schedule import stream as module
from pullback.loops.schedule.machine import TINY


def marked(function):
    return sum(isinstance(s, Loop) and STREAMED in s.attrs for s in statements(function.body))


def sums(n, dtypes=("f32",), known=True, apart=0):
    """y_k[i] = x_k[i] + x_k[i] + 1 for i < n, each y_k with `apart` * k elements before it."""
    b = Builder()
    pairs = [(b.input(f"x{k}", d, n), b.output(f"y{k}", d, n + apart * k)) for k, d in enumerate(dtypes)]
    count = b.input("n", "i64", 1)
    with b.loop(b.index(n) if known else b.let(b.load(count, 0)), "vector") as i:
        for k, (x, y) in enumerate(pairs):
            b.store(y, i + apart * k, b.load(x, i) + b.load(x, i) + b.const(x.dtype, 1))
    return b.function("sums")


def of_all(function):
    """The function with each vector loop marked."""

    def nest(loop):
        return [Loop(loop.var, loop.extent, loop.role, loop.body, loop.carried, (*loop.attrs, STREAMED))]

    return type(function)(function.name, function.buffers, with_nests(function.body, nest))


@pytest.mark.parametrize("n", [7, 64, 300, 513, 4096])
@pytest.mark.parametrize("known", [True, False])
def test_all_elements_arrive_wherever_results_begin(n, known):
    code = compile_function(of_all(sums(n, known=known)), {}, verify=True)
    x = sample("f32", n)
    for offset in (0, 4, 8, 20, 60):
        raw = np.full(4 * n + 192, 0xA5, np.uint8)
        start = -raw.ctypes.data % 64 + offset
        y = raw[start : start + 4 * n].view("f4")
        assert code([x, np.array([n])], [y]) == 0
        assert np.array_equal(y, x + x + np.float32(1), equal_nan=True)
        assert (raw[:start] == 0xA5).all() and (raw[start + 4 * n :] == 0xA5).all()


@pytest.mark.parametrize(
    "dtypes", [("f64",), ("i8",), ("i16", "f32"), ("c64",), ("bf16",), ("f32", "f64", "u8"), ("f32", "f32")]
)
@pytest.mark.parametrize("apart", [0, 3])
def test_several_results_whose_lines_begin_together_or_not(dtypes, apart):
    n = 1000
    function = sums(n, dtypes, apart=apart)
    inputs = [sample(d, n, edges=False) for d in dtypes]
    results = []
    for each in (function, of_all(function)):
        outputs = [np.zeros(n + apart * k, NP_DTYPE[d]) for k, d in enumerate(dtypes)]
        assert compile_function(each, {}, verify=True)([*inputs, np.array([n])], outputs) == 0
        results.append(outputs)
    for plain, past in zip(*results):
        assert plain.tobytes() == past.tobytes()


@pytest.mark.parametrize("known", [True, False])
def test_the_body_is_written_twice(known):
    text = build_module(of_all(sums(100_000, known=known)), {}, host_target()).text
    vectors = re.findall(r"store <\d+ x float>", text)
    past = text.count("!nontemporal")
    assert past == 1 or not known  # lanes of a loop of unknown length may be less than a line
    assert len(vectors) == 1 + past
    assert text.count("store float") == (not known)  # where there may be too few iterations for a vector


def test_what_is_marked(monkeypatch):
    monkeypatch.setattr(module, "NOMINAL", TINY)  # of which the last cache has 32 KB

    def fill(n):
        b = Builder()
        y = b.output("y", "f32", n)
        with b.loop(n, "vector") as i:
            b.store(y, i, b.const("f32", 2))
        return b.function("fill")

    def in_place(n):
        b = Builder()
        y = b.output("y", "f32", n)
        with b.loop(n, "vector") as i:
            b.store(y, i, b.load(y, i) * 2.0)
        return b.function("in_place")

    assert marked(module.stream(sums(20_000))) == 1
    assert marked(module.stream(sums(3_000))) == 0  # stays in the cache
    assert marked(module.stream(fill(100_000))) == marked(module.stream(in_place(100_000))) == 0


def test_large_results_go_past_the_caches_and_small_ones_do_not():
    large, small = (pullback.ShapeDtypeStruct((n,), jnp.float32) for n in (8_000_000, 100_000))
    add = pullback.jit(lambda x, y: x + y)
    assert "streamed" in add.lower(large, large).as_text("nests")
    assert "streamed" not in add.lower(small, small).as_text("nests")
    x = np.arange(6_000_001, dtype=np.float32)
    assert np.array_equal(add(x, x[::-1]), np.full(6_000_001, 6_000_000, np.float32))


def test_large_nests_that_call_subroutines_are_left_as_they_are():
    with pullback.enable_x64(True):
        x, y = np.ones((128, 2000)), np.ones((2000, 2000))
        program = pullback.jit(lambda x, y: x @ y.T).lower(x, y).compile()
        assert (np.asarray(program(x, y)) == 2000).all()
