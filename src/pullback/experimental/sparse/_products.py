"""Products and sums with sparse arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback import lax
from pullback.api import vmap
from pullback.experimental.sparse import _structure as structure
from pullback.experimental.sparse._base import JAXSparse, refuse_sharding
from pullback.experimental.sparse._bcoo import BCOO
from pullback.experimental.sparse._layout import bcoo_update_layout
from pullback.experimental.sparse._shapes import bcoo_broadcast_in_dim
from pullback.util import dtypes


def bcoo_dot_general(
    lhs: Any,
    rhs: Any,
    *,
    dimension_numbers: Any,
    precision: None = None,
    preferred_element_type: None = None,
    out_sharding: Any = None,
) -> Any:
    """The product of `lax.dot_general` where one operand or both are sparse: an array, or for two sparse ones a BCOO.

    Raises TypeError where contracted or batch dimensions differ in size, NotImplementedError for two sparse operands
    with dense dimensions, or whose batch dimensions would not lead those of the result.
    """
    refuse_sharding("bcoo_dot_general", "out_sharding", out_sharding)
    (lc, rc), (lb, rb) = (tuple(map(tuple, part)) for part in dimension_numbers)
    for name, left, right in (("contracting", lc, rc), ("batch", lb, rb)):
        sizes = tuple(lhs.shape[d] for d in left), tuple(rhs.shape[d] for d in right)
        if sizes[0] != sizes[1]:
            raise TypeError(
                f"dot_general requires {name} dimensions to have the same shape, got {sizes[0]} and {sizes[1]}."
            )
    dtype = dtypes.result_type(lhs.dtype, rhs.dtype)
    if preferred_element_type is not None:
        dtype = dtypes.canonicalize_dtype(preferred_element_type)
    lhs, rhs = (x.to_bcoo() if isinstance(x, JAXSparse) else x for x in (lhs, rhs))
    if isinstance(lhs, BCOO) and isinstance(rhs, BCOO):
        return _sparse_sparse(lhs.astype(dtype), rhs.astype(dtype), (lc, rc), (lb, rb))
    if isinstance(lhs, BCOO):
        return _sparse_dense(lhs.astype(dtype), jnp.asarray(rhs, dtype), (lc, rc), (lb, rb))
    if isinstance(rhs, BCOO):
        # The other way round, and the free dimensions of the left in front.
        out = _sparse_dense(rhs.astype(dtype), jnp.asarray(lhs, dtype), (rc, lc), (rb, lb))
        batch, free = len(lb), rhs.ndim - len(rb) - len(rc)
        return jnp.moveaxis(out, range(batch, batch + free), range(out.ndim - free, out.ndim))
    return lax.dot_general(lhs, rhs, ((lc, rc), (lb, rb)), precision, preferred_element_type)


def _sparse_dense(mat: BCOO, x: Any, contracting: Any, batch: Any) -> Any:
    """[*batch, *free of mat, *free of x]."""
    (mc, xc), (mb, xb) = contracting, batch
    if any(d >= mat.n_batch for d in mb):  # whose elements have nothing in common but where they lie
        return lax.dot_general(mat.todense(), x, (contracting, batch))
    data, indices = structure.full(mat)
    free = [d for d in range(mat.ndim) if d not in mc and d not in mb]
    x_free = [d for d in range(x.ndim) if d not in xc and d not in xb]
    # x as [*batch, *contracted batch dimensions of mat, *contracted sparse ones, *contracted dense ones, *free].
    first_dense = mat.n_batch + mat.n_sparse
    over_batch = [k for k, d in enumerate(mc) if d < mat.n_batch]
    over_sparse = [k for k, d in enumerate(mc) if mat.n_batch <= d < first_dense]
    over_dense = [k for k, d in enumerate(mc) if d >= first_dense]
    x = x.transpose(*xb, *[xc[k] for k in (*over_batch, *over_sparse, *over_dense)], *x_free)
    kept = [d - mat.n_batch for d in free if mat.n_batch <= d < first_dense]
    picked = [mc[k] - mat.n_batch for k in over_sparse]
    summed = [1 + mc[k] - first_dense for k in over_dense]  # of the values
    sizes = structure.sparse_shape(mat)

    def one(data: Any, indices: Any, x: Any) -> Any:
        valid = structure.inside(indices, sizes)
        values = structure.values_where(valid, data)
        at = tuple(indices[:, k] for k in picked)
        rows = _gathered(x, at) if at else jnp.broadcast_to(x, (len(data), *x.shape))
        if values.ndim > 1:
            pairs = (tuple(summed), tuple(range(1, 1 + len(summed))))
            terms = lax.dot_general(values, rows, (pairs, ((0,), (0,))))
        else:
            terms = values.reshape(-1, *[1] * (rows.ndim - 1)) * rows
        shape = (*[sizes[k] for k in kept], *terms.shape[1:])
        return structure.scatter(terms, structure.columns(indices, kept), shape)

    # Free batch dimensions of mat innermost, then contracted ones, which are summed, then those of the product.
    free_batch = [d for d in free if d < mat.n_batch]
    order = [*mb, *[mc[k] for k in over_batch], *free_batch]
    data = data.transpose(*order, *range(mat.n_batch, data.ndim))
    indices = indices.transpose(*order, *range(mat.n_batch, indices.ndim))
    for _ in free_batch:
        one = vmap(one, (0, 0, None))
    for _ in (*mb, *over_batch):
        one = vmap(one)
    out = one(data, indices, x)
    return out.sum(axis=tuple(range(len(mb), len(mb) + len(over_batch)))) if over_batch else out


def _gathered(x: Any, at: tuple[Any, ...]) -> Any:
    return x.at[at].get(mode="fill", fill_value=0, wrap_negative_indices=False)


def _sparse_sparse(lhs: BCOO, rhs: BCOO, contracting: Any, batch: Any) -> BCOO:
    """[*batch, *free of lhs, *free of rhs], with the batch dimensions of both as batch."""
    (lc, rc), (lb, rb) = contracting, batch
    if lhs.n_dense or rhs.n_dense:
        raise NotImplementedError("bcoo_dot_general of two sparse arrays with dense dimensions")
    if any(d < lhs.n_batch for d in lc) or any(d < rhs.n_batch for d in rc):
        raise NotImplementedError("bcoo_dot_general of two sparse arrays contracts sparse dimensions only")
    if any(d >= lhs.n_batch for d in lb) or any(d >= rhs.n_batch for d in rb):
        raise NotImplementedError("bcoo_dot_general: batch dimensions of the product must be batch dimensions")
    left = [d for d in range(lhs.n_batch) if d not in lb]
    right = [d for d in range(rhs.n_batch) if d not in rb]
    if right and lhs.n_sparse > len(lc):
        raise NotImplementedError(
            "bcoo_dot_general: batch dimensions of the right operand cannot follow sparse ones of the left"
        )
    columns = [d - lhs.n_batch for d in lc], [d - rhs.n_batch for d in rc]
    sizes = structure.sparse_shape(lhs), structure.sparse_shape(rhs)

    def one(*parts: Any) -> tuple[Any, Any]:
        out = _of_matrices(BCOO(parts[:2], shape=sizes[0]), BCOO(parts[2:], shape=sizes[1]), *columns)
        return out.data, out.indices

    data, indices = structure.full(lhs)
    a = (jnp.moveaxis(x, (*lb, *left), range(lhs.n_batch)) for x in (data, indices))
    data, indices = structure.full(rhs)
    b = (jnp.moveaxis(x, (*rb, *right), range(rhs.n_batch)) for x in (data, indices))
    for _ in right:
        one = vmap(one, (None, None, 0, 0))
    for _ in left:
        one = vmap(one, (0, 0, None, None))
    for _ in lb:
        one = vmap(one)
    shape = [lhs.shape[d] for d in (*lb, *left)] + [rhs.shape[d] for d in right]
    kept = [[n for k, n in enumerate(of) if k not in gone] for of, gone in zip(sizes, columns, strict=True)]
    return BCOO(one(*a, *b), shape=(*shape, *kept[0], *kept[1]))


def _of_matrices(lhs: BCOO, rhs: BCOO, lc: Sequence[int], rc: Sequence[int]) -> BCOO:
    """One entry for each pair that meets, summed where there are more than the result has elements."""
    left = [d for d in range(lhs.ndim) if d not in lc]
    right = [d for d in range(rhs.ndim) if d not in rc]
    shape = (*[lhs.shape[d] for d in left], *[rhs.shape[d] for d in right])
    a, b = structure.columns(lhs.indices, lc), structure.columns(rhs.indices, rc)
    meet = (a[:, None] == b[None]).all(-1)
    meet &= structure.inside(lhs.indices, lhs.shape)[:, None] & structure.inside(rhs.indices, rhs.shape)
    data = _products_where(meet, lhs.data, rhs.data)
    pairs = (lhs.nse, rhs.nse)
    indices = jnp.concatenate(
        [
            jnp.broadcast_to(structure.columns(lhs.indices, left)[:, None], (*pairs, len(left))),
            jnp.broadcast_to(structure.columns(rhs.indices, right)[None], (*pairs, len(right))),
        ],
        axis=-1,
    )
    indices = jnp.where(meet[..., None], indices, jnp.array(shape, indices.dtype)).reshape(meet.size, len(shape))
    out = BCOO((data, indices), shape=shape)
    return out.sum_duplicates(nse=out.size, remove_zeros=False) if out.size < out.nse else out


def _products_where(meet: Any, a: Any, b: Any) -> Any:
    products = a[:, None] * b
    return jnp.where(meet, products, structure.zero(products)).reshape(meet.size)


def matmul(lhs: Any, rhs: Any) -> Any:
    """lhs @ rhs, as for NumPy's arrays. Raises TypeError or ValueError for shapes that do not fit."""
    lhs, rhs = (x if isinstance(x, JAXSparse) else jnp.asarray(x) for x in (lhs, rhs))
    if not lhs.ndim or not rhs.ndim:
        raise ValueError("matmul: scalars are not allowed, use * instead")
    left, right = lhs.shape[:-2], rhs.shape[:-2]
    rank = max(len(left), len(right))
    # Each batch dimension of the result is one of both operands, or one of either, or two of which one has length 1.
    at = [(p - rank + len(left), p - rank + len(right)) for p in range(rank)]
    both = [(x, y) for x, y in at if x >= 0 and y >= 0]
    if any(left[x] != right[y] and 1 not in (left[x], right[y]) for x, y in both):
        raise ValueError(f"matmul: batch dimensions {left} of {lhs.shape} and {right} of {rhs.shape} do not broadcast")
    same = [(x, y) for x, y in both if left[x] == right[y]]
    met = lhs.ndim - 1, max(rhs.ndim - 2, 0)
    out = bcoo_dot_general(
        lhs, rhs, dimension_numbers=(((met[0],), (met[1],)), (tuple(x for x, _ in same), tuple(y for _, y in same)))
    )
    # The result has the dimensions of both, the free ones of the left and those of the right.
    free = [("left", d) for d in range(lhs.ndim) if d != met[0] and d not in {x for x, _ in same}]
    free += [("right", d) for d in range(rhs.ndim) if d != met[1] and d not in {y for _, y in same}]
    place = {name: len(same) + k for k, name in enumerate(free)}
    order: list[int] = []
    for x, y in at:
        order += (
            [same.index((x, y))] if (x, y) in same else [place[n] for n in (("left", x), ("right", y)) if n in place]
        )
    order += [k for k in range(out.ndim) if k not in order]
    if order != sorted(order):
        out = out.transpose(order)
    shape = (*np.broadcast_shapes(left, right), *lhs.shape[-2:-1], *(rhs.shape[-1:] if rhs.ndim > 1 else ()))
    return out if out.shape == shape else out.reshape(shape)


