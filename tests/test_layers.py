"""Imports go downward: a module may import from its own layer's package and from lower layers only, and never in a
circle.
"""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[1] / "src" / "pullback"

LEVELS = {
    "manual": -1,  # texts, which any package may take
    "_ext": 0,
    "util": 0,
    "version": 0,
    "sharding": 0,
    "core": 1,
    "loops.ir": 1,
    "transforms": 2,
    "loops.math": 2,
    "loops.emit": 2,
    "loops.passes": 3,
    "loops.schedule": 3,
    "lax.records": 4,
    "lax": 5,
    "compiler.graph": 6,
    "compiler.hlo": 6,
    "partition": 7,
    "compiler.lower": 7,
    "compiler.products": 7,
    "compiler.pipelines": 8,
    "runtime": 9,
    "api": 10,
    "numpy": 11,
    "random": 12,
    "nn": 12,
    "scipy": 12,
    "image": 12,
    "tree": 12,
    "tree_util": 12,
    "errors": 12,
    "dtypes": 12,
    "flatten_util": 12,
}
TOP = 13
PEERS = 12  # from here on, packages of one level may use each other


def place_of(module: str) -> str:
    """The longest name in LEVELS that a module of this package lies under; its first name where there is none."""
    parts = module.split(".")[1:]
    names = [".".join(parts[:k]) for k in range(len(parts), 0, -1)]
    return next((name for name in names if name in LEVELS), names[-1])


def imported(path: Path):
    """(line, module) of each import of this package in a file, at whatever depth."""
    here = path.relative_to(ROOT.parent).with_suffix("").parts
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = [*here[: len(here) - node.level]] if node.level else []
            found = [".".join([*base, *([node.module] if node.module else []), alias.name]) for alias in node.names]
        else:
            continue
        yield from ((node.lineno, name) for name in found if name.startswith(f"{ROOT.name}."))


def test_imports_go_downward():
    wrong = []
    for path in sorted(ROOT.rglob("*.py")):
        relative = path.relative_to(ROOT)
        if relative.name in ("__init__.py", "__main__.py") and len(relative.parts) == 1:
            continue
        own = place_of(".".join((ROOT.name, *relative.with_suffix("").parts)))
        level = LEVELS.get(own, TOP)
        for line, module in imported(path):
            package = place_of(module)
            other = LEVELS.get(package, TOP)
            beside = package.partition(".")[0] == own.partition(".")[0] or level >= PEERS or level == 0
            if other > level or (other == level and not beside):
                wrong.append(f"{relative}:{line} (level {level}) imports {package} (level {other})")
    assert not wrong, "\n".join(wrong)


def test_no_circles():
    """Neither at the top of modules, nor in functions or for types alone. Packages import their modules, so they do not
    count."""
    modules = {".".join(path.relative_to(ROOT.parent).with_suffix("").parts): path for path in ROOT.rglob("*.py")}
    modules = {name: path for name, path in modules.items() if path.name != "__init__.py"}
    ahead = {}
    for name, path in modules.items():
        found = {part for _, whole in imported(path) for part in (whole, whole.rpartition(".")[0])}
        ahead[name] = found & modules.keys() - {name}

    def peel(outer):
        while done := outer():
            for name in done:
                del ahead[name]

    peel(lambda: [name for name, needed in ahead.items() if not needed & ahead.keys()])
    peel(lambda: ahead.keys() - {name for needed in ahead.values() for name in needed})
    assert not ahead, f"these are in circles, or between two: {sorted(ahead)}"


def test_no_peer_is_imported():
    """JAX, PyTorch and autograd are compared with, never used."""
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            names = (
                [a.name for a in node.names]
                if isinstance(node, ast.Import)
                else ([node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else [])
            )
            for name in names:
                assert name.split(".")[0] not in ("jax", "jaxlib", "torch", "autograd"), (
                    f"{path.relative_to(ROOT)}:{node.lineno}"
                )
