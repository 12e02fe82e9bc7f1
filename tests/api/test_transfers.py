"""Guards of transfers, the arrays that are alive, and where an array of one device says that it lies."""

import gc
import threading

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback.errors import JaxRuntimeError
from pullback.sharding import NamedSharding
from pullback.sharding import PartitionSpec as P

X, N = jnp.arange(3.0), np.ones(3, np.float32)
double = jax.jit(lambda x: x * 2)


@pytest.mark.parametrize("guard", [jax.transfer_guard, jax.transfer_guard_host_to_device])
def test_values_of_the_host_are_refused_but_by_device_put(guard):
    calls = [lambda: X + 1, lambda: X + N, lambda: jnp.sin(N), lambda: jnp.sin(1.0), lambda: double(N),
             lambda: double(2), lambda: jnp.zeros(3), lambda: jnp.asarray(N), lambda: jnp.array([1.0]),
             lambda: X.at[0].set(1.0),
             lambda: jnp.where(X > X, X, 0)]  # fmt: skip
    for call in calls:
        call()
        with guard("disallow"), pytest.raises(JaxRuntimeError, match="Disallowed host-to-device transfer"):
            call()
        with guard("disallow"), guard("allow"):
            call()
        call()
    with guard("disallow"):
        jax.device_put(N), jax.device_put(1.0)
    with guard("disallow_explicit"), pytest.raises(JaxRuntimeError, match="Disallowed host-to-device"):
        jax.device_put(N)


def test_numbers_that_elements_are_counted_with_are_the_hosts():
    i, m = jnp.array([0, 1]), jnp.ones((3, 3))
    calls = [lambda: X[0], lambda: X[-1], lambda: X[1:], lambda: m[:, 0], lambda: m[0, 1], lambda: X[i],
             lambda: X[X > 1], lambda: X.at[0].get(), lambda: jax.lax.slice(X, (0,), (2,)),
             lambda: jax.lax.dynamic_slice(X, (0,), (2,)), lambda: jax.lax.dynamic_index_in_dim(X, 0)]  # fmt: skip
    for call in calls:
        call()
        with jax.transfer_guard("disallow"), pytest.raises(JaxRuntimeError, match="Disallowed host-to-device transfer"):
            call()
        with jax.transfer_guard("allow"):
            call()
    with jax.transfer_guard("disallow"):
        X[:], X[...], X[None], X[::2], m[:, None], list(X), jax.jit(lambda x: x[0])(X), jax.vmap(lambda x: x[0])(m)


def test_work_on_arrays_is_no_transfer():
    f = jax.jit(lambda x: jnp.where(x > 0, x, 0) + N)
    with jax.transfer_guard("disallow"):
        assert double(X).tolist() == [0, 2, 4] and f(X).tolist() == [1, 2, 3]
        assert (X + X).tolist() == [0, 2, 4] and jnp.hypot(X, X).shape == (3,) and jnp.all(X == X)
        assert np.asarray(X).sum() == 3 and jax.device_get(X).sum() == 3 and str(-X.T)


def test_guards_are_of_one_thread_and_of_the_process_by_config():
    done = []

    def call():
        done.append((X + 1).shape)

    with jax.transfer_guard("disallow"):
        thread = threading.Thread(target=call)
        thread.start()
        thread.join()
        assert jax.config.jax_transfer_guard_host_to_device == "disallow"
        with jax.transfer_guard_host_to_device("allow"):
            call()
    assert done == [(3,)] * 2 and jax.config.jax_transfer_guard_host_to_device is None
    jax.config.update("jax_transfer_guard", "disallow")
    try:
        with pytest.raises(JaxRuntimeError):
            call()
    finally:
        jax.config.update("jax_transfer_guard", None)
    call()


def test_transfers_are_logged(caplog):
    with jax.transfer_guard("log"):
        assert (X + 1).tolist() == [1, 2, 3]
        jax.device_put(N)
    assert [r.getMessage() for r in caplog.records] == ["host-to-device transfer: int of shape ()"]


