"""The kinds of arguments of `pullback.random`, by which failing calls are explained."""

from __future__ import annotations

from pullback.core.kinds import ARRAY, FLAG, INTEGER, INTEGERS, NESTED, TEXT, Kinds, table
from pullback.core.parameters import COMMON

RANDOM: Kinds = COMMON | table(
    p__n__logits__alpha__df__dfnum__dfden__loc__scale__sigma__lam__mean__cov__left__right__concentration=ARRAY,
    lower__upper__minval__maxval__keys__key_bits_array=ARRAY,
    data__seed=ARRAY,
    replace__independent=FLAG,
    method=TEXT,
    num=INTEGERS,
    unroll__m__d=INTEGER,
)
RANDOM_OWN: dict[str, Kinds] = {
    **{name: table(mode=TEXT) for name in ("bernoulli", "gumbel", "categorical", "choice")},
    "choice": table(axis=INTEGER, a=NESTED, mode=TEXT),
    "orthogonal": table(n=INTEGER),
    "triangular": table(mode=ARRAY),
    "f": table(f=ARRAY),
}
