"""The kinds of arguments of `pullback.scipy`, by which failing calls are explained."""

from __future__ import annotations

from pullback.core.kinds import (
    ARRAY,
    FLAG,
    FUNCTION,
    INTEGER,
    INTEGERS,
    NESTED,
    NUMBER,
    SEQUENCE,
    TEXT,
    Kind,
    Kinds,
    either,
    optional,
    table,
)
from pullback.core.parameters import COMMON

_PAIR = Kind("a pair", lambda x: isinstance(x, (tuple, list)) and len(x) == 2)
_WINDOW = Kind(
    "a window's name, a tuple of a name and numbers, or an array",
    lambda x: isinstance(x, (str, tuple)) or NESTED.accepts(x),
)
_DETREND = Kind("'linear', 'constant', a function or False", lambda x: isinstance(x, (str, bool)) or callable(x))

LINALG: Kinds = COMMON | table(
    A__B__C__E__T__Z__c__r__s__b=NESTED,
    a=NESTED,
    n__blocksize__max_squarings__max_iterations=INTEGER,
    scale=TEXT,
    eps__tol=ARRAY,
    full__calc_q__permute_l__conjugate__compute_expm__disp__upper_triangular=FLAG,
    mode__output__kind__side__method__assume_a=TEXT,
    trans=either("0, 1, 2 or 'N', 'T', 'C'", INTEGER, TEXT),
    lu_and_piv=_PAIR._replace(holds_arrays=True),
    c_and_lower=_PAIR,
    select=TEXT,
    eigvals_only=FLAG,
    type=INTEGER,
)
LINALG_OWN: dict[str, Kinds] = {
    "leslie": table(f=ARRAY, s=ARRAY),
    "block_diag": table(arrs=NESTED),
}
SIGNAL: Kinds = COMMON | table(
    in1__in2__Zxx=ARRAY,
    data=NESTED,
    fs=ARRAY,
    nperseg__noverlap__nfft__time_axis__freq_axis=INTEGER,
    axes=INTEGERS,
    mode__method__scaling__average=TEXT,
    type=TEXT,
    window=_WINDOW,
    detrend=_DETREND,
    boundary=either("a string or None", TEXT, FLAG),
    bp=either("an integer or a sequence of integers", INTEGERS),
    y=optional(ARRAY),
    return_onesided__input_onesided=FLAG,
    fillvalue=ARRAY,
)
SPECIAL: Kinds = COMMON | table(
    n__k__N__m__z__v__p__q__theta__phi__lmbda__h=ARRAY, n_iter__d__n_max__series_order=INTEGER, repetition__exact=FLAG
)
SPECIAL_OWN: dict[str, Kinds] = {"bernoulli": table(n=INTEGER), "bessel_jn": table(v=INTEGER)}
FFT: Kinds = COMMON | table(type__n=INTEGER, s__axes=SEQUENCE, norm=TEXT)
STATS: Kinds = COMMON | table(
    k__n__p__q__loc__scale__df__c__kappa__mu__alpha__beta__mean__cov__b__a=ARRAY, nan_policy__method=TEXT, ddof=NUMBER
)
SPARSE: Kinds = COMMON | table(tol__atol=ARRAY, maxiter=ARRAY, restart=INTEGER, solve_method=TEXT)
for _name in ("a", "b", "x"):
    SPARSE = {k: v for k, v in SPARSE.items() if k != _name}
OPTIMIZE: Kinds = table(
    fun=FUNCTION,
    x0=ARRAY,
    args=Kind("a tuple", lambda x: isinstance(x, tuple)),
    method=TEXT,
    tol=NUMBER,
    options=Kind("a dictionary", lambda x: hasattr(x, "keys")),
)
NDIMAGE: Kinds = table(
    input=ARRAY,
    coordinates=Kind("a sequence of arrays", NESTED.accepts, holds_arrays=True),
    order=INTEGER,
    mode=TEXT,
    cval=ARRAY,
)
CLUSTER: Kinds = table(obs__code_book=ARRAY, check_finite=FLAG)
