"""What follows from places alone is computed in loops, not stored, and means the same."""

import numpy as np
import pytest

import pullback as pb
from pullback import lax
from pullback import numpy as jnp
from pullback.loops.ir import Builder
from pullback.loops.ir.check import check
from pullback.loops.ir.interpret import interpret
from pullback.loops.ir.visit import loaded
from pullback.loops.passes.rematerialize import rematerialize


def looping(value, shape=(20,), space="temporary", twice=False, data=None):
    """y[k] += t[k] at each of 3 steps, t given by `value` of the indices, or by the numbers of a constant."""
    b = Builder()
    size = int(np.prod(shape))
    x = b.input("x", "i32", size)
    y = b.output("y", "i32", size)
    if data is not None:
        t = b.constant("t", np.asarray(data, np.int32))
    else:
        t = b.output("t", "i32", size) if space == "output" else b.temporary("t", "i32", size)
        for _ in range(1 + twice):
            if len(shape) == 1:
                with b.loop(shape[0]) as i:
                    b.store(t, i, value(b, b.load(x, i), i))
            else:
                with b.loop(shape[0]) as i, b.loop(shape[1]) as j:
                    b.store(t, b.add(b.mul(i, b.index(shape[1])), j), value(b, b.load(x, i), i, j))
    with b.loop(size) as i:
        b.store(y, i, b.load(x, i))
    with b.loop(3, "sequential"), b.loop(size) as i:
        b.store(y, i, b.add(b.load(y, i), b.load(t, i)))
    return b.function("looping")


def count(b, x, i):
    return b.add(b.convert(i, "i32"), b.const("i32", 3))


def sum_of_counts(b, x, i, j):
    return b.op("sub", b.convert(i, "i32"), b.convert(j, "i32"))


def of_data(b, x, i):
    return b.add(b.convert(i, "i32"), x)


CASES = {
    "a count": (looping(count), True),
    "two indices": (looping(sum_of_counts, (5, 4)), True),
    "a constant": (looping(count, data=5 - 2 * np.arange(20)), True),
    "an output": (looping(count, space="output"), False),
    "data": (looping(of_data), False),
    "stored twice": (looping(count, twice=True), False),
    "no progression": (looping(count, data=np.arange(20) ** 2), False),
}


@pytest.mark.parametrize("name", CASES)
def test_what_follows_from_places_is_computed(name):
    function, expected = CASES[name]
    changed = rematerialize(function)
    check(changed, "rematerialize")
    x = np.arange(20, 40).astype(np.int32)
    for want, got in zip(interpret(function, [x]), interpret(changed, [x])):
        np.testing.assert_array_equal(want, got)
    assert ("t" not in {buffer.name for buffer in loaded(changed.body)}) == expected


def test_scanned_counts_are_the_step():
    """What a scan goes through, and an array that its body closes over, are no arrays in memory."""

    def f(x):
        i = jnp.arange(50)
        return lax.scan(lambda c, k: (jnp.where(i < k, c + x, c), None), x, jnp.arange(20) + 2)[0]

    x = np.linspace(0, 1, 50, dtype=np.float32)
    text = pb.jit(f).lower(x).as_text("nests")
    assert "i32[" not in text
    want = x.copy()
    for k in range(2, 22):
        want = np.where(np.arange(50) < k, want + x, want)
    np.testing.assert_allclose(pb.jit(f)(x), want, rtol=1e-6)


def read_once(value, steps=1, shift=0, dtype="f32"):
    """y[x[k] % 8] += t[k + shift], some times over, t given by `value` of the elements of x and z at the same place."""
    b, size = Builder(), 20
    x, z = b.input("x", "i32", size), b.input("z", dtype, size)
    y, t = b.output("y", dtype, 8), b.temporary("t", dtype, size)
    with b.loop(8) as i:
        b.store(y, i, b.const(dtype, 0))
    with b.loop(size) as i:
        b.store(t, i, value(b, b.load(x, i), b.load(z, i), b.load(z, b.sub(b.index(size - 1), i))))
    with b.loop(steps, "sequential"), b.loop(size - shift, "sequential") as i:
        place = b.op("and", b.convert(b.load(x, i), "i64"), b.index(7))
        b.store(y, place, b.add(b.load(y, place), b.load(t, b.add(i, b.index(shift)))))
    return b.function("read_once")


ONCE = {
    "a product": (read_once(lambda b, x, z, turned: b.mul(z, z)), True),
    "two arguments": (read_once(lambda b, x, z, turned: b.mul(z, b.convert(x, "f32"))), True),
    "a part": (read_once(lambda b, x, z, turned: b.add(z, z), shift=3), True),
    "a number": (read_once(lambda b, x, z, turned: b.const("f32", 2)), True),
    "again and again": (read_once(lambda b, x, z, turned: b.mul(z, z), steps=2), False),
    "another place": (read_once(lambda b, x, z, turned: b.mul(z, turned)), False),
    "a division": (read_once(lambda b, x, z, turned: b.div(z, z)), False),
}


@pytest.mark.parametrize("name", ONCE)
def test_what_is_read_once_is_computed_there(name):
    function, expected = ONCE[name]
    changed = rematerialize(function)
    check(changed, "rematerialize")
    assert (not any(b.space == "temporary" for b in changed.buffers)) == expected
    x, z = np.random.default_rng(0).integers(0, 99, 20).astype("i4"), np.linspace(1, 2, 20).astype("f4")
    for want, got in zip(interpret(function, [x, z.copy()]), interpret(changed, [x, z.copy()])):
        np.testing.assert_array_equal(want, got)
