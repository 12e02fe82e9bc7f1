"""pmap on four devices (conftest.py): what each computes, what they exchange, how they fail together."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from patience import PATIENCE

import pullback as jax
import pullback.numpy as jnp
from pullback import lax
from pullback._ext import _core
from pullback.runtime.arrays.native_hooks import _pointer

N = 4
X = np.arange(4.0, dtype=np.float32)
M = np.arange(16.0, dtype=np.float32).reshape(4, 4)
A = np.arange(128.0, dtype=np.float32).reshape(4, 8, 4)
GROUPS = [[0, 3], [2, 1]]
RING = [(i, (i + 1) % N) for i in range(N)]


def both(fun, *args, **options):
    """The results of pmap and of vmap, as trees of NumPy arrays."""
    runs = [t(fun, axis_name="i", **options)(*args) for t in (jax.pmap, jax.vmap)]
    return [jax.tree.map(np.asarray, run) for run in runs]


COLLECTIVES = {
    "psum": lambda x: lax.psum(x, "i"),
    "psum of a tree": lambda x: lax.psum({"a": x, "b": (2, x + 1)}, "i"),
    "psum in groups": lambda x: lax.psum(x, "i", axis_index_groups=GROUPS),
    "psum in groups of several sizes": lambda x: lax.psum(x, "i", axis_index_groups=[[0, 2, 3], [1]]),
    "psum with an axis": lambda x: lax.psum(x, ("i", 0)),
    "pmean": lambda x: lax.pmean((x, x > 3), "i"),
    "pmax": lambda x: lax.pmax(-x, "i"),
    "pmin": lambda x: lax.pmin(jnp.sin(x), "i"),
    "all_gather": lambda x: lax.all_gather(x, "i", axis=1),
    "all_gather, tiled": lambda x: lax.all_gather(x, "i", axis=1, tiled=True),
    "all_gather in groups": lambda x: lax.all_gather(x > 40, "i", axis_index_groups=GROUPS),
    "all_to_all": lambda x: lax.all_to_all(x, "i", 1, 0),
    "all_to_all, tiled": lambda x: lax.all_to_all(x, "i", 0, 1, tiled=True),
    "all_to_all in groups": lambda x: lax.all_to_all(x, "i", 0, 1, tiled=True, axis_index_groups=GROUPS),
    "ppermute": lambda x: lax.ppermute(x, "i", RING),
    "ppermute, partial": lambda x: lax.ppermute(x, "i", [(0, 2), (3, 0)]),
    "pshuffle": lambda x: lax.pshuffle(x, "i", [2, 0, 3, 1]),
    "pswapaxes": lambda x: lax.pswapaxes(x, "i", 1),
    "psum_scatter": lambda x: lax.psum_scatter(x, "i", scatter_dimension=1),
    "psum_scatter, tiled": lambda x: lax.psum_scatter(x, "i", tiled=True),
    "psum_scatter in groups": lambda x: lax.psum_scatter(x, "i", tiled=True, axis_index_groups=GROUPS),
    "axis_index": lambda x: x * lax.axis_index("i") + lax.axis_size("i"),
    "pbroadcast": lambda x: lax.pbroadcast(x, "i", 2),
}


def agree(ours, reference):
    assert jax.tree.structure(ours) == jax.tree.structure(reference)
    for x, y in zip(jax.tree.leaves(ours), jax.tree.leaves(reference)):
        assert (x.shape, x.dtype) == (y.shape, y.dtype)
        np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("name", COLLECTIVES)
def test_collectives(name):
    """As vmap has them, whose rules are others: they act on the whole array."""
    fun = COLLECTIVES[name]
    agree(*both(fun, A))

    def in_a_loop(x):
        def step(c, _):
            leaves = [leaf.astype(np.float32).sum() for leaf in jax.tree.leaves(fun(c)) if hasattr(leaf, "sum")]
            return jnp.cos(c) + 0.01 * sum(leaves), leaves[0]

        return lax.scan(step, x, None, length=3)

    agree(*both(in_a_loop, A))
    if not name.startswith(("pmax", "pmin")):

        def loss(x):
            leaves = [leaf for leaf in jax.tree.leaves(fun(jnp.sin(x))) if hasattr(leaf, "dtype")]
            return sum((leaf * jnp.arange(float(leaf.size)).reshape(leaf.shape)).sum() for leaf in leaves)

        agree(*both(jax.grad(loss), A))


def test_nested_axes():
    def fun(x):
        return lax.psum(x, "i"), lax.psum(x, "j"), lax.psum(x, ("i", "j")), lax.axis_index(("i", "j"))

    results = [
        outer(inner(fun, axis_name="j"), axis_name="i")(M)
        for outer, inner in ((jax.vmap, jax.vmap), (jax.pmap, jax.vmap), (jax.pmap, jax.pmap), (jax.vmap, jax.pmap))
    ]
    for found in results[1:]:
        agree(jax.tree.map(np.asarray, found), jax.tree.map(np.asarray, results[0]))
    assert np.asarray(results[1][2]).tolist() == [[120.0] * 4] * 4


def test_under_other_transformations():
    total = jax.pmap(lambda x: lax.psum(jnp.sin(x) * x, "i"), axis_name="i")
    plain = jnp.broadcast_to((jnp.sin(X) * X).sum(), (4,))
    np.testing.assert_allclose(jax.jit(total)(X), plain, rtol=1e-6)
    np.testing.assert_allclose(jax.grad(lambda x: total(x).sum())(X), 4 * (np.cos(X) * X + np.sin(X)), rtol=1e-5)
    np.testing.assert_allclose(jax.vmap(total)(M)[2], total(M[2]), rtol=1e-6)
    assert jax.make_jaxpr(total)(X).out_avals[0].shape == (4,)


def test_axes_and_arguments():
    add = jax.pmap(lambda x, y: (x + y["a"], y["b"]), in_axes=(1, {"a": None, "b": 0}), out_axes=(1, None))
    x = np.arange(24.0, dtype=np.float32).reshape(2, 4, 3)
    first, second = add(x, {"a": np.float32(10), "b": X})
    assert np.array_equal(first, x + 10) and second.tolist() == 0
    power = jax.pmap(lambda x, n, y=1.0: x**n + y, static_broadcasted_argnums=1)
    assert power(X, 2, y=X).tolist() == (X**2 + X).tolist() and power(X, 3, y=X)[2] == 10
    assert jax.pmap(lambda x: x, in_axes=-1)(M).tolist() == M.T.tolist()
    some = jax.pmap(lambda x: lax.psum(x, "i"), axis_name="i", devices=jax.devices()[2:])(X[:2])
    assert some.tolist() == [1, 1] and some.devices() == set(jax.devices()[2:])
    keys = jax.pmap(lambda k: jax.random.split(k)[1])(jax.random.split(jax.random.key(0), 4))
    want = jax.vmap(lambda k: jax.random.split(k)[1])(jax.random.split(jax.random.key(0), 4))
    assert np.array_equal(jax.random.key_data(keys), jax.random.key_data(want))


@pytest.mark.parametrize("size", [0, 1, 3, 4, 15, 16, 17, 1000])
@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.float16, np.float32, np.complex64])
def test_sizes_and_types(size, dtype):
    """Also where the devices' parts do not begin at multiples of 16 bytes."""
    x = np.random.default_rng(size).integers(0, 2, (4, size)).astype(dtype)
    agree(*both(lambda x: (x, x.T, lax.all_gather(x, "i"), lax.psum(x[:3], "i")), x))


