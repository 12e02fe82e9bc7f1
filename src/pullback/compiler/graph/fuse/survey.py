"""What each value of a flat jaxpr is made of: a pass over its equations from first to last, before fusion decides.

A value's sources are those that are stored in any case: arguments, results of reductions and of calls.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence, Set

from pullback.compiler.graph.fuse.groups import Leaf, Shape, operand_pairs
from pullback.compiler.graph.fuse.views import memory_view, takes_apart
from pullback.compiler.graph.simplify.rewrite import joins_pieces
from pullback.core.jaxpr import Jaxpr, JaxprEqn, Literal, Var
from pullback.core.lowering import Elementwise, Pointwise
from pullback.loops.emit.ops import ROUNDED
from pullback.loops.schedule.machine import NOMINAL

POINTWISE = (Elementwise, Pointwise)
SHORT = ("float16", "bfloat16")  # types of what is computed in float32 and rounded
MOST_COST = 1 << 20  # additions beyond which costs are not told apart: they double with each use of a value by the next
SMALLER = 2  # times: a value so much smaller than what is made of it may be stored, and that be repeated
# Share of what it takes to choose between the pieces of a large join that is one array with a few elements beside it:
# loops are cut there (loops/passes/split.py). Measured (Zen 4): a convolution by 3 x 3 of 256 x 256 pixels, padded by
# those of the other edge, 34 us, now 11.
EDGED = 0.25
DEAR_SHARED = 16  # additions of a value that is sooner stored than what is made of it, where others want it, too
# Pieces of a join that are chosen among at the cost of its record: two ends of an array are one choice in most places.
# Measured (Zen 4): a layer of e3nn, which joins products of 50 slices of joins of five pieces, took 62 s to compile and
# 210 ms, now 1.9 and 9.
CHOSEN = 2
FAR_SMALLER = 4  # times: what is repeated along other axes is in the first cache, or computed before inner loops
MAX_LEAVES = 12  # arrays remembered per value, to see which groups read the same ones


class Survey:
    """What is known of each variable of a jaxpr; `changing` are arguments whose memory is that of a result."""

    def __init__(self, jaxpr: Jaxpr, changing: Set[Var]) -> None:
        self.producer: dict[Var, int] = {}  # number of the equation
        self.users = Counter(v for eqn in jaxpr.eqns for v in eqn.invars if not isinstance(v, Literal))
        self.changed: dict[Var, list[int]] = {}  # numbers of the calls that may overwrite a value
        self.costs: dict[Var, float] = {}  # additions that each element takes from its sources on
        # What it is computed from, in an order that no process changes, as only the first MAX_LEAVES are kept.
        self.sources: dict[Var, tuple[Var, ...]] = {}
        # The same if smaller values on the way are stored, and dear ones that others want: (cost, sources), where that
        # makes it less.
        self.shallow: dict[Var, tuple[float, tuple[Var, ...]]] = {}
        self.leaves: dict[Var, tuple[Leaf, ...]] = {}  # its sources, and how they are turned on the way
        self.contiguous: dict[Var, bool] = {}
        self.rearranged: set[Var] = (
            set()
        )  # of joins and the like of more than single elements along an axis, or of these
        self.apart_in_memory: dict[Var, bool] = {}  # whether what it is made of lies so, along its last axis
        for var in (*jaxpr.constvars, *jaxpr.invars):
            self._is_source(var)
        for number, eqn in enumerate(jaxpr.eqns):
            kind = eqn.primitive.lower
            for var in eqn.outvars:
                self.producer[var] = number
            operands = [v for v in eqn.invars if not isinstance(v, Literal)]
            if not isinstance(kind, POINTWISE):
                for var in eqn.outvars:
                    self._is_source(var)
                for k, _ in operand_pairs(eqn):
                    operand = eqn.invars[k]
                    if isinstance(operand, Var) and (operand in self.producer or operand in changing):
                        self.changed.setdefault(operand, []).append(number)
                continue
            (out,) = eqn.outvars
            big = [v for v in operands if v.aval.size > 1]
            sources = tuple(dict.fromkeys(s for v in big for s in self.sources[v]))[:MAX_LEAVES]
            near = dict.fromkeys(v for v in big if FAR_SMALLER * v.aval.size > out.aval.size)
            computed = isinstance(kind, Elementwise) or not kind.is_view
            own: float = kind.cost if computed else 0
            if computed and not isinstance(kind, Elementwise) and kind.moves:
                own *= EDGED if _is_edged(operands, out) else max(len(eqn.invars) // CHOSEN, 1)
            if out.aval.dtype.name in SHORT and eqn.primitive.name in ROUNDED and is_large(out):
                own += NOMINAL.operations.rounding
            if (computed and not isinstance(kind, Elementwise) and kind.moves and not joins_pieces(eqn)) or any(
                v in self.rearranged for v in operands
            ):
                self.rearranged.add(out)
            self.costs[out] = min(sum([self.costs[v] for v in near]) + own, MOST_COST)
            self._note_shallow(out, big, own)
            self.leaves[out] = self._leaves(eqn, big)
            self.sources[out] = sources
            self.apart_in_memory[out] = takes_apart(eqn) or any([self.apart_in_memory[v] for v in near])
            view = memory_view(eqn)
            if view is not None and not isinstance(eqn.invars[0], Literal):
                self.contiguous[out] = view and self.contiguous[eqn.invars[0]]
            else:
                self.contiguous[out] = True

    def _note_shallow(self, out: Var, operands: Sequence[Var], own: float) -> None:
        cost, sources = own, dict[Var, None]()
        for v in operands:
            if SMALLER * v.aval.size <= out.aval.size or self._is_shared(v):
                sources[v] = None
                continue
            more, made_of = self.shallow.get(v) or (self.costs[v], self.sources[v])
            cost += more
            sources |= dict.fromkeys(made_of)
        if cost < self.costs[out]:
            self.shallow[out] = cost, tuple(sources)[:MAX_LEAVES]

    def _is_shared(self, var: Var) -> bool:
        """Whether a large value is dear, and wanted for others, too: of what is cheap of it, it is what is stored."""
        return self.users[var] > 1 and self.costs[var] >= DEAR_SHARED and is_large(var)

    def _is_source(self, var: Var) -> None:
        self.costs[var] = 0
        self.sources[var] = (var,)
        self.leaves[var] = ((var, ()),)
        self.contiguous[var] = True
        self.apart_in_memory[var] = False

    def _leaves(self, eqn: JaxprEqn, operands: Sequence[Var]) -> tuple[Leaf, ...]:
        leaves = dict.fromkeys(leaf for v in operands for leaf in self.leaves[v])
        if eqn.primitive.name == "transpose":
            leaves = dict.fromkeys((var, _turned(ways, eqn.params["permutation"])) for var, ways in leaves)
        return tuple(leaves)[:MAX_LEAVES]


def _turned(ways: tuple[Shape, ...], permutation: Shape) -> tuple[Shape, ...]:
    """Transpositions on the way from a leaf, one more of them: what is turned back was not turned."""
    if ways and sorted(permutation, key=permutation.__getitem__) == list(ways[-1]):
        return ways[:-1]
    return (*ways, tuple(permutation))


def is_large(var: Var) -> bool:
    """Whether the first cache does not hold a value."""
    return bool(var.aval.size * var.aval.dtype.itemsize > NOMINAL.first.bytes)


def _is_edged(operands: Sequence[Var], out: Var) -> bool:
    """Whether a large value is one array, with a few elements at its edges."""
    return is_large(out) and any(8 * v.aval.size >= 7 * out.aval.size for v in operands)
