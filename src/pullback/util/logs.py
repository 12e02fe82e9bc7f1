"""What is logged about traces and compilations: to loggers of JAX's names, as programs that listen to them know these.

Python's logging takes 4 ms to import, which few processes need, so it is imported where something is said.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from pullback.util import config
from pullback.util.switches import switches

TRACING = "jax._src.interpreters.partial_eval"
STAGES = "jax._src.dispatch"
PROGRAMS = "jax._src.interpreters.pxla"
TRANSFERS = "jax._src.transfer_guard"


def warn(logger: str, text: str) -> None:
    """Log at level WARNING."""
    import logging

    logging.getLogger(logger).warning("%s", text)


@contextmanager
def saying_slow(name: str) -> Iterator[None]:
    """While a program is compiled: say on stderr, if it is a terminal, when that takes long, and at the end how long
    it took (PULLBACK_SLOW_COMPILE)."""
    limit, to = switches.slow_compile, sys.stderr
    if limit <= 0 or to is None or not to.isatty():
        yield
        return
    started = time.perf_counter()
    said = f"pullback: still compiling {name} after {limit:.3g} s (PULLBACK_SLOW_COMPILE=0 hides this)"
    timer = threading.Timer(limit, _say, (said, to))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
    seconds = time.perf_counter() - started
    if seconds >= limit:
        timer.join()  # it speaks first
        _say(f"pullback: compiled {name} in {seconds:.1f} s", to)


def _say(line: str, to: TextIO) -> None:
    to.write(line + "\n")  # in one piece: others write, too
    to.flush()


def logs_compilations() -> bool:
    """Whether each trace and compilation is logged, with its time."""
    return switches.log_compiles or config.config.jax_log_compiles


__all__ = ["PROGRAMS", "STAGES", "TRACING", "TRANSFERS", "logs_compilations", "saying_slow", "warn"]
