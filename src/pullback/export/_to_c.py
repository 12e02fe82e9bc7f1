"""Functions as a shared library for C and C++, in one call."""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pullback.api._arguments import function_name
from pullback.export._build import Library, build
from pullback.export._cpu import cpu_for
from pullback.export._program import Program, program, traced
from pullback.export._signature import is_identifier
from pullback.util.lapack import integers_of

Functions = Mapping[str, tuple[Any, ...]]


def to_c(
    f: Callable[..., Any] | Functions,
    /,
    *example_args: Any,
    path: str | os.PathLike[str],
    name: str | None = None,
    cpu: str = "host",
    blas: str | None = None,
) -> Library:
    """Write `f`, compiled for arguments like `example_args`, as a shared library with a C header.

    f: a function, jitted or not, or several of them in one library: {"step": (step, x, w), "loss": (loss, w)}.
    example_args: arrays, trees of arrays, or ShapeDtypeStructs; static arguments of a jitted function are part of the
    program. Each leaf of the arguments and of the result is a parameter of the C function, named after it.
    path: the folder to write lib<name>.so, <name>.h, <name>Config.cmake, example.cpp and its CMakeLists.txt into.
    name: of the library; that of the folder if not given.
    cpu: 'host', or the least CPU that the library is for: 'x86-64', 'x86-64-v2', 'x86-64-v3' or 'x86-64-v4'.
    blas: where BLAS and LAPACK come from if the functions call them: the file of a library, linker flags such as
    '-lmkl_rt', or 'numpy' for the OpenBLAS in NumPy's wheel. Without it the system's, else NumPy's with a warning.

    The library needs no Python and runs on the thread that calls it. Its results are those of jit(f), bit for bit if it
    is for this CPU and has the same BLAS. Raises NotImplementedError for functions that call back into Python (it names
    the callback and the line) and for dtypes that C has not, ValueError for names that C does not take, RuntimeError if
    there is no C compiler or it fails.
    """
    folder = Path(path)
    functions = _functions(f, example_args)
    library = _library_name(folder, name)
    _check_names(library, list(functions))
    target = cpu_for(cpu)
    stages = [(name, traced(name, fun, tuple(args)), tuple(args)) for name, (fun, *args) in functions.items()]

    def compiled(integer: np.dtype) -> list[Program]:
        with integers_of(integer):
            return [program(f, k, library, stage, args, target.target) for k, (f, stage, args) in enumerate(stages)]

    return build(library, compiled, folder, target, blas)


def _functions(f: Any, example_args: tuple[Any, ...]) -> dict[str, tuple[Any, ...]]:
    if not isinstance(f, Mapping):
        if not callable(f):
            raise TypeError(
                f"to_c: argument 'f' is {f!r} of type {type(f)}; expected a function or a dict of functions"
            )
        return {_identifier(function_name(f)): (f, *example_args)}
    if example_args:
        raise TypeError(
            "to_c: with a dict of functions, each function's example arguments stand beside it: "
            '{"step": (step, x, w)}; got further positional arguments'
        )
    if not f:
        raise ValueError("to_c: argument 'f' is an empty dict; expected one function at least")
    for key, value in f.items():
        if not isinstance(value, tuple) or not value or not callable(value[0]):
            raise TypeError(f"to_c: {key!r} is {value!r}; expected a tuple of a function and its example arguments")
    return dict(f)


def _library_name(folder: Path, name: str | None) -> str:
    if name is None:
        return _identifier(folder.resolve().name) or "functions"
    if not is_identifier(name):
        raise ValueError(f"to_c: argument 'name' is {name!r}, which is no identifier of C")
    return name


def _identifier(text: str) -> str:
    """The nearest thing to `text` that C takes."""
    found = re.sub(r"\W", "_", text, flags=re.ASCII).strip("_")
    return f"_{found}" if found[:1].isdigit() or (found and not is_identifier(found)) else found or "function"


def _check_names(library: str, names: list[str]) -> None:
    taken = {f"{library}_message"}
    for name in names:
        if not is_identifier(name):
            raise ValueError(f"to_c: the function name {name!r} is no identifier of C and C++")
        if _in_c_library(name):
            raise ValueError(
                f"to_c: a function named {name!r} would hide the C library's; give it another name: "
                f'to_c({{"my_{name}": ({name}, ...)}}, path=...)'
            )
        for symbol in (name, f"{name}_in", f"{name.upper()}_WORKSPACE"):
            if symbol in taken:
                raise ValueError(f"to_c: two functions of the library would be called {symbol!r}")
            taken.add(symbol)


def _in_c_library(name: str) -> bool:
    for file in ("libc.so.6", "libm.so.6"):
        try:
            if hasattr(ctypes.CDLL(file), name):
                return True
        except OSError:
            continue
    return False
