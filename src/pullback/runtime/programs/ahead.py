"""Kernels compiled ahead, when the package is built (build_ahead.py): no program and no call waits for them then.

Those of products, which programs call, and those of functions, which eager work runs. A file for each level of x86-64
that has vectors worth it, beside the extension: a line of text (a digest of the sources that made it, and where each
kernel lies), then object code. Such code runs on every CPU of the level, as fast as code for that very CPU: its vectors
are written down (float32 and float64 of 64 to 1,000, Xeon with AVX-512: 0.95 to 1.02). A file of other sources is not
used, so an edited checkout compiles its own.

Measured (Xeon with AVX-512): 1,188 kernels of products of 2 KB, and 512 for AVX2, take 22 s of processor time. A first
product of float32 or float64 compiles in 6 to 13 ms, before 9 to 45, of int32 in 9 to 11, before 37. 118 kernels of
functions take 1 MB for each level.
"""

from __future__ import annotations

import functools
import os
import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pullback._ext import _core
from pullback.loops.emit.symbols import ENTRY, FUNCTION
from pullback.util.switches import switches

if TYPE_CHECKING:
    from pullback.loops.emit.cache import Entry

PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDER = os.path.join(PACKAGE, "_ext")
BUILT = ("x86-64-v4", "x86-64-v3")  # the best first
# All that says what each kind of kernels computes: what writes products, what expands functions. Other code for the
# same operations would be no reason to compile all of them again, in a checkout that is being worked on; make does.
SOURCES = {
    "products": (
        *("loops/ir", "compiler/products/kernels.py", "compiler/products/symbols.py"),
        *("compiler/products/tile_kernels.py", "util/cpu_levels.py"),
    ),
    "functions": (
        *("loops/ir", "loops/math", "loops/passes/expand_math.py", "lax/elementwise"),
        *("compiler/lower/functions.py", "util/cpu_levels.py"),
    ),
}

# Functions of numbers whose values in NumPy have other bits, by the types that they have kernels for. Floats of fewer
# bits are computed in float32. What is dear and rare is computed in float64 alone.
_ANY = ("f32", "f64", "c64", "c128")
_UNARY = "acos acosh asin asinh atan atanh cos cosh exp exp2 expm1 log log1p logistic rsqrt sin sinh tan tanh"
FUNCTIONS: dict[str, tuple[int, tuple[str, ...]]] = {  # (operands, types)
    **dict.fromkeys(_UNARY.split(), (1, _ANY)),
    **dict.fromkeys(("atan2", "pow"), (2, _ANY)),
    **dict.fromkeys(
        ("bessel_i0e", "bessel_i1e", "cbrt", "digamma", "erf", "erf_inv", "erfc", "lgamma"), (1, ("f32", "f64"))
    ),
    **dict.fromkeys(("abs", "sign", "sqrt"), (1, ("c64", "c128"))),
    **dict.fromkeys(("mul", "div"), (2, ("c64", "c128"))),
    **dict.fromkeys(("igamma", "igammac", "igamma_grad_a", "random_gamma_grad", "zeta"), (2, ("f64",))),
    "polygamma": (2, ("f32", "f64")),
    "regularized_incomplete_beta": (3, ("f64",)),
}


def function_name(primitive: str, dtype: str) -> str:
    """The name of the kernel of a primitive of FUNCTIONS for operands of a type."""
    return f"{FUNCTION}{dtype}_{FUNCTIONS[primitive][0]}_{primitive}"


def sources_digest(kind: str) -> str:
    """What the sources of kernels contain; times of files say nothing where a package was installed. Takes 2 ms."""
    digest, size = 0, 0
    for name in SOURCES[kind]:
        for path in _files(os.path.join(PACKAGE, name)):
            with open(path, "rb") as file:
                text = file.read()
            digest, size = zlib.crc32(text, digest), size + len(text)
    return f"{digest:08x}{size:x}"


def _files(top: str) -> Iterator[str]:
    if not os.path.isdir(top):
        yield top
        return
    with os.scandir(top) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            if entry.name.endswith(".py"):
                yield entry.path
            elif entry.name != "__pycache__" and entry.is_dir():
                yield from _files(entry.path)


def kernel_ahead(name: str, level: str) -> Entry | None:
    """The code of a kernel for a level of CPUs ('host': this one); None if it was not compiled ahead."""
    from pullback.loops.emit.cache import Entry

    code = _code_ahead(name, level)
    return None if code is None else Entry(code, (), 0)


def function_ahead(name: str) -> tuple[int, Any] | None:
    """(address, what keeps it) of the kernel of a function, loaded without all that compiling takes; None if there is
    none for this CPU."""
    code = None if _core.load_object is None else _code_ahead(name, switches.cpu)
    if code is None:
        return None
    (address,), owner = _core.load_object(code, (ENTRY,))  # type: ignore[misc]
    return address, owner


def own_level() -> str | None:
    """The level whose kernels this CPU runs; None if it has none."""
    return {4: "x86-64-v4", 3: "x86-64-v3"}.get(_core.CPU_LEVEL)


def _code_ahead(name: str, level: str) -> bytes | None:
    own = own_level()
    built = own if level == "host" else level
    if built not in BUILT or own not in BUILT[: BUILT.index(built) + 1]:
        return None
    kind = "functions" if name.startswith(FUNCTION) else "products"
    return _read(os.path.join(FOLDER, file_name(kind, built)), kind, name)


def file_name(kind: str, level: str) -> str:
    return f"kernels-{kind}-{level}.bin"


@functools.cache
def _places(path: str, kind: str) -> dict[str, tuple[int, int]]:
    """(first byte, bytes) of each kernel in a file; nothing if it is not there, not whole, or of other sources."""
    try:
        with open(path, "rb") as file:
            digest, *places = file.readline().decode().split()
            start, size = file.tell(), os.fstat(file.fileno()).st_size
        found = {}
        for place in places:
            name, length = place.split(":")
            found[name] = start, int(length)
            start += int(length)
        if start != size or digest != sources_digest(kind):
            return {}
    except (OSError, ValueError):
        return {}
    return found


def _read(path: str, kind: str, name: str) -> bytes | None:
    place = _places(path, kind).get(name)
    if place is None:
        return None
    try:
        with open(path, "rb") as file:
            file.seek(place[0])
            return file.read(place[1])
    except OSError:
        return None


__all__ = [
    "BUILT",
    "FOLDER",
    "FUNCTIONS",
    "SOURCES",
    "file_name",
    "function_ahead",
    "function_name",
    "kernel_ahead",
    "own_level",
]
