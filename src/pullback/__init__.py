"""pullback: NumPy-like arrays with composable grad, jit, vmap and scan, on a compiler of its own. The API is JAX's.

import pullback as jax
import pullback.numpy as jnp

@jax.jit
def loss(w, x, y):
    return jnp.mean((jnp.tanh(x @ w) - y) ** 2)

gradient = jax.grad(loss)
"""

from __future__ import annotations

import importlib as _importlib
import sys as _sys
from typing import TYPE_CHECKING as _TYPE_CHECKING

from pullback.manual import add_pages as _add_pages
from pullback.manual.pullback import PAGES as _PAGES
from pullback.util.absent import absent_names as _absent_names
from pullback.util.absent import no_attribute as _no_attribute
from pullback.util.collector import collector_rests as _collector_rests
from pullback.util.tracebacks import shorten as _shorten

with _collector_rests(all_stays=True):
    from pullback import _ext as _ext  # first: it says where this package cannot be used
    from pullback import core, lax, runtime  # runtime fills core.hooks.evaluate before anything runs
    from pullback import numpy as numpy
    from pullback.api import (
        ShapeDtypeStruct,
        block_until_ready,
        checkpoint,
        checkpoint_policies,
        clear_caches,
        closure_convert,
        copy_to_host_async,
        custom_gradient,
        custom_jvp,
        custom_vjp,
        device_get,
        device_put,
        effects_barrier,
        ensure_compile_time_eval,
        eval_shape,
        fwd_and_bwd,
        grad,
        hessian,
        jacfwd,
        jacobian,
        jacrev,
        jit,
        jvp,
        linear_transpose,
        linearize,
        make_jaxpr,
        named_call,
        named_scope,
        remat,
        typeof,
        value_and_grad,
        vjp,
        vmap,
    )
    from pullback.api.threads import get_num_threads, set_num_threads
    from pullback.core import Array
    from pullback.runtime.arrays.devices import (
        Device,
        default_backend,
        device_count,
        devices,
        host_count,
        host_id,
        host_ids,
        live_arrays,
        local_device_count,
        local_devices,
        process_count,
        process_index,
        process_indices,
    )
    from pullback.util import config as _config
    from pullback.util import dtypes
    from pullback.util.config import (
        check_tracer_leaks,
        checking_leaks,
        config,
        debug_infs,
        debug_key_reuse,
        debug_nans,
        default_device,
        default_matmul_precision,
        default_prng_impl,
        disable_jit,
        enable_checks,
        enable_custom_prng,
        enable_x64,
        explain_cache_misses,
        legacy_prng_key,
        log_compiles,
        no_execution,
        no_tracing,
        numpy_dtype_promotion,
        numpy_rank_promotion,
        softmax_custom_jvp,
        thread_guard,
        threefry_partitionable,
        transfer_guard,
        transfer_guard_device_to_device,
        transfer_guard_device_to_host,
        transfer_guard_host_to_device,
    )
    from pullback.util.dtypes import float0
    from pullback.version import __version__

# Modules that are imported when they are first used, so that `import pullback` stays quick.
_LAZY = (
    "ad_checkpoint",
    "api_util",
    "custom_batching",
    "custom_derivatives",
    "debug",
    "distributed",
    "dlpack",
    "errors",
    "example_libraries",
    "experimental",
    "export",
    "extend",
    "ffi",
    "flatten_util",
    "image",
    "interpreters",
    "lib",
    "memory",
    "monitoring",
    "nn",
    "ops",
    "profiler",
    "random",
    "ref",
    "scipy",
    "sharding",
    "stages",
    "test_util",
    "tree",
    "tree_util",
    "typing",
    "version",
)

