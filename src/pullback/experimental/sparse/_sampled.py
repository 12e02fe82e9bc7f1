"""Products at given places, slices at places that are found while running, and entries that are zero."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pullback.numpy as jnp
from pullback import lax
from pullback.api import vmap
from pullback.experimental.sparse import _structure as structure
from pullback.experimental.sparse._base import SparseEfficiencyWarning
from pullback.experimental.sparse._bcoo import BCOO
from pullback.experimental.sparse._bcsr import BCSR


class CuSparseEfficiencyWarning(SparseEfficiencyWarning):
    """A layout that a library for GPUs has no fast function for; never given here."""


def bcoo_dot_general_sampled(A: Any, B: Any, indices: Any, *, dimension_numbers: Any) -> Any:
    """The product of two arrays at the places indices[*batch, nse, n]: the data of a BCOO array.

    Places outside of the product give 0.
    """
    whole = lax.dot_general(jnp.asarray(A), jnp.asarray(B), dimension_numbers=dimension_numbers)
    indices = jnp.asarray(indices)
    if indices.ndim < 2 or indices.shape[-1] + indices.ndim - 2 > whole.ndim:
        raise ValueError(f"bcoo_dot_general_sampled: indices of shape {indices.shape} for a product of {whole.shape}")

    def one(part: Any, places: Any) -> Any:
        return part.at[tuple(places[:, k] for k in range(places.shape[1]))].get(mode="fill", fill_value=0)

    for _ in range(indices.ndim - 2):
        one = vmap(one)
    batch = indices.shape[:-2]
    indices = jnp.broadcast_to(indices, (*whole.shape[: len(batch)], *indices.shape[-2:]))
    return one(whole, indices)


def bcoo_dynamic_slice(mat: BCOO, start_indices: Sequence[Any], slice_sizes: Sequence[int]) -> BCOO:
    """mat[start : start + size, ...] as BCOO, of no more entries than before; starts as in lax.dynamic_slice."""
    starts, sizes = [jnp.asarray(s) for s in start_indices], tuple(map(int, slice_sizes))
    fits = len(starts) == len(sizes) == mat.ndim
    if not fits or any(not 0 <= n <= m for n, m in zip(sizes, mat.shape, strict=True)):
        kind = TypeError if len(starts) == len(sizes) == mat.ndim else ValueError
        raise kind(f"bcoo_dynamic_slice: start_indices and slice_sizes {sizes} do not fit shape {mat.shape}")
    starts = [jnp.where(s < 0, s + m, s) for s, m in zip(starts, mat.shape, strict=True)]  # counted from the end
    room = [m - n for n, m in zip(sizes, mat.shape, strict=True)]
    starts = [lax.clamp(0, s, most).astype(mat.indices.dtype) for s, most in zip(starts, room, strict=True)]
    b, last = mat.n_batch, mat.n_batch + mat.n_sparse
    data, indices = structure.full(mat)
    nothing = jnp.zeros((), mat.indices.dtype)
    dense = (*starts[:b], nothing, *starts[last:])
    data = lax.dynamic_slice(data, dense, (*sizes[:b], mat.nse, *sizes[last:]))
    indices = lax.dynamic_slice(indices, (*starts[:b], nothing, nothing), (*sizes[:b], mat.nse, mat.n_sparse))
    if mat.n_sparse:
        indices = indices - jnp.stack(starts[b:last])
    return structure.fewer(structure.cleared(BCOO((data, indices), shape=sizes, unique_indices=False)))


def bcoo_eliminate_zeros(mat: BCOO, nse: int | None = None) -> BCOO:
    """The array with `nse` entries, those of value 0 dropped first; without `nse` as many as are left."""
    return structure.bcoo_sum_duplicates(mat, nse, remove_zeros=True)


def bcsr_eliminate_zeros(mat: BCSR, nse: int | None = None) -> BCSR:
    """The array with `nse` entries, those of value 0 dropped first; without `nse` as many as are left."""
    return BCSR.from_bcoo(bcoo_eliminate_zeros(mat.to_bcoo(), nse))


__all__ = [
    "CuSparseEfficiencyWarning", "bcoo_dot_general_sampled", "bcoo_dynamic_slice", "bcoo_eliminate_zeros",
    "bcsr_eliminate_zeros",
]  # fmt: skip
