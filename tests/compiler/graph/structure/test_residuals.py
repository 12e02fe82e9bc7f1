"""What a loop leaves for its backward pass: less, and the same bits."""

import numpy as np
import pytest
from lowering_checks import normal

import pullback as pb
import pullback.numpy as jnp
from pullback import lax
from pullback.compiler.pipelines import optimize_jaxpr
from pullback.util.switches import switches

N, STEPS = 4096, 12
X, W, ROWS = normal(N, 4), normal(4, 4, seed=1), normal(STEPS, N, 4, seed=2)


def rows_by_norm(c, _, w):
    s = jnp.sqrt((c * c).sum(-1, keepdims=True) + 1)
    return c / s + jnp.sin(c), None


def chain(c, x, w):
    y = (c * c + x) / (1 + abs(c))
    return y * (1 + y * y) - c, None


def gated(c, x, w):
    z = pb.nn.sigmoid(c @ w + x)
    return jnp.where(z > 0.5, (1 - z) * c, z * x), z


def known(c, _, w):
    return c * jnp.exp(w[0]) * jnp.arange(4.0) + c, None


def transposed(c, x, w):
    return jnp.tanh((2 * c + 1).T.reshape(c.shape) * x), None


def halves(c, x, w):
    h = (c.astype("bfloat16") * 3 + 1) * x.astype("bfloat16")
    return (h * h).astype(c.dtype) * 0.01, h


def nested(c, x, w):
    return lax.scan(lambda c, r: (jnp.sin(c) * r + c / (2 + c * c), None), c, jnp.stack([x, 2 * x]))[0], None


BODIES = {f.__name__: f for f in (rows_by_norm, chain, gated, known, transposed, halves, nested)}
STAY = "known", "transposed", "nested"  # the carry alone; tanh is dearer than to read it; loops are not repeated


def loss(body, x, rows, w):
    c, ys = lax.scan(lambda c, r: body(c, r, w), x, rows)
    return jnp.sum(c) + sum(jnp.sum(jnp.float32(y)) for y in (ys,) if y is not None)


def bits(f, *args):
    return [np.asarray(x).tobytes() for x in pb.tree.leaves(pb.jit(f)(*args))]


def left(f, *args):
    """Bytes that the first loop of a program leaves, of all steps."""
    loops = [e for e in optimize_jaxpr(pb.make_jaxpr(f)(*args)).eqns if e.primitive.name == "scan"]
    return sum(v.aval.size * v.aval.dtype.itemsize for v in loops[0].outvars[loops[0].params["num_carry"] :])


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", BODIES)
def test_less_is_left(name, reverse, monkeypatch):
    def f(x, rows, w):
        rows = rows[::-1] if reverse else rows
        return pb.value_and_grad(lambda *args: loss(BODIES[name], *args), (0, 1, 2))(x, rows, w)

    (value, *got), written = bits(f, X, ROWS, W), left(f, X, ROWS, W)
    monkeypatch.setattr(switches, "skip", frozenset({"residuals"}))
    before = left(lambda *args: f(*args), X, ROWS, W)
    assert written < before or (written == before and name in STAY), (written, before)
    expected, *want = bits(lambda *args: f(*args), X, ROWS, W)
    assert got == want
    np.testing.assert_allclose(np.frombuffer(value, "f4"), np.frombuffer(expected, "f4"), rtol=1e-6)


@pytest.mark.parametrize("transform", ["second", "mapped", "forward over reverse"])
def test_loops_of_derivatives(transform, monkeypatch):
    f = pb.grad(lambda x, rows: loss(chain, x, rows, W))
    g = {
        "second": lambda x, rows: pb.grad(lambda x: jnp.sum(f(x, rows) ** 2))(x),
        "mapped": lambda x, rows: pb.vmap(f)(jnp.stack([x, -x]), jnp.stack([rows, rows + 1])),
        "forward over reverse": lambda x, rows: pb.jvp(lambda x: f(x, rows), (x,), (jnp.ones_like(x),)),
    }[transform]
    got = bits(g, X, ROWS)
    monkeypatch.setattr(switches, "skip", frozenset({"residuals"}))
    for a, b in zip(got, bits(lambda *args: g(*args), X, ROWS)):
        np.testing.assert_allclose(np.frombuffer(a, "f4"), np.frombuffer(b, "f4"), rtol=1e-5, atol=1e-5)


def test_what_others_read_is_left():
    def f(x, rows):
        ys, pull = pb.vjp(lambda x: lax.scan(lambda c, r: (jnp.sin(c) * r, -jnp.cos(c)), x, rows)[1], x)
        return ys, pull(ys)

    (got, (cot,)) = pb.jit(f)(X, ROWS)
    want, (expected,) = f(X, ROWS)
    np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(cot, expected, rtol=1e-5, atol=1e-5)


def test_small_loops_stay(monkeypatch):
    """What the first cache holds is there at once."""

    def f(x):
        return pb.grad(lambda x: loss(chain, x, ROWS[:, :5], W))(x)

    written = left(f, X[:5])
    monkeypatch.setattr(switches, "skip", frozenset({"residuals"}))
    assert left(lambda x: f(x), X[:5]) == written > 0