def bcoo_multiply_dense(sp_mat: BCOO, v: Any) -> Any:
    """The data of sp_mat * v, where v broadcasts to the shape of sp_mat (ValueError)."""
    return sp_mat.data * _values_of("bcoo_multiply_dense", sp_mat, v)


def _values_of(name: str, sp_mat: BCOO, v: Any) -> Any:
    """v at the entries of sp_mat, to whose data it broadcasts; what padding gets means nothing."""
    v = jnp.asarray(v)
    if v.ndim > sp_mat.ndim or any(n not in (1, m) for n, m in zip(v.shape[::-1], sp_mat.shape[::-1], strict=False)):
        raise ValueError(f"{name}: shape {v.shape} does not broadcast to {sp_mat.shape}")
    v = v.reshape(*[1] * (sp_mat.ndim - v.ndim), *v.shape)
    first, last = sp_mat.n_batch, sp_mat.n_batch + sp_mat.n_sparse
    indices = sp_mat.indices
    if any(n != 1 for n in v.shape[:first]):
        indices = structure.full(sp_mat)[1]
    v = jnp.broadcast_to(v, (*indices.shape[:first], *v.shape[first:])) if first else v
    one_column = jnp.array([n == 1 for n in v.shape[first:last]], bool)

    def one(indices: Any, v: Any) -> Any:
        places = jnp.where(one_column, jnp.where(indices < 0, indices, 0), indices)
        at = tuple(places[:, k] for k in range(places.shape[1]))
        return _gathered(v, at) if at else v[None]

    for _ in range(first):
        one = vmap(one)
    return one(indices, v)


