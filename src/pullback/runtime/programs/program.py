"""From a jaxpr to something that can be called: all stages in order, each kept so that it can be looked at.

program = compile_jaxpr(closed_jaxpr)
program.call([Array, ...]) -> [Array, ...]
program.executable          what the call cache of jit runs
program.as_text(stage)      stage: "jaxpr", "fused", "loops", "nests", "schedule", "llvm" or "asm"
program.cost_analysis(), program.memory_analysis()

Lowered forms are not kept: a program remembers its jaxpr and makes the rest again when somebody looks. Programs of
functions that are gone are kept by what was traced, the most recent ones, unless they hold arrays or functions of the
user's.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from pullback._ext import _core
from pullback.compiler import pipelines
from pullback.compiler.lower import HostFunction, Lowered, lower_program
from pullback.compiler.lower.arena import plan_arena
from pullback.core import types
from pullback.core.jaxpr import ClosedJaxpr, Literal
from pullback.core.specialize import refuse_symbolic
from pullback.lax.elementwise.narrow import is_narrow
from pullback.loops.emit import (
    INTERRUPT,
    STEP,
    ModuleText,
    assembly,
    build_module,
    compile_function,
    has_long_calls,
    host_target,
    link,
)
from pullback.loops.emit.module import HOST_SLOT, PARALLEL_FOR
from pullback.loops.ir import Buffer, Function
from pullback.loops.ir.visit import forget_facts
from pullback.loops.passes.count import transcendentals
from pullback.runtime.arrays.arrays import dressed, is_plain, physical, words_of
from pullback.runtime.arrays.placement import Placing, place_results, says_where
from pullback.runtime.eager import checks
from pullback.runtime.programs.autotune import tuned_form
from pullback.runtime.programs.canonical import holds_functions, jaxpr_key
from pullback.runtime.programs.fingerprint import fingerprint
from pullback.runtime.programs.host_call import native_callback
from pullback.runtime.programs.kernels import cache_in, object_cache
from pullback.runtime.programs.libraries import PythonCalls, addresses, called_symbols, is_library
from pullback.runtime.programs.schedule_report import schedule_text
from pullback.runtime.programs.stored import Facts, key_of, pack, unpack
from pullback.transforms.partial_eval import used_inputs
from pullback.util import config
from pullback.util.clock import Clock
from pullback.util.collector import collector_rests
from pullback.util.errors import InconclusiveDimensionOperation
from pullback.util.locks import Lock
from pullback.util.logs import PROGRAMS, STAGES, logs_compilations, say_slow, warn
from pullback.util.memory import Recent
from pullback.util.switches import switches

RELEASE_BYTES = 1 << 16  # programs that move more than this let other Python threads run meanwhile
RELEASE_OPERATIONS = 1 << 17
ALIAS_BYTES = 1 << 10  # donated arguments smaller than this are not worth taking over
ATTEMPTS = 2  # at finding the argument in whose place a result can be computed


@dataclass(frozen=True, slots=True)
class MemoryStats:
    """Bytes that one call needs."""

    argument_size_in_bytes: int
    output_size_in_bytes: int
    temp_size_in_bytes: int
    generated_code_size_in_bytes: int
    alias_size_in_bytes: int = 0
    peak_memory_in_bytes: int = 0
    # Of memory beside the device's own, of which CPUs have none.
    host_argument_size_in_bytes: int = 0
    host_output_size_in_bytes: int = 0
    host_temp_size_in_bytes: int = 0
    host_generated_code_size_in_bytes: int = 0
    host_alias_size_in_bytes: int = 0


class Program:
    """One compiled jaxpr."""

    def __init__(
        self, closed: ClosedJaxpr, donated: tuple[int, ...] = (), name: str | None = None, keep_unused: bool = True
    ) -> None:
        self.name = name or closed.jaxpr.debug_info.func_name or "program"
        self.typed = closed  # the types of whose variables may say how they lie on a mesh
        self.closed = closed = types.untyped(closed) if types.in_use() else closed
        self.out_avals = tuple(closed.out_avals)
        self.is_plain = all([is_plain(a.dtype) for a in (*closed.in_avals, *closed.out_avals)])
        self.notes: Any = None  # of what makes NaNs, where they are looked for
        self._keep_unused = keep_unused
        self._donated = donated
        self._form = switches.form
        self._finished: _Native | None = None
        self._lock = Lock()

    @property
    def native(self) -> _Native:
        """Machine code and what belongs to it; made when first needed."""
        found = self._finished
        if found is None:
            with self._lock:
                found = self._finished
                if found is None:
                    with self._as_made():
                        found = self._finished = _native(self.closed, self._keep_unused, self._donated, self.name)
        return found

    def _as_made(self) -> AbstractContextManager[None]:
        """The form of nests in which the program was asked for, which need not be in force any more."""
        return nullcontext() if switches.form == self._form else switches.set(form=self._form)

    @property
    def seconds(self) -> dict[str, float]:
        """What each stage took; of code that another program had compiled before, what that took."""
        return self.native.seconds

    @property
    def kept(self) -> tuple[int, ...] | None:
        """Numbers of the arguments that the code takes; None: all."""
        return self.native.facts.kept

    @property
    def in_avals(self) -> tuple[Any, ...]:
        """The types of the arguments that the code takes; keys are their words."""
        avals = [physical(aval) for aval in self.closed.in_avals]
        return tuple(avals if self.kept is None else [avals[k] for k in self.kept])

    @property
    def donated(self) -> tuple[int, ...]:
        """Numbers of the donated ones among them."""
        return _among(self._donated, self.kept)

    @functools.cached_property
    def flat(self) -> ClosedJaxpr:
        """The jaxpr after the graph passes; made again when somebody wants to see it."""
        return optimized(self.closed, self._keep_unused, self.name)[0]

    @functools.cached_property
    def lowered(self) -> Lowered:
        """The loop nests as they come from lowering, with the report of what each moves; made again likewise."""
        return _lowered(self.flat, self.name, self.donated)[0]

    def stored(self) -> tuple[str, Any] | None:
        """(name on disk, code and facts), for another process; None for a program without a lasting name."""
        print_ = fingerprint(self.closed)
        if print_ is None or any(_variant()):
            return None
        x64 = bool(config.config.jax_enable_x64)
        key = key_of(print_, self._keep_unused, x64, self._donated, host_target())
        entry = object_cache().get(key)
        if entry is None:  # it has left the cache
            _make_native(self.closed, self._keep_unused, self._donated, self.name, key, Clock({}))
            entry = object_cache().get(key)
        return None if entry is None else (key, tuple(entry))

    @property
    def executable(self) -> Any:
        """What runs it: a `_core.Executable`, or a Python callable where programs are interpreted."""
        found = self.__dict__.get("_executable")
        if found is None:
            found = self._interpreted if self.native.compiled is None else self.machine_code()
            if checks.is_active():
                found = checks.checked(found, self.flat, self.name, self.notes)
            if not self.is_plain:
                found = _Dressed(found, self.out_avals)
            self.__dict__["_executable"] = found
        return found

    def machine_code(self) -> Any:
        """The `_core.Executable`."""
        native = self.native
        asks = INTERRUPT in native.compiled.slots or STEP in native.compiled.slots
        return _core.Executable(
            native.compiled.address,
            self.in_avals,
            tuple(map(physical, self.out_avals)),
            native.compiled.arena_bytes,
            native.compiled,
            host_calls=[native_callback(host) for host in native.facts.host_calls],
            forward=native.facts.forwards,
            alias=native.facts.aliases,
            donate=self.donated,
            release_gil=native.facts.is_long or asks,
            interruptible=asks,
            apart=native.facts.has_long_calls,
            libraries=native.calls_libraries,
            name=self.name,
            placing=Placing(self.typed.jaxpr, self.kept),
            places=says_where(self.closed),
        )

    def on_devices(
        self,
        size: int,
        mapped_in: Sequence[bool],
        mapped_out: Sequence[bool],
        shardings: Sequence[Any],
        out_avals: Sequence[Any] | None = None,
        communication: Any = None,
    ) -> Any:
        """What runs it on several devices at once: a callable list[Array] -> list of results.

        mapped_in: whether an argument (of those that the code takes) has a leading axis with an element for each
        device; mapped_out: whether a result shall have one. shardings: what each result says of where it lies.
        out_avals: the types of the results, where the devices' parts are to be seen as arrays of other shapes.
        communication: what its collective operations are (lax/collectives/native.py), of `_core.communication`.
        """
        stacks = [_stacked(a, size) if mapped else a for a, mapped in zip(self.out_avals, mapped_out, strict=True)]
        avals = stacks if out_avals is None else list(out_avals)
        found = _core.DeviceProgram(
            *(self.machine_code(), size, tuple(mapped_in), tuple(map(physical, avals)), tuple(mapped_out), shardings),
            communication,
        )
        return found if self.is_plain else _Dressed(found, avals)

    def call(self, inputs: Sequence[Any]) -> list[Any]:
        """Run on arrays of exactly the avals it was compiled for, unused ones included."""
        arrays = list(inputs) if self.kept is None else [inputs[k] for k in self.kept]
        return self.executable(arrays if self.is_plain else [words_of(x) for x in arrays])

    __call__ = call

    def _interpreted(self, inputs: Sequence[Any]) -> list[Any]:
        function = self.lowered.function
        from pullback.loops.ir.interpret import interpret  # needs scipy.special: not at every start-up

        hosts = [_interpreted_host(host) for host in self.lowered.host_calls]
        given = [np.asarray(x) for x in inputs]
        given = [x.view(np.uint8) if is_narrow(x.dtype) else x for x in given]
        flat = interpret(function, given, PythonCalls(called_symbols(function)), hosts)
        results = []
        for array, aval, source in zip(flat, self.out_avals, self.native.facts.forwards):
            aval = physical(aval)
            if is_narrow(aval.dtype):
                array = array.view(aval.dtype)
            results.append(
                _core.with_aval(inputs[source], aval)
                if source >= 0
                else _core.from_numpy(array.reshape(aval.shape), aval)
            )
        return place_results(Placing(self.closed.jaxpr, self.kept), tuple(inputs), results, self.name)

    # Looking at it.

    def as_text(self, stage: str = "asm") -> str:
        """The program at a stage: 'jaxpr', 'fused', 'loops', 'nests', 'schedule', 'llvm' or 'asm'; ValueError for
        another name.
        """
        with self._as_made():
            return self._text(stage)

    def _text(self, stage: str) -> str:
        if stage == "jaxpr":
            return str(self.flat)
        if stage == "fused":
            return self.lowered.report_text()
        if stage == "loops":
            return pipelines.text_of(self.lowered.function)
        if stage == "nests":
            return pipelines.text_of(pipelines.optimize_loops(pipelines.order_loops(self.lowered.function)))
        if stage == "schedule":
            return schedule_text(pipelines.order_loops(self.lowered.function))
        if stage in ("llvm", "asm"):
            native = self.native
            if native.compiled is None:
                return f"; {self.name} is interpreted (PULLBACK_INTERPRET): there is no machine code\n"
            module = _module(self.closed, self._keep_unused, self._donated, self.name)
            return module.text if stage == "llvm" else assembly(module)
        raise ValueError(
            f"as_text: unknown stage {stage!r}; expected 'jaxpr', 'fused', 'loops', 'nests', 'schedule', 'llvm' or "
            "'asm'"
        )

    def cost_analysis(self) -> dict[str, float]:
        """Values computed ('flops'), those of math functions among them, and bytes moved, over all loop nests."""
        report = self.lowered.report
        read = sum(fact.bytes_read * fact.repeats for fact in report)
        written = sum(fact.bytes_written * fact.repeats for fact in report)
        return {
            "flops": float(sum(fact.operations * fact.repeats for fact in report)),
            "transcendentals": float(transcendentals(self.lowered.function)),
            "bytes accessed": float(read + written),
            "bytes read": float(read),
            "bytes written": float(written),
            "kernels": float(len(report)),
        }

    def memory_analysis(self) -> MemoryStats:
        """Bytes of arguments, results, temporaries and code."""
        native = self.native
        arguments, results = (
            sum(a.size * a.dtype.itemsize for a in map(physical, avals)) for avals in (self.in_avals, self.out_avals)
        )
        code = native.compiled.code_bytes if native.compiled is not None else 0
        shared = sum(
            a.size * a.dtype.itemsize
            for a, source in zip(map(physical, self.out_avals), native.facts.aliases)
            if source >= 0
        )
        peak = arguments + results - shared + native.arena_bytes
        return MemoryStats(arguments, results, native.arena_bytes, code, shared, peak)


class _Dressed:
    """An executable that takes or gives arrays of keys or of float0; inside there are only words, and booleans."""

    def __init__(self, executable: Any, out_avals: Sequence[Any]) -> None:
        self._executable = executable
        self._kinds = [None if is_plain(a.dtype) else a.dtype for a in out_avals]

    def __call__(self, inputs: Sequence[Any]) -> list[Any]:
        outs = self._executable([words_of(x) for x in inputs])
        return [x if kind is None else dressed(x, kind) for x, kind in zip(outs, self._kinds)]


def _among(numbers: tuple[int, ...], kept: tuple[int, ...] | None) -> tuple[int, ...]:
    """Numbers of arguments, counted among the kept ones."""
    return numbers if kept is None else tuple(kept.index(k) for k in numbers if k in kept)


def _stacked(aval: Any, size: int) -> Any:
    return aval.update(shape=(size, *aval.shape))


def _kept_inputs(flat: ClosedJaxpr) -> tuple[int, ...] | None:
    """Numbers of the arguments that the program mentions; None if it mentions all."""
    used = used_inputs(flat.jaxpr)
    return None if all(used) else tuple(k for k, u in enumerate(used) if u)


@dataclass(slots=True, weakref_slot=True)
class _Native:
    facts: Facts
    arena_bytes: int
    compiled: Any
    seconds: dict[str, float]
    named_by: ClosedJaxpr | None = None  # whose parts are in the key under which the code is found

    @property
    def calls_libraries(self) -> bool:
        """Whether BLAS or LAPACK run, by themselves or inside of NumPy's functions."""
        return any(is_library(name) for name in self.compiled.slots) or any(
            not host.is_users for host in self.facts.host_calls
        )


