"""The kinds of arguments of `pullback.nn`, by which failing calls are explained."""

from __future__ import annotations

from pullback.core.kinds import (
    ANY,
    ARRAY,
    FLAG,
    INTEGER,
    INTEGERS,
    NESTED,
    NUMBER,
    SEQUENCE,
    TEXT,
    Kinds,
    choice,
    either,
    table,
)
from pullback.core.parameters import COMMON

NN: Kinds = COMMON | table(
    query__key__value__bias__mask__lhs_scales__rhs_scales__mean__variance__epsilon=ARRAY,
    query_seq_lengths__key_value_seq_lengths__b__alpha__negative_slope=ARRAY,
    scale=NUMBER,
    num_classes=INTEGER,
    is_causal__return_residual__return_sign__approximate=FLAG,
    local_window_size=INTEGERS,
    axis=INTEGERS,
    implementation=TEXT,
    algorithm=TEXT,
)
NN_OWN: dict[str, Kinds] = {
    "logsumexp": table(return_sign=ANY),
    "glu": table(axis=INTEGER),
    "one_hot": table(x=NESTED, axis=either("an integer or the name of an axis", INTEGER, TEXT)),
}
INITIALIZERS: Kinds = COMMON | table(
    scale__stddev__lower__upper__value=NESTED,
    mode=choice("fan_in", "fan_out", "fan_avg", "fan_geo_avg"),
    distribution=choice("normal", "truncated_normal", "uniform"),
    in_axis__out_axis__batch_axis=INTEGERS,
    column_axis=INTEGER,
    shape=SEQUENCE,
)
