"""Donated arguments: results take their place where that gives the same values, and nobody else sees it."""

import os
import subprocess
import sys
import warnings

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import lax
from pullback._ext import _core

N = 600
rng = np.random.default_rng(0)


def normal(*shape):
    return rng.normal(size=shape).astype(np.float32)


def carried(x, y):
    """A loop over rows that reads what it has changed."""
    return lax.scan(lambda c, r: (c * 0.9 + jnp.roll(c, 1) * r, c.sum()), x, y[:9])


def searched(x, i):
    """A loop of unknown length."""
    return lax.while_loop(lambda c: c[1] < 5, lambda c: (c[0] * 1.5 - c[0][::-1], c[1] + 1), (x, i))


def chosen(p, x):
    """Branches that change the argument in different ways."""
    return lax.cond(p, lambda x: x.at[3].set(0), lambda x: x[::-1] * 2, x)


def momentum(params, velocity, x):
    """A step of training: all of the state is replaced."""
    loss, grads = jax.value_and_grad(lambda p: jnp.mean((jnp.tanh(x @ p["a"]) @ p["b"]) ** 2))(params)
    velocity = jax.tree.map(lambda v, g: 0.9 * v + g, velocity, grads)
    return jax.tree.map(lambda p, v: p - 0.1 * v, params, velocity), velocity, loss


WEIGHTS = {"a": normal(30, 40), "b": normal(40, 20)}

