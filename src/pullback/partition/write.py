"""One device's program, written from the whole one: each operation on parts, with collectives where parts do not fit.

Partitioned.closed      the program of one device; its collectives name axes of the mesh
Partitioned.ins, outs   how arguments and results are cut
Partitioned.terms       of arguments and of results, the axes along which each device has a term
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback import lax
from pullback.compiler.graph.simplify.inline import inline
from pullback.compiler.graph.simplify.keys import replace_keys
from pullback.core.asked import asked
from pullback.core.extended import of_words
from pullback.core.jaxpr import ClosedJaxpr, DebugInfo, Jaxpr, Literal, eval_jaxpr
from pullback.core.primitive import registry
from pullback.core.source import at_line, calling_line
from pullback.core.staging import trace
from pullback.core.types import CONSTRAINTS, untyped
from pullback.partition import by_user, places, windows
from pullback.partition.exchanged import bytes_of_program
from pullback.partition.factors import Axes, Cut, Factors, Sizes, extent, fitting, local_shape, whole
from pullback.partition.halos import with_halos
from pullback.partition.moves import bytes_of, combine, combine_price, price
from pullback.partition.neighbours import accumulated, accumulates, rotated, with_rotations
from pullback.partition.propagate import (
    CONTROL,
    Known,
    constraint,
    cut_by,
    cut_or_whole,
    factors_of,
    joined,
    propagate,
    results_of,
    rows,
    scan_cuts,
    while_cuts,
)
from pullback.partition.states import linear_in
from pullback.partition.values import Value, axes_of, local_aval
from pullback.sharding import NamedSharding
from pullback.sharding._specs import state_of
from pullback.util.dtypes import is_extended
from pullback.util.logs import PROGRAMS, warn
from pullback.util.record import frozen_record

WATCHING = ("debug_callback", "debug_print")  # what shows values, and gives none


@frozen_record
class Partitioned:
    """What `partition` gives."""

    closed: ClosedJaxpr
    ins: tuple[Cut, ...]
    outs: tuple[Cut, ...]
    mesh: dict[Any, int]
    terms: tuple[tuple[Axes, ...], tuple[Axes, ...]]


def partition(
    closed: ClosedJaxpr, ins: Sequence[Cut | None], mesh: dict[Any, int], in_terms: bool = True
) -> Partitioned:
    """The program of one device of the mesh, for arguments that are cut so (None: as suits). Arguments and results that
    are still to be summed are terms, or, if not `in_terms`, the sums.

    Keys are cut as their words, whose last axis is whole.
    """
    flat = inline(by_user.kept(closed))
    words = replace_keys(flat)
    whole_program = with_rotations(words)
    jaxpr = whole_program.jaxpr
    given = [None if c is None else fitting(c, v.aval.shape, mesh) for c, v in zip(ins, jaxpr.invars, strict=True)]
    known = propagate(jaxpr, given, mesh)
    cuts = [cut_or_whole(known.get(v), v.aval) for v in jaxpr.invars]
    wanted = _results(jaxpr, known)
    terms_in, terms_out = (
        tuple(_terms(v, mesh) if in_terms else () for v in vs) for vs in (jaxpr.invars, jaxpr.outvars)
    )
    terms = terms_in, terms_out
    with axes_of(mesh):
        found = _written(whole_program, cuts, wanted, mesh, known, terms)
        other = with_halos(whole_program, known, mesh)
        if other is not whole_program:
            known = propagate(other.jaxpr, cuts, mesh)
            of_other = _results(other.jaxpr, known)
            second = _written(other, cuts, of_other, mesh, known, terms)
            more = sum(  # that each device holds of results that the other program cuts
                bytes_of(aval, cut, mesh) - bytes_of(aval, finer, mesh)
                for aval, cut, finer in zip(whole_program.out_avals, wanted, of_other, strict=True)
            )
            if bytes_of_program(second.jaxpr, mesh) < bytes_of_program(found.jaxpr, mesh) + max(more, 0):
                found, wanted = second, of_other
        if words is not flat:
            cuts = [cut[: a.ndim] for cut, a in zip(cuts, flat.in_avals, strict=True)]
            wanted = [cut[: a.ndim] for cut, a in zip(wanted, flat.out_avals, strict=True)]
            found = _of_keys(found, flat, cuts, mesh)
    return Partitioned(found, tuple(cuts), tuple(wanted), mesh, terms)


def _terms(atom: Any, mesh: Sizes) -> Axes:
    """The axes over which a value is still to be summed, by its type, in the order of the mesh."""
    unreduced = state_of(atom.aval)[0]
    return tuple(a for a in mesh if a in unreduced)


def _results(jaxpr: Jaxpr, known: Known) -> list[Cut]:
    """The cuts of a program's results; what nothing is known of is whole."""
    return [
        whole(len(a.aval.shape)) if isinstance(a, Literal) else cut_or_whole(known.get(a), a.aval)
        for a in jaxpr.outvars
    ]