MAX_CODE = 1 << 26  # bytes of code that are kept for functions that are gone
_natives: weakref.WeakValueDictionary[Any, _Native] = weakref.WeakValueDictionary()  # those in use
_recent: Recent[_Native] = Recent(switches.cache_programs, MAX_CODE)


def optimized(closed: ClosedJaxpr, keep_unused: bool, name: str) -> tuple[ClosedJaxpr, tuple[int, ...] | None]:
    """(the jaxpr after the graph passes, numbers of the arguments that it takes; None: all)."""
    flat = pipelines.optimize_jaxpr(closed, name)
    kept = None if keep_unused else _kept_inputs(flat)
    if kept is not None:
        flat = flat.replace(jaxpr=flat.jaxpr.replace(invars=[flat.jaxpr.invars[k] for k in kept]))
    return flat, kept


def _lowered(flat: ClosedJaxpr, name: str, donated: Sequence[int]) -> tuple[Lowered, dict[int, int]]:
    """(the loop nests, which results take the place of which donated arguments).

    A donated argument and a result of its type are one buffer to the lowering, as a loop's carry is, and the array
    gives its memory away if nobody else holds it (else it is copied first). A pair that would have to be computed
    elsewhere and copied is not made: a reversal takes as long as without donation (JAX: three times as long). Setting
    one of 4 million elements took 1,138 us, now 0.5 (JAX 7.6); the memory of a training step's state is there once.
    """
    forwarded = {k for k, source in enumerate(_forwards(flat)) if source >= 0}
    barred: set[tuple[int, int]] = set()
    for attempt in range(len(flat.jaxpr.outvars) + ATTEMPTS):
        aliases = {} if switches.interpret else _possible_aliases(flat, donated, barred)
        lowered = lower_program(flat, symbol_of(name), forwarded, aliases)
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
    jaxpr, forwards = flat.jaxpr, _forwards(flat)
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
            if aval.size * aval.dtype.itemsize < ALIAS_BYTES:
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


