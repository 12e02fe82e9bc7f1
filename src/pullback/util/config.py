"""JAX's `jax_*` options, one by one, and its `config` object; our own `PULLBACK_*` environment variables (`switches`)
are in switches.py and re-exported here.

`config.update(name, value)` sets an option for the process; `with enable_x64(True):` overrides it for the current
thread. What an option is, and when a trace depends on one, is in flags.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import other_options, tracebacks
from .flags import (
    Flag,
    Override,
    bool_flag,
    define,
    enum_flag,
    epoch,
    options,
    set_globally,
    typed_flag,
    value_of,
    values,
    x64_enabled,
)
from .flags import add_listener as add_listener
from .flags import context_tokens as context_tokens
from .flags import global_of as global_of
from .flags import is_overridden as is_overridden
from .option_checks import boolean, device, mesh, parse_bool
from .switches import switches
from .tracebacks import api_boundary

if TYPE_CHECKING:
    from .states import bool_state as bool_state
    from .states import enum_state as enum_state
    from .states import float_state as float_state
    from .states import int_state as int_state
    from .states import optional_enum_state as optional_enum_state
    from .states import optional_string_state as optional_string_state
    from .states import string_state as string_state

enable_x64 = bool_flag(
    "jax_enable_x64", False, "Keep 64-bit types; when off, they become the 32-bit ones.", traced=True
)
numpy_rank_promotion = enum_flag(
    "jax_numpy_rank_promotion",
    "allow",
    ("allow", "warn", "raise"),
    "What to do when operands of different numbers of dimensions are broadcast together.",
    traced=True,
)
numpy_dtype_promotion = enum_flag(
    "jax_numpy_dtype_promotion",
    "standard",
    ("standard", "strict"),
    "`standard`: the full promotion lattice; `strict`: only Python scalars adapt to an array's type.",
    traced=True,
)
disable_jit_flag = bool_flag(
    "jax_disable_jit", False, "Run jitted functions and control flow as plain Python, for debugging.", traced=True
)
debug_nans = bool_flag("jax_debug_nans", False, "Raise FloatingPointError when an operation makes a NaN.", traced=True)
debug_key_reuse = bool_flag(
    "jax_debug_key_reuse", False, "Raise KeyReuseError when a random key is consumed twice.", traced=True
)
debug_infs = bool_flag(
    "jax_debug_infs", False, "Raise FloatingPointError when an operation makes an infinity.", traced=True
)
check_tracer_leaks = bool_flag(
    "jax_check_tracer_leaks", False, "Find tracers that outlive their trace, and name them.", traced=True
)


@api_boundary
def disable_jit(disable: bool = True) -> Override:
    """A context manager in which jitted functions and control flow run as plain Python."""
    return disable_jit_flag(disable)


def checking_leaks() -> Override:
    """A context manager in which tracers that outlive their trace are found."""
    return check_tracer_leaks(True)


enable_checks = bool_flag(
    "jax_enable_checks", False, "Check the types of every jaxpr after each transformation.", traced=True
)
log_compiles = bool_flag("jax_log_compiles", False, "Log each trace and compilation, with its time.")
explain_cache_misses = bool_flag("jax_explain_cache_misses", False, "Log why a jitted function was traced again.")
MATMUL_PRECISIONS = (
    "default",
    "high",
    "highest",
    "bfloat16",
    "tensorfloat32",
    "float32",
    "ANY_F8_ANY_F8_F32",
    "ANY_F8_ANY_F8_F32_FAST_ACCUM",
    "ANY_F8_ANY_F8_ANY",
    "ANY_F8_ANY_F8_ANY_FAST_ACCUM",
    "F16_F16_F16",
    "F16_F16_F32",
    "BF16_BF16_BF16",
    "BF16_BF16_F32",
    "BF16_BF16_F32_X3",
    "BF16_BF16_F32_X6",
    "BF16_BF16_F32_X9",
    "TF32_TF32_F32",
    "TF32_TF32_F32_X3",
    "F32_F32_F32",
    "F64_F64_F64",
)
default_matmul_precision = enum_flag(
    "jax_default_matmul_precision",
    None,
    MATMUL_PRECISIONS,
    "Precision of dot and convolution when the call gives none.",
    traced=True,
)
PRNG_IMPLS = ("threefry2x32", "threefry4x32", "rbg", "unsafe_rbg", "philox2x32", "philox4x32")
default_prng_impl = enum_flag(
    "jax_default_prng_impl",
    "threefry2x32",
    PRNG_IMPLS,
    "Generator of keys made without an explicit `impl`.",
    traced=True,
)
threefry_partitionable = bool_flag(
    "jax_threefry_partitionable",
    True,
    "Number the counters of threefry per element (True) or in one sequence (False, the "
    "older way); the two give different numbers.",
    traced=True,
)


def _mesh_flag(name: str, doc: str) -> Flag:
    return define(Flag(name, None, doc, check=mesh, traced=True, parse=mesh, internal=True))


mesh_in_force = _mesh_flag("jax_mesh_in_force", "The mesh that `set_mesh` says.")
entered_mesh = _mesh_flag("jax_entered_mesh", "The mesh whose `with` statement we are in.")
named_calls = define(
    Flag(
        "jax_named_calls",
        False,
        "Whether jaxprs show functions as calls, for readers.",
        boolean("jax_named_calls"),
        traced=True,
        parse=parse_bool,
        internal=True,
    )
)
enable_custom_prng = bool_flag("jax_enable_custom_prng", False, "Have `PRNGKey` return typed key arrays.", traced=True)
legacy_prng_key = enum_flag(
    "jax_legacy_prng_key", "allow", ("allow", "warn", "error"), "What to do when a raw uint32 key is used.", traced=True
)
high_dynamic_range_gumbel = bool_flag(
    "jax_high_dynamic_range_gumbel", False, "Draw Gumbel variables with more bits in the upper tail.", traced=True
)
random_seed_offset = typed_flag("jax_random_seed_offset", int, 0, "Added to each integer seed.", traced=True)
softmax_custom_jvp = bool_flag(
    "jax_softmax_custom_jvp", False, "Give `nn.softmax` its own derivative rule.", traced=True
)
allow_f16_reductions = bool_flag("jax_allow_f16_reductions", True, "Allow sums of float16 in float16.", traced=True)
use_direct_linearize = bool_flag(
    "jax_use_direct_linearize", True, "Kept for compatibility; linearization is direct here."
)
default_device = define(
    Flag("jax_default_device", None, "Where new arrays live: a Device, a platform name or None.", device, traced=True)
)
no_tracing = bool_flag("jax_no_tracing", False, "Refuse to trace anything new.", traced=True)
no_execution = bool_flag("jax_no_execution", False, "Refuse to run compiled programs.", traced=True)
thread_guard = bool_flag("jax_thread_guard", False, "Refuse to start programs from a second thread.")
remove_size_one_mesh_axis_from_type = bool_flag(
    "jax_remove_size_one_mesh_axis_from_type", False, "Leave mesh axes of size one out of types.", traced=True
)
auto_pcast = bool_flag(
    "jax_auto_pcast", True, "Insert casts between varying and invariant values by itself.", traced=True
)
custom_vjp3 = bool_flag("jax_custom_vjp3", False, "Kept for compatibility.")
disable_bwd_checks = bool_flag(
    "jax_disable_bwd_checks", False, "Skip the type checks of custom_vjp's backward results.", traced=True
)
mutable_array_checks = bool_flag(
    "jax_mutable_array_checks", True, "Check that references are used safely.", traced=True
)
_GUARD = ("allow", "log", "disallow", "log_explicit", "disallow_explicit")
transfer_guard_host_to_device = enum_flag(
    "jax_transfer_guard_host_to_device", None, _GUARD, "What to do about implicit transfers from host to device."
)
transfer_guard_device_to_device = enum_flag(
    "jax_transfer_guard_device_to_device", None, _GUARD, "The same, device to device."
)
transfer_guard_device_to_host = enum_flag(
    "jax_transfer_guard_device_to_host", None, _GUARD, "The same, device to host: nothing, as arrays lie there."
)
transfer_guard = enum_flag("jax_transfer_guard", None, _GUARD, "What to do about implicit transfers in any direction.")
transfer_guard.parts = (
    transfer_guard_host_to_device.name,
    transfer_guard_device_to_device.name,
    transfer_guard_device_to_host.name,
)
array_garbage_collection_guard = enum_flag(
    "jax_array_garbage_collection_guard",
    None,
    ("allow", "log", "fatal"),
    "What to do when an array is freed by the garbage collector.",
)
traceback_filtering = enum_flag(
    "jax_traceback_filtering",
    "auto",
    ("off", "tracebackhide", "remove_frames", "auto", "quiet_remove_frames"),
    "How frames of the library are hidden from tracebacks.",
)
tracebacks.option = traceback_filtering
logging_level = enum_flag(
    "jax_logging_level",
    "NOTSET",
    ("NOTSET", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"),
    "Level of the loggers of the library.",
)
enable_compilation_cache = bool_flag(
    "jax_enable_compilation_cache", True, "Keep compiled programs on disk, given a folder."
)
compilation_cache_dir = typed_flag(
    "jax_compilation_cache_dir", str, None, "Folder of compiled programs.", optional=True
)
dump_ir_to = typed_flag("jax_dump_ir_to", str, "", "Folder that traced functions are written to.", optional=True)
dump_ir_modes = typed_flag(
    "jax_dump_ir_modes", str, "stablehlo", "What is written there, by commas: jaxpr, eqn_count_pprof."
)
compilation_cache_max_size = typed_flag("jax_compilation_cache_max_size", int, -1, "Its size limit in bytes; -1: none.")
persistent_cache_min_compile_time_secs = typed_flag(
    "jax_persistent_cache_min_compile_time_secs", float, 1.0, "Shorter compilations are not kept on disk."
)
persistent_cache_min_entry_size_bytes = typed_flag(
    "jax_persistent_cache_min_entry_size_bytes", int, 0, "Smaller programs are not kept on disk."
)
raise_persistent_cache_errors = bool_flag(
    "jax_raise_persistent_cache_errors", False, "Raise, not warn, on cache damage."
)
platforms = typed_flag("jax_platforms", str, None, "Comma-separated platforms in order of preference.", optional=True)
platform_name = typed_flag("jax_platform_name", str, "", "Older name for the preferred platform.")
num_cpu_devices = typed_flag(
    "jax_num_cpu_devices",
    int,
    -1,
    "Number of simulated CPU devices; -1: from XLA_FLAGS or 1; fixed once devices are asked for.",
)
pprint_use_color = bool_flag("jax_pprint_use_color", True, "Colour in printed jaxprs, on terminals.")
include_full_tracebacks_in_locations = bool_flag(
    "jax_include_full_tracebacks_in_locations", True, "Kept for compatibility."
)
traceback_in_locations_limit = typed_flag("jax_traceback_in_locations_limit", int, 10, "Kept for compatibility.")
use_shardy_partitioner = bool_flag("jax_use_shardy_partitioner", True, "Kept for compatibility.")
use_simplified_jaxpr_constants = bool_flag("jax_use_simplified_jaxpr_constants", False, "Kept for compatibility.")
captured_constants_warn_bytes = typed_flag(
    "jax_captured_constants_warn_bytes",
    int,
    2_000_000_000,
    "Warn when a trace captures constants larger than this; -1: never.",
)
captured_constants_report_frames = typed_flag(
    "jax_captured_constants_report_frames", int, 0, "Frames to show in that warning."
)
cpu_collectives_implementation = typed_flag(
    "jax_cpu_collectives_implementation", str, "gloo", "Kept for compatibility.", optional=True
)
exec_time_optimization_effort = typed_flag("jax_exec_time_optimization_effort", float, 0.0, "Kept for compatibility.")
memory_fitting_effort = typed_flag("jax_memory_fitting_effort", float, 0.0, "Kept for compatibility.")
optimization_level = typed_flag("jax_optimization_level", str, "UNKNOWN", "Kept for compatibility.")
debug_log_modules = typed_flag("jax_debug_log_modules", str, "", "Comma-separated modules to log at level DEBUG.")
check_static_indices = bool_flag(
    "jax_check_static_indices", False, "Raise IndexError for static indices out of bounds.", traced=True
)
_NAN_BEHAVIOUR = ("ignore", "raise")
error_checking_behavior_nan = enum_flag(
    "jax_error_checking_behavior_nan", "ignore", _NAN_BEHAVIOUR, "jnp error checking.", traced=True
)
error_checking_behavior_divide = enum_flag(
    "jax_error_checking_behavior_divide", "ignore", _NAN_BEHAVIOUR, "jnp error checking.", traced=True
)
error_checking_behavior_oob = enum_flag(
    "jax_error_checking_behavior_oob", "ignore", _NAN_BEHAVIOUR, "jnp error checking.", traced=True
)
explicit_x64_dtypes = enum_flag(
    "jax_explicit_x64_dtypes",
    "warn",
    ("allow", "warn", "error"),
    "What to do when a 64-bit type is asked for and x64 is off.",
    traced=True,
)


def _define_other_options() -> None:
    """The options that change nothing, by the type of their defaults; and those that only have their default."""
    for group in other_options.GROUPS:
        for name, default in group.options.items():
            doc = f"Changes nothing: {group.reason}."
            if isinstance(default, bool):
                bool_flag(name, default, doc)
            elif isinstance(default, tuple):
                typed_flag(name, default[0], None, doc, optional=True)
            else:
                typed_flag(name, type(default), default, doc)
    for name, (default, reason) in other_options.REFUSED.items():
        doc = f"Not to be changed: {reason}."
        made = bool_flag(name, default, doc) if isinstance(default, bool) else typed_flag(name, str, default, doc)
        made.check = other_options.refusing(name, default, reason)


_define_other_options()
jax2tf_associative_scan_reductions = options["jax2tf_associative_scan_reductions"]


class Config:
    """JAX's `config` object: `update(name, value)`, `read(name)`, and one attribute per option."""

    @api_boundary
    def update(self, name: str, val: Any) -> None:
        """Set option `name` for the whole process.

        Raises AttributeError for an unknown name, ValueError for a value that the option does not accept, RuntimeError
        where it is too late for a change.
        """
        flag = options.get(name)
        if flag is None:
            raise AttributeError(f"Unrecognized config option: {name}{_near(name)}")
        value = flag.validate(val)
        if flag.guard is not None and value != flag.get_global():
            flag.guard(value)
        set_globally(flag, value)

    @api_boundary
    def read(self, name: str) -> Any:
        """The value of option `name`. Raises AttributeError for an unknown name."""
        if name not in options:
            raise AttributeError(f"Unrecognized config option: {name}{_near(name)}")
        return value_of(name)

    _read = read

    @property
    def values(self) -> dict[str, Any]:
        """All options by name, as the current thread sees them."""
        return values()

    @property
    def x64_enabled(self) -> bool:
        return x64_enabled()

    @property
    def jax_enable_x64(self) -> bool:
        return x64_enabled()

    epoch = staticmethod(epoch)

    @api_boundary
    def __getattr__(self, name: str) -> Any:
        if name in options:
            return value_of(name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{_near(name)}")

    @api_boundary
    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"config.{name} cannot be assigned; use config.update({name!r}, {value!r})")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *options]

    def config_with_absl(self) -> None:
        """Define one absl command-line flag per option, so that `--jax_enable_x64` and its like work; those that are
        given are taken over when `absl.app.run` has parsed the command line. ModuleNotFoundError without absl.
        """
        from absl import app, flags

        for flag in options.values():
            if flag.name in flags.FLAGS or flag.internal:
                continue
            value = flag.get_global()
            if flag.choices:
                flags.DEFINE_enum(flag.name, value, flag.choices, flag.doc)
            else:
                define: dict[type, Any] = {
                    bool: flags.DEFINE_bool,
                    int: flags.DEFINE_integer,
                    float: flags.DEFINE_float,
                }
                define.get(flag.kind, flags.DEFINE_string)(flag.name, value, flag.doc)
        app.call_after_init(lambda: self.complete_absl_config(flags))

    def parse_flags_with_absl(self) -> None:
        """Define the command-line flags, and take the options that `sys.argv` has (before a `--`) now; other flags are
        left to whoever parses them. ModuleNotFoundError without absl.
        """
        import itertools
        import sys

        from absl import flags

        self.config_with_absl()
        given = itertools.takewhile(lambda argument: argument != "--", sys.argv[1:])
        own = [a for a in given if a.startswith(("--jax", "-jax", "--nojax", "-nojax"))]
        flags.FLAGS([sys.argv[0] if sys.argv else "", *own], known_only=True)
        self.complete_absl_config(flags)

    def complete_absl_config(self, absl_flags: Any) -> None:
        """Take over the options that were given on the command line."""
        for name in options:
            if name in absl_flags.FLAGS and absl_flags.FLAGS[name].present:
                self.update(name, absl_flags.FLAGS[name].value)

    def __repr__(self) -> str:
        changed = {n: v for n, v in self.values.items() if v != options[n].default}
        return f"<config, changed: {changed}>"


def _near(name: str) -> str:
    import difflib

    found = difflib.get_close_matches(name, options, n=1)
    return f" (did you mean {found[0]}?)" if found else ""


config = Config()
if switches.disable_jit:
    set_globally(disable_jit_flag, True)
if switches.log_compiles:
    set_globally(log_compiles, True)


def __getattr__(name: str) -> Any:
    if name.endswith("_state"):  # what few libraries define options by
        from . import states

        if name in states.__all__:
            return getattr(states, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
