"""What each device has of arrays that are still to be summed over mesh axes: shards are what JAX 0.10.2 gives."""

import gc
from functools import partial

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import lax
from pullback.runtime.arrays import terms
from pullback.sharding import AxisType, NamedSharding, reshard
from pullback.sharding import PartitionSpec as P

MESH = jax.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
A = np.arange(8, dtype=np.float32).reshape(2, 4)
B = A.reshape(4, 2)
LEFT, RIGHT = A[:, :2] @ B[:2], A[:, 2:] @ B[2:]  # the terms along x
U = P(None, None, unreduced={"x"})


@pytest.fixture(autouse=True)
def in_mesh():
    with jax.set_mesh(MESH):
        yield


def operands():
    return jax.device_put(A, P(None, "x")), jax.device_put(B, P("x", None))


def product(spec=U):
    return jax.jit(partial(jnp.matmul, out_sharding=spec))(*operands())


def shards(z):
    return [np.asarray(s.data) for s in z.addressable_shards]


def is_terms(z, *wanted):
    assert z.sharding.spec.unreduced == {"x"}
    np.testing.assert_array_equal(shards(z), wanted)
    np.testing.assert_array_equal(reshard(z, P()), wanted[0] + wanted[2])
    return True


@pytest.mark.parametrize("spec", [U, P(unreduced={"x"})], ids=["in full", "in short"])
def test_devices_have_terms_of_products(spec):
    z = product(spec)
    assert is_terms(z, LEFT, LEFT, RIGHT, RIGHT)
    np.testing.assert_array_equal(z.addressable_data(3), RIGHT)


def twice(z, n):
    return lax.fori_loop(0, n, lambda i, c: c + c, z)


def while_below(z):
    return lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] + c[1]), (0, z))[1]


LINEAR = {
    "itself": (lambda z: z, 1),
    "sum with itself": (lambda z: z + z, 2),
    "loop of so many steps": (partial(twice, n=3), 8),
    "loop until": (while_below, 8),
    "branch": (lambda z: lax.cond(z.ndim > jnp.int32(1), lambda z: z + z, lambda z: z, z), 2),
}


@pytest.mark.parametrize("name", LINEAR)
def test_terms_go_through_what_is_linear(name):
    function, times = LINEAR[name]
    assert is_terms(jax.jit(function)(product()), *[times * t for t in (LEFT, LEFT, RIGHT, RIGHT)])


def test_transposed_terms_of_parts():
    z = jax.jit(jnp.transpose)(product(P("y", None, unreduced={"x"})))
    np.testing.assert_array_equal(shards(z), [LEFT.T[:, :1], LEFT.T[:, 1:], RIGHT.T[:, :1], RIGHT.T[:, 1:]])


def test_loops_sum_terms_once_at_their_end():
    double = jax.jit(lambda z: reshard(while_below(z), P()))
    text = double.lower(product()).as_text("partitioned")
    assert text.count("psum[") == 1
    np.testing.assert_array_equal(double(product()), 8 * (A @ B))


def test_a_value_is_the_term_of_the_first_devices():
    z = jax.device_put(A, P(None, "y", unreduced={"x"}))
    np.testing.assert_array_equal(shards(z), [A[:, :2], A[:, 2:], 0 * A[:, :2], 0 * A[:, 2:]])


@pytest.mark.parametrize("rows", [None, "y"])
def test_arrays_are_made_of_terms(rows):
    sharding = NamedSharding(MESH, P(rows, None, unreduced={"x"}))
    parts = [np.full(sharding.shard_shape((2, 3)), k, np.float32) for k in range(4)]
    given = [jax.device_put(part, device) for part, device in zip(parts, MESH.devices.flat)]
    z = jax.make_array_from_single_device_arrays((2, 3), sharding, given)
    if rows is None:  # copies that differ: the first one counts
        parts[1], parts[3] = parts[0], parts[2]
    np.testing.assert_array_equal(shards(z), parts)
    wanted = [[2] * 3, [2 if rows is None else 4] * 3]
    for whole in (reshard(z, P()), jax.jit(lambda z: reshard(z, P("x")))(z)):
        np.testing.assert_array_equal(whole, wanted)


