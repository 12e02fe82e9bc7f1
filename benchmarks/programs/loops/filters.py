"""Filters and samplers: Kalman, hidden Markov chains, Hamiltonian Monte Carlo."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.program import Program

from ._inputs import f32


def _kalman(jax: Any):
    """Filtered means and the log-likelihood of a linear Gaussian model: state 4, observation 2."""
    jnp = jax.numpy

    def run(a, q, h, r, ys):
        def step(carry, y):
            m, p = carry
            m, p = a @ m, a @ p @ a.T + q
            v, s = y - h @ m, h @ p @ h.T + r
            det = s[0, 0] * s[1, 1] - s[0, 1] * s[1, 0]
            inverse = jnp.array([[s[1, 1], -s[0, 1]], [-s[1, 0], s[0, 0]]]) / det
            gain = p @ h.T @ inverse
            m, p = m + gain @ v, p - gain @ h @ p
            return (m, p), (m, -0.5 * (jnp.log(det) + v @ inverse @ v))

        _, (means, terms) = jax.lax.scan(step, (jnp.zeros(4), jnp.eye(4)), ys)
        return means, terms.sum()

    return run


def _kalman_gradient(jax: Any):
    run = _kalman(jax)
    return jax.grad(lambda q, a, h, r, ys: run(a, q, h, r, ys)[1])


def _kalman_solve(jax: Any):
    """The means alone, with a solve instead of the inverse, as most write it."""
    jnp = jax.numpy

    def run(a, q, h, r, ys):
        def step(carry, y):
            m, p = carry
            m, p = a @ m, a @ p @ a.T + q
            v, s = y - h @ m, h @ p @ h.T + r
            gain = jnp.linalg.solve(s, h @ p).T
            m, p = m + gain @ v, p - gain @ h @ p
            return (m, p), m

        return jax.lax.scan(step, (jnp.zeros(4), jnp.eye(4)), ys)[1]

    return run


def _kalman_numpy(a, q, h, r, ys):
    m, p = np.zeros(4, np.float32), np.eye(4, dtype=np.float32)
    means, total = [], np.float32(0)
    for y in ys:
        m, p = a @ m, a @ p @ a.T + q
        v, s = y - h @ m, h @ p @ h.T + r
        det = s[0, 0] * s[1, 1] - s[0, 1] * s[1, 0]
        inverse = np.array([[s[1, 1], -s[0, 1]], [-s[1, 0], s[0, 0]]]) / det
        gain = p @ h.T @ inverse
        m, p = m + gain @ v, p - gain @ h @ p
        means.append(m)
        total += -0.5 * (np.log(det) + v @ inverse @ v)
    return np.stack(means), total


def _kalman_inputs(rng):
    a = np.eye(4) + 0.1 * np.eye(4, k=2)
    h = np.eye(2, 4)
    return f32(a, 0.01 * np.eye(4), h, 0.1 * np.eye(2), rng.standard_normal((500, 2)))


def _hmm(jax: Any):
    """Log-likelihood of a hidden Markov chain of 16 states, by the forward recursion in logarithms."""
    jnp = jax.numpy

    def run(transitions, emissions, observed):
        def step(alpha, y):
            alpha = jax.nn.logsumexp(alpha[:, None] + transitions, axis=0) + emissions[:, y]
            return alpha, None

        start = jnp.full(16, -np.log(16.0), jnp.float32)
        return jax.nn.logsumexp(jax.lax.scan(step, start, observed)[0])

    return run


def _hmm_inputs(rng):
    log_softmax = lambda x: x - np.log(np.exp(x).sum(1, keepdims=True))
    return (
        *f32(log_softmax(rng.standard_normal((16, 16))), log_softmax(rng.standard_normal((16, 20)))),
        rng.integers(0, 20, 500).astype(np.int32),
    )


def _hmc(samples: int, n: int, d: int):
    """Hamiltonian Monte Carlo on logistic regression: 10 leapfrog steps a sample, noise given."""

    def make(jax: Any):
        jnp, lax = jax.numpy, jax.lax

        def run(x, y, start, momenta, uniforms):
            def energy(w):
                logits = x @ w
                return (jnp.logaddexp(0.0, logits) - y * logits).sum() + 0.5 * (w**2).sum()

            gradient = jax.grad(energy)

            def sample(w, noise):
                p0, u = noise

                def leap(_, state):
                    w, p = state
                    p = p - 0.01 * gradient(w)
                    w = w + 0.02 * p
                    return w, p - 0.01 * gradient(w)

                new, p = lax.fori_loop(0, 10, leap, (w, p0))
                change = energy(w) + 0.5 * (p0**2).sum() - energy(new) - 0.5 * (p**2).sum()
                w = jnp.where(jnp.log(u) < change, new, w)
                return w, w

            return lax.scan(sample, start, (momenta, uniforms))[1]

        return run

    def inputs(rng):
        x = rng.standard_normal((n, d))
        y = rng.uniform(size=n) < 1.0 / (1.0 + np.exp(-x @ rng.standard_normal(d)))
        return f32(x, y, np.zeros(d), rng.standard_normal((samples, d)), rng.uniform(size=samples))

    return make, inputs


_HMC_SMALL, _HMC_SMALL_INPUTS = _hmc(50, 100, 5)
_HMC, _HMC_INPUTS = _hmc(50, 1000, 20)


PROGRAMS = [
    Program("Kalman filter, 500 steps", _kalman_inputs, _kalman, _kalman_numpy),
    Program(
        "Kalman filter gradient, 500 steps",
        lambda rng: (lambda a, q, h, r, ys: (q, a, h, r, ys))(*_kalman_inputs(rng)),
        _kalman_gradient,
    ),
    Program("Kalman filter with solve, 500 steps", _kalman_inputs, _kalman_solve),
    Program("hidden Markov chain, 500 steps", _hmm_inputs, _hmm),
    Program("hidden Markov chain gradient, 500 steps", _hmm_inputs, lambda jax: jax.grad(_hmm(jax))),
    Program("HMC, logistic regression 100 x 5", _HMC_SMALL_INPUTS, _HMC_SMALL),
    Program("HMC, logistic regression 1000 x 20", _HMC_INPUTS, _HMC),
]
