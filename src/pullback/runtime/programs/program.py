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
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback._ext import _core
from pullback.compiler.lower.host_function import HostFunction
from pullback.core import types
from pullback.core.avals import typeof
from pullback.core.jaxpr import ClosedJaxpr
from pullback.core.kept import by_value
from pullback.core.specialize import refuse_symbolic
from pullback.lax.elementwise.narrow import is_narrow
from pullback.loops.emit.cpu.identity import identity_of
from pullback.loops.emit.load import link
from pullback.loops.emit.symbols import HOST_SLOT, INTERRUPT, STEP
from pullback.loops.emit.writer import finish_writing
from pullback.runtime.arrays.arrays import dressed, is_plain, physical, words_of
from pullback.runtime.arrays.placed_results import place_results
from pullback.runtime.arrays.placement import Placing, says_where
from pullback.runtime.eager import checks
from pullback.runtime.programs import spans
from pullback.runtime.programs.canonical import holds_functions, jaxpr_key
from pullback.runtime.programs.fingerprint import fingerprint
from pullback.runtime.programs.host_call import native_callback
from pullback.runtime.programs.imports import making
from pullback.runtime.programs.kernels import cache_in, object_cache
from pullback.runtime.programs.libraries import PythonCalls, addresses, called_symbols
from pullback.runtime.programs.native import Native, among, ready, variant
from pullback.runtime.programs.stored import key_of, unpack
from pullback.util import config, dtypes
from pullback.util.clock import Clock
from pullback.util.errors import InconclusiveDimensionOperation
from pullback.util.locks import Lock
from pullback.util.logs import PROGRAMS, STAGES, logs_compilations, saying_slow, warn
from pullback.util.memory import Recent
from pullback.util.monitoring import record_event_duration_secs
from pullback.util.record import frozen_record
from pullback.util.switches import switches

if TYPE_CHECKING:
    from pullback.compiler.lower.program import Lowered


