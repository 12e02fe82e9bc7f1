"""No argument of a public function is accepted in silence: each is read, or docs/coverage.md says why it changes
nothing.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "pullback"
ROW = re.compile(r"^\| `([^`]+)` \| (`[^|]+`) \| \S.* \|$")


def unread() -> dict[tuple[str, str], str]:
    """(function, argument) -> line, of arguments without a leading underscore whose name the function never reads.

    Not those of functions that do nothing but raise, or nothing at all.
    """
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        for function in ast.walk(ast.parse(path.read_text())):
            if not isinstance(function, ast.FunctionDef) or function.name.startswith("_"):
                continue
            body = [s for s in function.body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
            if all(isinstance(s, (ast.Raise, ast.Pass)) for s in body):
                continue
            names = [n for s in body for n in ast.walk(s) if isinstance(n, ast.Name)]
            read = {n.id for n in names if not isinstance(n.ctx, ast.Del)}
            given = function.args
            for argument in (*given.posonlyargs, *given.args, *given.kwonlyargs):
                name = argument.arg
                if name in read or "locals" in read or name in ("self", "cls") or name.startswith("_"):
                    continue
                found[function.name, name] = f"{path.relative_to(ROOT)}:{function.lineno}"
    return found


def explained() -> set[tuple[str, str]]:
    """(function, argument) of the table in docs/coverage.md; functions by the last part of their names."""
    pairs = set()
    for line in (ROOT / "docs" / "coverage.md").read_text().splitlines():
        if match := ROW.match(line):
            name = match[1].rpartition(".")[2]
            pairs |= {(name, argument) for argument in re.findall(r"`([^`]+)`", match[2])}
    return pairs


def test_every_argument_is_read_or_explained():
    found, table = unread(), explained()
    assert not [f"{found[pair]} {pair}" for pair in found.keys() - table]
    assert not table - found.keys(), "the table explains arguments that are read, or not there"
