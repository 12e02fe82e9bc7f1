"""NumPy-like functions on immutable arrays: `jax.numpy`. This file is the list of what is public."""

import importlib as _importlib
import math as _math
import sys as _sys
from typing import TYPE_CHECKING as _TYPE_CHECKING

from pullback.core import Array as ndarray
from pullback.core.explain import explain_all as _explain_all
from pullback.manual import add_pages as _add_pages
from pullback.manual.numpy import PAGES as _PAGES
from pullback.numpy import _eager, _methods, _parameters, _reducer_methods
from pullback.numpy._comparison import (
    bitwise_and,
    bitwise_count,
    bitwise_invert,
    bitwise_left_shift,
    bitwise_not,
    bitwise_or,
    bitwise_right_shift,
    bitwise_xor,
    equal,
    fmax,
    fmin,
    greater,
    greater_equal,
    invert,
    iscomplex,
    isfinite,
    isinf,
    isnan,
    isneginf,
    isposinf,
    isreal,
    left_shift,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    maximum,
    minimum,
    not_equal,
    right_shift,
)
from pullback.numpy._creation import (
    array,
    asarray,
    copy,
    empty,
    empty_like,
    from_dlpack,
    frombuffer,
    fromfile,
    fromiter,
    fromstring,
    full,
    full_like,
    ones,
    ones_like,
    zeros,
    zeros_like,
)
from pullback.numpy._diagonals import (
    diag,
    diagflat,
    diagonal,
    eye,
    identity,
    trace,
    tri,
    tril,
    triu,
)
from pullback.numpy._dtypes import (
    ComplexWarning,
    astype,
    bfloat16,
    bool_,
    can_cast,
    cdouble,
    character,
    complex64,
    complex128,
    complex_,
    complexfloating,
    csingle,
    double,
    dtype,
    finfo,
    flexible,
    float4_e2m1fn,
    float6_e2m3fn,
    float6_e3m2fn,
    float8_e3m4,
    float8_e4m3,
    float8_e4m3b11fnuz,
    float8_e4m3fn,
    float8_e4m3fnuz,
    float8_e5m2,
    float8_e5m2fnuz,
    float8_e8m0fnu,
    float16,
    float32,
    float64,
    float_,
    floating,
    generic,
    iinfo,
    inexact,
    int1,
    int2,
    int4,
    int8,
    int16,
    int32,
    int64,
    int_,
    integer,
    iscomplexobj,
    isdtype,
    isrealobj,
    isscalar,
    issubdtype,
    iterable,
    ndim,
    number,
    object_,
    promote_types,
    result_type,
    shape,
    signedinteger,
    single,
    size,
    uint,
    uint1,
    uint2,
    uint4,
    uint8,
    uint16,
    uint32,
    uint64,
    unsignedinteger,
)
from pullback.numpy._dtypes import bool_ as bool
from pullback.numpy._exponentials import (
    exp,
    exp2,
    expm1,
    log,
    log1p,
    log2,
    log10,
    logaddexp,
    logaddexp2,
)
from pullback.numpy._join import (
    append,
    array_split,
    block,
    column_stack,
    concat,
    concatenate,
    delete,
    dsplit,
    dstack,
    hsplit,
    hstack,
    insert,
    split,
    stack,
    unstack,
    vsplit,
    vstack,
)
from pullback.numpy._nan_reducers import (
    nanargmax,
    nanargmin,
    nanmax,
    nanmean,
    nanmin,
    nanprod,
    nanstd,
    nansum,
    nanvar,
)
from pullback.numpy._products import (
    cross,
    dot,
    inner,
    kron,
    matmul,
    matvec,
    outer,
    tensordot,
    trapezoid,
    vdot,
    vecdot,
    vecmat,
)
from pullback.numpy._ranges import arange, fromfunction, geomspace, linspace, logspace, vander
from pullback.numpy._reducers import (
    all,
    amax,
    amin,
    any,
    argmax,
    argmin,
    count_nonzero,
    max,
    mean,
    min,
    prod,
    ptp,
    std,
    sum,
    var,
)
from pullback.numpy._running import cumprod, cumsum, cumulative_prod, cumulative_sum, nancumprod, nancumsum
from pullback.numpy._select import (
    allclose,
    argwhere,
    array_equal,
    array_equiv,
    clip,
    compress,
    extract,
    flatnonzero,
    isclose,
    nan_to_num,
    nonzero,
    piecewise,
    select,
    where,
)
from pullback.numpy._shape import (
    atleast_1d,
    atleast_2d,
    atleast_3d,
    broadcast_arrays,
    broadcast_shapes,
    broadcast_to,
    expand_dims,
    flip,
    fliplr,
    flipud,
    ix_,
    matrix_transpose,
    moveaxis,
    permute_dims,
    ravel,
    repeat,
    reshape,
    resize,
    roll,
    rollaxis,
    rot90,
    squeeze,
    swapaxes,
    tile,
    transpose,
    trim_zeros,
)
from pullback.numpy._sorting import (
    argpartition,
    argsort,
    lexsort,
    partition,
    searchsorted,
    sort,
    sort_complex,
)
from pullback.numpy._take import (
    choose,
    diag_indices,
    diag_indices_from,
    fill_diagonal,
    mask_indices,
    place,
    put,
    put_along_axis,
    ravel_multi_index,
    take,
    take_along_axis,
    tril_indices,
    tril_indices_from,
    triu_indices,
    triu_indices_from,
    unravel_index,
)
from pullback.numpy._ufunc_object import (
    frompyfunc,
    ufunc,
)
from pullback.numpy._ufuncs import (
    abs,
    absolute,
    acos,
    acosh,
    add,
    angle,
    arccos,
    arccosh,
    arcsin,
    arcsinh,
    arctan,
    arctan2,
    arctanh,
    around,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    cbrt,
    ceil,
    conj,
    conjugate,
    cos,
    cosh,
    deg2rad,
    degrees,
    divide,
    divmod,
    fabs,
    float_power,
    floor,
    floor_divide,
    fmod,
    hypot,
    imag,
    mod,
    multiply,
    negative,
    positive,
    pow,
    power,
    rad2deg,
    radians,
    real,
    reciprocal,
    remainder,
    rint,
    round,
    sign,
    sin,
    sinc,
    sinh,
    sqrt,
    square,
    subtract,
    tan,
    tanh,
    true_divide,
    trunc,
)
from pullback.util.absent import no_attribute as _no_attribute
from pullback.util.tracebacks import shorten as _shorten

