"""Decides which values of a flat jaxpr are written to memory, and which equations share a loop nest.

A group is one iteration space walked once. Its loops evaluate, at one index, everything that is pulled into it: views and
pointwise operations cost no memory traffic. Several roots of one space share a group (an optimizer's update of parameters
and moments is one pass over memory), and so do reductions over one space. Calls into libraries and control flow stand alone.

The equations are visited from last to first, so when one is visited all that is wanted of its results is known: by which
groups, at which symbolic indices. Then

    free        a view, iota, cheap arithmetic of one array, a single element: evaluated wherever it is wanted;
    inlined     wanted by one group at one index: evaluated there, without memory;
    stored      otherwise. It joins the group that wants it at its own index and runs first among those that want it,
                or a group of the same space that runs earlier still and reads the same arrays, or gets a new one.

No work is multiplied: what is not free is evaluated once per element (or once per row, hoisted out of the inner loop).
Each group has a height, larger than that of all groups which need its results; edges between groups always go downwards, so
merging never makes a cycle and every decision is local: the pass is linear in the length of the program.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, field

from pullback.core.jaxpr import Jaxpr, JaxprEqn, Literal, Var
from pullback.core.lowering import Elementwise, Pointwise, Reduction
from pullback.graph_passes.access import Index, Interner, accesses, canonical_index, ir_dtype, variables
from pullback.loop_ir import Builder, Const, Expr, Op, Read
from pullback.loop_ir import Var as LoopVar

FREE_COST = 2  # additions that are cheaper to repeat than to store and load again
MAX_STORES = 24  # streams that one loop nest writes
MAX_LEAVES = 12  # arrays remembered per value, to see which groups read the same ones
SMALL = 64  # elements of a space so small that its groups may be merged even if they share no array

Shape = tuple[int, ...]


@dataclass(eq=False, slots=True)
class Group:
    """One loop nest, or (with `call`) one equation that makes its own statements."""

    number: int
    space: Shape
    axes: Index  # symbolic index of the space; 0 along axes of size 1
    height: int
    call: int | None = None  # number of the equation
    reduced: tuple[int, ...] | None = None
    reductions: list[int] = field(default_factory=list)  # numbers of equations
    stores: list[Var] = field(default_factory=list)  # written at `axes`, by equations that are not reductions
    leaves: set[Var] = field(default_factory=set)
    reads: dict[Var, dict[Index, bool]] = field(default_factory=dict)  # values in memory or registers; index -> lazy
    apart: set[LoopVar] = field(default_factory=set)  # axes that are used otherwise than as plain indices
    last: int = 0  # number of the last equation in it
    evaluated: int = 0  # values computed per iteration, for reports
    row: Row | None = None

    @property
    def size(self) -> int:
        """Iterations."""
        return math.prod(self.space)

    @property
    def order(self) -> tuple[int, ...]:
        """Axes from the outermost loop to the innermost: the kept ones, then the reduced ones."""
        reduced = self.reduced or ()
        return tuple(a for a in range(len(self.space)) if a not in reduced) + tuple(reduced)

    @property
    def kept(self) -> tuple[int, ...]:
        """Axes that are not reduced."""
        return tuple(a for a in range(len(self.space)) if a not in (self.reduced or ()))

    def outputs(self, eqns: list[JaxprEqn]) -> list[Var]:
        """Everything it defines for others."""
        if self.call is not None:
            return eqns[self.call].outvars
        return [v for n in self.reductions for v in eqns[n].outvars] + self.stores


@dataclass(eq=False, slots=True)
class Row:
    """Groups that share their outer loops: each iteration runs them one after the other on one row."""

    groups: list[Group]  # from the highest to the lowest
    extents: Shape  # of the shared loops


@dataclass(slots=True)
class Fusion:
    """What `fuse` decided for one jaxpr."""

    units: list[Row | Group]  # in the order of execution
    stored: set[Var]  # values that get memory
    aliases: dict[Var, int]  # views of values in memory: the number of the equation that makes the view
    forwarded: dict[Var, Var]  # a value in memory that is, reshaped, the result given second
    row_local: dict[Var, Row]  # values in memory that only one row's groups read
    producer: dict[Var, int]  # number of the equation that defines a variable
    users: dict[Var, int]  # how many operands a variable is


def fuse(jaxpr: Jaxpr, b: Builder, intern: Interner) -> Fusion:
    """The groups of a flat jaxpr, whose equations all have a lowering kind other than Inline."""
    return _Fuser(jaxpr, b, intern).run()


def is_cheap(cost: float) -> bool:
    """Whether a value of this cost, with all it is computed from, is repeated rather than stored."""
    return cost <= FREE_COST


class _Fuser:
    def __init__(self, jaxpr: Jaxpr, b: Builder, intern: Interner) -> None:
        self.jaxpr, self.eqns, self.b, self.intern = jaxpr, jaxpr.eqns, b, intern
        self.zero = intern(b.index(0))
        self.groups: list[Group] = []
        self.by_space: dict[Shape, list[Group]] = {}
        self.wants: dict[Var, dict[Group, dict[Index, bool]]] = {}
        self.whole: dict[Var, list[Group]] = {}
        self.aliases: dict[Var, int] = {}
        self.stored: set[Var] = set()
        self.outputs = {v for v in jaxpr.outvars if type(v) is not Literal}
        self.forwarded: dict[Var, Var] = {}
        self.producer: dict[Var, int] = {}
        self.users: dict[Var, int] = {}
        self.costs: dict[Var, float] = {}
        self.sources: dict[Var, frozenset[Var]] = {}
        self.contiguous: dict[Var, bool] = {}

    def run(self) -> Fusion:
        self._survey()
        effect_height = -1
        for number in range(len(self.eqns) - 1, -1, -1):
            eqn = self.eqns[number]
            kind = eqn.primitive.lower
            if isinstance(kind, Elementwise | Pointwise):
                self._visit_pointwise(number, eqn)
            elif isinstance(kind, Reduction):
                self._visit_reduction(number, eqn)
            else:
                effect_height = self._visit_call(number, eqn, effect_height)
        for group in self.groups:
            group.stores.reverse()
            group.reductions.reverse()
        units = _rows(self.groups, self.eqns)
        row_local = self._row_locals(units)
        units = _ordered(units, self.eqns)
        return Fusion(units, self.stored, self.aliases, self.forwarded, row_local, self.producer, self.users)

    def _row_locals(self, units: list[Row | Group]) -> dict[Var, Row]:
        """Values that only their own row reads; reductions of whole rows among them stay in registers."""
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
                    if var not in group.stores and len(group.kept) <= len(row.extents):
                        self.stored.discard(var)
                    else:
                        local[var] = row
        return local

    # What each value is made of, first to last.

    def _survey(self) -> None:
        for var in (*self.jaxpr.constvars, *self.jaxpr.invars):
            self._is_source(var)
        for number, eqn in enumerate(self.eqns):
            kind = eqn.primitive.lower
            for var in eqn.outvars:
                self.producer[var] = number
            operands = [v for v in eqn.invars if type(v) is not Literal]
            for var in operands:
                self.users[var] = self.users.get(var, 0) + 1
            if not isinstance(kind, Elementwise | Pointwise):
                for var in eqn.outvars:
                    self._is_source(var)
                continue
            (out,) = eqn.outvars
            big = [v for v in operands if v.aval.size > 1]
            cost = sum(self.costs[v] for v in big)
            sources = frozenset[Var]().union(*(self.sources[v] for v in big))
            if isinstance(kind, Elementwise) or not kind.is_view:
                cost += kind.cost
                if len(big) > 1 and sum(4 * v.aval.size > out.aval.size for v in sources) > 1:
                    cost += FREE_COST  # two arrays to read again instead of one
            self.costs[out] = cost
            self.sources[out] = sources if len(sources) <= MAX_LEAVES else frozenset(list(sources)[:MAX_LEAVES])
            view = _memory_view(eqn)
            if view is not None and type(eqn.invars[0]) is not Literal:
                self.contiguous[out] = view and self.contiguous[eqn.invars[0]]
            else:
                self.contiguous[out] = True

    def _is_source(self, var: Var) -> None:
        self.costs[var] = 0
        self.sources[var] = frozenset((var,))
        self.contiguous[var] = True

    # Equations, last to first.

    def _visit_call(self, number: int, eqn: JaxprEqn, effect_height: int) -> int:
        wanted = any(v in self.outputs or v in self.wants or v in self.whole for v in eqn.outvars)
        if not wanted and not eqn.effects:
            return effect_height
        height = 1 + max((self._height(v) for v in eqn.outvars), default=-1)
        if eqn.effects:
            height = max(height, effect_height + 1)
        group = self._new_group((), height, number, number)
        strided = getattr(eqn.primitive.lower, "strided", False)
        for var in eqn.outvars:
            self.stored.add(var)
            self._settle(var)
        for var in dict.fromkeys(v for v in eqn.invars if type(v) is not Literal):
            self._want_whole(var, group, strided)
        return height if eqn.effects else effect_height

    def _visit_reduction(self, number: int, eqn: JaxprEqn) -> None:
        if not any(v in self.outputs or v in self.wants or v in self.whole for v in eqn.outvars):
            return
        height = 1 + max(self._height(v) for v in eqn.outvars)
        space = eqn.invars[0].aval.shape
        reduced = tuple(sorted(eqn.primitive.lower.axes(eqn.params)))
        sources = frozenset[Var]().union(*(self.sources[v] for v in eqn.invars if type(v) is not Literal))
        group = self._sibling(space, height, reduced, sources) or self._new_group(space, height, number)
        group.reduced = reduced
        group.reductions.append(number)
        group.leaves |= sources
        group.last = max(group.last, number)
        group.evaluated += len(eqn.outvars)
        for var in eqn.outvars:
            if var.aval.size != 1 or var in self.outputs or var in self.whole:
                self.stored.add(var)
            self._settle(var)
        for atom in eqn.invars:
            self._want(atom, group, group.axes, False)

    def _visit_pointwise(self, number: int, eqn: JaxprEqn) -> None:
        (out,) = eqn.outvars
        if out in self.whole and out not in self.outputs and _memory_view(eqn) is not None and self._can_alias(eqn, out):
            self.aliases[out] = number
            for group in self.whole.pop(out):
                self._want_whole(eqn.invars[0], group, True)
        elif out in self.outputs and _memory_view(eqn) and self._can_forward(eqn.invars[0], out):
            self.aliases[out] = number
            self.forwarded[eqn.invars[0]] = out
            self.outputs.discard(out)
            self.outputs.add(eqn.invars[0])
            for group in self.whole.pop(out, ()):
                self._want_whole(eqn.invars[0], group, True)
        wants = self.wants.get(out)
        if out in self.outputs or out in self.whole:
            self._store(number, eqn, out)
        elif wants is None:
            return
        elif self._is_free(eqn, out) or self._once(out, wants):
            for group, indices in wants.items():
                for index, lazy in indices.items():
                    self._evaluate(number, eqn, group, index, lazy)
            del self.wants[out]
        else:
            self._store(number, eqn, out)

    def _can_alias(self, eqn: JaxprEqn, out: Var) -> bool:
        source = eqn.invars[0]
        if type(source) is Literal or source.aval.size <= 1:
            return False
        if _memory_view(eqn):  # another shape of the same elements in a row
            return self.contiguous[source]
        return all(self._strided_wishes(out))

    def _can_forward(self, source, out: Var) -> bool:
        """Whether the operand of a reshape can be computed in the memory of the program's result."""
        return type(source) is not Literal and source in self.producer and source not in self.outputs \
            and self.contiguous[source] and out.aval.size > 1

    def _strided_wishes(self, out: Var) -> list[bool]:
        return [g.call is not None and getattr(self.eqns[g.call].primitive.lower, "strided", False) for g in self.whole[out]]

    def _is_free(self, eqn: JaxprEqn, out: Var) -> bool:
        if out.aval.size == 1:
            return True
        kind = eqn.primitive.lower
        return (isinstance(kind, Pointwise) and kind.is_view) or is_cheap(self.costs[out])

    def _once(self, out: Var, wants: dict[Group, dict[Index, bool]]) -> bool:
        if len(wants) != 1:
            return False
        ((group, indices),) = wants.items()
        if len(indices) != 1:
            return False
        (index,) = indices
        if group.size <= 2 * out.aval.size:
            return True
        # Fewer elements than iterations: worth it only if the outer loops alone determine the index.
        used = variables(index)
        position = {axis.var: n for n, a in enumerate(group.order) if isinstance(axis := group.axes[a], Read)}
        if not all(v in position for v in used):
            return False
        depth = 1 + max((position[v] for v in used), default=-1)
        return math.prod(group.space[a] for a in group.order[:depth]) <= 2 * out.aval.size

    def _store(self, number: int, eqn: JaxprEqn, out: Var) -> None:
        wants = self.wants.get(out, {})
        height = self._height(out)
        group = self._consumer(out, wants, height)
        if group is None:
            group = self._sibling(out.aval.shape, height + 1, None, self.sources[out])
        if group is None:
            group = self._new_group(out.aval.shape, height + 1, number)
        self.stored.add(out)
        group.stores.append(out)
        group.leaves |= self.sources[out]
        group.last = max(group.last, number)
        wants.pop(group, None)
        self._settle(out)
        self._evaluate(number, eqn, group, group.axes, False)

    def _consumer(self, out: Var, wants: dict[Group, dict[Index, bool]], height: int) -> Group | None:
        """The one group at the greatest height, if it walks the value's own space and wants it there only."""
        highest = [group for group in wants if group.height == height]
        if len(highest) != 1 or any(group.height == height for group in self.whole.get(out, ())):
            return None
        (group,) = highest
        if group.call is not None or group.space != out.aval.shape or len(group.stores) >= MAX_STORES:
            return None
        indices = wants[group]
        return group if len(indices) == 1 and group.axes in indices else None

    def _sibling(self, space: Shape, height: int, reduced: tuple[int, ...] | None, sources: frozenset[Var]) -> Group | None:
        """A group that walks `space` at `height` or more and reads one of `sources`."""
        small = math.prod(space) <= SMALL
        for group in reversed(self.by_space.get(space, ())[-8:]):
            if group.height < height or len(group.stores) + len(group.reductions) >= MAX_STORES:
                continue
            if reduced is not None and group.reduced is not None and reduced != group.reduced:
                continue
            if small or not group.leaves.isdisjoint(sources):
                return group
        return None

    def _evaluate(self, number: int, eqn: JaxprEqn, group: Group, index: Index, lazy: bool) -> None:
        """The result of `eqn` is computed in `group` at `index`: want its operands."""
        group.last = max(group.last, number)
        group.evaluated += 1
        if lazy and not variables(index):
            lazy = False  # one element, which exists
        if isinstance(eqn.primitive.lower, Elementwise):
            for atom in eqn.invars:
                self._want(atom, group, index if atom.aval.shape else (), lazy)
            return
        found, direct = accesses(self.b, self.intern, eqn, index)
        group.apart |= direct
        for access in found:
            self._want(eqn.invars[access.operand], group, access.index, lazy or access.lazy)

    # Wants.

    def _want(self, atom, group: Group, index: Index, lazy: bool) -> None:
        if type(atom) is Literal:
            return
        if 1 in atom.aval.shape:
            index = tuple(self.zero if n == 1 else i for i, n in zip(index, atom.aval.shape))
        indices = self.wants.setdefault(atom, {}).setdefault(group, {})
        indices[index] = indices.get(index, True) and lazy
        if atom not in self.producer:
            self._note(atom, group, index, lazy)

    def _want_whole(self, var: Var, group: Group, strided: bool) -> None:
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
        _keep_apart(group, index, var.aval.shape)

    def _height(self, var: Var) -> int:
        return max((g.height for g in (*self.wants.get(var, ()), *self.whole.get(var, ()))), default=-1)

    def _new_group(self, space: Shape, height: int, number: int, call: int | None = None) -> Group:
        axes = tuple(self.zero if n == 1 else self.intern(Read(LoopVar(f"a{a}", "i64"))) for a, n in enumerate(space))
        group = Group(len(self.groups), space, axes, height, call, last=number)
        self.groups.append(group)
        if call is None:
            self.by_space.setdefault(space, []).append(group)
        return group


