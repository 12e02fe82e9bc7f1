"""Types above arrays: objects that enter traced functions as the arrays they are made of."""

from __future__ import annotations

from functools import partial

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


class Add(hijax.HiPrimitive):
    """Adds to an array of a box, and gives what it was."""

    def to_lojax(self, box, x):
        was = box.held["x"]
        box.held["x"] = was + x
        return was


add_p = Add("add_of_test")


def test_objects_that_the_body_of_a_scan_closes_over_and_changes():
    box, unread, inner = Box(x=jnp.float32(3)), Box(x=jnp.float32(1)), Box(x=jnp.float32(0))

    def body(carry, x):
        made = Box(x=x)
        add_p.bind(made, 1.0)
        return carry + add_p.bind(box, made.held["x"]) * unread.held["x"], box.held["x"]

    carry, ys = jax.lax.scan(body, 0.0, jnp.arange(3.0))
    assert (float(carry), ys.tolist(), float(box.held["x"])) == (3 + 4 + 6, [4, 6, 9], 9)
    assert float(unread.held["x"]) == 1

    def loop(x):
        def outer(c, _):
            return jax.lax.scan(lambda c, _: (c, add_p.bind(inner, x)), c, None, length=2)[0], None

        jax.lax.scan(outer, 0.0, None, length=3)
        total, inner.held["x"] = inner.held["x"], zero
        return total * x

    zero = inner.held["x"]

    assert [float(f(2.0)) for f in (loop, jax.jit(loop), jax.grad(loop))] == [24, 24, 24]


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


class Own(hijax.VJPHiPrimitive):
    """A primitive of `count` arguments of one type, with a result of that type."""

    count = 1

    def __init__(self, *avals, **params):
        self.in_avals = avals
        self.out_aval = self.result(avals[-1])
        self.params = params
        super().__init__()

    def result(self, aval):
        return aval

    @classmethod
    def of(cls, *args, **params):
        return cls(*(jax.tree.map(jax.typeof, a) for a in args), **params)(*args)


def product(of, xs):
    return jax.lax.scan(lambda c, x: (of(c, x), None), 1.0, xs)[0]


class Times(Own):
    """x y, whose derivatives are wrong on purpose: 10 times in reverse, 100 times forward."""

    def expand(self, x, y):
        return x * y

    def vjp_fwd(self, moves, x, y):
        return self(x, y), (x if moves[1] else None, y if moves[0] else None)

    def vjp_bwd_retval(self, kept, bar):
        x, y = kept
        return None if y is None else 10 * y * bar, None if x is None else 10 * x * bar


class BothWays(Times):
    def jvp(self, primals, tangents):
        (x, y), (x_dot, y_dot) = primals, map(hijax.instantiate_zeros, tangents)
        return self(x, y), 100 * (x_dot * y + x * y_dot)


class Pushed(Own):
    def expand(self, x):
        return {"sin": jnp.sin(x["a"]), "two": 2}["sin"]

    def result(self, aval):
        return aval["a"]

    def vjp_fwd(self, _moves, x):
        return self(x), x

    def vjp_bwd(self, x, bar, accumulators):
        accumulators["a"].accum(jnp.cos(x["a"]) * bar)
        accumulators["a"].accum(bar)
        accumulators["b"].accum(None)


class Linearized(Own):
    def expand(self, x):
        return jnp.sin(x)

    def lin(self, _moves, x):
        return self(x), jnp.cos(x)

    def linearized(self, cos, x_dot):
        return cos * x_dot


class Mapped(Own):
    def expand(self, x):
        return x @ x

    def result(self, aval):
        return hijax.ShapedArray((), aval.dtype)

    def batch(self, axis, args, dims):
        (x,), (dim,) = args, dims
        return -(x * x).sum(1 - dim), 0


