"""How a process finds out which of how many it is: each kind of launcher is a class, and libraries add theirs.

A subclass of `ClusterEnv` is asked by `initialize` where no launcher that is known there has started the process. The
launchers here are those whose variables MPI's libraries read, too.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any

# Ports that few systems give away by themselves; the job's number chooses one, so that jobs on a machine do not meet.
_FIRST_PORT, _PORTS = 65535 - 2**12 + 1, 2**12
_MPIRUN = "OMPI_MCA_orte_hnp_uri"


class ClusterEnv:
    """A kind of launcher. A subclass is known from its definition on, unless it is `opt_in_only_method`."""

    _cluster_types: list[type[ClusterEnv]] = []
    name: str = ""
    opt_in_only_method: bool = False  # asked only where initialize's cluster_detection_method names it

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        ClusterEnv._cluster_types.append(cls)

    @classmethod
    def is_env_present(cls) -> bool:
        """Whether such a launcher has started this process."""
        raise NotImplementedError(f"{cls.__name__}: subclasses must have is_env_present")

    @classmethod
    def get_coordinator_address(cls, timeout_secs: int | None, override_coordinator_port: str | None) -> str:
        """Where process 0 is, as host:port."""
        raise NotImplementedError(f"{cls.__name__}: subclasses must have get_coordinator_address")

    @classmethod
    def get_process_count(cls) -> int:
        """How many processes there are."""
        raise NotImplementedError(f"{cls.__name__}: subclasses must have get_process_count")

    @classmethod
    def get_process_id(cls) -> int:
        """The number of this process."""
        raise NotImplementedError(f"{cls.__name__}: subclasses must have get_process_id")

    @classmethod
    def get_local_process_id(cls) -> int | None:
        """Its number among those of its machine; None if nobody knows."""
        return None

    @classmethod
    def auto_detect_unset_distributed_params(
        cls,
        coordinator_address: str | None,
        num_processes: int | None,
        process_id: int | None,
        local_device_ids: Sequence[int] | None,
        cluster_detection_method: str | None,
        initialization_timeout: int | None,
    ) -> tuple[str | None, int | None, int | None, Sequence[int] | None]:
        """The first four arguments, those that are None from the launcher, if one has started this process."""
        given = coordinator_address, num_processes, process_id
        found = _find(cluster_detection_method)
        if found is None:
            return *given, local_device_ids
        port = os.environ.get("JAX_COORDINATOR_PORT")
        if coordinator_address is None:
            coordinator_address = found.get_coordinator_address(initialization_timeout, port)
        num_processes = found.get_process_count() if num_processes is None else num_processes
        process_id = found.get_process_id() if process_id is None else process_id
        if local_device_ids is None and (number := found.get_local_process_id()) is not None:
            local_device_ids = [number]
        return coordinator_address, num_processes, process_id, local_device_ids


def _find(method: str | None, but: Sequence[type[ClusterEnv]] = ()) -> type[ClusterEnv] | None:
    """The launcher of this process: the one of that name, or the first that says it is."""
    for kind in ClusterEnv._cluster_types:
        if kind in but:
            continue
        asked = not kind.opt_in_only_method if method is None else kind.name == method
        if asked and (method is not None or kind.is_env_present()):
            return kind
    return None


def _port(job: int, override: str | None) -> str:
    return str(job % _PORTS + _FIRST_PORT) if override is None else override


class OmpiCluster(ClusterEnv):
    """Open MPI's mpirun."""

    name = "ompi"

    @classmethod
    def is_env_present(cls) -> bool:
        """Whether mpirun has said where it is."""
        return _MPIRUN in os.environ

    @classmethod
    def get_coordinator_address(cls, timeout_secs: int | None, override_coordinator_port: str | None) -> str:
        """The machine of mpirun: JOB.0;tcp://ADDRESS,...:PORT."""
        uri = os.environ[_MPIRUN]
        job = int(uri.split(".", 1)[0]) >> 12  # the lowest bits of Open MPI's numbers are 0
        found = re.search(r"tcp://(.+?)[,:]|tcp6://\[(.+?)[,\]]", uri)
        if found is None:
            raise RuntimeError(f"{_MPIRUN} has no address: {uri!r}; give coordinator_address")
        return f"{found.group(1) or found.group(2)}:{_port(job, override_coordinator_port)}"

    @classmethod
    def get_process_count(cls) -> int:
        """How many processes there are."""
        return int(os.environ["OMPI_COMM_WORLD_SIZE"])

    @classmethod
    def get_process_id(cls) -> int:
        """The number of this process."""
        return int(os.environ["OMPI_COMM_WORLD_RANK"])

    @classmethod
    def get_local_process_id(cls) -> int | None:
        """Its number among those of its machine."""
        return int(os.environ["OMPI_COMM_WORLD_LOCAL_RANK"])


class SlurmCluster(ClusterEnv):
    """Slurm's srun."""

    name = "slurm"
    _needed = ("SLURM_JOB_ID", "SLURM_STEP_NODELIST", "SLURM_NTASKS", "SLURM_PROCID", "SLURM_LOCALID")

    @classmethod
    def is_env_present(cls) -> bool:
        """Whether srun has set all that is asked here."""
        return all(name in os.environ for name in cls._needed)

    @classmethod
    def get_coordinator_address(cls, timeout_secs: int | None, override_coordinator_port: str | None) -> str:
        """The first machine of a list as `a,b`, `node[003-5,8],x` or `rack[0-1]-b`."""
        found = re.match(r"([^,\[]*)(?:\[([^,\-\]]*))?", os.environ["SLURM_STEP_NODELIST"])
        host = "".join(part or "" for part in found.groups()) if found else ""
        return f"{host}:{_port(int(os.environ['SLURM_JOB_ID']), override_coordinator_port)}"

    @classmethod
    def get_process_count(cls) -> int:
        """How many processes there are."""
        return int(os.environ["SLURM_NTASKS"])

    @classmethod
    def get_process_id(cls) -> int:
        """The number of this process."""
        return int(os.environ["SLURM_PROCID"])

    @classmethod
    def get_local_process_id(cls) -> int | None:
        """Its number among those of its machine."""
        return int(os.environ["SLURM_LOCALID"])


_BUILT_IN = tuple(ClusterEnv._cluster_types)
MPI, NONE = "mpi4py", "deactivate"  # methods without a class: MPI is asked in any case, and nothing is


def defined_elsewhere(method: str | None) -> type[ClusterEnv] | None:
    """The launcher of this process, if it is of a kind that is not defined here; ValueError for a method that is not
    there.
    """
    known = [MPI, NONE, *[kind.name for kind in ClusterEnv._cluster_types]]
    if method is not None and method not in known:
        raise ValueError(
            f"distributed.initialize: cluster_detection_method is {method!r}; there are {', '.join(map(repr, known))}"
        )
    return None if method == NONE else _find(method, _BUILT_IN)


__all__ = ["NONE", "ClusterEnv", "OmpiCluster", "SlurmCluster", "defined_elsewhere"]
