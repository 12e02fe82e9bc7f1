"""Running programs: compilation of jaxprs, eager evaluation, devices. Fills the hooks that core declares for it."""

import pullback.runtime.evaluate as _evaluate
import pullback.runtime.program as _program
from pullback.core import hooks
from pullback.runtime import devices as _devices
from pullback.runtime import native_hooks as _native_hooks
from pullback.runtime.arrays import asarray, device_put
from pullback.runtime.dispatch import compile, program, run
from pullback.runtime.evaluate import evaluate, reference_eval, remember
from pullback.runtime.plan import plan_or_none
from pullback.runtime.program import MemoryStats, Program, compile_jaxpr


def clear_caches() -> None:
    """Forget all compiled programs that nobody holds."""
    _evaluate.clear_caches()
    _program.clear_caches()


hooks.fill(
    evaluate=evaluate,
    remember=remember,
    plan=plan_or_none,
    run=run,
    asarray=asarray,
    compile=compile,
    program=program,
    device_put=device_put,
    clear_caches=clear_caches,
)

__all__ = [
    "MemoryStats",
    "Program",
    "asarray",
    "clear_caches",
    "compile",
    "compile_jaxpr",
    "device_put",
    "evaluate",
    "program",
    "reference_eval",
    "run",
]