def _of_keys(words: ClosedJaxpr, whole_: ClosedJaxpr, cuts: Sequence[Cut], mesh: Sizes) -> ClosedJaxpr:
    """A program of words as one of the keys that they are in the whole one."""

    def part(*parts: Any) -> list[Any]:
        given = [registry["random_unwrap"].bind(x) if is_extended(x.dtype) else x for x in parts]
        outs = eval_jaxpr(words.jaxpr, words.consts, *given)
        kinds = [a.dtype for a in whole_.out_avals]
        return [of_words(kind, y) if is_extended(kind) else y for y, kind in zip(outs, kinds, strict=True)]

    local = [local_aval(aval, cut, mesh) for aval, cut in zip(whole_.in_avals, cuts, strict=True)]
    with asked(mesh):
        return untyped(trace(part, local, words.jaxpr.debug_info))


def result_cuts(closed: ClosedJaxpr, ins: Sequence[Cut | None], mesh: dict[Any, int]) -> list[Cut]:
    """How the results of a program are cut, without writing it."""
    flat = inline(by_user.kept(closed))
    jaxpr = with_rotations(replace_keys(flat)).jaxpr
    given = [None if c is None else fitting(c, v.aval.shape, mesh) for c, v in zip(ins, jaxpr.invars, strict=True)]
    found = [cut_or_whole(c, a.aval) for c, a in zip(results_of(jaxpr, given, mesh), jaxpr.outvars)]
    return [cut[: len(a.shape)] for cut, a in zip(found, flat.out_avals, strict=True)]


def _traced(
    closed: ClosedJaxpr,
    cuts: Sequence[Cut],
    wanted: Sequence[Cut],
    mesh: Sizes,
    terms: tuple[Sequence[Axes], Sequence[Axes]] = ((), ()),
) -> ClosedJaxpr:
    """One device's program of a loop's body or a branch, whose results are cut as wanted; `terms` as of `_written`."""
    known = propagate(closed.jaxpr, cuts, mesh)
    found = _written(closed, cuts, wanted, mesh, known, terms)
    other = with_halos(closed, known, mesh)
    if other is not closed:
        second = _written(other, cuts, wanted, mesh, propagate(other.jaxpr, cuts, mesh), terms)
        if bytes_of_program(second.jaxpr, dict(mesh)) < bytes_of_program(found.jaxpr, dict(mesh)):
            return second
    return found


def _written(
    closed: ClosedJaxpr,
    cuts: Sequence[Cut],
    wanted: Sequence[Cut],
    mesh: Sizes,
    known: Known,
    terms: tuple[Sequence[Axes], Sequence[Axes]] = ((), ()),
) -> ClosedJaxpr:
    """One device's program of a flat one, of whose values that is known, and whose results are cut as wanted.

    `terms`: of arguments and results, the axes along which devices have a term each; of those that are left out, none.
    """
    avals = closed.in_avals

    def part(*parts: Any) -> list[Any]:
        given = terms[0] or [()] * len(avals)
        values = [Value(x, cut, aval, axes) for x, cut, aval, axes in zip(parts, cuts, avals, given, strict=True)]
        outs = _Writer(mesh, known).run(closed, values)
        left = terms[1] or [()] * len(outs)
        return [
            y.as_terms(axes, cut, mesh) if axes else y.moved(cut, mesh)
            for y, cut, axes in zip(outs, wanted, left, strict=True)
        ]

    local = [local_aval(aval, cut, mesh) for aval, cut in zip(avals, cuts, strict=True)]
    with asked(mesh):  # types of parts say nothing of the mesh
        return untyped(trace(part, local, DebugInfo("partition", closed.jaxpr.debug_info.func_name)))


def _rotated(x: Value, axis: int, shift: int, mesh: Sizes) -> Value:
    return Value(rotated(x.part, x.cut[axis], axis, shift, mesh), x.cut, x.aval)


