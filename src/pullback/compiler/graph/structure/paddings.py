"""Sums of arrays that are padded with zeros, and slices of them.

    pad(x)[a:b]                                 =>    x[c:d] with what is left of the padding, or zeros
    (pad(x) + y)[a:b], of slices alone          =>    pad(x)[a:b] + y[a:b], or y[a:b]
    (pad(x, after) + y) + (pad(z, before) + w)  =>    (concatenate(x, z) + y) + w

Derivatives consist of such: a slice's cotangent is padded, and what is sliced several times sums these. That of a roll
is a roll then, and that of an array with a rim of its own rows and columns has no rim. As in any algebra on floats,
-0 + 0 may stay -0, and sums of more than two are added in another order.

Measured (Zen 4): gradients of an energy of neighbours on a torus, padded, 256 x 256: 9.8 us, now
6.2; of seven points of 32 x 32 x 32 in joined arrays 43 and 14.5.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pullback.compiler.graph.simplify.rewrite import Rewriter, Rule
from pullback.compiler.graph.structure.pieces import instead, is_only_sliced, original, sliced
from pullback.core.jaxpr import JaxprEqn

TERMS = 16  # of a sum that is looked at
SUMS = ("add", "sub")


def _slice_of_padded(r: Rewriter, eqn: JaxprEqn) -> Any:
    """A slice of a padded array."""
    made = r.definition(eqn.invars[0], "pad")
    if made is None or eqn.params["strides"] is not None:
        return None
    x, value = made.invars
    first, end, edges = [], [], []
    low, high = eqn.params["start_indices"], eqn.params["limit_indices"]
    for n, m, (before, after, between), a, b in zip(
        x.aval.shape, made.outvars[0].aval.shape, made.params["padding_config"], low, high
    ):
        if between or before < 0 or after < 0:
            if (a, b) != (0, m):
                return None
            first.append(0)
            end.append(n)
            edges.append((before, after, between))
            continue
        from_, to = max(a - before, 0), min(b - before, n)
        if from_ >= to:
            return r.full(eqn.outvars[0].aval, 0) if r.is_scalar(value, 0) else None
        first.append(from_)
        end.append(to)
        edges.append((max(before - a, 0), max(b - before - n, 0), 0))
    return _padded(r, sliced(r, x, first, end, None), value, edges)


def _slice_of_sum(r: Rewriter, eqn: JaxprEqn) -> Any:
    """A slice of a sum with a padded array that is read by slices alone, which hardly overlap."""
    (x,) = eqn.invars
    made = r.definition(x, *SUMS)
    if made is None or eqn.params["strides"] is not None or not is_only_sliced(r, x):
        return None
    if not any(_is_padded(r, term) for term in _terms(r, x, True)) or not _is_cut(r, original(r, x)):
        return None
    part, shape = _cut(r, x, eqn.params["start_indices"], eqn.params["limit_indices"], True), eqn.outvars[0].aval.shape
    # Where the array is only padding, the number that it is added to may be what is left.
    return instead(r, eqn, part if part.aval.shape == shape else r.broadcast(part, shape, ()))


def _cut(r: Rewriter, x: Any, low: Sequence[int], high: Sequence[int], whole: bool = False) -> Any:
    """A slice of x, of each of its terms if it is a sum; a scalar is all of its slices."""
    if not x.aval.shape:
        return x
    made = r.definition(x, *SUMS)
    if made is None or (r.uses[x] > 1 and not whole):
        return sliced(r, x, low, high, None)
    left, right = [_cut(r, term, low, high) for term in made.invars]
    if r.is_scalar(right, 0):
        return left
    if r.is_scalar(left, 0):
        return right if made.primitive.name == "add" else r.emit("neg", right)
    return r.emit(made.primitive, left, right, **made.params)


def _sum(r: Rewriter, eqn: JaxprEqn) -> Any:
    """A sum with two padded arrays, one of which ends where the other begins."""
    x, y = eqn.invars
    terms = [term for term in _terms(r, x) if _is_padded(r, term)]
    for other in _terms(r, y) if terms else ():
        for term in terms:
            joined = _joined(r, term, other)
            if joined is not None:
                left, right = _with(r, x, term, joined), _with(r, y, other, None)
                return instead(r, eqn, left if right is None else r.emit("add", left, right))
    return None


def _terms(r: Rewriter, x: Any, whole: bool = False) -> Iterator[Any]:
    """What a sum consists of, beside what is subtracted; sums that are read several times are not taken apart, but for
    the `whole`."""
    stack, seen = [x], 0
    while stack and seen < TERMS:
        term = stack.pop()
        seen += 1
        made = r.definition(term, *SUMS)
        if made is None or (r.uses[term] > 1 and not (whole and term is x)):
            yield term
        else:
            stack += made.invars[: 2 if made.primitive.name == "add" else 1]


def _with(r: Rewriter, x: Any, term: Any, new: Any) -> Any:
    """A sum with another term instead of one, or without it; None if nothing is left."""
    if x is term:
        return new
    made = r.definition(x, *SUMS)
    if made is None or r.uses[x] > 1:
        return x
    left, right = made.invars
    changed = _with(r, left, term, new)
    if changed is None:
        return right if made.primitive.name == "add" else r.emit("neg", right)
    if changed is left and made.primitive.name == "add":
        right = _with(r, right, term, new)
        if right is None:
            return left
    if changed is left and right is made.invars[1]:
        return x
    return r.emit(made.primitive, changed, right, **made.params)


def _is_padded(r: Rewriter, atom: Any) -> bool:
    """Whether an array is padded with zeros around it."""
    made = r.definition(atom, "pad")
    return (
        made is not None
        and r.is_scalar(made.invars[1], 0)
        and all(min(low, high) >= 0 and not between for low, high, between in made.params["padding_config"])
    )


def _joined(r: Rewriter, x: Any, y: Any) -> Any:
    """The sum of two padded arrays that lie one after the other along an axis, and alike along others; else None."""
    if not _is_padded(r, y):
        return None
    first, second = (r.definition(each, "pad") for each in (x, y))
    assert first is not None and second is not None
    a, b = first.params["padding_config"], second.params["padding_config"]
    axes = [axis for axis, (one, other) in enumerate(zip(a, b)) if tuple(one) != tuple(other)]
    if len(axes) != 1:
        return None
    (axis,) = axes
    parts = [first.invars[0], second.invars[0]]
    if b[axis][0] < a[axis][0]:
        a, b, parts = b, a, parts[::-1]
    if a[axis][0] + parts[0].aval.shape[axis] != b[axis][0]:
        return None
    edges = [*a[:axis], (a[axis][0], b[axis][1], 0), *a[axis + 1 :]]
    return _padded(r, r.emit("concatenate", *parts, dimension=axis), first.invars[1], edges)


def _padded(r: Rewriter, x: Any, value: Any, edges: Sequence[tuple[int, int, int]]) -> Any:
    config = tuple([tuple(edge) for edge in edges])
    return r.emit("pad", x, value, padding_config=config) if any(map(any, config)) else x


def _is_cut(r: Rewriter, x: Any) -> bool:
    """Whether the slices of an array have few more elements than it."""
    known = r.notes.setdefault("cut", {})
    if x not in known:
        total = sum(e.outvars[0].aval.size for e in r.readers.get(x, ()) if e.primitive.name == "slice")
        known[x] = 4 * total <= 5 * x.aval.size
    return known[x]


PADDING_RULES: dict[str, tuple[Rule, ...]] = {"slice": (_slice_of_padded, _slice_of_sum), "add": (_sum,)}
