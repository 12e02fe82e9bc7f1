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


def test_the_middle_of_many_shifted_arrays_is_cut_out():
    x = np.random.default_rng(0).standard_normal(20_000).astype("f4")

    def shifted(x):
        return sum((k + 1) * jnp.roll(x, k) for k in range(24))

    program = pullback.jit(shifted)
    text = program.lower(x).as_text("nests")
    middle = [part for part in text.split("vector ") if "select" not in part and part.count("x0[") == 24]
    assert middle, text  # 24 loads without a choice; all 24 rims by themselves would be too much code
    want = sum((k + 1) * np.roll(x.astype("f8"), k) for k in range(24))
    np.testing.assert_allclose(program(x), want, rtol=1e-5, atol=1e-4)


def test_the_middle_is_cut_out_of_loops_inside_each_other():
    x = np.random.default_rng(0).standard_normal((64, 96)).astype("f4")
    weights = [1, 4, 6, 4, 1]

    def blurred(x):
        wide = jnp.pad(x, 2, mode="edge")
        return sum(weights[i] * weights[j] * wide[i : i + 64, j : j + 96] for i in range(5) for j in range(5))

    program = pullback.jit(blurred)
    text = program.lower(x).as_text("nests")
    middle = [part for part in text.split("vector ") if "select" not in part and part.count("x0[") == 25]
    assert middle, text  # neither rows nor columns alone leave few choices
    wide = np.pad(x.astype("f8"), 2, mode="edge")
    want = sum(weights[i] * weights[j] * wide[i : i + 64, j : j + 96] for i in range(5) for j in range(5))
    np.testing.assert_allclose(program(x), want, rtol=1e-4, atol=1e-4)
