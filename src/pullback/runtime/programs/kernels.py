"""Code of our own that lives outside of programs: the cache of object code, and the kernels that programs call."""

from __future__ import annotations

import functools
from typing import Any

from pullback.loops.emit.cache import ObjectCache, cache_key
from pullback.loops.emit.cpu.identity import identity_of
from pullback.loops.emit.load import CompiledFunction, link
from pullback.loops.emit.symbols import KERNEL
from pullback.util.config import compilation_cache_dir
from pullback.util.switches import switches


def object_cache() -> ObjectCache:
    """The cache on disk: in PULLBACK_CACHE_DIR, else where the option `jax_compilation_cache_dir` says."""
    return cache_in(switches.cache_dir or compilation_cache_dir.value)


@functools.cache
def cache_in(folder: str | None) -> ObjectCache:
    """The cache in a folder, by default the user's."""
    return ObjectCache(folder)


@functools.cache
def _compiled(name: str, level: str) -> CompiledFunction:
    # A kernel is all that its name says: one that is on disk is loaded before its loops are built.
    key = cache_key(name, "kernel", identity_of(level))
    cache = object_cache()
    entry = cache.get(key)
    if entry is None:
        from pullback.runtime.programs.ahead import kernel_ahead

        entry = kernel_ahead(name, level)
        if entry is not None:
            cache.put(key, entry)  # the next process need not ask whether the file fits the sources
    if entry is not None:
        return link(entry, {}, None, None, {})
    from pullback.loops.emit.jit import compile_function  # with the compiler: only where something is compiled
    from pullback.runtime.programs.kernel_loops import loops_of

    verify = bool(switches.check)
    return compile_function(loops_of(name), None, subroutine=True, cache=cache, key=key, verify=verify)


def function_kernel_address(name: str) -> tuple[int, Any]:
    """(address, what keeps it) of the kernel of a function (compiler/lower/functions.py)."""
    compiled = _compiled(name, switches.cpu)
    return compiled.address, compiled


def kernel_address(name: str) -> int | None:
    """The address of a kernel of compiler/products/kernels.py, compiled when first asked for; None for other names."""
    return _compiled(name, switches.cpu).address if name.startswith(KERNEL) else None
