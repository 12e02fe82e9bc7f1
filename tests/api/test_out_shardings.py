"""`out_sharding` of functions that make arrays."""

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import lax
from pullback.sharding import Mesh, NamedSharding
from pullback.sharding import PartitionSpec as P

D = jax.devices()
CUT = NamedSharding(Mesh(D, "X"), P("X"))
X = jnp.arange(8.0)
Y = jnp.arange(16.0).reshape(4, 4)
EXPLICIT = jax.make_mesh((4,), "X")
TAKERS = {
    "zeros": lambda s: jnp.zeros((4, 4), out_sharding=s),
    "array": lambda s: jnp.array(Y, out_sharding=s),
    "arange": lambda s: jnp.arange(4, out_sharding=s),
    "full_like": lambda s: jnp.full_like(Y, 2, out_sharding=s),
    "reshape": lambda s: jnp.reshape(Y, (8, 2), out_sharding=s),
    "method": lambda s: Y.reshape(8, 2, out_sharding=s),
    "ravel": lambda s: jnp.ravel(Y, out_sharding=s),
    "broadcast_to": lambda s: jnp.broadcast_to(X, (4, 8), out_sharding=s),
    "repeat": lambda s: jnp.repeat(X, 2, out_sharding=s),
    "dot": lambda s: jnp.dot(Y, Y, out_sharding=s),
    "matmul": lambda s: jnp.matmul(Y, Y, out_sharding=s),
    "einsum": lambda s: jnp.einsum("ij,jk", Y, Y, out_sharding=s),
    "tensordot": lambda s: jnp.linalg.tensordot(Y, Y, axes=1, out_sharding=s),
    "bincount": lambda s: jnp.bincount(jnp.arange(8), length=8, out_sharding=s),
    "get": lambda s: X.at[jnp.arange(4)].get(out_sharding=s),
    "lax.dot": lambda s: lax.dot(Y, Y, out_sharding=s),
    "reduce_sum": lambda s: lax.reduce_sum(Y, (0,), out_sharding=s),
    "iota": lambda s: lax.broadcasted_iota(int, (4, 8), 0, out_sharding=s),
    "uniform": lambda s: jax.random.uniform(jax.random.key(0), (8,), out_sharding=s),
    "categorical": lambda s: jax.random.categorical(jax.random.key(0), Y, out_sharding=s),
    "initializer": lambda s: jax.nn.initializers.normal()(jax.random.key(0), (8,), out_sharding=s),
}


def test_out_sharding_is_honoured():
    cut = NamedSharding(EXPLICIT, P("X"))
    for name, take in TAKERS.items():
        for _ in range(3):
            assert take(cut).sharding.is_equivalent_to(cut, take(cut).ndim), name
        assert jax.jit(lambda take=take: take(cut) * 1)().sharding.is_equivalent_to(cut, take(cut).ndim), name
        np.testing.assert_array_equal(take(cut), take(None), err_msg=name)
    with jax.set_mesh(EXPLICIT):
        assert jnp.zeros(8, out_sharding=P("X")).sharding == cut
        assert jax.reshard(jnp.zeros(8), P("X")).sharding == cut == jax.sharding.reshard(X, cut).sharding
    assert lax.full((8,), 1.0, sharding=CUT).sharding == CUT == lax.full_like(X, 1.0, sharding=CUT).sharding


@pytest.mark.parametrize("name", TAKERS)
def test_out_sharding_is_checked(name):
    take = TAKERS[name]
    with pytest.raises(ValueError, match="no mesh is in force"):
        take(P("X"))
    with pytest.raises(ValueError, match="takes Explicit axes only"):
        take(CUT)
    with pytest.raises(TypeError, match="'out_sharding' must be a NamedSharding"):
        take("X")
    with pytest.raises(ValueError, match="rank at least 3"):
        take(NamedSharding(EXPLICIT, P(None, None, "X")))


def test_device_or_out_sharding():
    with pytest.raises(ValueError, match="'device' and 'out_sharding' exclude each other"):
        jnp.zeros(8, device=D[1], out_sharding=CUT)
    with pytest.raises(TypeError, match="must be a Sharding"):
        lax.full((8,), 1.0, sharding="x")
