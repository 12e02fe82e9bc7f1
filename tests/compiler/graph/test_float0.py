"""float0, the type of tangents of integers, in compiled programs: it has no bytes, and comes out as it went in."""

import numpy as np
import pytest

import pullback as pb
import pullback.numpy as jnp
from pullback import lax

X = np.arange(6).reshape(2, 3)
ZERO = np.zeros((2, 3), pb.float0)


def gradient(x):
    return pb.grad(lambda a: jnp.sum(a * 2.0), allow_int=True)(x)


FUNCTIONS = {
    "gradient": gradient,
    "jvp": lambda x: pb.jvp(lambda a: a * 2, (x,), (ZERO,))[1],
    "vjp": lambda x: pb.vjp(lambda a: a * 2.0, x)[1](jnp.ones((2, 3)))[0],
    "map": pb.vmap(gradient),
    "nested": lambda x: pb.jit(gradient)(x),
    "scan": lambda x: lax.scan(lambda c, row: (c, gradient(row)), 0.0, x)[1],
    "carry": lambda x: lax.scan(lambda c, row: (c, c), ZERO, x)[0],
    "cond": lambda x: lax.cond(x[0, 0] > 0, gradient, lambda a: ZERO, x),
    "constant": lambda x: ZERO,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_float0_comes_out_of_compiled_programs(name):
    found = pb.jit(FUNCTIONS[name])(X)
    assert found.dtype == pb.float0 and found.shape == (2, 3)


@pytest.mark.parametrize("keep_unused", [False, True])
def test_float0_goes_in_beside_numbers(keep_unused):
    f = pb.jit(lambda x, t: (pb.jvp(lambda a: a * 2, (x,), (t,)), t), keep_unused=keep_unused)
    for _ in range(2):  # from the call cache, too
        (value, tangent), same = f(X, ZERO)
        np.testing.assert_array_equal(value, 2 * X)
        assert tangent.dtype == same.dtype == pb.float0 and same.shape == (2, 3)
    assert f.lower(X, ZERO).compile()(X, ZERO)[1].dtype == pb.float0