def test_primitives_with_their_own_derivatives():
    for of in (Times.of, BothWays.of):
        assert float(of(2.0, 3.0)) == 6
        for grad in (jax.grad(of, (0, 1)), jax.jit(jax.grad(of, (0, 1)))):
            assert [float(g) for g in grad(2.0, 3.0)] == [30, 20]
        assert jax.vmap(jax.grad(of), (0, None))(jnp.arange(3.0), 2.0).tolist() == [20, 20, 20]
        xs = jnp.arange(1.0, 4.0)
        assert jax.grad(partial(product, of))(xs).tolist() == [6000, 300, 20]
    assert float(jax.grad(Times.of, 1)(2.0, 3.0)) == 20
    assert [float(v) for v in jax.jvp(BothWays.of, (2.0, 3.0), (1.0, 1.0))] == [6, 500]
    assert [float(v) for v in jax.jit(lambda x: jax.jvp(BothWays.of, (x, 3.0), (1.0, 0.0)))(2.0)] == [6, 300]
    with pytest.raises(NotImplementedError, match="Times: for jvp, subclasses must have jvp"):
        jax.jvp(Times.of, (2.0, 3.0), (1.0, 1.0))
    with pytest.raises(TypeError, match=r"float32\[2\] was passed, but in_avals say .*float32\[\]"):
        Times(*[jax.typeof(1.0)] * 2)(jnp.ones(2), 1.0)
    with pytest.raises(TypeError, match="structure"):
        Times(*[jax.typeof(1.0)] * 2)(1.0)
    out = jax.grad(Pushed.of)({"a": 0.0, "b": jnp.ones(2)})
    assert float(out["a"]) == 2 and out["b"].tolist() == [0, 0]
    value, push = jax.linearize(Linearized.of, 0.0)
    assert float(value) == 0 and float(push(2.0)) == 2 and float(jax.grad(Linearized.of)(0.0)) == 1
    assert Times(jax.typeof(1.0), jax.typeof(1.0)) == Times(jax.typeof(1.0), jax.typeof(1.0))


def test_primitives_that_say_how_they_are_mapped():
    x = jnp.arange(6.0).reshape(2, 3)
    assert float(Mapped.of(x[1])) == 50
    for mapped in (jax.vmap(Mapped.of), jax.jit(jax.vmap(Mapped.of)), jax.vmap(jax.jit(Mapped.of))):
        assert mapped(x).tolist() == [-5, -50]
    assert jax.vmap(Mapped.of, 1)(x).tolist() == [-9, -17, -29]
    assert jax.vmap(Times.of)(x[0], x[1]).tolist() == [0, 4, 10]  # found without a rule


class Mixed(Own):
    """An object's first array twice and its second, and the object with both exchanged."""

    def result(self, pair):
        return pair.avals[0], PairType(*reversed(pair.avals))

    def expand(self, pair):
        return pair.a * 2 + pair.b, Pair(pair.b, pair.a)


def test_primitives_on_objects_without_tangents():
    """They get the object in every trace, whether it is an argument or closed over."""
    pair, ones = Pair(jnp.arange(3.0), jnp.ones(3)), jnp.ones(3)

    def plus(pair, x):
        value, back = Mixed.of(pair)
        assert isinstance(back, Pair)
        return value + x + 0 * back.a

    def loop(pair, x):
        return jax.lax.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, plus(pair, c[1])), (0, x))[1]

    def branch(pair, x):
        return jax.lax.cond(x[0] > 0, partial(plus, pair), lambda x: x, x)

    def scan(pair, x):
        return jax.lax.scan(lambda c, _: (plus(pair, c), None), x, None, length=2)[0]

    for f, expected in ((plus, [2, 4, 6]), (branch, [2, 4, 6]), (loop, [3, 7, 11]), (scan, [3, 7, 11])):
        for of in (f, jax.jit(f), lambda p, x, f=f: jax.jit(lambda x: f(p, x))(x)):
            assert of(pair, ones).tolist() == expected
        assert jax.vmap(lambda x, f=f: f(pair, x))(jnp.ones((2, 3))).tolist() == [expected] * 2
        if f is not loop:
            assert jax.grad(lambda x, f=f: f(pair, x).sum())(ones).tolist() == [1, 1, 1]


def test_objects_without_tangents_are_results_though_none_is_an_argument():
    pair = Pair(jnp.arange(3.0), jnp.ones(3))
    made = jax.jit(lambda x: {"pair": Pair(x, x + 1), "x": x})(1.0)
    assert isinstance(made["pair"], Pair) and float(made["pair"].b) == 2
    for same in (
        jax.jit(lambda: pair)(),
        jax.jit(lambda: jax.jit(lambda: pair)())(),
        jax.lax.scan(lambda c, _: (c, None), pair, None, length=3)[0],
        jax.jit(lambda p: jax.lax.scan(lambda c, _: (Mixed.of(c)[1], None), p, None, length=2)[0])(pair),
    ):
        assert isinstance(same, Pair) and same.a.tolist() == [0, 1, 2] and same.b.tolist() == [1, 1, 1]
    with jax.disable_jit():
        assert jax.lax.scan(lambda c, _: (c, None), pair, None, length=3)[0].a.tolist() == [0, 1, 2]

    def jvp(f):
        return lambda x: jax.jvp(f, (x,), (x,))

    for refused in (jax.vmap, jax.checkpoint, lambda f: lambda x: jax.vjp(f, x), jvp):
        with pytest.raises(TypeError, match="Pair"):
            refused(lambda x: Pair(x, x))(jnp.ones(3))
    with pytest.raises(NotImplementedError, match="leading_axis_spec"):
        jax.lax.scan(lambda c, _: (c, c), pair, None, length=2)


