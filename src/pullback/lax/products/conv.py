"""Convolutions: conv_general_dilated and what is made of it.

    out[n, f, o] = sum over c, k of rhs[f, c, k] * lhs'[n, c, o * stride + k * rhs_dilation - low]

`lhs'` is the lhs with lhs_dilation - 1 zeros between its elements; features and batch may come in groups. Rules first
bring operands into the order (batch, feature, space), (out feature, in feature, space), which moves nothing in
memory.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from pullback.core import hooks
from pullback.core.lowering import Nest
from pullback.lax.movement.shape import inverse_permutation
from pullback.lax.products.conv_shapes import (
    ConvDimensionNumbers,
    _conv_shape,
    conv_dimension_numbers,
    dilated,
    window_count,
)
from pullback.lax.records.families import *
from pullback.lax.records.nests import loops
from pullback.lax.records.sums import product

__all__ = ["conv_general_dilated_p"]

Array = Any


def _windows(
    x: np.ndarray,
    window: Sequence[int],
    strides: Sequence[int],
    padding: Any,
    base: Sequence[int],
    dilation: Sequence[int],
    fill: Any,
) -> np.ndarray:
    """The windows over the last dimensions: x[..., o, k] by strides, after dilating and padding with `fill`."""
    lead = x.ndim - len(window)
    config = ((0, 0, 0),) * lead + tuple((lo, hi, d - 1) for (lo, hi), d in zip(padding, base))
    from pullback.lax.movement.joining import pad_p

    x = np.ascontiguousarray(pad_p.reference(x, np.asarray(fill, x.dtype), padding_config=config))
    counts = [window_count(n, dilated(k, d), s, 0, 0) for n, k, s, d in zip(x.shape[lead:], window, strides, dilation)]
    steps = x.strides
    return np.lib.stride_tricks.as_strided(
        x,
        (*x.shape[:lead], *counts, *window),
        (
            *steps[:lead],
            *[st * s for st, s in zip(steps[lead:], strides)],
            *[st * d for st, d in zip(steps[lead:], dilation)],
        ),
        writeable=False,
    )


def _conv_reference(
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
    spec, g, bg = dimension_numbers, feature_group_count, batch_group_count
    dtype = lhs.dtype if preferred_element_type is None else np.dtype(preferred_element_type)
    wide = np.dtype(np.float32) if dtypes.kind_of(dtype) == "f" and dtype.itemsize < 4 else dtype
    x = np.transpose(lhs, spec.lhs_spec).astype(wide)
    w = np.transpose(rhs, spec.rhs_spec).astype(wide)
    n = x.ndim - 2
    view = _windows(x, w.shape[2:], window_strides, padding, lhs_dilation, rhs_dilation, 0)
    counts = view.shape[2 : 2 + n]
    size = math.prod(w.shape[2:])
    groups = g * bg
    # (group, batch, in features, space, window): batch groups split the batch, feature groups the features.
    if bg > 1:
        view = view.reshape(bg, x.shape[0] // bg, *view.shape[1:])
    else:
        view = np.moveaxis(view.reshape(x.shape[0], g, x.shape[1] // g, *view.shape[2:]), 1, 0)
    batch = view.shape[1]
    patches = np.moveaxis(view, 2, 2 + n).reshape(groups, batch * math.prod(counts), w.shape[1] * size)
    kernel = w.reshape(groups, w.shape[0] // groups, w.shape[1] * size)
    out = product(patches, np.swapaxes(kernel, 1, 2)).reshape(groups, batch, *counts, w.shape[0] // groups)
    out = np.moveaxis(np.moveaxis(out, -1, 2), 0, 1).reshape(batch, w.shape[0], *counts)
    return np.transpose(out, inverse_permutation(spec.out_spec)).astype(dtype)


def _conv_jvp(primals, tangents, **params):
    (x, w), (x_dot, w_dot) = primals, tangents
    out = conv_general_dilated_p.bind(x, w, **params)
    out_dot = None if is_zero(x_dot) else conv_general_dilated_p.bind(x_dot, w, **params)
    if not is_zero(w_dot):
        out_dot = add_tangents(out_dot, conv_general_dilated_p.bind(x, w_dot, **params))
    return out, tangent_zero(out) if out_dot is None else out_dot


def _natural(x_shape):
    axes = tuple(range(len(x_shape)))
    return ConvDimensionNumbers(axes, axes, axes)


def _canonical_conv(x, w, params, **changes):
    return conv_general_dilated_p.bind(x, w, **{**params, "dimension_numbers": _natural(x.shape), **changes})


def _ordered(x, spec):
    return x if tuple(spec) == tuple(range(x.ndim)) else lax.transpose_p.bind(x, permutation=tuple(spec))


def _restored(x, spec):
    return _ordered(x, inverse_permutation(spec))


def _conv_transpose(out_bar, x, w, **params):
    if is_linear(x) == is_linear(w):
        raise NotImplementedError(
            "Transpose (reverse-mode) rule of primitive 'conv_general_dilated' needs exactly one linear operand"
        )
    if is_zero(out_bar):
        return [tangent_zero(a) if is_linear(a) else None for a in (x, w)]
    aval = (x if is_linear(x) else w).aval
    # Where results have a wider type than operands, so have the products of their cotangents.
    known = lax.convert(w if is_linear(x) else x, out_bar.dtype)
    bar = _lhs_bar(out_bar, aval.shape, known, params) if is_linear(x) else _rhs_bar(out_bar, known, aval.shape, params)
    bar = lax.convert(bar, aval.dtype)
    return [bar, None] if is_linear(x) else [None, bar]


def _swapped(spec):
    """Axes of a convolution with the first two, those that are not of space, in each other's place."""
    return (spec[1], spec[0], *spec[2:])


