"""The kinds of arguments of `pullback.lax`, by which failing calls are explained."""

from __future__ import annotations

import inspect
from types import FunctionType
from typing import Any

import numpy as np

from pullback.core import Tracer
from pullback.core.kinds import (
    ANY,
    ARRAY,
    ARRAYS,
    DTYPE,
    FLAG,
    FUNCTION,
    INTEGER,
    NESTED,
    NUMBER,
    PADDING,
    PLACING,
    SEQUENCE,
    TEXT,
    TWO,
    Kind,
    Kinds,
    either,
    of_type,
    optional,
    table,
)
from pullback.core.parameters import COMMON
from pullback.lax.movement.gather import GatherDimensionNumbers, GatherScatterMode
from pullback.lax.movement.scatter import ScatterDimensionNumbers
from pullback.util.static import is_hashable


def of_arrays(namespace: dict[str, Any]) -> set[str]:
    """Names of the functions whose arguments are arrays and nothing else."""
    names = set()
    for name, fun in namespace.items():
        if isinstance(fun, FunctionType) and name not in LAX_OWN:
            code = inspect.unwrap(fun).__code__  # a signature takes a hundred times as long
            count = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 4) + bool(code.co_flags & 8)
            if set(code.co_varnames[:count]) <= _ARRAYS | set(code.co_varnames[code.co_argcount : count]) & {
                "accuracy"
            }:
                names.add(name)
    return names


_ARRAYS = frozenset(["a", "b", "x", "y", "q", "m", "min", "max", "operand"])
_STRUCTURE = Kind("ConvDimensionNumbers or three strings or sequences", lambda x: isinstance(x, tuple))
_NUMBERS_OF_DOT = Kind(
    "two pairs of sequences of integers, ((contracted), (batch))",
    lambda x: isinstance(x, (tuple, list)) and len(x) == 2,
)

LAX: Kinds = COMMON | table(
    start_indices__update__updates__init_value__padding_value__pred__on_true__on_false__arr__like_arr=ARRAY,
    values__group_sizes__lhs_scale__rhs_scale__like=ARRAY,
    axes__window_strides__strides__window_dimensions__dims__filter_shape__lhs_shape__rhs_shape=SEQUENCE,
    lhs_dilation__rhs_dilation__base_dilation__window_dilation__limit_indices__sizes__fft_lengths=SEQUENCE,
    operand_shape__in_shape__window_shape__update_shape__reps=SEQUENCE,
    feature_group_count__batch_group_count__slice_size__start_index__limit_index__stride__index=INTEGER,
    k__reduction_dimension__exponent_bits__mantissa_bits__rank__length__num_keys__size__group_offset=INTEGER,
    batch_size__start_dimension__stop_dimension=INTEGER,
    recall_target=NUMBER,
    aggregate_to_topk__transpose_kernel__use_consistent_padding__symmetric=FLAG,
    padding=PADDING,
    sharding=PLACING,
    computation__cond_fun__body_fun__true_fun__false_fun__matvec__solve__tangent_solve__callback=FUNCTION,
    transpose_solve__decomposition=FUNCTION,
    name=TEXT,
    mode=either("a string or a GatherScatterMode", TEXT, of_type("", GatherScatterMode)),
)


def _triples(x: Any) -> bool:
    return isinstance(x, (tuple, list)) and all(isinstance(t, (tuple, list)) and len(t) == 3 for t in x)


def _hashable(x: Any) -> bool:
    return is_hashable(x) and not isinstance(x, Tracer)


