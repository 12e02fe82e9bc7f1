"""Calls of a primitive for the tests, made from its record: every dtype it accepts, edge values, sizes 0, 1, ragged."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from pullback.core import Primitive
from pullback.lax.records.operands import KEYS

DTYPES = {
    "b": ("bool",),
    "i": ("int8", "int16", "int32", "int64"),
    "u": ("uint8", "uint16", "uint32", "uint64"),
    "f": ("bfloat16", "float16", "float32", "float64"),
    "c": ("complex64", "complex128"),
}


class Call(NamedTuple):
    """Operands, parameters, and how closely results must agree: `ulp` units in the last place of each element, or
    `tolerance` of the largest one (0 for elementwise primitives)."""

    operands: tuple[np.ndarray, ...]
    params: dict[str, Any]
    ulp: float
    tolerance: float
    derivatives: bool

    def __repr__(self):
        kinds = ", ".join(f"{x.dtype}{list(x.shape)}" for x in self.operands)
        return f"({kinds}; {self.params})"


def numpy_dtype(name: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, name)) if name == "bfloat16" else np.dtype(name)


def random_values(
    rng: np.random.Generator, dtype: np.dtype, shape: tuple[int, ...], low: float, high: float
) -> np.ndarray:
    """Uniform values of the dtype, within its range."""
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        first, last = max(info.min, int(np.ceil(low))), min(info.max, int(np.floor(high)))
        return rng.integers(first, max(first, last), shape, endpoint=True).astype(dtype)
    if dtype.kind == "c":
        return (rng.uniform(low, high, shape) + 1j * rng.uniform(low, high, shape)).astype(dtype)
    return np.asarray(rng.uniform(low, high, shape)).astype(dtype)


def edge_values(edges: tuple, dtype: np.dtype, arity: int) -> list[np.ndarray]:
    """All combinations of the edge values that the dtype can hold, one array an operand."""
    with np.errstate(all="ignore"):
        if dtype.kind == "b":
            values = np.array([False, True])
        elif dtype.kind in "iu":
            info = np.iinfo(dtype)
            held = {
                int(e) for e in edges if np.isreal(e) and np.isfinite(e) and e == int(e) and info.min <= e <= info.max
            }
            values = np.array(sorted(held | {0, 1, info.min, info.max}), dtype)
        else:
            values = np.array(list(edges) or [0.0, 1.0], dtype)
    combinations = list(itertools.product(values, repeat=arity))
    return [np.array([c[k] for c in combinations], dtype) for k in range(arity)]


def elementwise_calls(primitive: Primitive, rng: np.random.Generator) -> Iterator[Call]:
    """Calls of a primitive with `accepts`: one dtype for all operands if all accept the same kinds, else one each."""
    samples, accepts = primitive.samples, primitive.accepts
    arity = len(accepts)

    def bound(value, k):
        return value[k] if isinstance(value, tuple) else value

    allowed = [
        [n for kind in kinds if kind != KEYS for n in DTYPES[kind] if samples.dtypes is None or n in samples.dtypes]
        for kinds in accepts
    ]
    together = len(set(accepts)) == 1
    choices = (
        [(n,) * arity for n in allowed[0]] if together else list(itertools.islice(itertools.product(*allowed), 12))
    )
    for names in choices:
        types = [numpy_dtype(n) for n in names]
        shapes = (
            [(37,)]
            if names[0] not in ("float32", "float64")
            else [(37,), (), (0,), (1,), (3, 5), (2, 0, 3), (2, 3, 17)]
        )
        for shape in shapes:
            operands = tuple(
                random_values(rng, t, shape, bound(samples.low, k), bound(samples.high, k)) for k, t in enumerate(types)
            )
            yield Call(operands, {}, samples.ulp, 1e-5, samples.derivatives and len(shape) == 1 and shape[0] > 1)
        if together:
            yield Call(tuple(edge_values(samples.edges, types[0], arity)), {}, samples.ulp, 0.0, False)
            if arity > 1 and names[0] == "float32":
                operands = [
                    random_values(rng, t, (4, 9), bound(samples.low, k), bound(samples.high, k))
                    for k, t in enumerate(types)
                ]
                for k in range(arity):
                    mixed = tuple(x[0, 0] if i == k else x for i, x in enumerate(operands))
                    yield Call(mixed, {}, samples.ulp, 1e-5, samples.derivatives)


def calls(primitive: Primitive, seed: int = 0) -> list[Call]:
    """All calls that the tests make of a primitive."""
    rng = np.random.default_rng(seed)
    samples = primitive.samples
    if samples is None:
        return []
    if samples.cases is not None:
        return [
            Call(tuple(map(np.asarray, c.operands)), c.params, samples.ulp, c.tolerance, c.derivatives)
            for c in samples.cases(rng)
        ]
    return list(elementwise_calls(primitive, rng))


def as_list(x: Any) -> list[Any]:
    return list(x) if isinstance(x, (list, tuple)) else [x]


def assert_close(got: np.ndarray, want: np.ndarray, ulp: float, tolerance: float, what: str) -> None:
    """Equal shapes and dtypes; integers equal, floats within `ulp` units in the last place or `tolerance` of the
    largest value."""
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape, f"{what}: shape {got.shape}, expected {want.shape}"
    assert got.dtype == want.dtype, f"{what}: dtype {got.dtype}, expected {want.dtype}"
    if got.size == 0:
        return
    if got.dtype.kind == "c":
        # Relative to the modulus: a part may be small by cancellation. Infinities and NaN must only be such. At least
        # one unit, as NumPy fuses one of the two products of a part on some machines.
        g, w = got.astype(np.complex128), want.astype(np.complex128)
        finite = np.isfinite(w)
        scale = np.max(np.abs(w[finite])) if np.any(finite) and tolerance > 1e-5 else 0.0
        with np.errstate(all="ignore"):
            allowed = np.maximum(
                2
                * max(ulp, 0.5)
                * float(np.finfo(got.dtype).eps)
                * np.maximum(np.abs(w), float(np.finfo(got.dtype).tiny)),
                tolerance * scale,
            )
            bad = np.where(finite, ~(np.abs(g - w) <= allowed), np.isfinite(g))
        assert not np.any(bad), (
            f"{what}: {int(bad.sum())} of {bad.size} differ; first: got {got[bad][0]!r}, expected {want[bad][0]!r}"
        )
        return
    if got.dtype.kind in "biu":
        bad = got != want
    else:
        epsilon = float(ml_dtypes.finfo(got.dtype).eps)
        tiny = float(ml_dtypes.finfo(got.dtype).smallest_normal)
        g, w = got.astype(np.float64), want.astype(np.float64)
        with np.errstate(all="ignore"):
            finite = np.isfinite(w)
            # A tolerance is meant for float32; sums and factorizations in other types err by as many own units.
            scale = np.max(np.abs(w[finite]), initial=0.0) * tolerance * epsilon / float(np.finfo(np.float32).eps)
            allowed = np.maximum(ulp * epsilon * np.maximum(np.abs(w), tiny), scale)
            bad = np.where(np.isnan(w), ~np.isnan(g), np.where(finite, ~(np.abs(g - w) <= allowed), g != w))
    if np.any(bad):
        where = np.argwhere(bad)[0]
        raise AssertionError(
            f"{what}: {int(bad.sum())} of {bad.size} differ; first at {where.tolist()}: got {got[tuple(where)]!r}, "
            f"expected {want[tuple(where)]!r}"
        )