_ELSEWHERE = {
    "ad": ("pullback.api.pullbacks", "ad"),
    "Shard": ("pullback.runtime.arrays.native_hooks", "Shard"),
    "allow_f16_reductions": ("pullback.util.config", "allow_f16_reductions"),
    "array_garbage_collection_guard": ("pullback.util.config", "array_garbage_collection_guard"),
    "auto_pcast": ("pullback.util.config", "auto_pcast"),
    "jax2tf_associative_scan_reductions": ("pullback.util.config", "jax2tf_associative_scan_reductions"),
    "make_array_from_callback": ("pullback.api.global_arrays", "make_array_from_callback"),
    "make_array_from_process_local_data": ("pullback.api.global_arrays", "make_array_from_process_local_data"),
    "make_array_from_single_device_arrays": ("pullback.api.global_arrays", "make_array_from_single_device_arrays"),
    "print_environment_info": ("pullback.api.environment", "print_environment_info"),
    "pure_callback": ("pullback.lax", "pure_callback"),
    "remove_size_one_mesh_axis_from_type": ("pullback.util.config", "remove_size_one_mesh_axis_from_type"),
    "NamedSharding": ("pullback.sharding", "NamedSharding"),
    "P": ("pullback.sharding", "PartitionSpec"),
    "Ref": ("pullback.ref", "Ref"),
    "ds": ("pullback.numpy._windows", "ds"),
    "empty_ref": ("pullback.ref", "empty_ref"),
    "free_ref": ("pullback.ref", "free_ref"),
    "freeze": ("pullback.ref", "freeze"),
    "make_mesh": ("pullback.api.mesh", "make_mesh"),
    "new_ref": ("pullback.ref", "new_ref"),
    "pmap": ("pullback.api.pmap", "pmap"),
    "progress": ("pullback.api.progress_bar", "progress"),
    "report": ("pullback.reports", "report"),
    "reshard": ("pullback.sharding", "reshard"),
    "set_mesh": ("pullback.sharding", "set_mesh"),
    "shard_map": ("pullback.api.shard_map", "shard_map"),
    "smap": ("pullback.api.smap", "smap"),
}


if _TYPE_CHECKING:  # for editors and type checkers, which do not see what is loaded when it is first used
    from pullback import ad_checkpoint as ad_checkpoint
    from pullback import api_util as api_util
    from pullback import custom_batching as custom_batching
    from pullback import custom_derivatives as custom_derivatives
    from pullback import debug as debug
    from pullback import distributed as distributed
    from pullback import dlpack as dlpack
    from pullback import errors as errors
    from pullback import example_libraries as example_libraries
    from pullback import experimental as experimental
    from pullback import export as export
    from pullback import extend as extend
    from pullback import ffi as ffi
    from pullback import flatten_util as flatten_util
    from pullback import image as image
    from pullback import interpreters as interpreters
    from pullback import memory as memory
    from pullback import monitoring as monitoring
    from pullback import nn as nn
    from pullback import ops as ops
    from pullback import profiler as profiler
    from pullback import random as random
    from pullback import ref as ref
    from pullback import scipy as scipy
    from pullback import sharding as sharding
    from pullback import stages as stages
    from pullback import test_util as test_util
    from pullback import tree as tree
    from pullback import tree_util as tree_util
    from pullback import typing as typing
    from pullback import version as version
    from pullback.api.environment import print_environment_info as print_environment_info
    from pullback.api.global_arrays import make_array_from_callback as make_array_from_callback
    from pullback.api.global_arrays import make_array_from_process_local_data as make_array_from_process_local_data
    from pullback.api.global_arrays import make_array_from_single_device_arrays as make_array_from_single_device_arrays
    from pullback.api.mesh import make_mesh as make_mesh
    from pullback.api.pmap import pmap as pmap
    from pullback.api.progress_bar import progress as progress
    from pullback.api.pullbacks import ad as ad
    from pullback.api.shard_map import shard_map as shard_map
    from pullback.api.smap import smap as smap
    from pullback.jax_names.install import install_as_jax as install_as_jax
    from pullback.lax.control.callback import pure_callback as pure_callback
    from pullback.numpy._windows import ds as ds
    from pullback.ref import Ref as Ref
    from pullback.ref import empty_ref as empty_ref
    from pullback.ref import free_ref as free_ref
    from pullback.ref import freeze as freeze
    from pullback.ref import new_ref as new_ref
    from pullback.reports import report as report
    from pullback.runtime.arrays.native_hooks import Shard as Shard
    from pullback.sharding import NamedSharding as NamedSharding
    from pullback.sharding import PartitionSpec as P
    from pullback.sharding import reshard as reshard
    from pullback.sharding import set_mesh as set_mesh
    from pullback.util.config import allow_f16_reductions as allow_f16_reductions
    from pullback.util.config import array_garbage_collection_guard as array_garbage_collection_guard
    from pullback.util.config import auto_pcast as auto_pcast
    from pullback.util.config import jax2tf_associative_scan_reductions as jax2tf_associative_scan_reductions
    from pullback.util.config import remove_size_one_mesh_axis_from_type as remove_size_one_mesh_axis_from_type