class Coded:
    """Numbers as integers and a scale."""

    def __init__(self, code, scale):
        self.code, self.scale = code, scale


class CodedType(hijax.HiType):
    def __init__(self, shape):
        self.shape = shape

    def __hash__(self):
        return hash(self.shape)

    def __eq__(self, other):
        return isinstance(other, CodedType) and self.shape == other.shape

    def lo_ty(self):
        return [
            hijax.ShapedArray(self.shape, np.dtype("int8")),
            hijax.ShapedArray(self.shape[:-1], np.dtype("float32")),
        ]

    def lower_val(self, x):
        return [x.code, x.scale]

    def raise_val(self, code, scale):
        return Coded(code, scale)

    def to_tangent_aval(self):
        return hijax.ShapedArray(self.shape, np.dtype("float32"))

    def dec_rank(self, size, spec):
        return CodedType(self.shape[1:])

    def inc_rank(self, size, spec):
        return CodedType((size, *self.shape))

    def leading_axis_spec(self):
        return 0

    def __repr__(self):
        return f"coded{list(self.shape)}"


hijax.register_hitype(Coded, lambda x: CodedType(x.code.shape))


class Encode(Own):
    def result(self, aval):
        return CodedType(aval.shape)

    def expand(self, x):
        scale = jnp.abs(x).max(-1) / 100
        return Coded(jnp.round(x / scale[..., None]).astype(jnp.int8), scale)

    def vjp_fwd(self, _moves, x):
        return self(x), None

    def vjp_bwd_retval(self, _kept, bar):
        return (bar,)


class Decode(Encode):
    def result(self, aval):
        return hijax.ShapedArray(aval.shape, np.dtype("float32"))

    def expand(self, x):
        return x.code.astype(jnp.float32) * x.scale[..., None]


def test_objects_whose_tangents_are_arrays():
    x = jnp.array([[1.0, 2.0, 4.0], [5.0, -10.0, 2.0]])
    coded = Encode.of(x)
    assert isinstance(coded, Coded) and coded.code.dtype == np.int8 and str(jax.typeof(coded)) == "coded[2, 3]"
    back = jax.jit(lambda x: Decode.of(Encode.of(x)))
    np.testing.assert_allclose(back(x), x, rtol=1e-6)
    inside = jax.jit(Encode.of)(x)
    assert isinstance(inside, Coded) and jax.jit(Decode.of)(inside).shape == (2, 3)
    assert str(jax.eval_shape(Encode.of, x)) == "coded[2, 3]"
    with pytest.raises(AttributeError):
        jax.jit(lambda c: c.code)(coded)

    def loss(c):
        return (Decode.of(c) ** 2).sum()

    for grad in (
        jax.grad(loss),
        jax.jit(jax.grad(loss)),
        jax.grad(jax.jit(loss)),
        lambda c: jax.vjp(loss, c)[1](1.0)[0],
    ):
        np.testing.assert_allclose(grad(coded), 2 * x, rtol=1e-6)
    np.testing.assert_allclose(jax.grad(lambda x: loss(Encode.of(x)))(x), 2 * x, rtol=1e-6)
    np.testing.assert_allclose(jax.vmap(jax.grad(lambda x: loss(Encode.of(x))))(x), 2 * x, rtol=1e-6)
    total, rows = jax.lax.scan(lambda c, row: (c + Decode.of(row).sum(), Encode.of(Decode.of(row))), 0.0, coded)
    assert float(total) == pytest.approx(4.0, rel=1e-5) and rows.code.shape == (2, 3) and rows.scale.shape == (2,)
    assert jax.lax.scan(lambda c, r: (Encode.of(Decode.of(c) + r), None), Encode.of(x[0]), x)[0].code.shape == (3,)
    summed = jax.grad(lambda c: jax.lax.scan(lambda s, row: (s + Decode.of(row).sum(), None), 0.0, c)[0])(coded)
    assert summed.tolist() == [[1, 1, 1]] * 2
    assert jax.tree.leaves({"a": coded}) == [coded]


def test_bodies_that_change_nothing_are_traced_once():
    """Though there are such types, which classes are registered for when modules are imported."""
    traced = []

    def body(c, x):
        traced.append(1)
        return c + x, c

    for _ in range(3):
        carry, _ = jax.lax.scan(body, 0.0, jnp.arange(4.0))
        assert carry == 6
    assert len(traced) == 1

    box = Box(x=jnp.float32(0))

    def change(c, x):
        return c, add_p.bind(box, x)

    for total in (6, 12):  # what is changed is seen to be so each time
        jax.lax.scan(change, jnp.float32(0), jnp.arange(4.0))
        assert box.held["x"] == total
