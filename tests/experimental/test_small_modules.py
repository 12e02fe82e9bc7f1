"""rnn, stateful random numbers, and what several processes or machines would do."""

import logging
import re
import subprocess
import sys

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback.experimental import compute_on, fused, mesh_utils, multihost_utils, rnn, shard_alike, xla_metadata
from pullback.experimental.custom_partitioning import custom_partitioning
from pullback.experimental.pjit import pjit
from pullback.experimental.random import stateful_rng

PLACE = jax.sharding.SingleDeviceSharding(jax.devices()[0])


def by_hand(x, h, c, w_ih, w_hh, b):
    out = []
    for row in x:
        i, f, g, o = np.split(row @ w_ih.T + h @ w_hh.T + b, 4, axis=1)
        c = c / (1 + np.exp(-f)) + np.tanh(g) / (1 + np.exp(-i))
        h = np.tanh(c) / (1 + np.exp(-o))
        out.append(h)
    return np.stack(out), h, c


def test_lstm():
    sizes = (2, 3, 1, False)
    weights = rnn.init_lstm_weight(jax.random.key(0), *sizes)
    assert weights.shape == (rnn.get_num_params_in_lstm(*sizes),) == (84,)
    w_ih, w_hh, b_ih, b_hh = (np.asarray(part[0], np.float64) for part in rnn.unpack_lstm_weights(weights, *sizes))
    x = np.random.default_rng(0).normal(size=(4, 5, 2)).astype(np.float32)
    start = np.full((1, 4, 3), 0.5, np.float32)
    y, h, c = rnn.lstm(x, start, start, weights, jnp.array([5, 5, 5, 5]), *sizes[:3], 0.0, False)
    want, want_h, want_c = by_hand(x.transpose(1, 0, 2).astype(float), start[0], start[0], w_ih, w_hh, b_ih + b_hh)
    np.testing.assert_allclose(y, want.transpose(1, 0, 2), atol=1e-6)
    np.testing.assert_allclose(h[0], want_h, atol=1e-6)
    np.testing.assert_allclose(c[0], want_c, atol=1e-6)
    short, h, _ = rnn.lstm(x, start, start, weights, jnp.array([5, 3, 1, 2]), *sizes[:3], 0.0, False)
    np.testing.assert_array_equal(short[2, 1:], np.zeros((4, 3)))
    np.testing.assert_allclose(h[0, 2], y[2, 0], atol=1e-6)
    # In both directions: the second reads the sequence from its end.
    both = (2, 3, 2, True)
    weights = rnn.init_lstm_weight(jax.random.key(1), *both)
    start = np.zeros((4, 4, 3), np.float32)
    y, h, _ = rnn.lstm(x, start, start, weights, jnp.array([5] * 4), *both[:3], 0.0, True)
    assert y.shape == (4, 5, 6) and h.shape == (4, 4, 3)
    np.testing.assert_allclose(y[:, 0, 3:], h[3], atol=1e-6)
    twice = rnn.swap_lstm_gates(rnn.swap_lstm_gates(weights, *both), *both)
    np.testing.assert_array_equal(twice, weights)
    with pytest.raises(NotImplementedError, match="dropout"):
        rnn.lstm(x, start, start, weights, jnp.array([5] * 4), *both[:3], 0.5, True)
    with pytest.raises(ValueError, match="a vector of"):
        rnn.unpack_lstm_weights(weights[1:], *both)


def test_stateful_random_numbers():
    """The numbers are those that the keys fold_in(key, 0), fold_in(key, 1), ... give; as in JAX."""
    rng, key = stateful_rng(42), jax.random.key(42)
    assert float(rng.uniform()) == float(jax.random.uniform(jax.random.fold_in(key, 0)))
    np.testing.assert_allclose(rng.uniform(0, 2, (2,)), 2 * jax.random.uniform(jax.random.fold_in(key, 1), (2,)))
    np.testing.assert_array_equal(rng.integers(5, size=3), jax.random.randint(jax.random.fold_in(key, 2), (3,), 0, 5))
    assert rng.normal(jnp.ones(2)).shape == (2,)
    draw = jax.jit(rng.random)
    assert float(draw()) != float(draw()) and int(rng._counter[...]) == 6
    assert [r._base_key.shape for r in rng.spawn(2)] == [(), ()] and rng.split(3)._base_key.shape == (3,)
    assert repr(stateful_rng(0)).endswith("_counter=Ref(0, dtype=int32, weak_type=True))")
    with pytest.raises(TypeError):
        rng.integers(0, 10, dtype="float32")


