"""The programs that are timed: a file or folder a group, found by name."""

from __future__ import annotations

import importlib
import pkgutil

from benchmarks.program import Program


def groups() -> dict[str, list[Program]]:
    """Name of each group -> its programs."""
    found = {}
    for module in sorted(pkgutil.iter_modules(__path__), key=lambda m: m.name):
        programs = importlib.import_module(f"{__name__}.{module.name}").PROGRAMS
        names = [p.name for p in programs]
        assert len(set(names)) == len(names), f"benchmarks/programs/{module.name}: two programs of one name"
        found[module.name.replace("_", " ")] = programs
    return found