_NAMES = Kind("the name of an axis, its number, or a tuple of them", _hashable, static=True)
_COLLECTIVES = "psum pmean pmax pmin all_gather psum_scatter all_to_all ppermute pshuffle pswapaxes pbroadcast pcast"
_LIST = Kind("a sequence of arrays", lambda x: np.ndim(x) > 0 if ARRAY.accepts(x) else ARRAYS.accepts(x))
_GROUPS = Kind(
    "a sequence of sequences of integers",
    lambda x: isinstance(x, (tuple, list)) and all(map(SEQUENCE.accepts, x)),
    static=True,
)
_GATHER = Kind("GatherDimensionNumbers", lambda x: isinstance(x, GatherDimensionNumbers))
_SCATTER = Kind("ScatterDimensionNumbers", lambda x: isinstance(x, ScatterDimensionNumbers))
_FLAGS_OR_MEMBERS = either("True or False, or a sequence of them", FLAG, NESTED)
_TRACED_INDEX = {"index": ARRAY, "start_index": ARRAY}
_BRANCHES = Kind("a sequence of functions", lambda x: isinstance(x, (list, tuple)) and all(map(callable, x)))
_SCATTERS = "scatter scatter_add scatter_apply scatter_max scatter_min scatter_mul scatter_sub"
LAX_OWN: dict[str, Kinds] = {
    **{name: table(dimension_numbers=_SCATTER, scatter_indices=ARRAY) for name in _SCATTERS.split()},
    **{
        name: {**_TRACED_INDEX, "start_indices": ARRAYS, "allow_negative_indices": _FLAGS_OR_MEMBERS}
        for name in [
            "dynamic_slice",
            "dynamic_update_slice",
            "dynamic_slice_in_dim",
            "dynamic_update_slice_in_dim",
            "dynamic_index_in_dim",
            "dynamic_update_index_in_dim",
        ]
    },
    **{name: table(dimension_numbers=_NUMBERS_OF_DOT) for name in ("dot", "dot_general")},
    **{
        name: table(dimension_numbers=_STRUCTURE)
        for name in [
            "conv_general_dilated",
            "conv_general_dilated_local",
            "conv_general_dilated_patches",
            "conv_transpose",
        ]
    },
    "argmax": table(index_dtype=DTYPE),
    "cond": table(true_fun=ANY),  # an operand in its old form, which it knows
    "concatenate": table(operands=ARRAYS),
    "stack": table(operands=ARRAYS),
    "gather": table(dimension_numbers=_GATHER),
    "iota": table(size=INTEGER),
    "reduce": table(operands=ANY, init_values=ANY),
    "slice": table(start_indices=SEQUENCE, strides=SEQUENCE),
    "sort": table(operand=either("an array or a sequence of arrays", ARRAY, ARRAYS)),
    "sort_key_val": table(keys=ARRAY),
    "switch": table(index=ARRAY, branches=_BRANCHES),
    "index_take": table(src=ARRAY, idxs=_LIST, axes=SEQUENCE),
    "integer_pow": table(y=INTEGER),
    "full": table(fill_value=ARRAY),
    "with_sharding_constraint": table(x=ANY),
    "optimization_barrier": table(operand=ANY),
    "pad": table(padding_config=Kind("a sequence of triples of integers (low, high, interior)", _triples)),
    "fori_loop": table(lower__upper=ARRAY, unroll=either("an integer or a flag", INTEGER, FLAG)),
    "scan": table(unroll=either("an integer or a flag", INTEGER, FLAG)),
    "map": table(xs=ANY),
    "slice_in_dim": table(start_index=optional(INTEGER), limit_index=optional(INTEGER)),
    "conv_with_general_padding": table(lhs_dilation=optional(SEQUENCE), rhs_dilation=optional(SEQUENCE)),
    "reduce_window_shape_tuple": table(padding=PADDING),
    **{name: table(x=ANY, axis_name=_NAMES, axis_index_groups=_GROUPS) for name in _COLLECTIVES.split()},
    "axis_index": table(axis_name=_NAMES),
    "axis_size": table(axis_name=_NAMES),
    "broadcast_shapes": table(shapes=SEQUENCE),
    "split": table(sizes=SEQUENCE),
}
LINALG: Kinds = COMMON | table(
    taus__c__pivots__r_matrix__w_vector__a_matrix__c_matrix__dl__d__du=ARRAY,
    permutation_size__max_iterations=INTEGER,
    alpha__beta__eps=NUMBER,
    compute_left_eigenvectors__compute_right_eigenvectors__is_hermitian__sort_eigenvalues=FLAG,
    transpose_a__conjugate_a__perturb_singular__symmetrize_output__left__transpose=FLAG,
    subset_by_index=TWO,
)
