"""Folds by a function of the user's, as the reductions they are: with lanes, threads, and what they share loops with.

    reduce(x, places; nan-free max with its place, from -inf, 2^31 - 1)    fold over the rows, like argmax

The function is documented to be associative and the start to be its neutral element, which is tried on numbers. What
starts elsewhere, or has anything in it that is not elementwise, stays a loop in the order of the elements.

    top_k(x, 1)    the place of the largest key, where keys lie in the order of top_k
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.compiler.graph.simplify.rewrite import Rewriter, Rule
from pullback.compiler.graph.structure.ordering import largest_by_keys
from pullback.core.avals import ShapedArray
from pullback.core.jaxpr import ClosedJaxpr, JaxprEqn, Literal
from pullback.core.lowering import Elementwise, Reduction
from pullback.lax.records.compiler_made import compiler_primitive
from pullback.lax.reductions.computations import evaluate_reference
from pullback.util import dtypes

TRIED = 200  # tuples of numbers


def _shape(*avals: Any, axes: tuple[int, ...], jaxpr: ClosedJaxpr, starts: tuple[Any, ...]) -> list[ShapedArray]:
    kept = tuple(n for a, n in enumerate(avals[0].shape) if a not in axes)
    return [ShapedArray(kept, aval.dtype) for aval in avals]


def _reference(*arrays: np.ndarray, axes: tuple[int, ...], jaxpr: ClosedJaxpr, starts: tuple[Any, ...]) -> list:
    ndim = arrays[0].ndim
    kept = [a for a in range(ndim) if a not in axes]
    shape = tuple(arrays[0].shape[a] for a in kept)
    rows = [np.transpose(x, (*axes, *kept)).reshape(-1, *shape) for x in arrays]
    found = [np.full(shape, start, x.dtype) for start, x in zip(starts, arrays)]
    for k in range(rows[0].shape[0]):
        found = evaluate_reference(jaxpr, *found, *[x[k] for x in rows])
    return found


def _init(ctx: Any) -> tuple:
    return tuple(
        ctx.b.const(dtypes.short_name(aval.dtype), start) for aval, start in zip(ctx.in_avals, ctx.params["starts"])
    )


def _merge(ctx: Any, left: Any, right: Any) -> tuple:
    b, closed = ctx.b, ctx.params["jaxpr"]
    env = dict(zip(closed.jaxpr.invars, (*left, *right)))
    env.update(zip(closed.jaxpr.constvars, closed.consts))

    def read(atom: Any) -> Any:
        value = np.asarray(atom.val) if isinstance(atom, Literal) else env[atom]
        return b.const(dtypes.short_name(atom.aval.dtype), value.item()) if isinstance(value, np.ndarray) else value

    before = b.out_dtype
    for eqn in closed.jaxpr.eqns:
        b.out_dtype = dtypes.short_name(eqn.outvars[0].aval.dtype)
        env[eqn.outvars[0]] = eqn.primitive.lower.scalar(b, *map(read, eqn.invars), **eqn.params)
    b.out_dtype = before
    return tuple(map(read, closed.jaxpr.outvars))


fold_p = compiler_primitive(
    "fold",
    doc="reduce by a function whose neutral element is known.",
    abstract_eval=_shape,
    reference=_reference,
    lower=Reduction(init=_init, element=lambda ctx, operands, index: tuple(operands), merge=_merge),
    multiple_results=True,
    traits={"reduction"},
)


def _reduce(r: Rewriter, eqn: JaxprEqn) -> Any:
    """A fold by an elementwise function that starts at its neutral element."""
    n = len(eqn.invars) // 2
    operands, inits, closed = eqn.invars[:n], eqn.invars[n:], eqn.params["jaxpr"]
    starts = [x for x in map(r.constant, inits) if x is not None]
    kinds = [dtypes.kind_of(init.aval.dtype) for init in inits]
    if len(starts) < n or any(kind not in "fiub" for kind in kinds) or not operands[0].aval.size:
        return None
    if not all(
        isinstance(inner.primitive.lower, Elementwise) and "elementwise" in inner.primitive.traits
        for inner in closed.jaxpr.eqns
    ):
        return None
    if any(np.shape(c) for c in closed.consts) or not _is_neutral(closed, starts, [r.scalar(x) for x in operands]):
        return None
    return r.emit(
        fold_p,
        *operands,
        axes=tuple(sorted(eqn.params["dimensions"])),
        jaxpr=closed,
        starts=tuple(start.item() for start in starts),
    )


def _is_neutral(closed: ClosedJaxpr, starts: list[np.ndarray], known: list[Any]) -> bool:
    """Whether the fold of the start and what comes of any numbers, or of the known ones, is that, on either side, to
    rounding; NaNs, as of inf - inf in the function, say nothing.
    """
    rng = np.random.default_rng(0)
    begin = [np.full(TRIED, start, start.dtype) for start in starts]
    tried = [
        _numbers(start.dtype, rng) if number is None else np.full(TRIED, number, start.dtype)
        for start, number in zip(starts, known)
    ]
    with np.errstate(all="ignore"):
        for _ in range(3):
            if not (_leaves(closed, begin, tried, tried) and _leaves(closed, tried, begin, tried)):
                return False
            tried = evaluate_reference(closed, *tried, *[np.roll(x, 1) for x in tried])
    return True


def _leaves(closed: ClosedJaxpr, left: list, right: list, wanted: list) -> bool:
    """Whether the function of `left` and `right` is `wanted`."""
    for found, number in zip(evaluate_reference(closed, *left, *right), wanted):
        near = found == number
        if dtypes.kind_of(number.dtype) == "f":
            rounding = 8 * float(dtypes.finfo(number.dtype).eps)
            near |= (found != found) | (np.abs(found - number) <= rounding * np.abs(number))
        if not near.all():
            return False
    return True


def _numbers(dtype: Any, rng: np.random.Generator) -> np.ndarray:
    """Numbers of a type in any order, its extremes among them."""
    if dtype == np.bool_:
        return rng.integers(0, 2, TRIED).astype(bool)
    if dtypes.kind_of(dtype) in "iu":
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        found = rng.integers(low, high, TRIED, dtype, endpoint=True)
        found[::4] = rng.integers(0, 100, len(found[::4]))
        ends: list[Any] = [low, low + 1, high - 1, high, 0, 1]
    else:
        found = (rng.standard_normal(TRIED) * 10.0 ** rng.integers(-3, 4, TRIED)).astype(dtype)
        ends = [-np.inf, np.inf, 0, -1, 1]
    found[: len(ends)] = ends
    return rng.permutation(found)


def _largest(r: Rewriter, eqn: JaxprEqn) -> Any:
    """The largest element and its place are two reductions."""
    x, axis = eqn.invars[0], eqn.params["axis"] % max(eqn.invars[0].aval.ndim, 1)
    if eqn.params["k"] != 1 or dtypes.kind_of(x.aval.dtype) not in "iuf" or not x.aval.size:
        return None
    if dtypes.kind_of(x.aval.dtype) == "f":
        return largest_by_keys(r, eqn)
    value = r.emit("reduce_max", x, axes=(axis,))
    place = r.emit("argmax", x, axes=(axis,), index_dtype=np.dtype(np.int32))
    return [r.reshape(found, out.aval.shape) for found, out in zip((value, place), eqn.outvars)]


FOLD_RULES: dict[str, tuple[Rule, ...]] = {"reduce": (_reduce,), "top_k": (_largest,)}