def bcoo_multiply_sparse(lhs: BCOO, rhs: BCOO) -> BCOO:
    """The product element by element, one entry for each pair of entries; sizes of 1 and missing dimensions broadcast,
    for which no entry is repeated.

    Of two numbers of batch dimensions the smaller is that of the result. Raises ValueError if shapes do not broadcast,
    NotImplementedError if the numbers of dense dimensions differ.
    """
    shape = np.broadcast_shapes(lhs.shape, rhs.shape)
    lhs, rhs = (_of_rank(x, len(shape)) for x in (lhs, rhs))
    if lhs.n_dense != rhs.n_dense:
        raise NotImplementedError(
            f"bcoo_multiply_sparse: expected as many dense dimensions in both, got {lhs!r}, {rhs!r}"
        )
    n_batch = min(lhs.n_batch, rhs.n_batch)
    lhs, rhs = (bcoo_update_layout(x, n_batch=n_batch, on_inefficient=None) for x in (lhs, rhs))
    left, right = structure.sparse_shape(lhs), structure.sparse_shape(rhs)
    sizes = np.broadcast_shapes(left, right)
    both = [d for d, (n, m) in enumerate(zip(left, right)) if n == m]
    repeats = np.array([n != size for n, size in zip(left, sizes)], bool)  # along these the right one says where

    def one(a: Any, i: Any, b: Any, j: Any) -> tuple[Any, Any]:
        meet = (i[:, None, both] == j[None][..., both]).all(-1)
        meet &= structure.inside(i, left)[:, None] & structure.inside(j, right)[None]
        products = a[:, None] * b
        data = structure.values_where(meet, products).reshape(meet.size, *products.shape[2:])
        at = jnp.where(repeats, j[None], i[:, None])
        places = jnp.where(meet[..., None], at, jnp.array(sizes, i.dtype))
        return data, places.reshape(meet.size, len(sizes))

    for _ in range(n_batch):
        one = vmap(one)
    parts = [*structure.full(lhs), *structure.full(rhs)]
    found = one(*[jnp.broadcast_to(x, (*shape[:n_batch], *x.shape[n_batch:])) for x in parts])
    return BCOO(found, shape=shape, unique_indices=lhs.unique_indices and rhs.unique_indices)


