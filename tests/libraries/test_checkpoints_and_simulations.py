"""orbax, brax and mujoco-mjx from PyPI, unmodified: checkpoints are saved and read, bodies fall and swing."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

PENDULUM = """
<mujoco><option timestep="0.01"/><worldbody>
  <body pos="0 0 1"><joint type="hinge" axis="0 1 0"/><geom type="capsule" size=".02" fromto="0 0 0 .5 0 0"/></body>
  <body pos="1 0 .5"><freejoint/><geom type="sphere" size=".1"/></body>
</worldbody></mujoco>"""


@pytest.mark.filterwarnings("ignore")
def test_a_checkpoint_is_what_was_saved(tmp_path):
    ocp = pytest.importorskip("orbax.checkpoint", reason="`make test` installs it")
    tree = {
        "w": jnp.arange(12.0).reshape(3, 4), "step": jnp.int32(7), "half": jnp.ones(3, jnp.bfloat16),
        "nested": [jnp.zeros((1, 2)), np.arange(3)],
    }  # fmt: skip
    with ocp.StandardCheckpointer() as saver:
        saver.save(tmp_path / "one", tree)
        saver.wait_until_finished()
        found = saver.restore(tmp_path / "one", jax.tree.map(ocp.utils.to_shape_dtype_struct, tree))
    assert jax.tree.structure(found) == jax.tree.structure(tree)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(tree)):
        assert a.dtype == b.dtype and a.shape == b.shape
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


@pytest.mark.filterwarnings("ignore")
def test_the_last_of_several_steps(tmp_path):
    ocp = pytest.importorskip("orbax.checkpoint", reason="`make test` installs it")
    options = ocp.CheckpointManagerOptions(max_to_keep=2)
    with ocp.CheckpointManager(tmp_path, options=options) as manager:
        for step in range(4):
            manager.save(step, args=ocp.args.StandardSave({"x": jnp.full(3, step)}))
        manager.wait_until_finished()
        assert manager.all_steps() == [2, 3]
        found = manager.restore(manager.latest_step(), args=ocp.args.StandardRestore({"x": jnp.zeros(3, jnp.int32)}))
    np.testing.assert_array_equal(found["x"], 3)


@pytest.mark.filterwarnings("ignore")
def test_bodies_move_as_in_mujoco():
    mujoco = pytest.importorskip("mujoco", reason="`make test` installs it")
    mjx = pytest.importorskip("mujoco.mjx", reason="`make test` installs it")
    model = mujoco.MjModel.from_xml_string(PENDULUM)
    data = mujoco.MjData(model)
    there, state = mjx.put_model(model), mjx.put_data(model, data)
    state = jax.jit(lambda d: jax.lax.scan(lambda d, _: (mjx.step(there, d), None), d, None, length=20)[0])(state)
    for _ in range(20):
        mujoco.mj_step(model, data)
    np.testing.assert_allclose(state.qpos, data.qpos, atol=2e-4)
    assert data.qpos[0] > 0.3  # it has swung, and the ball has fallen
    assert data.qpos[3] < 0.45


@pytest.mark.filterwarnings("ignore")
def test_an_environment_of_brax_steps():
    envs = pytest.importorskip("brax.envs", reason="`make test` installs it")
    environment = envs.get_environment("inverted_pendulum", backend="spring")
    state = jax.jit(environment.reset)(jax.random.PRNGKey(0))

    def step(state, action):
        state = environment.step(state, action)
        return state, state.pipeline_state.q

    _, path = jax.jit(lambda s: jax.lax.scan(step, s, 0.5 * jnp.ones((10, 1))))(state)
    assert path.shape == (10, 2) and bool(jnp.isfinite(path).all())
    assert float(path[-1, 0]) > float(path[0, 0])  # the cart is pushed to the right
