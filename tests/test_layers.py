"""Imports go downward: a module may import from its own layer's package and from lower layers only."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[1] / "src" / "pullback"

LEVELS = {
    "_ext": 0,
    "util": 0,
    "version": 0,
    "sharding": 0,
    "core": 1,
    "loop_ir": 1,
    "transforms": 2,
    "loop_passes": 2,
    "emit": 2,
    "lax": 3,
    "graph_passes": 4,
    "lower": 4,
    "pipelines": 5,
    "runtime": 6,
    "api": 7,
    "numpy": 8,
    "random": 9,
    "nn": 9,
    "scipy": 9,
    "image": 9,
    "tree": 9,
    "tree_util": 9,
    "errors": 9,
    "dtypes": 9,
    "flatten_util": 9,
}
TOP = 10
BESIDE = {("lower", "graph_passes")}  # lowering reads the groups that fusion makes


def package_of(module: str) -> str | None:
    parts = module.split(".")
    return parts[1] if parts[0] == "pullback" and len(parts) > 1 else None


def imported(path: Path):
    """(line, package) of each import of this package in a file, at whatever depth."""
    here = path.relative_to(ROOT.parent).with_suffix("").parts
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, package_of(alias.name)
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                yield node.lineno, package_of(".".join((*here[: len(here) - node.level], node.module or "")))
            elif node.module == "pullback":
                for alias in node.names:
                    yield node.lineno, alias.name
            else:
                yield node.lineno, package_of(node.module or "")


def test_imports_go_downward():
    wrong = []
    for path in sorted(ROOT.rglob("*.py")):
        relative = path.relative_to(ROOT)
        own = relative.parts[0].removesuffix(".py")
        level = LEVELS.get(own, TOP)
        if own in ("__init__", "__main__"):
            continue
        for line, package in imported(path):
            if package is None or package == own:
                continue
            other = LEVELS.get(package, TOP)
            if other > level or (other == level < 9 and (own, package) not in BESIDE and level not in (0,)):
                wrong.append(f"{relative}:{line} (level {level}) imports {package} (level {other})")
    assert not wrong, "\n".join(wrong)


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
