"""Remembered derivative rules: the third gradient is the first, and that of the compiled program."""

import numpy as np
import pytest

import pullback as pb
import pullback.numpy as jnp
from pullback.transforms import rule_memory

RNG = np.random.default_rng(1)
X = jnp.asarray(RNG.normal(size=(3, 4)).astype(np.float32))

FUNCTIONS = [
    lambda x: jnp.sum(jnp.tanh(x) ** 2),
    lambda x: jnp.sum(jnp.exp(-x) / (1 + x * x)),
    lambda x: jnp.sum(x @ x.T * 0.5),
    lambda x: jnp.max(x) * jnp.min(x[1:, ::2]),
    lambda x: jnp.sum(jnp.where(x > 0, x, jnp.sin(x))[:, 1]),
    lambda x: jnp.linalg.norm(x),
    lambda x: jnp.sum(jnp.concatenate([x, x[:1] * 2]).reshape(-1)[2:] ** 3),
    lambda x: pb.nn.logsumexp(x, axis=1).mean(),
    lambda x: jnp.sum(jnp.sort(x.ravel()) * jnp.arange(12.0)),
    lambda x: 2.0 * x[0, 0] + x[1, 1] ** 2,
    lambda x: jnp.sum(pb.nn.relu(x)),
    lambda x: jnp.prod(jnp.var(x, axis=0)),
    lambda x: jnp.sum(jnp.abs(x.astype(jnp.complex64) * 1j)),
    lambda x: jnp.sum(x.astype(jnp.float16) * 2).astype(jnp.float32),
]


@pytest.mark.parametrize("number", range(len(FUNCTIONS)))
def test_the_same_each_time(number):
    f = FUNCTIONS[number]
    want = np.asarray(pb.jit(pb.grad(f))(X))
    for _ in range(4):
        got = pb.grad(f)(X)
        assert got.aval == X.aval
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-6)
        out, pull = pb.vjp(f, X)
        np.testing.assert_allclose(pull(jnp.ones_like(out))[0], want, rtol=2e-5, atol=1e-6)
        direction = jnp.cos(X)
        np.testing.assert_allclose(
            pb.linearize(f, X)[1](direction), pb.jvp(f, (X,), (direction,))[1], rtol=2e-5, atol=1e-5
        )


def test_second_derivatives_and_batches():
    f = FUNCTIONS[0]
    want = np.asarray(pb.jit(pb.hessian(f))(X))
    for _ in range(3):
        np.testing.assert_allclose(pb.hessian(f)(X), want, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(pb.vmap(pb.grad(lambda r: jnp.sum(r**3)))(X), 3 * X * X, rtol=1e-5)


def test_decisions_by_values_are_made_each_time():
    def f(x):
        return jnp.sum(x * 2) if x[0] > 0 else jnp.sum(x * x)

    for _ in range(4):
        assert pb.grad(f)(jnp.array([1.0, 2.0])).tolist() == [2, 2]
        assert pb.grad(f)(jnp.array([-1.0, 2.0])).tolist() == [-2, 4]


def test_other_values_and_closures():
    for k in range(5):
        scale = jnp.array([float(k), 1.0])
        assert pb.grad(lambda x, scale=scale: jnp.sum(jnp.square(x) * scale))(jnp.array([k, 3.0])).tolist() == [
            2.0 * k * k,
            6.0,
        ]


def test_errors_stay_errors():
    for _ in range(4):
        with pytest.raises(TypeError):
            pb.grad(lambda x: jnp.sum(x * jnp.ones(3)))(jnp.ones(2))
        with pb.debug_nans(True), pytest.raises(FloatingPointError):
            pb.grad(lambda x: jnp.sum(jnp.log(x)))(jnp.array([-1.0]))
        assert np.isnan(pb.grad(lambda x: jnp.sum(jnp.sqrt(x)))(jnp.array([-1.0]))[0])


def test_nothing_runs_python_rules_again(monkeypatch):
    rule_memory.clear()
    f = FUNCTIONS[0]
    for _ in range(3):
        pb.grad(f)(X)
    primitive = pb.lax.tanh_p
    monkeypatch.setattr(primitive, "jvp", None)  # would fail if it were asked
    pb.grad(f)(X)
