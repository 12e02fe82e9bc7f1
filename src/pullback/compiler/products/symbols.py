"""Symbols of the kernels of products, and the functions that they stand for."""

from __future__ import annotations

from pullback.loops.ir import Function

NAME = "pb_panels_"


def kernel_of(name: str) -> Function:
    """The kernel that a symbol stands for."""
    # Programs that find their kernels on disk know them by name alone.
    from pullback.compiler.products.kernels import gram_kernel, panel_kernel
    from pullback.compiler.products.tile_kernels import tile_kernel

    dtype, shape, *kind = name.removeprefix(NAME).split("_")
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
        "pairs" in kind,
        added="added" in kind,
        near="near" in kind,
    )


__all__ = ["NAME", "kernel_of"]
