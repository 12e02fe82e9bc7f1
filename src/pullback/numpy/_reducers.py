"""Functions that combine the elements along axes: sums, products, extrema, truth, means and variances.

`_reduce` does what all reducers share: array-like checks, refusal of `out`, axes, `where`, `initial`, `keepdims`, the
dtype of the result. A reducer is then one `_Reduction` and a signature.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from pullback import lax
from pullback.numpy._arguments import (
    Array,
    Tracer,
    arrays,
    as_enabled,
    broadcast_to,
    canonical_axes,
    canonical_axis,
    check_arraylike,
    const,
    convert,
    dtype_of,
    make_array,
    refuse_out,
    to_real_dtype,
)
from pullback.numpy._ufunc_tables import COMPLEXES
from pullback.util import config, dtypes
from pullback.util.record import record
from pullback.util.static import check_flags

_BOOL = np.dtype(bool)
_HALF = frozenset((np.dtype(np.float16), np.dtype(dtypes.bfloat16)))
# Dtypes of which neither sums nor extrema need another type: the short path.
_PLAIN = frozenset(np.dtype(t) for t in (np.float32, np.float64)) | COMPLEXES


@record
class _Reduction:
    """How one reducer differs from the others.

    reduce: lax function (x, axes). combine: binary function that merges `initial` with the result.
    identity: from dtype to the value that changes nothing. accumulates: sums and products, whose small integers are
    widened and whose half floats are computed in float32. empty: whether no element at all is fine.
    """

    name: str
    reduce: Callable[[Any, tuple[int, ...]], Any]
    combine: Callable[[Any, Any], Any]
    identity: Callable[[np.dtype], Any]
    accumulates: bool = False
    truth: bool = False
    empty: bool = True


def _lowest(dtype: np.dtype) -> Any:
    if dtype == _BOOL:
        return False
    if dtypes.issubdtype(dtype, np.integer):
        return int(dtypes.iinfo(dtype).min)
    return complex(-math.inf, -math.inf) if dtype in COMPLEXES else -math.inf


def _highest(dtype: np.dtype) -> Any:
    if dtype == _BOOL:
        return True
    if dtypes.issubdtype(dtype, np.integer):
        return int(dtypes.iinfo(dtype).max)
    return complex(math.inf, math.inf) if dtype in COMPLEXES else math.inf


def _conjunction(x: Any, axes: tuple[int, ...]) -> Any:
    return lax.reduce_and(x, axes)


_SUM = _Reduction(
    "sum", lambda x, axes: lax.reduce_sum(x, axes), lambda a, b: lax.add(a, b), lambda dtype: 0, accumulates=True
)
_PROD = _Reduction(
    "prod", lambda x, axes: lax.reduce_prod(x, axes), lambda a, b: lax.mul(a, b), lambda dtype: 1, accumulates=True
)
_MAX = _Reduction("max", lambda x, axes: lax.reduce_max(x, axes), lambda a, b: lax.max(a, b), _lowest, empty=False)
_MIN = _Reduction("min", lambda x, axes: lax.reduce_min(x, axes), lambda a, b: lax.min(a, b), _highest, empty=False)
_ALL = _Reduction("all", _conjunction, lambda a, b: lax.bitwise_and(a, b), lambda dtype: True, truth=True)
_ANY = _Reduction(
    "any", lambda x, axes: lax.reduce_or(x, axes), lambda a, b: lax.bitwise_or(a, b), lambda dtype: False, truth=True
)

_OF_BOOLEANS = {_SUM.reduce: _ANY, _PROD.reduce: _ALL}  # what sums and products are in booleans


def widened(dtype: np.dtype) -> np.dtype:
    """dtype of sums over a dtype: integers narrower than the default integer are widened to it, booleans count."""
    if dtype == _BOOL:
        return np.dtype(dtypes.canonicalize_dtype(np.int64))
    if dtypes.issubdtype(dtype, np.unsignedinteger):
        wide = np.dtype(dtypes.canonicalize_dtype(np.uint64))
    elif dtypes.issubdtype(dtype, np.integer):
        wide = np.dtype(dtypes.canonicalize_dtype(np.int64))
    else:
        return dtype
    return wide if dtypes.iinfo(dtype).bits < wide.itemsize * 8 else dtype


def _axes(name: str, axis: Any, rank: int) -> tuple[int, ...]:
    """The axes reduced; NameError for text, which would be the name of a mapped axis."""
    if str in map(type, axis if isinstance(axis, (tuple, list)) else (axis,)):
        if name in ("all", "any"):
            raise NotImplementedError(f"{name}: argument 'axis' takes integers, got {axis!r}, the name of an axis")
        raise NameError(f"{name}: argument 'axis' takes integers, got {axis!r}; lax.psum and its kin reduce named axes")
    return canonical_axes(name, axis, rank)


def check_mask(name: str, mask: Any) -> None:
    """ValueError unless `where` is None or boolean."""
    if mask is not None:
        check_arraylike(name, mask)
        if dtype_of(mask) != np.bool_:
            raise ValueError(
                f"{name}: argument 'where' is of dtype {dtype_of(mask)}; accepted are None and masks of booleans"
            )


def _reduce(
    op: _Reduction,
    a: Any,
    axis: Any,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    mask: Any = None,
    widen: bool = True,
) -> Any:
    if out is not None:
        refuse_out(op.name, out)
    if type(keepdims) is not bool or type(widen) is not bool:
        check_flags(op.name, keepdims=keepdims, promote_integers=widen)
    if (
        axis is None
        and dtype is None
        and initial is None
        and mask is None
        and not keepdims
        and isinstance(a, (Array, Tracer))
        and not op.truth
    ):
        aval = a.aval
        if (
            aval.dtype in _PLAIN
            and dtypes.canonicalize_dtype(aval.dtype) == aval.dtype
            and not aval.weak_type
            and (op.empty or aval.size)
        ):
            return op.reduce(a, tuple(range(aval.ndim)))
    a = as_enabled(*arrays(op.name, a))
    if dtype is not None:
        dtype = np.dtype(dtypes.check_user_dtype_supported(dtype, op.name))
    axes = _axes(op.name, axis, a.ndim)
    check_mask(op.name, mask)
    if initial is not None:
        check_arraylike(op.name, initial)
        if np.ndim(initial) != 0:
            raise ValueError(f"{op.name}: argument 'initial' must be a scalar, got shape {np.shape(initial)}")
    if not op.empty and initial is None:
        if 0 in [a.shape[k] for k in axes]:
            raise ValueError(
                f"{op.name}: axes {axes} of a zero-size array {a.shape} hold nothing, and there is no identity to "
                "return instead; pass 'initial'"
            )
        if mask is not None:
            raise ValueError(
                f"{op.name}: pass 'initial' beside 'where': {op.name} has no identity to return if all elements are "
                "masked out"
            )
    if op.truth:
        result_dtype: Any = _BOOL
        work: Any = _BOOL
        # Anything but 0 is True; what is asked of complex numbers so is no conversion, which warns.
        x = lax.ne(a, lax.full_like(a, 0)) if a.dtype.kind == "c" else convert(a, _BOOL)
    else:
        result_dtype = (
            dtype
            if dtype is not None
            else (widened(a.dtype) if op.accumulates and (widen or a.dtype == _BOOL) else a.dtype)
        )
        # Only where the user has not asked for a type is a half-precision sum computed in single precision.
        work = np.dtype(np.float32) if op.accumulates and dtype is None and result_dtype in _HALF else result_dtype
        x = convert(a, work)
        if work == _BOOL:
            op = _OF_BOOLEANS.get(op.reduce, op)
    if mask is not None:
        check_arraylike(op.name, mask)
        (mask,) = arrays(op.name, mask)
        identity = np.asarray(op.identity(np.dtype(work)), work)
        x = lax.select(broadcast_to(convert(mask, np.dtype(bool)), x.shape), x, lax.full_like(x, identity))
    result = op.reduce(x, axes)
    if initial is not None:
        result = op.combine(convert(initial, work), result)
    if work != result_dtype:
        result = convert(result, result_dtype)
    return kept(result, axes) if keepdims else result


def kept(x: Any, axes: tuple[int, ...]) -> Any:
    """x, the result of reducing an array, with the reduced axes at length 1."""
    return lax.expand_dims(x, tuple(sorted(axes))) if axes else x


# ---- sums, products, extrema, truth


def sum(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
    promote_integers: bool = True,
) -> Any:
    """Sum over axes; of booleans as the default integer, of narrow integers unless `promote_integers` is False."""
    return _reduce(_SUM, a, axis, dtype, out, keepdims, initial, where, promote_integers)


def prod(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
    promote_integers: bool = True,
) -> Any:
    """Product over axes; of booleans as the default integer, of narrow integers unless `promote_integers` is False."""
    return _reduce(_PROD, a, axis, dtype, out, keepdims, initial, where, promote_integers)


def max(
    a: Any, axis: Any = None, out: None = None, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Any:
    """Largest element over axes; NaN if there is one. ValueError without elements, and for `where`
    without `initial`.
    """
    return _reduce(_MAX, a, axis, None, out, keepdims, initial, where)


def min(
    a: Any, axis: Any = None, out: None = None, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Any:
    """Smallest element over axes; NaN if there is one. ValueError without elements, and for `where`
    without `initial`.
    """
    return _reduce(_MIN, a, axis, None, out, keepdims, initial, where)


def amax(
    a: Any, axis: Any = None, out: None = None, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Any:
    """Alias of `max`."""
    return max(a, axis, out, keepdims, initial, where)


def amin(
    a: Any, axis: Any = None, out: None = None, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Any:
    """Alias of `min`."""
    return min(a, axis, out, keepdims, initial, where)


def all(a: Any, axis: Any = None, out: None = None, keepdims: bool = False, *, where: Any = None) -> Any:
    """Whether all elements over axes are nonzero."""
    return convert(_reduce(_ALL, a, axis, None, out, keepdims, None, where), np.dtype(np.bool_))


def any(a: Any, axis: Any = None, out: None = None, keepdims: bool = False, *, where: Any = None) -> Any:
    """Whether an element over axes is nonzero."""
    return convert(_reduce(_ANY, a, axis, None, out, keepdims, None, where), np.dtype(np.bool_))


def ptp(a: Any, axis: Any = None, out: None = None, keepdims: bool = False) -> Any:
    """Difference between the largest and the smallest element over axes; TypeError for booleans."""
    refuse_out("ptp", out)
    return lax.sub(max(a, axis, None, keepdims), min(a, axis, None, keepdims))


def count_nonzero(a: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Number of nonzero elements over axes, as the default integer."""
    check_flags("count_nonzero", keepdims=keepdims)
    (a,) = arrays("count_nonzero", a)
    return sum(lax.ne(a, const(a, 0)), axis, np.dtype(dtypes.canonicalize_dtype(np.int64)), None, keepdims)


