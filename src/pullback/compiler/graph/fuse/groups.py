"""What fusion decides, as data: groups of equations that share a loop nest, and rows of groups that share outer
loops.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field
from typing import Any

from pullback.compiler.graph.fuse.access import Index, variables
from pullback.core.jaxpr import JaxprEqn, Var
from pullback.core.lowering import Nest
from pullback.loops.ir import Const, Read
from pullback.util.record import frozen_record, mutable_record

Shape = tuple[int, ...]
Leaf = tuple[Var, tuple[Shape, ...]]  # an array that is read, and the transpositions on the way from it


@mutable_record
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
    leaves: set[Leaf] = field(default_factory=set)
    reads: dict[Var, dict[Index, bool]] = field(default_factory=dict)  # values in memory or registers; index -> lazy
    apart: set[Any] = field(default_factory=set)  # axes that are used otherwise than as plain indices: `apart_axes`
    last: int = 0  # number of the last equation in it
    evaluated: int = 0  # values computed per iteration, for reports
    row: Row | None = None
    walk: tuple[int, ...] | None = None  # order of the axes where it is not the natural one
    pieces: int | None = None  # the axis of a join of a few pieces, which are computed side by side

    @property
    def size(self) -> int:
        """Iterations."""
        return math.prod(self.space)

    @property
    def order(self) -> tuple[int, ...]:
        """Axes from the outermost loop to the innermost: the kept ones, last that of pieces and those of size 1, then
        the reduced ones.
        """
        if self.walk is not None:
            return self.walk
        return (*sorted(self.kept, key=lambda a: (self.space[a] == 1, a == self.pieces)), *(self.reduced or ()))

    @property
    def kept(self) -> tuple[int, ...]:
        """Axes that are not reduced."""
        return tuple(a for a in range(len(self.space)) if a not in (self.reduced or ()))

    def outputs(self, eqns: list[JaxprEqn]) -> list[Var]:
        """Everything it defines for others."""
        if self.call is not None:
            return eqns[self.call].outvars
        return [v for n in self.reductions for v in eqns[n].outvars] + self.stores


@mutable_record
class Row:
    """Groups that share their outer loops: each iteration runs them one after the other on one row."""

    groups: list[Group]  # from the highest to the lowest
    extents: Shape  # of the shared loops
    kept: bool = False  # whether what it is for is that values of a row stay in a near cache


@mutable_record
class Fusion:
    """What `fuse` decided for one jaxpr."""

    units: list[Row | Group]  # in the order of execution
    stored: set[Var]  # values that get memory
    aliases: dict[Var, int]  # views of values in memory: the number of the equation that makes the view
    forwarded: dict[Var, Var]  # a value in memory that is, reshaped, the result given second
    row_local: dict[Var, Row]  # values in memory that only one row's groups read
    producer: dict[Var, int]  # number of the equation that defines a variable
    users: dict[Var, int]  # how many operands a variable is


def operand_pairs(eqn: JaxprEqn) -> Sequence[tuple[int, int]]:
    """(operand, result) for each result of a call that may be where an operand was."""
    kind = eqn.primitive.lower
    return kind.pairs(eqn.params) if isinstance(kind, Nest) else ()


def apart_axes(axes: Index, space: Shape, index: Index, shape: Shape) -> frozenset[Any]:
    """What of an iteration space an index into `shape` uses otherwise than one after the other, over the whole extent:
    variables of axes, and boundaries between axes."""
    plain = {axis: a for a, axis in enumerate(axes)}
    apart: set[Any] = set()
    for d, component in enumerate(index):
        if isinstance(component, Const):
            continue
        a = plain.get(component)
        if a is None or shape[d] != space[a]:
            apart |= variables((component,))
    # Neighbours in the space that are not neighbours in the array cannot be walked as one axis.
    used = [plain[c] for c in index if isinstance(c, Read) and c in plain]
    real = [a for a, n in enumerate(space) if n != 1]
    if used and used != real[real.index(used[0]) : real.index(used[0]) + len(used)]:
        apart |= variables(index)
    elif used:
        # An array indexed by some of the axes: those beside it that are not among them must stay loops of their own.
        for inside, outside in ((used[0], real.index(used[0]) - 1), (used[-1], real.index(used[-1]) + 1)):
            if 0 <= outside < len(real):
                apart.add(Boundary(min(inside, real[outside]), max(inside, real[outside])))
    return frozenset(apart)


@frozen_record
class Boundary:
    """Two neighbouring axes that must not become one loop."""

    left: int
    right: int


def may_merge(group: Group, left: int, right: int) -> bool:
    """Whether the neighbouring axes (sizes other than 1, in order) can be walked by one loop."""
    if not group.apart:
        return True
    if Boundary(left, right) in group.apart:
        return False
    return not any(isinstance(axis := group.axes[a], Read) and axis.var in group.apart for a in (left, right))


def turns(group: Group, index: Index) -> int:
    """How often a group computes a value at an index: where outer loops alone determine it, before the inner ones."""
    used = variables(index)
    position = {axis.var: n for n, a in enumerate(group.order) if isinstance(axis := group.axes[a], Read)}
    if not all(v in position for v in used):
        return group.size
    depth = 1 + max((position[v] for v in used), default=-1)
    return math.prod(group.space[a] for a in group.order[:depth])


def common_loops(group: Group, index: Index, shape: Shape) -> int:
    """How many outer loops of a group go along the first axes of a value that it wants."""
    depth = 0
    for a, n in enumerate(shape[: len(group.space)]):
        if n != group.space[a] or index[a] is not group.axes[a] or a in (group.reduced or ()):
            break
        depth += 1
    return depth


def is_turned(group: Group, index: Index) -> bool:
    """Whether the innermost loop goes along another axis of a value than the one whose elements are neighbours."""
    inner, last = _innermost(group), _last(index)
    return inner in variables(index) and inner not in variables(last)


def goes_along(group: Group, index: Index) -> bool:
    """Whether the innermost loop goes along the axis of a value whose elements are neighbours."""
    return _innermost(group) in variables(_last(index))


def _innermost(group: Group) -> Any:
    along = (group.axes[a] for a in reversed(group.order) if a != group.pieces)  # pieces become straight code
    return next((axis.var for axis in along if isinstance(axis, Read)), None)


def _last(index: Index) -> Index:
    return next(((component,) for component in reversed(index) if not isinstance(component, Const)), ())
