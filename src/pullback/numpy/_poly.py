"""Polynomials as vectors of coefficients, the highest power first; and convolution, by which they are multiplied."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback import lax, numpy
from pullback.core.dimensions import is_symbolic
from pullback.numpy._arguments import (
    arrays,
    as_array,
    broadcast_shapes_of,
    broadcast_to,
    check_arraylike,
    concrete_or_error,
    const,
    convert,
    is_weak,
    make_array,
    promote_dtypes,
    promote_dtypes_inexact,
    static_int,
    to_complex_dtype,
)
from pullback.numpy._diagonals import diag
from pullback.numpy._products import dot, element_type_said
from pullback.numpy._ranges import vander
from pullback.numpy._reducers import sum as _sum
from pullback.numpy._shape import atleast_1d, trim_zeros
from pullback.numpy._ufuncs import conj
from pullback.util import dtypes
from pullback.util.static import check_flags

# ---- convolution


def _not_vectors(name: str, a: Any, v: Any) -> str:
    return (
        f"{name}() only support 1-dimensional inputs. Got shapes {a.shape} and {v.shape}; vmap maps over further axes."
    )


def _convolve(name: str, a: Any, v: Any, mode: str, precision: Any, element_type: Any) -> Any:
    """Sum over k of a[n - k] v[k]."""
    if a.ndim != 1 or v.ndim != 1:
        raise ValueError(_not_vectors(name, a, v))
    if a.size == 0 or v.size == 0:
        raise ValueError(f"{name}: inputs cannot be empty, got shapes {a.shape} and {v.shape}.")
    if mode not in ("full", "same", "valid"):
        raise ValueError(f"mode must be one of ['full', 'same', 'valid'], got {mode!r}")
    symbolic = is_symbolic(a.shape[0] - v.shape[0])
    if not (symbolic and mode == "full") and a.shape[0] < v.shape[0]:  # in whole, it is the same either way
        a, v = v, a
    n, m = a.shape[0], v.shape[0]
    before = {"full": m - 1, "same": m // 2, "valid": 0}[mode]
    behind = {"full": m - 1, "same": m - m // 2 - 1, "valid": 0}[mode]
    result = lax.conv_general_dilated(
        lax.reshape(a, (1, 1, n)),
        lax.reshape(lax.rev(v, (0,)), (1, 1, m)),
        window_strides=(1,),
        padding=[(before, behind)],
        precision=precision,
        preferred_element_type=element_type,
    )
    return lax.reshape(result, (result.size,))


def convolve(a: Any, v: Any, mode: str = "full", *, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """Convolution of two vectors, in whole ('full'), as long as the longer one ('same'), or without edges ('valid').

    Raises ValueError for other ranks, empty vectors and unknown modes.
    """
    check_arraylike("convolve", a, v)
    a, v = promote_dtypes_inexact(a, v)
    return _convolve("convolve", a, v, mode, precision, element_type_said("convolve", preferred_element_type))


def correlate(a: Any, v: Any, mode: str = "valid", *, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """Cross-correlation of two vectors: sum over n of a[n + k] conj(v[n]); modes as of `convolve`."""
    check_arraylike("correlate", a, v)
    a, v = promote_dtypes_inexact(a, v)
    if a.ndim != 1 or v.ndim != 1:
        raise ValueError(_not_vectors("correlate", a, v))
    swapped = a.shape[0] < v.shape[0]
    v = lax.rev(conj(v), (0,))
    element_type = element_type_said("correlate", preferred_element_type)
    if not swapped:
        return _convolve("correlate", a, v, mode, precision, element_type)
    # With the longer vector second, 'same' keeps its middle; computed the other way round and reversed, as NumPy does.
    other = _convolve("correlate", lax.rev(v, (0,)), lax.rev(a, (0,)), mode, precision, element_type)
    return lax.rev(other, (0,))


# ---- arithmetic of polynomials


def _aligned(name: str, a1: Any, a2: Any) -> tuple[Any, Any]:
    a1, a2 = promote_dtypes(*arrays(name, a1, a2))
    if a1.ndim == 0 or a2.ndim == 0:
        raise IndexError(
            f"{name}: expected vectors of coefficients, got shapes {a1.shape} and {a2.shape}: tuple index out of range"
        )
    n = max(a1.shape[0], a2.shape[0])

    def lengthen(x: Any) -> Any:
        config = [(n - x.shape[0], 0, 0)] + [(0, 0, 0)] * (x.ndim - 1)
        return lax.pad(x, const(convert(x, x.dtype), 0), config) if x.shape[0] < n else x

    return lengthen(a1), lengthen(a2)


def polyadd(a1: Any, a2: Any) -> Any:
    """Sum of two polynomials; along axis 0, where there are others. Raises ValueError where one of fewer axes is longer
    or has other sizes.
    """
    x, y = promote_dtypes(*arrays("polyadd", a1, a2))
    if x.ndim == y.ndim or 0 in (x.ndim, y.ndim):
        return lax.add(*_aligned("polyadd", x, y))
    long, short = (x, y) if x.shape[0] >= y.shape[0] else (y, x)
    first = long.shape[0] - short.shape[0]
    shape = (short.shape[0], *long.shape[1:])
    if short.ndim > long.ndim:
        raise ValueError(f"polyadd: Cannot broadcast {short.shape} to {shape}, which has fewer dimensions")
    tail = lax.add(lax.slice_in_dim(long, first, long.shape[0]), broadcast_to(short, shape))
    return lax.concatenate([lax.slice_in_dim(long, 0, first), tail], 0)


def polysub(a1: Any, a2: Any) -> Any:
    """Difference of two polynomials."""
    x, y = promote_dtypes(*arrays("polysub", a1, a2))
    if x.ndim == y.ndim or 0 in (x.ndim, y.ndim):
        return lax.sub(*_aligned("polysub", x, y))
    return polyadd(x, lax.neg(y))


def polymul(a1: Any, a2: Any, *, trim_leading_zeros: bool = False) -> Any:
    """Product of two polynomials, as floats; leading zeros of concrete factors are cut if asked for."""
    check_arraylike("polymul", a1, a2)
    a1, a2 = promote_dtypes_inexact(a1, a2)
    if trim_leading_zeros:
        message = "polymul: the number of leading zeros must be known; pass trim_leading_zeros=False for traced factors"
        a1, a2 = concrete_or_error(a1, message), concrete_or_error(a2, message)
    if trim_leading_zeros and (a1.size > 1 or a2.size > 1):
        a1, a2 = trim_zeros(a1, trim="f"), trim_zeros(a2, trim="f")
    a1 = a1 if a1.size else lax.full((1,), 0, a2.dtype)
    a2 = a2 if a2.size else lax.full((1,), 0, a1.dtype)
    return convolve(a1, a2, mode="full")


def polydiv(u: Any, v: Any, *, trim_leading_zeros: bool = False) -> tuple[Any, Any]:
    """(quotient, remainder) of two polynomials; leading zeros of the remainder are cut if asked for."""
    check_arraylike("polydiv", u, v)
    if np.ndim(u) == 0 or np.ndim(v) == 0:
        raise TypeError(f"polydiv: expected vectors of coefficients, got shapes {np.shape(u)} and {np.shape(v)}")
    u, v = (atleast_1d(x) for x in promote_dtypes_inexact(u, v))
    if u.ndim != 1 or v.ndim != 1:
        raise ValueError(f"polydiv: expected vectors of coefficients, got shapes {u.shape} and {v.shape}")
    m, n = u.shape[0] - 1, v.shape[0] - 1
    scale = lax.div(lax.full((), 1, v.dtype), lax.index_in_dim(v, 0, 0, keepdims=False))
    if m < n:  # fewer coefficients than the divisor: the quotient is one 0
        q, rest = lax.full((1,), 0, u.dtype), u
    else:
        # A window of n + 1 coefficients goes down u; what multiples of v leave of its first one is the remainder's.
        def step(window: Any, coming: Any) -> tuple[Any, tuple[Any, Any]]:
            digit = lax.mul(scale, lax.index_in_dim(window, 0, 0, keepdims=False))
            left = lax.sub(window, lax.mul(v, broadcast_to(digit, v.shape)))
            following = lax.concatenate([lax.slice_in_dim(left, 1, n + 1), lax.expand_dims(coming, (0,))], 0)
            return following, (digit, lax.index_in_dim(left, 0, 0, keepdims=False))

        first = lax.slice_in_dim(u, 0, n + 1)
        coming = lax.pad(lax.slice_in_dim(u, n + 1, m + 1), const(u, 0), [(0, 1, 0)])
        window, (q, left) = lax.scan(step, first, coming)
        rest = lax.concatenate([left, lax.slice_in_dim(window, 0, n)], 0)
    if trim_leading_zeros:
        rest = concrete_or_error(rest, "polydiv: the number of leading zeros of the remainder must be known")
        rest = trim_zeros(rest, trim="f")
    return q, convert(rest, rest.dtype, is_weak(u))


def polyval(p: Any, x: Any, *, unroll: int = 16) -> Any:
    """Value of a polynomial at x, by Horner's rule."""
    p, x = promote_dtypes(*arrays("polyval", p, x))
    if p.ndim == 0:
        raise IndexError(f"polyval: expected a vector of coefficients, got shape {p.shape}: tuple index out of range")
    if p.dtype == np.bool_:  # sums of truth values are disjunctions, as everywhere
        return convert(polyval(convert(p, np.dtype(np.int32)), convert(x, np.dtype(np.int32)), unroll=unroll), np.bool_)
    shape = broadcast_shapes_of("polyval", [p.shape[1:], x.shape])
    y = lax.full(shape, 0, x.dtype)
    x = broadcast_to(convert(x, x.dtype), shape)
    if p.shape[0] <= unroll:
        for k in range(p.shape[0]):
            y = lax.add(lax.mul(y, x), broadcast_to(convert(lax.index_in_dim(p, k, 0, keepdims=False), x.dtype), shape))
        return y

    def step(acc: Any, coefficient: Any) -> Any:
        return lax.add(lax.mul(acc, x), broadcast_to(coefficient, shape)), None

    return lax.scan(step, y, convert(p, x.dtype), unroll=unroll)[0]


