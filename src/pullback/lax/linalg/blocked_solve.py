"""Solutions of systems with one large complex triangular matrix: by halves, whose products are as large as they can be.

    M11 X1 = B1                     the same of half of the unknowns, down to trsm of few
    B2 -= M21 X1                    gemm
    M22 X2 = B2

Halves depend on the sizes alone. trsm of OpenBLAS takes two to three times as long as its gemm for the same work.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.lax.linalg.matrices import letter

BLOCK = 64  # unknowns that trsm finds at once
LEAST = 2 * BLOCK  # unknowns from which halves are worth it


def substitute(
    ctx: Any, dtype: np.dtype, a: Any, n: int, x: Any, lead: int, count: Any, side: str, flags: tuple[str, str, str]
) -> None:
    """X of X M = B (`side` R) or M X = B (L) in place of B; all column-major, M = op(a), `flags` trsm's others.

    x has `count` rows (R) or columns (L), and leading dimension `lead`.
    """
    uplo, trans, diag = flags
    one, kind = dtype.type(1), letter(dtype)
    first_to_last = ((uplo == "U") == (trans == "N")) == (side == "R")
    matrix = a.reshaped((n * n,))

    def of_matrix(row: int, column: int) -> Any:
        """From an element of op(a) on."""
        return matrix.slice((column * n + row if trans == "N" else row * n + column,), (1,))

    def unknowns(first: int) -> Any:
        return x.slice((first * lead if side == "R" else first,), (1,))

    def find(start: int, width: int) -> None:
        """The unknowns from `start` on, whose right-hand sides have lost what others take."""
        if width <= BLOCK:
            extents = (count, width) if side == "R" else (width, count)
            corner = of_matrix(start, start)
            ctx.call_fortran(kind + "trsm", side, uplo, trans, diag, *extents, one, corner, n, unknowns(start), lead)
            return
        blocks = -(-width // BLOCK)
        half = (blocks + 1) // 2 * BLOCK
        done, left = ((start, half), (start + half, width - half))[:: 1 if first_to_last else -1]
        find(*done)
        if side == "R":
            sides, shape = (unknowns(done[0]), lead, of_matrix(done[0], left[0]), n), ("N", trans, count, left[1])
        else:
            sides, shape = (of_matrix(left[0], done[0]), n, unknowns(done[0]), lead), (trans, "N", left[1], count)
        ctx.call_fortran(kind + "gemm", *shape, done[1], -one, *sides, one, unknowns(left[0]), lead)
        find(*left)

    find(0, n)


__all__ = ["LEAST", "substitute"]
