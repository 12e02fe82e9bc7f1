"""What the records of linear algebra share: checks, batching, matrix helpers, references."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from pullback.lax.elementwise.bits import convert
from pullback.lax.records.families import *
from pullback.lax.records.operands import check_kind
from pullback.util.blas_threads import on_one_thread

PREFIX = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}
REAL_OF = {
    "float32": np.dtype("float32"),
    "float64": np.dtype("float64"),
    "complex64": np.dtype("float32"),
    "complex128": np.dtype("float64"),
}


def check_matrix(name: str, aval: Any, square: bool = False, error: type[Exception] = ValueError) -> None:
    """TypeError unless the operand is a stack of matrices of a type that LAPACK has; `error` unless they are square
    where they must be."""
    if aval.ndim < 2:
        raise TypeError(f"{name}: expected a matrix or a stack of matrices, got shape {aval.shape}")
    if square and aval.shape[-1] != aval.shape[-2]:
        raise error(f"{name}: expected square matrices in the last two dimensions, got shape {aval.shape}")
    check_kind(name, aval.dtype, INEXACT)
    if aval.dtype.name not in PREFIX:
        raise NotImplementedError(f"{name}: Unsupported dtype {aval.dtype.name}.")


def widened_if_empty(x: Any) -> tuple[Any, Callable[[Any], Any]]:
    """(the operand, what makes the results of its type): matrices without elements need no LAPACK, so that they may be
    of any float type, and are computed in float32."""
    dtype = x.dtype
    if dtype.name in PREFIX or x.ndim < 2 or not dtypes.issubdtype(dtype, np.floating) or 0 not in x.shape[-2:]:
        return x, lambda out: out
    return convert(x, REAL_OF["float32"]), lambda out: convert(out, dtype) if out.dtype == REAL_OF["float32"] else out


def real_of(dtype: Any) -> Any:
    """The real type of a dtype."""
    return REAL_OF[dtype.name]


def letter(dtype: Any) -> str:
    """The first letter of LAPACK's routines for a dtype."""
    return PREFIX[dtype.name]


def is_complex(dtype: Any) -> bool:
    """Whether a dtype is complex."""
    return dtype.kind == "c"


def hermitian_operand(name: str, x: Any, symmetrize: bool) -> Any:
    """The operand of a function of Hermitian matrices: checked, and (x + x^H) / 2 if it is to be made so.

    Integers become floats where that mean is taken, and nowhere else. What cannot be added to its transpose is a
    TypeError, as it is in JAX; what is only not square, a ValueError.
    """
    x = as_array(x, name)
    if symmetrize and dtypes.kind_of(x.dtype) in "biu":
        x = convert(x, dtypes.to_inexact_dtype(x.dtype))
    check_matrix(name, x.aval, square=True, error=TypeError if symmetrize else ValueError)
    return symmetrized(x) if symmetrize else x


def symmetrized(x: Any) -> Any:
    """(x + x^H) / 2."""
    return scaled(lax.add(x, adjoint(x)), 0.5)


# -------------------------------------------------------------------------------------------------- lax- level helpers


def turned(x: Any) -> Any:
    """The transposed matrices."""
    n = x.ndim
    return lax.transpose_p.bind(x, permutation=(*range(n - 2), n - 1, n - 2))


def conjugated(x: Any) -> Any:
    """The conjugate; real arrays as they are."""
    return lax.conj(x) if x.dtype.kind == "c" else x


def adjoint(x: Any) -> Any:
    """The conjugate transposes."""
    return turned(conjugated(x))


def product(x: Any, *others: Any) -> Any:
    """The product of stacks of matrices."""
    for y in others:
        n = x.ndim - 2
        batch = tuple(range(n))
        x = lax.dot_general_p.bind(
            x, y, dimension_numbers=(((n + 1,), (n,)), (batch, batch)), precision=None, preferred_element_type=None
        )
    return x


def scaled(x: Any, factor: float) -> Any:
    """x times a number, weakly typed as x is."""
    return lax.mul(x, lax.convert(as_array(constant(x, factor), "mul"), x.dtype, x.aval.weak_type))


def triangle(x: Any, lower: bool, offset: int = 0) -> Any:
    """The lower (i >= j + offset) or upper (i <= j - offset) triangle, zero elsewhere; offset 1 leaves the diagonal
    out.
    """
    shape = x.shape
    i = lax.broadcasted_iota(np.int32, shape, x.ndim - 2)
    j = lax.broadcasted_iota(np.int32, shape, x.ndim - 1)
    keep = lax.ge_p.bind(i, lax.add(j, np.int32(offset))) if lower else lax.le_p.bind(i, lax.sub(j, np.int32(offset)))
    return lax.select_n_p.bind(keep, constant(x, 0), x)


def on_diagonal(shape: Sequence[int]) -> Any:
    """Whether i == j, for stacks of matrices of a shape."""
    n = len(shape)
    return lax.eq_p.bind(lax.broadcasted_iota(np.int32, shape, n - 2), lax.broadcasted_iota(np.int32, shape, n - 1))


