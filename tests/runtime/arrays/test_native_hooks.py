import copy
import enum
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp


def test_arrays_pickle():
    x = jnp.asarray(2.0)
    for y in (pickle.loads(pickle.dumps(x)), copy.copy(x), copy.deepcopy(x)):
        assert y.weak_type == x.weak_type and y.dtype == x.dtype and float(y) == 2.0
    key = jax.random.key(3)
    assert (jax.random.key_data(pickle.loads(pickle.dumps(key))) == jax.random.key_data(key)).all()


def test_sharding():
    x = jnp.ones(3)
    assert x.sharding.device_set == {x.device}


def test_integers_that_do_not_fit_are_an_error():
    f = jax.jit(lambda x: x + 1)
    assert f(1) == 2
    with pytest.raises(OverflowError):
        f(2**40)


def test_key_arrays_are_found_again():
    f = jax.jit(lambda key: jax.random.bits(key))
    a, b = f(jax.random.key(0)), f(jax.random.key(0))
    assert a == b == jax.random.bits(jax.random.key(0)) and f.cache_size() == 1
    g = jax.jit(jax.random.split)
    assert (jax.random.key_data(g(jax.random.key(1))) == jax.random.key_data(g(jax.random.key(1)))).all()
    assert g.cache_size() == 1


class Color(enum.IntEnum):
    RED = 1
    BLUE = 2


class Sub(np.ndarray):
    pass


def test_subclasses_are_found_again():
    f = jax.jit(lambda x: x + 1)
    assert f(Color.RED) == 2 and f(Color.BLUE) == 3 and f.cache_size() == 1
    x = np.arange(3.0).view(Sub)
    assert f(x).tolist() == f(x).tolist() == [1, 2, 3] and f.cache_size() == 2
    for bad in ("text", object(), np.array(["a"])):
        with pytest.raises(TypeError):
            f(bad)


def test_number_of_threads_from_the_environment():
    code = "import pullback; from pullback._ext import _core; print(_core.num_threads())"
    env = os.environ | {"PULLBACK_NUM_THREADS": "3"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert done.stdout == "3\n"
