"""Symbolic accesses: equal equations are asked once what they read, and the work is linear in the program's length."""

import numpy as np
import pytest

import pullback.numpy as jnp
from pullback.compiler.graph.fuse import access, fuse
from pullback.compiler.lower.program import lower_program
from pullback.compiler.pipelines import optimize_jaxpr
from pullback.core import trace, typeof

X = np.linspace(-1, 1, 64, dtype=np.float32).reshape(8, 8)


def lowered(fun, *args):
    return lower_program(optimize_jaxpr(trace(lambda *xs: [fun(*xs)], [typeof(a) for a in args])))


def calls_of(monkeypatch, module, name):
    calls = []
    original = getattr(module, name)
    monkeypatch.setattr(module, name, lambda *args: (calls.append(args), original(*args))[1])
    return calls


def products(steps):
    def f(x, w):
        for _ in range(steps):
            x = jnp.tanh(x @ w) + x[::-1]
        return x

    return f


@pytest.mark.parametrize("steps", [4, 40])
def test_equal_equations_are_asked_once_what_they_read(monkeypatch, steps):
    asked = calls_of(monkeypatch, access, "_accesses")
    lowered(products(steps), X, X)
    assert 2 <= len(asked) <= 4


@pytest.mark.parametrize("steps", [4, 40])
def test_axes_that_an_index_keeps_apart_are_found_once(monkeypatch, steps):
    found = calls_of(monkeypatch, fuse, "apart_axes")
    lowered(products(steps), X, X)
    assert len(found) <= 24


def test_places_that_different_arrays_give_are_different(monkeypatch):
    """What six gathers want at places of six arrays is stored, not computed six times: they had one index."""

    def f(x, *places):
        y = jnp.tanh(x)
        return sum(y[:, place] for place in places)

    places = [np.random.default_rng(k).integers(0, 640, 600).astype(np.int32) for k in range(6)]
    x = np.ones((512, 640), np.float32)
    fused = []
    original = fuse._Fuser._evaluate
    monkeypatch.setattr(
        fuse._Fuser,
        "_evaluate",
        lambda self, number, eqn, *rest: (fused.append(eqn), original(self, number, eqn, *rest))[1],
    )
    lowered(f, x, *places)
    assert sum(eqn.primitive.name == "tanh" for eqn in fused) == 1
