"""Exponentials of imaginary numbers: as complex arithmetic has them, by a cosine and a sine."""

import numpy as np
import pytest

import pullback as pb
import pullback.numpy as jnp
from pullback.compiler.pipelines import optimize_jaxpr

SPELLINGS = {
    "1j * y": lambda y: jnp.exp(1j * y),
    "y * 1j": lambda y: jnp.exp(y * 1j),
    "-2j pi y / n": lambda y: jnp.exp(-2j * jnp.pi * y / 7),
    "-(1j y)": lambda y: jnp.exp(-(1j * y)),
    "products": lambda y: jnp.exp(1j * y[:, None] * y),
    "whole numbers": lambda y: jnp.exp(-1j * jnp.arange(y.size) * 0.5),
    "parts": lambda y: jnp.exp(pb.lax.complex(jnp.zeros_like(y), y)),
    "reshaped": lambda y: jnp.exp((1j * y).reshape(2, -1)),
    "a scalar": lambda y: jnp.exp(1j * y[0]),
    "broadcast": lambda y: jnp.exp(jnp.broadcast_to((1j * y)[:, None], (y.size, 3))),
}


def primitives(f, *args):
    return {eqn.primitive.name for eqn in optimize_jaxpr(pb.make_jaxpr(f)(*args)).jaxpr.eqns}


@pytest.mark.parametrize("name", SPELLINGS)
@pytest.mark.parametrize("wide", [False, True])
def test_spellings(name, wide):
    f = SPELLINGS[name]
    with pb.enable_x64(wide):
        y = np.linspace(-9, 9, 20).astype("f8" if wide else "f4")
        found = np.asarray(pb.jit(f)(y))
        np.testing.assert_allclose(found, np.asarray(f(jnp.asarray(y))), rtol=0, atol=4e-15 if wide else 4e-6)
        assert found.dtype == (np.complex128 if wide else np.complex64)
        used = primitives(f, y)
        assert "exp" not in used
        assert {"cos", "sin"} <= used or name == "whole numbers"  # whose phases are known


def test_what_is_not_finite():
    y = np.array([np.inf, -np.inf, np.nan, 3e38, -0.0, 0.0, 1e-45], "f4")
    for f in (lambda y: jnp.exp(1j * y), lambda y: jnp.exp(10j * y), lambda y: jnp.exp(1j * y * y)):
        with np.errstate(all="ignore"):
            expected = np.asarray(f(jnp.asarray(y)))
        found = np.asarray(pb.jit(f)(y))
        np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
        np.testing.assert_allclose(found, expected, atol=1e-6)


def test_other_exponents_stay():
    y = np.linspace(-1, 1, 5).astype("f4")
    z = (y + 2j * y).astype("c8")
    for f, x in (
        (lambda y: jnp.exp((1 + 1j) * y), y),
        (lambda z: jnp.exp(1j * z), z),
        (lambda z: jnp.exp(1j / z), z),
        (lambda y: jnp.exp(1j * y + y), y),
        (lambda y: jnp.exp(complex(0, np.inf) * y), y),
    ):
        assert "exp" in primitives(f, x)
        np.testing.assert_allclose(pb.jit(f)(x), np.asarray(f(jnp.asarray(x))), rtol=1e-5)


def test_derivatives():
    y = np.linspace(-3, 3, 9).astype("f4")
    found = pb.jit(pb.grad(lambda y: (jnp.exp(1j * y) * jnp.arange(9)).imag.sum()))(y)
    np.testing.assert_allclose(found, np.cos(y) * np.arange(9), rtol=1e-5, atol=1e-6)
