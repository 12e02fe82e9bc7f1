"""Policies of checkpoint that keep values in the host's memory until the backward pass."""

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback.ad_checkpoint import checkpoint_name, checkpoint_policies, saved_residuals

W, X = jnp.asarray(np.arange(9.0, dtype=np.float32).reshape(3, 3) / 9), jnp.arange(3.0)


def f(w, x):
    y = checkpoint_name(jnp.sin(checkpoint_name(w @ x, "moved")), "kept")
    return jnp.sin(w @ y).sum()


NAMES = checkpoint_policies.save_and_offload_only_these_names(
    names_which_can_be_saved=["kept"],
    names_which_can_be_offloaded=["moved"],
    offload_src="device",
    offload_dst="pinned_host",
)
DOTS = checkpoint_policies.offload_dot_with_no_batch_dims("device", "pinned_host")


@pytest.mark.parametrize(("policy", "moves"), [(NAMES, 1), (DOTS, 2)])
def test_values_that_are_offloaded(policy, moves):
    g = jax.checkpoint(f, policy=policy)
    kept = [aval.str_short() for aval, _ in saved_residuals(g, W, X)]
    assert kept.count("float32<host>[3]") == moves
    program = str(jax.make_jaxpr(jax.grad(g))(W, X))
    assert program.count("device_put") == 2 * moves  # there, and back
    want = jax.grad(f)(W, X)
    np.testing.assert_allclose(jax.grad(g)(W, X), want, rtol=1e-6)
    np.testing.assert_allclose(jax.jit(jax.grad(g))(W, X), want, rtol=1e-6)
    np.testing.assert_allclose(jax.vmap(jax.grad(g), in_axes=(None, 0))(W, X[None])[0], want, rtol=1e-6)


def test_what_is_not_needed_is_not_moved():
    def h(w, x):
        return (w @ x) @ w  # linear in each: the product of w and x is a residual, the other is not

    g = jax.checkpoint(lambda w, x: h(w, x).sum(), policy=DOTS)
    assert str(jax.make_jaxpr(jax.grad(g))(W, X)).count("device_put") == 2


def test_a_memory_that_is_not_there():
    policy = checkpoint_policies.offload_dot_with_no_batch_dims("device", "disk")
    with pytest.raises(ValueError, match="memory 'disk'"):
        jax.grad(jax.checkpoint(f, policy=policy))(W, X)


def test_what_loops_keep_is_offloaded():
    def h(w, x):
        return jax.lax.scan(lambda c, _: (jnp.sin(w @ c), None), x, None, length=4)[0].sum()

    g = jax.checkpoint(h, policy=DOTS)
    assert "float32<host>[4,3]" in [aval.str_short() for aval, _ in saved_residuals(g, W, X)]
    np.testing.assert_allclose(jax.jit(jax.grad(g))(W, X), jax.grad(h)(W, X), rtol=1e-6)