def _variant() -> tuple[Any, ...]:
    """What makes other code of a program, for looking at it: such code is not kept on disk."""
    return bool(switches.interpret), switches.skip, switches.form


def _native(closed: ClosedJaxpr, keep_unused: bool, donated: tuple[int, ...], name: str) -> _Native:
    """Code for a traced program: what this process has, what is on disk, or new."""
    seconds: dict[str, float] = {}
    clock = Clock(seconds)
    print_ = fingerprint(closed)
    # A program without a name that lasts is found by the identity of its parts, which its jaxpr keeps alive.
    known = jaxpr_key(closed) if print_ is None else print_
    x64 = bool(config.config.jax_enable_x64)
    target = host_target()
    key = (known, keep_unused, x64, donated, target, *_variant())
    # A key that may hold the user's objects is in no table: these could hold the program in turn, and never go.
    lasts = print_ is not None or not holds_functions(closed)
    found = (_recent.get(key) or _natives.get(key)) if lasts else None
    if found is None:
        clock("fingerprint")
        on_disk = None
        if print_ is not None and not any(_variant()):
            on_disk = key_of(print_, keep_unused, x64, donated, target)
        native = None if on_disk is None else _from_disk(on_disk, closed, keep_unused, donated, name, clock)
        if native is None:
            try:
                native = _make_native(closed, keep_unused, donated, name, on_disk, clock)
            except (TypeError, InconclusiveDimensionOperation):
                refuse_symbolic(closed, name)
                raise
        found = native
        say_slow(name, sum(seconds.values()))
        if lasts:
            native.named_by = closed if print_ is None else None
            _natives[key] = native
            if native.compiled is not None and not native.compiled.keeps_constants:
                _recent.put(key, native, native.compiled.code_bytes + 4096)
        if logs_compilations():
            types = f"({', '.join(map(repr, closed.in_avals))}{',' * (len(closed.in_avals) == 1)})"
            warn(PROGRAMS, f"Compiling jit({name}) with global shapes and types {types}.")
            parts = ", ".join(f"{k} {v * 1e3:.1f}" for k, v in seconds.items())
            warn(STAGES, f"Finished compilation of jit({name}) in {sum(seconds.values()):.6f} sec ({parts} ms)")
    return found


