"""Stacks of the parts of arrays that lie over a mesh: copies by NumPy, and by programs once they come again."""

import numpy as np
import pytest

import pullback as jax
from pullback.core import ShapedArray
from pullback.runtime.programs.stacks import Stack

SIZES = {"x": 2, "y": 2}
CUTS = [((), ("x", "y")), (("y",), ("x",)), (("x",), ()), ((), ("y",)), ((), (), ("y", "x")), (("y", "x"), (), ()),
        ((), ("x",), ("y",))]  # fmt: skip


@pytest.mark.parametrize("cut", CUTS, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "bool", "complex64", "bfloat16", "int8"])
def test_programs_copy_as_numpy_does(cut, dtype):
    shape = (64, 64, 128)
    x = jax.numpy.asarray((np.arange(np.prod(shape)) % 251).reshape(shape), dtype)
    stack = Stack(ShapedArray(shape, np.dtype(dtype)), cut, SIZES)
    place = jax.devices()[1]
    found = [stack.of(x) for _ in range(8)]
    assert all(parts.aval is stack.stacked for parts in found) and "_stacking" in vars(stack)
    for parts in found[1:]:
        np.testing.assert_array_equal(found[0], parts)
    for _ in range(6):
        again = stack.joined(found[-1], place)
        assert again.aval is stack.aval and again.device is place
        np.testing.assert_array_equal(again, x)


def test_under_a_mesh_of_explicit_axes():
    mesh = jax.make_mesh((2, 2), ("x", "y"))
    x = np.random.default_rng(0).normal(size=(256, 512)).astype(np.float32)
    with jax.set_mesh(mesh):
        cut = jax.device_put(x, jax.P("y", "x"))
        double = jax.jit(lambda x: 2 * x)
        for _ in range(8):
            found = double(cut)
        assert str(jax.typeof(found)) == "float32[256@y,512@x]"
        np.testing.assert_array_equal(found, 2 * x)


@pytest.mark.parametrize("rows", [4, 64])  # parts of 4 rows of int8 are not aligned
@pytest.mark.parametrize("spec", [("x",), ("y",), (("x", "y"),), (("y", "x"),)], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_parts_that_several_devices_have_are_read_where_they_lie(spec, rows, dtype):
    mesh = jax.make_mesh((2, 2), ("x", "y"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    x = (np.arange(rows * 3) % 100).reshape(rows, 3).astype(dtype)
    parts = {("x",): (0, 0, 1, 1), ("y",): (0, 1, 0, 1), (("x", "y"),): (0, 1, 2, 3), (("y", "x"),): (0, 2, 1, 3)}
    axes = spec[0] if isinstance(spec[0], tuple) else spec
    assert Stack(ShapedArray(x.shape, x.dtype), (axes, ()), SIZES).parts == parts[spec]
    cut = jax.device_put(x, jax.NamedSharding(mesh, jax.P(*spec)))
    twice, sums = jax.jit(lambda x: (x * 2, x.sum(0, dtype="float32")))(cut)
    np.testing.assert_array_equal(twice, x * 2)
    np.testing.assert_array_equal(sums, x.sum(0, dtype="float32"))
