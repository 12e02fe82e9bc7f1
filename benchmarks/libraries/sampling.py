"""Samplers, checkpoints and simulations: blackjax, numpyro, orbax, brax and mujoco-mjx."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.libraries.work import work

CHAOS = "chains part after some steps, as they round differently: means over the samples are compared"
EFFECTS = np.array([28.0, 8, -3, 7, -1, 1, 18, 12], "f")
ERRORS = np.array([15.0, 10, 16, 11, 9, 11, 10, 18], "f")


def _logistic() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 5)).astype("f")
    return x, (rng.random(200) < 1 / (1 + np.exp(-x @ np.array([1, -1, 0.5, 0, 2])))).astype("f")


def _chain(density: Callable, start: Any) -> Callable[[], Any]:
    import blackjax
    import jax

    def run(key: Any) -> Any:
        warm, sample = jax.random.split(key)
        adaptation = blackjax.window_adaptation(blackjax.nuts, density)
        (state, parameters), _ = adaptation.run(warm, start, 300)
        kernel = blackjax.nuts(density, **parameters)

        def step(state: Any, key: Any) -> Any:
            state, _ = kernel.step(key, state)
            return state, state.position

        return jax.tree.map(lambda x: x.mean(0), jax.lax.scan(step, state, jax.random.split(sample, 500))[1])

    compiled, key = jax.jit(run), jax.random.key(0)
    return lambda: compiled(key)


@work("blackjax", "NUTS on eight schools, 300 steps of adaptation and 500 of sampling", 0.5, CHAOS)
def blackjax_schools() -> Callable[[], Any]:
    import jax.numpy as jnp
    import jax.scipy.stats as stats

    def density(p: Any) -> Any:
        tau = jnp.exp(p["log_tau"])
        prior = stats.norm.logpdf(p["mu"], 0, 5) + stats.cauchy.logpdf(tau, 0, 5) + p["log_tau"]
        prior += stats.norm.logpdf(p["z"]).sum()
        return prior + stats.norm.logpdf(EFFECTS, p["mu"] + tau * p["z"], ERRORS).sum()

    return _chain(density, {"mu": jnp.array(0.0), "log_tau": jnp.array(0.0), "z": jnp.zeros(8)})


@work("blackjax", "NUTS on a logistic regression of 200 x 5, 300 steps of adaptation and 500 of sampling", 0.2, CHAOS)
def blackjax_logistic() -> Callable[[], Any]:
    import jax
    import jax.numpy as jnp

    x, y = _logistic()

    def density(w: Any) -> Any:
        logits = x @ w
        return jnp.sum(y * logits - jax.nn.softplus(logits)) - 0.5 * jnp.sum(w**2)

    return _chain(density, jnp.zeros(5))


def _numpyro(model: Callable, *args: Any) -> Callable[[], Any]:
    """The kernel's steps in one compiled loop: MCMC.run makes a new function, which JAX compiles again each time."""
    import jax
    from numpyro.infer import NUTS

    kernel = NUTS(model)
    state = kernel.init(jax.random.PRNGKey(0), 300, None, args, {})

    @jax.jit
    def run(state: Any) -> Any:
        def step(state: Any, _: Any) -> Any:
            state = kernel.sample(state, args, {})
            return state, state.z

        return jax.tree.map(lambda z: z[300:].mean(0), jax.lax.scan(step, state, None, length=800)[1])

    return lambda: run(state)


@work("numpyro", "NUTS on eight schools, 300 steps of adaptation and 500 of sampling", 0.5, CHAOS)
def numpyro_schools() -> Callable[[], Any]:
    import numpyro
    import numpyro.distributions as dist
    from numpyro.infer.reparam import LocScaleReparam

    def model(errors: Any, y: Any) -> Any:
        mu, tau = numpyro.sample("mu", dist.Normal(0, 5)), numpyro.sample("tau", dist.HalfCauchy(5))
        with numpyro.plate("schools", 8), numpyro.handlers.reparam(config={"theta": LocScaleReparam(0)}):
            theta = numpyro.sample("theta", dist.Normal(mu, tau))
        numpyro.sample("obs", dist.Normal(theta, errors), obs=y)

    return _numpyro(model, ERRORS, EFFECTS)