@pytest.mark.parametrize("size", [3, 1000])
def test_donation(size):
    """The result takes the place of the argument, unless somebody else holds that, or it goes to all devices."""
    values = np.arange(4.0 * size, dtype=np.float32).reshape(4, size)
    fun = jax.pmap(lambda x, y: (x.at[1].add(2 * y[0]), y + x[0]), donate_argnums=(0, 1), in_axes=(0, None))
    other = np.arange(1.0, size + 1, dtype=np.float32)
    want = values.copy()
    want[:, 1] += 2
    for hold in (False, True):
        x, y = jax.pmap(lambda x, y: (x + 1, y + 1), in_axes=(0, None), out_axes=(0, None))(values - 1, other - 1)
        pointer, view = _pointer(x), np.asarray(x) if hold else None
        first, second = fun(x, y)
        assert x.is_deleted() and y.is_deleted()
        assert np.array_equal(first, want) and np.array_equal(second, other + values[:, :1])
        assert (np.asarray(first).ctypes.data == pointer) == (not hold)
        assert view is None or np.array_equal(view, values)


def test_donated_arrays_that_lie_elsewhere_stay():
    x = jnp.asarray(M)
    fun = jax.pmap(lambda x: x + 1, donate_argnums=0)
    for _ in range(3):
        np.testing.assert_array_equal(fun(x), M + 1)
        assert not x.is_deleted() and np.array_equal(x, M)