def _check_vector(name: str, p: Any) -> None:
    if np.ndim(p) == 0:
        raise TypeError(f"{name}: argument 'p' must be a vector of coefficients, got a scalar")


def polyder(p: Any, m: int = 1) -> Any:
    """m-th derivative of a polynomial; ValueError for negative m."""
    check_arraylike("polyder", p)
    _check_vector("polyder", p)
    m = static_int(m, "'m' argument of jnp.polyder")
    (p,) = promote_dtypes_inexact(p)
    if m < 0:
        raise ValueError("Order of derivative must be positive")
    if m == 0:
        return p
    n = p.shape[0]
    if m >= n:
        return lax.full((0, *p.shape[1:]), 0, p.dtype)
    # The coefficient of x**k becomes that of x**(k-m), times k (k-1) ... (k-m+1).
    powers = np.arange(n - 1, m - 1, -1, dtype=float)
    factors = np.prod([powers - j for j in range(m)], axis=0).reshape(-1, *(1,) * (p.ndim - 1))
    factors = np.broadcast_to(factors, (n - m, *p.shape[1:]))
    return lax.mul(lax.slice_in_dim(p, 0, n - m, axis=0), make_array(factors, p.dtype))


def polyint(p: Any, m: int = 1, k: Any = None) -> Any:
    """m-th antiderivative of a polynomial with constants k (one, or one for each); ValueError if their number is
    another.
    """
    m = static_int(m, "'m' argument of jnp.polyint")
    if m < 0:
        raise ValueError("Order of integral must be positive (see polyder)")
    check_arraylike("polyint", p, 0 if k is None else k)
    _check_vector("polyint", p)
    p, k = promote_dtypes_inexact(p, 0 if k is None else k)
    k = atleast_1d(k)
    if k.shape[0] == 1:
        k = lax.broadcast_in_dim(lax.squeeze(k, (0,)), (m,), ())
    if k.shape != (m,):
        raise ValueError(f"polyint: argument 'k' must be one constant or {m}, got shape {k.shape}")
    if m == 0:
        return p
    for j in range(m):
        n = p.shape[0]
        p = lax.div(p, make_array(np.arange(n, 0, -1.0), p.dtype)) if n else p
        p = lax.concatenate([p, lax.slice_in_dim(k, j, j + 1, axis=0)], 0)
    return p


