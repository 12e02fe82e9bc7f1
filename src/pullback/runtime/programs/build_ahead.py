"""Compiles kernels ahead, and writes their files (ahead.py reads them).

python -m pullback.runtime.programs.build_ahead [here | elsewhere]

All of them, those of this CPU's level (a third to two thirds of the time), or those of the other levels.
"""

from __future__ import annotations

import concurrent.futures
import multiprocessing
import os
import sys
import tempfile

from pullback.compiler.products.symbols import usual_kernels
from pullback.loops.emit.cpu.target import target_of_features, target_scope, vector_bytes
from pullback.loops.emit.jit import emit_object
from pullback.loops.emit.module import build_module
from pullback.runtime.programs.ahead import (
    BUILT,
    FOLDER,
    FUNCTIONS,
    SOURCES,
    file_name,
    function_name,
    own_level,
    sources_digest,
)
from pullback.runtime.programs.kernel_loops import loops_of
from pullback.util.cpu_levels import LEVELS


def code_of(name: str, level: str) -> bytes:
    """Object code of a kernel for every CPU of a level; this one need not be of it."""
    target = target_of_features(LEVELS[level])
    with target_scope(target):
        module = build_module(loops_of(name), {}, target, subroutine=True)
        assert not module.slots, f"{name} calls {module.slots}"
        return emit_object(module.text, target, promote=module.promote)


def write(path: str, kind: str, codes: dict[str, bytes]) -> None:
    """A file of kernels, put there as a whole."""
    head = " ".join([sources_digest(kind), *[f"{name}:{len(code)}" for name, code in codes.items()]]).encode() + b"\n"
    handle, temporary = tempfile.mkstemp(dir=os.path.dirname(path))
    with os.fdopen(handle, "wb") as file:
        file.write(head + b"".join(codes.values()))
    os.chmod(temporary, 0o644)
    os.replace(temporary, path)


def levels(where: str) -> list[str]:
    """The levels that have kernels: `all`, the one whose kernels run `here` (there may be none), or `elsewhere`."""
    own = own_level()
    choice = {
        "all": list(BUILT),
        "here": [level for level in BUILT if level == own],
        "elsewhere": [level for level in BUILT if level != own],
    }
    if where not in choice:
        raise SystemExit(f"build_ahead: got {where!r}; expected one of: {', '.join(choice)}")
    return choice[where]


def main(where: str = "all") -> int:
    """The command."""
    chosen = levels(where)
    functions = [function_name(name, dtype) for name, (_, dtypes) in FUNCTIONS.items() for dtype in dtypes]
    with concurrent.futures.ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("spawn")) as pool:
        for level in chosen:
            products = usual_kernels(vector_bytes(dict.fromkeys(LEVELS[level], True)))
            for kind, names, chunk in (("functions", functions, 1), ("products", products, 16)):
                path = os.path.join(FOLDER, file_name(kind, level))
                write(path, kind, dict(zip(names, pool.map(code_of, names, [level] * len(names), chunksize=chunk))))
                print(f"{path}: {len(names)} kernels, {os.stat(path).st_size / 1e6:.1f} MB")
    known = {file_name(kind, level) for kind in SOURCES for level in BUILT}
    for name in os.listdir(FOLDER):
        if name.startswith("kernels-") and name not in known:  # an older version's, which would go into a wheel
            os.unlink(os.path.join(FOLDER, name))
    return 0


__all__ = ["code_of", "write"]

if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
