"""Arguments of programs that lie on other devices than what the program computes."""

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback.sharding import NamedSharding, SingleDeviceSharding
from pullback.sharding import PartitionSpec as P

D = jax.devices()
HALVES = [jax.make_mesh((2,), ("X",), devices=pair) for pair in (D[:2], D[2:4])]


def on_halves():
    return [jax.device_put(np.arange(4.0, dtype=np.float32), NamedSharding(mesh, P("X"))) for mesh in HALVES]


@pytest.mark.parametrize("mesh", HALVES, ids=["first", "second"])
def test_arguments_that_nothing_reads_may_lie_elsewhere(mesh):
    a, b = on_halves()
    f = jax.jit((lambda a, b: a + 1) if mesh is HALVES[0] else (lambda a, b: b + 1))
    for out in (f(a, b), f.lower(a, b).compile()(a, b)):
        assert out.sharding.mesh == mesh
        np.testing.assert_array_equal(out, np.arange(4.0) + 1)
    x = jnp.arange(4.0)
    compiled = jax.jit(lambda a, b: a + 1).lower(x, x).compile()
    np.testing.assert_array_equal(compiled(x, b), x + 1)
    with pytest.raises(ValueError, match="lie elsewhere than the compiled function"):
        compiled(b, x)
    for g in (jax.jit(lambda a, b: a + 1, keep_unused=True), jax.jit(lambda a, b: a + b)):
        with pytest.raises(ValueError, match="incompatible devices"):
            g(a, b)


def test_device_put_to_one_device_inside_of_jit_says_nothing_but_by_a_sharding():
    x = jnp.arange(3.0)
    for f in (lambda x: jax.device_put(x, D[1]) * 2, jax.grad(lambda x: (jax.device_put(x, D[1]) ** 2).sum())):
        out = jax.jit(f)(x)
        assert out.devices() == {D[0]} and not out.committed
        assert jax.jit(f)(jax.device_put(x, D[2])).devices() == {D[2]}
    out = jax.jit(lambda x: jax.device_put(x, SingleDeviceSharding(D[1])))(x)
    assert out.devices() == {D[1]} and out.committed