def poly(seq_of_zeros: Any) -> Any:
    """Polynomial with these roots, or the characteristic polynomial of a square matrix; ValueError for other shapes."""
    check_arraylike("poly", seq_of_zeros)
    (roots_,) = promote_dtypes_inexact(seq_of_zeros)
    roots_ = atleast_1d(roots_)
    if roots_.size == 0 and roots_.ndim == 1:
        return lax.full((), 1, roots_.dtype)
    if roots_.ndim == 2 and roots_.shape[0] == roots_.shape[1] and roots_.shape[0]:
        roots_ = numpy.linalg.eigvals(roots_)
    if roots_.ndim != 1:
        raise ValueError(f"poly: expected a vector of roots or a square matrix, got shape {roots_.shape}")
    result = lax.full((1,), 1, roots_.dtype)
    for k in range(roots_.shape[0]):
        root = lax.slice_in_dim(roots_, k, k + 1, axis=0)
        zero = const(result, 0)
        shifted = lax.pad(result, zero, [(0, 1, 0)])
        # Multiplied before it is padded: zeros times an infinite root would be NaN.
        scaled = lax.mul(result, broadcast_to(root, result.shape))
        result = lax.sub(shifted, lax.pad(scaled, zero, [(1, 0, 0)]))
    return result


def roots(p: Any, *, strip_zeros: bool = True) -> Any:
    """Roots of a polynomial, as eigenvalues of its companion matrix.

    Leading zeros change how many roots there are, so that traced coefficients need `strip_zeros=False`: then what is
    missing is NaN. Raises ValueError unless p is a vector.
    """
    check_arraylike("roots", p)
    (p,) = promote_dtypes_inexact(p)
    p = atleast_1d(p)
    if p.ndim != 1:
        raise ValueError("Input must be a rank-1 array.")
    n = p.shape[0]
    out = to_complex_dtype(p.dtype)
    if n < 2:
        return lax.full((0,), 0, out)
    if strip_zeros:
        known = np.asarray(
            concrete_or_error(
                p, "roots: the number of leading zeros must be known; pass strip_zeros=False for traced coefficients"
            )
        )
        nonzero = np.flatnonzero(known)
        if nonzero.size == 0:
            return lax.full((0,), 0, out)
        leading, trailing = int(nonzero[0]), n - 1 - int(nonzero[-1])
        core = _companion_roots(lax.slice_in_dim(p, leading, n - trailing, axis=0))
        return lax.concatenate([core, lax.full((trailing,), 0, out)], 0)
    return _roots_padded(p)


