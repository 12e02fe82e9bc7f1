"""Lowering a function for tests: the loop nests, run by the interpreter and as machine code, against NumPy
references.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import pullback
from pullback import lax
from pullback._ext import _core
from pullback.compiler.lower.program import Lowered
from pullback.core import trace, typeof
from pullback.loops.ir import Loop, Store
from pullback.loops.ir.visit import statements
from pullback.runtime import asarray, compile_jaxpr, reference_eval
from pullback.runtime.programs.program import Program
from pullback.util.switches import switches


@dataclass
class Result:
    """A function lowered for its arguments."""

    program: Program
    lowered: Lowered
    outputs: list[np.ndarray]

    @property
    def nests(self) -> int:
        """Loop nests and calls at the top of the program."""
        return len(self.lowered.report)

    @property
    def loops(self) -> int:
        return sum(isinstance(s, Loop) for s in statements(self.lowered.function.body))

    @property
    def stores(self) -> int:
        return sum(isinstance(s, Store) for s in statements(self.lowered.function.body))

    def buffers(self, space: str) -> int:
        """How many buffers of a kind the program has."""
        return sum(b.space == space for b in self.lowered.function.buffers)


def check(fun, *args, rtol=1e-5, atol=1e-6) -> Result:
    """Compile fun(*args) -> list, run it three ways, and compare with the references of its primitives."""
    closed = trace(lambda *xs: _as_list(fun(*xs)), [typeof(a) for a in args])
    want = reference_eval(closed, args)
    arrays = [asarray(a) for a in args]
    program = compile_jaxpr(closed)
    native = program.call(arrays)
    with switches.set(interpret=True, check=2):
        interpreted = compile_jaxpr(closed).call(arrays)
    for got in (native, interpreted):
        assert len(got) == len(want)
        for x, w in zip(got, want):
            assert x.dtype == w.dtype
            np.testing.assert_allclose(np.asarray(x), w, rtol=rtol, atol=atol)
    return Result(program, program.lowered, [np.asarray(x) for x in native])


def _as_list(x):
    return list(x) if isinstance(x, (list, tuple)) else [x]


def normal(*shape, seed=0, dtype=np.float32):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def total(x):
    return lax.reduce_sum_p.bind(x, axes=tuple(range(len(x.shape))))


def spread(x, shape, dims):
    return lax.broadcast_in_dim(x, shape, dims)


__all__ = ["Result", "check", "lax", "normal", "pullback", "spread", "total"]


def for_thread_counts(function, *args, counts=(1, 3)):
    """The function's result for each number of threads."""
    before, results = _core.num_threads(), []
    try:
        for threads in counts:
            _core.set_num_threads(threads)
            results.append(np.asarray(function(*args)))
    finally:
        _core.set_num_threads(before)
    return results
