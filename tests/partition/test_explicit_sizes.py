"""Types over meshes with explicit axes of one device, along which dimensions of size one are cut."""

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import lax
from pullback.sharding import AxisType
from pullback.sharding import PartitionSpec as P


def numbers(*shape):
    return np.arange(1.0, 1 + np.prod(shape), dtype=np.float32).reshape(shape)


AXES_OF_ONE = {
    "squeezed": (lambda a: a[0], [((1, 4), P("x", "y"))], "float32[4@y]"),
    "squeezed to a number": (lambda a: jnp.squeeze(a), [((1,), P("x"))], "float32[]"),
    "moved": (lambda a: a.reshape(1, 1), [((1,), P("x"))], "float32[1,1]"),
    "left away": (lambda a: a.reshape(2), [((2, 1), P(None, "x"))], "float32[2]"),
    "joined": (lambda a: a.ravel(), [((1, 4, 2), P("x", "y"))], "float32[8@(x,y)]"),
    "joined in the middle": (lambda a: a.reshape(8), [((2, 1, 4), P("y", "x"))], "float32[8@(y,x)]"),
    "broadcast": (lambda a: lax.broadcast_in_dim(a, (3, 4), (0, 1)), [((1, 4), P("x", "y"))], "float32[3@x,4@y]"),
    "operands": (lambda a, b: a + b, [((1, 4), P("x", "y")), ((4, 4), P("x", "y"))], "float32[4@x,4@y]"),
    "gradient": (jax.grad(lambda a: (a.reshape(8) ** 2).sum()), [((1, 4, 2), P("x", "y"))], "float32[1@x,4@y,2]"),
}  # fmt: skip


@pytest.mark.parametrize("name", AXES_OF_ONE)
def test_dimensions_of_size_one_are_cut_along_axes_of_size_one(name):
    f, given, want = AXES_OF_ONE[name]
    mesh = jax.make_mesh((1, 2), ("x", "y"), devices=jax.devices()[:2], axis_types=(AxisType.Explicit,) * 2)
    whole = [numbers(*shape) for shape, _ in given]
    with jax.set_mesh(mesh):
        out = jax.jit(f)(*[jax.device_put(a, spec) for a, (_, spec) in zip(whole, given)])
        assert str(jax.typeof(out)) == want
    np.testing.assert_allclose(out, f(*map(jnp.asarray, whole)), rtol=1e-6)
