"""Long straight code is written in parts; what waits lies on the stack."""

from __future__ import annotations

import numpy as np
import pytest

from pullback.loops.emit import compile_function, host_target
from pullback.loops.emit.parts import LONG, PART
from pullback.loops.ir.build import Builder

from .kit import both, sample


def there_and_back(b, x, steps, flags=False):
    """A chain whose second half reads what each step of the first half has computed, last first, as a gradient does."""
    waiting = []
    for k in range(steps):
        waiting.append(b.let(b.gt(x, float(k % 3)) if flags else x))
        x = b.let(x * (1.0 - 0.001 * (k % 5)) + 0.125)
    for each in reversed(waiting):
        x = b.let(b.select(each, x * 0.5, x + 0.25) if flags else x * 0.75 - each)
    return x


@pytest.mark.parametrize("flags", [False, True])
@pytest.mark.parametrize("dtype", ["f32", "f64", "c64", "i32"])
def test_in_lanes_and_in_scalars(dtype, flags):
    if flags and dtype == "c64":
        pytest.skip("complex numbers have no order")
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
