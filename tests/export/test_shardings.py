"""Exported functions over meshes: stored without devices, run on those of their arguments (conftest.py has four)."""

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import lax
from pullback.export import deserialize, export
from pullback.sharding import AxisType, Mesh, NamedSharding
from pullback.sharding import PartitionSpec as P

D = np.array(jax.devices())
GRID = Mesh(D.reshape(2, 2), ("x", "y"))
OTHER = Mesh(D[::-1].reshape(2, 2), ("a", "b"))
X = np.arange(16, dtype=np.float32).reshape(4, 4)
CUT, ROWS = NamedSharding(GRID, P("x", "y")), NamedSharding(GRID, P("x"))


def test_shardings_are_stored_and_found():
    exported = export(jax.jit(lambda x: 2 * x, in_shardings=CUT, out_shardings=ROWS))(X)
    again = deserialize(exported.serialize(vjp_order=1))
    for f in (exported, again):
        assert f.nr_devices == 4 and f.in_avals[0].shape == (4, 4)
        assert (f.in_shardings_jax(GRID), f.out_shardings_jax(GRID)) == ((CUT,), (ROWS,))
        assert f.in_shardings_jax(OTHER) == (NamedSharding(OTHER, P("a", "b")),)
        for mesh, spec in ((GRID, P("x")), (OTHER, P("a", "b")), (Mesh(D, "k"), P("k"))):
            got = f.call(jax.device_put(X, NamedSharding(mesh, spec)))
            np.testing.assert_array_equal(got, 2 * X)
            assert got.sharding.spec == P("x")
            assert list(got.sharding.mesh.devices.flat) == list(mesh.devices.flat)
        assert jax.jit(f.call)(jax.device_put(X, CUT)).sharding.spec == P("x")
        np.testing.assert_array_equal(jax.grad(lambda x, f=f: f.call(x).sum())(jax.device_put(X, CUT)), 2 + 0 * X)
        with pytest.raises(ValueError, match="runs on 4 devices, but its arguments are on a mesh of 1"):
            f.call(X)
        with pytest.raises(ValueError, match="over a mesh of axes"):
            f.in_shardings_jax(Mesh(D, "k"))
    assert export(jax.jit(jnp.sin))(X).nr_devices == 1


def test_constraints_and_parts_inside():
    constrained = export(jax.jit(lambda x: lax.with_sharding_constraint(x, ROWS) + 1))(jax.device_put(X, CUT))
    assert constrained.in_shardings_jax(GRID) == (CUT,)
    assert constrained.call(jax.device_put(X, CUT)).sharding.spec == P("x")
    total = jax.shard_map(lambda x: lax.psum(x, "x"), mesh=GRID, in_specs=P("x"), out_specs=P())
    f = deserialize(export(jax.jit(total))(X).serialize())
    np.testing.assert_array_equal(f.call(jax.device_put(X, NamedSharding(OTHER, P("a")))), X[:2] + X[2:])


def test_explicit_types():
    mesh = jax.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
    x = jax.device_put(X, NamedSharding(mesh, P("x", "y")))
    f = deserialize(export(jax.jit(lambda x: jnp.sin(x).sum(1)))(x).serialize())
    assert str(f.in_avals[0]) == "float32[4@x,4@y]" and str(f.out_avals[0]) == "float32[4@x]"
    np.testing.assert_allclose(f.call(x), np.sin(X).sum(1), rtol=1e-5)
