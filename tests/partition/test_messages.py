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
    "top_k": (lambda x: lax.top_k(x, 2), "unsharded over the axis along which to compute the top_k"),
    "median": (lambda x: jnp.median(x, 1), "unsharded over the sorting dimension"),
    "unstack": (lambda x: jnp.unstack(x, axis=1), "cannot be sharded on the unstacking axis"),
    "qr": (jnp.linalg.qr, "Input 0 to qr must be unsharded on non-batch dimensions"),
    "svd": (jnp.linalg.svd, "Input 0 to svd must be unsharded on non-batch dimensions"),
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
    with pytest.raises(ValueError, match="Specified axis_size 3 doesn't match received axis_size 1"):
        jax.pmap(lambda x: x, axis_size=3)(np.ones((1, 2)))