def _spatial(params, x_shape, w_shape, y_shape):
    """Per spatial dimension: extents of the dilated lhs, rhs and strided out, low padding."""
    spec = params["dimension_numbers"]
    for i, j, k, s, (low, _), ld, rd in zip(
        spec.lhs_spec[2:],
        spec.rhs_spec[2:],
        spec.out_spec[2:],
        params["window_strides"],
        params["padding"],
        params["lhs_dilation"],
        params["rhs_dilation"],
    ):
        yield dilated(x_shape[i], ld), dilated(w_shape[j], rd), dilated(y_shape[k], s), low


def _lhs_bar(y, x_shape, w, params):
    """x_bar[i] = sum of out_bar[o] w[k] over o s + k d - low = i: out_bar dilated by s, the kernel reversed, the
    features swapped. Each array keeps the order of its axes, so none is moved.
    """
    if 0 in y.shape:
        return lax.full(x_shape, constant(y, 0))
    spec, bg = params["dimension_numbers"], params["batch_group_count"]
    groups = params["feature_group_count"] * bg
    kernel, kernel_spec = lax.rev(w, tuple(spec.rhs_spec[2:])), _swapped(spec.rhs_spec)
    if groups > 1:  # ((g, o), i) -> ((g, i), o)
        kernel = _ordered(kernel, spec.rhs_spec)
        features, depth, *space = kernel.shape
        kernel = lax.reshape(kernel, (groups, features // groups, depth, *space))
        kernel = lax.transpose(kernel, (0, 2, 1, *range(3, kernel.ndim)))
        kernel = _restored(lax.reshape(kernel, (groups * depth, features // groups, *space)), spec.rhs_spec)
        kernel_spec = spec.rhs_spec
    pads = []
    for n, m, p, low in _spatial(params, x_shape, w.shape, y.shape):
        before = m - 1 - low
        pads.append((before, n - 1 + m - p - before))
    changes = {
        "window_strides": params["lhs_dilation"],
        "padding": tuple(pads),
        "lhs_dilation": params["window_strides"],
        "feature_group_count": groups,
        "batch_group_count": 1,
        "dimension_numbers": ConvDimensionNumbers(spec.out_spec, kernel_spec, spec.lhs_spec),
    }
    out = conv_general_dilated_p.bind(y, kernel, **{**params, **changes})
    if bg > 1:  # (n, (b, c)) -> ((b, n), c)
        out = _ordered(out, spec.lhs_spec)
        n, c, *space = out.shape
        out = lax.reshape(out, (n, bg, c // bg, *space))
        out = lax.reshape(lax.transpose(out, (1, 0, *range(2, out.ndim))), (bg * n, c // bg, *space))
        out = _restored(out, spec.lhs_spec)
    return out


def _rhs_bar(y, x, w_shape, params):
    """w_bar[k] = sum of out_bar[o] x[o s + k d - low]: a convolution of x with out_bar dilated by s, batch and features
    swapped. Each array keeps the order of its axes, so none is moved.
    """
    if 0 in y.shape:
        return lax.full(w_shape, constant(y, 0))
    spec = params["dimension_numbers"]
    pads = []
    for n, m, p, low in _spatial(params, x.shape, w_shape, y.shape):
        pads.append((low, m - 1 - n - low + p))
    changes = {
        "window_strides": params["rhs_dilation"],
        "padding": tuple(pads),
        "rhs_dilation": params["window_strides"],
        "feature_group_count": params["batch_group_count"],
        "batch_group_count": params["feature_group_count"],
        "dimension_numbers": ConvDimensionNumbers(
            _swapped(spec.lhs_spec), _swapped(spec.out_spec), _swapped(spec.rhs_spec)
        ),
    }
    return conv_general_dilated_p.bind(x, y, **{**params, **changes})


def _conv_batch(args, dims, **params):
    """The batch axis joins the batch of lhs, the output features of rhs, or becomes one more group of both."""
    (x, w), (dx, dw) = args, dims
    spec, g, bg = params["dimension_numbers"], params["feature_group_count"], params["batch_group_count"]
    size = batch_size(args, dims)
    if not size:
        shapes = [a.shape if d is None else (*a.shape[:d], *a.shape[d + 1 :]) for a, d in zip(args, dims)]
        out = _conv_shape(*[ShapedArray(shape, a.dtype) for shape, a in zip(shapes, args)], **params)
        return hooks.zeros(ShapedArray((0, *out.shape), out.dtype)), 0

    def leading(a, d, axes):
        a = move_batch_axis(a, d, 0)
        return lax.transpose(a, (0, *[i + 1 for i in axes]))

    if dw is None:  # ((b, n), ...) -> (b, batch, n)
        x = leading(x, dx, spec.lhs_spec)
        _, n, c, *space = x.shape
        x = lax.reshape(
            lax.transpose(lax.reshape(x, (size, bg, n // bg, c, *space)), (1, 0, 2, 3, *range(4, 4 + len(space)))),
            (bg * size * (n // bg), c, *space),
        )
        out = _canonical_conv(x, _ordered(w, spec.rhs_spec), params)
        out = lax.reshape(out, (size, n // bg, *out.shape[1:]))
    elif dx is None:  # ((g, o), ...) -> (g, batch, o)
        w = leading(w, dw, spec.rhs_spec)
        groups = g * bg
        _, o, i, *space = w.shape
        w = lax.reshape(
            lax.transpose(
                lax.reshape(w, (size, groups, o // groups, i, *space)), (1, 0, 2, 3, *range(4, 4 + len(space)))
            ),
            (groups * size * (o // groups), i, *space),
        )
        out = _canonical_conv(_ordered(x, spec.lhs_spec), w, params)
        n, _, *counts = out.shape
        out = lax.reshape(out, (n, groups, size, o // groups, *counts))
        out = lax.reshape(lax.transpose(out, (2, 0, 1, 3, *range(4, out.ndim))), (size, n, o, *counts))
    else:
        x, w = batch_front(x, dx, size), batch_front(w, dw, size)
        x, w = (
            lax.transpose(x, (0, *[i + 1 for i in spec.lhs_spec])),
            lax.transpose(w, (0, *[i + 1 for i in spec.rhs_spec])),
        )
        o = w.shape[1]
        w = lax.reshape(w, (size * o, *w.shape[2:]))
        if bg > 1:
            n = x.shape[1]
            out = _canonical_conv(lax.reshape(x, (size * n, *x.shape[2:])), w, params, batch_group_count=size * bg)
        else:
            x = lax.transpose(x, (1, 0, *range(2, x.ndim)))
            out = _canonical_conv(
                lax.reshape(x, (x.shape[0], size * x.shape[2], *x.shape[3:])), w, params, feature_group_count=size * g
            )
        out = lax.reshape(out, (out.shape[0], size, o, *out.shape[2:]))
        out = lax.transpose(out, (1, 0, *range(2, out.ndim)))
    inverse = inverse_permutation(spec.out_spec)
    return lax.transpose(out, (0, *[i + 1 for i in inverse])), 0


def _merged(storage: Any, groups: Sequence[Sequence[int]]) -> Any | None:
    """The storage with each group of axes as one axis, or None where strides do not allow it."""
    shape, strides = [], []
    for group in groups:
        axes = [a for a in group if storage.shape[a] != 1]
        for a, b in itertools.pairwise(axes):
            if storage.strides[a] != storage.strides[b] * storage.shape[b]:
                return None
        shape.append(math.prod(storage.shape[a] for a in group))
        strides.append(storage.strides[axes[-1]] if axes else 1)
    return type(storage)(storage.buffer, storage.offset, tuple(shape), tuple(strides))


def _conv_emit(ctx):
    """Per image and group, the windows as a matrix, and a product with the kernel."""
    b, p = ctx.b, ctx.params
    spec, g, bg = p["dimension_numbers"], p["feature_group_count"], p["batch_group_count"]
    x, w = ctx.operand(0).transposed(spec.lhs_spec), ctx.operand(1).transposed(spec.rhs_spec)
    out = ctx.result(0).transposed(spec.out_spec)
    if out.size == 0:
        return
    if x.size == 0 or w.size == 0:
        ctx.fill(ctx.result(0), 0)
        return
    if ctx.convolve(out, x, w, p):
        return
    wide = {"f16": "f32", "bf16": "f32"}.get(out.dtype, out.dtype)
    groups = g * bg
    images, features = out.shape[0], w.shape[0] // groups
    depth, window, counts = w.shape[1], w.shape[2:], out.shape[2:]
    area, volume = math.prod(counts), depth * math.prod(window)
    patches = ctx.temporary(wide, (depth, *window, *counts))
    kernel = ctx.temporary(wide, w.shape)
    loops(
        b,
        w.shape,
        lambda i: ctx.store(kernel, i, b.convert(ctx.load(w, i), wide) if w.dtype != wide else ctx.load(w, i)),
    )
    kernel = kernel.reshaped((groups, features, volume))
    direct = _merged(out, ((0,), (1,), tuple(range(2, out.ndim)))) if out.dtype == wide else None
    product: Any = None if direct is not None else ctx.temporary(wide, (features, area))

    def one(index):
        image, group = index
        row = b.op("add", b.op("mul", group, images), image) if bg > 1 else image

        def patch(i):
            c, k, o = i[0], i[1 : 1 + len(window)], i[1 + len(window) :]
            channel = b.op("add", b.op("mul", group, depth), c) if g > 1 else c
            place, inside = [], None
            for kk, oo, s, (low, _), ld, rd, size in zip(
                k, o, p["window_strides"], p["padding"], p["lhs_dilation"], p["rhs_dilation"], x.shape[2:]
            ):
                at = b.op("sub", b.op("add", b.op("mul", oo, s), b.op("mul", kk, rd)), low)
                tests = []
                if ld > 1:
                    tests.append(b.op("eq", b.op("floormod", at, ld), 0))
                    at = b.op("floordiv", at, ld)
                tests += [b.op("ge", at, 0), b.op("lt", at, size)]
                place.append(at)
                for test in tests:
                    inside = test if inside is None else b.op("and", inside, test)
            value = ctx.load(x, (row, channel, *place))
            value = b.convert(value, wide) if x.dtype != wide else value
            ctx.store(patches, i, value if inside is None else b.select(inside, value, b.const(wide, 0)))

        loops(b, patches.shape, patch)
        matrix = patches.reshaped((volume, area))
        first = b.op("mul", group, features)
        if direct is not None:
            ctx.matmul(direct.slice((image, first, 0), (1, features, area)).at(0), kernel.at(group), matrix)
        else:
            ctx.matmul(product, kernel.at(group), matrix)
            grid = product.reshaped((features, *counts))
            target = out.slice((image, first, *[0] * len(counts)), (1, features, *counts)).at(0)
            loops(
                b,
                target.shape,
                lambda i: ctx.store(
                    target, i, b.convert(ctx.load(grid, i), out.dtype) if out.dtype != wide else ctx.load(grid, i)
                ),
            )

    loops(b, (images, groups), one, "sequential")


def _conv_operations(eqn) -> int:
    """A multiplication and an addition for each weight of a feature."""
    w = eqn.invars[1].aval
    return 2 * w.size // max(w.shape[eqn.params["dimension_numbers"].rhs_spec[0]], 1)


def _conv_cases(rng):
    def case(x, w, strides, pads, ld, rd, numbers=None, g=1, bg=1):
        return Case(
            (rng.normal(size=x).astype(np.float32), rng.normal(size=w).astype(np.float32)),
            {
                "window_strides": strides,
                "padding": pads,
                "lhs_dilation": ld,
                "rhs_dilation": rd,
                "feature_group_count": g,
                "batch_group_count": bg,
                "dimension_numbers": conv_dimension_numbers(x, w, numbers),
                "precision": None,
                "preferred_element_type": None,
            },
            tolerance=1e-4,
        )

    return [
        case((2, 3, 5), (4, 3, 2), (1,), ((0, 0),), (1,), (1,)),
        case((2, 2, 5, 4), (3, 2, 3, 2), (2, 1), ((1, 1), (0, 1)), (1, 1), (1, 1)),
        case((1, 2, 4, 4), (2, 2, 2, 2), (1, 2), ((2, 1), (-1, 2)), (2, 1), (1, 2)),
        case((2, 5, 4, 2), (3, 2, 2, 3), (1, 1), ((1, 1), (0, 0)), (1, 1), (1, 1), ("NHWC", "HWIO", "NHWC")),
        case((2, 4, 5), (6, 2, 3), (1,), ((1, 1),), (1,), (1,), g=2),
        case((4, 3, 5), (6, 3, 2), (1,), ((0, 0),), (1,), (1,), bg=2),
    ]


conv_general_dilated_p = Primitive(
    "conv_general_dilated",
    doc="Convolution with strides, padding, dilation and groups.",
    abstract_eval=_conv_shape,
    reference=_conv_reference,
    jvp=_conv_jvp,
    transpose=_conv_transpose,
    batch=_conv_batch,
    lower=Nest(_conv_emit, strided=True, operations=_conv_operations),
    traits={"product", "quicker compiled"},
    samples=Samples(ulp=64, cases=_conv_cases),
)
