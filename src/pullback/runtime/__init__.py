"""Running programs: compilation of jaxprs, eager evaluation, devices. Fills the hooks that core declares for it."""

from pullback.core import hooks
from pullback.runtime import devices as _devices  # noqa: F401  tells the extension of the default device
from pullback.runtime.arrays import asarray
from pullback.runtime.dispatch import compile, program, run
from pullback.runtime.evaluate import evaluate, reference_eval
from pullback.runtime.program import MemoryStats, Program, compile_jaxpr

hooks.fill(evaluate=evaluate, run=run, asarray=asarray, compile=compile, program=program)

__all__ = ["MemoryStats", "Program", "asarray", "compile", "compile_jaxpr", "evaluate", "program", "reference_eval", "run"]