def _keeps(eqn: Any, terms: Axes) -> bool:
    """Whether the results of an equation are of types that are still to be summed over these axes."""
    return all(set(terms) <= state_of(v.aval)[0] for v in eqn.outvars)


def _left_by_readers(jaxpr: Jaxpr) -> dict[Any, frozenset]:
    """The axes over which values are left to be summed by what alone reads them: a `reshard`."""
    readers: dict[Any, list[Any]] = {}
    for eqn in jaxpr.eqns:
        for atom in eqn.invars:
            if not isinstance(atom, Literal):
                readers.setdefault(atom, []).append(eqn)
    for atom in jaxpr.outvars:
        if not isinstance(atom, Literal):
            readers.pop(atom, None)
    only = {var: found[0] for var, found in readers.items() if len(found) == 1}
    return {v: state_of(e.outvars[0].aval)[0] for v, e in only.items() if e.primitive.name == "reshard"}


class _Writer:
    def __init__(self, mesh: Sizes, known: Known) -> None:
        self.mesh, self.known = mesh, known
        self.slices: dict[Any, int] = {}  # how many slices an array has
        self.terms_of: dict[Any, frozenset] = {}  # values that are read once, as terms along these axes

    def run(self, closed: ClosedJaxpr, args: Sequence[Value]) -> list[Value]:
        """The results of a program on parts."""
        jaxpr: Jaxpr = closed.jaxpr
        known = self.known
        env: dict[Any, Value] = dict(zip(jaxpr.invars, args, strict=True))
        for var, const in zip(jaxpr.constvars, closed.consts, strict=True):
            env[var] = Value(const, whole(len(var.aval.shape)), var.aval)

        def read(atom: Any) -> Value:
            return Value(atom.val, whole(len(atom.aval.shape)), atom.aval) if isinstance(atom, Literal) else env[atom]

        for eqn in jaxpr.eqns:
            if eqn.primitive.name in ("slice", "dynamic_slice") and not isinstance(eqn.invars[0], Literal):
                self.slices[eqn.invars[0]] = self.slices.get(eqn.invars[0], 0) + 1
        here = calling_line()
        self.terms_of.update(_left_by_readers(jaxpr))
        for eqn in jaxpr.eqns:
            wishes = [known.get(v) for v in eqn.outvars]
            with at_line(here, eqn.source):
                outs = self.equation(eqn, [read(a) for a in eqn.invars], wishes)
            env.update(zip(eqn.outvars, outs, strict=True))
        return [read(a) for a in jaxpr.outvars]

    def equation(self, eqn: Any, operands: list[Value], wishes: Sequence[Cut | None]) -> list[Value]:
        """The results of one operation."""
        name = eqn.primitive.name
        if name in CONSTRAINTS:
            (x,) = operands
            cut = constraint(eqn, x.cut, self.mesh)
            cut = x.cut if cut is None else cut
            if x.terms and not x.is_summed and _keeps(eqn, x.terms):
                return [Value(x.as_terms(x.terms, cut, self.mesh), cut, eqn.outvars[0].aval, x.terms)]
            return [Value(x.moved(cut, self.mesh), cut, x.aval)]
        if (found := self.of_terms(eqn, operands, wishes)) is not None:
            return found
        if name == "shard_map":
            return self.mapped(eqn, operands)
        if name == by_user.BY_USER:
            return self.by_user(eqn, operands, wishes)
        if name == "rotate":
            return [_rotated(operands[0], mesh=self.mesh, **eqn.params)]
        if accumulates(eqn, operands[0].cut if operands else ()):
            return [self.accumulated(eqn, operands[0])]
        if name in CONTROL:
            return getattr(self, "_" + name)(eqn, operands, wishes)
        if (one := self.at_places(eqn, operands, wishes) or self.in_windows(eqn, operands, wishes)) is not None:
            return [one]
        factors = factors_of(eqn)
        if factors is None:
            return self.by_all(eqn, operands)
        return self.by_parts(eqn, operands, wishes, factors)

    # ---- operations

    def of_terms(self, eqn: Any, operands: Sequence[Value], wishes: Sequence[Cut | None]) -> list[Value] | None:
        """What is linear in operands of which devices have terms, done to the terms; None for all else."""
        waiting = [x.terms for x in operands if x.terms and not x.is_summed]
        if not waiting or not _keeps(eqn, waiting[0]):
            return None
        of = linear_in(eqn)
        if of is None or not any(operands[k].terms for k in of):
            return None
        mesh = self.mesh
        terms = _terms(eqn.outvars[0], mesh)
        each = [Value(x.as_terms(terms, x.cut, mesh), x.cut, x.aval) if k in of else x for k, x in enumerate(operands)]
        return [Value(y.part, y.cut, y.aval, terms) for y in self.equation(eqn, each, wishes)]

    def accumulated(self, eqn: Any, x: Value) -> Value:
        """Running sums along a dimension that is cut."""
        axis = eqn.params["axis"]
        (y,) = self.bound(eqn, [x.part], eqn.params)
        y = accumulated(eqn.primitive.name, y, x.cut[axis], axis, eqn.params["reverse"])
        return Value(y, x.cut, eqn.outvars[0].aval)

    def at_places(self, eqn: Any, operands: list[Value], wishes: Sequence[Cut | None]) -> Value | None:
        """What is taken of few places along a dimension that is cut, or written there; None for all else, and where
        the array is there as a whole, or that moves fewer bytes.
        """
        name, mesh, out = eqn.primitive.name, self.mesh, eqn.outvars[0].aval if eqn.outvars else None
        if name not in places.NAMES or not operands:
            return None
        x = operands[0]
        writes = name.startswith(("scatter", "dynamic_update"))
        cut, (wish,) = x.cut, wishes
        if writes and not any(extent(a, mesh) > 1 for a in cut):
            if name.startswith("scatter") and (found := self.in_terms(eqn, operands, wish)) is not None:
                return found
            cut = wish or cut  # all devices have all of it: that is cut as the result shall be
        d = places.along(eqn, cut, mesh)
        if d is None:
            return None
        rest = (*cut[:d], (), *cut[d + 1 :])
        whole_price = x.price(rest, mesh) if cut is x.cut else price(x.aval, cut, rest, mesh)
        others = [y.moved(whole(len(y.cut)), mesh) for y in operands[1:]] if name.startswith("dynamic") else []
        if name in ("slice", "dynamic_slice"):
            count = self.slices.get(eqn.invars[0], 1)
            if count * places.bytes_taken(eqn, cut, d, mesh) >= whole_price:
                return None
            take = places.sliced if name == "slice" else functools.partial(places.line, starts=others)
            return Value(take(eqn, x.part, cut=cut, d=d, mesh=mesh), rest, out)
        if name == "dynamic_update_slice":
            update = operands[1].moved(rest, mesh)
            y = places.updated(eqn, x.moved(cut, mesh), update, others[1:], cut, d)
            return Value(y, cut, out)
        if name == "gather":
            used = {a for axes in cut for a in axes}
            of_indices = tuple(tuple(a for a in axes if a not in used) for axes in operands[1].cut)
            of_out = places.cut_of_gathered(eqn, cut, of_indices)
            bytes_, _ = combine_price(out, "sum", cut[d], of_out, wish, mesh)
            if bytes_ + operands[1].price(of_indices, mesh) >= whole_price:
                return None
            indices = operands[1].moved(of_indices, mesh)
            y, of_out = combine(places.gathered(eqn, x.part, indices, cut, d, mesh), "sum", cut[d], of_out, wish, mesh)
            indices = operands[1].moved(places.cut_of_indices(eqn, of_out), mesh)
            return Value(places.filled(eqn, y, indices, d), of_out, out)
        cuts = whole(len(operands[1].cut)), places.cut_of_updates(eqn, cut)
        indices, updates = (y.moved(c, mesh) for y, c in zip(operands[1:], cuts))
        return Value(places.scattered(eqn, x.moved(cut, mesh), indices, updates, cut, d), cut, out)

    def in_terms(self, eqn: Any, operands: list[Value], wish: Cut | None) -> Value | None:
        """A scatter of updates that are cut, of which the results are summed; None where it moves more bytes."""
        kind, mesh = places.terms(eqn), self.mesh
        x, indices, updates = operands
        axes = tuple(a for part in indices.cut[:-1] for a in part)
        if kind is None or extent(axes, mesh) == 1:
            return None
        of_updates = places.cut_of_lines(eqn, indices.cut)
        moved = updates.price(whole(len(updates.cut)), mesh) + indices.price(whole(len(indices.cut)), mesh)
        bytes_, _ = combine_price(x.aval, kind, axes, x.cut, wish, mesh)
        if bytes_ + updates.price(of_updates, mesh) >= moved:
            return None
        y = places.scattered_terms(eqn, x.part, indices.part, updates.moved(of_updates, mesh), axes)
        y, cut = combine(y, kind, axes, x.cut, wish, mesh)
        return Value(y, cut, eqn.outvars[0].aval)

    def in_windows(self, eqn: Any, operands: list[Value], wishes: Sequence[Cut | None]) -> Value | None:
        """Windows along a dimension that is cut, of which devices exchange edges; None for all else."""
        name, mesh = eqn.primitive.name, self.mesh
        if name == "conv_general_dilated":
            image, kernel = operands
            how = windows.convolution(eqn, image.cut, kernel.cut, mesh)
            if how is None:
                return None
            y, cut = windows.convolved(eqn, image, kernel, how, mesh), how.out
            if how.summed:
                y, cut = combine(y, "sum", how.summed, cut, wishes[0], mesh)
            return Value(y, cut, eqn.outvars[0].aval)
        found = windows.local(eqn, operands, mesh) if name in windows.NAMES else None
        return None if found is None else Value(*found, eqn.outvars[0].aval)

    def by_all(self, eqn: Any, operands: Sequence[Value]) -> list[Value]:
        """What no rule cuts: on all of every operand, the same on all devices."""
        once = "once" in eqn.primitive.traits
        if eqn.primitive.name not in WATCHING and any(extent(axes, self.mesh) > 1 for x in operands for axes in x.cut):
            warn(
                PROGRAMS,
                f"partitioning: {eqn.primitive.name} has no rule for operands that are cut; they are gathered, and it "
                f"is computed on {'one' if once else 'every'} device ({eqn.source})",
            )
        inputs = [x.moved(whole(len(x.cut)), self.mesh) for x in operands]
        if eqn.primitive.name in WATCHING:  # what all devices have, one of them shows
            number = lax.axis_index(tuple(self.mesh))

            def shown(*xs: Any) -> list[Any]:
                return self.bound(eqn, xs, eqn.params)

            lax.cond(lax.eq(number, np.int32(0)), shown, lambda *_: list[Any](), *inputs)
            return []
        outs = (self.called_once if once else self.bound)(eqn, inputs, eqn.params)
        return [Value(y, whole(len(v.aval.shape)), v.aval) for y, v in zip(outs, eqn.outvars, strict=True)]

    def called_once(self, eqn: Any, inputs: Sequence[Any], params: dict[str, Any]) -> list[Any]:
        """What one device calls for all of them."""

        def nothing(*_: Any) -> list[Any]:
            return [lax.full(v.aval.shape, 0, v.aval.dtype) for v in eqn.outvars]

        first = lax.eq(lax.axis_index(tuple(self.mesh)), np.int32(0))
        outs = lax.cond(first, lambda *xs: self.bound(eqn, xs, params), nothing, *inputs)
        for axis in self.mesh:
            outs = [lax.pbroadcast(y, axis, 0) for y in outs]
        return list(outs)

    def mapped(self, eqn: Any, operands: Sequence[Value]) -> list[Value]:
        """A function of parts, which is one device's program already."""
        p = eqn.params
        places = [NamedSharding(p["mesh"], s) for s in p["in_specs"]]
        cuts = [cut_or_whole(cut_by(s, x.aval, self.mesh), x.aval) for x, s in zip(operands, places, strict=True)]
        inputs = [x.moved(cut, self.mesh) for x, cut in zip(operands, cuts, strict=True)]
        outs = eval_jaxpr(p["jaxpr"].jaxpr, p["jaxpr"].consts, *inputs)
        places = [NamedSharding(p["mesh"], s) for s in p["out_specs"]]
        return [
            Value(y, cut_or_whole(cut_by(s, v.aval, self.mesh), v.aval), v.aval)
            for y, s, v in zip(outs, places, eqn.outvars, strict=True)
        ]

    def by_user(self, eqn: Any, operands: Sequence[Value], wishes: Sequence[Cut | None]) -> list[Value]:
        """A function of parts that its user gives for operands that are cut so."""
        wanted = [cut_or_whole(cut, v.aval) for cut, v in zip(wishes, eqn.outvars, strict=True)]
        how = by_user.on_parts(eqn, [x.cut for x in operands], wanted, self.mesh)
        if how is None:  # as any other function
            return self.run(with_rotations(replace_keys(inline(eqn.params["jaxpr"]))), operands)
        function, ins, outs = how
        found = function(*[x.moved(cut, self.mesh) for x, cut in zip(operands, ins, strict=True)])
        return [Value(y, cut, v.aval) for y, cut, v in zip(found, outs, eqn.outvars, strict=True)]

    def bound(self, eqn: Any, inputs: Sequence[Any], params: dict[str, Any]) -> list[Any]:
        """The operation on these operands."""
        outs = eqn.primitive.bind(*inputs, **params)
        return list(outs) if eqn.primitive.multiple_results else [outs]

    def by_parts(
        self, eqn: Any, operands: Sequence[Value], wishes: Sequence[Cut | None], factors: Factors
    ) -> list[Value]:
        """On parts: operands are cut as their factors say, and what is left to be reduced is."""
        mesh = self.mesh
        axes = self.chosen(eqn, operands, wishes, factors)
        inputs = [x.moved(factors.cut_of(axes, d), mesh) for x, d in zip(operands, factors.operands, strict=True)]

        def size(factor: int) -> int:
            return factors.sizes[factor] // extent(axes.get(factor, ()), mesh)

        outs = self.bound(eqn, inputs, factors.local(eqn.params, size))
        found = []
        for y, var, dims, wish in zip(outs, eqn.outvars, factors.results, wishes, strict=True):
            cut = factors.cut_of(axes, dims)
            if tuple(y.shape) != local_shape(var.aval.shape, cut, mesh):
                raise AssertionError(
                    f"partitioning {eqn.primitive.name}: a part of {var.aval.short()} cut by {cut} has shape "
                    f"{y.shape}: {eqn}"
                )
            terms: Axes = ()
            for kind, left in self.left(factors, axes):
                if kind == "sum" and (_keeps(eqn, left) or self.terms_of.get(var, frozenset()).issuperset(left)):
                    terms = left
                else:
                    y, cut = combine(y, kind, left, cut, wish, mesh)
            found.append(Value(y, cut, var.aval, terms))
        return found

    def chosen(
        self, eqn: Any, operands: Sequence[Value], wishes: Sequence[Cut | None], factors: Factors
    ) -> dict[int, Axes]:
        """The axes of each factor with which the fewest bytes are moved; of equals, those with the smallest parts."""
        mesh = self.mesh
        by_size = sorted(range(len(operands)), key=lambda k: -operands[k].aval.size)
        given = [factors.of_cut(operands[k].cut, factors.operands[k], mesh) for k in by_size]
        asked = [factors.of_cut(w, d, mesh) for w, d in zip(wishes, factors.results, strict=True)]
        candidates = [
            factors.merged(given + asked, mesh),
            factors.merged(asked + given, mesh),
            factors.merged(asked, mesh),
        ]
        candidates += [factors.merged([part, *asked], mesh) for part in given]
        candidates.append({})
        best = None
        for k, axes in enumerate(candidates):
            if k and axes in candidates[:k]:
                continue
            cost = self.cost(eqn, operands, wishes, factors, axes), self.work(factors, axes), k
            if best is None or cost < best[0]:
                best = cost, axes
        assert best is not None
        return best[1]

    def left(self, factors: Factors, axes: dict[int, Axes]) -> list[tuple[str, Axes]]:
        """The axes over which parts are left to be reduced, by the kind of the reduction."""
        found: dict[str, Axes] = {}
        for factor, kind in factors.combined.items():
            found[kind] = found.get(kind, ()) + axes.get(factor, ())
        return [(kind, left) for kind, left in found.items() if left]

    def work(self, factors: Factors, axes: dict[int, Axes]) -> float:
        """The elements of the operation's loops on one device."""
        total = 1.0
        for f, n in enumerate(factors.sizes):
            total *= n / extent(axes.get(f, ()), self.mesh)
        return total

    def cost(
        self, eqn: Any, operands: Sequence[Value], wishes: Sequence[Cut | None], factors: Factors, axes: dict
    ) -> int:
        """The bytes that a device receives for the operation, and to cut its results as wished."""
        mesh, moved = self.mesh, 0
        for x, dims in zip(operands, factors.operands, strict=True):
            moved += price(x.aval, x.cut, factors.cut_of(axes, dims), mesh)
        for var, dims, wish in zip(eqn.outvars, factors.results, wishes, strict=True):
            cut = factors.cut_of(axes, dims)
            for kind, left in self.left(factors, axes):
                if kind != "sum" or not _keeps(eqn, left):
                    bytes_, cut = combine_price(var.aval, kind, left, cut, wish, mesh)
                    moved += bytes_
            if wish is not None:
                moved += price(var.aval, cut, wish, mesh)
        return moved

    # ---- loops and branches

    def _scan(self, eqn: Any, operands: list[Value], wishes: Sequence[Cut | None]) -> list[Value]:
        mesh, p = self.mesh, eqn.params
        n, m = p["num_consts"], p["num_carry"]
        body = p["jaxpr"]
        found, outs = scan_cuts(eqn, [x.cut for x in operands], mesh)
        carry = [cut_or_whole(c, v.aval) for c, v in zip(found, eqn.outvars)]
        xs = [x.cut[1:] for x in operands[n + m :]]
        ys = [cut_or_whole(rows(c), a.aval) for c, a in zip(outs[m:], body.jaxpr.outvars[m:])]
        ins: list[Cut] = [*[x.cut for x in operands[:n]], *carry, *xs]
        # What is to be summed is summed after the loop.
        left = [_terms(v, mesh) for v in eqn.outvars]
        given = [*[x.terms for x in operands[:n]], *left[:m], *[x.terms for x in operands[n + m :]]]
        inner = _traced(body, ins, [*carry, *ys], mesh, (given, left))
        full: list[Cut] = [*ins[: n + m], *[((), *c) for c in xs]]
        inputs = self.inputs(operands, full, given)
        results = self.bound(eqn, inputs, {**p, "jaxpr": inner})
        cuts: list[Cut] = [*carry, *[((), *c) for c in ys]]
        return [Value(y, c, v.aval, t) for y, c, v, t in zip(results, cuts, eqn.outvars, left, strict=True)]

    def _while(self, eqn: Any, operands: list[Value], wishes: Sequence[Cut | None]) -> list[Value]:
        mesh, p = self.mesh, eqn.params
        a, b = p["cond_nconsts"], p["body_nconsts"]
        cuts = [x.cut for x in operands]
        found = while_cuts(eqn, cuts, mesh)
        carry = [cut_or_whole(c, v.aval) for c, v in zip(found, eqn.outvars)]
        left = [_terms(v, mesh) for v in eqn.outvars]
        given = [*[x.terms for x in operands[: a + b]], *left]
        condition = _traced(p["cond_jaxpr"], [*cuts[:a], *carry], [()], mesh, ([*given[:a], *left], ()))
        body = _traced(p["body_jaxpr"], [*cuts[a : a + b], *carry], carry, mesh, (given[a:], left))
        inputs = self.inputs(operands, [*cuts[: a + b], *carry], given)
        results = self.bound(eqn, inputs, {**p, "cond_jaxpr": condition, "body_jaxpr": body})
        return [Value(y, c, v.aval, t) for y, c, v, t in zip(results, carry, eqn.outvars, left, strict=True)]

    def _cond(self, eqn: Any, operands: list[Value], wishes: Sequence[Cut | None]) -> list[Value]:
        mesh, branches = self.mesh, eqn.params["branches"]
        cuts = [x.cut for x in operands]
        each = [results_of(b.jaxpr, cuts[1:], mesh) for b in branches]
        outs = []
        for v, group in zip(eqn.outvars, zip(*each), strict=True):
            outs.append(joined(group) if any(c is not None for c in group) else whole(len(v.aval.shape)))
        given, left = [x.terms for x in operands], [_terms(v, mesh) for v in eqn.outvars]
        inner = tuple(_traced(b, cuts[1:], outs, mesh, (given[1:], left)) for b in branches)
        inputs = self.inputs(operands, [whole(len(cuts[0])), *cuts[1:]], given)
        results = self.bound(eqn, inputs, {**eqn.params, "branches": inner})
        return [Value(y, c, v.aval, t) for y, c, v, t in zip(results, outs, eqn.outvars, left, strict=True)]

    def inputs(self, operands: Sequence[Value], cuts: Sequence[Cut], terms: Sequence[Axes]) -> list[Any]:
        """What a loop or a branch takes, cut so: of values that have terms along axes, the terms."""
        return [
            x.as_terms(axes, cut, self.mesh) if axes else x.moved(cut, self.mesh)
            for x, cut, axes in zip(operands, cuts, terms, strict=True)
        ]
