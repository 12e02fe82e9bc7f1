"""optax from PyPI, unmodified: every optimizer runs jitted and eager, agrees with itself, and lowers a loss."""

from __future__ import annotations

import json

from .processes import python

PROGRAM = """
import json, warnings
import numpy as np
import pullback
pullback.install_as_jax()
import jax, jax.numpy as jnp, optax
assert jax is pullback
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
x, y = jnp.asarray(rng.standard_normal((8, 3)), jnp.float32), jnp.ones((8, 2))
start = {"w": jnp.ones((3, 2)), "b": jnp.zeros(2)}

def loss(p):
    return jnp.mean((x @ p["w"] + p["b"] - y) ** 2)

names = ["adabelief", "adadelta", "adan", "adafactor", "adagrad", "adam", "adamw", "adamax", "adamaxw", "amsgrad",
         "fromage", "lamb", "lars", "lion", "nadam", "nadamw", "noisy_sgd", "novograd", "optimistic_gradient_descent",
         "radam", "rmsprop", "rprop", "sgd", "sign_sgd", "sm3", "yogi", "lbfgs"]
out = {}
for name in names:
    optimizer = optax.lbfgs() if name == "lbfgs" else getattr(optax, name)(0.1)
    optimizer = optimizer if name == "lbfgs" else optax.chain(optax.clip_by_global_norm(10.0), optimizer)

    def step(p, state):
        value, gradient = jax.value_and_grad(loss)(p)
        extra = {"value": value, "grad": gradient, "value_fn": loss} if name == "lbfgs" else {}
        updates, state = optimizer.update(gradient, state, p, **extra)
        return optax.apply_updates(p, updates), state

    eager, _ = step(start, optimizer.init(start))
    p, state = start, optimizer.init(start)
    jitted = jax.jit(step)
    once, _ = jitted(p, state)
    for _ in range(10):
        p, state = jitted(p, state)
    difference = max(float(jnp.max(jnp.abs(a - b))) for a, b in zip(jax.tree.leaves(eager), jax.tree.leaves(once)))
    out[name] = [float(loss(start)), float(loss(p)), difference]
print(json.dumps(out))
"""


def test_every_optimizer():
    done = python("-c", PROGRAM)
    results = json.loads(done.stdout.splitlines()[-1])
    assert len(results) == 27
    for name, (before, after, difference) in results.items():
        assert after < before, f"{name}: the loss went from {before} to {after}"
        assert difference < 1e-5, f"{name}: eager and jitted steps differ by {difference}"
