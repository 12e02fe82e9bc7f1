"""Tangents and cotangents of extrema over sliding windows: each window chooses an element, whose tangent it takes, or
which takes its cotangent.

Measured: gradients of maxima over 2 x 2 and 3 x 3 pixels of 4 x 64 x 64 x 16 take a twentieth of the time that it took
to go from window to window, as their elements meet, and write.
"""

from __future__ import annotations

import functools
from typing import Any

from pullback.core.lowering import Nest
from pullback.lax.records.families import *
from pullback.lax.records.nests import fold, loops
from pullback.lax.reductions.reductions import highest, lowest
from pullback.lax.reductions.window_places import batched_params, place_of, view, window_cases, window_shape
from pullback.loops.ir.types import NP_DTYPE
from pullback.util.record import NamedTuple

__all__ = ["select_and_gather_add_p", "select_and_scatter_add_p", "select_and_scatter_p"]


def _routing_operand(x, select):
    return lowest(x.dtype) if select == "max" else highest(x.dtype)


def _chosen(keys, select, params):
    """For each window, the flat number of its extreme element in the operand (the first), and whether there is one."""
    numbers = np.arange(keys.size, dtype=np.int64).reshape(keys.shape)
    which = view(numbers, -1, **params)
    keyed = view(keys, _routing_operand(keys, select), **params)
    # An element wins over padding also where they are equal.
    order = keyed.astype(np.float64) if keys.dtype.kind not in "iu" else keyed.astype(object)
    present = which >= 0
    better = np.where(present, order, -np.inf if select == "max" else np.inf)
    best = np.argmax(better, -1) if select == "max" else np.argmin(better, -1)
    infinite = ~np.take_along_axis(present, best[..., None], -1)[..., 0]
    best = np.where(infinite, np.argmax(present, -1), best)
    chosen = np.take_along_axis(which, best[..., None], -1)[..., 0]
    return chosen, chosen >= 0


def _gather_shape(x, keys, *, select, **params):
    if x.shape != keys.shape:
        raise TypeError(f"select_and_gather_add: operands must have one shape, got {x.shape} and {keys.shape}")
    return ShapedArray(window_shape("select_and_gather_add", x.shape, **params), x.dtype)


def _gather_reference(x, keys, *, select, **params):
    if 0 in _gather_shape(x, keys, select=select, **params).shape or x.size == 0:
        return np.zeros(_gather_shape(x, keys, select=select, **params).shape, x.dtype)
    chosen, there = _chosen(keys, select, params)
    return np.where(there, x.reshape(-1)[np.where(there, chosen, 0)], np.zeros((), x.dtype))


def _gather_jvp(primals, tangents, **params):
    x, keys = primals
    out = select_and_gather_add_p.bind(x, keys, **params)
    return out, tangent_zero(out) if is_zero(tangents[0]) else select_and_gather_add_p.bind(tangents[0], keys, **params)


def _gather_transpose(out_bar, x, keys, **params):
    return [tangent_zero(x) if is_zero(out_bar) else select_and_scatter_add_p.bind(out_bar, keys, **params), None]


def _routing_batch(p):
    def batch(args, dims, **params):
        size = batch_size(args, dims)
        return p.bind(*[batch_front(x, d, size) for x, d in zip(args, dims)], **batched_params(params, 0)), 0

    return batch


def _find(ctx, index, keys, select, params):
    """The flat number, in a window, of its first extreme element; -1 if nothing is in the window."""
    b = ctx.b
    compare = "gt" if select == "max" else "lt"
    neutral = np.asarray(_routing_operand(np.zeros((), NP_DTYPE[keys.dtype]), select)).item()

    def step(values, offset):
        place, inside = place_of(ctx, params, index, offset, keys.shape)
        best, number = values
        key = ctx.load(keys, place)
        better = b.op("or", b.op(compare, key, best), b.op("lt", number, 0))
        if keys.dtype in ("f16", "bf16", "f32", "f64"):
            better = b.op("or", better, b.op("and", b.op("ne", key, key), b.op("eq", best, best)))
        take = b.let(better if inside is None else b.op("and", inside, better))
        here = b.convert(_flat(b, offset, params["window_dimensions"]), "i32")
        return b.select(take, key, best), b.select(take, here, number)

    start = (b.const(keys.dtype, neutral), b.const("i32", -1))
    return fold(b, params["window_dimensions"], step, start)[1]


