"""Gamma variables drawn in blocks: the compiled loops against the NumPy meaning, and against the loops on arrays."""

from __future__ import annotations

import numpy as np
import pytest

import pullback
from pullback import random
from pullback.random import _gamma
from pullback.random._generators import threefry
from pullback.random._threefry_gamma import threefry_gamma_p

SIZES = [1, 15, 16, 17, 255, 256, 257, 1000]


@pytest.fixture(params=[False, True], ids=["f32", "f64"])
def dtype(request):
    with pullback.enable_x64(request.param):
        yield np.float64 if request.param else np.float32


def close(got, want):
    tolerance = 1e-5 if want.dtype == np.float32 else 1e-12
    np.testing.assert_allclose(np.asarray(got), want, rtol=tolerance, atol=20 * tolerance)


@pytest.mark.parametrize("log_space", [False, True])
@pytest.mark.parametrize("n", SIZES)
def test_blocks_are_the_reference(n, log_space, dtype):
    key = np.array([[1, 2], [3, 4]], np.uint32)
    a = np.random.default_rng(n).choice([0.01, 0.4, 1.0, 2.5, 80.0], (2, n)).astype(dtype)
    got = pullback.jit(lambda key, a: threefry_gamma_p.bind(key, a, log_space=log_space))(key, a)
    close(got, threefry_gamma_p.reference(key, a, log_space=log_space))


def test_blocks_are_the_loops_on_arrays():
    """What other generators and types use."""
    key, a = random.PRNGKey(7), np.linspace(0.1, 3, 300, dtype=np.float32)
    keys = pullback.jit(lambda key: threefry.split(key, (300,)))(key)
    on_arrays = pullback.jit(lambda keys, a: _gamma._marsaglia_tsang(threefry, keys, a, False))(keys, a)
    close(random.gamma(key, a), np.asarray(on_arrays))


def test_an_element_depends_on_its_number_alone():
    key = random.PRNGKey(5)
    many = np.asarray(random.gamma(key, 0.7, (1000,)))
    for n in (1, 17, 300, 999):
        np.testing.assert_array_equal(np.asarray(random.gamma(key, 0.7, (n,))), many[:n])


def test_special_parameters():
    a = np.array([np.nan, np.inf, 0.0, 1e-30, 1e30], np.float32)
    out = np.asarray(random.gamma(random.PRNGKey(0), a))
    assert np.isnan(out[0]) and np.isinf(out[1]) and out[2] == 0 and out[3] == 0 and abs(out[4] / 1e30 - 1) < 1e-3
    assert random.gamma(random.PRNGKey(0), np.zeros((0,), np.float32)).shape == (0,)


def test_batches_of_keys_and_of_parameters():
    keys = random.split(random.PRNGKey(1), 3)
    a = np.linspace(0.5, 4, 12, dtype=np.float32).reshape(3, 4)
    draw = lambda key, a: random.gamma(key, a)
    both = pullback.vmap(draw)(keys, a)
    only_keys = pullback.vmap(draw, (0, None))(keys, a[0])
    only_parameters = pullback.vmap(draw, (None, 0))(keys[0], a)
    for i in range(3):
        close(both[i], np.asarray(draw(keys[i], a[i])))
        close(only_keys[i], np.asarray(draw(keys[i], a[0])))
        close(only_parameters[i], np.asarray(draw(keys[0], a[i])))


@pytest.mark.parametrize("impl", ["rbg", "unsafe_rbg"])
def test_batches_of_keys_of_other_generators(impl):
    keys = random.split(random.key(3, impl=impl), 3)
    found = pullback.vmap(lambda k: random.gamma(k, np.array([0.5, 3.0])))(keys)
    assert found.shape == (3, 2) and len(set(found.ravel().tolist())) == 6
