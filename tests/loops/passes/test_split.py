"""Loops cut where their conditions change."""

import numpy as np

import pullback
import pullback.numpy as jnp


def test_parts_have_scratch_space_of_their_own():
    x = np.random.default_rng(0).standard_normal((300, 20, 40)).astype("f4")

    def spread(x):
        y = x + jnp.pad(x[:-1], ((1, 0), (0, 0), (0, 0)))
        y = jnp.stack([y, y * y, jnp.abs(y)]).mean(0)
        return jnp.std(y, -1)

    text = pullback.jit(spread).lower(x).as_text("nests")
    assert text.count("local row") == 2 and "threads" in text.split("parallel", 1)[1]
    np.testing.assert_allclose(pullback.jit(spread)(x), spread(jnp.asarray(x)), rtol=1e-5, atol=1e-6)
