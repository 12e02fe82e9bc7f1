"""What a vector loop leaves is done by shorter vectors: in place, and in reductions."""

import numpy as np
import pytest

from pullback.loops.emit.jit import compile_function
from pullback.loops.ir import Builder

ROWS = 5


def rows(n, in_place, combine="add"):
    """y[i] = reduction of x[i, :], or y[i, :] = exp-free work on y[i, :] that must happen once."""
    b = Builder()
    x = b.input("x", "f32", ROWS * n)
    y = b.output("y", "f32", ROWS * n if in_place else ROWS)
    with b.loop(ROWS, "sequential") as i:
        if in_place:
            with b.loop(n, "vector") as j:
                b.store(y, i * n + j, b.load(y, i * n + j) + b.load(x, i * n + j))
        else:
            with b.carried_loop(n, [((b.const("f32", 0.5),), combine)], "vector") as r:
                r.update(b.op(combine, r.var, b.load(x, i * n + r.i)))
            b.store(y, i, r.result)
    return b.function("rows")


@pytest.mark.parametrize("n", [*range(8, 34), 63, 100, 114, 1001])
def test_values(n):
    x = np.random.default_rng(n).normal(size=(ROWS, n)).astype("f4")
    y = np.ones((ROWS, n), "f4")
    code = compile_function(rows(n, True), {}, verify=True)
    assert code([x.ravel()], [y.reshape(-1)]) == 0
    assert np.array_equal(y, 1 + x)
    for combine, reduce in (("add", np.sum), ("mul", np.prod), ("max", np.max)):
        result = np.zeros(ROWS, "f4")
        assert compile_function(rows(n, False, combine), {}, verify=True)([x.ravel()], [result]) == 0
        want = reduce(np.c_[x.astype("f8"), np.full(ROWS, 0.5)], axis=1)
        np.testing.assert_allclose(result, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("in_place", [True, False])
def test_no_loop_of_single_elements(in_place):
    def count(n):
        return compile_function(rows(n, in_place), {}).llvm.count("\nloop.")

    assert count(16 + 2) == count(16 + 4) == count(16) > 0