def _memory_view(eqn: JaxprEqn) -> bool | None:
    """Whether the result can be the operand's memory: None if not, else whether contiguity is kept."""
    name = eqn.primitive.name
    if name == "reshape" and eqn.params.get("dimensions") is None:
        return True
    if name in ("squeeze", "expand_dims"):
        return True
    if name == "transpose":
        return False
    if name == "broadcast_in_dim" and eqn.invars[0].aval.size == eqn.outvars[0].aval.size:
        return True
    if name == "slice":
        return False
    return None


def _keep_apart(group: Group, index: Index, shape: Shape) -> None:
    """Note the axes that an index uses otherwise than one after the other, over the whole extent."""
    plain = {axis: a for a, axis in enumerate(group.axes)}
    extents = group.space
    position = -1
    for d, component in enumerate(index):
        if isinstance(component, Const):
            continue
        a = plain.get(component)
        if a is None or shape[d] != extents[a]:
            group.apart |= variables((component,))
            continue
        position = a
    # Neighbours in the space that are not neighbours in the array cannot be walked as one axis.
    used = [plain[c] for c in index if isinstance(c, Read) and c in plain]
    real = [a for a, n in enumerate(extents) if n != 1]
    if used and used != real[real.index(used[0]):real.index(used[0]) + len(used)]:
        group.apart |= variables(index)
    elif used:
        _split(group, real, used)


