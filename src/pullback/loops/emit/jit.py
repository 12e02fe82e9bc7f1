"""From a function of the loop IR to callable machine code: emission, LLVM's code generator, object cache."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import llvmlite
import llvmlite.binding as llvm

from pullback.loops.ir.ir import Buffer, Function
from pullback.loops.ir.print import canonical
from pullback.loops.ir.types import ITEMSIZE
from pullback.util.clock import Clock

from .cache import Entry, ObjectCache, cache_key
from .cpu.target import Target, host_target
from .load import CompiledFunction, link
from .machines import LOCK, machine_of
from .module import ModuleText, build_module
from .symbols import ENTRY


def emit_object(
    text: str,
    target: Target,
    verify: bool = False,
    promote: bool = False,
    clock: Callable[[str], None] = lambda stage: None,
    entry: str = ENTRY,
    quick: bool = False,
) -> bytes:
    """Machine code of LLVM text as an object file; RuntimeError quotes what LLVM rejects.

    No passes run before instruction selection, except sroa if the program function `entry` is to `promote` its stack
    to registers: common subexpressions and invariants are the emitter's work, and on our code instcombine took a
    seventh of the time without making it faster. `quick`: none run after it, either.
    """
    with LOCK:
        machine = machine_of(target, quick)
        try:
            module = llvm.parse_assembly(text)
            if verify:
                module.verify()
        except RuntimeError as error:
            raise RuntimeError(f"emit: LLVM rejects the module: {error}\n{_excerpt(text, str(error))}") from None
        clock("parse")
        if promote:
            _promote_stack(module, machine, entry)
        code = machine.emit_object(module)
        clock("codegen")
        return code


def assembly(emitted: ModuleText) -> str:
    """The assembly text of a module for this machine."""
    machine = machine_of(host_target(), emitted.quick)
    with LOCK:
        module = llvm.parse_assembly(emitted.text)
        if emitted.promote:  # as `emit_object` does
            _promote_stack(module, machine)
        return machine.emit_assembly(module)


def _promote_stack(module: llvm.ModuleRef, machine: llvm.TargetMachine, entry: str = ENTRY) -> None:
    """The state of the program function from the stack to registers."""
    with llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=1)) as builder:
        passes = llvm.create_new_function_pass_manager()
        passes.add_sroa_pass()
        passes.run(module.get_function(entry), builder)


def _excerpt(text: str, error: str) -> str:
    """The lines around the one that an LLVM message names (<string>:LINE:...), or the start."""
    lines = text.split("\n")
    parts = error.split("<string>:")
    number = int(parts[1].split(":")[0]) if len(parts) > 1 and parts[1].split(":")[0].isdigit() else 1
    first = max(0, number - 6)
    return "\n".join(f"{first + k + 1:5} {line}" for k, line in enumerate(lines[first : first + 12]))


Optimize = Callable[[Function], tuple[Function, Mapping[Buffer, int], int]]


def compile_function(
    function: Function,
    plan: Mapping[Buffer, int] | None = None,
    target: Target | None = None,
    *,
    optimize: Optimize | None = None,
    symbols: Mapping[str, int] | None = None,
    cache: ObjectCache | None = None,
    key: str | None = None,
    facts: bytes = b"",
    arena_bytes: int | None = None,
    verify: bool = False,
    subroutine: bool = False,
) -> CompiledFunction:
    """Compiles `function` for this machine, or takes its code from `cache`.

    `plan` has the byte offset of each temporary in the arena. With `optimize`, it gives the function to emit, its plan
    and the size of the arena instead; the cache then knows the function as it was before, and a program found there
    needs no passes at all. `optimize` may add buffers only after those of `function`. With a `key`, under which nothing
    was found, the code is stored under that together with `facts`. `symbols` are addresses of C functions beside those
    of `add_symbols`. A `subroutine` is what a Call of another function calls: its arguments are the addresses of inputs
    and outputs. Raises NotImplementedError for constructs the emitter does not know, KeyError for a missing symbol.
    """
    target = target or host_target()
    seconds: dict[str, float] = {}
    clock = Clock(seconds)
    entry = None
    if cache is not None and key is None:
        offsets = (
            "subroutine"
            if subroutine
            else "optimized"
            if optimize
            else ",".join(str((plan or {}).get(b, "")) for b in function.buffers)
        )
        key = cache_key(canonical(function), offsets, f"{target!r} {llvmlite.__version__} {llvm.llvm_version_info}")
        entry = cache.get(key)
        clock("lookup")

    def emitted() -> ModuleText:
        if optimize is None:
            return build_module(function, plan or {}, target, subroutine)
        return build_module(*optimize(function)[:2], target)

    cached = entry is not None
    if entry is None:
        if optimize is None:
            final, offset_of = function, plan or {}
        else:
            final, offset_of, arena_bytes = optimize(function)
            clock("passes")
        if arena_bytes is None:
            arena_bytes = max((at + b.size * ITEMSIZE[b.dtype] for b, at in offset_of.items()), default=0)
        module = build_module(final, offset_of, target, subroutine)
        clock("emit")
        code = emit_object(module.text, target, verify, module.promote, clock, quick=module.quick)
        entry = Entry(code, tuple(module.slots), arena_bytes, facts)
        if cache is not None and key is not None:
            cache.put(key, entry, later=not subroutine)
            clock("store")
    constants = {k: buffer.data for k, buffer in enumerate(function.buffers) if buffer.data is not None}
    return link(entry, constants, symbols, emitted, seconds, cached)


__all__ = ["assembly", "compile_function", "emit_object"]
