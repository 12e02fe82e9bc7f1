"""Running programs: compilation of jaxprs, eager evaluation, devices. Fills the hooks that core declares for it."""

import gc

import pullback.runtime.eager.evaluate as _evaluate
from pullback._ext import _core
from pullback.core import hooks
from pullback.core.avals import sweep_avals
from pullback.lax.control import bodies as _bodies
from pullback.runtime.arrays import devices as _devices
from pullback.runtime.arrays import native_hooks as _native_hooks
from pullback.runtime.arrays.arrays import asarray, exactly
from pullback.runtime.arrays.placement import copied, device_put
from pullback.runtime.eager.evaluate import evaluate, reference_eval, remember
from pullback.runtime.eager.functions import elementwise, reference_of
from pullback.runtime.eager.runner import run_eagerly
from pullback.runtime.programs import compiler as _compiler
from pullback.runtime.programs import forks as _forks
from pullback.runtime.programs.compiler import compile_jaxpr
from pullback.runtime.programs.dispatch import compile, run
from pullback.runtime.programs.dispatch import program as _program
from pullback.transforms import remembered as _remembered
from pullback.util.memory import forget_all


def clear_caches() -> None:
    """Forget all programs, plans and traces, those of functions in use too, and give their memory back."""
    forget_all()
    _core.clear_call_caches()
    _evaluate.clear_caches()
    _compiler.clear_caches()
    _remembered.clear()
    _bodies.clear()
    gc.collect()  # programs and what they were traced from refer to each other
    sweep_avals()
    _core.trim_memory()


hooks.fill(
    evaluate=evaluate,
    remember=remember,
    run_eagerly=run_eagerly,
    run=run,
    asarray=asarray,
    exactly=exactly,
    compile=compile,
    elementwise=elementwise,
    reference_of=reference_of,
    program=_program,
    copied=copied,
    device_put=device_put,
    clear_caches=clear_caches,
)

__all__ = [
    "asarray",
    "clear_caches",
    "compile",
    "compile_jaxpr",
    "device_put",
    "evaluate",
    "reference_eval",
    "run",
]