def test_where_results_lie():
    devices = jax.devices()
    y = jax.pmap(lambda x: x + 1)(M)
    assert y.devices() == set(devices) and y.committed and not y.is_fully_replicated and y.is_fully_addressable
    assert isinstance(y.sharding, jax.sharding.NamedSharding) and y.sharding.spec[0] == "_internal_pmap_axis_name"
    assert [s.device for s in y.addressable_shards] == devices
    assert [s.index for s in y.addressable_shards] == [(slice(k, k + 1), slice(None)) for k in range(4)]
    assert y.addressable_shards[2].data.tolist() == [[9, 10, 11, 12]] == y.addressable_data(2).tolist()
    assert y.sharding.shard_shape(y.shape) == (1, 4)
    total = jax.pmap(lambda x: lax.psum(x, "i"), axis_name="i", out_axes=None)(X)
    assert total.tolist() == 6 and total.is_fully_replicated and total.sharding.spec == jax.sharding.PartitionSpec()
    assert [s.replica_id for s in total.addressable_shards] == [0, 1, 2, 3]
    assert (y + 1).sharding == y.sharding and y.reshape(-1).devices() == set(devices)


def test_programs_run_on_devices_at_once():
    """Every device waits, in Python, for all the others."""
    barrier = threading.Barrier(N, timeout=PATIENCE)
    threads = set()

    def wait(x):
        barrier.wait()
        threads.add(threading.get_ident())
        return x

    out = jax.pmap(lambda x: jax.pure_callback(wait, jax.ShapeDtypeStruct((), np.float32), x) + 1)(X)
    assert out.tolist() == [1, 2, 3, 4] and len(threads) == N


def test_programs_are_made_once():
    traces = []

    @jax.pmap
    def fun(x):
        traces.append(x.shape)
        return x * 2

    for _ in range(3):
        fun(X)
        fun(jnp.asarray(M))
    assert traces == [(), (4,)]


def test_results_do_not_depend_on_timing():
    fun = jax.pmap(lambda x: lax.fori_loop(0, 50, lambda _, c: jnp.sin(lax.psum(c * 1.1, "i")) + c, x), axis_name="i")
    x = np.random.default_rng(0).normal(size=(4, 33)).astype(np.float32)
    first = np.asarray(fun(x))
    assert all(np.array_equal(fun(x), first) for _ in range(20))


def test_more_devices_than_exist():
    with pytest.raises(ValueError, match=r"requires 5 logical devices.*jax_num_cpu_devices"):
        jax.pmap(lambda x: x)(np.ones(5))
    with pytest.raises(ValueError, match="mapped has size 0"):
        jax.pmap(lambda x: x)(np.ones(0))
    with pytest.raises(ValueError, match="inconsistent sizes"):
        jax.pmap(lambda x, y: x)(np.ones(3), np.ones(2))
    with pytest.raises(ValueError, match="no such axis: its rank is 0"):
        jax.pmap(lambda x: x)(1.0)
    with pytest.raises(ValueError, match="different lengths of tuple at key path\n    pmap in_axes"):
        jax.pmap(lambda x, y: x, in_axes=(0,))(X, X)


# How devices fail together.


def fail_on(numbers):
    def host(x, k):
        if int(k) in numbers:
            raise ZeroDivisionError(f"on device {k}")
        return x

    def fun(x):
        y = jax.pure_callback(host, jax.ShapeDtypeStruct((), np.float32), x, lax.axis_index("i"))
        return lax.psum(y, "i")

    return jax.pmap(fun, axis_name="i")


@pytest.mark.parametrize("numbers", [{0}, {3}, {1, 2}])
def test_an_error_on_one_device_ends_all(numbers):
    for _ in range(3):
        with pytest.raises(Exception, match=f"on device {min(numbers)}" if len(numbers) == 1 else "on device [12]"):
            fail_on(numbers)(X)
    assert fail_on(set())(X).tolist() == [6] * 4