e, pi, inf, nan, newaxis = _math.e, _math.pi, _math.inf, _math.nan, None
# The Euler-Mascheroni constant: the limit of 1 + 1/2 + ... + 1/n - log(n).
euler_gamma = 0.5772156649015329
__array_api_version__ = "2024.12"

_methods.install()


def _public(names: dict) -> dict:
    """These names as they are public: functions that remember plans, say which argument is wrong, and have a page."""
    found = {**names, **_eager.remembered(names), "__name__": __name__}
    # Those called most say themselves what is wrong; a wrapper costs a tenth of a microsecond.
    _explain_all(found, _parameters.NUMPY, _parameters.NUMPY_OWN, skip=("array", "asarray", "from_dlpack"))
    _add_pages(found, _PAGES)
    return found


globals().update(_public(globals()))

# Modules that are imported when one of their names is first asked for: they would take a tenth of an import's time.
_LATE = {
    "_differences": "diff ediff1d gradient unwrap",
    "_einsum": "einsum einsum_path",
    "_float_parts": "copysign frexp gcd heaviside i0 lcm ldexp modf nextafter packbits signbit spacing unpackbits",
    "_functional": "apply_along_axis apply_over_axes vectorize",
    "_grids": "c_ index_exp indices meshgrid mgrid ogrid r_ s_",
    "_io": "array_repr array_str get_printoptions load printoptions save savez set_printoptions",
    "_namespace_info": "__array_namespace_info__",
    "_pad": "pad",
    "_poly": "convolve correlate poly polyadd polyder polydiv polyfit polyint polymul polysub polyval roots",
    "_quantiles": "median nanmedian nanpercentile nanquantile percentile quantile",
    "_sets": "intersect1d isin setdiff1d setxor1d union1d unique unique_all unique_counts unique_inverse unique_values",
    "_statistics": (
        "average bincount corrcoef cov digitize histogram histogram2d histogram_bin_edges histogramdd interp"
    ),
    "_window": "bartlett blackman hamming hanning kaiser",
}
_LATE_MODULES = ("fft", "linalg")
_WHERE = {_name: _module for _module, _names in _LATE.items() for _name in _names.split()}
__all__ = [_name for _name in [*globals(), *_WHERE, *_LATE_MODULES] if not _name.startswith("_")]

