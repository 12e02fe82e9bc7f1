"""Arrays on the four devices of tests (conftest.py), over meshes of one and of two axes, for tests of shardings."""

import numpy as np

import pullback as jax
import pullback.numpy as jnp
from pullback.sharding import Mesh, NamedSharding
from pullback.sharding import PartitionSpec as P

D = jax.devices()
MESH = Mesh(D, "X")
GRID = Mesh(np.array(D).reshape(2, 2), ("X", "Y"))
CUT, WHOLE = NamedSharding(MESH, P("X")), NamedSharding(MESH, P())
X = jnp.arange(8.0)
Y = jnp.arange(16.0).reshape(4, 4)
XS, YS = jax.device_put(X, CUT), jax.device_put(Y, CUT)
STRUCT = jax.ShapeDtypeStruct((8,), float, sharding=WHOLE)
ON1, ON2 = jax.device_put(X, D[1]), jax.device_put(X, D[2])


def on(*spec, mesh=MESH):
    return NamedSharding(mesh, P(*spec))
