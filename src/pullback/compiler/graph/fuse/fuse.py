"""Decides which values of a flat jaxpr are written to memory, and which equations share a loop nest.

A group is one iteration space walked once. Its loops evaluate, at one index, everything that is pulled into it: views
and pointwise operations cost no memory traffic. Several roots of one space share a group (an optimizer's update of
parameters and moments is one pass over memory), and so do reductions over one space. Calls into libraries and control
flow stand alone.

The equations are visited from last to first, so when one is visited all that is wanted of its results is known: by
which groups, at which symbolic indices. Then

    free        a view, iota, cheap arithmetic of one array, a single element: evaluated wherever it is wanted;
    inlined     wanted by one group at one index, each element about once: evaluated there, without memory; so are
                parts of a join, between whose ends the loops are cut, and rearranged elements of others
                (concatenation, padding) each of which is wanted at one of a few indices;
    repeated    dearer to write and to read again than to compute where it is wanted (`candidates`);
    taken out   a few elements of an array that a call changes in place before they are wanted: stored on their own,
                so that the call need not work on a copy of the array;
    stored      otherwise. It joins the group that wants it at its own index and runs first among those that want it,
                or a group of the same space that runs earlier still and reads the same arrays, or gets a new one.

What is neither free nor repeated is evaluated once per element (or once per row, hoisted out of the inner loop).
Each group has a height, larger than that of all groups which need its results; edges between groups always go
downwards, so merging never makes a cycle and every decision is local: the pass is linear in the length of the program.

Elements that are rearranged are counted, not only indices (`_is_dealt_out`): a roll wants a concatenation at two
indices, each element at one of them, so nothing is stored; and loops from 256 iterations on are cut where conditions
change. Groups are lifted so that a reduction joins the nest that stores from the same arrays (`_reaches`): the loss of
a fit is summed in the pass that updates its parameters.

What is wanted several times at each place is no longer free where its elements lie apart in memory (a column of a
matrix) or are computed of large arrays. Where a pad or a join needs a part of them, these alone are counted: rotary
embeddings that set every second element 29 us, now 16.

Measured: a chain of concatenation, padding, roll and reversal took 4.9 ms of processor time (1500 x 3000), now 1.5; 1.8
us (1000 elements), now 0.25; a stack of 8 rows of 100,000 sines 460 us, now 86. An iteration of PLN moves 112 MB
instead of 138 where its reductions join. Distances of 33 x 33 rows of 5000, one of three channels, 600
us, now 210, of differences 340 and 190.
"""

from __future__ import annotations

import math
from collections.abc import Sequence, Set
from typing import Any

from pullback.compiler.graph.fuse.access import Index, Interner, accesses, variables
from pullback.compiler.graph.fuse.candidates import Use, is_repeated
from pullback.compiler.graph.fuse.groups import (
    Fusion,
    Group,
    Leaf,
    Row,
    Shape,
    apart_axes,
    common_loops,
    goes_along,
    is_turned,
    turns,
)
from pullback.compiler.graph.fuse.rows import form_rows, in_order
from pullback.compiler.graph.fuse.survey import FAR_SMALLER, POINTWISE, Survey, is_large
from pullback.compiler.graph.fuse.views import AGAIN, memory_view
from pullback.compiler.graph.simplify.rewrite import joins_pieces
from pullback.core.jaxpr import Jaxpr, JaxprEqn, Literal, Var
from pullback.core.lowering import Elementwise, Pointwise, Reduction, operations_of
from pullback.loops.ir import Builder
from pullback.loops.passes.split import MOST_OPS
from pullback.util.switches import switches

