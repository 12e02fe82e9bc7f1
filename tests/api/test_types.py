"""Type checkers infer what a small program of a user's has; what is wrong in it they find."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import pullback

PROGRAM = Path(__file__).with_name("typed_program.py")
SOURCE = Path(pullback.__file__).parents[1]
WRONG = "\nstep(3, 4)\nrepeated(jnp.ones(2), 'two')\n"


def _mypy(path: Path, tmp_path: Path) -> str:
    if find_spec("mypy") is None:
        pytest.skip("mypy is not installed (pip install mypy)")
    command = [sys.executable, "-m", "mypy", "--config-file", "", "--follow-imports=silent", "--no-error-summary",
               "--cache-dir", str(tmp_path / "cache"), "--ignore-missing-imports", str(path)]  # fmt: skip
    environment = {"MYPYPATH": str(SOURCE), "PATH": ""}
    return subprocess.run(command, capture_output=True, text=True, timeout=240, env=environment).stdout


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
    assert 'Argument 2 to "__call__" of "Jitted"' in found and found.count("error:") >= 3, found


def test_pyright(tmp_path):
    pyright = shutil.which("pyright")
    if pyright is None:
        pytest.skip("pyright is not installed")
    (tmp_path / "pyrightconfig.json").write_text(f'{{"extraPaths": ["{SOURCE}"], "reportMissingModuleSource": false}}')
    path = tmp_path / "program.py"
    path.write_text(PROGRAM.read_text())
    ran = subprocess.run([pyright, "-p", str(tmp_path), str(path)], capture_output=True, text=True, timeout=240)
    assert ran.returncode == 0, ran.stdout


def test_the_mark_for_type_checkers_is_installed():
    assert (Path(pullback.__file__).parent / "py.typed").exists()