def test_an_error_ends_endless_loops_elsewhere():
    def host(x, k):
        if k == 2:
            raise ZeroDivisionError("on device 2")
        return x

    def fun(x):
        k = lax.axis_index("i")
        y = jax.pure_callback(host, jax.ShapeDtypeStruct((), np.float32), x, k)
        return lax.while_loop(lambda c: (c > -1) & (k != 2), lambda c: jnp.sin(c) * 0.5, y)

    with pytest.raises(Exception, match="on device 2"):
        jax.pmap(fun, axis_name="i")(X)


def test_loops_of_different_lengths_around_a_collective():
    def fun(x):
        return lax.while_loop(
            lambda c: c[0] < lax.axis_index("i"), lambda c: (c[0] + 1, lax.psum(c[1], "i") * 0.1), (0, x)
        )[1]

    with pytest.raises(RuntimeError, match=r"pmap of fun: a device waits for others .*differ between devices"):
        jax.pmap(fun, axis_name="i")(X)


def test_branches_with_different_collectives():
    def fun(x):
        one, other = (lambda x: lax.psum(x, "i")), (lambda x: lax.pmax(x, "i"))
        return lax.cond(lax.axis_index("i") > 1, one, other, x)

    with pytest.raises(RuntimeError, match="have come to different collective operations: devices 0, 1 to one, 2, 3"):
        jax.pmap(fun, axis_name="i")(X)
    same = jax.pmap(lambda x: lax.cond(lax.psum(x, "i") > 1, lambda x: lax.psum(x, "i"), lambda x: x, x), "i")
    assert same(X).tolist() == [6] * 4


def test_device_programs_check_their_arguments():
    executable = jax.jit(lambda x: x + 1).lower(X).compile()
    with pytest.raises(TypeError, match="expected an Executable"):
        _core.DeviceProgram(executable, 2, (), (), (), ())


def test_where_results_of_transformations_lie():
    """A pmap inside of jit, grad or vmap leaves its results on its devices."""
    square = jax.pmap(lambda x: lax.psum(x, "i") * x, axis_name="i", devices=jax.devices()[:4])
    x = jnp.arange(4.0)
    for result in (jax.jit(square)(x), jax.grad(lambda x: square(x).sum())(x), jax.jvp(square, (x,), (x,))[1]):
        assert result.sharding.spec == jax.P("i") and len(result.devices()) == 4
    assert jax.vmap(square)(jnp.ones((2, 4))).sharding.spec == jax.P(None, "i")
    np.testing.assert_allclose(jax.grad(lambda x: square(x).sum())(x), 2 * x.sum() * jnp.ones(4))


def test_what_a_call_may_not_be():
    with pytest.raises(ValueError, match="Non-hashable static"):
        jax.pmap(lambda x, n: x, static_broadcasted_argnums=1)(jnp.ones(2), [3])
    with pytest.raises(ValueError, match="out_axes 1 is out of bounds"):
        jax.pmap(lambda x: x, out_axes=1)(jnp.ones(2))
    with pytest.raises(ValueError, match="no argument has a mapped axis"):
        jax.pmap(lambda x: x, in_axes=None)(jnp.ones(2))


def test_where_arguments_lie_traces_nothing_again():
    traced = []
    f = jax.pmap(lambda x: (traced.append(1), 2 * x)[1])
    x = np.arange(4.0, dtype=np.float32)
    for given in (x, jnp.asarray(x), f(x), f(f(x))):
        assert f(given).tolist() == (2 * np.asarray(given)).tolist()
    assert len(traced) == 1
    f(x.astype(np.int32))
    assert len(traced) == 2
    f.clear_cache()
    assert f(f(x)).tolist() == (4 * x).tolist() and len(traced) == 3