def _from_disk(
    key: str, closed: ClosedJaxpr, keep_unused: bool, donated: tuple[int, ...], name: str, clock: Clock
) -> _Native | None:
    entry = object_cache().get(key)
    clock("lookup")
    unpacked = None if entry is None else unpack(entry.facts, closed.consts)
    if entry is None or unpacked is None:
        return None
    facts, constants = unpacked
    symbols = addresses({name for name in entry.slots if ":" not in name and name != HOST_SLOT})
    compiled = link(entry, constants, symbols, None, clock.seconds)
    native = _Native(facts, compiled.arena_bytes, compiled, clock.seconds)
    return _ready(native, name, lambda: _module(closed, keep_unused, donated, name))


def _module(closed: ClosedJaxpr, keep_unused: bool, donated: tuple[int, ...], name: str) -> ModuleText:
    """The LLVM text, made anew for somebody who wants to see it."""
    flat, kept = optimized(closed, keep_unused, name)
    function = pipelines.order_loops(_lowered(flat, name, _among(donated, kept))[0].function)
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


@_compiling()
def _make_native(
    closed: ClosedJaxpr, keep_unused: bool, donated: tuple[int, ...], name: str, key: str | None, clock: Clock
) -> _Native:
    flat, kept = optimized(closed, keep_unused, name)
    clock("graph")
    pipelines.dump("jaxpr", name, lambda: str(flat))
    lowered, aliases = _lowered(flat, name, _among(donated, kept))
    long = (
        lowered.bytes_moved > RELEASE_BYTES
        or bool(lowered.host_calls)
        or any(fact.operations * fact.repeats > RELEASE_OPERATIONS for fact in lowered.report)
    )
    apart = not any(host.is_users for host in lowered.host_calls) and has_long_calls(lowered.function)
    taken = tuple(aliases.get(k, -1) for k in range(len(flat.jaxpr.outvars)))
    facts = Facts(kept, tuple(_forwards(flat)), long, tuple(lowered.host_calls), taken, apart)
    function = pipelines.order_loops(lowered.function)
    clock("lower")
    pipelines.dump("fused", name, lowered.report_text)
    pipelines.dump("loops", name, lambda: pipelines.text_of(lowered.function))
    if switches.interpret:
        return _Native(facts, 0, None, clock.seconds)

    def optimize(function: Function) -> tuple[Function, dict[Buffer, int], int]:
        final = pipelines.optimize_loops(function)
        return final, *plan_arena(function, final)

    packed = None if key is None else pack(facts, function, closed.consts)
    compiled = compile_function(
        function,
        optimize=optimize,
        symbols=addresses(called_symbols(lowered.function) | {PARALLEL_FOR, INTERRUPT, STEP}),
        cache=None if any(_variant()) else object_cache(),  # which knows a function as it was before its passes
        key=None if packed is None else key,
        facts=packed or b"",
        verify=bool(switches.check),
    )
    clock.seconds.update(compiled.seconds)
    emitted, compiled.module = compiled.module, None  # it holds the loop nests
    assert emitted is not None
    return _ready(_Native(facts, compiled.arena_bytes, compiled, clock.seconds), name, emitted)