# name: (function, arguments, donated, how many arrays are taken over)
CASES = {
    "elementwise": (lambda x: jnp.sin(x) + 1, (normal(N),), (0,), 1),
    "reduced before": (lambda x: x - x.sum(), (normal(N),), (0,), 1),
    "reduced after": (lambda x: (x * 2, (x * 2).sum(), x.max()), (normal(N),), (0,), 1),
    "softmax": (lambda x: jax.nn.softmax(x), (normal(20, 40),), (0,), None),
    "backwards": (lambda x: x[::-1] + 1, (normal(N),), (0,), 0),
    "shifted": (lambda x: jnp.roll(x, 1) + x, (normal(N),), (0,), 0),
    "transposed": (lambda x: x.T * 2, (normal(30, 30),), (0,), 0),
    "cumulative": (jnp.cumsum, (normal(N),), (0,), None),
    "exchanged": (lambda x, y: (y + 1, x + 1), (normal(N), normal(N)), (0, 1), None),
    "exchanged plainly": (lambda x, y: (y, x), (normal(N), normal(N)), (0, 1), 0),
    "used by both": (lambda x, y: (x + y, x - y), (normal(N), normal(N)), (0, 1), None),
    "also a result": (lambda x: (x, x + 1), (normal(N),), (0,), 0),
    "twice a result": (lambda x: (x + 1, x + 1), (normal(N),), (0,), None),
    "not needed": (lambda x, y: y * 2, (normal(N), normal(N)), (0,), None),
    "constant": (lambda x: jnp.zeros(N, x.dtype), (normal(N),), (0,), None),
    "small": (lambda x: x + 1, (normal(9),), (0,), 1),
    "other type": (lambda x: (x > 0, x.astype(jnp.int32)), (normal(N),), (0,), 0),
    "element set": (lambda x, i: x.at[i].set(7), (normal(N), 5), (0,), 1),
    "elements added": (lambda x, i: x.at[i].add(x[i[::-1]]), (normal(N), rng.integers(0, N, 50)), (0,), None),
    "window": (lambda x, y: lax.dynamic_update_slice(x, y, (3, 2)), (normal(30, 30), normal(4, 5)), (0,), 1),
    "window of itself": (lambda x: x.at[5:9].set(x[:4]), (normal(90, 20),), (0,), None),
    "sorted": (jnp.sort, (normal(N),), (0,), None),
    "product": (lambda x, y: x @ y, (normal(30, 30), normal(30, 30)), (0,), None),
    "product added": (lambda x, y, z: x + y @ z, (normal(30, 30), normal(30, 30), normal(30, 30)), (0,), None),
    "factor": (lambda x: jnp.linalg.cholesky(x @ x.T + 50 * jnp.eye(30)), (normal(30, 30),), (0,), None),
    "scan": (carried, (normal(30, 20), normal(30, 20)), (0,), None),
    "scan, both": (carried, (normal(30, 20), normal(30, 20)), (0, 1), None),
    "while": (searched, (normal(N), 0), (0,), 1),
    "cond": (chosen, (True, normal(N)), (1,), None),
    "cond, other": (chosen, (False, normal(N)), (1,), None),
    "fori": (lambda x: lax.fori_loop(0, 7, lambda i, x: x.at[i].add(x[i + 1]), x), (normal(N),), (0,), 1),
    "training": (momentum, (WEIGHTS, jax.tree.map(np.zeros_like, WEIGHTS), normal(8, 30)), (0, 1), 4),
    "complex": (lambda x: x * 1j, (normal(N).astype(np.complex64),), (0,), 1),
    "half": (lambda x: x * 2, (normal(N).astype(np.float16),), (0,), 1),
    "two of one type": (lambda x, y: (x * y, x), (normal(N), normal(N)), (0, 1), None),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:Some donated buffers")  # some results are too few, or of other sizes
@pytest.mark.parametrize("name", CASES)
def test_values_are_those_without_donation(name):
    f, args, donated, taken = CASES[name]
    expected = jax.jit(f)(*args)
    given = jax.jit(f, donate_argnums=donated)
    arrays = jax.tree.map(jnp.array, args)
    compiled = given.lower(*arrays).compile()
    shared = compiled.memory_analysis().alias_size_in_bytes
    if taken is not None:
        sizes = [np.asarray(x).nbytes for k in donated for x in jax.tree.leaves(args[k])]
        assert shared == (sum(sizes) if taken else 0), shared
    same = lambda got, want: np.testing.assert_array_equal(np.asarray(got), np.asarray(want))
    for call in (given, given, compiled):
        arrays = jax.tree.map(jnp.array, args)
        jax.tree.map(same, call(*arrays), expected)
        for k, argument in enumerate(arrays):
            for x, given_as in zip(jax.tree.leaves(argument), jax.tree.leaves(args[k])):
                if k not in donated or not x.is_deleted():
                    same(x, given_as)
    jax.tree.map(same, given(*args), expected)  # NumPy arrays are not written
    jax.tree.map(same, given(*(jax.tree.map(np.copy, x) for x in args)), expected)


def test_memory_is_that_of_the_argument():
    f = jax.jit(lambda x: x + 1, donate_argnums=0)
    x = jnp.zeros(N)
    place = x.unsafe_buffer_pointer()
    for _ in range(5):
        x = f(x)
        assert x.unsafe_buffer_pointer() == place
    np.testing.assert_array_equal(x, np.full(N, 5))


def test_no_new_memory_is_taken():
    x = jnp.zeros(1 << 20)
    f = jax.jit(lambda x, i: x.at[i].set(1), donate_argnums=0)
    x = f(x, 0)
    in_use, allocations = (_core.memory_stats()[key] for key in ("bytes_in_use", "num_allocs"))
    for i in range(20):
        x = f(x, i)
    stats = _core.memory_stats()
    assert stats["bytes_in_use"] <= in_use + 4096 and stats["num_allocs"] <= allocations + 100
    assert x[:20].sum() == 20


def test_what_others_hold_is_not_written():
    f = jax.jit(lambda x: x + 1, donate_argnums=0)
    x = jnp.arange(float(N))
    seen = np.asarray(x)  # a view of its memory
    y = f(x)
    np.testing.assert_array_equal(seen, np.arange(N))
    np.testing.assert_array_equal(y, np.arange(N) + 1)

    both = jax.jit(lambda x, y: (x + 1, y * 2), donate_argnums=0)
    x = jnp.arange(float(N))
    z = jnp.arange(float(N))
    shared = both(z, jax.device_put(x))
    np.testing.assert_array_equal(shared[0], np.arange(N) + 1)
    np.testing.assert_array_equal(x, np.arange(N))


@pytest.mark.filterwarnings("ignore:Some donated buffers")  # some results are too few, or of other sizes
@pytest.mark.parametrize("donated", [(0,), (1,), (0, 1)])
@pytest.mark.parametrize("n", [0, 5, N])
def test_one_array_as_two_arguments(donated, n):
    f = jax.jit(lambda x, y: x + jnp.roll(y, 1), donate_argnums=donated)
    x = jnp.arange(float(n))
    for _ in range(2):
        with pytest.raises(jax.errors.JaxRuntimeError, match="donated twice in one call"):
            f(x, x)
    np.testing.assert_array_equal(x, np.arange(n))  # nothing has become of it
    np.testing.assert_array_equal(f(x, x + 0), np.arange(n) + np.roll(np.arange(n), 1))
    y = jnp.arange(float(n))
    unused = jax.jit(lambda x, y: x + 1, donate_argnums=0)
    np.testing.assert_array_equal(unused(y, y), np.arange(n) + 1)


def test_kinds_of_donation_do_not_share_code():
    f = lambda x, y: (x + 1, y + 1)
    args = normal(N), normal(N)
    for donated in ((), (0,), (1,), (0, 1)):
        given = jax.jit(f, donate_argnums=donated)
        size = given.lower(*args).compile().memory_analysis().alias_size_in_bytes
        assert size == 4 * N * len(donated)
        for got, arg in zip(given(*map(jnp.array, args)), args):
            np.testing.assert_array_equal(got, arg + 1)


def test_keys_can_be_donated():
    f = jax.jit(lambda k: jax.random.split(k[0], 500), donate_argnums=0)
    keys = jax.random.split(jax.random.key(0), 500)
    expected = jax.random.key_data(jax.random.split(keys[0], 500))
    np.testing.assert_array_equal(jax.random.key_data(f(keys)), expected)


def test_argument_names_and_unused_arguments():
    f = jax.jit(lambda unused, x, *, y: x * y, donate_argnames=("x",))
    x = jnp.ones(N)
    np.testing.assert_array_equal(f(jnp.ones(3), x, y=2.0), np.full(N, 2))
    assert x.is_deleted()
    keep = jax.jit(lambda unused, x: x + 1, donate_argnums=1, keep_unused=True)
    np.testing.assert_array_equal(keep(jnp.ones(3), jnp.ones(N)), np.full(N, 2))


def test_a_failing_callback_leaves_no_half_written_argument():
    def fail(x):
        raise ValueError("no")

    def f(x):
        y = x.at[0].set(5)
        return jax.pure_callback(fail, y, y) + y

    x = jnp.ones(N)
    with pytest.raises(Exception, match="no"):
        jax.jit(f, donate_argnums=0)(x)
    assert x.is_deleted() or bool((x == 1).all())


def test_checks_find_the_operation_in_spite_of_donation():
    with jax.debug_nans(True):
        f = jax.jit(lambda x: jnp.log(x) + 1, donate_argnums=0)
        with pytest.raises(FloatingPointError, match="log"):
            f(-jnp.ones(N))
        np.testing.assert_array_equal(f(jnp.ones(N)), np.ones(N))


def test_code_on_disk_knows_what_is_taken_over(tmp_path):
    script = (
        "import pullback as jax, pullback.numpy as jnp\n"
        "f = jax.jit(lambda x, unused, y: (y * 2, x.at[3].set(5.0)), donate_argnums=(0, 1))\n"
        "x = jnp.ones(600)\n"
        "place = x.unsafe_buffer_pointer()\n"
        "y, z = f(x, jnp.ones(2), jnp.ones(600))\n"
        "print(z.unsafe_buffer_pointer() == place, float(z.sum()), float(y.sum()), x.is_deleted())\n"
    )
    environment = {**os.environ, "PULLBACK_CACHE_DIR": str(tmp_path)}
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
        )
        assert done.stdout.split() == ["True", "604.0", "1200.0", "True"]


