"""From a jaxpr to machine code: the passes over the graph, lowering, the passes over loops, emission.

To load all that takes as long as NumPy does. So it is loaded when a program is made first, and programs on disk start
without (runtime/programs/compiler.py). Measured: a process's first call of a program on disk takes 32 ms, with all that
108.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import contextmanager

from pullback.compiler import pipelines
from pullback.compiler.lower.arena import plan_arena
from pullback.compiler.lower.program import Lowered, lower_program
from pullback.compiler.lower.sources import NotedLowering
from pullback.core.jaxpr import ClosedJaxpr, Literal
from pullback.loops.emit.cpu.target import host_target
from pullback.loops.emit.interrupt import has_long_calls
from pullback.loops.emit.jit import assembly, compile_function
from pullback.loops.emit.module import ModuleText, build_module
from pullback.loops.emit.symbols import SPAN
from pullback.loops.ir import Buffer, Function
from pullback.loops.ir.ir import Call, Const
from pullback.loops.ir.visit import forget_facts
from pullback.loops.passes.count import transcendentals
from pullback.runtime.programs import spans
from pullback.runtime.programs.kernels import object_cache
from pullback.runtime.programs.libraries import addresses_for
from pullback.runtime.programs.native import Native, among, ready, variant
from pullback.runtime.programs.schedule_report import schedule_text
from pullback.runtime.programs.stored import Facts, pack
from pullback.transforms.partial_eval import used_inputs
from pullback.util.clock import Clock
from pullback.util.collector import collector_rests
from pullback.util.dumps import dump
from pullback.util.room import with_room
from pullback.util.switches import switches

RELEASE_BYTES = 1 << 16  # programs that move more than this let other Python threads run meanwhile
RELEASE_OPERATIONS = 1 << 17
ATTEMPTS = 2  # at finding the argument in whose place a result can be computed


def optimized(
    closed: ClosedJaxpr, keep_unused: bool, name: str, donated: Sequence[int] = ()
) -> tuple[ClosedJaxpr, tuple[int, ...] | None]:
    """(the jaxpr after the graph passes, numbers of the arguments that it takes; None: all)."""
    flat = pipelines.optimize_jaxpr(closed, name, keeping=not donated)
    kept = None if keep_unused else _kept_inputs(flat)
    if kept is not None:
        flat = flat.replace(jaxpr=flat.jaxpr.replace(invars=[flat.jaxpr.invars[k] for k in kept]))
    return flat, kept


def lower(
    flat: ClosedJaxpr, name: str, donated: Sequence[int], note: Callable[[], NotedLowering] | None = None
) -> tuple[Lowered, dict[int, int]]:
    """(the loop nests, which results take the place of which donated arguments); `note` makes what takes notes of it.

    A donated argument and a result of its type are one buffer to the lowering, as a loop's carry is, and the array
    gives its memory away if nobody else holds it (else it is copied first). A pair that would have to be computed
    elsewhere and copied is not made: a reversal takes as long as without donation (JAX: three times as long). Setting
    one of 4 million elements took 1,138 us, now 0.5 (JAX 7.6); the memory of a training step's state is there once.
    """
    forwarded = {k for k, source in enumerate(forwards_of(flat)) if source >= 0}
    barred: set[tuple[int, int]] = set()
    for attempt in range(len(flat.jaxpr.outvars) + ATTEMPTS):
        aliases = {} if switches.interpret else _possible_aliases(flat, donated, barred)
        lowered = lower_program(flat, symbol_of(name), forwarded, aliases, note and note())
        # What cannot be computed in place would only be copied once more: another argument may suit it better.
        late = lowered.copied & aliases.keys()
        if not late:
            return lowered, aliases
        others = range(len(flat.jaxpr.invars)) if attempt >= ATTEMPTS else ()
        barred |= {(k, source) for k in late for source in (aliases[k], *others)}
    raise AssertionError(f"{name}: a result without an alias is copied into its argument's place")


def _possible_aliases(flat: ClosedJaxpr, donated: Sequence[int], barred: Set[tuple[int, int]]) -> dict[int, int]:
    """For results the donated argument of the same type that nobody else gets, in order; those that depend on it
    first, since an argument that is still needed cannot give its place to something else.
    """
    jaxpr, forwards = flat.jaxpr, forwards_of(flat)
    left = [k for k in donated if k not in forwards]
    if not left:
        return {}
    depends = {jaxpr.invars[k]: 1 << k for k in left}
    for eqn in jaxpr.eqns:
        sources = 0
        for atom in eqn.invars:
            if not isinstance(atom, Literal):
                sources |= depends.get(atom, 0)
        for var in eqn.outvars:
            depends[var] = sources
    aliases: dict[int, int] = {}
    for needed in (True, False):
        for k, atom in enumerate(jaxpr.outvars):
            aval = atom.aval
            if k in aliases or isinstance(atom, Literal) or forwards[k] >= 0:
                continue
            for source in left:
                given = jaxpr.invars[source].aval
                if needed and not depends.get(atom, 0) >> source & 1:
                    continue
                if given.shape == aval.shape and given.dtype == aval.dtype and (k, source) not in barred:
                    aliases[k] = source
                    left.remove(source)
                    break
    return aliases


def _kept_inputs(flat: ClosedJaxpr) -> tuple[int, ...] | None:
    """Numbers of the arguments that the program mentions; None if it mentions all."""
    used = used_inputs(flat.jaxpr)
    return None if all(used) else tuple(k for k, u in enumerate(used) if u)


def module_of(closed: ClosedJaxpr, keep_unused: bool, donated: tuple[int, ...], name: str) -> ModuleText:
    """The LLVM text, made anew for somebody who wants to see it."""
    flat, kept = optimized(closed, keep_unused, name, donated)
    function = pipelines.order_loops(lower(flat, name, among(donated, kept))[0].function)
    final = pipelines.optimize_loops(function)
    return build_module(final, plan_arena(function, final)[0], host_target())


@contextmanager
def _compiling() -> Iterator[None]:
    """The cyclic garbage collector rests, and what is known of a program's statements is let go of at the end."""
    with collector_rests():
        try:
            yield
        finally:
            forget_facts()