def _split(group: Group, real: list[int], used: list[int]) -> None:
    """An array indexed by some of the axes: those beside it that are not among them must stay loops of their own."""
    for inside, outside in ((used[0], real.index(used[0]) - 1), (used[-1], real.index(used[-1]) + 1)):
        if 0 <= outside < len(real):
            group.apart.add(_Boundary(min(inside, real[outside]), max(inside, real[outside])))  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class _Boundary:
    """Two neighbouring axes that must not become one loop."""

    left: int
    right: int


def may_merge(group: Group, left: int, right: int) -> bool:
    """Whether the neighbouring axes (sizes other than 1, in order) can be walked by one loop."""
    if _Boundary(left, right) in group.apart:
        return False
    return not any(isinstance(axis := group.axes[a], Read) and axis.var in group.apart for a in (left, right))


# Rows: groups that share their outer loops.

def _rows(groups: list[Group], eqns: list[JaxprEqn]) -> list[Row | Group]:
    """Joins reductions with the groups that use their results row by row, and those that feed the same rows."""
    definer: dict[Var, Group] = {}
    for group in groups:
        for var in group.outputs(eqns):
            definer[var] = group
    feeds: dict[Group, list[Group]] = {}
    for group in groups:
        feeds[group] = list(dict.fromkeys(definer[v] for v in group.reads if v in definer))
    consumers: dict[Group, list[Group]] = {}
    for group, sources in feeds.items():
        for source in sources:
            consumers.setdefault(source, []).append(group)
    units: list[Row | Group] = []
    # Groups were made from the last to the first: a consumer's row exists when its producers are looked at.
    for group in sorted(groups, key=lambda g: g.height):
        row = _row_to_join(group, consumers.get(group, ()), feeds, eqns)
        if row is not None:
            row.groups.insert(0, group)
            group.row = row
        elif group.call is None:
            group.row = Row([group], ())
            units.append(group.row)
        else:
            units.append(group)
    for unit in units:
        if isinstance(unit, Row) and len(unit.groups) == 1:
            unit.groups[0].row = None
    return [u.groups[0] if isinstance(u, Row) and len(u.groups) == 1 else u for u in units]