FREE_COST = 2  # additions that are cheaper to repeat than to store and load again, wherever that is
REPEATED_COST = 12  # the same where nothing of that size is read: an identity, what a vector scales
MOST_REPEATED = 64  # operations by which a value that is repeated makes a program longer
MAX_STORES = 24  # streams that one loop nest writes
COPIED_FREELY = 32  # elements of an array that is copied without a thought
EVALUATED_ONCE = 1.25  # evaluations for each element up to which each is taken for evaluated once
MAX_LIFTED = 32  # groups that run earlier so that two others can be one
MOST_PARTS = 4  # indices at which a group rearranges the elements of one value by itself
DEALT_OUT_COST = 8  # additions for each element of a value that a group computes in parts
MOST_PIECES = 8  # of a join that are computed side by side
LEAST_PIECES = 64  # elements of one from which they are
SMALL_SPACE = 64  # elements of a space so small that its groups may be merged even if they share no array


def fuse(jaxpr: Jaxpr, b: Builder, intern: Interner, changing: Set[Var] = frozenset()) -> Fusion:
    """The groups of a flat jaxpr, whose equations all have a lowering kind other than Inline; `changing` are arguments
    whose memory is that of a result.
    """
    return _Fuser(jaxpr, b, intern, changing).run()


class _Fuser:
    def __init__(self, jaxpr: Jaxpr, b: Builder, intern: Interner, changing: Set[Var]) -> None:
        self.jaxpr, self.eqns, self.b, self.intern = jaxpr, jaxpr.eqns, b, intern
        self.zero = intern(b.index(0))
        self.groups: list[Group] = []
        self.by_space: dict[Shape, list[Group]] = {}
        self.wants: dict[Var, dict[Group, dict[Index, bool]]] = {}
        self.elements: dict[tuple[Var, Group, Index], float] = {}  # of that index which a group really needs
        self.whole: dict[Var, list[Group]] = {}
        self.aliases: dict[Var, int] = {}
        self.stored: set[Var] = set()
        self.outputs = {v for v in jaxpr.outvars if not isinstance(v, Literal)}
        self.forwarded: dict[Var, Var] = {}
        self.in_a_row: set[Var] = set()  # to be stored, as memory views of them want elements that follow each other
        self.survey = Survey(jaxpr, changing)
        self.producer = self.survey.producer
        self.apart: dict[tuple[Index, Shape, Index, Shape], frozenset[Any]] = {}
        self.changing = changing
        self.calls: dict[int, Group] = {}
        self.makers: dict[Var, Group] = {}

    def run(self) -> Fusion:
        effect_height = -1
        for number in range(len(self.eqns) - 1, -1, -1):
            eqn = self.eqns[number]
            kind = eqn.primitive.lower
            if isinstance(kind, POINTWISE):
                self._visit_pointwise(number, eqn)
            elif isinstance(kind, Reduction):
                self._visit_reduction(number, eqn)
            else:
                effect_height = self._visit_call(number, eqn, effect_height)
        for group in self.groups:
            group.stores.reverse()
            group.reductions.reverse()
        units: list[Row | Group] = [*self.groups]
        if "rows" not in switches.skip:
            units = form_rows(self.groups, self.eqns, self.outputs)
        row_local = self._row_locals(units)
        units = in_order(units, self.eqns)
        return Fusion(units, self.stored, self.aliases, self.forwarded, row_local, self.producer, self.survey.users)

    def _row_locals(self, units: list[Row | Group]) -> dict[Var, Row]:
        """Values that only their own row reads; those of one element in each row stay in registers."""
        readers: dict[Var, set[Row | None]] = {}
        for group in self.groups:
            for var in group.reads:
                readers.setdefault(var, set()).add(group.row)
        local: dict[Var, Row] = {}
        for row in units:
            if not isinstance(row, Row):
                continue
            for group in row.groups:
                for var in group.outputs(self.eqns):
                    if var in self.outputs or readers.get(var) != {row}:
                        continue
                    axes = range(len(group.space)) if var in group.stores else group.kept
                    if math.prod(group.space[a] for a in axes) == math.prod(row.extents):
                        self.stored.discard(var)
                    else:
                        local[var] = row
        return local

    # Equations, last to first.

    def _visit_call(self, number: int, eqn: JaxprEqn, effect_height: int) -> int:
        wanted = any(v in self.outputs or v in self.wants or v in self.whole for v in eqn.outvars)
        if not wanted and not eqn.effects:
            return effect_height
        height = 1 + max((self._height(v) for v in eqn.outvars), default=-1)
        if eqn.effects:
            height = max(height, effect_height + 1)
        group = self._new_group((), height, number, number)
        self.calls[number] = group
        self.makers.update(dict.fromkeys(eqn.outvars, group))
        for var in eqn.outvars:
            self.stored.add(var)
            self._settle(var)
        for var in dict.fromkeys(v for v in eqn.invars if not isinstance(v, Literal)):
            self._want_whole(var, group)
        return height if eqn.effects else effect_height

    def _visit_reduction(self, number: int, eqn: JaxprEqn) -> None:
        if not any(v in self.outputs or v in self.wants or v in self.whole for v in eqn.outvars):
            return
        height = 1 + max(self._height(v) for v in eqn.outvars)
        space = eqn.invars[0].aval.shape
        reduced = tuple(sorted(eqn.primitive.lower.axes(eqn.params)))
        leaves = frozenset[Leaf]().union(*(self.survey.leaves[v] for v in eqn.invars if not isinstance(v, Literal)))
        group = self._sibling(space, eqn.outvars, reduced, leaves) or self._new_group(space, height, number)
        group.reduced = reduced
        group.reductions.append(number)
        group.leaves |= leaves
        group.last = max(group.last, number)
        group.evaluated += len(eqn.outvars)
        self.makers.update(dict.fromkeys(eqn.outvars, group))
        for var in eqn.outvars:
            if var.aval.size != 1 or var in self.outputs or var in self.whole:
                self.stored.add(var)
            self._settle(var)
        for atom in eqn.invars:
            self._want(atom, group, group.axes, False, group.size)

    def _visit_pointwise(self, number: int, eqn: JaxprEqn) -> None:
        (out,) = eqn.outvars
        source: Any = eqn.invars[0] if eqn.invars else None
        if out in self.whole and out not in self.outputs and memory_view(eqn) is not None and self._can_alias(eqn, out):
            self.aliases[out] = number
            for group in self.whole.pop(out):
                self._want_whole(source, group)
        elif out in self.outputs and memory_view(eqn) and self._can_forward(source, out):
            self.aliases[out] = number
            self.forwarded[source] = out
            self.outputs.discard(out)
            self.outputs.add(source)
            for group in self.whole.pop(out, ()):
                self._want_whole(source, group)
        wants = self.wants.get(out)
        if out in self.outputs or out in self.whole:
            if out.aval.size == 1 and wants:  # others compute it again, instead of waiting for what is stored with it
                self._inline(number, eqn, out, wants)
            self._store(number, eqn, out)
        elif wants is None:
            return
        elif (self.survey.changed or self.changing) and self._is_taken_out(out, wants):
            self._store(number, eqn, out, alone=True)
        elif (
            (self._is_free(eqn, out) and not self._is_read_again(out, wants))
            or self._once(out, wants)
            or self._is_dealt_out(eqn, out, wants)
            or self._is_repeated(out, wants)
        ):
            self._inline(number, eqn, out, wants)
        else:
            self._store(number, eqn, out)

    def _inline(self, number: int, eqn: JaxprEqn, out: Var, wants: dict[Group, dict[Index, bool]]) -> None:
        for group, indices in wants.items():
            for index, lazy in indices.items():
                self._evaluate(number, eqn, group, index, lazy, self.elements[out, group, index])
        del self.wants[out]

    def _can_alias(self, eqn: JaxprEqn, out: Var) -> bool:
        source = eqn.invars[0]
        if isinstance(source, Literal) or source.aval.size <= 1:
            return False
        if memory_view(eqn) and out.aval.size == source.aval.size:  # another shape of the same elements in a row
            if not self.survey.contiguous[source]:
                self.in_a_row.add(source)
            return True
        if out in self.in_a_row:
            return False
        in_a_row = memory_view(eqn) and self.survey.contiguous[source] and self._is_in_memory(source)
        return in_a_row or all(self._strided_wishes(out))

    def _is_in_memory(self, var: Var) -> bool:
        """Whether a value is stored whatever happens: an argument, what a call gives, or these in another shape."""
        number = self.producer.get(var)
        if number is None:
            return True
        eqn = self.eqns[number]
        if not isinstance(eqn.primitive.lower, (*POINTWISE, Reduction)):
            return True
        source = eqn.invars[0] if eqn.invars else None
        return bool(memory_view(eqn)) and isinstance(source, Var) and self._is_in_memory(source)

    def _can_forward(self, source, out: Var) -> bool:
        """Whether the operand of a reshape can be computed in the memory of the program's result: by loops over its own
        axes, which divide no index. Measured (Zen 4, one thread): 3 x 3 blocks of pixels of three bytes from channels
        38 us, now 4; the reverse of blocks of 4 x 4 floats 15, now 3.
        """
        return (
            not isinstance(source, Literal)
            and source in self.producer
            and source not in self.outputs
            and out.aval.size == source.aval.size > 1
        )

    def _strided_wishes(self, out: Var) -> list[bool]:
        return [
            g.call is not None and getattr(self.eqns[g.call].primitive.lower, "strided", False) for g in self.whole[out]
        ]

    def _is_free(self, eqn: JaxprEqn, out: Var) -> bool:
        if out.aval.size == 1:
            return True
        kind = eqn.primitive.lower
        if isinstance(kind, Pointwise) and kind.is_view:
            return True
        if "producers" in switches.skip:
            return False
        large = [v for v in self.survey.sources[out] if FAR_SMALLER * v.aval.size > out.aval.size]
        again = FREE_COST if len(large) > 1 else 0  # two arrays to read again instead of one
        return self.survey.costs[out] <= (FREE_COST - again if large else REPEATED_COST)

    def _is_read_again(self, out: Var, wants: dict[Group, dict[Index, bool]]) -> bool:
        """Whether elements are wanted so often that it is asked whether they are sooner stored: those that lie apart in
        memory, and what is computed of what the first cache does not hold. (Where a padded array begins is known.)
        """
        arithmetic = self.survey.costs[out] and isinstance(self.eqns[self.producer[out]].primitive.lower, Elementwise)
        far = arithmetic and is_large(out)
        apart = self.survey.apart_in_memory[out] and not self._is_turned_back(out, wants)
        if out.aval.size <= COPIED_FREELY or not (apart or far):
            return False
        evaluations = sum(
            min(turns(group, index), self.elements[out, group, index])
            for group, each in wants.items()
            for index in each
        )
        return evaluations >= (AGAIN if apart else 2 * AGAIN) * out.aval.size

    def _is_turned_back(self, out: Var, wants: dict[Group, dict[Index, bool]]) -> bool:
        """Whether a transposed array is wanted in the order in which its operand lies."""
        eqn = self.eqns[self.producer[out]]
        source = eqn.invars[0] if eqn.primitive.name == "transpose" else None
        if not isinstance(source, Var) or self.survey.apart_in_memory[source]:
            return False
        place = {axis: k for k, axis in enumerate(eqn.params["permutation"])}
        return all(
            goes_along(group, tuple([index[place[axis]] for axis in range(len(index))]))
            for group, each in wants.items()
            for index in each
        )

    def _is_repeated(self, out: Var, wants: dict[Group, dict[Index, bool]]) -> bool:
        """Whether a value is computed wherever it is wanted, as memory is the dearer."""
        if "producers" in switches.skip:
            return False
        return self._is_cheap(out, wants, self.survey.costs[out], self.survey.sources[out]) or (
            out in self.survey.shallow and self._is_cheap(out, wants, *self.survey.shallow[out])
        )

    def _is_cheap(self, out: Var, wants: dict[Group, dict[Index, bool]], cost: float, made_of: tuple[Var, ...]) -> bool:
        """The same if it takes operations of that cost on those values."""
        if cost * (sum(map(len, wants.values())) - 1) > MOST_REPEATED:
            return False
        sources = [v for v in made_of if FAR_SMALLER * v.aval.size > out.aval.size]
        uses = []
        for group, indices in wants.items():
            again = [v.aval for v in sources if v not in group.reads and group not in self.wants.get(v, ())]
            turned = not group.reductions and any(is_turned(group, index) for index in indices)
            evaluations = sum(turns(group, index) for index in indices)
            uses.append(Use(evaluations, sum(v.size * v.dtype.itemsize for v in again), turned))
        rows = 1
        if any(group.reductions for group in wants):
            depth = min(common_loops(group, index, out.aval.shape) for group, each in wants.items() for index in each)
            rows = math.prod(out.aval.shape[:depth])
        return is_repeated(out.aval, cost, [v.aval for v in sources], uses, rows)

    def _is_taken_out(self, out: Var, wants: dict[Group, dict[Index, bool]]) -> bool:
        """Whether `out` is a few elements of an array that a call may overwrite before some group wants them; or one
        element of an argument that a nest may overwrite while it wants that.
        """
        for source in self.survey.sources[out]:
            if source.aval.size < max(COPIED_FREELY, 4 * out.aval.size):
                continue
            if source in self.changing and out.aval.size == 1:
                return True
            for call in self.survey.changed.get(source, ()):
                writer = self.calls.get(call)
                if writer is None or any(group.height < writer.height for group in wants):
                    return True
        return False

    def _once(self, out: Var, wants: dict[Group, dict[Index, bool]]) -> bool:
        if len(wants) != 1 or "producers" in switches.skip:
            return False
        ((group, indices),) = wants.items()
        if len(indices) != 1:
            return False
        (index,) = indices
        if group.size <= 2 * out.aval.size:
            return True
        # An operand of a join: loops are cut where it begins, as long as one function can hold every part.
        if (
            self.elements[out, group, index] <= EVALUATED_ONCE * out.aval.size
            and group.evaluated + self.survey.costs[out] <= MOST_OPS
        ):
            return True
        # Fewer elements than iterations: worth it only if the outer loops alone determine the index.
        return turns(group, index) <= 2 * out.aval.size

    def _is_dealt_out(self, eqn: JaxprEqn, out: Var, wants: dict[Group, dict[Index, bool]]) -> bool:
        """Whether a value that is others' elements rearranged, or takes few operations, is wanted by one group at a few
        indices, each element at one of them: the parts of a shifted concatenation are copied to where they belong, and
        nothing is stored.
        """
        kind = eqn.primitive.lower
        if len(wants) != 1:
            return False
        ((group, indices),) = wants.items()
        if not (isinstance(kind, Pointwise) and kind.moves):
            parts = group.call is None and not group.reductions and isinstance(kind, Elementwise)
            if not parts or self.survey.costs[out] > DEALT_OUT_COST:
                return False
        return len(indices) <= MOST_PARTS and (
            sum(self.elements[out, group, index] for index in indices) <= EVALUATED_ONCE * out.aval.size
        )

    def _store(self, number: int, eqn: JaxprEqn, out: Var, alone: bool = False) -> None:
        wants = self.wants.get(out, {})
        height = self._height(out)
        group = None if alone else self._consumer(out, wants, height)
        if group is None and not alone:
            group = self._sibling(out.aval.shape, (out,), None, frozenset(self.survey.leaves[out]))
        if group is None:
            group = self._new_group(out.aval.shape, height + 1, number, alone=alone)
        self.stored.add(out)
        self.makers[out] = group
        group.stores.append(out)
        group.leaves.update(self.survey.leaves[out])
        group.last = max(group.last, number)
        wants.pop(group, None)
        self._settle(out)
        self._evaluate(number, eqn, group, group.axes, False, group.size)

    def _consumer(self, out: Var, wants: dict[Group, dict[Index, bool]], height: int) -> Group | None:
        """The one group at the greatest height, if it walks the value's own space and wants it there only."""
        highest = [group for group in wants if group.height == height]
        if len(highest) != 1 or any(group.height == height for group in self.whole.get(out, ())):
            return None
        (group,) = highest
        if group.call is not None or group.space != out.aval.shape or len(group.stores) >= MAX_STORES:
            return None
        if self._is_of_rows(out, group.reduced):
            return None
        indices = wants[group]
        return group if len(indices) == 1 and group.axes in indices else None

    def _sibling(
        self, space: Shape, outs: Sequence[Var], reduced: tuple[int, ...] | None, leaves: frozenset[Leaf]
    ) -> Group | None:
        """A group that walks `space`, reads one of `leaves` in its order, and can run before all that want `outs`."""
        if "siblings" in switches.skip:
            return None
        everyone = {g for v in outs for g in (*self.wants.get(v, ()), *self.whole.get(v, ()))}
        small = math.prod(space) <= SMALL_SPACE
        stuck = set(everyone)
        for group in reversed(self.by_space.get(space, ())[-8:]):
            if len(group.stores) + len(group.reductions) >= MAX_STORES:
                continue
            if reduced is not None and group.reduced is not None and reduced != group.reduced:
                continue
            if not small and group.leaves.isdisjoint(leaves):
                continue
            if reduced is None and self._is_of_rows(outs[0], group.reduced):
                continue
            if group.reduced is None and any(self._is_of_rows(v, reduced) for v in group.stores):
                continue
            if (
                reduced is None
                and group in everyone
                and list(self.wants.get(outs[0], {}).get(group, ())) == [group.axes]
            ):
                waiting = everyone - {group}  # it has at hand what it wants, if it is what computes it
                if self._reaches(group, 1 + max((g.height for g in waiting), default=-1), waiting):
                    return group
            elif self._reaches(group, 1 + max((g.height for g in everyone), default=-1), stuck):
                return group
            else:  # nor can what would have to be lifted with it
                stuck.add(group)
        return None

    def _is_of_rows(self, out: Var, reduced: tuple[int, ...] | None) -> bool:
        """Whether a value is made of reductions along other axes of its space than those that are `reduced`.

        It belongs to their rows (`rows.py`), with which sums along this axis share no loop. Measured (Sapphire Rapids):
        the three gradients of a layer norm of 1500 x 700, of which that of the data was stored by the loops that sum
        the other two: 2500 us, now 1000.
        """
        if reduced is None:
            return False
        shape = out.aval.shape
        for source in self.survey.sources[out]:
            number = self.producer.get(source)
            eqn = None if number is None else self.eqns[number]
            if eqn is None or not isinstance(eqn.primitive.lower, Reduction):
                continue
            theirs = eqn.invars[0].aval.shape
            if math.prod(theirs) != out.aval.size:
                continue
            same = next((a for a, (m, n) in enumerate(zip(shape, theirs)) if m != n), len(theirs))
            axes = [a for a in eqn.primitive.lower.axes(eqn.params) if a < same]
            if not set(axes) & set(reduced) and any(a < same for a in reduced):
                return True
        return False

    def _reaches(self, group: Group, height: int, waiting: Set[Group]) -> bool:
        """Whether the group is at `height` or more, or can be lifted there with the groups whose results it reads,
        none of which is among those that are `waiting` for what it is to compute.
        """
        lifted: dict[Group, int] = {}
        stack = [(group, height)]
        while stack:
            each, least = stack.pop()
            if max(each.height, lifted.get(each, 0)) >= least:
                continue
            fixed = each.call is not None and self.eqns[each.call].effects
            if each in waiting or fixed or len(lifted) == MAX_LIFTED:
                return False
            lifted[each] = least
            stack.extend((self.makers[v], least + 1) for v in each.reads if v in self.makers)
        for each, least in lifted.items():
            each.height = least
        return True

    def _evaluate(self, number: int, eqn: JaxprEqn, group: Group, index: Index, lazy: bool, elements: float) -> None:
        """So many elements of the result of `eqn` are computed in `group` at `index`: want its operands."""
        group.last = max(group.last, number)
        group.evaluated += operations_of(eqn)
        if lazy and not variables(index):
            lazy = False  # one element, which exists
        if isinstance(eqn.primitive.lower, Elementwise):
            for atom in eqn.invars:
                self._want(atom, group, index if atom.aval.shape else (), lazy, elements)
            return
        if group.pieces is None and self._are_side_by_side(eqn, group):
            along = index[eqn.params["dimension"]]
            group.pieces = group.axes.index(along) if along in group.axes else None
        found, direct = accesses(self.b, self.intern, eqn, index)
        group.apart |= direct
        moves = isinstance(eqn.primitive.lower, Pointwise) and eqn.primitive.lower.moves
        share = elements / max(eqn.outvars[0].aval.size, 1) if moves else 0.0
        for access in found:
            operand = eqn.invars[access.operand]
            needed = share * operand.aval.size if moves else elements
            self._want(operand, group, access.index, lazy or access.lazy, needed)

    def _are_side_by_side(self, eqn: JaxprEqn, group: Group) -> bool:
        """Whether the pieces of a join are computed of what others of them are made of, too: one pass writes all."""
        count = len(eqn.invars)
        if not joins_pieces(eqn) or group.reductions or count > MOST_PIECES or group.size < LEAST_PIECES * count:
            return False
        pieces = [v for v in eqn.invars if not isinstance(v, Literal)]
        if any(v in self.survey.rearranged for v in pieces):  # loops along other axes are cut, too
            return False
        sources = [source for v in pieces if self.survey.costs[v] for source in self.survey.sources[v]]
        return len(sources) > len(set(sources))

    # Wants.

    def _want(self, atom, group: Group, index: Index, lazy: bool, elements: float) -> None:
        if isinstance(atom, Literal):
            return
        if 1 in atom.aval.shape:
            index = tuple(self.zero if n == 1 else i for i, n in zip(index, atom.aval.shape))
        indices = self.wants.setdefault(atom, {}).setdefault(group, {})
        indices[index] = indices.get(index, True) and lazy
        self.elements[atom, group, index] = elements + self.elements.get((atom, group, index), 0.0)
        if atom not in self.producer:
            self._note(atom, group, index, lazy)

    def _want_whole(self, var: Var, group: Group) -> None:
        number = self.producer.get(var)
        if number is None:
            self._note(var, group, (), False)
        self.whole.setdefault(var, []).append(group)

    def _settle(self, var: Var) -> None:
        """The value is in memory or registers: those that want it read it."""
        for group, indices in self.wants.pop(var, {}).items():
            for index, lazy in indices.items():
                self._note(var, group, index, lazy)
        for group in self.whole.pop(var, ()):
            self._note(var, group, (), False)

    def _note(self, var: Var, group: Group, index: Index, lazy: bool) -> None:
        group.reads.setdefault(var, {})[index] = lazy
        key = (group.axes, group.space, index, var.aval.shape)
        apart = self.apart.get(key)
        if apart is None:
            apart = self.apart[key] = apart_axes(*key)
        group.apart |= apart

    def _height(self, var: Var) -> int:
        return max((g.height for g in (*self.wants.get(var, ()), *self.whole.get(var, ()))), default=-1)

    def _new_group(self, space: Shape, height: int, number: int, call: int | None = None, alone: bool = False) -> Group:
        axes = tuple([self.zero if n == 1 else self.intern.axis(a) for a, n in enumerate(space)])
        group = Group(len(self.groups), space, axes, height, call, last=number)
        self.groups.append(group)
        if call is None and not alone:
            self.by_space.setdefault(space, []).append(group)
        return group
