"""Scans by associative functions."""

import numpy as np
import pytest

import pullback as pb
import pullback.numpy as jnp
from pullback import lax
from pullback.test_util import check_grads


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(
    ("fn", "name"),
    [
        (jnp.add, "cumsum"),
        (lambda a, b: b + a, "cumsum"),
        (lax.max, "cummax"),
        (jnp.minimum, "cummin"),
        (jnp.multiply, "cumprod"),
        (lambda a, b: a + b + 0 * a, None),
        (lambda a, b: a + a, None),
        (lambda a, b: b, None),
    ],
)
def test_scans_of_one_operation_are_cumulative(fn, name, reverse):
    x = jnp.asarray(np.random.default_rng(0).standard_normal((4, 7, 3)).astype("f4"))
    f = lambda x: lax.associative_scan(fn, x, reverse=reverse, axis=1)
    found = [eqn.primitive.name for eqn in pb.make_jaxpr(f)(x).jaxpr.eqns]
    assert found == [name] if name else not {"cumsum", "cummax", "cummin", "cumprod"} & set(found)
    if name:
        steps = {"cumsum": np.add, "cummax": np.maximum, "cummin": np.minimum, "cumprod": np.multiply}
        want = np.asarray(x)[:, ::-1] if reverse else np.asarray(x)
        want = steps[name].accumulate(want, 1)
        np.testing.assert_allclose(f(x), want[:, ::-1] if reverse else want, rtol=1e-5, atol=1e-6)
        check_grads(f, (x,), 2, rtol=3e-2, atol=3e-2)
