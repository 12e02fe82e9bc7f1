"""Groups that share their outer loops, and what one of them stores over what the next is made of."""

import numpy as np
import pytest
from tests.lowering_checks import check, normal

import pullback as jax
import pullback.numpy as jnp


def positive(*shape, seed=0):
    return np.abs(normal(*shape, seed=seed)) + np.float32(1)


def test_a_result_stored_over_its_operand_is_not_computed_again():
    """Weighted means, which are results, and variances about them: the means were divided twice by their weights."""

    def moments(x, r):
        weights = r.sum(0)
        means = (r.T @ x) / weights[:, None]
        return means, (r[..., None] * (x[:, None] - means) ** 2).sum(0) / weights[:, None]

    check(moments, normal(300, 8), positive(300, 5), rtol=1e-4)


@pytest.mark.parametrize("width", [1, 6])
def test_the_same_where_the_operand_is_made_by_a_call_or_a_loop(width):
    def fun(x, y, z):
        made = jnp.cumsum(x @ y, 0)
        first = jnp.sin(made) + z
        return first, (z[None] * jnp.exp(-jnp.square(first))[None] * x[:, :1, None]).sum(0)

    check(fun, normal(9, 7), normal(7, width), normal(9, width), rtol=1e-4)


def separable(x, axes, taps=(0.25, 0.5, 0.25)):
    for axis in axes:
        n = x.shape[axis] - len(taps) + 1
        x = sum(t * jnp.tanh(jax.lax.slice_in_dim(x, k, k + n, axis=axis)) for k, t in enumerate(taps))
    return x


@pytest.mark.parametrize(
    "shape, axes, kept",
    [
        ((20, 530), (0, 1), True),
        ((18, 24, 25), (1, 2), True),
        ((18, 24, 25), (2, 1), True),
        ((3, 5, 7), (1, 2), False),
        ((3, 40, 40), (2, 1), False),
    ],
)
def test_rows_that_others_read_at_several_places_stay_near(shape, axes, kept):
    """A value that is read along its own rows alone is kept in scratch space of them."""
    r = check(lambda x: separable(x, axes), normal(*shape), rtol=1e-5)
    assert (r.buffers("local"), r.buffers("temporary")) == ((1, 0) if kept else (0, 1))


def test_rows_that_are_results_as_well():
    def f(x):
        y = separable(x, (0,))
        return y, separable(y, (1,))

    check(f, normal(20, 530), rtol=1e-5)