def test_three_operands_of_einsum():
    a, b, c = jax.device_put(A, P(None, "x")), jax.device_put(B, P("x", None)), jax.device_put(A, P())
    z = jax.jit(partial(jnp.einsum, "ab,bc,cd->ad", out_sharding=U))(a, b, c)
    assert z.sharding.spec == U
    np.testing.assert_array_equal(reshard(z, P()), A @ B @ A)


EAGER = {
    "sum": (lambda z: z + z, lambda t: 2 * t),
    "transpose": (lambda z: z.T, lambda t: t.T),
    "sum over rows": (lambda z: z.sum(0), lambda t: t.sum(0)),
    "rows": (lambda z: lax.slice(z, (0, 0), (1, 2)), lambda t: t[:1]),
    "joined": (lambda z: jnp.concatenate([z, z]), lambda t: np.concatenate([t, t])),
    "chosen": (lambda z: jnp.where(np.array([[True, False]] * 2), z, z), lambda t: t),
    "times what is reduced": (lambda z: z * jax.device_put(B[:2], P(None, None, reduced={"x"})), lambda t: t * B[:2]),
    "resharded": (lambda z: reshard(z, P("y", None, unreduced={"x"})), None),
}


@pytest.mark.parametrize("name", EAGER)
def test_eager_operations_keep_terms(name):
    function, of_term = EAGER[name]
    for _ in range(3):  # by the reference, then by what is remembered
        z = function(jnp.matmul(*operands(), out_sharding=U))
        wanted = [LEFT, LEFT, RIGHT, RIGHT] if of_term is not None else [LEFT[:1], LEFT[1:], RIGHT[:1], RIGHT[1:]]
        np.testing.assert_array_equal(shards(z), wanted if of_term is None else [of_term(t) for t in wanted])


def mapped(spec=U):
    return jax.shard_map(lambda a, b: a @ b, in_specs=(P(None, "x"), P("x", None)), out_specs=spec)


@pytest.mark.parametrize("how", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_results_of_shard_map_are_terms(how):
    f = how(mapped())
    assert is_terms(f(*operands()), LEFT, LEFT, RIGHT, RIGHT)
    out, out_dot = jax.jvp(f, operands(), operands())
    assert is_terms(out, LEFT, LEFT, RIGHT, RIGHT)
    assert is_terms(out_dot, *[2 * t for t in (LEFT, LEFT, RIGHT, RIGHT)])
    out, pull = jax.vjp(f, *operands())
    assert is_terms(out, LEFT, LEFT, RIGHT, RIGHT)
    a_bar, b_bar = pull(jax.device_put(np.ones((2, 2), np.float32), P(None, None, reduced={"x"})))
    np.testing.assert_array_equal(a_bar, np.ones((2, 2)) @ B.T)
    np.testing.assert_array_equal(b_bar, A.T @ np.ones((2, 2)))


def test_terms_along_two_axes():
    f = jax.shard_map(lambda a: a + a, in_specs=P("x", "y"), out_specs=P(unreduced={"x", "y"}))
    a = jax.device_put(A, P("x", "y"))
    parts = [2 * A[:1, :2], 2 * A[:1, 2:], 2 * A[1:, :2], 2 * A[1:, 2:]]
    for z in (f(a), jax.jit(f)(a)):
        np.testing.assert_array_equal(shards(z), parts)
        np.testing.assert_array_equal(reshard(z, P()), sum(parts))


def test_results_of_shard_map_that_are_left_take_no_collective():
    text = jax.jit(mapped()).lower(*operands()).as_text("partitioned")
    assert "psum" not in text and text.strip().endswith("each device receives 0 bytes in 0 collectives")


def test_terms_are_forgotten_with_their_array():
    gc.collect()
    before = len(terms._kept)
    z = product()
    assert len(terms._kept) == before + 1
    del z
    gc.collect()
    assert len(terms._kept) == before
