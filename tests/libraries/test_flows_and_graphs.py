"""distrax, chex, optax and jraph from PyPI, unmodified: flows are trained and sampled, networks of graphs learn."""

from __future__ import annotations

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

KEY = jax.random.key(0)


def trained(loss, params, steps=120, rate=2e-2):
    """Parameters after some steps of Adam, and the losses."""
    optimizer = optax.adam(rate)

    def step(carry, _):
        params, state = carry
        value, slope = jax.value_and_grad(loss)(params)
        updates, state = optimizer.update(slope, state)
        return (optax.apply_updates(params, updates), state), value

    (params, _), values = jax.jit(lambda p: jax.lax.scan(step, (p, optimizer.init(p)), None, length=steps))(params)
    return params, np.asarray(values)


@pytest.mark.filterwarnings("ignore")  # TensorFlow Probability's substrate warns while it is imported
def test_a_flow_learns_a_density_and_samples_it():
    distrax = pytest.importorskip("distrax", reason="`make test` installs it")

    def flow(params):
        base = distrax.Independent(distrax.Normal(jnp.zeros(2), jnp.ones(2)), 1)
        layers = [
            distrax.Block(distrax.RationalQuadraticSpline(params["spline"], -4.0, 4.0), 1),
            distrax.Block(distrax.ScalarAffine(params["shift"], log_scale=params["scale"]), 1),
        ]
        return distrax.Transformed(base, distrax.Chain(layers[::-1]))

    data = jax.random.normal(KEY, (400, 2)) * jnp.array([2.0, 0.5]) + jnp.array([1.0, -1.0])
    start = {"spline": jnp.zeros((2, 16)), "shift": jnp.zeros(2), "scale": jnp.zeros(2)}
    params, values = trained(lambda p: -flow(p).log_prob(data).mean(), start)
    # The entropy of this distribution is log(2 pi e) + log(2 * 0.5) = 2.838.
    assert values[0] > 4 and abs(values[-1] - 2.838) < 0.1
    drawn, logs = flow(params).sample_and_log_prob(seed=jax.random.PRNGKey(1), sample_shape=(2000,))
    np.testing.assert_allclose(drawn.mean(0), [1, -1], atol=0.2)
    np.testing.assert_allclose(logs, flow(params).log_prob(drawn), rtol=1e-3, atol=1e-3)


@pytest.mark.filterwarnings("ignore")
def test_distributions_and_bijectors():
    distrax = pytest.importorskip("distrax", reason="`make test` installs it")
    mixture = distrax.MixtureSameFamily(
        distrax.Categorical(probs=jnp.array([0.3, 0.7])), distrax.Normal(jnp.array([-2.0, 2.0]), jnp.ones(2))
    )
    x = mixture.sample(seed=jax.random.PRNGKey(0), sample_shape=4000)
    assert abs(float(x.mean()) - 0.8) < 0.15
    slope = jax.grad(mixture.log_prob)(0.5)
    near = (mixture.log_prob(0.501) - mixture.log_prob(0.499)) / 0.002
    np.testing.assert_allclose(slope, near, atol=1e-2)
    chain = distrax.Chain([distrax.Tanh(), distrax.ScalarAffine(0.1, 2.0)])
    y, log_det = jax.vmap(chain.forward_and_log_det)(jnp.linspace(-1.0, 1.0, 5))
    np.testing.assert_allclose(jax.vmap(chain.inverse)(y), np.linspace(-1, 1, 5), atol=1e-5)
    np.testing.assert_allclose(
        jnp.exp(log_det), jax.vmap(jax.grad(chain.forward))(jnp.linspace(-1.0, 1.0, 5)), rtol=1e-4
    )
    hmm = distrax.HMM(
        distrax.Categorical(probs=jnp.ones(2) / 2), distrax.Categorical(probs=jnp.array([[0.9, 0.1], [0.2, 0.8]])),
        distrax.Normal(jnp.array([-1.0, 1.0]), jnp.ones(2)),
    )  # fmt: skip
    posterior = jax.jit(hmm.forward_backward)(jnp.array([-1.0, -1.2, 1.5, 0.9]))[2]
    np.testing.assert_allclose(posterior.sum(-1), 1, rtol=1e-5)
    np.testing.assert_array_equal(hmm.viterbi(jnp.array([-3.0, 3.0])), [0, 1])


class TestVariants(chex.TestCase):
    @chex.variants(with_jit=True, without_jit=True, with_device=True)
    def test_one_function_in_all_ways(self):
        @self.variant
        def f(x):
            return jnp.sin(x).sum()

        chex.assert_trees_all_close(f(jnp.arange(3.0)), np.sin(np.arange(3.0)).sum(), rtol=1e-5)


def test_assertions_on_traced_values():
    @jax.jit
    @chex.assert_max_traces(n=1)
    def f(x):
        chex.assert_type(x, jnp.float32)
        return x * 2

    f(jnp.ones(3))
    f(jnp.zeros(3))
    with pytest.raises(AssertionError, match="traced > 1 times"):
        f(jnp.ones(4))
    with pytest.raises(AssertionError, match="shape"):
        jax.jit(lambda x: chex.assert_shape(x, (3,)))(jnp.ones(4))

    @chex.dataclass
    class State:
        position: chex.Array
        count: int

    moved = jax.tree.map(lambda x: x + 1, State(position=jnp.zeros(2), count=0))
    assert moved.count == 1 and float(moved.position.sum()) == 2
    chex.assert_numerical_grads(lambda x: (jnp.sin(x) * x).sum(), (jnp.arange(3.0),), order=1)


def test_lbfgs_with_line_search():
    solver = optax.lbfgs()

    def f(x):
        return jnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

    def step(carry, _):
        x, state = carry
        value, slope = optax.value_and_grad_from_state(f)(x, state=state)
        updates, state = solver.update(slope, state, x, value=value, grad=slope, value_fn=f)
        return (optax.apply_updates(x, updates), state), value

    start = jnp.zeros(4)
    (x, _), _ = jax.jit(lambda x: jax.lax.scan(step, (x, solver.init(x)), None, length=60))(start)
    np.testing.assert_allclose(x, 1, atol=1e-3)


def test_a_masked_loss_forgets_what_is_not_a_number():
    """Rows without data hold nan, and a mask: in a compiled program the product is a choice, as in JAX."""

    @jax.jit
    def loss(w, x, mask):
        return jnp.sum(jnp.square(x * w - 1) * mask.astype(jnp.float32)) / mask.sum()

    x, mask = jnp.array([2.0, jnp.nan, 0.5]), jnp.array([True, False, True])
    np.testing.assert_allclose(loss(1.0, x, mask), (1 + 0.25) / 2)