def __getattr__(name: str):
    try:
        return _found(name)
    except AttributeError as error:
        _shorten(error, _sys._getframe())
        raise


def _found(name: str):
    if name in _LAZY:
        try:
            found = _importlib.import_module(f"pullback.{name}")
            if _sys.modules.get("jax") is _sys.modules["pullback"]:
                _importlib.import_module(f"jax.{name}")  # libraries look there for what `import jax` has loaded
            return found
        except ModuleNotFoundError as error:
            if error.name != f"pullback.{name}":
                raise
    if name in _ELSEWHERE:
        place, spelled = _ELSEWHERE[name]
        return getattr(_importlib.import_module(place), spelled)
    if name in ("install_as_jax", "installed_as_jax"):
        return getattr(_importlib.import_module("pullback.jax_names.install"), name)
    if name == "_src" and _importlib.import_module("pullback.jax_names.install").installed_as_jax():
        return _importlib.import_module("pullback.jax_names.src")
    if name == "make_user_context":
        return _absent_names("pullback")(name)
    raise _no_attribute(__name__, name)


def _names_of_core(name: str):
    """`jax.core` has names of `jax.extend.core`, which is made from it; they are looked up there when asked for."""
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(_importlib.import_module("pullback.extend.core"), name)


core.__getattr__ = _names_of_core  # type: ignore[method-assign]


def __dir__():
    return sorted({*globals(), *_LAZY, *_ELSEWHERE, "install_as_jax"})


__all__ = [
    "Array",
    "Device",
    "ShapeDtypeStruct",
    "block_until_ready",
    "check_tracer_leaks",
    "checking_leaks",
    "checkpoint",
    "checkpoint_policies",
    "clear_caches",
    "closure_convert",
    "config",
    "copy_to_host_async",
    "core",
    "custom_gradient",
    "custom_jvp",
    "custom_vjp",
    "debug_infs",
    "debug_key_reuse",
    "debug_nans",
    "default_backend",
    "default_device",
    "default_matmul_precision",
    "default_prng_impl",
    "device_count",
    "device_get",
    "device_put",
    "devices",
    "effects_barrier",
    "fwd_and_bwd",
    "disable_jit",
    "dtypes",
    "enable_checks",
    "enable_custom_prng",
    "enable_x64",
    "ensure_compile_time_eval",
    "errors",
    "eval_shape",
    "explain_cache_misses",
    "float0",
    "get_num_threads",
    "grad",
    "hessian",
    "host_count",
    "host_id",
    "host_ids",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jit",
    "jvp",
    "lax",
    "legacy_prng_key",
    "linear_transpose",
    "linearize",
    "live_arrays",
    "local_device_count",
    "local_devices",
    "log_compiles",
    "make_jaxpr",
    "named_call",
    "named_scope",
    "no_execution",
    "no_tracing",
    "numpy",
    "numpy_dtype_promotion",
    "numpy_rank_promotion",
    "pmap",
    "process_count",
    "process_index",
    "process_indices",
    "pure_callback",
    "remat",
    "runtime",
    "set_num_threads",
    "softmax_custom_jvp",
    "thread_guard",
    "threefry_partitionable",
    "transfer_guard",
    "transfer_guard_device_to_device",
    "transfer_guard_device_to_host",
    "transfer_guard_host_to_device",
    "tree",
    "tree_util",
    "typeof",
    "value_and_grad",
    "vjp",
    "vmap",
]

_options = {name: vars(_config)[name] for name, (module, _) in _ELSEWHERE.items() if module == _config.__name__}
_add_pages({**globals(), **_options}, _PAGES)