def test_arguments_lie_where_the_map_has_them_or_anywhere():
    mesh = jax.make_mesh((4,), ("x",), devices=jax.devices()[:4], axis_types=(jax.sharding.AxisType.Auto,))
    x = np.arange(16.0, dtype=np.float32).reshape(4, 4)

    def on(*spec):
        return jax.device_put(x, jax.sharding.NamedSharding(mesh, jax.P(*spec)))

    f = jax.pmap(lambda x: x + 1)
    for given in (x, on("x"), f(x), jnp.asarray(x)):
        assert f(given).tolist() == (np.asarray(given) + 1).tolist()
    for given in (on(), on(None, "x"), jax.device_put(x, jax.devices()[1]), jax.pmap(lambda x: x, out_axes=1)(x)):
        with pytest.raises(ValueError, match="does not match the sharding of"):
            f(given)
        assert jax.jit(f)(x).tolist() == (x + 1).tolist()
    g = jax.pmap(lambda x, y: x + y, in_axes=(0, None))
    for given in (on(), on()[0], jax.device_put(x[0], jax.devices()[2])):
        assert g(x, given).shape == (4, *np.shape(given))
    with pytest.raises(ValueError, match="does not match the sharding of"):
        g(x, on("x"))


def test_static_arguments_that_are_equal_but_of_other_types_are_others():
    f = jax.pmap(lambda x, n: x + isinstance(n, bool), static_broadcasted_argnums=1)
    x = np.arange(4.0, dtype=np.float32)
    assert f(x, 1).tolist() == x.tolist() and f(x, True).tolist() == (x + 1).tolist()


@pytest.mark.parametrize("groups", [[], [[0, 1]], [[0, 1], [1, 2]], [[0, 1], [2, 7]], [[0, 1, 2, 3, 4, 5]]])
def test_groups_that_do_not_cover_an_axis(groups):
    for f in (lax.psum, lax.pmax, lax.pmean, lax.all_gather):
        with pytest.raises(ValueError, match=r"must have each of 0.."):
            jax.pmap(lambda x, f=f: f(x, "i", axis_index_groups=groups), "i")(np.arange(4.0))


def test_axis_size_does_not_stand_for_a_mapped_argument():
    with pytest.raises(ValueError, match="no argument has a mapped axis"):
        jax.pmap(lambda x: x, in_axes=None, axis_size=2)(jnp.ones(3))


def test_what_is_lowered_says_where_results_lie():
    lowered = jax.pmap(lambda x: {"a": 2 * x}).lower(M)
    (info,) = jax.tree.leaves(lowered.out_info)
    assert info.shape == M.shape and info.sharding.spec == jax.P("_internal_pmap_axis_name")
    assert len(info.sharding.device_set) == N


def test_results_that_are_said_to_be_the_same_under_transformations():
    x = np.arange(1.0, 5.0, dtype=np.float32)
    f = jax.pmap(lambda x: (2 * x, lax.psum(x, "i")), axis_name="i", out_axes=None)
    for run in (f, jax.jit(f)):
        assert [y.tolist() for y in run(x)] == [2, 10]
        assert [y.tolist() for y in jax.jvp(run, (x,), (x,))[1]] == [2, 10]
        first, total = (jax.grad(lambda x, k=k: run(x)[k])(x).tolist() for k in (0, 1))  # noqa: B023
        assert first == [0.5] * 4 and total == [1] * 4  # what stands for all gives each its share
    assert jax.vmap(f)(np.stack([x, 2 * x]))[1].tolist() == [10, 20]
    whole = jax.pmap(lambda x, n: (x, n > 1), in_axes=(0, None), out_axes=(0, None))
    assert jax.jit(whole)(x, 3)[1].tolist() is True


def test_static_arguments_at_the_end_need_no_axis():
    x = np.arange(4.0, dtype=np.float32)
    for in_axes in ((0, None), (0, None, None)):
        f = jax.pmap(lambda x, y, n: x * y * n, in_axes=in_axes, static_broadcasted_argnums=2)
        assert f(x, 2.0, 3).tolist() == (6 * x).tolist()
        assert jax.jit(lambda x, f=f: f(x, 2.0, 3))(x).tolist() == (6 * x).tolist()
    with pytest.raises(ValueError, match=r"pmap in_axes\[0\]\n.*length 1.*length 3"):
        jax.pmap(lambda x, y, n: x, in_axes=(0,), static_broadcasted_argnums=2)(x, 2.0, 3)


@pytest.mark.parametrize("numbers", [5, 2, (1, 2), -3])
def test_static_arguments_beyond_those_of_a_call(numbers):
    f = jax.pmap(lambda x, n: x * n, static_broadcasted_argnums=numbers)
    for call in (f, f.lower, f.eval_shape):
        with pytest.raises(ValueError, match=r"static_broadcasted_argnums=.*the call has only 2 positional"):
            call(jnp.ones(2), 2)
