"""Primitives on objects whose tangents are arrays: their jvp rules, and loops and branches that pass the objects on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback.experimental import hijax

X = np.array([-1.0, -0.25, 0.5, 1.0], dtype=np.float32)


@dataclass(frozen=True)
class Rounded:
    """Multiples of `unit`."""

    numbers: jax.Array
    unit: jax.Array


@dataclass(frozen=True)
class RoundedType(hijax.HiType):
    shape: tuple[int, ...]

    def lo_ty(self):
        return [hijax.ShapedArray(self.shape, np.dtype("int8")), hijax.ShapedArray((), np.dtype("float32"))]

    def lower_val(self, x):
        return [x.numbers, x.unit]

    def raise_val(self, numbers, unit):
        return Rounded(numbers, unit)

    def to_tangent_aval(self):
        return hijax.ShapedArray(self.shape, np.dtype("float32"))


hijax.register_hitype(Rounded, lambda x: RoundedType(x.numbers.shape))


class Pack(hijax.HiPrimitive):
    def abstract_eval(self, x):
        return RoundedType(x.shape), set()

    def to_lojax(self, x):
        unit = jnp.max(jnp.abs(x)) / 100
        return Rounded(jnp.round(x / unit).astype(jnp.int8), unit)

    def jvp(self, primals, tangents):
        return pack.bind(*primals), tangents[0]


class Silent(hijax.HiPrimitive):
    """Says nothing of derivatives."""

    def abstract_eval(self, x):
        return hijax.ShapedArray(x.shape, np.dtype("float32")), set()

    def to_lojax(self, x):
        return x.numbers.astype(jnp.float32) * x.unit


class Unpack(Silent):
    def jvp(self, primals, tangents):
        return unpack.bind(*primals), tangents[0]


class Scale(hijax.HiPrimitive):
    def abstract_eval(self, x, _by, *, power):
        return x, set()

    def to_lojax(self, x, by, *, power):
        return Rounded(x.numbers, x.unit * by**power)

    def jvp(self, primals, tangents, *, power):
        x, by = primals
        x_dot, by_dot = tangents
        out_dot = jnp.zeros(X.shape)
        if not isinstance(x_dot, hijax.Zero):
            out_dot += x_dot * by**power
        if not isinstance(by_dot, hijax.Zero):
            out_dot += unpack.bind(x) * power * by ** (power - 1) * by_dot
        return scale.bind(x, by, power=power), out_dot


pack, unpack, silent, scale = Pack("pack_"), Unpack("unpack_"), Silent("silent_"), Scale("scale_")


def half(x):
    return pack.bind(unpack.bind(x) * 0.5)


def cube(x, by):
    return (unpack.bind(scale.bind(pack.bind(x), by, power=3)) * jnp.arange(4.0)).sum()


@pytest.mark.parametrize("how", [lambda f: f, jax.jit])
def test_derivatives_go_by_the_rule(how):
    """Those of the arrays that the objects are made of would be zero."""
    assert np.allclose(how(cube)(X, 2.0), 30, rtol=1e-2)
    x_bar, by_bar = how(jax.grad(how(cube), (0, 1)))(X, 2.0)
    assert x_bar.tolist() == [0, 8, 16, 24] and np.allclose(by_bar, 45, rtol=1e-2)
    _, out_dot = jax.jvp(how(lambda x: unpack.bind(pack.bind(x))), (X,), (2 * X,))
    assert out_dot.tolist() == (2 * X).tolist()
    assert jax.linearize(lambda x: cube(x, 2.0), X)[1](np.ones(4, "f")) == 48


def test_without_a_rule_there_is_an_error():
    assert np.allclose(jax.jit(lambda x: silent.bind(pack.bind(x)))(X), X, atol=0.01)
    with pytest.raises(NotImplementedError, match="'silent_' has no jvp"):
        jax.grad(lambda x: silent.bind(pack.bind(x)).sum())(X)


PASSED_ON = {
    "cond": lambda x: jax.lax.cond(x.numbers[0] < 0 if isinstance(x, Rounded) else True, half, lambda x: x, x),
    "switch": lambda x: jax.lax.switch(2, [lambda x: x, lambda x: x, half], x),
    "fori_loop": lambda x: jax.lax.fori_loop(0, 1, lambda _, x: half(x), x),
    "while_loop": lambda x: jax.lax.while_loop(lambda c: c[0] < 1, lambda c: (c[0] + 1, half(c[1])), (0, x))[1],
    "scan": lambda x: jax.lax.scan(lambda x, _: (half(x), None), x, None, length=1)[0],
}


@pytest.mark.parametrize("name", PASSED_ON)
def test_objects_go_through_loops_and_branches(name):
    def run(x):
        return unpack.bind(PASSED_ON[name](pack.bind(x)))

    whole = PASSED_ON[name](pack.bind(X))
    assert isinstance(whole, Rounded) and np.allclose(unpack.bind(whole), X / 2, atol=0.01)
    assert np.allclose(jax.jit(run)(X), X / 2, atol=0.01)
    assert jax.jvp(run, (X,), (X,))[1].tolist() == (X / 2).tolist()
    if name != "while_loop":
        assert jax.grad(lambda x: run(x).sum())(X).tolist() == [0.5] * 4
