"""Sums are as accurate as pairwise ones, however many lanes a register has."""

import dataclasses

import numpy as np
import pytest

from pullback.compiler.lower.arena import plan_arena
from pullback.loops.emit.cpu.target import host_target
from pullback.loops.emit.jit import compile_function
from pullback.loops.ir import NP_DTYPE, Builder

SAMPLES = 96
SIZES = (15, 31, 127, 255, 1000, 1023, 2047, 5000)


def pairwise(x):
    """The sum of each row by a binary tree."""
    while x.shape[1] > 1:
        left = x[:, x.shape[1] & ~1 :]
        x = np.concatenate([x[:, : x.shape[1] & ~1 : 2] + x[:, 1::2], left], 1)
    return x[:, 0]


def along(dtype, n, role):
    b = Builder()
    x, y = b.input("x", dtype, n), b.output("y", dtype, 1)
    with b.carried_loop(n, [((b.const(dtype, 0),), "add")], role) as r:
        r.update(r.var + b.load(x, r.i))
    b.store(y, 0, r.result)
    return b.function("f")


def with_maximum(dtype, n, role):
    b = Builder()
    x, y, z = b.input("x", dtype, n), b.output("y", dtype, 1), b.output("z", dtype, 1)
    start = ((b.const(dtype, 0),), "add"), ((b.const(dtype, -np.inf),), "max")
    with b.carried_loop(n, list(start), role) as r:
        value = b.load(x, r.i)
        r.update(r.vars[0] + value, b.max(r.vars[1], value))
    b.store(y, 0, r.results[0])
    b.store(z, 0, r.results[1])
    return b.function("f")


def columns(dtype, n, role):
    b = Builder()
    x, y = b.input("x", dtype, n * SAMPLES), b.output("y", dtype, SAMPLES)
    with b.loop(SAMPLES, role) as i:
        with b.carried_loop(n, [((b.const(dtype, 0),), "add")], "reduce") as r:
            r.update(r.var + b.load(x, r.i * SAMPLES + i))
        b.store(y, i, r.result)
    return b.function("f")


@pytest.mark.parametrize("width", [16, 32, 64])
@pytest.mark.parametrize(
    "make, dtype, role",
    [
        (along, "f32", "vector"),
        (along, "f64", "vector"),
        (along, "c64", "vector"),
        (along, "f32", "reduce"),
        (with_maximum, "f32", "vector"),
        (columns, "f32", "vector"),
        (columns, "c64", "parallel"),
    ],
)
def test_every_width_is_as_accurate_as_pairwise(make, dtype, role, width):
    kind = NP_DTYPE[dtype]
    for n in SIZES:
        function = make(dtype, n, role)
        code = compile_function(
            function, plan_arena(function)[0], target=dataclasses.replace(host_target(), vector_bytes=width)
        )
        rng = np.random.default_rng(n)
        data = rng.random((SAMPLES, n)).astype(kind)
        if kind.kind == "c":
            data += (1j * rng.random((SAMPLES, n))).astype(kind)
        got, spare = np.zeros(SAMPLES, kind), [np.zeros(1, kind)] * (make is with_maximum)
        if make is columns:
            code([np.ascontiguousarray(data.T).reshape(-1)], [got])
        else:
            for k in range(SAMPLES):
                code([data[k]], [got[k : k + 1], *spare])
        exact = data.astype(np.clongdouble).sum(1)
        ours, theirs = (np.sqrt(np.mean(np.abs(x - exact) ** 2)) for x in (got, pairwise(data)))
        assert ours <= 1.5 * theirs, f"{n}: {float(ours / theirs):.2f} times the error of a pairwise sum"
