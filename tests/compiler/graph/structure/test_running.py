"""One element of a running result is a reduction, and means the same."""

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import lax

NAMES = ["cumsum", "cumprod", "cummax", "cummin"]


@pytest.mark.parametrize(
    ("name", "dtype"),
    [(name, dtype) for name in NAMES for dtype in ("f4", "i4", "f2")] + [("cumsum", "c8"), ("cumprod", "c8")],
)
def test_elements_are_reductions(name, dtype):
    x = np.random.default_rng(0).uniform(-3, 3, (6, 40)).astype(dtype)
    if dtype == "f4":
        x[2, 7], x[4, 30] = np.nan, np.inf
    run = getattr(lax, name)

    def several(x):
        return (
            run(x, axis=1)[:, -1],
            run(x, axis=0)[3, ::2],
            run(x, axis=1, reverse=True)[1:4, 25],
            lax.index_in_dim(run(x, axis=1), 0, 1),
        )

    compiled = jax.jit(several)
    assert name not in compiled.lower(x).as_text("jaxpr")
    with np.errstate(all="ignore"):
        for got, want in zip(compiled(x), several(x)):  # eagerly, all are computed
            assert (got.shape, got.dtype) == (want.shape, want.dtype)
            np.testing.assert_allclose(got, want, rtol=1e-2 if dtype == "f2" else 2e-5, atol=1e-5)


def test_what_is_read_elsewhere_stays():
    def f(x):
        c = jnp.cumsum(x)
        return c / c[-1]

    x = np.arange(1.0, 101.0, dtype="f4")
    assert jax.jit(f).lower(x).as_text("jaxpr").count("cumsum") == 1
    np.testing.assert_allclose(jax.jit(f)(x), np.cumsum(x) / x.sum(), rtol=1e-6)
    slope = jax.jit(jax.grad(lambda x: jnp.cumsum(x * x)[-1]))(x)
    np.testing.assert_allclose(slope, 2 * x)
    assert jax.jit(lambda x: jnp.cumsum(x, 1)[:, :0])(np.ones((2, 3))).shape == (2, 0)


def test_elements_behind_elementwise_operations():
    x = np.random.default_rng(0).standard_normal((6, 50)).astype("f4")
    y = np.arange(6, dtype="f4")
    for f, expected in (
        (lambda x, y: jnp.exp(jnp.cumsum(x / 9, 1))[:, -1], np.exp((x / 9).sum(1))),
        (lambda x, y: (2 * jnp.cumsum(x, 1) + y[:, None])[:, 10], 2 * x[:, :11].sum(1) + y),
        (lambda x, y: jnp.sqrt(abs(jnp.cumprod(x, 0)))[-1], np.sqrt(abs(x.prod(0)))),
        (lambda x, y: jnp.exp(jnp.cumsum(x, 1) * jnp.ones(50))[2:4, 0], np.exp(x[2:4, 0])),
    ):
        np.testing.assert_allclose(jax.jit(f)(x, y), expected, rtol=1e-5)
        text = jax.jit(f).lower(x, y).as_text("jaxpr")
        assert "cumsum" not in text and "cumprod" not in text


def test_running_results_that_are_read_elsewhere_stay():
    x = np.random.default_rng(0).standard_normal((6, 50)).astype("f4")

    def several(x):
        y = jnp.exp(jnp.cumsum(x, 1))
        return y[:, -1], y.sum()

    def behind(x):
        c = jnp.cumsum(x, 1)
        return jnp.exp(c)[:, -1], c

    for f in (several, behind, lambda x: jnp.exp(jnp.cumsum(x, 1))[:, 3:5], lambda x: jnp.exp(jnp.cumsum(x, 0))[:, 3]):
        assert "cumsum" in jax.jit(f).lower(x).as_text("jaxpr")
        for got, wanted in zip(jax.tree.leaves(jax.jit(f)(x)), jax.tree.leaves(f(x))):
            np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)
