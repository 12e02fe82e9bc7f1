"""Symbols of the kernels of products, and the functions that they stand for."""

from __future__ import annotations

from pullback.compiler.products.kernels import (
    CHAIN,
    block_sizes,
    gram_kernel,
    gram_kernel_name,
    kernel_name,
    panel_kernel,
)
from pullback.compiler.products.tile_kernels import tile_kernel
from pullback.loops.emit.symbols import KERNEL
from pullback.loops.ir import ITEMSIZE, Function


def kernel_of(name: str) -> Function:
    """The kernel that a symbol stands for."""
    dtype, shape, *kind = name.removeprefix(KERNEL).split("_")
    rows, columns = map(int, shape.split("x"))
    if "tiles" in kind:
        return tile_kernel(dtype, rows, columns, "added" in kind, indexed="indexed" in kind)
    if "gram" in kind:
        return gram_kernel(dtype, rows, columns)
    return panel_kernel(
        dtype,
        rows,
        columns,
        "long" in kind,
        "indexed" in kind,
        added="added" in kind,
        near="near" in kind,
        words="words" in kind,
    )


def usual_kernels(vector_bytes: int) -> list[str]:
    """Symbols of the kernels of products of floats and of integers of up to 32 bits, and of convolutions of floats and
    of integers of up to 16 bits, for CPUs with vectors of so many bytes."""
    found = [
        kernel_name("i32", rows, columns, 1, near=near, words=words)
        for rows, columns in block_sizes("i32", vector_bytes)
        for near in (False, True)
        for words in (False, True)
    ]
    found += [
        kernel_name("i32", rows, columns, 1, indexed=True, words=True)
        for rows, columns in block_sizes("i32", vector_bytes)
    ]
    for dtype in ("f32", "f64"):
        for rows, columns in block_sizes(dtype, vector_bytes):
            for kind in ({}, {"near": True}, {"indexed": True}):
                found += [kernel_name(dtype, rows, columns, inner, **kind) for inner in (CHAIN, CHAIN + 1)]
            found += [kernel_name(dtype, rows, columns, CHAIN, added=True, near=near) for near in (False, True)]
            if columns * ITEMSIZE[dtype] == 2 * vector_bytes:
                found.append(gram_kernel_name(dtype, rows, columns))
    return found


__all__ = ["kernel_of", "usual_kernels"]