@with_room
@_compiling()
def make(
    closed: ClosedJaxpr,
    keep_unused: bool,
    donated: tuple[int, ...],
    name: str,
    key: str | None,
    clock: Clock,
    with_spans: bool = False,
) -> Native:
    """The program, stored on disk under `key` if that is given; what each stage took goes to `clock`.

    with_spans: its kernels say when they begin and end (runtime/programs/spans.py); such a program has no `key`.
    """
    flat, kept = optimized(closed, keep_unused, name, donated)
    clock("graph")
    dump("jaxpr", name, lambda: str(flat))
    notes: list[NotedLowering] = []  # of each attempt

    def note() -> NotedLowering:
        notes.append(NotedLowering())
        return notes[-1]

    lowered, aliases = lower(flat, name, among(donated, kept), note if with_spans else None)
    long = (
        lowered.bytes_moved > RELEASE_BYTES
        or bool(lowered.host_calls)
        or any(fact.operations * fact.repeats > RELEASE_OPERATIONS for fact in lowered.report)
    )
    apart = not any(host.is_users for host in lowered.host_calls) and has_long_calls(lowered.function)
    taken = tuple(aliases.get(k, -1) for k in range(len(flat.jaxpr.outvars)))
    facts = Facts(kept, tuple(forwards_of(flat)), long, tuple(lowered.host_calls), taken, apart)
    function = pipelines.order_loops(lowered.function)
    clock("lower")
    dump("fused", name, lowered.report_text)
    dump("loops", name, lambda: pipelines.text_of(lowered.function))
    if switches.interpret:
        return Native(facts, 0, None, clock.seconds)

    def optimize(function: Function) -> tuple[Function, dict[Buffer, int], int]:
        final = _with_spans(function, name, lowered, notes[-1]) if with_spans else pipelines.optimize_loops(function)
        return final, *plan_arena(function, final)

    packed = None if key is None else pack(facts, function, closed.consts)
    compiled = compile_function(
        function,
        optimize=optimize,
        symbols=addresses_for(function),
        # The cache knows a function as it was before its passes.
        cache=None if with_spans or any(variant()) else object_cache(),
        key=None if packed is None else key,
        facts=packed or b"",
        verify=bool(switches.check),
    )
    clock.seconds.update(compiled.seconds)
    emitted, compiled.module = compiled.module, None  # it holds the loop nests
    assert emitted is not None
    dump("llvm", name, lambda: emitted().text)
    dump("asm", name, lambda: assembly(emitted()))
    return ready(Native(facts, compiled.arena_bytes, compiled, clock.seconds))


def _with_spans(function: Function, name: str, lowered: Lowered, notes: NotedLowering) -> Function:
    """All passes over an ordered function, and calls that read the clock around each of its kernels."""
    from pullback.runtime.programs.kernel_list import clocked, kernels_of, prepared  # for few programs

    ready = prepared(function)
    kernels = kernels_of(ready, notes.units, lowered)
    program = Const("i64", spans.add_program(name, kernels))

    def around(number: int) -> tuple[list[Call], list[Call]]:
        begins, ends = (Call(SPAN, (program, Const("i64", number), Const("i64", edge))) for edge in (0, 1))
        return [begins], [ends]

    final = ready.scheduled
    return Function(final.name, final.buffers, clocked(ready, kernels, around))


def forwards_of(flat: ClosedJaxpr) -> list[int]:
    """For each result the number of the argument that it plainly is, or -1."""
    position = {v: k for k, v in enumerate(flat.jaxpr.invars)}
    return [-1 if isinstance(a, Literal) else position.get(a, -1) for a in flat.jaxpr.outvars]


def symbol_of(name: str) -> str:
    """A program's name, as native code may have it."""
    return "".join(c if c.isalnum() or c == "_" else "_" for c in name) or "program"


def text_of(stage: str, lowered: Lowered) -> str:
    """A program's loop nests at one of the stages 'fused', 'loops', 'nests' and 'schedule'."""
    if stage == "fused":
        return lowered.report_text()
    if stage == "loops":
        return pipelines.text_of(lowered.function)
    ordered = pipelines.order_loops(lowered.function)
    return schedule_text(ordered) if stage == "schedule" else pipelines.text_of(pipelines.optimize_loops(ordered))


__all__ = ["assembly", "lower", "make", "module_of", "optimized", "symbol_of", "text_of", "transcendentals"]
