"""Moves that hold programs of their own: loops, branches, nested jit, and transformations of a random function."""

from __future__ import annotations

import math

import numpy as np

from fuzz.library import jax, jnp, lax
from fuzz.moves import Generator, Value, need, tame


def inner(g: Generator, most_moves: int = 5):
    """A random function of arrays of any shapes, which gives a float array of the shape of its first argument."""
    from fuzz.program import grow  # the two are one recursion: a program has moves, and these have programs

    seed, count = int(g.rng.integers(1 << 30)), int(g.rng.integers(1, most_moves))
    need(g.depth < 2)

    def function(first, *rest):
        pool = [Value(first, False, 4.0)] + [Value(x, False, 4.0) for x in rest]
        own = Generator(np.random.default_rng(seed), pool, g.depth + 1)
        grow(own, count)
        return like(first, [v for v in own.pool if v.kind == "f"][-2:])

    return function


def like(first, values: list[Value]):
    """A tame array of the shape of `first` into which all values went."""
    out = jnp.tanh(first)
    for v in values:
        x = tame(v)
        if x.shape == first.shape:
            out = out * 0.5 + x * 0.25
        elif x.size:
            out = out + 0.1 * jnp.mean(x)
    return out


def scan(g: Generator) -> Value:
    xs = g.value("f", least_rank=1, most=4000)
    need(xs.shape[0] <= 33)
    carry = g.value("f", most=600)
    constant = g.value("f", most=600)
    body = inner(g)
    reverse = bool(g.rng.random() < 0.3)

    def step(c, x):
        new = body(c, x, tame(constant))
        return new, (jnp.sum(new), x * 2) if x.size < 100 else (jnp.sum(new), x[..., :1] if x.ndim else x)

    last, (sums, rows) = lax.scan(step, tame(carry), tame(xs), reverse=reverse)
    return Value(g.choose([last, sums, rows]), False, 4.0 * max(carry.size, 1))


def fori(g: Generator) -> Value:
    v = g.value("f", most=600)
    body = inner(g, 3)
    out = lax.fori_loop(0, int(g.rng.integers(0, 5)), lambda i, x: body(x, x * (i + 1)), tame(v))
    return Value(out, False, 4.0)


def until(g: Generator) -> Value:
    v = g.value("f", most=600)
    n = g.value("i", exact=True, most=60)
    need(n.size > 0)
    body = inner(g, 3)
    stop = jnp.abs(n.array.reshape(-1)[0]) % 5
    _, out = lax.while_loop(lambda s: s[0] < stop, lambda s: (s[0] + 1, body(s[1])), (jnp.int32(0), tame(v)))
    return Value(out, False, 4.0)


def branch(g: Generator) -> Value:
    v = g.value("f", most=2000)
    mask = g.value("bi", exact=True)
    need(mask.size > 0)
    first, second = inner(g, 3), inner(g, 3)
    if mask.kind == "b":
        out = lax.cond(mask.array.reshape(-1)[0], first, second, tame(v))
    else:
        out = lax.switch(mask.array.reshape(-1)[0], [first, lambda x: x, second], tame(v))
    return Value(out, False, 4.0)


def nested(g: Generator) -> Value:
    v, w = g.value("f", most=3000), g.value("f", most=3000)
    return Value(jax.jit(inner(g))(tame(v), tame(w)), False, 4.0)


def mapped(g: Generator) -> Value:
    v, w = g.value("f", least_rank=1, most=3000), g.value("f", most=600)
    need(0 < v.shape[0] <= 64)
    function = inner(g)
    if w.ndim and w.shape[0] == v.shape[0]:
        return Value(jax.vmap(function)(tame(v), tame(w)), False, 4.0)
    return Value(jax.vmap(function, in_axes=(0, None))(tame(v), tame(w)), False, 4.0)


def derivative(g: Generator) -> Value:
    along = g.rng.random() < 0.5  # one direction; else all of them, of which the oracle takes each
    v, w = g.value("f", exact=False, most=2000 if along else 40), g.value("f", most=600)
    function = inner(g)
    x, y = tame(v), tame(w)
    wrap = g.choose([lambda f: f, jax.checkpoint])

    def total(a):
        return jnp.mean(wrap(function)(a, y)) if math.prod(a.shape) else jnp.zeros((), a.dtype)

    if along:
        return Value(jax.jvp(lambda a: function(a, y), (x,), (x * 0.5,))[1], False, 16.0)
    op = g.choose([
        lambda: jax.grad(total)(x), lambda: jax.vjp(lambda a: function(a, y), x)[1](jnp.cos(x))[0],
        lambda: jax.jvp(jax.grad(total), (x,), (jnp.ones_like(x),))[1] if v.size <= 12 else jax.grad(total)(x),
    ])  # fmt: skip
    return Value(op(), False, 16.0)


def jacobian(g: Generator) -> Value:
    v = g.value("f", exact=False, most=20)
    need(v.size**2 <= g.most)
    return Value(g.choose([jax.jacfwd, jax.jacrev])(inner(g, 3))(tame(v)), False, 16.0)