def diagonal(x: Any) -> Any:
    """The diagonals of square matrices."""
    return lax.reduce_sum_p.bind(lax.select_n_p.bind(on_diagonal(x.shape), constant(x, 0), x), axes=(x.ndim - 1,))


def identity(n: int, dtype: Any) -> Any:
    """The unit matrix."""
    return lax.convert_element_type(on_diagonal((n, n)), dtype)


def columns(v: Any, shape: Sequence[int]) -> Any:
    """A vector per matrix as the factors of columns: v[..., None, :] of a shape."""
    n = len(shape)
    return lax.broadcast_in_dim_p.bind(v, shape=tuple(shape), broadcast_dimensions=(*range(n - 2), n - 1))


def rows(v: Any, shape: Sequence[int]) -> Any:
    """A vector per matrix as the factors of rows: v[..., :, None] of a shape."""
    n = len(shape)
    return lax.broadcast_in_dim_p.bind(v, shape=tuple(shape), broadcast_dimensions=tuple(range(n - 1)))


def weak_like_operands(rule: Callable) -> Callable:
    """The shape rule whose results, pivots too, are weakly typed if all operands are, as those of arithmetic are."""

    @functools.wraps(rule)
    def typed(*avals: Any, **params: Any) -> Any:
        out = rule(*avals, **params)
        weak = all(a.weak_type for a in avals)
        of_one = [ShapedArray(o.shape, o.dtype, weak) for o in (out if isinstance(out, list) else [out])]
        return of_one if isinstance(out, list) else of_one[0]

    return typed


def to_dtype(x: Any, dtype: Any) -> Any:
    """x as a dtype."""
    return lax.convert(x, dtype)


# ---------------------------------------------------------------------------------------------------------- references


def per_matrix(function: Callable, *stacks: np.ndarray, core: Sequence[int] = ()) -> list[np.ndarray]:
    """`function` on each matrix of stacks; gives a list of stacked results. `core`: dimensions of one element (2 by
    default).
    """
    core = core or (2,) * len(stacks)
    batch = stacks[0].shape[: stacks[0].ndim - core[0]]
    if not batch:
        out = function(*stacks)
        return list(out) if isinstance(out, (tuple, list)) else [out]
    flat = [x.reshape(math.prod(batch), *x.shape[len(batch) :]) for x in stacks]  # -1 is ambiguous without elements
    if flat[0].shape[0] == 0:
        out = function(*[np.zeros(x.shape[1:], x.dtype) for x in flat])
        out = list(out) if isinstance(out, (tuple, list)) else [out]
        return [np.zeros((*batch, *np.shape(o)), np.asarray(o).dtype) for o in out]
    results = [function(*parts) for parts in zip(*flat)]
    results = [list(r) if isinstance(r, (tuple, list)) else [r] for r in results]
    return [np.stack(parts).reshape(*batch, *np.shape(parts[0])) for parts in zip(*results)]


def all_finite(a: np.ndarray) -> bool:
    """Whether no element is infinite or NaN."""
    return bool(np.isfinite(a).all())


def in_one_call(a: np.ndarray) -> bool:
    """Whether NumPy decomposes a stack as compiled code does, and faster than calls from Python do matrix by matrix.

    Single precision it computes in double, which turns vectors around.
    """
    return a.size > 0 and np.finfo(a.dtype).nmant == 52 and max(a.shape[-2:]) <= 32 and all_finite(a)


def column_range(x, lo, hi):
    """Columns lo to hi of a matrix."""
    return lax.slice_in_dim(x, lo, hi, axis=x.ndim - 1)


def row_range(x, lo, hi):
    """Rows lo to hi of a matrix."""
    return lax.slice_in_dim(x, lo, hi, axis=x.ndim - 2)


# ------------------------------------------------------------------------------------------------------------- records


def of_matrices(
    name: str,
    *,
    shape: Callable,
    one: Callable[..., Any] | None = None,
    core: Sequence[int] = (),
    reference: Callable | None = None,
    transpose: Any = NOT_LINEAR,
    traits: Sequence[str] = ("matrices",),
    **record: Any,
) -> Primitive:
    """The record of a function of stacks of matrices: batch axes go first, and it is linear in nothing.

    `shape(*avals, **params)` gives the results' avals, in a list if there are several. `one(*matrices, **params)` is
    what is done to one matrix, with the `core` dimensions of each operand; or `reference` is given for whole stacks.
    """

    def of_stacks(*stacks: np.ndarray, **params: Any) -> Any:
        assert one is not None
        outs = per_matrix(functools.partial(one, **params), *stacks, core=core)
        return outs if p.multiple_results else outs[0]

    def batch(args: Sequence[Any], dims: Sequence[Any], **params: Any) -> Any:
        size = batch_size(args, dims)
        outs = p.bind(*[batch_front(x, d, size) for x, d in zip(args, dims)], **params)
        return (outs, [0] * len(outs)) if p.multiple_results else (outs, 0)

    p = Primitive(
        name,
        abstract_eval=weak_like_operands(shape),
        reference=on_one_thread(reference or of_stacks),
        transpose=transpose,
        batch=batch,
        traits=set(traits),
        **record,
    )
    return p
