"""From loop IR to machine code through LLVM."""

from .cache import ObjectCache
from .cpu.target import Target, current_target, host_target, target_scope
from .interrupt import INTERRUPT, STEP, has_long_calls
from .jit import CompiledFunction, HostCallback, add_symbols, assembly, compile_function, emit_object, link
from .module import Linkage, ModuleText, build_module

__all__ = [
    "INTERRUPT",
    "STEP",
    "CompiledFunction",
    "HostCallback",
    "Linkage",
    "ModuleText",
    "ObjectCache",
    "Target",
    "add_symbols",
    "assembly",
    "build_module",
    "compile_function",
    "current_target",
    "emit_object",
    "has_long_calls",
    "host_target",
    "link",
    "target_scope",
]
