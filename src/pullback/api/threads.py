"""How many threads compiled loops use: `set_num_threads`, OMP_NUM_THREADS, threadpoolctl.

The number belongs to the process. Results do not depend on it. Loops too small to gain stay on the caller's thread, as
do loops inside of loops and those of other Python threads while the pool is busy, and BLAS is asked for one thread
within compiled programs, so that the cores are never given out twice.
"""

from __future__ import annotations

import operator
import os
import sys
from typing import Any

from pullback._ext import _core
from pullback.util.switches import MAX_THREADS, switches
from pullback.util.tracebacks import api_boundary


class set_num_threads:
    """Have compiled loops use `n` threads, the caller's included; as a context manager, until the end of the block.

    Raises TypeError if n is not an integer, ValueError if it is less than 1 or more than 1024.
    """

    @api_boundary
    def __init__(self, n: int) -> None:
        try:
            count = operator.index(n)
        except TypeError:
            raise TypeError(f"set_num_threads: n must be an integer, got {n!r} of type {type(n).__name__}") from None
        if not 1 <= count <= MAX_THREADS:
            raise ValueError(f"set_num_threads: n must be at least 1 and at most {MAX_THREADS}, got {count}")
        self._before = _core.num_threads()
        _core.set_num_threads(count)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        _core.set_num_threads(self._before)


def get_num_threads() -> int:
    """How many threads compiled loops use, the caller's included."""
    return _core.num_threads()


def _from_environment() -> int:
    """PULLBACK_NUM_THREADS, else the first number of OMP_NUM_THREADS; 0 for neither."""
    if switches.num_threads:
        return switches.num_threads
    first = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return min(int(first), MAX_THREADS) if first.isascii() and first.isdigit() else 0


# ---- threadpoolctl


def _register(threadpoolctl: Any) -> None:
    class PullbackController(threadpoolctl.LibController):
        user_api = "pullback"
        internal_api = "pullback"
        filename_prefixes = ("_core.",)
        check_symbols = ("pullback_set_num_threads",)

        def get_num_threads(self) -> int:
            return self.dynlib.pullback_num_threads()

        def set_num_threads(self, num_threads: int) -> None:
            self.dynlib.pullback_set_num_threads(num_threads)

        def get_version(self) -> None:
            return None

        def set_additional_attributes(self) -> None:
            pass

    if hasattr(threadpoolctl, "register"):  # since 3.2
        threadpoolctl.register(PullbackController)


class _WhenImported:
    """A finder that registers our pool when threadpoolctl is imported, which this package does not need.

    (The base class of finders takes longer to import than all of `api`.)
    """

    def find_spec(self, name: str, _path: Any, _target: Any = None) -> Any:
        if name != "threadpoolctl":
            return None
        import importlib.util

        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def exec_module(module: Any) -> None:
            execute(module)
            _register(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def _install() -> None:
    if count := _from_environment():
        _core.set_num_threads(count)
    if "threadpoolctl" in sys.modules:
        _register(sys.modules["threadpoolctl"])
    else:
        sys.meta_path.insert(0, _WhenImported())


_install()
