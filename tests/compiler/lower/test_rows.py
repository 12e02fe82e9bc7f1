"""Groups that share their outer loops, and what one of them stores over what the next is made of."""

import numpy as np
import pytest
from tests.lowering_checks import check, normal

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
