"""JAX's options for what is not here: they can be read and set, as programs do that run on several machines, and change
nothing, for the reason that each group has. An option whose effect would be missed is refused where it is set."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .record import NamedTuple


class Group(NamedTuple):
    """Options that change nothing for one reason; a default's type is the option's."""

    reason: str
    options: dict[str, Any]  # defaults; `(type, None)` where the default is None


GROUPS = (
    Group(
        "chooses what XLA does, and XLA is not here",
        {
            "jax_compiler_enable_remat_pass": True, "jax_compiler_detailed_logging_min_ops": 10,
            "jax_disable_most_optimizations": False, "jax_embedded_constants_max_bytes": 32,
            "jax_enable_pgle": False, "jax_pgle_aggregation_percentile": 90, "jax_pgle_profiling_runs": 3,
            "jax_compilation_cache_expect_pgle": False, "jax_memory_fitting_level": "O2", "jax_xla_profile_version": 0,
            "jax_experimental_unsafe_xla_runtime_errors": False, "jax_use_magma": "auto",
            "jax_send_traceback_to_runtime": "off", "jax_xla_backend": "", "jax_backend_target": "",
            "jax_persistent_cache_enable_xla_caches": "xla_gpu_per_fusion_autotune_cache_dir",
            "jax_remove_custom_partitioning_ptr_from_cache_key": False, "jax_cpu_enable_async_dispatch": True,
            "jax_hlo_source_file_canonicalization_regex": (str, None), "jax_source_url_schema": (str, None),
            "jax_include_debug_info_in_dumps": True,
            "jax_compilation_cache_check_contents": False, "jax_compilation_cache_include_metadata_in_key": False,
            "jax_export_calling_convention_version": 10, "jax_export_ignore_forward_compatibility": False,
            "jax_serialization_version": 0, "jax_pjrt_client_create_options": (str, None),
        },
    ),
    Group(
        "belongs to GPUs, to TPUs or to languages for their kernels",
        {
            "jax_cuda_visible_devices": "all", "jax_rocm_visible_devices": "all", "jax_oneapi_visible_devices": "all",
            "jax_mock_gpu_topology": "", "mock_num_gpu_processes": 0, "jax_bcoo_cusparse_lowering": False,
            "jax_threefry_gpu_kernel_lowering": False, "jax_mosaic_allow_hlo": False,
            "jax_pallas_enable_debug_checks": False, "jax_pallas_poison_buffers": False,
            "jax_pallas_use_mosaic_gpu": True, "jax_pallas_verbose_errors": False,
            "jax_use_emit_pipeline_primitive": False, "jax_refs_to_pins": False,
            "jax_ragged_dot_use_gpu_pallas_triton_lowering": False, "jax_ragged_dot_use_ragged_dot_instruction": True,
        },
    ),
    Group(
        "says how several processes find each other, and there is one",
        {
            "jax_distributed_debug": False, "jax_enable_preemption_service": True, "jax_enable_recoverability": False,
            "jax_check_proxy_envs": True, "jax_cpu_get_global_topology_timeout_minutes": 5,
            "jax_cpu_get_local_topology_timeout_minutes": 2, "jax_cross_host_transfer_socket_address": "",
            "jax_cross_host_transfer_timeout_seconds": (int, None),
            "jax_cross_host_transfer_transfer_size": (int, None),
            "jax_cross_host_transport_addresses": "", "jax_force_dcn_cross_host_transfers": False,
            "jax_share_binary_between_hosts": False, "jax_share_binary_between_hosts_timeout_ms": 1200000,
            "jax_sort_devices_by_process_index": True, "jax_debug_leaked_clients_on_clear_backends": False,
        },
    ),
    Group(
        "chooses between two ways in which JAX does the same",
        {
            "jax_remat3": False, "jax_scan3": False, "eager_constant_folding": False, "check_vma": False,
            "jax_disable_vmap_shmap_error": False, "jax2tf_associative_scan_reductions": False,
            "jax2tf_default_native_serialization": True, "jax_tracer_error_num_traceback_frames": 5,
        },
    ),
)  # fmt: skip

REFUSED: dict[str, tuple[Any, str]] = {
    "jax_log_checkpoint_residuals": (False, "ask ad_checkpoint.print_saved_residuals instead"),
    "jax_disallow_mesh_context_manager": (False, "`with mesh:` stays allowed"),
}


def refusing(name: str, default: Any, reason: str) -> Callable[[Any], Any]:
    """What option `name` is checked by: NotImplementedError for anything but its default."""

    def check(value: Any) -> Any:
        if value != default:
            raise NotImplementedError(f"{name}: {value!r} is not supported: {reason}")
        return value

    return check


__all__ = ["GROUPS", "REFUSED", "refusing"]
