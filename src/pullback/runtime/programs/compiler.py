"""The way to the compiler, which is loaded when something is compiled first.

Passes, lowering, emission and LLVM take longer to import than all the rest, and much work needs none of them.

Measured: `import pullback` takes 0.10 s of CPU beside NumPy's 0.11 (before 0.21).
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

from pullback.core.jaxpr import ClosedJaxpr
from pullback.runtime.programs.imports import importing

if TYPE_CHECKING:
    from pullback.runtime.programs.program import Program


def compile_jaxpr(
    closed: ClosedJaxpr,
    donated: Sequence[int] = (),
    name: str | None = None,
    keep_unused: bool = True,
    autotune: bool = False,
) -> Program:
    """The program of a jaxpr, from the cache of this process or made now."""
    return _program().compile_jaxpr(closed, donated, name, keep_unused, autotune)


@functools.cache
def _program() -> ModuleType:
    with importing(all_stays=True):
        from pullback.runtime.programs import program

    return program


def compile_for_devices(
    closed: ClosedJaxpr, mesh: Mapping[Any, int], donated: Sequence[int] = (), name: str | None = None
) -> Program:
    """The program that each device of a mesh (axis -> size) runs, with exchanges for collectives over its axes."""
    with importing():
        from pullback.compiler.graph.simplify.collectives import exchange_collectives

    return compile_jaxpr(exchange_collectives(closed, mesh), donated, name, False)


def admit(stored: tuple[str, Any] | None) -> None:
    """Have the code that `Program.stored` gave, maybe in another process, be found in this one."""
    if stored is None:
        return
    with importing():
        from pullback.loops.emit.cache import Entry
        from pullback.runtime.programs.kernels import object_cache
    key, entry = stored
    object_cache().admit(key, Entry(*entry))


def clear_caches() -> None:
    """Forget compiled code that nobody holds."""
    program = sys.modules.get("pullback.runtime.programs.program")
    if program is not None:
        program.clear_caches()