def _of_rank(mat: BCOO, ndim: int) -> BCOO:
    """With dimensions of size 1 in front."""
    more = ndim - mat.ndim
    if more == 0:
        return mat
    return bcoo_broadcast_in_dim(mat, shape=(1,) * more + mat.shape, broadcast_dimensions=range(more, ndim))


def multiply(mat: BCOO, other: Any) -> BCOO:
    """mat * other, a scalar, an array or a sparse array."""
    if isinstance(other, BCOO):
        return bcoo_multiply_sparse(mat, other)
    if jnp.ndim(other) == 0:
        return mat.with_data(mat.data * other)
    return _of_data(mat, bcoo_multiply_dense(mat, other))


def divide(mat: BCOO, other: Any, quotient: Callable[[Any, Any], Any] = jnp.true_divide) -> BCOO:
    """mat / other, a scalar or an array, by `quotient`; elements that are not stored stay zero, also over zero.

    Raises NotImplementedError for a sparse divisor.
    """
    if isinstance(other, JAXSparse):
        raise NotImplementedError("division by a sparse array has a dense result: use todense() first")
    if jnp.ndim(other) == 0:
        return mat.with_data(quotient(mat.data, other))
    divisors = _values_of("division of a sparse array", mat, other)
    valid = structure.inside(mat.indices, structure.sparse_shape(mat))
    one = jnp.ones((), divisors.dtype)
    # Padding over zero would be nan, and so the gradient.
    return _of_data(mat, quotient(mat.data, structure.values_where(valid, divisors, one)))


def _of_data(mat: BCOO, data: Any) -> BCOO:
    """mat with other data, which may have batch dimensions where the indices have 1."""
    first = mat.n_batch
    batch = np.broadcast_shapes(data.shape[:first], mat.indices.shape[:first])
    indices = jnp.broadcast_to(mat.indices, (*batch, *mat.indices.shape[first:]))
    return BCOO((data, indices), shape=mat.shape, **mat.info)


def add(mat: BCOO, other: Any) -> Any:
    """mat + other: a sparse array for a sparse one, an array for an array of the same shape.

    Raises NotImplementedError for arrays of less elements, ValueError if shapes differ.
    """
    if isinstance(other, BCOO):
        if mat.shape != other.shape:
            raise ValueError(f"addition of sparse arrays: shapes {mat.shape} and {other.shape} differ")
        if (mat.n_batch, mat.n_dense) != (other.n_batch, other.n_dense):
            raise NotImplementedError(f"addition of {mat!r} and {other!r}: layouts differ")
        dtype = dtypes.result_type(mat.dtype, other.dtype)
        (a, i), (b, j) = structure.full(mat.astype(dtype)), structure.full(other.astype(dtype))
        joined = jnp.concatenate([a, b], mat.n_batch), jnp.concatenate([i, j], mat.n_batch)
        return BCOO(joined, shape=mat.shape)
    if jnp.shape(other) != mat.shape:
        raise NotImplementedError(
            f"addition of a sparse array of shape {mat.shape} and an array of shape {jnp.shape(other)} has a dense "
            "result: use todense() first if that is what you want"
        )
    return mat.todense() + other