def test_arrays_of_devices():
    devices = jax.devices()
    n = len(devices)
    assert mesh_utils.create_device_mesh((n, 1)).ravel().tolist() == devices
    assert mesh_utils.create_hybrid_device_mesh((1, n), (1, 1), process_is_granule=True).shape == (1, n)
    with pytest.raises(ValueError, match="process_is_granule=True takes processes"):
        mesh_utils.create_hybrid_device_mesh((n,), (1,))
    with pytest.raises(ValueError, match=r"a mesh of shape \(2, 1\) has 2 devices, got 1"):
        mesh_utils.create_device_mesh((2, 1), devices[:1])
    with pytest.raises(ValueError, match="dcn_mesh_shape"):
        mesh_utils.create_hybrid_device_mesh((n,), (2,), process_is_granule=True)


def test_one_process():
    np.testing.assert_array_equal(multihost_utils.process_allgather({"a": jnp.arange(3)})["a"], [[0, 1, 2]])
    np.testing.assert_array_equal(multihost_utils.process_allgather(jnp.arange(3), tiled=True), [0, 1, 2])
    assert multihost_utils.process_allgather(1.5, tiled=True).shape == (1,)
    assert isinstance(multihost_utils.broadcast_one_to_all(1.0), np.ndarray)
    assert multihost_utils.assert_equal([1.0, np.nan]) is None and not multihost_utils.reached_preemption_sync_point(1)
    multihost_utils.sync_global_devices("here")
    with multihost_utils.live_devices(jax.devices()) as found:
        assert found == jax.devices()
    with pytest.raises(ValueError, match="local"), multihost_utils.live_devices([]):
        pass
    mesh = jax.make_mesh((1,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    placed = multihost_utils.host_local_array_to_global_array(jnp.ones(4), mesh, jax.P("x"))
    assert placed.sharding.spec == jax.P("x")
    with pytest.raises(ValueError, match="argument 'pspecs' is None"):
        multihost_utils.global_array_to_host_local_array(placed, mesh, None)


def test_results_lie_in_the_memories_that_are_said():
    host, device = jax.memory.Space.Host, jax.memory.Space.Device

    def spaces(f):
        return [jax.typeof(x).memory_space for x in jax.tree.leaves(f(jnp.arange(4.0)))]

    def computed(f, said):
        return compute_on.compute_on2(f, compute_type="device_host", out_memory_spaces=said)

    assert spaces(computed(lambda x: x * 2, host)) == spaces(jax.jit(computed(lambda x: x * 2, host))) == [host]
    assert spaces(computed(lambda x: (x * 2, x), host)) == [host, host]
    assert spaces(jax.jit(computed(lambda x: (x * 2, x), (host, device)))) == [host, device]
    assert spaces(computed(lambda x: {"a": x}, None)) == [device]
    with pytest.raises(ValueError, match="compute_on2 out_memory_spaces"):
        computed(lambda x: {"a": x}, {"b": host})(1.0)
    with pytest.raises(TypeError, match="must hold MemorySpaces"):
        computed(jnp.sin, "pinned_host")
    assert spaces(fused.fused(out_spaces=(host, device))(lambda x: {"a": x * 2, "b": x})) == [host, device]
    with pytest.raises(ValueError, match="2 memories for 1 results"):
        fused.fused(out_spaces=(host, device))(jnp.sin)(1.0)
    with pytest.raises(TypeError, match="must be a tuple of MemorySpaces"):
        fused.fused(out_spaces=host)


def test_words_for_other_machines():
    assert float(pjit(lambda x, n: x * n, static_argnums=1)(2.0, 3)) == 6
    with compute_on.compute_on("device_host"), xla_metadata.set_xla_metadata(a=1):
        assert float(compute_on.compute_on2(jnp.sin, compute_type="device", out_memory_spaces=None)(0.0)) == 0
    with pytest.raises(ValueError, match="argument 'compute_type' is 'zoo'"), compute_on.compute_on("zoo"):
        pass
    assert xla_metadata.set_xla_metadata(3, a=1) == 3
    x, _ = shard_alike.shard_alike({"a": 1.0}, {"a": 2})
    assert float(x["a"]) == 1
    with pytest.raises(ValueError, match="a leaf of x has shape"):
        shard_alike.shard_alike(1.0, jnp.ones(2))
    f = custom_partitioning(lambda x, n: x * n, static_argnums=(1,))
    with pytest.raises(AttributeError, match="call def_partition first"):
        f(1.0, 2)
    f.def_partition(lambda *_: None, lambda *_: None)
    assert float(jax.grad(f)(1.0, 2)) == 2


def test_arrays_from_parts():
    got = jax.make_array_from_callback(
        (2, 3), PLACE, lambda index: np.arange(6.0, dtype=np.float32).reshape(2, 3)[index]
    )
    np.testing.assert_array_equal(got, np.arange(6.0).reshape(2, 3))
    assert got.sharding == PLACE and isinstance(got.addressable_shards[0], jax.Shard)
    got = jax.make_array_from_single_device_arrays((2,), PLACE, [jnp.arange(2)])
    assert got.dtype == jnp.int32 and got.tolist() == [0, 1]
    assert jax.make_array_from_process_local_data(PLACE, np.ones((2, 3)), (2, 3)).shape == (2, 3)
    keys = jax.random.split(jax.random.key(0), 2)
    assert (jax.make_array_from_process_local_data(PLACE, keys) == keys).all()
    with pytest.raises(ValueError, match="Expected shard shape"):
        jax.make_array_from_single_device_arrays((2, 3), PLACE, [jnp.ones((2, 2))])
    with pytest.raises(ValueError, match="was asked for, but the parts are"):
        jax.make_array_from_callback((2,), PLACE, lambda index: np.ones(2), dtype="int32")
    with pytest.raises(ValueError, match="Expected 1 per-device arrays"):
        jax.make_array_from_single_device_arrays((2,), PLACE, [jnp.arange(2)] * 2)
    with pytest.raises(ValueError, match="global_shape"):
        jax.make_array_from_process_local_data(PLACE, np.ones(2), (4,))
    with pytest.raises(TypeError, match="'sharding' must be a jax"):
        jax.make_array_from_callback((2,), None, lambda index: np.ones(2))


def test_pictures_and_logs(capsys, caplog):
    jax.debug.visualize_array_sharding(jnp.ones(4))
    assert capsys.readouterr().out == "┌───────┐\n│ CPU 0 │\n└───────┘\n"
    jax.debug.visualize_array_sharding(jnp.ones((4, 2)), scale=0.5)
    assert capsys.readouterr().out == "┌───────┐\n│       │\n│ CPU 0 │\n│       │\n│       │\n└───────┘\n"
    jax.debug.visualize_array_sharding(jnp.ones((1, 4)), scale=0.2, max_width=12)
    assert capsys.readouterr().out == "┌──────────┐\n│  CPU 0   │\n└──────────┘\n"
    seen = []
    jax.debug.inspect_array_sharding([jnp.ones(2)], callback=seen.append)
    assert seen == [jnp.ones(2).sharding]
    jax.jit(lambda x: jax.debug.inspect_array_sharding(x, callback=seen.append))(1.0)
    assert seen == [jnp.ones(2).sharding] * 2
    with pytest.raises(NotImplementedError, match="inside of loops"):
        jax.jit(lambda x: jax.lax.map(lambda y: jax.debug.inspect_array_sharding(y, callback=seen.append), x))(
            jnp.ones(2)
        )
    with pytest.raises(ValueError, match="a shape of one or two dimensions"):
        jax.debug.visualize_array_sharding(jnp.ones((1, 1, 1)))
    with caplog.at_level(logging.INFO, "pullback.debug"):
        jax.jit(lambda x: jax.debug.log("x is {}", x))(3)
        jax.effects_barrier()
    assert caplog.messages == ["x is 3"]
    assert "pullback: " in jax.print_environment_info(return_string=True)


def test_compiled_code_is_kept_where_the_option_says(tmp_path):
    code = (
        "import os; os.environ.pop('PULLBACK_CACHE_DIR', None)\n"
        "import pullback as jax, pullback.numpy as jnp\n"
        "from pullback.experimental.compilation_cache import compilation_cache\n"
        f"compilation_cache.set_cache_dir({str(tmp_path / 'there')!r})\n"
        "jax.jit(lambda x: jnp.sin(x) * 3.25)(jnp.ones(7))\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert any(path.is_file() for path in (tmp_path / "there").rglob("*"))


def test_colocated_python():
    from pullback.experimental import colocated_python as cp

    x = jnp.arange(3.0)
    add = cp.colocated_python(lambda x, y=1: {"sum": x + y})
    assert add(x)["sum"].tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match="No devices found"):
        cp.colocated_python(lambda: 1)()
    assert cp.colocated_python(lambda: 1).specialize(devices=jax.devices()[:1])() == 1
    with pytest.raises(TypeError, match="must be arrays"):
        add(1.0)
    with pytest.raises(TypeError, match="must be arrays"):
        jax.jit(add)(x)
    spread = jax.sharding.NamedSharding(jax.make_mesh((1,), ("x",)), jax.sharding.PartitionSpec("x"))
    as_said = add.specialize(out_specs_fn=lambda x: {"sum": jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=spread)})
    assert as_said(x)["sum"].sharding == spread
    with pytest.raises(ValueError, match="does not match out_specs_fn"):
        add.specialize(out_specs_fn=lambda x: x)(x)
    with pytest.raises(ValueError, match="do not match in_specs"):
        add.specialize(in_specs=((jax.ShapeDtypeStruct((2,), x.dtype),), {}))(x)
    with pytest.raises(ValueError, match="given already"):
        as_said.specialize(out_specs_fn=lambda x: x)
    made = []

    @cp.colocated_python_class
    class Counter:
        def __init__(self, start):
            made.append(start)
            self.count = start

        def add(self, x):
            self.count += 1
            return x + self.count

    counter = Counter(3)
    assert not made and counter.add(x)[0] == 4 and counter.add(x)[0] == 5 and made == [3]
    assert not hasattr(counter, "count")
    mesh = jax.make_mesh((1,), ("x",))
    assert cp.colocated_cpu_devices(mesh) is mesh and cp.colocated_cpu_devices(jax.devices()) == jax.devices()
    with pytest.raises(TypeError, match="devices or a Mesh"):
        cp.colocated_cpu_devices("cpu")


def test_places_of_arrays_in_files():
    from pullback.experimental.array_serialization import serialization

    spec = serialization.get_tensorstore_spec
    assert spec("/tmp/a/b") == {"driver": "zarr", "kvstore": {"driver": "file", "path": "/tmp/a/b"}}
    bucket = spec("gs://bucket/a/b", ocdbt=True, process_idx=3, driver="zarr3")
    assert bucket["driver"] == "zarr3" and bucket["kvstore"]["path"] == "b"
    assert bucket["kvstore"]["base"] == {"driver": "gcs", "bucket": "bucket", "path": "a/process_3"}
    assert spec("s3://bucket/a")["kvstore"]["driver"] == "s3"
    assert spec("/a", arr=jnp.ones((2, 3)))["metadata"]["chunks"] == [2, 3]
    remote = serialization.is_remote_storage
    assert remote("gs://a") and remote(bucket) and not remote("/a") and not remote(spec("/a/b", ocdbt=True))


def test_arrays_in_files(tmp_path):
    pytest.importorskip("tensorstore", reason="the package tensorstore writes the files, and is not installed")
    from pullback.experimental.array_serialization import serialization

    arrays = [jnp.arange(6.0).reshape(2, 3), jnp.ones(3, jnp.bfloat16), jnp.array(True), jnp.zeros((0, 2))]
    paths = [str(tmp_path / str(k)) for k in range(4)]
    manager, done = serialization.GlobalAsyncCheckpointManager(), []
    manager.serialize_with_paths(arrays, paths, on_commit_callback=lambda: done.append(1))
    manager.wait_until_finished()
    place = arrays[0].sharding
    found = manager.deserialize_with_paths([place] * 4, paths)
    assert done == [1] and all(a.dtype == b.dtype and a.tolist() == b.tolist() for a, b in zip(arrays, found))
    specs = [serialization.get_tensorstore_spec(p) for p in paths[:2]]
    cut, filled = serialization.run_deserialization([place] * 2, specs, [(1, 4), (5,)], [jnp.int32, None], 0)
    assert cut.tolist() == [[0, 1, 2, 0]] and cut.dtype == jnp.int32 and filled.tolist() == [1, 1, 1, 0, 0]
    with pytest.raises(ValueError, match="nothing"):
        manager.deserialize_with_paths([place], [str(tmp_path / "nothing")])
    with pytest.raises(TypeError, match="replica_id"):
        serialization._run([serialization.async_serialize(arrays[0], specs[0], replica_id=1)])


@pytest.mark.parametrize(
    ("rule", "sizes", "found"),
    [
        ("... i (j k) -> ... i k", {"j": 2}, "((('…0', 'i', ('j', 'k')),), (('…0', 'i', 'k'),), {'j': 2})"),
        ("i j, -> i", {"reduction_factors": ("j",)}, "((('i', 'j'), ()), (('i',),), {} reduction_factors=('j',))"),
        ("i j", {}, "There is no ->"),
        ("i (j -> i", {}, "Brackets are not balanced"),
        ("i (j (k l)) -> i", {}, "a bracket opens within another"),
        ("(i) -> i", {}, "at least two factors"),
        ("i ... -> i", {}, "stands for the leading dimensions"),
        (".. i -> i", {}, "must be used inside ellipsis"),
        ("1 -> i", {}, "begins the name of a factor"),
        ("i -> i", {"i": 2}, "is a whole dimension"),
        ("i -> i", {"k": 2}, "a size is given for k"),
        ("(i j) -> i", {}, "the size of factor j is missing"),
        ("i k -> i", {"reduction_factors": ("k",), "permutation_factors": ("k",)}, "Factor k is named twice"),
    ],
)
def test_rules_of_functions_that_are_cut_as_a_whole(rule, sizes, found):
    f = custom_partitioning(lambda x: x)
    if found.startswith("("):
        f.def_partition(lambda *_: None, sharding_rule=rule, **sizes)
        assert str(f.sharding_rule) == f"SdyShardingRule{found}"
    else:
        with pytest.raises(ValueError, match=re.escape(found)):
            f.def_partition(lambda *_: None, sharding_rule=rule, **sizes)


def test_a_rule_that_is_none():
    with pytest.raises(TypeError, match="rule must be a str, but got"):
        custom_partitioning(lambda x: x).def_partition(lambda *_: None, sharding_rule=3)


@pytest.mark.parametrize("rule, sizes, error", [
    ("i j -> i j", {}, None),
    ("... j -> ... j", {}, None),
    ("(i j) k -> (i j) k", {"i": 2, "j": 4}, None),
    ("i j k -> i j", {}, "0th operand has rank 3, but"),
    ("i j -> i", {}, "0th result has rank 1, but"),
    ("i j, k -> i j", {}, "has 2 operands, but the operation has 1"),
    ("i j -> i j, i", {}, "has 2 results, but the operation has 1"),
    ("... i j k -> i j", {}, "0th operand has rank 3, but"),
    ("(i j) k -> (i j) k", {"i": 3, "j": 4}, "has a dimension of size 8, but its factors ('i', 'j') make 12"),
    ("(i j) k -> i j", {}, "has a dimension of size 8, but its factors ('i', 'j') make 64"),
    ("i j -> i j", {"reduction_factors": ("j",)}, "cannot be in result"),
])  # fmt: skip
def test_rules_fit_the_arrays(rule, sizes, error):
    f = custom_partitioning(lambda x, n: x * n, static_argnums=1)
    f.def_partition(lambda *_: None, sharding_rule=rule, **sizes)
    x = jnp.ones((8, 8))
    for call in (lambda x: f(x, 2), jax.jit(lambda x: f(x, 2))):
        if error is None:
            assert call(x)[0, 0] == 2
            continue
        with pytest.raises(ValueError, match=re.escape(error)):
            call(x)
