"""Symbols of the kernels of products, and the functions that they stand for."""

from __future__ import annotations

from pullback.compiler.products.kernels import gram_kernel, panel_kernel
from pullback.compiler.products.tile_kernels import tile_kernel
from pullback.loops.emit.symbols import KERNEL
from pullback.loops.ir import Function


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


__all__ = ["kernel_of"]
