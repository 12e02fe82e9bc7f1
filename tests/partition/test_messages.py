"""Errors of operations on arrays that are cut along explicit axes name the operand and what it should be."""

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import lax
from pullback.sharding import AbstractMesh, AxisType, use_abstract_mesh
from pullback.sharding import PartitionSpec as P

MESH = AbstractMesh((2,), ("x",), axis_types=(AxisType.Explicit,))

CASES = {
    "top_k": (lambda x: lax.top_k(x, 2), "along the axis whose largest elements are wanted"),
    "median": (lambda x: jnp.median(x, 1), "take a dimension that is whole"),
    "unstack": (lambda x: jnp.unstack(x, axis=1), "is cut along axis 1, which is undone"),
    "qr": (jnp.linalg.qr, "qr: operand 0 is .*, cut along dimensions of its matrices"),
    "svd": (jnp.linalg.svd, "svd: operand 0 is .*, cut along dimensions of its matrices"),
}


@pytest.mark.parametrize("name", CASES)
def test_what_must_be_whole(name):
    f, text = CASES[name]
    with use_abstract_mesh(MESH), pytest.raises(jax.errors.ShardingTypeError, match=text):
        jax.make_jaxpr(lambda x: f(jax.sharding.reshard(x, P(None, "x"))))(np.ones((4, 4), np.float32))


def test_what_is_still_to_be_summed():
    def f(x):
        return jnp.cos(jnp.einsum("ij,jk->ik", x, x.T, out_sharding=P(None, None, unreduced={"x"})))

    with use_abstract_mesh(MESH), pytest.raises(NotImplementedError, match="unreduced rule for cos"):
        jax.make_jaxpr(lambda x: f(jax.sharding.reshard(x, P(None, "x"))))(np.ones((4, 4), np.float32))


def test_sizes_of_pmap():
    with pytest.raises(ValueError, match="axis_size is 3, but the mapped axes of arguments have 1 elements"):
        jax.pmap(lambda x: x, axis_size=3)(np.ones((1, 2)))
