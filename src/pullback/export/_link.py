"""The system's compiler and linker."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path


def check_platform() -> None:
    """Raises NotImplementedError where shared libraries are not ELF files."""
    if not sys.platform.startswith("linux"):
        raise NotImplementedError(f"to_c: it writes shared libraries of Linux; this is {sys.platform}")


def compiler(cplusplus: bool = False) -> list[str]:
    """The command of the system's C (or C++) compiler; RuntimeError that says what was looked for."""
    variable, names = ("CXX", ("c++", "g++", "clang++")) if cplusplus else ("CC", ("cc", "gcc", "clang"))
    chosen = shlex.split(os.environ.get(variable, ""))
    if chosen:
        if shutil.which(chosen[0]):
            return chosen
        raise RuntimeError(f"to_c: the environment variable {variable} says {chosen[0]!r}, which is not there")
    for name in names:
        path = shutil.which(name)
        if path is not None:
            return [path]
    raise RuntimeError(
        f"to_c: found no {'C++' if cplusplus else 'C'} compiler, which also is the linker: looked for "
        f"{', '.join(names)} and the environment variable {variable}. Install one (Debian: "
        f"{'g++' if cplusplus else 'gcc'})"
    )


def run(command: Sequence[str], folder: Path) -> None:
    """Runs a compiler; RuntimeError with what it says if it fails."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"to_c: {shlex.join(command)} failed:\n{done.stderr or done.stdout}")


def succeeds(command: Sequence[str], folder: Path) -> bool:
    """Whether a compiler takes it."""
    return subprocess.run(command, cwd=folder, capture_output=True, check=False).returncode == 0


def shared(objects: Sequence[str], output: str, soname: str, cplusplus: bool, extra: Sequence[str]) -> list[str]:
    """The command that links a shared library all of whose needs are met."""
    flags = ["-shared", "-fPIC", f"-Wl,-soname,{soname}", "-Wl,--no-undefined", "-Wl,--exclude-libs,ALL"]
    return [
        *compiler(cplusplus), *flags, "-Wl,-z,noexecstack", "-Wl,--gc-sections", "-o", output, *objects, *extra, "-lm"
    ]  # fmt: skip
