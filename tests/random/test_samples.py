"""Every sampler against the numbers that JAX draws from the same key, in both threefry modes."""

import json
import pathlib

import ml_dtypes
import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import random
from pullback.util import config

DATA = json.loads((pathlib.Path(__file__).parent / "data" / "jax_samples.json").read_text())
CASES = [(group["settings"], text, expected) for group in DATA["groups"] for text, expected in group["cases"].items()]

# Functions with transcendental steps: their rounding is ours, to some units in the last place of the largest step.
ULPS = {
    "uniform": 1,
    "normal": 4,
    "exponential": 4,
    "gumbel": 8,
    "laplace": 4,
    "logistic": 8,
    "cauchy": 16,
    "lognormal": 32,
}
ULPS_OTHERWISE = 64


def array_of(stored):
    name = stored["dtype"]
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    values = stored["values"]
    if name.startswith("complex"):
        values = [complex(float.fromhex(a), float.fromhex(b)) for a, b in values]
    elif values and isinstance(values[0], str):
        values = [float.fromhex(v) for v in values]
    exact = np.array(values, dtype) if values and isinstance(values[0], int) else np.array(values).astype(dtype)
    return exact.astype(dtype).reshape(stored["shape"])


def agree(actual, expected, text):
    assert actual.dtype == expected.dtype and actual.shape == expected.shape
    kind = "f" if actual.dtype == ml_dtypes.bfloat16 else actual.dtype.kind
    if kind not in "fc":
        np.testing.assert_array_equal(actual, expected)
        return
    name = text.removeprefix("random.").split("(")[0]
    eps = float(ml_dtypes.finfo(actual.dtype).eps)
    parts = [(actual.real, expected.real), (actual.imag, expected.imag)] if kind == "c" else [(actual, expected)]
    for a, e in parts:
        a, e = a.astype(np.float64), e.astype(np.float64)
        # JAX's programs flush denormal numbers to zero; linear algebra is exact relative to the whole matrix only.
        tiny = float(ml_dtypes.finfo(actual.dtype).tiny)
        scale = {"orthogonal": 8 * eps, "multivariate_normal": 8 * eps, "gumbel": eps, "logistic": eps}.get(name, tiny)
        np.testing.assert_allclose(a, e, rtol=eps * ULPS.get(name, ULPS_OTHERWISE), atol=scale)


def identity(case):
    settings, text, _ = case
    mode = "partitionable" if settings["partitionable"] else "sequential"
    return f"{text}-{settings['impl']}-{mode}-x64={settings['x64']}"


@pytest.mark.parametrize("case", CASES, ids=identity)
def test_same_numbers_as_jax(case):
    settings, text, expected = case
    with config.enable_x64(settings["x64"]), config.threefry_partitionable(settings["partitionable"]):
        key = random.key(settings["seed"], impl=settings["impl"])
        value = eval(text, {"random": random, "jnp": jnp, "np": np, "key": key})
        agree(np.asarray(value), array_of(expected), text)


RAW = [(s, t, e) for s, t, e in CASES if s["seed"] == 42 and s["impl"] == "threefry2x32" and "key_data" not in t]


@pytest.mark.parametrize("case", RAW[::3], ids=identity)
def test_raw_keys_under_jit_give_the_same(case):
    settings, text, expected = case
    with config.threefry_partitionable(settings["partitionable"]):
        run = jax.jit(lambda key: eval(text, {"random": random, "jnp": jnp, "np": np, "key": key}))
        agree(np.asarray(run(random.PRNGKey(42))), array_of(expected), text)


def test_the_documented_old_stream():
    with config.threefry_partitionable(False):
        x = random.normal(random.split(random.PRNGKey(0))[1], (2, 3))
    np.testing.assert_allclose(np.asarray(x), [[-1.458, -2.047, -1.424], [1.168, -0.976, -1.272]], atol=1e-3)


# What JAX 0.10.2 gives for multinomial(key(1), 3001., [.21, .3, .15, .34]): float32, rounded to the type.
@pytest.mark.parametrize("dtype, counts", [
    ("float16", [654, 870, 429, 1048]), ("bfloat16", [656, 872, 428, 1048]), ("float32", [654, 870, 429, 1048]),
])  # fmt: skip
def test_counts_in_narrow_types_are_those_of_float32(dtype, counts):
    drawn = random.multinomial(random.key(1), 3001.0, jnp.array([0.21, 0.3, 0.15, 0.34]), dtype=dtype)
    assert drawn.dtype == jnp.dtype(dtype)
    np.testing.assert_array_equal(np.asarray(drawn).astype(np.float64), counts)


