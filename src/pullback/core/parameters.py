"""What arguments of a name are in all packages; what differs stands in the packages' own tables (`_parameters.py`)."""

from __future__ import annotations

from pullback.core.kinds import (
    ARRAY,
    DTYPE,
    FLAG,
    FUNCTION,
    INTEGER,
    INTEGERS,
    PLACING,
    SEQUENCE,
    SHAPE,
    TEXT,
    table,
)

COMMON = table(
    a__b__x__y__x1__x2__a1__a2__arr__array__operand__lhs__rhs__where__weights__initial__logits__data__image=ARRAY,
    axis__axis1__axis2__axisa__axisb__axisc__dimension__num__n__k__N__M__ndim__ndmin=INTEGER,
    axes=INTEGERS,
    dtype__out_dtype__new_dtype__index_dtype__preferred_element_type=DTYPE,
    new_shape__new_sizes=SHAPE,
    keepdims__reverse__indices_are_sorted__unique_indices__equal_nan__overwrite_input__assume_unique=FLAG,
    overwrite_a__overwrite_b__check_finite__lower__full_matrices__compute_uv__hermitian__antialias=FLAG,
    descending__stable__is_stable__endpoint__retstep__return_index__return_inverse__return_counts=FLAG,
    has_aux__holomorphic__allow_int__symmetrize_input__padded__unit_diagonal__left_side__pivoting=FLAG,
    out_sharding=PLACING,
    method__side__order__casting__norm__kind=TEXT,
    fun__func__func1d__function__f__pyfunc__fn=FUNCTION,
    dimensions__permutation__broadcast_dimensions__slice_sizes=SEQUENCE,
)
