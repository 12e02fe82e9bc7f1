"""Products of vectors, matrices and tensors, all by `lax.dot_general`."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from pullback import lax
from pullback.lax.collectives.sharding import out_placed
from pullback.lax.products.dot import check_terms
from pullback.numpy._arguments import (
    arrays,
    as_array,
    broadcast_shapes_of,
    broadcast_to,
    canonical_axis,
    check_arraylike,
    check_rank_promotion,
    convert,
    describe,
    product_type,
    promote_dtypes,
    refuse_out,
    shape_of_operands,
)
from pullback.numpy._ufuncs import conj, multiply_
from pullback.util import dtypes


def _promoted(name: str, a: Any, b: Any) -> list[Any]:
    """Both operands in their common type."""
    check_arraylike(name, a, b)
    return promote_dtypes(a, b)


def _operands(name: str, a: Any, b: Any) -> tuple[Any, Any]:
    """Both operands of a product, each of its own type."""
    check_arraylike(name, a, b)
    return as_array(a), as_array(b)


def element_type_said(name: str, dtype: Any) -> Any:
    """The `preferred_element_type` of a function as a dtype; None where none is given."""
    return None if dtype is None else np.dtype(dtypes.check_user_dtype_supported(dtype, name))


def _dot_general(a: Any, b: Any, numbers: Any, precision: Any, element_type: Any) -> Any:
    wanted, weak = product_type(element_type, a, b)
    out = lax.dot_general(a, b, numbers, precision=precision, preferred_element_type=wanted)
    return convert(out, wanted, True) if weak else out


def _contract(
    name: str, a: Any, b: Any, k: int, m: int, precision: Any = None, element_type: Any = None, out_sharding: Any = None
) -> Any:
    """Sum of products over axis k of a and axis m of b, the other axes of a before those of b."""
    if a.shape[k] != b.shape[m]:
        raise TypeError(
            f"{name}: contracting dimensions must have equal lengths, got {a.shape[k]} (axis {k} of {a.shape}) and "
            f"{b.shape[m]} (axis {m} of {b.shape})"
        )
    check_terms(a, b, ((k,), (m,)), out_sharding)
    return out_placed(
        f"jnp.{name}", _dot_general(a, b, (((k,), (m,)), ((), ())), precision, element_type), out_sharding
    )


def dot(a: Any, b: Any, *, precision: Any = None, preferred_element_type: Any = None, out_sharding: Any = None) -> Any:
    """Sum of products over the last axis of a and the last but one of b (its last, if a vector); of scalars their
    product.

    Raises TypeError if the lengths of these axes differ.
    """
    element_type = element_type_said("dot", preferred_element_type)
    a, b = _operands("dot", a, b)
    if a.ndim == 0 or b.ndim == 0:
        result = multiply_(*promote_dtypes(a, b))
        return out_placed(
            "jnp.dot", result if element_type is None else lax.convert_element_type(result, element_type), out_sharding
        )
    return _contract("dot", a, b, a.ndim - 1, max(b.ndim - 2, 0), precision, element_type, out_sharding)


def matmul(
    a: Any, b: Any, *, precision: Any = None, preferred_element_type: Any = None, out_sharding: Any = None
) -> Any:
    """Matrix product over the last two axes, the axes before them broadcast; vectors are rows on the left, columns on
    the right.

    Raises ValueError for scalars and for axes that do not broadcast, TypeError if the lengths to be summed over differ.
    """
    element_type = element_type_said("matmul", preferred_element_type)
    a, b = _operands("matmul", a, b)
    for number, x in enumerate((a, b)):
        if x.ndim == 0:
            raise ValueError(
                f"matmul: operand {number} is a scalar, expected one axis or more; jnp.multiply takes scalars"
            )
    contract_a, contract_b = a.ndim - 1, max(b.ndim - 2, 0)
    if a.ndim <= 2 and b.ndim <= 2:
        return _contract("matmul", a, b, contract_a, contract_b, precision, element_type, out_sharding)
    if a.shape[contract_a] != b.shape[contract_b]:
        _contract("matmul", a, b, contract_a, contract_b)
    return out_placed("jnp.matmul", _batched(a, b, precision, element_type), out_sharding)


def _batched(a: Any, b: Any, precision: Any, element_type: Any) -> Any:
    """Axes that are equal in both go together; those that one alone has (at a length other than 1) are free axes of
    it.
    """
    a_lead, b_lead = a.shape[: max(a.ndim - 2, 0)], b.shape[: max(b.ndim - 2, 0)]
    try:
        lead = broadcast_shapes_of("matmul", [a_lead, b_lead])
    except ValueError as error:
        raise ValueError(f"Incompatible types for matmul arguments: {describe(a)} and {describe(b)}. {error}") from None
    rank = len(lead)
    batch, a_free, b_free, a_drop, b_drop = [], [], [], [], []
    for k in range(rank):
        i, j = k - (rank - len(a_lead)), k - (rank - len(b_lead))
        has_a, has_b = i >= 0 and (a_lead[i] != 1 or lead[k] == 1), j >= 0 and (b_lead[j] != 1 or lead[k] == 1)
        if has_a and has_b:
            batch.append((k, i, j))
        elif has_a:
            a_free.append((k, i))
        else:
            b_free.append((k, j))
        if i >= 0 and not has_a:
            a_drop.append(i)
        if j >= 0 and not has_b:
            b_drop.append(j)

    def shift(axis: int, dropped: list[int]) -> int:
        return axis - sum(d < axis for d in dropped)

    contract_a, contract_b = shift(a.ndim - 1, a_drop), shift(max(b.ndim - 2, 0), b_drop)
    x = lax.squeeze(a, tuple(a_drop)) if a_drop else a
    y = lax.squeeze(b, tuple(b_drop)) if b_drop else b
    numbers = (
        ((contract_a,), (contract_b,)),
        (tuple(shift(i, a_drop) for _, i, _ in batch), tuple(shift(j, b_drop) for _, _, j in batch)),
    )
    out = _dot_general(x, y, numbers, precision, element_type)
    # The axes of the result: batch, free axes of a, row of a, free axes of b, column of b.
    labels: list[Any] = [k for k, _, _ in batch] + [k for k, _ in a_free] + (["row"] if a.ndim > 1 else [])
    labels += [k for k, _ in b_free] + (["column"] if b.ndim > 1 else [])
    wanted = [*range(rank), *(["row"] if a.ndim > 1 else []), *(["column"] if b.ndim > 1 else [])]
    order = tuple(labels.index(label) for label in wanted)
    return out if order == tuple(range(len(order))) else lax.transpose(out, order)


def matvec(x1: Any, x2: Any, /) -> Any:
    """Matrices (the last two axes of x1) times vectors (the last axis of x2), the axes before them broadcast."""
    x1, x2 = _operands("matvec", x1, x2)
    if x1.ndim < 2 or x2.ndim < 1:
        raise ValueError(f"matvec: expected a matrix and a vector, got shapes {x1.shape} and {x2.shape}")
    if x1.shape[-1] != x2.shape[-1]:
        raise ValueError(f"matvec: inconsistent sizes {x1.shape[-1]} and {x2.shape[-1]} of the axes that are summed")
    check_rank_promotion("matvec", [x1.shape, x2.shape], [2, 1])
    return lax.squeeze(matmul(x1, lax.expand_dims(x2, (x2.ndim,))), (max(x1.ndim, x2.ndim + 1) - 1,))


def vecmat(x1: Any, x2: Any, /) -> Any:
    """Conjugated vectors (the last axis of x1) times matrices (the last two axes of x2), the axes before them
    broadcast.
    """
    x1, x2 = _operands("vecmat", x1, x2)
    if x2.ndim < 2 or x1.ndim < 1:
        raise ValueError(f"vecmat: expected a vector and a matrix, got shapes {x1.shape} and {x2.shape}")
    if x1.shape[-1] != x2.shape[-2]:
        raise ValueError(f"vecmat: inconsistent sizes {x1.shape[-1]} and {x2.shape[-2]} of the axes that are summed")
    check_rank_promotion("vecmat", [x1.shape, x2.shape], [1, 2])
    return lax.squeeze(matmul(conj(lax.expand_dims(x1, (x1.ndim - 1,))), x2), (max(x1.ndim + 1, x2.ndim) - 2,))


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """Sum over an axis of the conjugate of x1 times x2, the other axes broadcast; ValueError if the lengths differ."""
    x1, x2 = _operands("vecdot", x1, x2)
    axis1 = canonical_axis("vecdot", axis, x1.ndim)
    axis2 = canonical_axis("vecdot", axis, x2.ndim)
    if x1.shape[axis1] != x2.shape[axis2]:
        raise ValueError(f"axes must match; got shapes {x1.shape} and {x2.shape} with axis={axis}")
    x1 = _to_end(conj(x1), axis1)
    x2 = _to_end(x2, axis2)
    check_rank_promotion("vecdot", [x1.shape, x2.shape], [1, 1])
    broadcast_shapes_of("vecdot", [x1.shape[:-1], x2.shape[:-1]])
    product = matmul(
        lax.expand_dims(x1, (x1.ndim - 1,)),
        lax.expand_dims(x2, (x2.ndim,)),
        precision=precision,
        preferred_element_type=preferred_element_type,
    )
    return lax.squeeze(product, (product.ndim - 2, product.ndim - 1))


def _to_end(x: Any, axis: int) -> Any:
    if axis == x.ndim - 1:
        return x
    return lax.transpose(x, (*(k for k in range(x.ndim) if k != axis), axis))


def vdot(a: Any, b: Any, *, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """Sum of the conjugate of a times b over all elements."""
    a, b = arrays("vdot", a, b)
    a, b = lax.reshape(a, (a.size,)), lax.reshape(b, (b.size,))
    return dot(conj(a), b, precision=precision, preferred_element_type=preferred_element_type)


def inner(a: Any, b: Any, *, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """Sum of products over the last axes of both; of a scalar and an array their product."""
    element_type = element_type_said("inner", preferred_element_type)
    a, b = _operands("inner", a, b)
    if a.ndim == 0 or b.ndim == 0:
        return dot(a, b, precision=precision, preferred_element_type=preferred_element_type)
    return _contract("inner", a, b, a.ndim - 1, b.ndim - 1, precision, element_type)


def outer(a: Any, b: Any, out: None = None) -> Any:
    """Products of all pairs of elements of a and b; shape (a.size, b.size)."""
    refuse_out("outer", out)
    a, b = _promoted("outer", a, b)
    a, b = lax.reshape(a, (a.size,)), lax.reshape(b, (b.size,))
    return multiply_(lax.expand_dims(a, (1,)), lax.expand_dims(b, (0,)))


def tensordot(
    a: Any,
    b: Any,
    axes: Any = 2,
    *,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Any:
    """Sum of products over several axes: the last `axes` of a with the first of b, or two lists of axes.

    Raises TypeError if there are too few axes, or if lists or lengths differ.
    """
    element_type = element_type_said("tensordot", preferred_element_type)
    a, b = _operands("tensordot", a, b)
    number = isinstance(axes, (int, np.integer)) or (hasattr(axes, "__index__") and np.ndim(axes) == 0)
    if number and not isinstance(axes, (bool, np.bool_)):
        count = operator.index(axes)
        if count > min(a.ndim, b.ndim):
            raise TypeError(
                f"tensordot: argument 'axes' is {count}, but shapes {a.shape} and {b.shape} do not both have so many"
            )
        of_a, of_b = tuple(range(a.ndim - count, a.ndim)), tuple(range(count))
    elif isinstance(axes, (tuple, list)) and len(axes) == 2:
        first, second = axes
        if not hasattr(first, "__len__") and not hasattr(second, "__len__"):
            first, second = [first], [second]
        if not (hasattr(first, "__len__") and hasattr(second, "__len__")):
            raise TypeError(
                "tensordot: argument 'axes' must pair a number with a number or a list with a list, got "
                f"{type(first).__name__} and {type(second).__name__}"
            )
        if len(first) != len(second):
            raise TypeError(f"tensordot: argument 'axes' has lists of different lengths, {first} and {second}")
        of_a = tuple(canonical_axis("tensordot", k, a.ndim, "axes") for k in first)
        of_b = tuple(canonical_axis("tensordot", k, b.ndim, "axes") for k in second)
    else:
        raise TypeError(f"tensordot: argument 'axes' must say how many axes, or which: (of a, of b); got {axes!r}")
    a_shape, b_shape = tuple(a.shape[k] for k in of_a), tuple(b.shape[k] for k in of_b)
    if a_shape != b_shape:
        raise TypeError(f"tensordot: contracting dimensions must have equal lengths, got {a_shape} and {b_shape}")
    check_terms(a, b, (of_a, of_b), out_sharding)
    return out_placed(
        "jnp.tensordot", _dot_general(a, b, ((of_a, of_b), ((), ())), precision, element_type), out_sharding
    )


def kron(a: Any, b: Any) -> Any:
    """Kronecker product: each element of a replaced by it times b."""
    a, b = _promoted("kron", a, b)
    if a.dtype == np.bool_:
        raise TypeError("kron: of booleans there is no product; convert them to integers")
    rank = max(a.ndim, b.ndim)
    a = lax.reshape(a, (1,) * (rank - a.ndim) + a.shape)
    b = lax.reshape(b, (1,) * (rank - b.ndim) + b.shape)
    left, right = lax.expand_dims(a, range(1, 2 * rank, 2)), lax.expand_dims(b, range(0, 2 * rank, 2))
    return lax.reshape(multiply_(left, right), tuple(n * m for n, m in zip(a.shape, b.shape)))


def cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Any:
    """Cross product of vectors of length 3 (or 2, with 0 as third) along an axis; of two of length 2 the third
    component.

    Raises ValueError for other lengths, TypeError where the vectors' other axes do not go together.
    """
    a, b = _promoted("cross", a, b)
    if axis is not None:
        axisa = axisb = axisc = axis
    a = _to_end(a, canonical_axis("cross", axisa, a.ndim, "axisa"))
    b = _to_end(b, canonical_axis("cross", axisb, b.ndim, "axisb"))
    if a.shape[-1] not in (2, 3) or b.shape[-1] not in (2, 3):
        raise ValueError(f"Dimension must be either 2 or 3 for cross product, got {a.shape[-1]} and {b.shape[-1]}")
    shape = shape_of_operands("cross", [a.shape[:-1], b.shape[:-1]])

    def component(x: Any, k: int) -> Any:
        if k >= x.shape[-1]:
            return lax.full(shape, 0, x.dtype)
        return broadcast_to(lax.index_in_dim(x, k, x.ndim - 1, keepdims=False), shape)

    def minor(i: int, j: int) -> Any:
        return lax.sub(lax.mul(component(a, i), component(b, j)), lax.mul(component(a, j), component(b, i)))

    if a.shape[-1] == 2 and b.shape[-1] == 2:
        return minor(0, 1)
    parts = [lax.expand_dims(minor(i, j), (len(shape),)) for i, j in ((1, 2), (2, 0), (0, 1))]
    result = convert(lax.concatenate(parts, len(shape)), a.dtype, False)
    to = canonical_axis("cross", axisc, result.ndim, "axisc")
    order = list(range(result.ndim - 1))
    order.insert(to, result.ndim - 1)
    return lax.transpose(result, tuple(order))


def _neighbours(x: Any) -> tuple[Any, Any]:
    """(all but the first, all but the last) along the last axis; both are empty where it has no values."""
    last, size = x.ndim - 1, x.shape[-1]
    return (
        lax.slice_in_dim(x, min(1, size), size, axis=last),
        lax.slice_in_dim(x, 0, max(size - 1, 0), axis=last),
    )


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """Integral along an axis of the polygon through values y, at places x or at distances dx."""
    from pullback.numpy._arguments import promote_dtypes_inexact
    from pullback.numpy._creation import from_list
    from pullback.numpy._reducers import sum as _sum

    dx = from_list(dx)
    check_arraylike("trapezoid", y, dx)
    if x is None:
        (y,) = promote_dtypes_inexact(y)
        step: Any = promote_dtypes_inexact(y, dx)[1] if np.ndim(dx) else dx
    else:
        check_arraylike("trapezoid", x)
        y, x = promote_dtypes_inexact(y, x)
        if x.ndim == 1:
            step = lax.sub(*_neighbours(x))
        else:
            step = lax.sub(*_neighbours(_to_end(x, canonical_axis("trapezoid", axis, x.ndim))))
    y = _to_end(y, canonical_axis("trapezoid", axis, y.ndim))
    if y.shape[-1] == 0 and x is None:
        raise IndexError(f"trapezoid: axis {axis} of argument 'y' has no values, got shape {y.shape}")
    pairs = lax.add(*_neighbours(y))
    from pullback.numpy._ufuncs import multiply

    return multiply(_sum(multiply(step, pairs), -1), 0.5)
