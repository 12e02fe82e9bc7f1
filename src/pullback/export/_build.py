"""From compiled functions to the files of a library."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from pullback._ext import _core
from pullback.export import _link
from pullback.export._blas import INT, Blas, find_blas
from pullback.export._companions import cmake_example, cmake_package, example
from pullback.export._cpu import Cpu
from pullback.export._glue import blas_probe, glue
from pullback.export._header import header
from pullback.export._program import Program, kernel_object
from pullback.util.record import frozen_record


@frozen_record
class Library:
    """What `to_c` has written."""

    library: Path  # the shared library
    header: Path
    cmake: Path  # the package file that find_package takes
    example: Path  # a C++ program that calls each function; CMakeLists.txt beside it builds it
    functions: tuple[str, ...]
    links: tuple[str, ...]  # what the library needs at run time

    @property
    def folder(self) -> Path:
        """Where the files are."""
        return self.library.parent


def build(
    name: str, compiled: Callable[[np.dtype], Sequence[Program]], folder: Path, cpu: Cpu, blas: str | None
) -> Library:
    """Links, and writes all files of the library `name`; RuntimeError if a tool is missing or fails.

    `compiled` gives the programs for LAPACK's integers of a type: which routines they call says which library there is,
    and that says the type.
    """
    _link.check_platform()
    programs = compiled(INT)
    routines = sorted(set().union(*(program.fortran for program in programs)))
    runtime = any(program.needs_runtime for program in programs)
    sorts = any(program.sorts for program in programs)
    with tempfile.TemporaryDirectory(prefix="pullback-") as temporary:
        work = Path(temporary)
        found = find_blas(blas, routines, lambda choice: _links(choice, routines, work))
        if found.integer != INT:
            programs = compiled(found.integer)
        links = _needs(found, sorts)
        constants = _write_constants(programs, work)
        files = {
            f"{name}.h": header(name, programs, cpu, links),
            f"{name}Config.cmake": cmake_package(name, links),
            "CMakeLists.txt": cmake_example(name),
            "example.cpp": example(name, programs),
        }
        (work / f"{name}.h").write_text(files[f"{name}.h"])
        (work / "glue.c").write_text(glue(name, programs, cpu, found, constants))
        compile_glue = ["-std=gnu11", "-O2", "-fPIC", "-fvisibility=hidden", "-c", "glue.c", "-o", "glue.o"]
        _link.run([*_link.compiler(), *compile_glue], work)
        objects = ["glue.o", *_write_objects(programs, cpu, work)]
        extra = list(found.flags)
        if runtime:
            (work / "runtime.a").write_bytes(_core.standalone_archive())
            extra.insert(0, "runtime.a")
        library = f"lib{name}.so"
        _link.run(_link.shared(objects, library, library, sorts, extra), work)
        folder.mkdir(parents=True, exist_ok=True)
        for file, text in files.items():
            _replace(folder / file, text.encode())
        _replace(folder / library, (work / library).read_bytes(), executable=True)
    return Library(
        folder / library,
        folder / f"{name}.h",
        folder / f"{name}Config.cmake",
        folder / "example.cpp",
        tuple(program.name for program in programs),
        tuple(links),
    )


def _links(blas: Blas, routines: Sequence[str], work: Path) -> bool:
    (work / "probe.c").write_text(blas_probe(routines, blas))
    return _link.succeeds(
        [*_link.compiler(), "-shared", "-fPIC", "-Wl,--no-undefined", "probe.c", "-o", "probe.so", *blas.flags], work
    )


def _needs(blas: Blas, sorts: bool) -> list[str]:
    needs = ["the C library"]
    if sorts:
        needs.append("the C++ library (sorts)")
    if blas.description:
        needs.append(f"BLAS and LAPACK ({blas.description})")
    return needs


def _write_constants(programs: Sequence[Program], work: Path) -> Mapping[tuple[str, str], str]:
    """Writes large constants, equal ones once: the name of the file by (function, slot)."""
    files = {}
    for program in programs:
        for slot, array in program.constants.items():
            file = f"pb_constant_{hashlib.sha256(array.tobytes()).hexdigest()[:16]}.bin"
            array.tofile(work / file)
            files[program.name, slot] = file
    return files


def _write_objects(programs: Sequence[Program], cpu: Cpu, work: Path) -> list[str]:
    objects = {f"{program.entry}.o": program.code for program in programs}
    for kernel in sorted(set().union(*(program.kernels for program in programs))):
        objects[f"{kernel}.o"] = kernel_object(kernel, cpu.target)
    for file, code in objects.items():
        (work / file).write_bytes(code)
    return list(objects)


def _replace(path: Path, content: bytes, executable: bool = False) -> None:
    """Writes a file by one rename: a process that has the old library loaded keeps it."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_bytes(content)
    if executable:
        temporary.chmod(0o755)
    temporary.replace(path)