if _TYPE_CHECKING:
    from pullback.numpy import fft, linalg
    from pullback.numpy._differences import (
        diff,
        ediff1d,
        gradient,
        unwrap,
    )
    from pullback.numpy._einsum import (
        einsum,
        einsum_path,
    )
    from pullback.numpy._float_parts import (
        copysign,
        frexp,
        gcd,
        heaviside,
        i0,
        lcm,
        ldexp,
        modf,
        nextafter,
        packbits,
        signbit,
        spacing,
        unpackbits,
    )
    from pullback.numpy._functional import (
        apply_along_axis,
        apply_over_axes,
        vectorize,
    )
    from pullback.numpy._grids import (
        c_,
        index_exp,
        indices,
        meshgrid,
        mgrid,
        ogrid,
        r_,
        s_,
    )
    from pullback.numpy._io import (
        array_repr,
        array_str,
        get_printoptions,
        load,
        printoptions,
        save,
        savez,
        set_printoptions,
    )
    from pullback.numpy._namespace_info import __array_namespace_info__ as __array_namespace_info__
    from pullback.numpy._pad import (
        pad,
    )
    from pullback.numpy._poly import (
        convolve,
        correlate,
        poly,
        polyadd,
        polyder,
        polydiv,
        polyfit,
        polyint,
        polymul,
        polysub,
        polyval,
        roots,
    )
    from pullback.numpy._quantiles import (
        median,
        nanmedian,
        nanpercentile,
        nanquantile,
        percentile,
        quantile,
    )
    from pullback.numpy._sets import (
        intersect1d,
        isin,
        setdiff1d,
        setxor1d,
        union1d,
        unique,
        unique_all,
        unique_counts,
        unique_inverse,
        unique_values,
    )
    from pullback.numpy._statistics import (
        average,
        bincount,
        corrcoef,
        cov,
        digitize,
        histogram,
        histogram2d,
        histogram_bin_edges,
        histogramdd,
        interp,
    )
    from pullback.numpy._window import (
        bartlett,
        blackman,
        hamming,
        hanning,
        kaiser,
    )


def __getattr__(name: str):
    try:
        return _found(name)
    except AttributeError as error:
        _shorten(error, _sys._getframe())
        raise


def _found(name: str):
    if name in _LATE_MODULES:
        return _importlib.import_module(f"{__name__}.{name}")
    if name not in _WHERE:
        raise _no_attribute(__name__, name)
    module = _importlib.import_module(f"{__name__}.{_WHERE[name]}")
    for found, value in _public({each: getattr(module, each) for each in _LATE[_WHERE[name]].split()}).items():
        globals().setdefault(found, value)  # another thread may have been here
    return globals()[name]


def __dir__():
    return sorted({*globals(), *_WHERE, *_LATE_MODULES})
