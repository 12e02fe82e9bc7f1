"""Lanes of floats divided by one number, which is done by its reciprocal where all of a nest shares it."""

import numpy as np
import pytest

import pullback
from pullback import numpy as jnp
from pullback.loop_ir import Op
from pullback.loop_ir.ir import INVERSE
from pullback.loop_ir.visit import expressions, statements, subexpressions
from pullback.pipelines import optimize_loops

SIZES = [0, 1, 15, 16, 17, 511, 512, 513, 5000]


def _special(dtype):
    info = np.finfo(dtype)
    least = info.smallest_subnormal
    sizes = [info.max, info.max / 2, info.max / 4, info.max / 5, info.tiny, info.tiny / 2, least, 3 * least, np.inf]
    return np.array([0.0, *sizes, 1, 3, 1 / 3, 1 + info.eps, 2 - info.eps, np.nan], dtype)


def _ulps(x, y, dtype):
    """How many numbers apart the elements of two arrays are; NaNs, signs and infinities have to be the same."""
    np.testing.assert_array_equal(np.isnan(x), np.isnan(y))
    known = ~np.isnan(y)
    np.testing.assert_array_equal(np.signbit(x[known]), np.signbit(y[known]))
    bits = np.int32 if dtype == np.float32 else np.int64
    return np.abs(x[known].view(bits).astype(np.int64) - y[known].view(bits).astype(np.int64)).max(initial=0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_quotients_are_rounded_as_divisions(dtype):
    """But for dividends and quotients around the smallest normal numbers, which may give one unit off."""
    rng = np.random.default_rng(0)
    range_ = np.log2(float(np.finfo(dtype).max)) + 20
    any_size = np.exp2(rng.uniform(-range_, range_, 3000).clip(-1074, 1023.9))
    with np.errstate(all="ignore"), pullback.enable_x64(True):
        x = np.concatenate([_special(dtype), -_special(dtype), any_size.astype(dtype), rng.standard_normal(3000)])
        x = x.astype(dtype)
        divide = pullback.jit(lambda x, y: x / y)
        info = np.finfo(dtype)
        least = info.tiny / info.eps**1.5  # what is left of a smaller number has no room
        divisors = np.concatenate([_special(dtype), -_special(dtype), any_size[:60], rng.standard_normal(60)])
        for y in divisors.astype(dtype):
            quotient = np.asarray(divide(x, y))
            assert _ulps(quotient, x / y, dtype) <= 1, y
            normal = ~((np.abs(x) < least) | (np.abs(x / y) < least))
            np.testing.assert_array_equal(quotient[normal], (x / y)[normal])


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("by", [3.0, -0.7, 1e-38, 2e38])
def test_divisors_that_are_known(n, by):
    x = np.random.default_rng(n).standard_normal(n).astype(np.float32)
    with np.errstate(over="ignore"):
        assert _ulps(np.asarray(pullback.jit(lambda x: x / by)(x)), x / np.float32(by), np.float32) <= 1


def _marked(fun, *args):
    lowered = pullback.jit(fun).lower(*args).compile()._program.lowered.function
    exprs = [e for s in statements(optimize_loops(lowered).body) for e in expressions(s)]
    return sum(isinstance(e, Op) and INVERSE in e.attrs for e in subexpressions(exprs))


def test_where_reciprocals_are_quicker():
    x, y = np.ones((1000, 64), np.float32), np.float32(3)
    assert _marked(lambda x, y: x / y, x, y) == 1
    assert _marked(lambda x, y: x[0] / y, x, y) == 0  # too few
    assert _marked(lambda x, y: x / x[:, :1], x, y) == 0  # a divisor for each row
    assert _marked(lambda x, y: y / x, x, y) == 0
    assert _marked(lambda x, y: jnp.tanh(jnp.sin(x / y) * jnp.exp(x)), x, y) == 0  # a long body