@frozen_record
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
        self._with_spans = spans.is_recording() and not switches.interpret
        self._finished: Native | None = None
        self._lock = Lock()

    @property
    def native(self) -> Native:
        """Machine code and what belongs to it; made when first needed."""
        found = self._finished
        if found is None:
            with self._lock:
                found = self._finished
                if found is None:
                    with self._as_made():
                        found = self._finished = _native(
                            self.closed, self._keep_unused, self._donated, self.name, self._with_spans
                        )
        return found

    @contextmanager
    def _as_made(self) -> Iterator[None]:
        """The form of nests in which the program was asked for, which need not be in force any more; and 64 bits,
        where arrays of such have come from where these are enabled."""
        wide = not config.config.jax_enable_x64 and any(
            aval.dtype != dtypes.canonicalize_dtype(aval.dtype, allow_extended_dtype=True)
            for aval in (*self.closed.in_avals, *self.closed.out_avals, *map(typeof, self.closed.consts))
        )
        with (
            nullcontext() if switches.form == self._form else switches.set(form=self._form),
            config.enable_x64(True) if wide else nullcontext(),
        ):
            yield

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
        return among(self._donated, self.kept)

    @functools.cached_property
    def flat(self) -> ClosedJaxpr:
        """The jaxpr after the graph passes; made again when somebody wants to see it."""
        return making().optimized(self.closed, self._keep_unused, self.name, self._donated)[0]

    @functools.cached_property
    def lowered(self) -> Lowered:
        """The loop nests as they come from lowering, with the report of what each moves; made again likewise."""
        return making().lower(self.flat, self.name, self.donated)[0]

    def stored(self) -> tuple[str, Any] | None:
        """(name on disk, code and facts), for another process; None for a program without a lasting name."""
        print_ = fingerprint(self.closed)
        if print_ is None or any(variant()):
            return None
        x64 = bool(config.config.jax_enable_x64)
        key = key_of(print_, self._keep_unused, x64, self._donated, identity_of(switches.cpu))
        entry = object_cache().get(key)
        if entry is None:  # it has left the cache
            making().make(self.closed, self._keep_unused, self._donated, self.name, key, Clock({}))
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
            placing=Placing(self.typed, self.kept),
            places=says_where(self.closed),
        )

    def on_devices(
        self,
        size: int,
        mapped_in: Sequence[bool | tuple[int, ...]],
        mapped_out: Sequence[bool],
        shardings: Sequence[Any],
        out_avals: Sequence[Any] | None = None,
        communication: Any = None,
    ) -> Any:
        """What runs it on several devices at once: a callable list[Array] -> list of results.

        mapped_in: whether an argument (of those that the code takes) has a leading axis with an element for each
        device, or the number of the part that each takes; mapped_out: whether a result shall have such an axis.
        shardings: what each result says of where it lies.
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
        from pullback.loops.ir.interpret import interpret
        from pullback.loops.ir.numpy_ops import TABLE
        from pullback.loops.passes.expand_math import expand_math

        function = expand_math(self.lowered.function, TABLE)
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
        return place_results(Placing(self.typed, self.kept), tuple(inputs), results, self.name)

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
        if stage in ("fused", "loops", "nests", "schedule"):
            return making().text_of(stage, self.lowered)
        if stage in ("llvm", "asm"):
            native = self.native
            if native.compiled is None:
                return f"; {self.name} is interpreted (PULLBACK_INTERPRET): there is no machine code\n"
            module = making().module_of(self.closed, self._keep_unused, self._donated, self.name)
            return module.text if stage == "llvm" else making().assembly(module)
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
            "transcendentals": float(making().transcendentals(self.lowered.function)),
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


def _stacked(aval: Any, size: int) -> Any:
    return aval.update(shape=(size, *aval.shape))


MAX_CODE = 1 << 26  # bytes of code that are kept for functions that are gone
_natives: weakref.WeakValueDictionary[Any, Native] = weakref.WeakValueDictionary()  # those in use
_recent: Recent[Native] = Recent(switches.cache_programs, MAX_CODE)


def _native(
    closed: ClosedJaxpr, keep_unused: bool, donated: tuple[int, ...], name: str, with_spans: bool = False
) -> Native:
    """Code for a traced program: what this process has, what is on disk, or new."""
    seconds: dict[str, float] = {}
    clock = Clock(seconds)
    print_ = fingerprint(closed)
    # A program without a name that lasts is found by the identity of its parts, which its jaxpr keeps alive.
    known = jaxpr_key(closed) if print_ is None else print_
    x64 = bool(config.config.jax_enable_x64)
    target = identity_of(switches.cpu)
    key = (known, keep_unused, x64, donated, target, with_spans, *variant())
    # A key that may hold the user's objects is in no table: these could hold the program in turn, and never go.
    lasts = print_ is not None or not holds_functions(closed)
    found = (_recent.get(key) or _natives.get(key)) if lasts else None
    if found is None:
        clock("fingerprint")
        on_disk = None
        if print_ is not None and not with_spans and not any(variant()):
            on_disk = key_of(print_, keep_unused, x64, donated, target)
        # Who wants to see the stages of programs has them made.
        native = _from_disk(on_disk, closed.consts, clock) if on_disk and not switches.dump.stages else None
        if native is None:
            try:
                with saying_slow(name):
                    native = making().make(closed, keep_unused, donated, name, on_disk, clock, with_spans)
            except (TypeError, InconclusiveDimensionOperation):
                refuse_symbolic(closed, name)
                raise
        found = native
        if spans.is_recording():
            _note_compilation(name, seconds)
        before = sum([seconds.get(stage, 0.0) for stage in ("fingerprint", "lookup", "graph", "lower")])
        record_event_duration_secs("/jax/core/compile/jaxpr_to_mlir_module_duration", before, fun_name=name)
        took = sum(seconds.values()) - before
        record_event_duration_secs("/jax/core/compile/backend_compile_duration", took, fun_name=name)
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


def _note_compilation(name: str, seconds: dict[str, float]) -> None:
    """A span of the compilation that has just ended, and one of each stage."""
    at = time.perf_counter_ns() - int(sum(seconds.values()) * 1e9)
    spans.add(f"compile {name}", "compile", at, time.perf_counter_ns(), {"stages": ", ".join(seconds)})
    for stage, took in seconds.items():
        spans.add(stage, "compile", at, at + int(took * 1e9), {"program": name})
        at += int(took * 1e9)


def _from_disk(key: str, consts: Sequence[Any], clock: Clock) -> Native | None:
    entry = object_cache().get(key)
    clock("lookup")
    unpacked = None if entry is None else unpack(entry.facts, consts)
    if entry is None or unpacked is None:
        return None
    facts, constants = unpacked
    symbols = addresses({name for name in entry.slots if ":" not in name and name != HOST_SLOT})
    compiled = link(entry, constants, symbols, None, clock.seconds)
    return ready(Native(facts, compiled.arena_bytes, compiled, clock.seconds))


def _interpreted_host(host: HostFunction) -> Callable[..., None]:
    return lambda *arrays: host.run_flat(arrays)


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
    how = ("program", donated, keep_unused, switches.cpu, spans.is_recording(), *variant(), checked and checks.kinds())
    return closed.derived.get(how) or closed.cached(how, lambda: _program(closed, name, donated, keep_unused, how))


def _tuned(closed: ClosedJaxpr, donated: tuple[int, ...], name: str | None, keep_unused: bool) -> str:
    """The forms of nests that were measured to be best for a program."""
    x64 = bool(config.config.jax_enable_x64)

    def measured() -> str:
        from pullback.runtime.programs.autotune import tuned_form  # with the compiler

        print_ = fingerprint(closed)
        key = None if print_ is None else key_of(print_, keep_unused, x64, donated, identity_of(switches.cpu))
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
        values = by_value(closed)
        found = Program(closed if values is None else values, donated, name, keep_unused)
        if values is not None:
            _programs.put(key, found, 1)
    return found


def clear_caches() -> None:
    """Forget compiled code; programs that are in use keep theirs, and what is on disk stays there."""
    finish_writing()
    _natives.clear()
    _recent.clear()
    _programs.clear()
    cache_in.cache_clear()