MAX_ROW_GROUPS = 16
MIN_ROWS = 16  # fewer rows than this are not joined if they are longer than
LONG_ROW = 100_000  # elements, which no cache holds: nothing is gained, and threads have less to share out


def _row_to_join(group: Group, consumers, feeds, eqns) -> Row | None:
    if group.call is not None or not consumers:
        return None
    for row in dict.fromkeys(c.row for c in consumers if c.row is not None):
        if len(row.groups) >= MAX_ROW_GROUPS or any(g.height > group.height for g in row.groups):
            continue
        extents = _shared_extents(group, row, eqns)
        if not extents:
            continue
        # No way out of the row and back: whatever else feeds it must stand as high as `group`.
        inside = set(row.groups)
        if all(f is group or f in inside or f.height >= group.height for g in row.groups for f in feeds[g]):
            row.extents = extents
            return row
    return None


def _shared_extents(group: Group, row: Row, eqns) -> Shape:
    """Extents of the outer loops that `group` can share with a row, all values between them being of one row; or ()."""
    if not group.reductions and all(not g.reductions for g in row.groups):
        return ()
    outer = len(group.kept) if group.reductions else len(group.space)
    limit = len(row.extents) if row.extents else len(row.groups[0].kept if row.groups[0].reductions else row.groups[0].space)
    depth = min(outer, limit)
    order = group.order
    extents = tuple(group.space[a] for a in order[:depth])
    for other in row.groups:
        other_extents = tuple(other.space[a] for a in other.order[:depth])
        depth = _common(extents[:depth], other_extents)
    produced = {v: False for v in group.stores} | {v: True for n in group.reductions for v in eqns[n].outvars}
    for other in row.groups:
        for var, reduced in produced.items():
            for index in other.reads.get(var, ()):
                depth = min(depth, _row_depth(other, index, var, group, reduced))
    while depth and extents[depth - 1] == 1:
        depth -= 1
    if row.extents and depth < len(row.extents) and math.prod(extents[:depth]) * 4 < math.prod(row.extents):
        return ()
    rows = math.prod(extents[:depth])
    if rows < MIN_ROWS and group.size > MIN_ROWS * LONG_ROW:
        return ()
    return extents[:depth] if rows > 1 else ()


