"""The class of concrete arrays, called: it makes an array of those of single devices, as JAX's `ArrayImpl` does."""

import subprocess
import sys

import numpy as np
import pytest
from patience import PATIENCE

import pullback as jax
import pullback.numpy as jnp
from pullback.sharding import Mesh, NamedSharding
from pullback.sharding import PartitionSpec as P

D = jax.devices()
MESH = Mesh(D, "X")
CUT, WHOLE = NamedSharding(MESH, P("X")), NamedSharding(MESH, P())
X = jnp.arange(8.0)
XS = jax.device_put(X, CUT)


def test_the_class_of_arrays_makes_them_of_parts():
    from pullback._ext._core import Array

    aval = jax.typeof(XS).untyped
    parts = [s.data for s in XS.addressable_shards]
    made = Array(aval, CUT, parts, committed=True)
    assert type(made) is Array and made.sharding == CUT and made.committed and made.tolist() == XS.tolist()
    one = Array(aval, jax.sharding.SingleDeviceSharding(jax.devices()[1]), [jax.device_put(X, jax.devices()[1])], False)
    assert not one.committed and not one.weak_type
    wrong = [
        (lambda: Array(aval, CUT, parts[1:], True), "Expected 4 per-device arrays"),
        (lambda: Array(aval, CUT, [parts[0]] * 4, True), "from distinct devices"),
        (lambda: Array(aval.update(dtype=np.dtype(np.int32)), CUT, parts, True), "must have matching dtypes. Got"),
        (lambda: Array(aval.update(shape=(4,)), CUT, parts, True), "Expected shard shape"),
        (lambda: Array(aval, CUT, parts[0].tolist() * 4, True), "Expected 4 per-device arrays"),
    ]
    for call, text in wrong:
        with pytest.raises(ValueError, match=text):
            call()
    with pytest.raises(TypeError, match=r"object\.__new__"):
        object.__new__(Array)
    assert CUT.update(spec=()).spec == P()


CLASS_OF_ARRAYS = """
import pullback.numpy as jnp
x = jnp.ones(2)
try:
    type(x)()
except TypeError:
    print("TypeError")
print(type(x)(x.aval, x.sharding, [x], committed=False))
"""


def test_the_class_of_arrays_is_called_before_anything_else():
    run = [sys.executable, "-c", CLASS_OF_ARRAYS]
    out = subprocess.run(run, capture_output=True, text=True, check=True, timeout=PATIENCE)
    assert out.stdout.splitlines() == ["TypeError", "[1. 1.]"]