def test_live_arrays():
    def sizes():
        return sorted(x.size for x in jax.live_arrays("cpu") if 7000 < x.size < 7100)

    a, b, c = jnp.ones(7001), {"b": {"w": (jnp.ones(7002),)}}, jnp.ones(7003)
    assert sizes() == [7001, 7002, 7003] and any(x is a for x in jax.live_arrays())
    c.delete()
    del b
    gc.collect()
    assert sizes() == [7001]
    with pytest.raises(RuntimeError, match="bad"):
        jax.live_arrays("bad")


def test_an_array_of_one_device_lies_on_it_whatever_its_sharding():
    sharding = NamedSharding(jax.make_mesh((1,), ("a",)), P("a"))
    x = jax.device_put(X, sharding)
    assert x.device == jax.devices()[0] and x.sharding == sharding and (x + x).device == x.device
    assert jnp.zeros(3, device=x.device).sharding == jax.sharding.SingleDeviceSharding(x.device)


def test_shards_are_leaves():
    (shard,) = X.addressable_shards
    assert jax.tree.leaves([shard]) == [shard] and not isinstance(shard, tuple)
    assert (shard.device, shard.index, shard.replica_id) == (jax.devices()[0], (slice(None),), 0)
    assert hash(shard) is not None and shard.data is X


def test_arrays_are_kept_from_other_devices():
    here, there = jax.devices()[:2]
    x, y = jax.device_put(X, here), jax.device_put(X, there)
    add = jax.jit(lambda x, y: x + y)
    with jax.transfer_guard_device_to_device("disallow"):
        assert add(x, x).device == here and add(y, y).device == there and jax.device_put(x, there).device == there
        for call in (lambda: add(X, y), lambda: X + y):
            with pytest.raises(JaxRuntimeError, match="Disallowed device-to-device transfer"):
                call()
    with (
        jax.transfer_guard_device_to_device("disallow_explicit"),
        pytest.raises(JaxRuntimeError, match="Disallowed device-to-device transfer"),
    ):
        jax.device_put(x, there)


def test_what_is_no_array_on_a_device_goes_nowhere():
    zeros = np.zeros(3, jax.dtypes.float0)
    with jax.transfer_guard_device_to_device("disallow"):
        x = jax.jit(lambda x, z: x + x)(X, zeros)
    assert x.shape == X.shape


def on_host(x):
    return jax.device_put(x, jax.sharding.SingleDeviceSharding(jax.devices()[0], memory_kind="pinned_host"))


@pytest.mark.parametrize(
    "fun",
    [
        lambda h, d: h + d,
        lambda h, d: d - h,
        lambda h, d: h + np.ones((4, 4), np.float32),
        lambda h, d: h @ d,
        lambda h, d: h > d,
        lambda h, d: jnp.concatenate([h, d]),
    ],
)
def test_eager_operations_do_not_mix_memories(fun):
    x = np.arange(16, dtype=np.float32).reshape(4, 4)
    with pytest.raises(ValueError, match="memory_space of all inputs"):
        fun(on_host(x), jnp.asarray(x))


@pytest.mark.parametrize(
    "fun",
    [
        lambda h: h + 1,
        lambda h: jnp.divmod(h, 2)[0],
        lambda h: h.at[0].set(1.0),
        lambda h: jnp.where(h > 1, h, h),
        lambda h: h @ h,
        lambda h: jnp.sin(h).sum(),
    ],
)
def test_eager_results_of_values_in_the_hosts_memory_lie_there(fun):
    x = np.arange(16, dtype=np.float32).reshape(4, 4)
    out = fun(on_host(x))
    assert out.sharding.memory_kind == "pinned_host"
    np.testing.assert_array_equal(out, fun(jnp.asarray(x)))


def test_results_with_out_shardings_lie_in_the_memory_that_these_name():
    sharding = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    out = jax.jit(lambda v: v * 2, out_shardings=sharding)(on_host(np.ones(4)))
    assert out.sharding.memory_kind == "device" and "host" not in str(jax.typeof(out))


def test_what_callbacks_are_given_and_give_is_let_through():
    def twice(x):
        return np.asarray(x) * 2

    calls = [
        lambda: jax.pure_callback(twice, X, X),
        lambda: jax.experimental.io_callback(twice, X, X),
        lambda: jax.jit(lambda x: jax.pure_callback(twice, X, x))(X),
    ]
    for call in calls:
        with jax.transfer_guard("disallow"):
            np.testing.assert_array_equal(call(), 2 * np.arange(3.0))
