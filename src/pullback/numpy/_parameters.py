"""The kinds of arguments of `pullback.numpy`, `numpy.linalg` and `numpy.fft`, by which failing calls are explained."""

from __future__ import annotations

import numpy as np

from pullback.core.kinds import (
    ANY,
    ARRAY,
    ARRAYS,
    DTYPE,
    FLAG,
    FUNCTION,
    INTEGER,
    INTEGERS,
    NESTED,
    NUMBER,
    SEQUENCE,
    TEXT,
    TWO,
    Kind,
    Kinds,
    choice,
    either,
    of_type,
    table,
)
from pullback.core.parameters import COMMON
from pullback.lax import GatherScatterMode

_INDEX_MODE = either("a string or a GatherScatterMode", TEXT, of_type("", GatherScatterMode))
_BINS = either("an integer, a string or an array of edges", INTEGER, TEXT, NESTED)
_ORDER = either("a norm's order: a number or a name", NUMBER, TEXT)
_REDUCTIONS = (
    "all any amax amin max min mean prod sum std var nanmax nanmin nanmean nanprod nansum nanstd nanvar count_nonzero "
    "median nanmedian ptp average quantile percentile nanquantile nanpercentile flip squeeze expand_dims size roll "
    "trim_zeros gradient"
)

_OF_ANYTHING = "shape size ndim isscalar iterable iscomplexobj isrealobj result_type"
_RANGE = Kind("a pair of numbers", lambda x: np.iterable(x) and NESTED.accepts(x) and len(tuple(x)) == 2)
_RANGES = Kind("a sequence of pairs of numbers", lambda x: np.iterable(x) and all(np.iterable(r) for r in x))
_CONTRACTED = Kind(
    "an integer or a pair of axes or of sequences of axes",
    lambda x: INTEGER.accepts(x) or (np.iterable(x) and len(tuple(x)) == 2 and all(map(INTEGERS.accepts, x))),
    static=True,
)
_LIST = Kind("a sequence of arrays", lambda x: isinstance(x, (list, tuple)) and NESTED.accepts(x))

NUMPY: Kinds = COMMON | table(
    z__val__m__v__p__q__ary__to_end__to_begin__prepend__append__xp__fp__left__right__mean__A__element=ARRAY,
    indices__values__condition__fill_value__x__arr__seq_of_zeros__filt__ar__ar1__ar2__test_elements__min__max=ARRAY,
    rtol__atol__dx__base__start__stop__step__nan__posinf__neginf__fweights__aweights__discont__period=ARRAY,
    decimals__offset__minlength__length__size__count__total_repeat_length__deg__nin__nout__kth__unroll=INTEGER,
    ddof__beta__rcond=NUMBER,
    deg_=FLAG,
    rowvar__bias__density__returned__include_initial__increasing__sparse__copy__invert__wrap__inplace=FLAG,
    return_indices__strip_zeros__trim_leading_zeros__full__suppress_small__assume_unique_indices=FLAG,
    promote_integers__wrap_negative_indices=FLAG,
    bitorder=choice("big", "little"),
    indexing=choice("xy", "ij"),
    trim=TEXT,
    sep=TEXT,
    source__destination__shift__repeats=INTEGERS,
    mask_func=FUNCTION,
    bins=_BINS,
    arrays__tup__condlist__choicelist__xi__arys__args__operands=ARRAYS,
    dims__dimensions=SEQUENCE,
)
_ANY = ANY
_OWN_MODE = {"mode": _INDEX_MODE}
NUMPY_OWN: dict[str, Kinds] = {
    **{name: table(axis=INTEGERS) for name in _REDUCTIONS.split()},
    **dict.fromkeys(("take", "take_along_axis", "put", "put_along_axis", "choose"), _OWN_MODE),
    **{name: table(mode=TEXT) for name in ("convolve", "correlate", "ravel_multi_index")},
    **{name: table(mode=either("a string or a function", TEXT, FUNCTION)) for name in ("pad",)},
    **{name: table(x=NESTED, weights=NESTED) for name in ("bincount",)},
    "angle": table(deg=FLAG),
    "array": table(object=NESTED, order=ANY),
    "asarray": table(a=NESTED, order=ANY),
    "full": table(fill_value=NESTED),
    "full_like": table(fill_value=NESTED),
    "gradient": table(f=ARRAY, varargs=NESTED, axis=INTEGERS),
    "fromfunction": table(function=FUNCTION),
    "einsum": table(subscripts=either("a string or an array", TEXT, NESTED), operands=NESTED),
    "einsum_path": table(subscripts=either("a string or an array", TEXT, NESTED), operands=NESTED),
    "isdtype": table(dtype=DTYPE, kind=_ANY),
    "issubdtype": table(a=_ANY, b=_ANY),
    "promote_types": table(a=_ANY, b=_ANY),
    "can_cast": table(from_=_ANY, to=_ANY),
    "piecewise": table(funclist=either("a sequence of functions and numbers", Kind("", np.iterable)), args=_ANY),
    "indices": table(dimensions=SEQUENCE),
    "where": table(size=INTEGER),
    "copy": table(a=NESTED),
    "cov": table(m=ARRAY, ddof=NUMBER, fweights=ARRAY, aweights=ARRAY),
    "tile": table(reps=INTEGERS),
    "polyint": table(k=NESTED),
    "digitize": table(right=ANY),
    "reshape": table(args=INTEGERS),
    "roll": table(shift=NESTED, axis=INTEGERS),
    "repeat": table(repeats=ARRAY),
    **{name: table(a=ANY, x=ANY, y=ANY, element=ANY, args=ANY) for name in _OF_ANYTHING.split()},
    "array_equal": table(a1=ANY, a2=ANY),
    "histogramdd": table(sample=ARRAY, range=_RANGES),
    "histogram2d": table(range=_RANGES),
    **{name: table(range=_RANGE) for name in ("histogram", "histogram_bin_edges")},
    "vectorize": table(excluded=Kind("a set of integers or names", np.iterable), signature=TEXT),
    "apply_over_axes": table(axes=SEQUENCE),
    "array_repr": table(arr=NESTED, max_line_width=INTEGER),
    "array_str": table(a=NESTED, max_line_width=INTEGER),
    "unravel_index": table(shape=INTEGERS),
    "select": table(condlist=_LIST, choicelist=_LIST),
    "broadcast_shapes": table(shapes=INTEGERS),
    "rot90": table(axes=TWO),
    "tensordot": table(axes=_CONTRACTED),
    "delete": table(obj=either("an integer, a slice or an array", NESTED, of_type("", slice))),
    "insert": table(obj=either("an integer, a slice or an array", NESTED, of_type("", slice))),
}
LINALG: Kinds = COMMON | table(x__M=ARRAY, UPLO=choice("L", "U"), n__ind=INTEGER, p__ord=_ORDER, rtol__tol__rcond=ARRAY)
LINALG_OWN: dict[str, Kinds] = {
    "tensordot": table(axes=_CONTRACTED),
    "norm": table(axis=INTEGERS),
    "vector_norm": table(axis=INTEGERS),
    "qr": table(mode=choice("reduced", "complete", "r", "full")),
    "svd": table(subset_by_index=TWO),
}
FFT: Kinds = COMMON | table(n=INTEGER, s__axes=SEQUENCE, d=NUMBER, norm=choice("backward", "ortho", "forward"))
FFT_OWN: dict[str, Kinds] = {name: table(axes=INTEGERS) for name in ("fftshift", "ifftshift")}
