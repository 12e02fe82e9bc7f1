"""The passes of each stage, as literal lists, and the one function that runs, checks, prints and times them.

jaxpr passes are (name, why, function from ClosedJaxpr to ClosedJaxpr); loop passes the same from Function to
Function. PULLBACK_CHECK=1 checks the program before and after a pipeline, 2 after each pass;
PULLBACK_PRINT_AFTER=<pass> prints the program after a pass; PULLBACK_TIME_PASSES=1 prints what each took;
PULLBACK_SKIP=<passes> leaves some out; PULLBACK_DUMP=jaxpr,loops,... writes stages out.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pullback.compiler.graph.closed_forms.closed_forms import close_forms
from pullback.compiler.graph.simplify.algebra import apply_algebra
from pullback.compiler.graph.simplify.cse import eliminate_common_subexpressions
from pullback.compiler.graph.simplify.dead_code import eliminate_dead_code
from pullback.compiler.graph.simplify.float0 import replace_float0
from pullback.compiler.graph.simplify.inline import inline, with_lines
from pullback.compiler.graph.simplify.keys import replace_keys
from pullback.compiler.graph.simplify.known import compute_known
from pullback.compiler.graph.simplify.motion import move_invariants
from pullback.compiler.graph.simplify.narrow import replace_narrow
from pullback.compiler.graph.simplify.sinking import sink_places
from pullback.compiler.graph.structure.batches import batch_iterations
from pullback.compiler.graph.structure.carried_folds import carry_folds
from pullback.compiler.graph.structure.choices import write_choices
from pullback.compiler.graph.structure.joins import write_joins
from pullback.compiler.graph.structure.residuals import cut_residuals
from pullback.compiler.graph.structure.reversals import use_ends
from pullback.compiler.graph.structure.structure import write_out_products
from pullback.compiler.graph.structure.windows import join_windows
from pullback.core.check import Known, check_jaxpr
from pullback.core.jaxpr import ClosedJaxpr
from pullback.loops.ir import Function
from pullback.loops.ir.kernels import map_kernels
from pullback.loops.passes.bits import bits
from pullback.loops.passes.blocks import blocks
from pullback.loops.passes.carry import carry
from pullback.loops.passes.computed_places import computed_places
from pullback.loops.passes.counters import counters
from pullback.loops.passes.delinearize import delinearize
from pullback.loops.passes.expand_math import expand_math
from pullback.loops.passes.merge import merge
from pullback.loops.passes.moves import moves
from pullback.loops.passes.outline import outline
from pullback.loops.passes.places import places
from pullback.loops.passes.rematerialize import rematerialize
from pullback.loops.passes.shared import shared
from pullback.loops.passes.simplify import simplify as simplify_loops
from pullback.loops.passes.split import split
from pullback.loops.passes.unroll import unroll
from pullback.loops.passes.unroll_scatters import unroll_scatters
from pullback.loops.schedule.choose import schedule
from pullback.loops.schedule.interchange import interchange
from pullback.loops.schedule.item_loops import item_loops
from pullback.loops.schedule.lookups import lookups
from pullback.loops.schedule.overlap import overlap
from pullback.loops.schedule.row_blocks import row_blocks
from pullback.loops.schedule.stream import stream
from pullback.transforms.discharge import discharge_program
from pullback.util.record import NamedTuple
from pullback.util.switches import switches


class Pass(NamedTuple):
    """One step of a pipeline."""

    name: str
    why: str
    run: Callable[[Any], Any]
    needed: bool = False  # what follows does not work without it


JAXPR_PASSES: tuple[Pass, ...] = (
    Pass("references", "arrays that are written in place are arguments and results", discharge_program, needed=True),
    Pass("inline", "the passes below and fusion see one flat program", inline, needed=True),
    Pass("keys", "lowering knows plain element types only", replace_keys, needed=True),
    Pass("float0", "tangents of integers have no bytes", replace_float0, needed=True),
    Pass("narrow", "values of 8 bits and fewer are bytes in memory", replace_narrow, needed=True),
    Pass("dead_code", "less for all that follows", eliminate_dead_code),
    Pass("cse", "derivatives repeat what the function computed", eliminate_common_subexpressions),
    Pass(
        "algebra",
        "folds, simplifies, uses the structure of products; one table, as each rule makes work for others",
        apply_algebra,
    ),
    Pass("sinking", "what follows from places alone is known in loops, too", sink_places),
    Pass("batches", "lanes and threads go along iterations that do not wait for each other", batch_iterations),
    Pass("carried_folds", "of what is folded over the steps of a loop, no step's part is stored", carry_folds),
    Pass("choices", "an update of one element of each row fuses with what makes the row", write_choices),
    Pass("closed_forms", "sums over indices and loops that only count need no iterations", close_forms),
    Pass("motion", "what is the same in every iteration is computed once", move_invariants),
    Pass("dead_code", "rules ask how often a value is read", eliminate_dead_code),
    Pass("algebra", "what motion and merged equations uncovered", apply_algebra),
    Pass("residuals", "a backward pass reads little of what it can compute again", cut_residuals),
    Pass("cse", "what the rules made equal", eliminate_common_subexpressions),
    Pass("known", "what follows from constants alone is computed once", compute_known),
    Pass("write_out", "products over few elements or with a vector fuse with what is around them", write_out_products),
    Pass("joins", "an element of many arrays, one after the other, is no choice among them all", write_joins),
    Pass("ends", "loops read and write from the other end what is reversed", use_ends),
    Pass("dead_code", "what the passes above left without users", eliminate_dead_code),
)

# Of programs that write over none of their arguments.
KEEPING_PASSES: tuple[Pass, ...] = (
    Pass("windows", "an argument most of which is set is not copied first", join_windows),
    Pass("dead_code", "what is set no longer reads the updates", eliminate_dead_code),
)

# Before the arena is planned, which goes by the order of statements.
ORDER_PASSES: tuple[Pass, ...] = (
    Pass("rematerialize", "what follows from places alone is known where loops read it", rematerialize),
    Pass("moves", "what is only moved goes as integers: no registers of floats, no halves of complex numbers", moves),
    Pass("item_loops", "a matrix of a batch stays in the cache for the nest that reads it", item_loops),
    Pass("row_blocks", "the rows of a product stay in the cache for the nest that reads them", row_blocks),
    Pass("outline", "repeated nests are compiled once", outline),
    Pass("overlap", "messages are under way while work that does not need them is done", overlap),
)

# On the whole program; what follows sees each kernel by itself.
PROGRAM_PASSES: tuple[Pass, ...] = (
    Pass(
        "counters",
        "the index of a loop is its step, which has bounds, and no memory that elements share",
        counters,
    ),
    Pass("blocks", "threads share blocks of elements that each go on until they are done", blocks),
    Pass("interchange", "elements that never meet go through the steps of a loop in registers", interchange),
)

LOOP_PASSES: tuple[Pass, ...] = (
    Pass("simplify", "strides are read off indices", simplify_loops),
    Pass("delinearize", "lanes walk along memory where an index is taken apart by division", delinearize),
    Pass("places", "rows of one array that are chosen need no loop of their own: rolls in two directions", places),
    Pass("split", "conditions on indices are known in each part: concatenation and padding become copies", split),
    Pass("computed_places", "a choice between two elements of an array reads one of them", computed_places),
    Pass("merge", "rows of a part that follow each other are one long loop", merge),
    Pass("unroll", "straight code of a few iterations has a stride everywhere", unroll),
    Pass("carry", "what a step stored a few steps ago comes from a register", carry),
    Pass("bits", "bits that are moved one by one are moved together: reversals, swaps, counts", bits),
    Pass("shared", "what straight code has in common is counted once", shared),
    Pass("expand_math", "before costs are estimated: exp is not one op", expand_math, needed=True),
    Pass("schedule", "order, lanes, tiles and threads of each nest, by what they are expected to take", schedule),
    Pass("stream", "what the caches cannot keep does not go through them", stream),
    Pass("lookups", "elements at places that data give are gathered where that is quicker", lookups),
    Pass("unroll_scatters", "iterations are so short that counting them is half the work", unroll_scatters),
)


_local = threading.local()  # what passes take, for a thread that asks


@contextmanager
def timing() -> Iterator[dict[str, float]]:
    """What each pass takes meanwhile, in seconds by its name; passes of one name together."""
    before, _local.seconds = getattr(_local, "seconds", None), {}
    try:
        yield _local.seconds
    finally:
        _local.seconds = before


def optimize_jaxpr(closed: ClosedJaxpr, name: str = "program", keeping: bool = True) -> ClosedJaxpr:
    """The flat, simplified program that fusion works on; `keeping` says that it writes over none of its arguments."""
    passes = (*JAXPR_PASSES, *KEEPING_PASSES) if keeping else JAXPR_PASSES
    known: Known = {}
    return run_passes(passes, with_lines(closed), name, lambda program, by: check_jaxpr(program, by, known))


def order_loops(function: Function) -> Function:
    """A lowered function with its nests in the order, and the kernels, in which they will run."""
    return run_passes(ORDER_PASSES, function, function.name, _check_function)


def optimize_loops(function: Function) -> Function:
    """The loop nests as the emitter takes them; each kernel goes through the passes once, by itself."""
    function = right = run_passes(PROGRAM_PASSES, function, function.name, _check_function)
    function = map_kernels(function, lambda kernel: run_passes(LOOP_PASSES, kernel, kernel.name, lambda *_: None))
    return run_passes(LOOP_PASSES, function, function.name, _check_function, right)


def run_passes(
    passes: Sequence[Pass], program: Any, name: str, check: Callable[[Any, str], None], right: Any = None
) -> Any:
    """Run a pipeline on a program; `right` has been checked, as what a pass leaves as it is need not be again."""

    def checked(made_by: str) -> None:
        nonlocal right
        if program is not right:
            check(program, made_by)
            right = program

    if switches.check:
        checked("the pipeline before")
    for step in passes:
        if step.name in switches.skip and not step.needed:
            continue
        started = time.perf_counter()
        program = step.run(program)
        took = time.perf_counter() - started
        if switches.time_passes:
            print(f"{name}: {step.name}: {took * 1e3:.2f} ms", file=sys.stderr)
        seconds = getattr(_local, "seconds", None)
        if seconds is not None:
            seconds[step.name] = seconds.get(step.name, 0.0) + took
        if switches.check > 1:
            checked(f"pass '{step.name}'")
        if switches.print_after == step.name:
            print(f"{name} after {step.name}:\n{text_of(program)}", file=sys.stderr)
    if switches.check == 1 and passes:
        checked(f"the pipeline that ends with '{passes[-1].name}'")
    return program


def text_of(program: Any) -> str:
    """A program of either representation as text; of long constants the first elements."""
    if isinstance(program, ClosedJaxpr):
        return str(program)
    from pullback.loops.ir.print import to_text

    return to_text(program, most=16)


def _check_function(function: Function, made_by: str) -> None:
    from pullback.loops.ir.check import check

    check(function, made_by)