# ---- means and variances


def _count(shape: tuple[int, ...], axes: tuple[int, ...]) -> int:
    return math.prod(shape[k] for k in axes)


def _work_dtype(dtype: np.dtype) -> np.dtype:
    """Precision of means and variances: half floats are computed in float32."""
    return np.dtype(np.float32) if dtype in _HALF else dtype


def mean(
    a: Any, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False, *, where: Any = None
) -> Any:
    """Arithmetic mean over axes, of integers as the default float; NaN without elements."""
    refuse_out("mean", out)
    a = as_enabled(*arrays("mean", a))
    if dtype is None:
        result_dtype = np.dtype(dtypes.to_inexact_dtype(a.dtype))
    else:
        result_dtype = np.dtype(dtypes.check_user_dtype_supported(dtype, "mean"))
        if result_dtype == _BOOL:
            raise TypeError("mean cannot be computed in booleans: got dtype=bool")
    work = _work_dtype(np.dtype(dtypes.to_inexact_dtype(result_dtype)))
    axes = _axes("mean", axis, a.ndim)
    check_mask("mean", where)
    # A type of integers is computed in, as any other: elements are converted to it, and their sum wraps.
    in_integers = dtype is not None and dtypes.issubdtype(result_dtype, np.integer)
    total = convert(sum(a, axes, result_dtype if in_integers else work, None, keepdims, None, where), work)
    if where is None:
        divisor = make_array(_count(a.shape, axes), work)
    else:
        (mask,) = arrays("mean", where)
        divisor = sum(broadcast_to(convert(mask, np.dtype(bool)), a.shape), axes, to_real_dtype(work), None, keepdims)
        divisor = convert(divisor, work)
    return convert(lax.div(total, divisor), result_dtype)


