"""The pass that applies all rewrite rules: folding of constants, simplification, structure of products.

They are one table, since each makes work for the others: a folded number is a factor of 1, without which a transpose
meets a product, which is then one of a matrix with itself.
"""

from __future__ import annotations

from pullback.compiler.graph.simplify.fold import folding_rules
from pullback.compiler.graph.simplify.rewrite import Rewriter, Rule, repeated_number
from pullback.compiler.graph.simplify.simplify import simplification_rules
from pullback.compiler.graph.structure.additions import ADDITION_RULES
from pullback.compiler.graph.structure.axes import axis_rules
from pullback.compiler.graph.structure.bands import BAND_RULES
from pullback.compiler.graph.structure.bit_counts import BIT_COUNT_RULES
from pullback.compiler.graph.structure.blocks import BLOCK_RULES
from pullback.compiler.graph.structure.carried_sums import CARRIED_SUM_RULES, DONE_RULES
from pullback.compiler.graph.structure.chirps import CHIRP_RULES
from pullback.compiler.graph.structure.counted import COUNTED_RULES
from pullback.compiler.graph.structure.few_places import PLACE_RULES
from pullback.compiler.graph.structure.folds import FOLD_RULES
from pullback.compiler.graph.structure.gathers import GATHER_RULES
from pullback.compiler.graph.structure.networks import NETWORK_RULES
from pullback.compiler.graph.structure.one_hot import ONE_HOT_RULES
from pullback.compiler.graph.structure.ordering import ORDER_RULES
from pullback.compiler.graph.structure.overlaps import OVERLAP_RULES
from pullback.compiler.graph.structure.paddings import PADDING_RULES
from pullback.compiler.graph.structure.parts import PART_RULES
from pullback.compiler.graph.structure.phases import PHASE_RULES
from pullback.compiler.graph.structure.pieces import PIECE_RULES
from pullback.compiler.graph.structure.pooling import POOLING_RULES
from pullback.compiler.graph.structure.powers import POWER_RULES
from pullback.compiler.graph.structure.repeats import repeat_rules
from pullback.compiler.graph.structure.reversals import REVERSAL_RULES
from pullback.compiler.graph.structure.running import RUNNING_RULES
from pullback.compiler.graph.structure.scatters import SCATTER_RULES
from pullback.compiler.graph.structure.spectra import SPECTRUM_RULES
from pullback.compiler.graph.structure.stacks import STACK_RULES
from pullback.compiler.graph.structure.structure import STRUCTURE_RULES
from pullback.compiler.graph.structure.turned import TURNED_RULES
from pullback.compiler.graph.structure.types import TYPE_RULES
from pullback.compiler.graph.structure.updates import UPDATE_RULES
from pullback.compiler.graph.structure.windows import WHOLE, WINDOW_RULES
from pullback.compiler.graph.structure.written import WRITTEN_RULES
from pullback.core.jaxpr import ClosedJaxpr, Literal
from pullback.core.primitive import registry

_all: dict[str, tuple[Rule, ...]] = {}


def apply_algebra(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program with all rules applied, also inside of loops and branches; constants of one value become numbers."""
    return _applied(closed, whole=True)


def _inside(closed: ClosedJaxpr) -> ClosedJaxpr:
    return _applied(closed, whole=False)


def _applied(closed: ClosedJaxpr, whole: bool) -> ClosedJaxpr:
    r = Rewriter(closed, _rules(), "algebra")
    r.notes[WHOLE] = whole
    for var, value in zip(closed.jaxpr.constvars, closed.consts):
        number = repeated_number(value)
        if number is not None:
            literal = Literal(number, var.aval.update(shape=()))
            r.env[var] = r.broadcast(literal, var.aval.shape, ()) if var.aval.shape else literal
            del r.consts[var]
            r.changed = True
    return r.run(_inside)


def _rules() -> dict[str, tuple[Rule, ...]]:
    if len(_all) < len(registry):
        tables = (
            DONE_RULES,  # first: what is summed already is summed by no other rule
            folding_rules(),
            simplification_rules(),
            CARRIED_SUM_RULES,
            ADDITION_RULES,
            STRUCTURE_RULES,
            ONE_HOT_RULES,
            PART_RULES,
            PLACE_RULES,
            BAND_RULES,
            BIT_COUNT_RULES,
            TYPE_RULES,
            POWER_RULES,
            UPDATE_RULES,
            WINDOW_RULES,
            ORDER_RULES,
            NETWORK_RULES,
            FOLD_RULES,
            COUNTED_RULES,
            WRITTEN_RULES,
            BLOCK_RULES,
            GATHER_RULES,
            SCATTER_RULES,
            TURNED_RULES,
            OVERLAP_RULES,
            PIECE_RULES,
            PADDING_RULES,
            POOLING_RULES,
            RUNNING_RULES,
            REVERSAL_RULES,
            repeat_rules(),
            STACK_RULES,
            PHASE_RULES,
            SPECTRUM_RULES,
            CHIRP_RULES,
            axis_rules(),
        )
        for name in registry:
            _all[name] = tuple(rule for table in tables for rule in table.get(name, ()))
    return _all