def _common(left: Shape, right: Shape) -> int:
    depth = 0
    while depth < min(len(left), len(right)) and left[depth] == right[depth]:
        depth += 1
    return depth


def _row_depth(other: Group, index: Index, var: Var, group: Group, reduced: bool) -> int:
    """How many outer loops agree between the index at which `other` reads `var` and the one where `group` makes it."""
    made = [group.axes[a] for a in group.kept] if reduced else list(group.axes)
    loops = [group.axes[a] for a in group.order]
    theirs = [other.axes[a] for a in other.order]
    depth = 0
    for mine, their in zip(loops, theirs):
        if isinstance(mine, Const) and isinstance(their, Const):
            depth += 1
            continue
        if mine not in made or index[made.index(mine)] is not their:
            break
        depth += 1
    return depth


# The order of execution.

def _ordered(units: list[Row | Group], eqns: list[JaxprEqn]) -> list[Row | Group]:
    """Units sorted so that producers come first, else in the order of the program."""
    unit_of: dict[Group, int] = {}
    for n, unit in enumerate(units):
        for group in unit.groups if isinstance(unit, Row) else (unit,):
            unit_of[group] = n
    definer: dict[Var, int] = {}
    for group, n in unit_of.items():
        for var in group.outputs(eqns):
            definer[var] = n
    waits = [0] * len(units)
    after: list[list[int]] = [[] for _ in units]
    for group, n in unit_of.items():
        for source in {definer[v] for v in group.reads if v in definer} - {n}:
            waits[n] += 1
            after[source].append(n)
    effects = sorted((g.call, n) for g, n in unit_of.items() if g.call is not None and eqns[g.call].effects)
    for (_, first), (_, second) in zip(effects, effects[1:]):
        waits[second] += 1
        after[first].append(second)
    keys = [max(g.last for g in u.groups) if isinstance(u, Row) else u.last for u in units]
    ready = [(keys[n], n) for n in range(len(units)) if waits[n] == 0]
    heapq.heapify(ready)
    result: list[Row | Group] = []
    while ready:
        _, n = heapq.heappop(ready)
        result.append(units[n])
        for m in after[n]:
            waits[m] -= 1
            if waits[m] == 0:
                heapq.heappush(ready, (keys[m], m))
    if len(result) != len(units):
        raise AssertionError("fuse: the groups depend on each other in a circle")
    return result
