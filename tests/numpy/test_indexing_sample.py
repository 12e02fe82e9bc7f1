"""Index expressions drawn at random, with the values and gradients that JAX gives (`indexing_sample.json`): reads and
writes in all modes, in and out of bounds, of slices, arrays of several integer types, masks and new axes.

Each row: number, shape of x, expression, (shape, elements) of the value, of the gradient of sum(value * (1, 2, ...)),
or ! and the error's type.
"""

import json
import pathlib

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import lax

ROWS = json.loads(pathlib.Path(__file__).with_name("indexing_sample.json").read_text())
NAMES = {"np": np, "jnp": jnp, "lax": lax, "jax": jax}


def operand(number, shape):
    draw = np.random.RandomState(number).randint(1, 9, shape).astype(np.float32) / 4
    sign = np.where(np.random.RandomState(number + 9).rand(*shape) < 0.5, -1, 1)
    return (draw * sign + np.arange(np.prod(shape)).reshape(shape) * np.float32(0.125)).astype(np.float32)


def agrees(call, expected):
    if isinstance(expected, str):
        with pytest.raises(Exception) as caught:
            call()
        assert f"!{type(caught.value).__name__}" == expected
        return
    shape, elements = expected
    found = np.asarray(call())
    wanted = np.array([np.nan if e == "nan" else e for e in elements]).reshape(shape)
    np.testing.assert_allclose(found, wanted, rtol=3e-4, atol=1e-6)


@pytest.mark.filterwarnings("ignore:Explicitly requested dtype int64")
@pytest.mark.parametrize("rows", [ROWS[k::6] for k in range(6)])
def test_values_and_gradients(rows):
    for number, shape, text, value, gradient in rows:
        x = operand(number, shape)
        f = eval(f"lambda x: {text}", NAMES)

        def loss(x, f=f):
            y = f(x)
            return (y * (jnp.arange(y.size).reshape(y.shape) + 1.0)).sum()

        try:
            agrees(lambda f=f, x=x: f(jnp.asarray(x)), value)
            agrees(lambda loss=loss, x=x: jax.grad(loss)(x), gradient)
        except AssertionError as error:
            raise AssertionError(f"{text} of shape {shape}") from error
