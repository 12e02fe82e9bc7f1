"""The convolutions that users call: general, transposed, local, by patches; and the shapes they give."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

from pullback.core.dimensions import index as size_of
from pullback.lax.collectives.sharding import out_placed
from pullback.lax.movement.shape import inverse_permutation
from pullback.lax.movement.window_slices import stacked_windows
from pullback.lax.products.conv import *
from pullback.lax.products.conv import _restored
from pullback.lax.products.conv_shapes import *
from pullback.lax.products.conv_shapes import check_ranks, check_strides, dilated, window_count
from pullback.lax.products.dot import canonical_precision
from pullback.lax.records.families import *
from pullback.util.static import check_truth

__all__ = [
    "conv",
    "conv_general_dilated",
    "conv_general_dilated_local",
    "conv_general_dilated_patches",
    "conv_general_shape_tuple",
    "conv_shape_tuple",
    "conv_transpose",
    "conv_transpose_shape_tuple",
    "conv_with_general_padding",
]

Array = Any

# MAX_CHOICES of loops/passes/unroll.py, which is not imported for it: programs found on disk need no compiler.
UNROLLED = 64


def _ints(values):
    return tuple([size_of(v) for v in values])


def conv_general_dilated(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: Any,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Convolution (without reversing the kernel) of lhs with rhs.

    padding: 'SAME', 'SAME_LOWER', 'VALID' or (low, high) per spatial dimension; dimension_numbers: strings such as
    ('NHWC', 'HWIO', 'NHWC'), or None for NCHW, OIHW, NCHW. Raises TypeError and ValueError for shapes that don't fit.
    """
    lhs, rhs = as_arrays("conv_general_dilated", lhs, rhs)
    check_ranks(lhs.shape, rhs.shape)
    spec = conv_dimension_numbers(lhs.shape, rhs.shape, dimension_numbers)
    params = _params(
        *(lhs.shape, rhs.shape, spec, window_strides, padding, lhs_dilation, rhs_dilation),
        *(feature_group_count, batch_group_count, precision, preferred_element_type),
    )
    return out_placed("conv_general_dilated", conv_general_dilated_p.bind(lhs, rhs, **params), out_sharding)


def _params(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    spec: ConvDimensionNumbers,
    window_strides: Sequence[int],
    padding: Any,
    lhs_dilation: Sequence[int] | None,
    rhs_dilation: Sequence[int] | None,
    feature_group_count: int,
    batch_group_count: int,
    precision: Any,
    preferred_element_type: Any,
) -> dict[str, Any]:
    """What users say of a convolution as parameters of the primitive; ValueError for what does not fit."""
    n = len(lhs_shape) - 2
    lhs_dilation = (1,) * n if lhs_dilation is None else _ints(lhs_dilation)
    rhs_dilation = (1,) * n if rhs_dilation is None else _ints(rhs_dilation)
    window_strides = _ints(window_strides)
    if any(rhs_shape[i] == 0 for i in spec.rhs_spec[2:]):
        raise ValueError(
            f"conv_general_dilated: rhs needs windows that are not empty, got rhs.shape={tuple(rhs_shape)}"
        )
    if isinstance(padding, str):
        if len(window_strides) != n:
            raise ValueError(
                f"conv_general_dilated window_strides must have one entry per spatial dimension ({n}), got "
                f"{window_strides}"
            )
        check_strides(window_strides)
        if any(d != 1 for d in lhs_dilation):
            raise ValueError(
                f"conv_general_dilated: padding={padding!r} does not say how much, with lhs_dilation={lhs_dilation}; "
                "give (low, high) for each spatial dimension, or use conv_transpose"
            )
        sizes = [dilated(lhs_shape[i], d) for i, d in zip(spec.lhs_spec[2:], lhs_dilation)]
        windows = [dilated(rhs_shape[i], d) for i, d in zip(spec.rhs_spec[2:], rhs_dilation)]
        padding = padtype_to_pads(sizes, windows, window_strides, padding)
    pads = tuple([_ints(p) for p in padding])
    for i, d, pair in zip(spec.lhs_spec[2:], lhs_dilation, pads):
        size = dilated(lhs_shape[i], d)
        if isinstance(size, int) and size + sum(pair) < 0:
            raise ValueError(
                f"conv_general_dilated: negative padding takes more than there is: padding={pads} for "
                f"lhs_shape={lhs_shape}, lhs_dilation={lhs_dilation}"
            )
    preferred = (
        None
        if preferred_element_type is None
        else np.dtype(dtypes.check_user_dtype_supported(preferred_element_type, "conv_general_dilated"))
    )
    return {
        "window_strides": window_strides,
        "padding": pads,
        "lhs_dilation": lhs_dilation,
        "rhs_dilation": rhs_dilation,
        "dimension_numbers": spec,
        "feature_group_count": operator.index(feature_group_count),
        "batch_group_count": operator.index(batch_group_count),
        "precision": canonical_precision(precision),
        "preferred_element_type": preferred,
    }