def _ddof(name: str, ddof: Any, correction: Any) -> Any:
    if dtypes.issubdtype(dtype_of(ddof), np.complexfloating):
        raise TypeError(f"{name}: argument 'ddof' must be real, got {ddof}")
    if correction is None:
        return ddof
    if not isinstance(ddof, int) or ddof != 0:
        raise ValueError(f"{name}: 'correction' is another name of 'ddof'; pass one of the two")
    return correction


def var(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    *,
    where: Any = None,
    mean: Any = None,
    correction: Any = None,
) -> Any:
    """Mean squared distance from the mean over axes, with divisor n - ddof; NaN where that is not positive.

    Of complex numbers the distance is the modulus; the result is real unless dtype is complex. `mean` may be given if
    known, with the reduced axes kept. Raises ValueError if both ddof and correction are given.
    """
    return _var("var", a, axis, dtype, out, _ddof("var", ddof, correction), keepdims, where, mean)


def _var(name: str, a: Any, axis: Any, dtype: Any, out: Any, ddof: Any, keepdims: bool, mask: Any, center: Any) -> Any:
    refuse_out(name, out)
    a = as_enabled(*arrays(name, a))
    work, result_dtype = _variance_dtypes(a.dtype, dtype, name)
    axes = _axes(name, axis, a.ndim)
    check_mask(name, mask)
    x = convert(a, work)
    if center is None:
        center = mean(x, axes, work, None, True, where=mask)
    else:
        (center,) = arrays(name, center)
        center = convert(center, work)
    from pullback.numpy._arguments import promote

    centered = lax.sub(*promote(name, x, center))
    if np.dtype(work).kind == "c":
        squared = lax.add(lax.square(lax.real(centered)), lax.square(lax.imag(centered)))
    else:
        squared = lax.square(centered)
    real_dtype = squared.dtype
    if mask is None:
        count = make_array(_count(a.shape, axes), real_dtype)
    else:
        (mask,) = arrays(name, mask)
        count = sum(broadcast_to(convert(mask, np.dtype(bool)), a.shape), axes, real_dtype, None, keepdims)
    divisor = lax.sub(count, convert(ddof, real_dtype))
    total = sum(squared, axes, real_dtype, None, keepdims, None, mask)
    # Where integers are asked for, what is given is still a float: the default one, weakly typed.
    integers = name == "var" and dtypes.issubdtype(result_dtype, np.integer)
    result = convert(
        lax.div(total, divisor), np.dtype(dtypes.result_type(float)) if integers else result_dtype, integers
    )
    positive = broadcast_to(lax.gt(divisor, const(divisor, 0)), result.shape)
    return lax.select(positive, result, lax.full_like(result, math.nan))


