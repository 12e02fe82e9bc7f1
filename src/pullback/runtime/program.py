"""From a jaxpr to something that can be called: all stages in order, each kept so that it can be looked at.

program = compile_jaxpr(closed_jaxpr)
program.call([Array, ...]) -> [Array, ...]
program.executable          what the call cache of jit runs
program.as_text("jaxpr" | "fused" | "loops" | "llvm" | "asm"), .cost_analysis(), .memory_analysis()
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pullback import pipelines
from pullback._ext import _core
from pullback.core.jaxpr import ClosedJaxpr, Literal
from pullback.emit import INTERRUPT, compile_function
from pullback.loop_ir import Buffer, Function
from pullback.loop_passes import outline
from pullback.lower import HostFunction, Lowered, lower_program
from pullback.lower.arena import plan_arena
from pullback.runtime import checks
from pullback.runtime.arrays import physical, words_of
from pullback.runtime.canonical import jaxpr_key
from pullback.runtime.host_call import native_callback
from pullback.runtime.kernels import object_cache
from pullback.runtime.libraries import PythonCalls, addresses, called_symbols
from pullback.transforms.partial_eval import used_inputs
from pullback.util import config
from pullback.util.switches import switches

RELEASE_BYTES = 1 << 16  # programs that move more than this let other Python threads run meanwhile
RELEASE_OPERATIONS = 1 << 17


@dataclass(frozen=True, slots=True)
class MemoryStats:
    """Bytes that one call needs."""

    argument_size_in_bytes: int
    output_size_in_bytes: int
    temp_size_in_bytes: int
    generated_code_size_in_bytes: int
    alias_size_in_bytes: int = 0
    peak_memory_in_bytes: int = 0


class Program:
    """One compiled jaxpr."""

    def __init__(
        self, closed: ClosedJaxpr, donated: tuple[int, ...] = (), name: str | None = None, keep_unused: bool = True
    ) -> None:
        self.name = name or closed.jaxpr.debug_info.func_name or "program"
        started = time.perf_counter()
        flat = optimized(closed, self.name)
        self.kept: tuple[int, ...] | None = None if keep_unused else _kept_inputs(flat)
        if self.kept is not None:
            flat = flat.replace(jaxpr=flat.jaxpr.replace(invars=[flat.jaxpr.invars[k] for k in self.kept]))
        self.flat = flat
        self.in_avals = tuple(v.aval for v in flat.jaxpr.invars)
        self.out_avals = tuple(closed.out_avals)
        self.has_keys = any(not isinstance(a.dtype, np.dtype) for a in (*closed.in_avals, *closed.out_avals))
        self.donated = donated if self.kept is None else tuple(self.kept.index(k) for k in donated if k in self.kept)
        pipelines.dump("jaxpr", self.name, lambda: str(self.flat))
        self._finished: _Native | None = None
        self._lock = threading.Lock()
        self._graph_seconds = time.perf_counter() - started

    @property
    def seconds(self) -> dict[str, float]:
        """What each stage took; those of native code are there once it is."""
        stages = {"graph": self._graph_seconds}
        return stages if self._finished is None else stages | self._finished.seconds

    @property
    def native(self) -> _Native:
        """Loop nests and machine code; made when first needed."""
        found = self._finished
        if found is None:
            with self._lock:
                found = self._finished
                if found is None:
                    found = self._finished = _native(self.flat, self.name)
        return found

    @property
    def lowered(self) -> Lowered:
        """The loop nests as they come from lowering, with the report of what each moves."""
        return self.native.lowered

    @property
    def executable(self) -> Any:
        """What runs it: a `_core.Executable`, or a Python callable where programs are interpreted."""
        found = self.__dict__.get("_executable")
        if found is None:
            native = self.native
            if native.compiled is None:
                found = self._interpreted
            else:
                found = _core.Executable(
                    native.compiled.address,
                    self.in_avals,
                    tuple(map(physical, self.out_avals)),
                    native.compiled.arena_bytes,
                    native.compiled,
                    host_calls=[native_callback(host) for host in native.lowered.host_calls],
                    forward=_forwards(self.flat),
                    donate=self.donated,
                    release_gil=native.is_long,
                    interruptible=INTERRUPT in native.compiled.slots,
                    name=self.name,
                )
            if checks.is_active():
                found = checks.checked(found, self.flat, self.name)
            if self.has_keys:
                found = _WithKeys(found, self.out_avals)
            self.__dict__["_executable"] = found
        return found

    def call(self, inputs: Sequence[Any]) -> list[Any]:
        """Run on arrays of exactly the avals it was compiled for, unused ones included."""
        arrays = list(inputs) if self.kept is None else [inputs[k] for k in self.kept]
        return self.executable([words_of(x) for x in arrays])

    __call__ = call

    def _interpreted(self, inputs: Sequence[Any]) -> list[Any]:
        native = self.native
        function = native.lowered.function
        from pullback.loop_ir.interpret import interpret  # needs scipy.special: not at every start-up

        hosts = [_interpreted_host(host) for host in native.lowered.host_calls]
        flat = interpret(function, [np.asarray(x) for x in inputs], PythonCalls(called_symbols(function)), hosts)
        results = []
        for array, aval, source in zip(flat, self.out_avals, _forwards(self.flat)):
            aval = physical(aval)
            results.append(
                _core.with_aval(inputs[source], aval)
                if source >= 0
                else _core.from_numpy(array.reshape(aval.shape), aval)
            )
        return results

    # Looking at it.

    def as_text(self, stage: str = "asm") -> str:
        """The program at a stage: 'jaxpr', 'fused', 'loops', 'llvm' or 'asm'; ValueError for another name."""
        native = self.native
        if stage == "jaxpr":
            return str(self.flat)
        if stage == "fused":
            return native.lowered.report_text()
        if stage == "loops":
            return pipelines.text_of(native.lowered.function)
        if stage == "nests":
            # A program whose code was found in the cache has not been through the passes.
            return pipelines.text_of(native.function or pipelines.optimize_loops(outline(native.lowered.function)))
        if stage in ("llvm", "asm"):
            if native.compiled is None:
                return f"; {self.name} is interpreted (PULLBACK_INTERPRET): there is no machine code\n"
            return native.compiled.llvm if stage == "llvm" else native.compiled.asm
        raise ValueError(
            f"as_text: unknown stage {stage!r}; expected 'jaxpr', 'fused', 'loops', 'nests', 'llvm' or 'asm'"
        )

    def cost_analysis(self) -> dict[str, float]:
        """Values computed ('flops') and bytes moved, over all loop nests."""
        report = self.native.lowered.report
        read = sum(fact.bytes_read * fact.repeats for fact in report)
        written = sum(fact.bytes_written * fact.repeats for fact in report)
        return {
            "flops": float(sum(fact.operations * fact.repeats for fact in report)),
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
        code = len(native.compiled.object_code) if native.compiled is not None else 0
        return MemoryStats(arguments, results, native.arena_bytes, code, 0, arguments + results + native.arena_bytes)


class _WithKeys:
    """An executable that takes or gives key arrays; inside there are only their words."""

    def __init__(self, executable: Any, out_avals: Sequence[Any]) -> None:
        self._executable = executable
        self._wraps = [None if isinstance(a.dtype, np.dtype) else a.dtype.wrap for a in out_avals]

    def __call__(self, inputs: Sequence[Any]) -> list[Any]:
        outs = self._executable([words_of(x) for x in inputs])
        return [x if wrap is None else wrap(x) for x, wrap in zip(outs, self._wraps)]


def _kept_inputs(flat: ClosedJaxpr) -> tuple[int, ...] | None:
    """Numbers of the arguments that the program mentions; None if it mentions all."""
    used = used_inputs(flat.jaxpr)
    return None if all(used) else tuple(k for k, u in enumerate(used) if u)


@dataclass(slots=True)
class _Native:
    lowered: Lowered
    function: Function | None  # after the loop passes, if they ran
    arena_bytes: int
    compiled: Any
    is_long: bool
    seconds: dict[str, float]


_natives: dict[Any, tuple[_Native, ClosedJaxpr]] = {}


def optimized(closed: ClosedJaxpr, name: str) -> ClosedJaxpr:
    """The jaxpr after the graph passes, made once."""
    return closed.cached(("optimized", config.config.jax_enable_x64), lambda: pipelines.optimize_jaxpr(closed, name))


def _native(flat: ClosedJaxpr, name: str) -> _Native:
    key = (jaxpr_key(flat), bool(switches.interpret))
    found = _natives.get(key)
    if found is None:
        found = (_make_native(flat, name), flat)  # the jaxpr keeps alive what the key has the address of
        _natives[key] = found
    return found[0]


def _make_native(flat: ClosedJaxpr, name: str) -> _Native:
    seconds: dict[str, float] = {}
    clock = _Clock(seconds)
    lowered = lower_program(flat, _symbol(name), {k for k, source in enumerate(_forwards(flat)) if source >= 0})
    clock("lower")
    pipelines.dump("fused", name, lowered.report_text)
    pipelines.dump("loops", name, lambda: pipelines.text_of(lowered.function))
    if switches.interpret:
        return _Native(lowered, lowered.function, 0, None, False, seconds)
    ready: list[Function] = []

    def optimize(function: Function) -> tuple[Function, dict[Buffer, int], int]:
        ready.append(pipelines.optimize_loops(function))
        return ready[0], *plan_arena(function, ready[0])

    compiled = compile_function(
        outline(lowered.function),
        optimize=optimize,
        symbols=_symbols(lowered.function),
        cache=object_cache(),
        verify=bool(switches.check),
    )
    function = ready[0] if ready else None
    arena_bytes = compiled.arena_bytes
    seconds |= compiled.seconds
    if lowered.host_calls:
        compiled.set_host_call(_core.symbol_addresses()["pb_host_call_index"])
    pipelines.dump("llvm", name, lambda: compiled.llvm)
    pipelines.dump("asm", name, lambda: compiled.asm)
    if switches.log_compiles or config.config.jax_log_compiles:
        print(
            f"pullback: compiled {name} in {sum(seconds.values()) * 1e3:.1f} ms "
            f"({', '.join(f'{k} {v * 1e3:.1f}' for k, v in seconds.items())})",
            file=sys.stderr,
        )
    long = (
        lowered.bytes_moved > RELEASE_BYTES
        or bool(lowered.host_calls)
        or INTERRUPT in compiled.slots
        or any(fact.operations * fact.repeats > RELEASE_OPERATIONS for fact in lowered.report)
    )
    return _Native(lowered, function, arena_bytes, compiled, long, seconds)


class _Clock:
    def __init__(self, seconds: dict[str, float]) -> None:
        self._seconds, self._last = seconds, time.perf_counter()

    def __call__(self, stage: str) -> None:
        now = time.perf_counter()
        self._seconds[stage] = now - self._last
        self._last = now


def _symbols(function: Function) -> dict[str, int]:
    return addresses(called_symbols(function) | {"pb_parallel_for", INTERRUPT})


def _forwards(flat: ClosedJaxpr) -> list[int]:
    """For each result the number of the argument that it plainly is, or -1."""
    position = {v: k for k, v in enumerate(flat.jaxpr.invars)}
    return [-1 if isinstance(a, Literal) else position.get(a, -1) for a in flat.jaxpr.outvars]


def _interpreted_host(host: HostFunction) -> Callable[..., None]:
    return lambda *arrays: host.run(arrays)


def _symbol(name: str) -> str:
    return "".join(c if c.isalnum() or c == "_" else "_" for c in name) or "program"


def compile_jaxpr(
    closed: ClosedJaxpr, donated: Sequence[int] = (), name: str | None = None, keep_unused: bool = True
) -> Program:
    """The program of a jaxpr, from the cache of this process or made now."""
    donated = tuple(donated)
    how = ("program", donated, keep_unused, bool(switches.interpret), checks.is_active())
    return closed.cached(how, lambda: _program(closed, name, donated, keep_unused, how))


_programs: dict[Any, tuple[Program, ClosedJaxpr]] = {}
MAX_PROGRAMS = 512


def _program(
    closed: ClosedJaxpr, name: str | None, donated: tuple[int, ...], keep_unused: bool, how: tuple[Any, ...]
) -> Program:
    """A program for an equal jaxpr, which an eager loop traces anew each time, or a new one."""
    if any(np.size(c) > 16 for c in closed.consts):  # not to be kept alive
        return Program(closed, donated, name, keep_unused)
    key = (jaxpr_key(closed), how, config.config.jax_enable_x64)
    found = _programs.get(key)
    if found is None:
        if len(_programs) >= MAX_PROGRAMS:
            _programs.pop(next(iter(_programs)), None)
        found = _programs[key] = (Program(closed, donated, name, keep_unused), closed)
    return found[0]


def clear_caches() -> None:
    """Forget compiled code; programs that are in use keep theirs, and what is on disk stays there."""
    _natives.clear()
    _programs.clear()
    object_cache.cache_clear()