UNUSABLE = {
    # name: (function, arguments, donated, keep_unused, which are deleted, which the warning names)
    "used": (lambda x: x + 1, "f3", (0,), False, (0,), ""),
    "plainly a result": (lambda x: x, "f3", (0,), False, (0,), ""),
    "not read": (lambda x, y: y * 2, "f3 f4", (0,), False, (), ""),
    "not read, kept": (lambda x, y: y * 2, "f3 f4", (0,), True, (), "float32[3]"),
    "not read, kept, as large": (lambda x, y: y * 2, "f3 f3", (0,), True, (0,), ""),
    "two for one": (lambda x, y: x + y, "f3 f3", (0, 1), False, (0,), "float32[3]"),
    "two of two sizes for one": (lambda x, y: x * y.sum(), "f3 f4", (0, 1), False, (0,), "float32[4]"),
    "two for none": (lambda x, y: (x.sum(), y.sum()), "f3 f4", (0, 1), False, (), "float32[3], float32[4]"),
    "as many elements, fewer bytes": (lambda x: x.astype("bfloat16"), "f4", (0,), False, (), ""),
    "as many bytes, more elements": (lambda x: jnp.stack([x, x]).astype("f2"), "f4", (0,), False, (), "float32[4]"),
    "as many bytes of another type": (lambda x: x.astype("int32"), "f4", (0,), False, (0,), ""),
    "another shape": (lambda x: x.reshape(2, 2), "f4", (0,), False, (0,), ""),
    "no elements": (lambda x: x + 1, "f0", (0,), False, (0,), ""),
}  # fmt: skip