def _ready(native: _Native, name: str, module: Callable[[], ModuleText]) -> _Native:
    if native.facts.host_calls:
        native.compiled.set_host_call(_core.symbol_addresses()["pb_host_call_index"])
    pipelines.dump("llvm", name, lambda: module().text)
    pipelines.dump("asm", name, lambda: assembly(module()))
    return native


def _forwards(flat: ClosedJaxpr) -> list[int]:
    """For each result the number of the argument that it plainly is, or -1."""
    position = {v: k for k, v in enumerate(flat.jaxpr.invars)}
    return [-1 if isinstance(a, Literal) else position.get(a, -1) for a in flat.jaxpr.outvars]


def _interpreted_host(host: HostFunction) -> Callable[..., None]:
    return lambda *arrays: host.run_flat(arrays)


def symbol_of(name: str) -> str:
    """A program's name, as native code may have it."""
    return "".join(c if c.isalnum() or c == "_" else "_" for c in name) or "program"


def compile_jaxpr(
    closed: ClosedJaxpr,
    donated: Sequence[int] = (),
    name: str | None = None,
    keep_unused: bool = True,
    autotune: bool = False,
) -> Program:
    """The program of a jaxpr, from the cache of this process or made now."""
    # Checks look for the operation that made a NaN by running it again, on arguments that must still be there.
    checked = checks.is_active()
    donated = () if checked else tuple(donated)
    if (autotune or switches.tune) and not (switches.form or switches.interpret or checked):
        with switches.set(form=_tuned(closed, donated, name, keep_unused), tune=False):
            return compile_jaxpr(closed, donated, name, keep_unused)
    how = ("program", donated, keep_unused, switches.cpu, *_variant(), checked and checks.kinds())
    return closed.derived.get(how) or closed.cached(how, lambda: _program(closed, name, donated, keep_unused, how))


