"""Composed programs (program.py) as calls: several operations, loops and branches, under jit and transformations."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from fuzz.calls import Call
from fuzz.program import INEXACT, FuzzProgram, is_large
from fuzz.worker import Argument

TOTAL = "sum(jnp.sum(r) for r in f(a, b, *x[2:]) if jnp.issubdtype(r.dtype, jnp.floating))"
FORMS = (
    "jax.jit(f)(*x)",
    "jax.jit(f)(*x)",
    "f(*x)",
    "jax.jit(jax.vmap(f))(*(jnp.stack([a, jnp.flip(a)]) for a in x))",
    "jax.jit(jax.vmap(f, in_axes=-1, out_axes=-1))(*(jnp.stack([a, jnp.flip(a), a], -1) for a in x))",
    f"jax.jit(jax.grad(lambda a, b: {TOTAL}, argnums=(0, 1)))(*x[:2])",
    f"jax.jit(jax.value_and_grad(jax.checkpoint(lambda a, b: {TOTAL})))(*x[:2])",
    "jax.jit(lambda *x: jax.jvp(lambda a, b: f(a, b, *x[2:]), x[:2], (jnp.cos(x[0]), jnp.sin(x[1]))))(*x)",
    "jax.linearize(jax.jit(lambda a, b: f(a, b, *x[2:])), *x[:2])[1](*x[:2])",
    f"jax.jit(jax.vmap(jax.grad(lambda a, b: {TOTAL})))(*(jnp.stack([a, jnp.flip(a)]) for a in x[:2]))",
    f"jax.jit(lambda a, b: jax.jvp(jax.grad(lambda a: {TOTAL}), (a,), (jnp.ones_like(a),)))(*x[:2])",
)


def make_composed(rng: np.random.Generator) -> Call:
    """A random composed program, most often under jit."""
    seed, moves = int(rng.integers(1 << 24)), int(rng.integers(1, 10))
    if is_large(seed):
        seed += 1
    form = FORMS[int(rng.integers(len(FORMS)))]
    text = f"def program(*x):\n    f = composed({seed}, {moves})\n    return {form}\n"
    inputs = FuzzProgram(seed, moves).inputs()
    arguments = tuple(Argument("array", a.dtype.name, a.shape, np.ascontiguousarray(a).tobytes()) for a in inputs)
    return Call("composed", text, arguments, tuple("" if k in INEXACT else "exact" for k in range(len(inputs))))


def with_fewer_moves(call: Call) -> list[Call]:
    """The same program with fewer moves, the fewest first."""
    found = re.search(r"composed\((\d+), (\d+)\)", call.text)
    if not found:
        return []
    seed, moves = map(int, found.groups())
    return [replace(call, text=call.text.replace(found[0], f"composed({seed}, {n})")) for n in range(1, moves)]
