"""Running closed jaxprs: what the call cache and control flow ask of the runtime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pullback._ext import _core
from pullback.core import extended
from pullback.core.jaxpr import ClosedJaxpr
from pullback.core.tracer import Tracer
from pullback.runtime.arrays.arrays import asarray
from pullback.runtime.programs.compiler import compile_jaxpr
from pullback.util import config

if TYPE_CHECKING:
    from pullback.runtime.programs.program import Program


def run(closed: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
    """The results of the compiled program on concrete arrays; if one is a tracer, the jaxpr is evaluated equation by
    equation.
    """
    for x in args:
        if type(x) is not _core.Array:
            if any([isinstance(x, Tracer) for x in args]):
                return closed(*args)
            args = [asarray(x) for x in args]
            break
    for c in closed.consts:
        if isinstance(c, Tracer):
            return closed(*args)
    if config.value_of("jax_debug_key_reuse"):
        extended.reuse.called("of an eager operation", closed, args)
    return compile_jaxpr(closed).call(args)


def compile(
    closed: ClosedJaxpr, donated: Sequence[int] = (), keep_unused: bool = False, autotune: bool = False
) -> tuple[Any, tuple[int, ...] | None]:
    """(what runs the program on the kept arguments, numbers of those; None: all)."""
    found = program(closed, donated, keep_unused, autotune)
    return found.executable, found.kept


def program(
    closed: ClosedJaxpr, donated: Sequence[int] = (), keep_unused: bool = False, autotune: bool = False
) -> Program:
    """The program of a traced function; arguments that it ignores are dropped unless `keep_unused`."""
    return compile_jaxpr(closed, donated, keep_unused=keep_unused, autotune=autotune)