@work("numpyro", "NUTS on a logistic regression of 200 x 5, 300 steps of adaptation and 500 of sampling", 0.2, CHAOS)
def numpyro_logistic() -> Callable[[], Any]:
    import jax.numpy as jnp
    import numpyro
    import numpyro.distributions as dist

    def model(x: Any, y: Any) -> Any:
        w = numpyro.sample("w", dist.Normal(jnp.zeros(5), 1).to_event(1))
        numpyro.sample("y", dist.Bernoulli(logits=x @ w), obs=y)

    return _numpyro(model, *_logistic())


@work("orbax", "save and restore 20 arrays of 100 x 100", 1e-6)
def checkpoints() -> Callable[[], Any]:
    import tempfile
    from pathlib import Path

    import jax.numpy as jnp
    import orbax.checkpoint as ocp

    tree = {f"w{k}": jnp.full((100, 100), k, jnp.float32) for k in range(20)}
    folder = Path(tempfile.mkdtemp())
    count = iter(range(10**6))

    def call() -> Any:
        path = folder / str(next(count))
        with ocp.StandardCheckpointer() as saver:
            saver.save(path, tree)
            saver.wait_until_finished()
            return saver.restore(path, tree)

    return call


@work("brax", "20 steps of the inverted pendulum of 64 environments, generalized coordinates", 5e-3)
def brax_steps() -> Callable[[], Any]:
    return _brax("inverted_pendulum", "generalized", 20)


@work("brax", "10 steps of the ant of 16 environments, positional dynamics", 2e-2, "contacts multiply rounding errors")
def brax_ant() -> Callable[[], Any]:
    return _brax("ant", "positional", 10, 16)


def _brax(name: str, backend: str, steps: int, count: int = 64) -> Callable[[], Any]:
    import jax
    import jax.numpy as jnp
    from brax import envs

    environment = envs.get_environment(name, backend=backend)
    reset = jax.jit(jax.vmap(environment.reset))
    state = reset(jax.random.split(jax.random.PRNGKey(0), count))
    action = 0.3 * jnp.ones((count, environment.action_size))

    @jax.jit
    def run(state: Any) -> Any:
        return jax.lax.scan(lambda s, _: (jax.vmap(environment.step)(s, action), None), state, None, length=steps)[0]

    def call() -> Any:
        return run(state).pipeline_state.x.pos

    return call


@work("mujoco-mjx", "20 steps of 32 double pendulums", 5e-3)
def mjx_steps() -> Callable[[], Any]:
    import jax
    import jax.numpy as jnp
    import mujoco
    from mujoco import mjx

    model = mujoco.MjModel.from_xml_string("""
      <mujoco><option timestep="0.005" solver="CG" iterations="6" ls_iterations="6"/><worldbody>
        <geom type="plane" size="5 5 .1"/>
        <body pos="0 0 1.2"><joint type="hinge" axis="0 1 0"/><geom type="capsule" size=".04" fromto="0 0 0 .4 0 0"/>
          <body pos=".4 0 0"><joint type="hinge" axis="0 1 0"/><geom type="capsule" size=".04" fromto="0 0 0 .4 0 0"/>
        </body></body>
        <body pos="1 0 .3"><freejoint/><geom type="sphere" size=".1"/></body>
      </worldbody></mujoco>""")
    there = mjx.put_model(model)
    data = mjx.make_data(there)

    @jax.jit
    def run(angle: Any) -> Any:
        def one(angle: Any) -> Any:
            start = data.replace(qpos=data.qpos.at[0].set(angle))
            return jax.lax.scan(lambda d, _: (mjx.step(there, d), None), start, None, length=20)[0].qpos

        return jax.vmap(one)(angle)

    angles = jnp.linspace(0.0, 1.0, 32)
    return lambda: run(angles)
