"""Where arrays say that they are."""

import numpy as np

import pullback as jax
import pullback.numpy as jnp


def test_devices_and_shards():
    x = jax.device_put(np.arange(6.0).reshape(2, 3), jax.devices()[0])
    assert x.devices() == {jax.devices()[0]} == x.sharding.device_set
    (shard,) = x.addressable_shards
    assert shard.device == jax.devices()[0] and shard.data.shape == (2, 3) and shard.index == (slice(None), slice(None))
    assert x.is_fully_addressable and x.is_fully_replicated
    assert jnp.ones(3).devices() == {jax.devices()[0]}