def conv(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: str,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Array:
    """`conv_general_dilated` of NCHW with OIHW."""
    return conv_general_dilated(
        lhs, rhs, window_strides, padding, precision=precision, preferred_element_type=preferred_element_type
    )


def conv_with_general_padding(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: Any,
    lhs_dilation: Sequence[int] | None,
    rhs_dilation: Sequence[int] | None,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Array:
    """`conv_general_dilated` of NCHW with OIHW, with dilations."""
    return conv_general_dilated(
        lhs,
        rhs,
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


def conv_transpose(
    lhs: Any,
    rhs: Any,
    strides: Sequence[int],
    padding: Any,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    transpose_kernel: bool = False,
    precision: Any = None,
    preferred_element_type: Any = None,
    use_consistent_padding: bool = False,
) -> Array:
    """A convolution over an lhs with strides - 1 zeros between elements: the shape of the gradient of a strided
    convolution.

    'SAME' gives size * stride, 'VALID' size * stride + max(kernel - stride, 0). With `transpose_kernel` the kernel is
    reversed and its features swapped, as the gradient has it. dimension_numbers default to channels last.
    """
    check_truth("conv_transpose", use_consistent_padding=use_consistent_padding)
    lhs, rhs = as_arrays("conv_transpose", lhs, rhs)
    n = lhs.ndim - 2
    if n < 0 or rhs.ndim != lhs.ndim:
        raise TypeError(
            f"conv_transpose: arguments 'lhs' and 'rhs' must be of one rank, 2 or more, got {lhs.ndim} and {rhs.ndim}"
        )
    if dimension_numbers is None:
        if n > 3:
            raise ValueError("No 4+ dimensional dimension_number defaults.")
        space = {1: "H", 2: "HW", 3: "HWD", 0: ""}[n]
        dimension_numbers = ("N" + space + "C", space + "IO", "N" + space + "C")
    spec = conv_dimension_numbers(lhs.shape, rhs.shape, dimension_numbers)
    rhs_dilation = (1,) * n if rhs_dilation is None else _ints(rhs_dilation)
    if isinstance(padding, str):
        plain = not use_consistent_padding and all(s == 1 for s in strides)  # which is a convolution
        if padding not in ("SAME", "VALID") and not plain:
            raise ValueError(f"conv_transpose: argument 'padding' must be 'VALID', 'SAME' or pairs, got {padding!r}")
        pads: Any = [] if padding in ("SAME", "VALID") else padding
        for i, s, d in zip(spec.rhs_spec[2:], strides, rhs_dilation) if pads == [] else ():
            k = dilated(rhs.shape[i], d)
            total = k + s - 2 + (max(k - s, 0) if padding == "VALID" else 0)
            low = k - 1 if padding == "VALID" or s > k - 1 else -(-total // 2)
            pads.append((low, total - low))
    elif use_consistent_padding:
        pads = [
            (dilated(rhs.shape[i], d) - 1 - lo, dilated(rhs.shape[i], d) - 1 - hi)
            for i, d, (lo, hi) in zip(spec.rhs_spec[2:], rhs_dilation, padding)
        ]
    else:
        pads = [tuple(p) for p in padding]
    if transpose_kernel:
        rhs = lax.rev(rhs, tuple(spec.rhs_spec[2:]))
        order = list(range(rhs.ndim))
        o, i = spec.rhs_spec[:2]
        order[o], order[i] = order[i], order[o]
        rhs = lax.transpose(rhs, order)
    return conv_general_dilated(
        lhs,
        rhs,
        (1,) * n,
        pads,
        strides,
        rhs_dilation,
        spec,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


def conv_general_dilated_patches(
    lhs: Any,
    filter_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Any,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Array:
    """The windows that a convolution sees, as features: channel-major, then the window in row-major order.

    Elements are moved, not multiplied: one that is not finite is in the windows that see it, and in no other.
    """
    lhs = as_array(lhs, "conv_general_dilated_patches")
    filter_shape = _ints(filter_shape)
    if lhs.ndim != len(filter_shape) + 2:
        raise TypeError(
            f"conv_general_dilated_patches: lhs must have {len(filter_shape) + 2} dimensions for filter_shape "
            f"{filter_shape}, got shape {lhs.shape}"
        )
    spec = conv_dimension_numbers(lhs.shape, (1,) * lhs.ndim, dimension_numbers)
    channels, size = lhs.shape[spec.lhs_spec[1]], math.prod(filter_shape)
    kernel = ShapedArray(_in_order((channels * size, 1, *filter_shape), spec.rhs_spec), lhs.dtype)
    params = _params(
        *(lhs.shape, kernel.shape, spec, window_strides, padding, lhs_dilation, rhs_dilation),
        *(channels, 1, precision, preferred_element_type),
    )
    out = conv_general_dilated_p.abstract_eval(ShapedArray(lhs.shape, lhs.dtype), kernel, **params)
    counts = [out.shape[i] for i in spec.out_spec[2:]]
    if any(isinstance(d, int) and d == 0 for d in out.shape):
        return lax.full(out.shape, 0, out.dtype)
    gaps = [(low, high, d - 1) for (low, high), d in zip(params["padding"], params["lhs_dilation"])]
    x = lax.pad(lax.transpose(lhs, spec.lhs_spec), np.zeros((), lhs.dtype), [(0, 0, 0), (0, 0, 0), *gaps])
    # Windows of up to UNROLLED places are one choice among slices, which is unrolled. Larger ones, and those that do
    # not overlap, are written along one axis after another: fewer slices, and their derivative is sums of few (blocks
    # of 8 x 8: gradient 92 us, 800 by 64 slices).
    apart = all(k <= stride for k, stride in zip(filter_shape, params["window_strides"]))
    strides, dilations = params["window_strides"], params["rhs_dilation"]
    x = stacked_windows(x, filter_shape, strides, dilations, counts, together=not apart and size <= UNROLLED)
    x = lax.reshape(x, (lhs.shape[spec.lhs_spec[0]], channels * size, *counts))
    return lax.convert_element_type(_restored(x, spec.out_spec), out.dtype)


def _in_order(sizes: Sequence[Any], spec: Sequence[int]) -> tuple[Any, ...]:
    """Sizes (feature, feature, space...) in the order that a specification of dimensions says."""
    return tuple([sizes[k] for k in inverse_permutation(spec)])


def conv_general_dilated_local(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: Any,
    filter_shape: Sequence[int],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    precision: Any = None,
) -> Array:
    """A convolution with a kernel of its own at each output position: rhs has the channel-major window as input
    feature.
    """
    lhs, rhs = as_arrays("conv_general_dilated_local", lhs, rhs)
    spec = conv_dimension_numbers(lhs.shape, rhs.shape, dimension_numbers)
    patches = conv_general_dilated_patches(
        lhs,
        filter_shape,
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        ConvDimensionNumbers(spec.lhs_spec, spec.rhs_spec, spec.out_spec),
        precision,
    )
    out_space, rhs_space = tuple(spec.out_spec[2:]), tuple(spec.rhs_spec[2:])
    product = lax.dot_general(
        rhs, patches, (((spec.rhs_spec[1],), (spec.out_spec[1],)), (rhs_space, out_space)), precision
    )
    # (space..., out feature, batch) -> the order of the output
    n = len(out_space)
    places = [0] * product.ndim
    for k, d in enumerate(out_space):
        places[d] = k
    places[spec.out_spec[0]], places[spec.out_spec[1]] = n + 1, n
    return lax.transpose(product, places)


def conv_shape_tuple(
    lhs_shape: Sequence[int], rhs_shape: Sequence[int], strides: Sequence[int], pads: Any, batch_group_count: int = 1
) -> tuple[int, ...]:
    """The shape of a convolution of canonical NCHW and OIHW shapes."""
    pads = padtype_to_pads(lhs_shape[2:], rhs_shape[2:], strides, pads)
    if len(pads) != len(lhs_shape) - 2:
        raise TypeError(
            f"conv_shape_tuple: argument 'pads' must have {len(lhs_shape) - 2} pairs, one for each spatial dimension, "
            f"got {len(pads)}"
        )
    if lhs_shape[0] % batch_group_count:
        raise ValueError(
            f"conv_shape_tuple: the batch size {lhs_shape[0]} is not a multiple of "
            f"batch_group_count={batch_group_count}"
        )
    space = [window_count(n, k, s, lo, hi) for n, k, s, (lo, hi) in zip(lhs_shape[2:], rhs_shape[2:], strides, pads)]
    return (lhs_shape[0] // batch_group_count, rhs_shape[0], *space)


def conv_general_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Any,
    dimension_numbers: Any,
) -> tuple[int, ...]:
    """The shape of a convolution with dimension numbers."""
    lhs, rhs, out = conv_general_permutations(dimension_numbers)
    canonical = conv_shape_tuple([lhs_shape[i] for i in lhs], [rhs_shape[i] for i in rhs], window_strides, padding)
    return tuple(canonical[i] for i in inverse_permutation(out))


def conv_transpose_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Any,
    dimension_numbers: Any,
) -> tuple[int, ...]:
    """The shape of a transposed convolution with dimension numbers."""
    lhs, rhs, out = conv_general_permutations(dimension_numbers)
    x, w = [lhs_shape[i] for i in lhs], [rhs_shape[i] for i in rhs]
    if isinstance(padding, str):
        space = [n * s + (max(k - s, 0) if padding == "VALID" else 0) for n, k, s in zip(x[2:], w[2:], window_strides)]
    else:
        space = [dilated(n, s) + lo + hi - k + 1 for n, k, s, (lo, hi) in zip(x[2:], w[2:], window_strides, padding)]
    return tuple((x[0], w[0], *space)[i] for i in inverse_permutation(out))