def _flat(b, index, shape):
    """The number of an element in row-major order."""
    flat = b.const("i64", 0)
    for i, n in zip(index, shape):
        flat = b.op("add", b.op("mul", flat, n), i) if n != 1 else flat
    return flat


def _gather_emit(ctx):
    b, x, keys, out = ctx.b, ctx.operand(0), ctx.operand(1), ctx.result(0)
    if x.size == 0:
        ctx.fill(out, 0)
        return

    def element(index):
        number = b.let(_find(ctx, index, keys, ctx.params["select"], ctx.params))
        there, left = b.op("ge", number, 0), b.convert(number, "i64")
        offset: list[Any] = []
        for n in reversed(ctx.params["window_dimensions"]):
            offset.insert(0, b.op("floormod", left, n) if n != 1 else b.const("i64", 0))
            left = b.op("floordiv", left, n) if n != 1 else left
        place, _ = place_of(ctx, ctx.params, index, offset, keys.shape)
        ctx.store(out, index, b.select(there, ctx.load(x, tuple(place)), b.const(out.dtype, 0)))

    loops(b, out.shape, element)


def _routing_cases(rng, scatter):
    found = []
    for case in window_cases(rng):
        (keys,), params = case.operands, case.params
        out = window_shape("", keys.shape, **params)
        values = rng.normal(size=out if scatter else keys.shape).astype(np.float32)
        found.append(Case((values, keys), {"select": "max", **params}, derivatives=False))
    return found


select_and_gather_add_p = Primitive(
    "select_and_gather_add",
    doc="The element of one array where a window of another has its extremum.",
    abstract_eval=_gather_shape,
    reference=_gather_reference,
    jvp=_gather_jvp,
    transpose=_gather_transpose,
    lower=Nest(_gather_emit, strided=True),
    traits={"exact"},
    samples=Samples(cases=lambda rng: _routing_cases(rng, False)),
)
select_and_gather_add_p.batch = _routing_batch(select_and_gather_add_p)


def _scatter_shape(source, keys, *, select, **params):
    if source.shape != window_shape("select_and_scatter_add", keys.shape, **params):
        raise TypeError(
            f"select_and_scatter_add: the source of shape {source.shape} does not fit the windows of {keys.shape}"
        )
    return ShapedArray(keys.shape, source.dtype)


def _scatter_reference(source, keys, *, select, **params):
    out = np.zeros(keys.size, source.dtype)
    if source.size and keys.size:
        chosen, there = _chosen(keys, select, params)
        np.add.at(out, chosen[there], source[there])
    return out.reshape(keys.shape)


def _scatter_jvp(primals, tangents, **params):
    source, keys = primals
    out = select_and_scatter_add_p.bind(source, keys, **params)
    return out, tangent_zero(out) if is_zero(tangents[0]) else select_and_scatter_add_p.bind(
        tangents[0], keys, **params
    )


def _scatter_transpose(out_bar, source, keys, **params):
    return [tangent_zero(source) if is_zero(out_bar) else select_and_gather_add_p.bind(out_bar, keys, **params), None]