@pytest.mark.parametrize("name", UNUSABLE)
@pytest.mark.parametrize("ahead", [False, True])
def test_what_no_result_can_take_over_stays(name, ahead):
    f, sizes, donated, keep, deleted, named = UNUSABLE[name]
    arrays = [jnp.arange(float(size[1:])) for size in sizes.split()]
    jitted = jax.jit(lambda *xs: f(*xs), donate_argnums=donated, keep_unused=keep)
    call = (lambda: jitted.lower(*arrays).compile()(*arrays)) if ahead else (lambda: jitted(*arrays))
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        call()
    assert [x.is_deleted() for x in arrays] == [k in deleted for k in range(len(arrays))]
    assert [str(w.message).partition("\n")[0] for w in given] == (
        [f"Some donated buffers were not usable: {named}."] if named else []
    )
    assert all(w.filename == __file__ for w in given)
    with warnings.catch_warnings():  # once for each type
        warnings.simplefilter("error")
        arrays = [jnp.arange(float(size[1:])) for size in sizes.split()]
        call()


def test_arrays_over_a_mesh():
    """What lies elsewhere is copied to the mesh, and stays; so does what has parts of another size than results."""
    mesh = jax.make_mesh((4,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    rows, columns = (jax.NamedSharding(mesh, jax.P(*spec)) for spec in (("x",), (None, "x")))
    everywhere = jax.NamedSharding(mesh, jax.P())
    x = np.arange(32.0, dtype=np.float32).reshape(8, 4)

    def is_taken(given, out=None, f=lambda x: x + 1, **kwargs):
        np.testing.assert_array_equal(jax.jit(f, donate_argnums=0, out_shardings=out, **kwargs)(given), f(x))
        return given.is_deleted()

    assert is_taken(jax.device_put(x, rows)) and is_taken(jax.device_put(x, rows), f=lambda x: x.reshape(4, 8))
    assert is_taken(jax.device_put(x, rows), columns) and not is_taken(jax.device_put(x, rows), everywhere)
    assert not is_taken(jnp.asarray(x), rows, in_shardings=rows)


@pytest.mark.parametrize("size", [1, 3, 9, 10])
def test_a_small_carry_begins_as_the_donated_argument(size):
    """Few numbers that a loop changes at known places are kept in registers, also in the place of an argument."""

    def counted(n):
        n = lax.while_loop(lambda c: c[-1] < 50, lambda c: c + jnp.arange(2, size + 2, dtype=c.dtype), n)
        return jnp.minimum(n, 30)

    n = np.arange(size, dtype=np.int32)
    np.testing.assert_array_equal(jax.jit(counted, donate_argnums=0)(jnp.array(n)), counted(n))


def test_deleted_arrays_lie_nowhere():
    x = jnp.arange(3.0)
    x.delete()
    for ask in (lambda: x.devices(), lambda: x.addressable_shards, lambda: x.global_shards):
        with pytest.raises(RuntimeError, match="deleted"):
            ask()
