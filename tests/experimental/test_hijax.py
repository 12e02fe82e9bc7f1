"""Types above arrays: objects that enter traced functions as the arrays they are made of."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback.experimental import hijax
from pullback.sharding import PartitionSpec as P


class Pair:
    def __init__(self, a, b):
        self.a, self.b = a, b


class PairType(hijax.HiType):
    def __init__(self, a, b):
        self.avals = a, b

    def __hash__(self):
        return hash(self.avals)

    def __eq__(self, other):
        return isinstance(other, PairType) and self.avals == other.avals

    def lo_ty(self):
        return list(self.avals)

    def lower_val(self, pair):
        return [pair.a, pair.b]

    def raise_val(self, a, b):
        return Pair(a, b)


class Box:
    """Has a dict of arrays, which may get others."""

    def __init__(self, **held):
        self.held = held

    def cur_qdd(self):
        return tuple((name, jax.typeof(x)) for name, x in sorted(self.held.items()))


class BoxType(hijax.MutableHiType):
    def __hash__(self):
        return hash(BoxType)

    def __eq__(self, other):
        return isinstance(other, BoxType)

    def lo_ty_qdd(self, state):
        return [aval for _, aval in state]

    def read_loval(self, state, box):
        return [box.held[name] for name, _ in state]

    def new_from_loval(self, state, *values):
        return Box(**{name: x for (name, _), x in zip(state, values)})

    def update_from_loval(self, state, box, *values):
        box.held = {name: x for (name, _), x in zip(state, values)}


hijax.register_hitype(Pair, lambda p: PairType(jax.typeof(p.a), jax.typeof(p.b)))
hijax.register_hitype(Box, lambda box: BoxType())


class Swap(hijax.HiPrimitive):
    def to_lojax(self, pair, *, factor):
        return Pair(pair.b * factor, pair.a)


swap_p = Swap("swap_of_test")


def test_objects_of_arrays():
    pair = Pair(jnp.arange(3.0), jnp.ones((2,)))
    assert jax.typeof(pair) == PairType(jax.typeof(pair.a), jax.typeof(pair.b))
    assert jax.typeof(pair).lo_ty()[1].size == 2
    traced = []

    @jax.jit
    def f(p, x, *, y):
        traced.append(1)
        return {"p": swap_p.bind(p["in"], factor=3.0), "x": x + y + p["in"].a.sum()}

    for k in range(3):
        out = f({"in": pair}, k, y=2)
        assert isinstance(out["p"], Pair) and out["p"].a.tolist() == [3, 3] and out["p"].b is not None
        assert float(out["x"]) == k + 5
    assert len(traced) == 1
    f({"in": Pair(jnp.arange(4.0), 1.0)}, 1, y=2)
    assert len(traced) == 2
    grad = jax.grad(lambda a: jax.jit(lambda p: (swap_p.bind(p, factor=2.0).a ** 2).sum())(Pair(a, a)))(jnp.arange(2.0))
    assert grad.tolist() == [0, 8]
    mapped = jax.vmap(lambda a: jax.jit(lambda p: p.a + p.b)(Pair(a, 1.0)))(jnp.arange(3))
    assert mapped.tolist() == [1, 2, 3]
    assert jax.eval_shape(lambda p: p.a[:2], pair).shape == (2,)


def test_objects_with_a_state():
    box = Box(x=jnp.arange(3))

    @jax.jit
    def count(box, by):
        box.held["x"] = box.held["x"] + by
        box.held["sum"] = box.held["x"].sum()
        return box.held["sum"] * 2

    assert int(count(box, 1)) == 12 and box.held["x"].tolist() == [1, 2, 3]
    assert int(count(box, 1)) == 18 and int(box.held["sum"]) == 9  # its state is another one now
    assert hijax.cur_qdd(box) == (("sum", jax.typeof(jnp.int32(1))), ("x", jax.typeof(jnp.arange(3))))
    assert jax.eval_shape(count, box, 1).shape == () and int(box.held["sum"]) == 9
    with pytest.raises(ValueError, match="two arguments"):
        jax.jit(lambda a, b: None)(box, box)
    with pytest.raises(TypeError, match="no object of a mutable type"):
        hijax.cur_qdd(Pair(1, 2))
    outer = jax.jit(lambda box: jax.jit(lambda inner: inner.held.update(x=inner.held["x"] * 2))(box))
    outer(box)
    assert box.held["x"].tolist() == [4, 6, 8]


def test_what_is_said_of_results_is_said_of_the_functions_own():
    """References and states are results beside them, of which out_shardings says nothing."""
    mesh = jax.make_mesh((1,), ("x",))
    there = jax.sharding.NamedSharding(mesh, P("x"))
    ref, outside = jax.new_ref(jnp.zeros(2)), jax.new_ref(jnp.zeros(2))

    def f(r, box, x):
        r[...] += x
        outside[...] += x
        box.held["x"] = x
        return x, x + 1

    for jitted in (jax.jit(f, out_shardings=(there, None)), jax.jit(f, out_shardings=there)):
        box = Box()
        out = jitted(ref, box, jnp.ones(2))
        assert out[0].sharding == there and out[1].tolist() == [2, 2] and box.held["x"].tolist() == [1, 1]
    np.testing.assert_array_equal(ref[...] + outside[...], 4)


def test_what_is_not_there_says_so():
    class Nothing(hijax.HiPrimitive):
        pass

    with pytest.raises(NotImplementedError, match=r"'nothing'.*to_lojax"):
        Nothing("nothing").bind(1.0)
    with pytest.raises(TypeError, match="Pair"):
        jax.jit(lambda p: p).lower(Pair(1.0, 2.0))
    with pytest.raises(TypeError, match="Pair"):
        jax.grad(lambda p: p.a)(Pair(1.0, 2.0))
