"""Type checkers infer what a small program of a user's has; what is wrong in it they find."""

from __future__ import annotations

import ast
import importlib
import inspect
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from patience import PATIENCE
from tools.stubs import MODULES, OVERLOADS, names_of, path_of

import pullback

PROGRAM = Path(__file__).with_name("typed_program.py")
SOURCE = Path(pullback.__file__).parents[1]
WRONG = """
step(3, 4)
repeated(jnp.ones(2), 'two')
log1pexp(jnp.ones(2), 'two')
clipped(jnp.ones(2))
layer(jnp.ones(2), jnp.ones(2))
jax.vjp(with_aux, jnp.ones(2), has_aux=True)[2].sum()
jax.device_put(1.0).size()
"""


def _mypy(path: Path, tmp_path: Path) -> str:
    if find_spec("mypy") is None:
        pytest.skip("mypy is not installed (pip install mypy)")
    command = [sys.executable, "-m", "mypy", "--config-file", "", "--strict", "--no-warn-return-any",
               "--follow-imports=silent", "--no-error-summary", "--cache-dir", str(tmp_path / "cache"),
               "--ignore-missing-imports", str(path)]  # fmt: skip
    environment = {"MYPYPATH": str(SOURCE), "PATH": ""}
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, env=environment).stdout


def test_program_runs():
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location("typed_program", PROGRAM)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    assert 0 < module.main() < 1


def test_mypy(tmp_path):
    wrong = tmp_path / "wrong.py"
    wrong.write_text(PROGRAM.read_text() + WRONG)
    assert _mypy(PROGRAM, tmp_path) == ""
    found = _mypy(wrong, tmp_path)
    assert 'Argument 2 to "__call__" of "Jitted"' in found and found.count("error:") >= 8, found


def test_pyright(tmp_path):
    pyright = shutil.which("pyright")
    if pyright is None:
        pytest.skip("pyright is not installed")
    (tmp_path / "pyrightconfig.json").write_text(f'{{"extraPaths": ["{SOURCE}"], "reportMissingModuleSource": false}}')
    path = tmp_path / "program.py"
    path.write_text(PROGRAM.read_text())
    # Of this interpreter, which has NumPy: pyright's own may not.
    command = [pyright, "-p", str(tmp_path), "--pythonpath", sys.executable, str(path)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert ran.returncode == 0, ran.stdout


def test_type_checkers_see_names_that_are_loaded_late():
    block = next(n for n in ast.parse(Path(pullback.__file__).read_text()).body if isinstance(n, ast.If))
    seen = {name.asname for node in block.body if isinstance(node, ast.ImportFrom) for name in node.names}
    assert {*pullback._LAZY, *pullback._ELSEWHERE} - seen == {"lib"}  # which has no names


@pytest.mark.parametrize("where", MODULES)
def test_stubs_say_what_functions_take(where):
    """Written anew by `python -m tools.stubs` where this fails."""
    module = importlib.import_module(f"pullback.{where}")
    tree = ast.parse(path_of(where).read_text())
    known = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            known[node.name] = node.args
        elif isinstance(node, ast.AnnAssign):
            known[node.target.id] = None
        elif isinstance(node, ast.ClassDef):
            known[node.name] = None
        elif isinstance(node, (ast.Assign, ast.ImportFrom)):
            known |= dict.fromkeys([t.id for t in getattr(node, "targets", ())] or [a.asname for a in node.names])
    assert set(names_of(module)) <= set(known)
    for name, given in known.items():
        if given is None or name in OVERLOADS.get(where, ()) or name == "__getattr__":
            continue
        try:
            parameters = inspect.signature(getattr(module, name)).parameters
        except (TypeError, ValueError):
            continue
        every = [*given.posonlyargs, *given.args, given.vararg, *given.kwonlyargs, given.kwarg]
        assert [a.arg for a in every if a is not None] == list(parameters), name


def test_the_mark_for_type_checkers_is_installed():
    assert (Path(pullback.__file__).parent / "py.typed").exists()
