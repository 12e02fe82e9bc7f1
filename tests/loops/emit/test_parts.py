"""Long straight code is written in parts; what waits lies on the stack."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback.loops.emit import code, functions, parts
from pullback.loops.emit.jit import compile_function
from pullback.loops.ir.build import Builder
from pullback.runtime.programs.compiler import compile_jaxpr

from .kit import both, sample

PART, LONG = 16, 64


@pytest.fixture(autouse=True)
def short_parts(monkeypatch):
    monkeypatch.setattr(parts, "PART", PART)
    monkeypatch.setattr(functions, "LONG", LONG)


def there_and_back(b, x, steps, flags=False):
    """A chain whose second half reads what each step of the first half has computed, last first, as a gradient does."""
    waiting = []
    for k in range(steps):
        waiting.append(b.let(b.gt(x, float(k % 3)) if flags else x))
        x = b.let(x * (1.0 - 0.001 * (k % 5)) + 0.125)
    for each in reversed(waiting):
        x = b.let(b.select(each, x * 0.5, x + 0.25) if flags else x * 0.75 - each)
    return x


@pytest.mark.parametrize(("dtype", "flags"), [("f32", True), ("f64", False), ("c64", False), ("i32", True)])
def test_in_lanes_and_in_scalars(dtype, flags):
    b = Builder()
    n = 19
    x, y, z = b.input("x", dtype, n), b.output("y", dtype, n), b.output("z", dtype, 1)

    def chain(value):
        if dtype == "i32":
            value = b.convert(value, "f32")
        value = there_and_back(b, value, LONG, flags)
        return b.convert(value, "i32") if dtype == "i32" else value

    with b.loop(n, "vector", attrs=(("lanes", 8),)) as i:
        b.store(y, i, chain(b.load(x, i)))
    b.store(z, 0, chain(b.load(x, 3)))
    function = b.function("f")
    data = sample(dtype, n, edges=False)
    if dtype == "i32":
        data %= 100
    for got, want in both(function, [data]):
        np.testing.assert_allclose(got, want, rtol=1e-4)


def test_every_part_ends_with_a_branch_and_leaves_what_waits_on_the_stack():
    """Results of loops wait, too; what only one part reads stays in registers."""
    b = Builder()
    n = 4
    x, y = b.input("x", "f32", n), b.output("y", "f32", 1)
    with b.carried_loop(n, [([b.const("f32", 0.0)], "add")], "reduce") as loop:
        loop.update(loop.var + b.load(x, loop.i))
    value = there_and_back(b, loop.result, LONG)
    b.store(y, 0, value + loop.result)
    function = b.function("f")
    text = compile_function(function).llvm
    blocks = text.count("label %part.")
    assert blocks == len(function.body) // PART
    # The first half of the chain, its sum, and one value where each part ends.
    assert LONG < text.count("store volatile float") <= LONG + blocks + 1
    ((got, want),) = both(function, [sample("f32", n, edges=False)])
    np.testing.assert_allclose(got, want, rtol=1e-4)


@pytest.mark.parametrize("shape", [(), (37,)])
def test_many_calls_of_functions_have_branches_between_them(shape):
    """LLVM's time grows with the square of the calls in one block."""
    count = 3 * code.CALLS

    def chain(x):
        for _ in range(count):
            x = jnp.exp(x * 0.1j)
        return x

    x = np.full(shape, 0.3 + 0.2j, np.complex64)
    program = compile_jaxpr(jax.make_jaxpr(chain)(x))
    text = program.as_text("llvm")
    assert text.count("label %part.") >= 3
    blocks = text[text.index("@pb_main") :].split("\npart.")
    assert max(block.count("@exp") for block in blocks) <= code.CALLS
    expected = x.astype(np.complex128)
    for _ in range(count):
        expected = np.exp(expected * 0.1j)
    np.testing.assert_allclose(program.call([jnp.asarray(x)])[0], expected, rtol=1e-5)
