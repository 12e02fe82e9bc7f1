"""Compiled functions outside of this process: libraries for C and C++.

    pullback.export.to_c(step, x, w, path="build/model")

writes a shared library, a C header, a CMake package and an example into the folder; the library runs without Python.

The code is the same LLVM text as in a process, with other names: the table of what it reaches outside of itself, which
the loader fills in a process, is written in C and filled by the linker. Sorts come from a static library that is part
of the extension as bytes (1.5 MB), so that nothing more has to be installed. A library runs on one thread: results are
the same bits for any number. The programs of `tests/export/programs.py`, on memory that ends at a guard page, give the
bits of `jit`.
"""

from __future__ import annotations

from pullback.core.dimensions.scopes import SymbolicScope
from pullback.core.explain import explain_all as _explain_all
from pullback.manual import add_pages as _add_pages
from pullback.manual.export import PAGES as _PAGES
from pullback.util.absent import listed as _listed

from ._build import Library
from ._exported import (
    DisabledSafetyCheck,
    Exported,
    default_export_platform,
    deserialize,
    export,
    maximum_supported_calling_convention_version,
    minimum_supported_calling_convention_version,
)
from ._format import register_namedtuple_serialization, register_pytree_node_serialization
from ._symbolic import is_symbolic_dim, symbolic_args_specs, symbolic_shape
from ._to_c import to_c

__all__ = [
    "DisabledSafetyCheck", "Exported", "Library", "SymbolicScope", "default_export_platform", "deserialize", "export",
    "is_symbolic_dim", "maximum_supported_calling_convention_version", "minimum_supported_calling_convention_version",
    "register_namedtuple_serialization", "register_pytree_node_serialization", "symbolic_args_specs", "symbolic_shape",
    "to_c",
]  # fmt: skip

_explain_all(globals())
_add_pages(globals(), _PAGES)

__dir__ = _listed(__name__)