def _is_narrow(dtype: np.dtype) -> bool:
    if dtype == np.bool_:
        return False
    return dtype.itemsize == 1 and (dtypes.kind_of(dtype) == "f" or dtypes.iinfo(dtype).bits < 8)


def _variance_dtypes(dtype: np.dtype, requested: Any, name: str) -> tuple[np.dtype, np.dtype]:
    """(dtype to compute in, dtype of the result) of a variance; ValueError if complex numbers are asked for as real."""
    if requested is not None:
        requested = np.dtype(dtypes.check_user_dtype_supported(requested, name))
        if dtypes.issubdtype(dtype, np.complexfloating) and not dtypes.issubdtype(requested, np.complexfloating):
            raise ValueError(
                f"{name}: argument 'dtype' is {requested}, which is real, for elements of {dtype}; pass a complex "
                "dtype or none"
            )
        if requested == np.bool_:
            raise TypeError(f"{name} cannot be computed in booleans: got dtype={requested}")
        if dtypes.issubdtype(requested, np.integer):  # computed in, as by `mean`: quotients are cut, sums wrap
            return requested, requested
        # Types of 8 and fewer bits have no common type with others: the wider one holds both.
        kinds = sorted((dtype, requested), key=lambda d: (d.itemsize, dtypes.issubdtype(d, np.inexact)))
        apart = dtype != requested and (_is_narrow(dtype) or _is_narrow(requested))
        with config.numpy_dtype_promotion("standard"):  # who asks for a type has said what to convert
            common = kinds[-1] if apart else dtypes.result_type(dtype, requested)
        work = np.dtype(dtypes.to_inexact_dtype(common))
        return _work_dtype(work), requested
    work = np.dtype(dtypes.to_inexact_dtype(dtype))
    return _work_dtype(work), to_real_dtype(work)


def std(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    *,
    where: Any = None,
    mean: Any = None,
    correction: Any = None,
) -> Any:
    """Square root of the variance over axes; arguments as of `var`."""
    if dtype is not None and not dtypes.issubdtype(dtypes.check_user_dtype_supported(dtype, "std"), np.inexact):
        raise ValueError(f"std: argument 'dtype' is {np.dtype(dtype)}; accepted are floating-point and complex types")
    return lax.sqrt(_var("std", a, axis, dtype, out, _ddof("std", ddof, correction), keepdims, where, mean))


# ---- positions of extrema


def _argument(name: str, lax_fn: Callable[..., Any], a: Any, axis: Any, out: Any, keepdims: Any) -> Any:
    refuse_out(name, out)
    (a,) = arrays(name, a)
    if axis is None:
        shape = (1,) * a.ndim
        x, number = lax.reshape(a, (a.size,)), 0
    else:
        number = canonical_axis(name, axis, a.ndim)
        x, shape = a, tuple(1 if k == number else n for k, n in enumerate(a.shape))
    if x.shape[number] == 0:
        raise ValueError(f"attempt to get {name} of an empty sequence")
    result = lax_fn(x, number, np.dtype(dtypes.canonicalize_dtype(np.int64)))
    return lax.reshape(result, shape) if keepdims else result


def argmax(a: Any, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Any:
    """Position of the largest element along an axis (or of all in C order), the first of equals; the first NaN wins."""
    return _argument("argmax", lax.argmax, a, axis, out, keepdims)


def argmin(a: Any, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Any:
    """Position of the smallest element along an axis (or of all in C order), the first of equals;
    the first NaN wins.
    """
    return _argument("argmin", lax.argmin, a, axis, out, keepdims)
