"""Keys of random numbers inside of shard_map and pmap, on simulated devices."""

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import lax
from pullback.sharding import AxisType
from pullback.sharding import PartitionSpec as P


@pytest.mark.parametrize("check_vma", [True, False])
def test_keys_go_between_devices(check_vma):
    keys, mesh = jax.random.split(jax.random.key(3), 8), jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,))

    def mapped(f, x, in_specs=P("x")):
        f = jax.shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=P("x"), check_vma=check_vma)
        found, again = f(x), jax.jit(f)(x)
        assert np.array_equal(data(found), data(again))
        return data(found)

    def data(x):
        return np.asarray(jax.random.key_data(x) if jnp.issubdtype(x.dtype, jax.dtypes.prng_key) else x)

    words = data(keys)
    own = mapped(lambda x: x + jax.random.uniform(jax.random.fold_in(keys[0], lax.axis_index("x"))), jnp.zeros(4))
    assert own.tolist() == [float(jax.random.uniform(jax.random.fold_in(keys[0], i))) for i in range(4)]
    ring = [(i, (i + 1) % 4) for i in range(4)]
    assert np.array_equal(mapped(lambda k: lax.ppermute(k, "x", ring), keys), np.roll(words, 2, 0))
    assert np.array_equal(mapped(lambda k: lax.all_gather(k, "x", tiled=True), keys), np.tile(words, (4, 1)))
    turned = mapped(lambda k: lax.all_to_all(k, "x", 0, 0, tiled=True), keys[:4], P())
    assert np.array_equal(turned, words[:4].repeat(4, 0))
    with pytest.raises(TypeError, match="does not accept dtype key<fry>"):
        mapped(lambda k: lax.psum(k, "x"), keys)


def test_keys_go_between_the_devices_of_pmap():
    keys = jax.random.split(jax.random.key(3), 4)
    words = np.asarray(jax.random.key_data(keys))
    for run in (jax.pmap, jax.vmap):
        for f, want in (
            (lambda k: lax.all_gather(k, "i"), np.tile(words, (4, 1, 1))),
            (lambda k: lax.ppermute(k, "i", [(0, 1), (1, 0)]), [words[1], words[0], words[0] * 0, words[0] * 0]),
        ):
            assert np.array_equal(jax.random.key_data(run(f, axis_name="i")(keys)), want)


def test_keys_that_go_between_devices_are_replaced_by_their_words_where_no_axis_is_in_force():
    from pullback.compiler.graph.simplify.keys import replace_keys

    traced = jax.make_jaxpr(lambda k: lax.all_gather(k, "i"), axis_env=[("i", 4)])(jax.random.key(0))
    replaced = replace_keys(traced)
    assert [e.primitive.name for e in replaced.jaxpr.eqns] == ["all_gather"]
    assert replaced.out_avals[0].shape == (4, 2) and replaced.out_avals[0].dtype == np.uint32
