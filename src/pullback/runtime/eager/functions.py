"""Functions of numbers without a library's implementation, on NumPy arrays of any size: what references run.

The primitive is compiled once, for a few elements of float64, and that kernel goes over the array (blocks.py). So eager
work, constants and callbacks have the compiled function's values, and nothing is compiled for each new size.
"""

from __future__ import annotations

import contextvars
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback._ext import _core
from pullback.core.avals import ShapedArray
from pullback.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Var
from pullback.core.primitive import registry
from pullback.runtime.eager import blocks
from pullback.runtime.programs.compiler import compile_jaxpr

FEW = 32  # elements of a kernel: several vectors; a number by itself is computed with 31 others
MAX_SIZES = 1024  # for which executables are kept

FLOAT64 = np.dtype(np.float64)


def elementwise(name: str, operands: Sequence[np.ndarray]) -> np.ndarray:
    """The primitive of a name on float64 arrays, which are broadcast to each other."""
    shape = operands[0].shape
    if any([x.shape != shape for x in operands]):
        operands = np.broadcast_arrays(*operands)
        shape = operands[0].shape
    size = operands[0].size
    if size == 0:
        return np.empty(shape)
    flat = [x.reshape(size) for x in operands]
    executable = _executable(name, len(flat), size)
    if executable is not None:
        (out,) = executable([_array(x) for x in flat])
        return np.asarray(out).reshape(shape)
    program = _kernel(name, len(flat))  # interpreted
    parts = [
        program.call([_array(np.resize(x[k : k + FEW], FEW)) for x in flat])[0] for k in range(0, size, FEW)
    ]  # fmt: skip
    return np.concatenate([np.asarray(part) for part in parts])[:size].reshape(shape)


def _array(x: np.ndarray) -> Any:
    return _core.from_numpy(x, _aval(x.size), None, True)


@functools.lru_cache(maxsize=MAX_SIZES)
def _aval(size: int) -> ShapedArray:
    return ShapedArray((size,), FLOAT64)


@functools.lru_cache(maxsize=MAX_SIZES)
def _executable(name: str, count: int, size: int) -> Any:
    return blocks.over_blocks(_closed(name, count, size), _kernel(name, count), size, name, FEW)


@functools.cache
def _kernel(name: str, count: int) -> Any:
    # In a context of its own: it may be wanted while another program is compiled, for another CPU.
    return contextvars.Context().run(compile_jaxpr, _closed(name, count, FEW), name=name)


def _closed(name: str, count: int, size: int) -> ClosedJaxpr:
    aval = _aval(size)
    operands, result = [Var(aval) for _ in range(count)], Var(aval)
    return ClosedJaxpr(Jaxpr([], operands, [result], [JaxprEqn(operands, [result], registry[name], {})]), [])


__all__ = ["elementwise"]
