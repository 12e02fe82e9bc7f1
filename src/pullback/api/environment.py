"""What a report of a fault should say about the installation."""

from __future__ import annotations

import contextlib
import os
import platform
import sys

import numpy as np

from pullback.api.threads import get_num_threads
from pullback.manual import add_pages
from pullback.manual.pullback.late import PAGES
from pullback.runtime.arrays.devices import devices, local_device_count, process_count
from pullback.util import lapack
from pullback.version import __version__, jax_version


def environment() -> dict[str, str]:
    """Versions, the CPU, libraries and the folder of compiled programs, as texts by name."""
    import llvmlite.binding as llvm
    import ml_dtypes

    from pullback.loops.emit.cpu.target import host_target
    from pullback.loops.emit.folder import default_folder
    from pullback.loops.schedule.machine import host

    target, machine = host_target(), host()
    count, size = _folder(default_folder())
    return {
        "pullback": f"{__version__} (the API of jax {jax_version})",
        "python": sys.version.replace("\n", " "),
        "numpy": np.__version__,
        "scipy": _version_of("scipy"),
        "ml_dtypes": ml_dtypes.__version__,
        "llvm": ".".join(map(str, llvm.llvm_version_info)) + f" (llvmlite {_version_of('llvmlite')})",
        "cpu": f"{target.cpu}, vectors of {target.vector_bytes * 8} bits ({', '.join(_features(target.features))})",
        "caches": " ".join(_size(cache.bytes) for cache in (machine.first, machine.second, machine.last)),
        "threads": f"{get_num_threads()} of {os.cpu_count()} cores",
        "blas": _blas(),
        "compiled programs": f"{default_folder()}: {count} files, {_size(size)}",
        "platform": platform.platform(),
    }


FEATURES = ("avx", "avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512vl", "avx512fp16", "avx512bf16", "amx-tile")


def _features(text: str) -> list[str]:
    have = {each[1:] for each in text.split(",") if each.startswith("+")}
    return [name for name in FEATURES if name in have] or ["no vectors beyond SSE2"]


def _blas() -> str:
    """The library whose functions programs call."""
    try:
        found = lapack.library()
        return f"{found.file}, {found.origin}, integers of {8 * found.integer.itemsize} bits"
    except ImportError as error:
        return str(error)


def _folder(folder: str) -> tuple[int, int]:
    """How many files there are in a folder and those within, and their bytes."""
    sizes = []
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):  # another process has just removed it
                sizes.append(os.stat(os.path.join(place, name)).st_size)
    return len(sizes), sum(sizes)


def _version_of(package: str) -> str:
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as found

    try:
        return found(package)
    except PackageNotFoundError:
        return "not installed"


def _size(count: float) -> str:
    for unit, size in (("GB", 1 << 30), ("MB", 1 << 20), ("kB", 1 << 10)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count} bytes"


def print_environment_info(return_string: bool = False) -> str | None:
    """Print versions, the CPU, devices and the options set in the environment, or return them as text.

    >>> "numpy: " in print_environment_info(return_string=True)
    True
    """
    found = devices()
    lines = [f"{name}: {value}" for name, value in environment().items()]
    lines += [
        f"device info: {found[0].device_kind}-{len(found)}, {local_device_count()} local devices",
        f"process_count: {process_count()}",
    ]
    lines += [f"{name}={value}" for name, value in sorted(os.environ.items()) if name.startswith(("JAX_", "PULLBACK_"))]
    text = "\n".join(lines)
    if return_string:
        return text
    print(text)
    return None


__all__ = ["environment", "print_environment_info"]

add_pages(globals(), PAGES)
