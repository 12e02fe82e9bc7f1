"""Shared by the tests of emission: run a function compiled and interpreted, on arrays with awkward values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pullback.compiler.lower.arena import plan_arena
from pullback.loops.emit.jit import compile_function
from pullback.loops.ir import NP_DTYPE, Function
from pullback.loops.ir.check import check
from pullback.loops.ir.interpret import interpret

SIZES = (0, 1, 7, 8, 9, 15, 16, 17, 31, 33, 1000)


def compiled(function: Function, inputs: Sequence[np.ndarray], **options) -> list[np.ndarray]:
    """The outputs of the machine code of `function`, surrounded by bytes that it must not touch."""
    check(function)
    plan, _ = plan_arena(function)
    code = compile_function(function, plan, verify=True, **options)
    outputs = []
    for buffer in function.buffers:
        if buffer.space == "output":
            raw = np.full(buffer.size * NP_DTYPE[buffer.dtype].itemsize + 128, 0xA5, np.uint8)
            outputs.append(raw[64:-64].view(NP_DTYPE[buffer.dtype]))
            outputs[-1].view(np.uint8)[...] = 0
    status = code([np.ascontiguousarray(x).reshape(-1) for x in inputs], outputs)
    assert status == 0
    for output in outputs:
        assert output.base is not None
        whole = output.base if output.base.dtype == np.uint8 else output.base.base
        assert (whole[:64] == 0xA5).all() and (whole[-64:] == 0xA5).all(), "wrote outside an output"
    return [output.copy() for output in outputs]


def both(function: Function, inputs: Sequence[np.ndarray], **options) -> list[tuple[np.ndarray, np.ndarray]]:
    """(compiled, interpreted) for each output."""
    return list(zip(compiled(function, inputs, **options), interpret(function, inputs)))


def sample(dtype: str, size: int, seed: int = 0, edges: bool = True) -> np.ndarray:
    """Random values of `dtype`, with zeros, extremes, infinities and NaN among them if `edges`."""
    rng = np.random.default_rng(seed)
    np_dtype = NP_DTYPE[dtype]
    if dtype == "bool":
        return rng.integers(0, 2, size).astype(bool)
    if dtype[0] in "iu":
        info = np.iinfo(np_dtype)
        x = rng.integers(info.min, info.max, size, dtype=np_dtype, endpoint=True)
        small = rng.integers(-5 if dtype[0] == "i" else 0, 6, size).astype(np_dtype)
        x = np.where(rng.random(size) < 0.5, x, small)
        special = np.array([0, 1, info.max, info.min, -1 if dtype[0] == "i" else 2], np_dtype)
    elif dtype[0] == "c":
        part = "f32" if dtype == "c64" else "f64"
        x = np.empty(size, np_dtype)
        x.real, x.imag = sample(part, size, seed + 1, False), sample(part, size, seed + 2, False)
        special = np.array([0, 1, 1j, -2.5 + 1j], np_dtype)
    else:
        x = (rng.standard_normal(size) * np.exp(rng.uniform(-3, 3, size))).astype(np_dtype)
        special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.5, 2.5, 1e-7], np_dtype)
    if edges and size:
        where = rng.random(size) < 0.3
        x = np.where(where, special[rng.integers(0, len(special), size)], x).astype(np_dtype)
    return x


@np.errstate(invalid="ignore", over="ignore")
def same(got: np.ndarray, want: np.ndarray, ulp: float = 0) -> None:
    """Equal bit for bit but for NaN payloads and, with `ulp`, that much rounding (relative to the value)."""
    assert got.dtype == want.dtype and got.shape == want.shape
    if got.dtype.kind in "biu" or ulp == 0:
        equal = (got == want) | ((got != got) & (want != want))
        if got.dtype.kind == "f":
            equal &= (np.signbit(got) == np.signbit(want)) | (got != got)
    else:
        g, w = (x.astype(np.complex128 if got.dtype.kind == "c" else np.float64) for x in (got, want))
        eps = np.finfo(np.float32 if got.dtype == np.complex64 else got.dtype).eps if got.dtype.kind in "fc" else 2**-8
        equal = (np.abs(g - w) <= ulp * eps * np.maximum(np.abs(w), 1e-30)) | (g == w) | ((g != g) & (w != w))
    bad = np.flatnonzero(~np.asarray(equal, bool))
    assert not bad.size, f"{bad.size} of {got.size} differ, first at {bad[0]}: got {got[bad[0]]}, want {want[bad[0]]}"
