"""Arrays as sums of products over named axes, so that contractions with identities and diagonals cost nothing.

A term is a product of factors, each with a label for every axis; two axes of the term that have one label are equal
wherever it is not zero. The identity is `l l` without factors, diag(d) is `l l` with d[l]; reshaped to (n m, n, m) the
identity is `(n m) n m`, an axis being a list of labels. Derivatives are made of these: forward and reverse mode push
identities through the program. A contraction of two sums is that of each pair of terms,

    sum over j of (diag(s) - s s^T)[i, j] A[j, k]   =   s[i] A[i, k] - s[i] (s^T A)[k]

    kron(a, b)[(i, j), (k, l)] x[(k, l)]             =   a[i, k] x[k, l] b[j, l]

where a contracted label that is still an axis of the result is not summed over at all. Terms are read off the equations
that define an operand, and the result is written as equations of which they can be read again.

Sums are only taken apart where a summand is sparse, so that nothing dense cancels later than before.

Measured: the Jacobian of tanh(Ax) in A (100 x 100, forwards) took 85 ms as a product with an identity of 10,000, now
0.4; that of softmax(Ax + b) backwards 85 ms, now 2. Norms of per-example gradients, which are outer products, are
products of norms: 12 ms, now 3 (256 examples of an MLP 32-128-128-10). Products of matrices that are written as sums,
(x[:, None] * y).sum(-1), take 0.5 to 0.7 of the time of one loop.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence, Set
from dataclasses import replace
from typing import Any

import numpy as np

from pullback.compiler.graph.simplify.rewrite import Rewriter
from pullback.compiler.graph.structure.facts import diagonal
from pullback.compiler.graph.structure.few_results import LONG_CONTRACTION
from pullback.core.jaxpr import JaxprEqn, Literal
from pullback.lax.records.sums import FEW_TERMS
from pullback.util.record import record

MOST_TERMS, MOST_FACTORS, DEPTH = 4, 6, 12
SUMMED = FEW_TERMS  # contracted elements up to which a product is written out as a sum, which fuses with what follows
SIDE = 4  # rows, and columns, that a product of matrices over fewer than LONG_CONTRACTION elements has at least


class Label:
    """The index of one axis, or of a part of one; compared by identity."""

    __slots__ = ("size",)

    def __init__(self, size: int) -> None:
        self.size = size


Axis = tuple[Label, ...]


@record
class Factor:
    """An array, or its reciprocal, with the labels of its axes."""

    atom: Any
    axes: tuple[Axis, ...]
    inverse: bool = False

    @property
    def labels(self) -> list[Label]:
        """All labels in order."""
        return [x for axis in self.axes for x in axis]


@record
class Term:
    """coefficient * the product of the factors, over axes."""

    axes: tuple[Axis, ...]
    factors: tuple[Factor, ...] = ()
    coefficient: float = 1.0

    @property
    def labels(self) -> list[Label]:
        """The labels of all axes in order, those of equal axes several times."""
        return [x for axis in self.axes for x in axis]

    @property
    def is_sparse(self) -> bool:
        """Whether axes are known to be equal where the term is not zero."""
        labels = self.labels
        return len(set(labels)) < len(labels)

    def renamed(self, names: dict[Label, Axis]) -> Term:
        """The term with labels replaced by lists of labels."""
        if not names:
            return self

        def renamed(axes: tuple[Axis, ...]) -> tuple[Axis, ...]:
            return tuple([tuple([y for x in labels for y in names.get(x, (x,))]) for labels in axes])

        factors = tuple([Factor(f.atom, renamed(f.axes), f.inverse) for f in self.factors])
        return Term(renamed(self.axes), factors, self.coefficient)

    def over(self, axes: Sequence[Axis]) -> Term:
        """The same product with other axes."""
        return Term(tuple(axes), self.factors, self.coefficient)


class NotTerms(Exception):
    """An array that is no sum of terms, or of too many."""


# ------------------------------------------------------------------------------------------------------ contractions


def contract(r: Rewriter, eqn: JaxprEqn) -> Any:
    """dot_general with an operand that is zero off a diagonal, or is a product of smaller ones, by Kronecker."""
    x, y = eqn.invars
    out = eqn.outvars[0].aval
    if not x.aval.size or not y.aval.size or out.dtype.kind not in "fc":
        return None
    if not (_may_be_sparse(r) or _joined(r, x) or _joined(r, y)):
        return None
    if not x.aval.dtype == y.aval.dtype == out.dtype:
        return None
    left, right = terms_of(r, x), terms_of(r, y)
    if not any(term.is_sparse for term in (*left, *right)) and not len(left) == len(right) == 1:
        return None
    (cx, cy), (bx, by) = eqn.params["dimension_numbers"]
    try:
        if len(left) * len(right) > MOST_TERMS:
            return None
        found = [_product(s, t, cx, cy, bx, by) for s in _apart(left) for t in _apart(right)]
        dense = out.size * math.prod(x.aval.shape[a] for a in cx)
        work = [_work(axes, term) for axes, term in found]
        if len(work) > 1 and max(work) >= 2 * dense:  # of a summand that is no more than an array
            work.remove(max(work))
        if 2 * sum(work) + out.size > dense:
            return None
        return write(r, [_summed(r, axes, term, eqn.params) for axes, term in found], out)
    except NotTerms:
        return None


def total(r: Rewriter, eqn: JaxprEqn) -> Any:
    """reduce_sum of what is zero off a diagonal, or of a product of arrays without common axes to sum over."""
    x, out = eqn.invars[0], eqn.outvars[0].aval
    if not x.aval.size or out.dtype.kind not in "fc":
        return None
    repeated = out.dtype.itemsize >= 4 and r.uses[x] == 1 and _repeated(r, x) > 1
    if not (repeated or _may_be_sparse(r) or _may_be_outer(r)):
        return None
    found = terms_of(r, x)
    if len(found) > 1 and not any(term.is_sparse for term in found):
        return None  # dense summands may cancel: they are added first
    kept = [a for a in range(x.aval.ndim) if a not in eqn.params["axes"]]
    try:
        rest = [(tuple(term.axes[a] for a in kept), term) for term in found]
        if 2 * sum(_work(axes, term) for axes, term in rest) > x.aval.size:
            return None
        options = {"precision": None, "preferred_element_type": None}
        return write(r, [_summed(r, axes, term, options) for axes, term in rest], out)
    except NotTerms:
        return None


def matrices(r: Rewriter, eqn: JaxprEqn) -> Any:
    """reduce_sum of x[i, k] y[j, k], each repeated along an axis that the other has: a product of matrices."""
    x, out = eqn.invars[0], eqn.outvars[0].aval
    if out.dtype.kind not in "fc" or out.dtype.itemsize < 4 or not x.aval.size or r.uses[x] > 1 or _repeated(r, x) < 2:
        return None
    found = terms_of(r, x)
    if len(found) != 1 or found[0].is_sparse:
        return None
    (term,) = found
    axes = tuple(term.axes[a] for a in range(x.aval.ndim) if a not in eqn.params["axes"])
    kept = {label for axis in axes for label in axis}
    large = sorted(term.factors, key=lambda f: math.prod(label.size for label in f.labels))[-2:]
    if len(large) < 2:
        return None
    a, b = ({label for label in f.labels if label.size != 1} for f in large)
    sizes = [math.prod(label.size for label in labels) for labels in ((a & b) - kept, (a - b) & kept, (b - a) & kept)]
    if sizes[0] <= SUMMED or min(sizes[1:]) < (SIDE if sizes[0] < LONG_CONTRACTION else 2):
        return None
    try:
        return write(r, [_summed(r, axes, term, {"precision": None, "preferred_element_type": None})], out)
    except NotTerms:
        return None


def _joined(r: Rewriter, atom: Any) -> bool:
    """Whether an array is a product of others whose axes were joined."""
    eqn = r.definition(atom, "reshape", "transpose")
    if eqn is None:
        return False
    return r.definition(eqn.invars[0], "mul") is not None or _joined(r, eqn.invars[0])


def _repeated(r: Rewriter, atom: Any) -> int:
    """How many factors of a product are repeated along axes."""
    eqn = r.definition(atom, "mul")
    count = 0
    for operand in () if eqn is None else eqn.invars:
        inner = r.definition(operand, "broadcast_in_dim")
        count += _repeated(r, operand) if inner is None else inner.invars[0].aval.size > 1
    return count


def _may_be_sparse(r: Rewriter) -> bool:
    """Whether the program counts along an axis at all: identities are made so."""
    found = r.notes.get("iota")
    if found is None:
        found = r.notes["iota"] = any(eqn.primitive.name == "iota" for eqn in r.closed.jaxpr.eqns)
    return bool(found)


def _may_be_outer(r: Rewriter) -> bool:
    """Whether the program has an outer product, as the gradient of a linear layer for one example is."""
    found = r.notes.get("outer")
    if found is None:
        eqns = r.closed.jaxpr.eqns
        found = r.notes["outer"] = any(eqn.primitive.name == "dot_general" and _is_outer(eqn) for eqn in eqns)
    return bool(found)


def _is_outer(eqn: JaxprEqn) -> bool:
    (cx, _), (bx, _) = eqn.params["dimension_numbers"]
    return not cx and min(a.aval.ndim for a in eqn.invars) > len(bx)


def _apart(terms: Sequence[Term]) -> Iterator[Term]:
    """The terms with labels of their own."""
    for term in terms:
        names: dict[Label, Axis] = {
            x: (Label(x.size),) for x in (*term.labels, *(y for f in term.factors for y in f.labels))
        }
        yield term.renamed(names)


def _product(
    s: Term, t: Term, cx: Sequence[int], cy: Sequence[int], bx: Sequence[int], by: Sequence[int]
) -> tuple[tuple[Axis, ...], Term]:
    """The axes of the contraction of two terms, and their product, whose other labels are summed over."""
    count = len(s.axes)
    both = Term(s.axes + t.axes, s.factors + t.factors, s.coefficient * t.coefficient)
    if len(both.factors) > MOST_FACTORS:
        raise NotTerms
    for a, c in (*zip(cx, cy), *zip(bx, by)):
        both = _equal(both, a, count + c)
    free_x = [a for a in range(count) if a not in cx and a not in bx]
    free_y = [count + a for a in range(len(t.axes)) if a not in cy and a not in by]
    return tuple(both.axes[a] for a in (*bx, *free_x, *free_y)), both


def _equal(term: Term, a: int, c: int) -> Term:
    """The term with axes a and c made equal."""
    position = 0
    while position < max(len(term.axes[a]), len(term.axes[c])):
        x, y = term.axes[a][position], term.axes[c][position]
        if x is y:
            position += 1
        elif x.size == y.size:
            term = term.renamed({y: (x,)})
            position += 1
        else:
            big, small = (x, y) if x.size > y.size else (y, x)
            term = _split(term, big, small.size)
    return term


def _split(term: Term, label: Label, outer: int) -> Term:
    """A label as two, of which the outer has a size."""
    if label.size % outer:
        raise NotTerms
    return term.renamed({label: (Label(outer), Label(label.size // outer))})


def _components(factors: Sequence[Factor], kept: Set[Label]) -> list[list[Factor]]:
    """The factors that have labels besides `kept`, in lists that share none of those: each is a sum of its own."""
    found: list[tuple[set[Label], list[Factor]]] = []
    for f in factors:
        gone = set(f.labels) - kept
        if not gone:
            continue
        joined = [f]
        for labels, others in [c for c in found if c[0] & gone]:
            found = [c for c in found if c[1] is not others]
            gone |= labels
            joined = [*others, *joined]
        found.append((gone, joined))
    return [members for _, members in found]


def _work(axes: Sequence[Axis], term: Term) -> int:
    """Operations of a product summed over the labels that are no axis, as `_summed` does it."""
    kept = {x for axis in axes for x in axis}
    work = math.prod(x.size for x in {x for f in term.factors for x in f.labels} & kept)
    for members in _components(term.factors, kept):
        parts = [set(f.labels) for f in members]
        while len(parts) > 2 and not any(a <= b for a in parts for b in parts if a is not b):
            first = _first(parts, kept)
            if first is None:
                break
            work += 2 * _size(parts[first[0]] | parts[first[1]])
            pair = [parts.pop(k) for k in reversed(first)]
            parts.append((pair[0] | pair[1]) & kept.union(*parts))
        work += 2 * _size(set().union(*parts))
    return work


def _first(parts: Sequence[Set[Label]], kept: Set[Label]) -> tuple[int, int] | None:
    """The two of several factors, by their labels, whose product is summed first, as it takes least; none of any two
    that have all labels which the others have, too."""
    found: list[tuple[int, int, int]] = []
    for k, j in itertools.combinations(range(len(parts)), 2):
        both = parts[k] | parts[j]
        if both - set(kept).union(*(x for i, x in enumerate(parts) if i not in (k, j))):
            found.append((_size(both), k, j))
    return min(found)[1:] if found else None


def _size(labels: Set[Label]) -> int:
    return math.prod(x.size for x in labels)


def _summed(r: Rewriter, axes: tuple[Axis, ...], term: Term, params: dict[str, Any]) -> Term:
    """The term over fewer axes, summed over the labels that are not among them."""
    kept = {x for axis in axes for x in axis}
    repeated = set(term.labels) - kept - {x for f in term.factors for x in f.labels}
    coefficient = term.coefficient * math.prod(x.size for x in repeated)
    factors = [f for f in term.factors if kept.issuperset(f.labels)]
    factors += [_sum(r, members, kept, params) for members in _components(term.factors, kept)]
    return Term(axes, tuple(factors), coefficient)


def _sum(r: Rewriter, inside: list[Factor], kept: Set[Label], params: dict[str, Any]) -> Factor:
    """The product of factors summed over all labels but `kept`, as a product of two arrays or a sum of one."""
    while len(inside) > 2:  # a factor whose labels another has is multiplied into it
        inside.sort(key=lambda f: math.prod(x.size for x in f.labels))
        small = inside.pop(0)
        for k, large in enumerate(inside):
            if set(small.labels) <= set(large.labels):
                inside[k] = _multiplied(r, [large, small])
                break
        else:
            inside.insert(0, small)
            first = _first([set(f.labels) for f in inside], kept)
            if first is None:
                raise NotTerms
            pair = [inside.pop(k) for k in reversed(first)]
            inside.append(_sum(r, pair, set(kept).union(*(f.labels for f in inside)), params))
    inside = [_multiplied(r, [f]) if f.inverse else f for f in inside]
    parts = [(_flat(r, f), f.labels) for f in inside]
    if any(len(set(labels)) < len(labels) for _, labels in parts):
        raise NotTerms
    for k, (atom, labels) in enumerate(parts):
        others = {x for j, (_, other) in enumerate(parts) if j != k for x in other}
        alone = [x for x in labels if x not in kept and x not in others]
        if alone:
            atom = r.emit("reduce_sum", atom, axes=tuple(map(labels.index, alone)), out_sharding=None)
            parts[k] = atom, [x for x in labels if x not in alone]
    if len(parts) == 1:
        ((result, left),) = parts
    else:
        (x, xs), (y, ys) = parts
        shared = [l for l in xs if l in ys]
        gone = [l for l in shared if l not in kept]
        batch = [l for l in shared if l in kept]
        numbers = tuple((tuple(map(xs.index, ls)), tuple(map(ys.index, ls))) for ls in (gone, batch))
        options = {k: params[k] for k in ("precision", "preferred_element_type")}
        result = r.emit("dot_general", x, y, dimension_numbers=numbers, **options)
        left = [*batch, *(l for l in xs if l not in shared), *(l for l in ys if l not in shared)]
    return Factor(result, tuple((l,) for l in left))


# ----------------------------------------------------------------------------------------------------------- writing


def write(r: Rewriter, terms: Sequence[Term], aval: Any) -> Any:
    """The sum of terms, as equations."""
    result = None
    for term in terms:
        value = _written(r, term, aval)
        result = value if result is None else r.emit("add", result, value)
    return result


def _written(r: Rewriter, term: Term, aval: Any) -> Any:
    labels = term.labels
    first: dict[Label, int] = {}
    for position, x in enumerate(labels):
        first.setdefault(x, position)
    shape = [x.size for x in labels]
    if term.factors:
        product = _multiplied(r, term.factors, list(first))
        places = [first[x] for x in product.labels]
        value = _scaled(r, product.atom, term.coefficient)
        value = r.broadcast(value, shape, places)
    else:
        value = r.full(aval.update(shape=tuple(shape)), term.coefficient)
    for position, x in enumerate(labels):
        if first[x] != position:
            value = _masked(r, value, first[x], position)
    return r.reshape(value, aval.shape)


def _scaled(r: Rewriter, atom: Any, factor: float) -> Any:
    if factor == 1.0:
        return atom
    if factor == -1.0:
        return r.emit("neg", atom)
    return r.emit("mul", atom, Literal(np.asarray(factor).astype(atom.aval.dtype)[()], atom.aval.update(shape=())))


def _masked(r: Rewriter, value: Any, a: int, c: int) -> Any:
    """Zero where the indices along axes a and c differ."""
    shape = tuple(value.aval.shape)
    counts = [r.emit("iota", dtype=np.dtype(np.int32), shape=shape, dimension=axis, sharding=None) for axis in (a, c)]
    return r.emit("select_n", r.emit("eq", *counts), r.full(value.aval, 0), value)


def _flat(r: Rewriter, factor: Factor) -> Any:
    """The array of a factor with one axis for each label."""
    return r.reshape(factor.atom, [x.size for x in factor.labels])


def _multiplied(r: Rewriter, factors: Sequence[Factor], order: Sequence[Label] | None = None) -> Factor:
    """One factor that is the product of several; with all their labels, in the order of `order` or of the first."""
    if any(len(set(f.labels)) < len(f.labels) for f in factors):
        raise NotTerms
    involved = {x for f in factors for x in f.labels}
    labels = [x for x in (order if order is not None else factors[0].labels) if x in involved]
    shape = tuple(x.size for x in labels)
    result = None
    for f in sorted(factors, key=lambda f: f.inverse):
        places = [labels.index(x) for x in f.labels]
        turned = sorted(range(len(places)), key=places.__getitem__)
        atom = r.emit("transpose", _flat(r, f), permutation=tuple(turned))
        atom = r.broadcast(atom, shape, sorted(places))
        if result is None:
            result = atom if not f.inverse else r.emit("div", r.full(atom.aval, 1), atom)
        else:
            result = r.emit("div" if f.inverse else "mul", result, atom)
    return Factor(result, tuple((x,) for x in labels))


# ----------------------------------------------------------------------------------------------------------- reading


def terms_of(r: Rewriter, atom: Any, depth: int = DEPTH) -> list[Term]:
    """The terms of an array; the array itself as the only factor if it has no others."""
    if isinstance(atom, Literal):
        return _leaf(atom)
    memo = r.notes.setdefault("terms", {})
    found = memo.get(atom)
    if found is None:
        try:
            found = _read(r, atom, depth) if depth else None
        except NotTerms:
            found = None
        if found is None or len(found) > MOST_TERMS or all(map(_is_dense, found)) or not all(map(_is_short, found)):
            found = _leaf(atom)
        memo[atom] = found
    return found


def _is_short(term: Term) -> bool:
    return len(term.factors) <= MOST_FACTORS


def _is_dense(term: Term) -> bool:
    """Whether a term says no more of an array than its elements do: all factors but numbers have all axes."""
    count = len(term.labels)
    return not term.is_sparse and bool(count) and all(len(f.labels) == count for f in term.factors if f.labels)


def _leaf(atom: Any) -> list[Term]:
    if isinstance(atom, Literal) and atom.aval.dtype.kind == "f" and np.isfinite(atom.val):
        return [Term((), (), float(atom.val))]
    axes = _axes(atom.aval.shape)
    return [Term(axes, (Factor(atom, axes),))]


def _axes(shape: Sequence[int]) -> tuple[Axis, ...]:
    """New labels for the axes of a shape; none for those of size 1."""
    return tuple((Label(n),) if n != 1 else () for n in shape)


def _read(r: Rewriter, atom: Any, depth: int) -> list[Term] | None:
    eqn = r.definition(atom)
    if eqn is None:
        return None
    params, shape = eqn.params, atom.aval.shape

    def of(k: int) -> list[Term]:
        return terms_of(r, eqn.invars[k], depth - 1)

    match eqn.primitive.name:
        case "convert_element_type":
            pair = diagonal(r, eqn.invars[0])
            return None if pair is None else [_equal(_ones(shape), *pair)]
        case "select_n" if len(eqn.invars) == 3 and r.is_scalar(eqn.invars[1], 0):
            pair = diagonal(r, eqn.invars[0])
            return None if pair is None else [_equal(t, *pair) for t in of(2)]
        case "broadcast_in_dim":
            return [_broadcast(t, shape, params["broadcast_dimensions"]) for t in of(0)]
        case "transpose":
            return [t.over([t.axes[a] for a in params["permutation"]]) for t in of(0)]
        case "reshape" if params.get("dimensions") is None and atom.aval.size:
            return [_reshaped(t, shape) for t in of(0)]
        case "neg":
            return [replace(t, coefficient=-t.coefficient) for t in of(0)]
        case "add" | "sub":
            sign = 1.0 if eqn.primitive.name == "add" else -1.0
            left, right = (_grown(of(k), eqn.invars[k], shape) for k in (0, 1))
            if not any(t.is_sparse for t in (*left, *right)):
                return None  # one factor, as it stands, so that nothing cancels later than before
            return [*left, *(replace(t, coefficient=sign * t.coefficient) for t in right)]
        case "mul":
            left, right = (_grown(of(k), eqn.invars[k], shape) for k in (0, 1))
            if len(left) * len(right) > MOST_TERMS:
                return None
            return [_times(s, t) for s in _apart(left) for t in _apart(right)]
        case "dot_general" if _is_outer(eqn) and len({a.aval.dtype for a in (*eqn.invars, atom)}) == 1:
            _, (bx, by) = params["dimension_numbers"]
            found = [_product(s, t, (), (), bx, by) for s in _apart(of(0)) for t in _apart(of(1))]
            return [both.over(axes) for axes, both in found]
        case "div":
            below = _grown(of(1), eqn.invars[1], shape)
            if len(below) != 1 or below[0].is_sparse or below[0].coefficient != 1.0:
                return None
            (low,) = _apart(below)
            if any(f.inverse for f in low.factors):
                return None
            turned = replace(low, factors=tuple(replace(f, inverse=True) for f in low.factors))
            return [_times(s, turned) for s in _apart(_grown(of(0), eqn.invars[0], shape))]
    return None


def _ones(shape: Sequence[int]) -> Term:
    return Term(_axes(shape))


def _grown(terms: list[Term], atom: Any, shape: Sequence[int]) -> list[Term]:
    """The terms of an operand of an elementwise operation: a number is one of every element."""
    return terms if atom.aval.shape == tuple(shape) else [_broadcast(t, shape, ()) for t in terms]


def _times(s: Term, t: Term) -> Term:
    count = range(len(s.axes))
    axes, both = _product(s, t, (), (), tuple(count), tuple(count))
    return both.over(axes)


def _broadcast(term: Term, shape: Sequence[int], dims: Sequence[int]) -> Term:
    axes = list(_axes(shape))
    for axis, d in zip(term.axes, dims):
        if axis:
            axes[d] = axis
    return term.over(axes)


def _reshaped(term: Term, shape: Sequence[int]) -> Term:
    """The labels in order, cut where axes of the new shape end."""
    while True:
        labels, axes = term.labels, []
        position = 0
        for n in shape:
            start, size = position, 1
            while size < n:
                x = labels[position]
                if n % size:
                    raise NotTerms
                if x.size > n // size:
                    break
                size *= x.size
                position += 1
            if size < n:
                term = _split(term, labels[position], n // size)
                break
            axes.append(tuple(labels[start:position]))
        if len(axes) == len(shape):
            return term.over(axes)
