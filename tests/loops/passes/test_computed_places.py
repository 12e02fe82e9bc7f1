"""A choice between two elements of one array is one load."""

import numpy as np
import pytest

import pullback as pb
from pullback import numpy as jnp
from pullback.loops.ir import Builder
from pullback.loops.ir.check import check
from pullback.loops.ir.interpret import interpret
from pullback.loops.ir.ir import Load
from pullback.loops.ir.visit import expressions, statements, subexpressions
from pullback.loops.passes.computed_places import computed_places


def choosing(kind):
    b = Builder()
    x, k = b.input("x", "f32", 20), b.input("k", "i32", 1)
    y = b.output("y", "f32", 10)
    shift = b.let(b.load(k, 0))
    with b.loop(10) as i:
        at = b.add(i, b.convert(shift, "i64"))
        condition = b.op("lt", at, b.index(10))
        one, other = b.load(x, at), b.load(x, b.add(at, b.index(-10)))
        if kind == "by data":
            condition = b.op("lt", b.load(x, i), b.const("f32", 0.0))
            one, other = b.load(x, i), b.load(x, b.add(i, b.index(10)))
        elif kind == "elsewhere":
            other = b.load(x, i)
        elif kind == "written":
            one, other = b.load(y, i), b.load(y, i)
        b.store(y, i, b.op("select", condition, one, other))
    return b.function("choosing")


@pytest.mark.parametrize(("kind", "merged"), [("shift", True), ("by data", False), ("elsewhere", False)])
def test_choices_of_places_are_one_load(kind, merged):
    function = choosing(kind)
    changed = computed_places(function)
    check(changed, "computed_places")
    x = np.random.default_rng(0).normal(size=20).astype(np.float32)
    for shift in (0, 3, 10):
        for want, got in zip(*(interpret(f, [x, np.array([shift], np.int32)]) for f in (function, changed))):
            np.testing.assert_array_equal(want, got)
    roots = [expr for stmt in statements(changed.body) for expr in expressions(stmt)]
    loads = [x for x in subexpressions(roots) if isinstance(x, Load) and x.buffer.name == "x"]
    assert (len(loads) == 1) == merged


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.int32, np.float32, np.complex64])
@pytest.mark.parametrize("shift", [0, 1, -5, 19, 20, 21, -90])
def test_rolls_by_computed_numbers(dtype, shift):
    x = (np.random.default_rng(1).normal(size=(15, 20)) * 9).astype(dtype)
    f = pb.jit(lambda x, k: jnp.roll(jnp.roll(x, k, 0), 2 * k, 1))
    np.testing.assert_array_equal(f(x, shift), np.roll(x, (shift, 2 * shift), (0, 1)))