class _Around(NamedTuple):
    """The windows around the elements of one axis.

    Element (block + base) * stride + rest - low is element rest + step * stride of window block + base - step, for a
    few steps. Where windows have gaps, or the operand, every element of a window is tried instead.
    """

    n: int  # elements
    windows: int
    window: int  # elements of one
    stride: int
    low: int
    dilation: int
    base_dilation: int

    @property
    def plain(self):
        return self.dilation == 1 and self.base_dilation == 1

    @property
    def base(self):
        return self.low // self.stride

    @property
    def blocks(self):
        return (self.n - 1 + self.low) // self.stride - self.base + 1

    @property
    def loops(self):
        """Extents of the loops over elements: blocks, and what is in one."""
        return (self.blocks, self.stride) if self.plain else (self.n, 1)

    @property
    def steps(self):
        return -(-self.window // self.stride) if self.plain else self.window

    def element(self, b, block, rest):
        """(index of the element, tests whether there is such)."""
        if not self.plain:
            return block, []
        before = self.low % self.stride
        at = b.op("add", b.op("mul", block, self.stride), rest) if self.stride != 1 else block
        at = b.op("sub", at, before) if before else at
        tests = [b.op("ge", at, 0)] if before else []
        return at, tests + ([b.op("lt", at, self.n)] if (self.n + self.low) % self.stride else [])

    def around(self, b, block, rest, k):
        """(window, place in it, tests whether these exist) of the k-th window around an element."""
        step = b.op("sub", self.steps - 1, k) if self.steps > 1 else b.const("i64", 0)
        if self.plain:
            place = b.op("add", rest, b.op("mul", step, self.stride)) if self.steps > 1 else rest
            window = b.op("sub", b.op("add", block, self.base), step)
            tests = [b.op("lt", place, self.window)] if self.window % self.stride else []
            before, after = self.base - self.steps + 1 < 0, self.blocks + self.base > self.windows
        else:
            place = step
            start = b.op("add", b.op("mul", block, self.base_dilation), self.low)
            start = b.op("sub", start, b.op("mul", place, self.dilation))
            window = b.op("floordiv", start, self.stride)
            tests = [b.op("eq", b.op("floormod", start, self.stride), 0)]
            before = after = True
        tests += [b.op("ge", window, 0)] if before else []
        return window, place, tests + ([b.op("lt", window, self.windows)] if after else [])


def _scatter_emit(ctx):
    """First each window finds its extreme element, then each element asks the windows that it lies in, in their order:
    neither writes where another may write, so lanes and threads share both."""
    b, source, keys, out = ctx.b, ctx.operand(0), ctx.operand(1), ctx.result(0)
    params = ctx.params
    if keys.size == 0 or source.size == 0:
        ctx.fill(out, 0)
        return
    numbers = ctx.temporary("i32", source.shape)
    loops(b, source.shape, lambda i: ctx.store(numbers, i, _find(ctx, i, keys, params["select"], params)))
    names = ("window_dimensions", "window_strides", "padding", "window_dilation", "base_dilation")
    axes = [
        _Around(n, windows, window, stride, low, dilation, base_dilation)
        for n, windows, window, stride, (low, _), dilation, base_dilation in zip(
            keys.shape, source.shape, *[params[name] for name in names]
        )
    ]
    nothing = b.const(out.dtype, 0)

    def element(index):
        blocks, rests = index[0::2], index[1::2]

        def step(values, steps):
            found = [a.around(b, *each) for a, *each in zip(axes, blocks, rests, steps)]
            window = tuple([w for w, _, _ in found])
            number = b.convert(_flat(b, [place for _, place, _ in found], params["window_dimensions"]), "i32")
            chosen = b.op("eq", ctx.load(numbers, window), number)
            tests = [test for _, _, each in found for test in each]
            value = b.select(_all(b, [*tests, chosen]), ctx.load(source, window), nothing)
            return (b.op("add", values[0], value),)

        total = fold(b, [a.steps for a in axes], step, (nothing,))[0]
        at = [a.element(b, block, rest) for a, block, rest in zip(axes, blocks, rests)]
        places, tests = tuple([place for place, _ in at]), [test for _, each in at for test in each]
        if not tests:
            ctx.store(out, places, total)
            return
        with ctx.if_(_all(b, tests)):
            ctx.store(out, places, total)

    loops(b, [extent for a in axes for extent in a.loops], element)


def _all(b, tests):
    """Whether all of some conditions hold."""
    return functools.reduce(functools.partial(b.op, "and"), tests)


select_and_scatter_add_p = Primitive(
    "select_and_scatter_add",
    doc="Elements added where windows of another array have their extremum.",
    abstract_eval=_scatter_shape,
    reference=_scatter_reference,
    jvp=_scatter_jvp,
    transpose=_scatter_transpose,
    lower=Nest(_scatter_emit, strided=True),
    samples=Samples(ulp=4, cases=lambda rng: _routing_cases(rng, True)),
)
select_and_scatter_add_p.batch = _routing_batch(select_and_scatter_add_p)
select_and_scatter_p = select_and_scatter_add_p