def _tuned(closed: ClosedJaxpr, donated: tuple[int, ...], name: str | None, keep_unused: bool) -> str:
    """The forms of nests that were measured to be best for a program."""
    x64 = bool(config.config.jax_enable_x64)

    def measured() -> str:
        print_ = fingerprint(closed)
        key = None if print_ is None else key_of(print_, keep_unused, x64, donated, host_target())
        with switches.set(tune=False):
            return tuned_form(closed, lambda: compile_jaxpr(closed, (), name), key)

    return closed.cached(("tuned", donated, keep_unused, x64), measured)


def _constants(closed: ClosedJaxpr) -> Iterator[Any]:
    """Constants of a jaxpr and of those inside."""
    yield from closed.consts
    for eqn in closed.eqns:
        for value in eqn.params.values():
            for item in value if isinstance(value, (tuple, list)) else (value,):
                if isinstance(item, ClosedJaxpr):
                    yield from _constants(item)


_programs: Recent[Program] = Recent(min(512, switches.cache_programs), 512)  # each holds its jaxpr, and so its key


def _program(
    closed: ClosedJaxpr, name: str | None, donated: tuple[int, ...], keep_unused: bool, how: tuple[Any, ...]
) -> Program:
    """A program for an equal jaxpr, which an eager loop traces anew each time, or a new one."""
    if checks.is_active() and not switches.interpret:
        from pullback.runtime.programs.watched import Notes, watched  # for a few programs

        notes = Notes()
        program = Program(watched(closed, notes, checks.kinds()), donated, name, keep_unused)
        program.notes = notes
        return program
    # Large constants and the user's objects are not to be kept alive.
    if any(np.size(c) > 16 for c in _constants(closed)) or holds_functions(closed):
        return Program(closed, donated, name, keep_unused)
    key = (jaxpr_key(closed), how, config.config.jax_enable_x64)
    found = _programs.get(key)
    if found is None:
        found = Program(closed, donated, name, keep_unused)
        _programs.put(key, found, 1)
    return found


def clear_caches() -> None:
    """Forget compiled code; programs that are in use keep theirs, and what is on disk stays there."""
    _natives.clear()
    _recent.clear()
    _programs.clear()
    cache_in.cache_clear()
