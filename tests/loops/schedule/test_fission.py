"""Nests that become several, each with some of the loops, mean the same."""

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import lax
from pullback.util.switches import switches

from .test_short_rows import nests_of


def spread(x):
    s = jnp.sum(x * x, -1)
    return jnp.log(s) + jnp.max(x, -1), lax.lgamma(1 + s)


def read_again(x):
    """Rows that need the logarithm again are no tail."""
    return x - jnp.log(jnp.sum(jnp.exp(x), -1, keepdims=True))


@pytest.mark.parametrize("shape", [(300, 100), (7, 20, 50), (64, 40), (65, 33)])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_values(shape, dtype):
    x = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    for f in (spread, read_again):
        for got, wanted in zip(jax.tree.leaves(jax.jit(f)(x)), jax.tree.leaves(f(jnp.asarray(x)))):
            np.testing.assert_allclose(got, wanted, rtol=2e-5)


def test_which_are_apart():
    x = np.ones((300, 100), "f4")
    assert "temporary row" in nests_of(spread, x)
    assert "temporary row" not in nests_of(read_again, x)
    assert "temporary row" not in nests_of(lambda x: x.sum(-1) + 1, x)
    assert "temporary row" not in nests_of(spread, x[:20])


def test_inside_of_a_loop():
    t = np.random.default_rng(0).standard_normal((64, 64)).astype("f4")

    def forward(t):
        return lax.scan(lambda a, x: (jax.scipy.special.logsumexp(t + a, 1) + x, None), t[0], t)[0]

    np.testing.assert_allclose(jax.jit(forward)(t), forward(jnp.asarray(t)), rtol=1e-5)


@pytest.mark.parametrize("shape", [(33, 700), (3, 20, 130)])
def test_scratch_space_of_rows_that_are_cut(shape):
    """Columns of the result are rows of what is given: stored by themselves, they would share lines between threads."""
    x = np.random.default_rng(0).standard_normal(shape).astype("f4")
    f = lambda x: jax.nn.softmax(jnp.moveaxis(x, -1, 0), -1 if x.ndim == 2 else (1, 2))
    g = lambda x: jax.nn.softmax(x.swapaxes(-1, -2), -2)
    for h in (f, g):
        wanted = h(jnp.asarray(x))
        for form in ("fission", "written"):
            with switches.set(form=form):
                np.testing.assert_allclose(jax.jit(lambda x, h=h: h(x))(x), wanted, rtol=2e-5)
    with switches.set(form="fission"):
        assert "temporary row" in nests_of(g, x)
    x = np.ones((33, 5000), "f4")
    assert "temporary row" in nests_of(g, x) and "temporary row" not in nests_of(lambda x: jax.nn.softmax(x), x)


def test_axes_that_one_part_takes_as_one_are_merged():
    """Sums over the first axis go down columns of both others, those over the middle one do not."""
    x = np.random.default_rng(0).standard_normal((90, 90, 3)).astype("f4")
    f = lambda x: x.sum(1) - x.sum(0)
    with switches.set(form="fission"):
        nests = nests_of(f, x)
        np.testing.assert_allclose(jax.jit(f)(x), f(jnp.asarray(x)), rtol=2e-4, atol=2e-4)
    assert "< 270 {" in nests
