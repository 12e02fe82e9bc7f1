"""Which axis of a convolution plays which part, how it is padded, and which shape its result has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.core.dimensions import index as size_of
from pullback.core.dimensions import is_symbolic, max_dim
from pullback.core.explain import check
from pullback.core.kinds import SEQUENCE
from pullback.lax.records.families import *
from pullback.util.errors import ArgumentError
from pullback.util.record import NamedTuple

__all__ = [
    "ConvDimensionNumbers",
    "ConvGeneralDilatedDimensionNumbers",
    "conv_dimension_numbers",
    "conv_general_permutations",
    "padtype_to_pads",
]

Array = Any
ConvGeneralDilatedDimensionNumbers = Any


class ConvDimensionNumbers(NamedTuple):
    """Places of (batch, feature, space...) in lhs and out, and of (out feature, in feature, space...) in rhs."""

    lhs_spec: Sequence[int]
    rhs_spec: Sequence[int]
    out_spec: Sequence[int]


def conv_general_permutations(dimension_numbers: Sequence[str]) -> tuple[tuple[int, ...], ...]:
    """The permutations from strings such as ('NHWC', 'HWIO', 'NHWC') to (batch, feature, space). Raises TypeError for
    bad strings.
    """
    if len(dimension_numbers) != 3 or not all(isinstance(text, str) for text in dimension_numbers):
        raise TypeError(f"convolution dimension_numbers must be three strings, got {dimension_numbers!r}")
    lhs, rhs, out = dimension_numbers
    for i, (text, letters) in enumerate(((lhs, "NC"), (rhs, "OI"), (out, "NC"))):
        if text.count(letters[0]) != 1 or text.count(letters[1]) != 1:
            raise TypeError(
                f"convolution: dimension_numbers[{i}]={text!r} must have one {letters[0]!r} and one {letters[1]!r}"
            )
        if len(text) != len(set(text)):
            raise TypeError(f"convolution: dimension_numbers[{i}]={text!r} has a character twice")
    if not set(lhs) - set("NC") == set(rhs) - set("OI") == set(out) - set("NC"):
        raise TypeError(
            f"convolution: dimension_numbers {tuple(dimension_numbers)} do not name the same spatial dimensions"
        )
    space = [c for c in rhs if c not in "OI"]
    return (
        tuple(lhs.index(c) for c in "NC") + tuple(lhs.index(c) for c in space),
        tuple(rhs.index(c) for c in "OI") + tuple(rhs.index(c) for c in space),
        tuple(out.index(c) for c in "NC") + tuple(out.index(c) for c in space),
    )


def conv_dimension_numbers(
    lhs_shape: Sequence[int], rhs_shape: Sequence[int], dimension_numbers: Any
) -> ConvDimensionNumbers:
    """Dimension numbers from None (NCHW, OIHW, NCHW), strings, permutations or themselves.

    Raises TypeError for ranks that don't fit and bad strings.
    """
    if isinstance(dimension_numbers, ConvDimensionNumbers):
        return dimension_numbers
    if len(lhs_shape) != len(rhs_shape):
        raise TypeError(f"convolution: 'lhs' and 'rhs' must be of one rank, got {len(lhs_shape)} and {len(rhs_shape)}")
    if dimension_numbers is None:
        natural = tuple(range(len(lhs_shape)))
        return ConvDimensionNumbers(natural, natural, natural)
    if isinstance(dimension_numbers, (list, tuple)):
        if len(dimension_numbers) != 3:
            raise TypeError(f"convolution: dimension_numbers takes 3 strings, got {len(dimension_numbers)}")
        if not all(isinstance(text, str) for text in dimension_numbers):
            raise TypeError(
                "convolution: dimension_numbers takes 3 strings, got values of "
                f"{tuple(type(text).__name__ for text in dimension_numbers)}"
            )
        for i, text in enumerate(dimension_numbers):
            if len(text) != len(lhs_shape):
                raise TypeError(
                    f"convolution: dimension_numbers[{i}]={text!r} must have a character for each dimension of "
                    f"operands of shapes {tuple(lhs_shape)} and {tuple(rhs_shape)}"
                )
        return ConvDimensionNumbers(*conv_general_permutations(dimension_numbers))
    raise TypeError(f"convolution: dimension_numbers takes 3 strings or None, got {type(dimension_numbers)}")


def dilated(n: int, by: int) -> int:
    """The extent of n elements with by - 1 gaps between them."""
    return 0 if n == 0 else (n - 1) * by + 1


def window_count(n: int, window: int, stride: int, low: int, high: int) -> int:
    """How many windows fit into n padded elements."""
    space = n + low + high - window
    if is_symbolic(space):
        return max_dim(space // stride + 1, 0)
    return 0 if space < 0 or (n + low + high) <= 0 else space // stride + 1


def check_ranks(lhs_shape: Sequence[int], rhs_shape: Sequence[int]) -> None:
    """TypeError for operands without a batch and a feature dimension."""
    if len(lhs_shape) == len(rhs_shape) < 2:
        raise TypeError(
            "convolution requires lhs and rhs with a batch, a feature and any number of spatial dimensions, got shapes "
            f"{tuple(lhs_shape)} and {tuple(rhs_shape)}."
        )


def check_strides(strides: Sequence[int]) -> None:
    """ValueError for strides of convolutions that are not positive."""
    if any(s <= 0 for s in strides):
        raise ValueError(f"conv_general_dilated: all elements of window_strides must be positive, got {tuple(strides)}")


def padtype_to_pads(
    in_shape: Sequence[int], window_shape: Sequence[int], window_strides: Sequence[int], padding: Any
) -> list[tuple[int, int]]:
    """Explicit padding of 'SAME', 'SAME_LOWER' or 'VALID'. Raises RuntimeError for other strings."""
    if not isinstance(padding, str):
        raise TypeError(f"padtype_to_pads: argument 'padding' must be 'SAME', 'SAME_LOWER' or 'VALID', got {padding!r}")
    check("padtype_to_pads", SEQUENCE, in_shape=in_shape, window_shape=window_shape, window_strides=window_strides)
    count = max(len(in_shape), len(window_shape), len(window_strides))
    in_shape, window_shape, window_strides = (
        tuple(x) * count if len(x) == 1 else tuple(x) for x in (in_shape, window_shape, window_strides)
    )
    if not len(in_shape) == len(window_shape) == len(window_strides):
        raise ArgumentError(
            "padtype_to_pads: arguments 'in_shape', 'window_shape' and 'window_strides' must be of one length, got "
            f"{in_shape}, {window_shape} and {window_strides}"
        )
    kind = padding.upper()
    if kind == "VALID":
        return [(0, 0)] * len(in_shape)
    if kind not in ("SAME", "SAME_LOWER"):
        raise RuntimeError(f"Unrecognized padding type {padding!r}; accepted are 'VALID', 'SAME' and 'SAME_LOWER'")
    pads = []
    for n, k, s in zip(in_shape, window_shape, window_strides):
        total = max_dim((-(-size_of(n) // size_of(s)) - 1) * size_of(s) + size_of(k) - size_of(n), 0)
        small = total // 2
        pads.append((small, total - small) if kind == "SAME" else (total - small, small))
    return pads


def _conv_shape(
    lhs,
    rhs,
    *,
    window_strides,
    padding,
    lhs_dilation,
    rhs_dilation,
    dimension_numbers,
    feature_group_count=1,
    batch_group_count=1,
    precision=None,
    preferred_element_type=None,
    out_sharding=None,
):
    n = lhs.ndim - 2
    if lhs.ndim != rhs.ndim:
        raise TypeError(f"convolution: 'lhs' and 'rhs' must be of one rank, got {lhs.ndim} and {rhs.ndim}")
    check_ranks(lhs.shape, rhs.shape)
    for name, values in (
        ("window_strides", window_strides),
        ("padding", padding),
        ("lhs_dilation", lhs_dilation),
        ("rhs_dilation", rhs_dilation),
    ):
        if len(values) != n:
            error = TypeError if name == "padding" else ValueError
            raise error(f"conv_general_dilated {name} must have one entry per spatial dimension ({n}), got {values}")
    if any(d <= 0 for d in (*lhs_dilation, *rhs_dilation)):
        raise TypeError(
            f"conv_general_dilated: all elements of lhs_dilation and rhs_dilation must be positive, got {lhs_dilation} "
            f"and {rhs_dilation}"
        )
    check_strides(window_strides)
    check_dtypes("conv_general_dilated", lhs, rhs, tip=False)
    spec = dimension_numbers
    x, w = [lhs.shape[i] for i in spec.lhs_spec], [rhs.shape[i] for i in spec.rhs_spec]
    g, bg = feature_group_count, batch_group_count
    if g < 1 or bg < 1 or (g > 1 and bg > 1):
        raise ValueError(
            f"conv_general_dilated: feature_group_count and batch_group_count must be positive, and at most one above "
            f"1, got {g} and {bg}"
        )
    if x[1] % g or w[1] * g != x[1]:
        raise ValueError(
            f"conv_general_dilated: lhs has {x[1]} features, but feature_group_count={g} groups of rhs take {w[1]} each"
        )
    if w[0] % g:
        raise ValueError(
            f"conv_general_dilated: the {w[0]} output features of rhs do not divide into feature_group_count={g} groups"
        )
    if x[0] % bg or w[0] % bg:
        raise ValueError(
            f"conv_general_dilated: batch_group_count={bg} must divide both the batch size of lhs, {x[0]}, and the "
            f"output features of rhs, {w[0]}"
        )
    space = [
        window_count(dilated(size, ld), dilated(k, rd), s, lo, hi)
        for size, k, s, (lo, hi), ld, rd in zip(x[2:], w[2:], window_strides, padding, lhs_dilation, rhs_dilation)
    ]
    canonical = (x[0] // bg, w[0], *space)
    shape = [0] * lhs.ndim
    for size, i in zip(canonical, spec.out_spec):
        shape[i] = size
    dtype = lhs.dtype if preferred_element_type is None else np.dtype(preferred_element_type)
    _check_element_type(lhs.dtype, dtype)
    return ShapedArray(shape, dtype, preferred_element_type is None and lhs.weak_type and rhs.weak_type)


def _check_element_type(given: np.dtype, preferred: np.dtype) -> None:
    """TypeError unless the preferred type is of the operands' kind (or a float for integers) and no narrower."""
    kinds = {"b": "i", "u": "i"}
    before, after = (kinds.get(k, k) for k in (dtypes.kind_of(given), dtypes.kind_of(preferred)))
    if (before, after) not in (("i", "i"), ("i", "f"), ("f", "f"), ("c", "c")):
        raise TypeError(
            f"convolution: argument 'preferred_element_type' is {preferred}, which cannot hold products of {given}"
        )
    if before == after and preferred.itemsize < given.itemsize:
        raise TypeError(
            f"convolution: argument 'preferred_element_type' is {preferred}, narrower than the operands' {given}"
        )
