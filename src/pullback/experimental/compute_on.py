"""Where a part of a program is computed: there is one place, so that it is said for other machines alone."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from typing import Any

from pullback.core.explain import explain_all as _explain_all

_TYPES = re.compile(r"device_host|device|tpu_sparsecore|gpu_stream:\d+")


def _check(name: str, compute_type: Any) -> None:
    if not isinstance(compute_type, str) or not _TYPES.fullmatch(compute_type):
        raise ValueError(
            f"{name}: argument 'compute_type' is {compute_type!r}; expected 'device', 'device_host', "
            "'tpu_sparsecore' or 'gpu_stream:' and a number"
        )


@contextlib.contextmanager
def compute_on(compute_type: str) -> Iterator[None]:
    """A context manager whose computations belong on the host, say; here all of them run there.

    Raises ValueError for a type that JAX does not know.
    """
    _check("compute_on", compute_type)
    yield


def compute_on2(
    f: Callable | None = None, *, compute_type: str, out_memory_spaces: Any, compiler_options: Any = None
) -> Any:
    """`f`, computed where `compute_type` says; see compute_on. NotImplementedError for `compiler_options`."""
    _check("compute_on2", compute_type)
    if compiler_options:
        raise NotImplementedError(f"compute_on2: argument 'compiler_options' must be None, got {compiler_options!r}")
    del out_memory_spaces  # there is one memory
    return f if f is not None else lambda function: function


__all__ = ["compute_on", "compute_on2"]

_explain_all(globals())
