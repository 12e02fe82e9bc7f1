"""Branches and places in shard_map that each device chooses for itself: results vary, cotangents are sums over all."""

import os
import subprocess
import sys

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import lax
from pullback.sharding import AbstractMesh
from pullback.sharding import PartitionSpec as P

MESH = AbstractMesh((4,), ("i",))
U = np.array([1.0, 2.0], np.float32)
W = np.arange(8, dtype=np.float32) * 0.3

BODIES = {
    "operand": lambda k, u, w: lax.cond(k == 0, lambda a: a * 2, lambda a: -a, u),
    "closed over": lambda k, u, w: lax.cond(k == 0, lambda: u * 2, lambda: -u),
    "with what varies": lambda k, u, w: lax.cond(k == 0, lambda: u * w, lambda: w * 3),
    "constants": lambda k, u, w: u * lax.cond(k == 0, lambda: 1.0, lambda: 3.0),
    "switch": lambda k, u, w: lax.switch(k, [lambda a: a, lambda a: a * 2, lambda a: a * w], u),
    "a loop in it": lambda k, u, w: lax.cond(
        k == 0, lambda u, w: lax.scan(lambda c, _: (c * u, None), w, None, 2)[0], lambda u, w: u * w, u, w
    ),
    "in a loop": lambda k, u, w: lax.scan(
        lambda c, step: (lax.cond(k == step, lambda: c * u, lambda: c - u), None), w, jnp.arange(3)
    )[0],
    "added at places that vary": lambda k, u, w: u.at[k % 2].add(1.5),
    "sums by segments that vary": lambda k, u, w: jax.ops.segment_sum(u, (jnp.arange(2) + k) % 2, 2),
    "steps that vary": lambda k, u, w: u * lax.while_loop(lambda n: n < k, lambda n: n + 1, 0),
    "mapped": lambda k, u, w: jax.vmap(lambda a: lax.cond(k == 0, lambda: a * u[0], lambda: -a))(u),
}


@pytest.mark.parametrize("name", BODIES)
def test_cotangents_of_what_is_the_same_are_sums_over_devices(name):
    body = BODIES[name]

    def loss(u, w, check_vma):
        def part(u, w):
            return (body(lax.axis_index("i"), u, w) ** 2).sum()[None]

        return jax.shard_map(part, mesh=MESH, in_specs=(P(), P("i")), out_specs=P("i"), check_vma=check_vma)(u, w).sum()

    def of_one_device(u, w):
        return sum((body(k, u, w[2 * k : 2 * k + 2]) ** 2).sum() for k in range(4))

    want = jax.grad(of_one_device)(U, W)
    for check_vma in (True, False):
        gradient = jax.grad(lambda u: loss(u, W, check_vma))  # noqa: B023
        for f in (gradient, jax.jit(gradient)):
            np.testing.assert_allclose(f(U), want, rtol=1e-5)


def test_a_sum_in_a_branch_that_not_all_devices_take_is_an_error():
    def part(u, w):
        def loop():
            return lax.scan(lambda c, _: (c * u, None), w, None, 2)[0]

        return lax.cond(lax.axis_index("i") == 0, loop, lambda: u * w)

    mapped = jax.shard_map(part, mesh=MESH, in_specs=(P(), P("i")), out_specs=P("i"))
    assert mapped(U, W).shape == (8,)
    with pytest.raises(NotImplementedError, match="not all devices come"):
        jax.grad(lambda u: mapped(u, W).sum())(U)


def test_the_first_map_of_a_process_is_typed_as_any_other():
    program = """
import pullback as jax
import pullback.numpy as jnp
from pullback.sharding import AbstractMesh, PartitionSpec as P
f = jax.shard_map(lambda u: (u * 2).sum()[None], mesh=AbstractMesh((4,), ("i",)), in_specs=P(), out_specs=P("i"))
print(*jax.grad(lambda u: f(u).sum())(jnp.ones(2)))
"""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=os.environ)
    assert found.stdout.split() == ["8.0", "8.0"]
