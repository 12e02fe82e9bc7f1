"""What is logged about traces and compilations: to loggers of JAX's names, as programs that listen to them know these.

Python's logging takes 4 ms to import, which few processes need, so it is imported where something is said.
"""

from __future__ import annotations

import sys

from pullback.util import config
from pullback.util.switches import switches

TRACING = "jax._src.interpreters.partial_eval"
STAGES = "jax._src.dispatch"
PROGRAMS = "jax._src.interpreters.pxla"


def warn(logger: str, text: str) -> None:
    """Log at level WARNING."""
    import logging

    logging.getLogger(logger).warning("%s", text)


def say_slow(name: str, seconds: float) -> None:
    """Say on stderr, if it is a terminal, that a program took long to compile (PULLBACK_SLOW_COMPILE)."""
    if 0 < switches.slow_compile <= seconds and sys.stderr is not None and sys.stderr.isatty():
        print(f"pullback: compiled {name} in {seconds:.1f} s (PULLBACK_SLOW_COMPILE=0 hides this)", file=sys.stderr)


def logs_compilations() -> bool:
    """Whether each trace and compilation is logged, with its time."""
    return switches.log_compiles or config.config.jax_log_compiles


__all__ = ["PROGRAMS", "STAGES", "TRACING", "logs_compilations", "say_slow", "warn"]
