"""Running programs on several processes."""

from __future__ import annotations

import atexit
import functools
import importlib.util
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from patience import PATIENCE

import pullback

HERE = Path(__file__).parent / "distributed"
ROOT = HERE.parents[1]
MPIEXEC = Path(sys.executable).parent / "mpiexec"

needs_mpi = pytest.mark.skipif(
    importlib.util.find_spec("mpi4py") is None or not MPIEXEC.exists(),
    reason="several processes need the extra: pip install 'pullback[mpi]' (make test installs it)",
)


def environment(**more: str) -> dict[str, str]:
    """What the processes see: one thread each, no launcher's variables of whoever runs the tests, and patience: where
    the machine is busy, processes that start together come to a step many seconds apart.
    """
    own = {k: v for k, v in os.environ.items() if not k.startswith(("PMI_", "OMPI_", "SLURM_", "XLA_FLAGS"))}
    path = os.pathsep.join([str(ROOT), str(Path(pullback.__file__).parents[1])])  # the package that is tested
    return {**own, "PULLBACK_NUM_THREADS": "1", "PULLBACK_COMM_TIMEOUT": "90", "PYTHONPATH": path, **more}


@functools.cache
def python() -> list[str]:
    """The command that runs a Python program, without the time that imports take where forks can save it."""
    if not hasattr(os, "pidfd_open"):
        return [sys.executable]
    file = str(Path(__file__).with_name("nursery.py"))
    folder = tempfile.TemporaryDirectory()
    address = os.path.join(folder.name, "address")
    if len(address) > 100:  # no socket can have it
        return [sys.executable]
    command = [sys.executable, file, "serve", address]
    nursery = subprocess.Popen(command, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert nursery.stdout is not None and nursery.stdout.readline() == b"ready\n"
    atexit.register(folder.cleanup)
    atexit.register(nursery.communicate)
    return [sys.executable, "-I", "-S", file, address]


def started(count: int, *program: str, options: tuple[str, ...] = ()) -> list[str]:
    """The command that runs a program on so many processes."""
    return [str(MPIEXEC), "-n", str(count), *options, *python(), *program]


def launch(
    count: int,
    program: str | Path,
    *arguments: str,
    limit: float = PATIENCE,
    options: tuple[str, ...] = (),
    **more: str,
) -> subprocess.CompletedProcess:
    """mpiexec -n count python program arguments, from tests/distributed/programs unless it is a path."""
    path = program if isinstance(program, Path) else HERE / "programs" / program
    command = started(count, str(path), *arguments, options=options)
    return subprocess.run(command, env=environment(**more), capture_output=True, text=True, timeout=limit)


def succeed(count: int, program: str | Path, *arguments: str, **more) -> list[str]:
    """The lines that the processes print, of a program that must end well."""
    done = launch(count, program, *arguments, **more)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()
