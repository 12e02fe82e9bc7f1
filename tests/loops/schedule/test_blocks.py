"""Nests in blocks of rows: what is between the loops of rows is in lanes, and means the same."""

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback.util.switches import switches


def nests_of(f, *args):
    """The buffers and nests of a program after all passes."""
    return jax.jit(f).lower(*args).as_text("nests")


def normalized(x):
    y = x - x.mean(-1, keepdims=True)
    return y / jnp.sqrt((y**2).mean(-1, keepdims=True) + 1e-5)


def weighted(x):
    z = jnp.exp(x - jnp.max(x, -1, keepdims=True))
    return z / z.sum(-1, keepdims=True), jnp.argmax(z, -1), jnp.log(z.sum(-1))


@pytest.mark.sample(18)
@pytest.mark.parametrize("dtype", ["f4", "f8", "f2"])
@pytest.mark.parametrize("shape", [(700, 100), (1003, 33), (5, 130, 50), (150, 300), (129, 2), (2, 3, 70, 40)])
@pytest.mark.parametrize("f", [normalized, weighted, jax.grad(lambda x: (normalized(x) ** 3).sum())])
def test_values_are_those_of_the_nest_as_it_is_written(f, shape, dtype, x64):
    x = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    found = {}
    for form in ("blocks", "written"):
        with switches.set(form=form):
            found[form] = jax.tree.leaves(jax.jit(f)(x))
    for got, wanted in zip(found["blocks"], found["written"]):
        np.testing.assert_array_equal(got, wanted)


def test_what_is_between_loops_is_in_lanes():
    x = np.ones((1000, 100), "f4")
    with switches.set(form="blocks"):
        roots = [line for line in nests_of(normalized, x).split("vector ") if "sqrt" in line]
    assert len(roots) == 1 and roots[0].startswith("j")  # a vector loop over rows


def test_rows_that_do_not_wait_are_left():
    with switches.set(form="blocks"):
        assert "local row" not in nests_of(lambda x: (x * 2, x.sum(-1)), np.ones((1000, 100), "f4"))
        assert "local row" not in nests_of(normalized, np.ones((1000, 9000), "f4"))  # no eight rows in the cache
        assert "local row" not in nests_of(normalized, np.ones((20, 100), "f4"))  # no block for each core


def test_the_price_prefers_blocks_where_reductions_wait_for_each_other():
    """Two numbers are waited for in the gradient of a normalization, of rows that fit the caches."""
    f = jax.grad(lambda x: (normalized(x) ** 3).sum())
    assert "blocks" in jax.jit(f).lower(np.ones((5000, 64), "f4")).as_text("schedule").split("runner-up")[0]
