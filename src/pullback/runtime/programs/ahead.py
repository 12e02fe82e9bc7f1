"""Kernels of products compiled ahead, when the package is built: no program waits for them then.

    python -m pullback.runtime.programs.ahead

A file for each level of x86-64 that has vectors worth it, beside the extension: a line of JSON (the digest of the
sources that made it, and where each kernel lies), then object code. Such code runs on every CPU of the level, as fast
as code for that very CPU: its vectors are written down (float32 and float64 of 64 to 1,000, Xeon with AVX-512: 0.95 to
1.02). A file of other sources is not used, so an edited checkout compiles its own.

Measured (Xeon with AVX-512): 1,188 kernels of 2 KB, and 512 for AVX2, take 22 s of processor time. A first product of
float32 or float64 compiles in 6 to 13 ms, before 9 to 45, of int32 in 9 to 11, before 37.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import sys
import tempfile
from pathlib import Path

from pullback.loops.emit.cache import Entry
from pullback.util.cpu_levels import LEVELS

PACKAGE = Path(__file__).parents[2]
FOLDER = PACKAGE / "_ext"
BUILT = ("x86-64-v4", "x86-64-v3")  # the best first
SOURCES = ("loops", "compiler/products", "util/cpu_levels.py")  # all that says what a kernel's code is


def sources_digest() -> str:
    """What the sources of kernels contain; times of files say nothing where a package was installed. Takes 5 ms."""
    digest = hashlib.sha256()
    for name in SOURCES:
        top = PACKAGE / name
        for path in sorted(top.rglob("*.py")) if top.is_dir() else [top]:
            digest.update(f"{path.relative_to(PACKAGE)}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()


def kernel_ahead(name: str, level: str) -> Entry | None:
    """The code of a kernel for a level of CPUs ('host': this one); None if it was not compiled ahead."""
    from pullback.loops.emit.cpu.target import target_of, vector_bytes

    target = target_of(level)
    features = set(target.features.replace("+", "").split(","))
    for built in BUILT:
        wanted = LEVELS[built]
        if features.issuperset(wanted) and vector_bytes(dict.fromkeys(wanted, True)) == target.vector_bytes:
            return _read(FOLDER / _file(built), name)
    return None


def _file(level: str) -> str:
    return f"kernels-{level}.bin"


@functools.cache
def _places(path: Path) -> dict[str, tuple[int, int]]:
    """(first byte, bytes) of each kernel in a file; nothing if it is not there, not whole, or of other sources."""
    try:
        with path.open("rb") as file:
            head = json.loads(file.readline())
            whole = os.fstat(file.fileno()).st_size == file.tell() + sum(size for _, size in head["places"].values())
            start = file.tell()
        if not whole or head["sources"] != sources_digest():
            return {}
    except (OSError, ValueError, KeyError):
        return {}
    return {name: (start + first, size) for name, (first, size) in head["places"].items()}


def _read(path: Path, name: str) -> Entry | None:
    place = _places(path).get(name)
    if place is None:
        return None
    try:
        with path.open("rb") as file:
            file.seek(place[0])
            return Entry(file.read(place[1]), (), 0)
    except OSError:
        return None


# Building.


def _code(name: str, level: str) -> bytes:
    """Object code of a kernel for every CPU of a level; this one need not be of it."""
    from pullback.compiler.products.symbols import kernel_of
    from pullback.loops.emit.cpu.target import target_of_features, target_scope
    from pullback.loops.emit.jit import emit_object
    from pullback.loops.emit.module import build_module

    target = target_of_features(LEVELS[level])
    with target_scope(target):
        module = build_module(kernel_of(name), {}, target, subroutine=True)
        assert not module.slots, f"{name} calls {module.slots}"
        return emit_object(module.text, target, promote=module.promote)


def write(path: Path, codes: dict[str, bytes]) -> None:
    """A file of kernels, put there as a whole."""
    places, first = {}, 0
    for name, code in codes.items():
        places[name] = (first, len(code))
        first += len(code)
    head = json.dumps({"sources": sources_digest(), "places": places}).encode() + b"\n"
    handle, temporary = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(handle, "wb") as file:
        file.write(head + b"".join(codes.values()))
    os.chmod(temporary, 0o644)
    os.replace(temporary, path)


def main() -> int:
    """The command."""
    import concurrent.futures  # a process that only reads kernels does without
    import multiprocessing

    from pullback.compiler.products.symbols import usual_kernels
    from pullback.loops.emit.cpu.target import vector_bytes

    with concurrent.futures.ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("spawn")) as pool:
        for level in BUILT:
            names = usual_kernels(vector_bytes(dict.fromkeys(LEVELS[level], True)))
            path = FOLDER / _file(level)
            write(path, dict(zip(names, pool.map(_code, names, [level] * len(names), chunksize=16))))
            print(f"{path}: {len(names)} kernels, {path.stat().st_size / 1e6:.1f} MB")
    return 0


__all__ = ["kernel_ahead"]

if __name__ == "__main__":
    sys.exit(main())