def _companion_roots(p: Any) -> Any:
    n = p.shape[0]
    if n < 2:
        return lax.full((0,), 0, to_complex_dtype(p.dtype))
    first = lax.neg(
        lax.div(lax.slice_in_dim(p, 1, n, axis=0), broadcast_to(lax.slice_in_dim(p, 0, 1, axis=0), (n - 1,)))
    )
    below = diag(lax.full((n - 2,), 1, p.dtype), k=-1) if n > 2 else lax.full((1, 1), 0, p.dtype)
    rows = lax.broadcasted_iota(np.dtype(np.int32), (n - 1, n - 1), 0)
    spread = lax.broadcast_in_dim(first, (n - 1, n - 1), (1,))
    return numpy.linalg.eigvals(lax.select(lax.eq(rows, lax.full_like(rows, 0)), spread, below))


def _roots_padded(p: Any) -> Any:
    """Roots with leading zeros moved behind the coefficients, where they only add roots at 0, which become NaN."""
    from pullback.numpy._indexing import rewriting_take

    n = p.shape[0]
    zero = lax.eq(p, lax.full_like(p, 0))
    leading = lax.reduce_sum(convert(lax.cumprod(convert(zero, np.dtype(np.int32)), axis=0), np.dtype(np.int32)), (0,))
    numbers = lax.iota(np.dtype(np.int32), n)
    moved = rewriting_take(p, lax.rem(lax.add(numbers, broadcast_to(leading, (n,))), lax.full_like(numbers, n)))
    found = _companion_roots(moved)
    # Of the roots, those of the smallest modulus are the ones that the moved zeros added.
    size = lax.abs(found)
    order = lax.sort((lax.neg(size), lax.iota(np.dtype(np.int32), n - 1)), num_keys=1, is_stable=True)[1]
    found = rewriting_take(found, order)
    count = lax.sub(lax.full((), n - 1, np.dtype(np.int32)), leading)
    valid = lax.lt(lax.iota(np.dtype(np.int32), n - 1), broadcast_to(count, (n - 1,)))
    return lax.select(valid, found, lax.full_like(found, complex(np.nan, np.nan)))


