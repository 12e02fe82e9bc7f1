"""From loop IR to machine code through LLVM."""

from .cache import ObjectCache
from .cpu.target import Target, host_target
from .interrupt import INTERRUPT
from .jit import CompiledFunction, HostCallback, add_symbols, compile_function, emit_object, link
from .module import build_module

__all__ = [
    "INTERRUPT",
    "CompiledFunction",
    "HostCallback",
    "ObjectCache",
    "Target",
    "add_symbols",
    "build_module",
    "compile_function",
    "emit_object",
    "host_target",
    "link",
]
