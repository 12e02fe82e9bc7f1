"""How a process finds its launcher: Slurm's and Open MPI's variables, and kinds that libraries define."""

import pytest

import pullback as pb
from pullback.distributed import clusters

SLURM = {"SLURM_JOB_ID": "123456", "SLURM_NTASKS": "4", "SLURM_PROCID": "2", "SLURM_LOCALID": "1"}


@pytest.fixture(autouse=True)
def no_launcher(monkeypatch):
    for name in (*SLURM, "SLURM_STEP_NODELIST", "OMPI_MCA_orte_hnp_uri", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("nodes", "host"),
    [("node[03-05,9],x1", "node03"), ("a,b", "a"), ("h[1,2]", "h1"), ("n001", "n001"), ("rack[0-1]-b,c", "rack0")],
)
def test_slurm(monkeypatch, nodes, host):
    for name, value in (SLURM | {"SLURM_STEP_NODELIST": nodes}).items():
        monkeypatch.setenv(name, value)
    kind = clusters.SlurmCluster
    assert kind.is_env_present() and kind.get_coordinator_address(5, None) == f"{host}:62016"
    found = clusters.ClusterEnv.auto_detect_unset_distributed_params(None, None, None, None, None, 5)
    assert found == (f"{host}:62016", 4, 2, [1])
    kept = clusters.ClusterEnv.auto_detect_unset_distributed_params("a:1", 5, 0, [3], None, 5)
    assert kept == ("a:1", 5, 0, [3])


def test_open_mpi(monkeypatch):
    monkeypatch.setenv("OMPI_MCA_orte_hnp_uri", "1531576320.0;tcp://10.96.0.1,10.148.0.1:34911")
    for name, value in {"SIZE": "3", "RANK": "1", "LOCAL_RANK": "0"}.items():
        monkeypatch.setenv(f"OMPI_COMM_WORLD_{name}", value)
    found = clusters.ClusterEnv.auto_detect_unset_distributed_params(None, None, None, None, None, 5)
    assert found == ("10.96.0.1:62624", 3, 1, [0])


def test_kinds_that_libraries_define_are_asked(monkeypatch):
    monkeypatch.setattr(clusters.ClusterEnv, "_cluster_types", list(clusters.ClusterEnv._cluster_types))

    class Mine(clusters.ClusterEnv):
        name = "mine"
        opt_in_only_method = True

        @classmethod
        def is_env_present(cls):
            return True

        @classmethod
        def get_coordinator_address(cls, timeout_secs, override_coordinator_port):
            return "localhost:1"

        @classmethod
        def get_process_count(cls):
            return 1

        @classmethod
        def get_process_id(cls):
            return 1

    def ask(method):
        return clusters.ClusterEnv.auto_detect_unset_distributed_params(None, None, None, None, method, 5)

    assert ask(None) == (None,) * 4 and ask("mine") == ("localhost:1", 1, 1, None)
    with pytest.raises(ValueError, match="process_id is 1; of one process the number is 0"):
        pb.distributed.initialize(cluster_detection_method="mine")
    with pytest.raises(NotImplementedError, match="get_process_count"):
        clusters.ClusterEnv.get_process_count()


def test_methods_that_are_not_there_are_refused():
    with pytest.raises(ValueError, match="cluster_detection_method is 'k8s'; there are 'mpi4py', 'deactivate', "):
        pb.distributed.initialize(cluster_detection_method="k8s")
    with pytest.raises(ValueError, match="num_processes must be given"):
        pb.distributed.initialize(cluster_detection_method="deactivate")