def polyfit(
    x: Any, y: Any, deg: int, rcond: float | None = None, full: bool = False, w: Any = None, cov: Any = False
) -> Any:
    """Polynomial of a degree that fits points best in the sense of least squares, with weights w of the residuals.

    y may be a matrix of columns. With `full` also residuals, rank, singular values and rcond; with `cov` the
    covariance of the coefficients ('unscaled' without the estimate of the variance).
    """
    check_flags("polyfit", full=full, cov=cov)
    if w is None:
        check_arraylike("polyfit", x, y)
        x, y = promote_dtypes_inexact(x, y)
    else:
        check_arraylike("polyfit", x, y, w)
        x, y, w = promote_dtypes_inexact(x, y, w)
    degree = static_int(deg, "polyfit: argument 'deg'")
    if degree < 0:
        raise ValueError(f"polyfit: argument 'deg' must be 0 or more, got {degree}")
    if x.ndim != 1:
        raise TypeError(f"polyfit: argument 'x' must be a vector, got shape {x.shape}")
    if x.size == 0:
        raise TypeError("polyfit: argument 'x' has no points")
    if y.ndim not in (1, 2):
        raise TypeError(f"polyfit: argument 'y' must have one axis or two, got shape {y.shape}")
    if x.shape[0] != y.shape[0]:
        raise TypeError(f"polyfit: {x.shape[0]} points in 'x', but {y.shape[0]} in 'y'")
    if rcond is None:
        rcond = x.shape[0] * float(dtypes.finfo(x.dtype).eps)
    elif isinstance(rcond, complex):
        raise TypeError(f"polyfit: argument 'rcond' must be real, got {rcond}")
    lhs, rhs = vander(x, degree + 1), y
    if w is not None:
        if w.ndim != 1:
            raise TypeError(f"polyfit: argument 'w' must be a vector of weights, got shape {w.shape}")
        if w.shape[0] != y.shape[0]:
            raise TypeError(f"polyfit: argument 'w' has {w.shape[0]} weights for {y.shape[0]} points")
        lhs = lax.mul(lhs, lax.broadcast_in_dim(w, lhs.shape, (0,)))
        rhs = lax.mul(rhs, lax.broadcast_in_dim(w, rhs.shape, (0,)))
    # Columns of unit length make the system as well conditioned as scaling can.
    scale = lax.sqrt(_sum(lax.mul(lhs, lhs), axis=0))
    lhs = lax.div(lhs, broadcast_to(scale, lhs.shape))
    c, residuals, rank, singular = numpy.linalg.lstsq(lhs, rhs, rcond)
    spread = lax.broadcast_in_dim(scale, c.shape, (0,))
    c = lax.div(c, spread)
    if full:
        return c, residuals, rank, singular, as_array(rcond)
    if cov:
        base = numpy.linalg.inv(dot(lax.transpose(lhs, (1, 0)), lhs))
        base = lax.div(
            base, lax.mul(lax.broadcast_in_dim(scale, base.shape, (0,)), lax.broadcast_in_dim(scale, base.shape, (1,)))
        )
        if cov == "unscaled":
            factor: Any = lax.full((), 1, base.dtype)
        else:
            if x.shape[0] <= degree + 1:
                raise ValueError(
                    f"polyfit: to scale the covariance, more than deg + 1 = {degree + 1} points are needed, got "
                    f"{x.shape[0]}; cov='unscaled' leaves it as it is"
                )
            factor = lax.div(residuals, const(residuals, x.shape[0] - (degree + 1)))
            factor = lax.squeeze(factor, (0,)) if factor.ndim == 1 and y.ndim == 1 else factor
        if y.ndim == 1:
            return c, lax.mul(base, broadcast_to(factor, base.shape))
        shape = (*base.shape, factor.size)
        return c, lax.mul(lax.broadcast_in_dim(base, shape, (0, 1)), broadcast_to(factor, shape))
    return c