def test_rademacher_of_bool_is_true():
    got = random.rademacher(random.key(0), (3, 2), "bool")
    assert got.dtype == bool and got.shape == (3, 2) and np.all(got)


def test_lognormal_of_complex_numbers():
    key = random.key(3)
    got = random.lognormal(key, 2.0, (2, 3), complex)
    want = np.exp(2 * np.asarray(random.normal(key, (2, 3), complex)))
    np.testing.assert_allclose(got, want, rtol=1e-5)
    with pytest.raises(ValueError, match="lognormal"):
        random.lognormal(key, dtype=int)


def test_no_choices():
    assert random.choice(random.key(0), jnp.ones((3, 4)), (2, 0), axis=1).shape == (2, 0)


def test_limits_of_length_one_give_their_axes_to_uniform_numbers():
    key = jax.random.key(0)
    assert jax.random.uniform(key, minval=jnp.zeros(1), maxval=jnp.ones(1)).tolist() == [jax.random.uniform(key)]
    found = jax.random.uniform(key, (3,), maxval=jnp.ones((1, 1)))
    np.testing.assert_array_equal(found, jax.random.uniform(key, (3,))[None])
    for shape in ((3,), (2, 1)):
        with pytest.raises(ValueError, match=r"shape=\(\)"):
            jax.random.uniform(key, minval=jnp.zeros(shape))


def test_binomial_is_drawn_in_the_type_of_its_parameters():
    key = random.key(5)
    half, single = jnp.float16, jnp.float32
    for n, p, dtype, expected in (
        (half(10), half(0.3), None, [2, 3, 1, 2, 2, 3]),
        (half(10), half(0.3), "float16", [2, 3, 1, 2, 2, 3]),
        (10, half(0.3), "float32", [2, 3, 1, 2, 2, 3]),
        (jnp.bfloat16(10), jnp.bfloat16(0.3), None, [3, 5, 4, 4, 3, 0]),
        (jnp.int32(20), single(0.4), "float16", [8, 6, 9, 8, 8, 8]),
    ):
        np.testing.assert_array_equal(random.binomial(key, n, p, (6,), dtype), expected)
    with jax.enable_x64(True):
        np.testing.assert_array_equal(random.binomial(key, 10, 0.3, (6,), "float32"), [6, 4, 2, 3, 1, 3])
        np.testing.assert_array_equal(random.binomial(key, 10, single(0.3), (6,)), [5, 5, 4, 4, 4, 2])


# What JAX 0.10.2 gives with x64 for multinomial(PRNGKey(7), [10, 5, 100], P) where P has each of these types.
MULTINOMIAL_OF_TYPES = {
    "float16": [[1, 6, 3], [0, 0, 5], [29, 29, 42]],
    "bfloat16": [[2, 3, 5], [0, 0, 5], [39, 22, 39]],
    "float32": [[2, 4, 4], [1, 1, 3], [25, 33, 42]],
    "float64": [[3, 4, 3], [0, 0, 5], [31, 33, 36]],
}


@pytest.mark.parametrize("dtype", MULTINOMIAL_OF_TYPES)
def test_multinomial_draws_in_the_type_of_its_probabilities(dtype):
    with jax.enable_x64(True):
        p = jnp.array([[0.2, 0.3, 0.5], [0.1, 0.1, 0.8], [0.3, 0.3, 0.4]], dtype)
        drawn = random.multinomial(random.PRNGKey(7), jnp.array([10, 5, 100]), p)
        assert drawn.dtype == np.float64
        np.testing.assert_array_equal(drawn, MULTINOMIAL_OF_TYPES[dtype])


def test_parameters_of_wider_types_than_what_is_drawn_are_refused():
    key, wide = random.key(0), jnp.float32(2)
    for draw in (random.pareto, random.rayleigh, random.wald, random.chisquare, random.t, random.lognormal):
        with pytest.raises(jax.dtypes.TypePromotionError):
            draw(key, wide, dtype="float16")
        assert draw(key, 2.0, dtype="float16").dtype == draw(key, jnp.int32(2), dtype="float16").dtype == "float16"
    with pytest.raises(ValueError, match="float32"):
        random.beta(key, wide, wide, dtype="bfloat16")
    assert random.gamma(key, wide, dtype="float16").dtype == "float16"
