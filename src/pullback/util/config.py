"""JAX's `jax_*` options; our own `PULLBACK_*` environment variables (`switches`) are in switches.py and re-exported
here.

A *flag* has one global value and, per thread, a stack of overrides made by context managers. `config.update(name,
value)` sets the global value; `with enable_x64(True):` overrides it for the current thread.

`config.epoch()` is one object for everything that changes what a trace means. It is computed when something
changes and merely read afterwards, and equal settings give the *same* object, so a cache may compare it with `is`.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from . import other_options
from .locks import Lock
from .option_checks import anything, boolean, device, mesh, of_type, one_of, parse_bool
from .switches import switches

# --------------------------------------------------------------------------------------------------- state and epochs


class Epoch:
    """Settings that change what a trace means; equal settings are the same object, so that keys hash it at once."""

    __slots__ = ("settings",)

    def __init__(self, settings: tuple[Any, ...]) -> None:
        self.settings = settings

    def __repr__(self) -> str:
        return f"Epoch{self.settings}"


class _ThreadState(threading.local):
    """What one thread sees: its overrides, and the resolved values as of global version `version`."""

    def __init__(self) -> None:
        self.overrides: dict[str, Any] = {}
        self.version = -1
        self.values: dict[str, Any] = {}
        self.x64 = False
        self.epoch = Epoch(())


_lock = Lock()
_flags: dict[str, Flag] = {}
_global: dict[str, Any] = {}
_traced: list[str] = []  # names of the flags whose value changes what a trace means
_version = 0  # bumped at each global change, so that other threads resolve again
_thread = _ThreadState()
_epochs: dict[tuple[Any, ...], Epoch] = {}  # by settings
_listeners: list[Callable[[], None]] = []


def _resolve() -> _ThreadState:
    """Recompute the current thread's view after a change."""
    state = _thread
    with _lock:
        state.version = _version
        state.values = {**_global, **state.overrides} if state.overrides else dict(_global)
        state.x64 = state.values["jax_enable_x64"]
        settings = tuple(state.values[name] for name in _traced)
        state.epoch = _epochs.get(settings) or _epochs.setdefault(settings, Epoch(settings))
    for listener in _listeners:
        listener()
    return state


def epoch() -> Epoch:
    """One object for all settings that change what a trace means; the same object while they are equal."""
    state = _thread
    if state.version != _version:
        state = _resolve()
    return state.epoch


def x64_enabled() -> bool:
    """Whether 64-bit types are kept (the flag `jax_enable_x64`), as seen by the current thread."""
    state = _thread
    if state.version != _version:
        state = _resolve()
    return state.x64


def value_of(name: str) -> Any:
    """The value of flag `name` (with its `jax_` prefix) as seen by the current thread."""
    state = _thread
    if state.version != _version:
        state = _resolve()
    return state.values[name]


def context_tokens() -> tuple[tuple[Any, ...], tuple[Any, ...] | None]:
    """(process-wide, this thread's) parts of what a trace depends on; the second is None where the thread overrides
    nothing."""
    overrides = {name: value for name, value in _thread.overrides.items() if name in _traced}
    return tuple(_global[name] for name in _traced), tuple(sorted(overrides.items(), key=str)) or None


def add_listener(listener: Callable[[], None]) -> None:
    """Have `listener()` called, in the thread concerned, each time that thread's settings are resolved anew."""
    _listeners.append(listener)


class _Override:
    """The context manager that a flag returns when called: sets the value for this thread, restores it on exit.

    Works as a decorator too.
    """

    __slots__ = ("_flag", "_saved", "_value")

    def __init__(self, flag: Flag, value: Any) -> None:
        self._flag = flag
        self._value = flag.validate(value)
        self._saved: list[dict[str, Any]] = []

    def __enter__(self) -> None:
        names, overrides = self._flag.names, _thread.overrides
        self._saved.append({name: overrides[name] for name in names if name in overrides})
        _thread.overrides = {**overrides, **dict.fromkeys(names, self._value)}
        _resolve()

    def __exit__(self, *exc: object) -> None:
        old, names = self._saved.pop(), self._flag.names
        _thread.overrides = {k: v for k, v in _thread.overrides.items() if k not in names} | old
        _resolve()

    def __call__(self, fun: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(fun)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with _Override(self._flag, self._value):
                return fun(*args, **kwargs)

        return wrapper


_REQUIRED = object()


@dataclass(eq=False)
class Flag:
    """One option: `flag.value` reads it, `flag(value)` is a context manager that overrides it for this thread."""

    name: str
    default: Any
    doc: str
    check: Callable[[Any], Any] = anything
    traced: bool = False
    call_default: Any = _REQUIRED  # the value of `flag()`; booleans: True
    guard: Callable[[Any], None] | None = None  # asked before a change; refuses by raising
    parse: Callable[[str], Any] = str
    kind: type = str  # of values on a command line
    choices: tuple[str, ...] = ()
    internal: bool = False  # set by functions, not by users
    parts: tuple[str, ...] = ()  # names of options that take each value of this one, too

    @property
    def names(self) -> tuple[str, ...]:
        """The options that are set with this one."""
        return (self.name, *self.parts)

    @property
    def value(self) -> Any:
        return value_of(self.name)

    def get_global(self) -> Any:
        return _global[self.name]

    def validate(self, value: Any) -> Any:
        return self.check(value)

    def __call__(self, new_val: Any = _REQUIRED) -> _Override:
        if new_val is _REQUIRED:
            new_val = self.call_default
            if new_val is _REQUIRED:
                raise TypeError(f"{self.name.removeprefix('jax_')}: a value is required")
        return _Override(self, new_val)

    def __bool__(self) -> bool:
        raise TypeError(
            f"bool() of the option {self.name} is ambiguous; read its value with "
            f"jax.config.{self.name}, or set it with `with {self.name.removeprefix('jax_')}(value):`"
        )

    def __repr__(self) -> str:
        return f"<option {self.name}={self.value!r}>"


def _from_environment(flag: Flag) -> Any:
    text = os.environ.get(flag.name.upper())
    if text is None:
        return flag.default
    try:
        return flag.validate(flag.parse(text))
    except ValueError as error:
        raise ValueError(f"environment variable {flag.name.upper()}: {error}") from None


def _define(flag: Flag) -> Flag:
    _flags[flag.name] = flag
    _global[flag.name] = _from_environment(flag)
    if flag.traced:
        _traced.append(flag.name)
    return flag


def _bool_flag(name: str, default: bool, doc: str, traced: bool = False) -> Flag:
    return _define(Flag(name, default, doc, boolean(name), traced, call_default=True, parse=parse_bool, kind=bool))


def _enum_flag(name: str, default: str | None, values: tuple[str, ...], doc: str, traced: bool = False) -> Flag:
    return _define(Flag(name, default, doc, one_of(name, values, default is None), traced, choices=values))


def _typed_flag(name: str, type_: type, default: Any, doc: str, optional: bool = False, traced: bool = False) -> Flag:
    return _define(Flag(name, default, doc, of_type(name, type_, optional), traced, parse=type_, kind=type_))


# ------------------------------------------------------------------------------------------------- the options of JAX

enable_x64 = _bool_flag(
    "jax_enable_x64", False, "Keep 64-bit types; when off, they become the 32-bit ones.", traced=True
)
numpy_rank_promotion = _enum_flag(
    "jax_numpy_rank_promotion",
    "allow",
    ("allow", "warn", "raise"),
    "What to do when operands of different numbers of dimensions are broadcast together.",
    traced=True,
)
numpy_dtype_promotion = _enum_flag(
    "jax_numpy_dtype_promotion",
    "standard",
    ("standard", "strict"),
    "`standard`: the full promotion lattice; `strict`: only Python scalars adapt to an array's type.",
    traced=True,
)
disable_jit_flag = _bool_flag(
    "jax_disable_jit", False, "Run jitted functions and control flow as plain Python, for debugging.", traced=True
)
debug_nans = _bool_flag("jax_debug_nans", False, "Raise FloatingPointError when an operation makes a NaN.", traced=True)
debug_key_reuse = _bool_flag(
    "jax_debug_key_reuse", False, "Raise KeyReuseError when a random key is consumed twice.", traced=True
)
debug_infs = _bool_flag(
    "jax_debug_infs", False, "Raise FloatingPointError when an operation makes an infinity.", traced=True
)
check_tracer_leaks = _bool_flag(
    "jax_check_tracer_leaks", False, "Find tracers that outlive their trace, and name them.", traced=True
)


def disable_jit(disable: bool = True) -> _Override:
    """A context manager in which jitted functions and control flow run as plain Python."""
    return disable_jit_flag(disable)


def checking_leaks() -> _Override:
    """A context manager in which tracers that outlive their trace are found."""
    return check_tracer_leaks(True)


enable_checks = _bool_flag(
    "jax_enable_checks", False, "Check the types of every jaxpr after each transformation.", traced=True
)
log_compiles = _bool_flag("jax_log_compiles", False, "Log each trace and compilation, with its time.")
explain_cache_misses = _bool_flag("jax_explain_cache_misses", False, "Log why a jitted function was traced again.")
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
default_matmul_precision = _enum_flag(
    "jax_default_matmul_precision",
    None,
    MATMUL_PRECISIONS,
    "Precision of dot and convolution when the call gives none.",
    traced=True,
)
PRNG_IMPLS = ("threefry2x32", "rbg", "unsafe_rbg")
default_prng_impl = _enum_flag(
    "jax_default_prng_impl",
    "threefry2x32",
    PRNG_IMPLS,
    "Generator of keys made without an explicit `impl`.",
    traced=True,
)
threefry_partitionable = _bool_flag(
    "jax_threefry_partitionable",
    True,
    "Number the counters of threefry per element (True) or in one sequence (False, the "
    "older way); the two give different numbers.",
    traced=True,
)


def _mesh_flag(name: str, doc: str) -> Flag:
    return _define(Flag(name, None, doc, check=mesh, traced=True, parse=mesh, internal=True))


mesh_in_force = _mesh_flag("jax_mesh_in_force", "The mesh that `set_mesh` says.")
entered_mesh = _mesh_flag("jax_entered_mesh", "The mesh whose `with` statement we are in.")
named_calls = _define(
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
enable_custom_prng = _bool_flag("jax_enable_custom_prng", False, "Have `PRNGKey` return typed key arrays.", traced=True)
legacy_prng_key = _enum_flag(
    "jax_legacy_prng_key", "allow", ("allow", "warn", "error"), "What to do when a raw uint32 key is used.", traced=True
)
high_dynamic_range_gumbel = _bool_flag(
    "jax_high_dynamic_range_gumbel", False, "Draw Gumbel variables with more bits in the upper tail.", traced=True
)
random_seed_offset = _typed_flag("jax_random_seed_offset", int, 0, "Added to each integer seed.", traced=True)
softmax_custom_jvp = _bool_flag(
    "jax_softmax_custom_jvp", False, "Give `nn.softmax` its own derivative rule.", traced=True
)
allow_f16_reductions = _bool_flag("jax_allow_f16_reductions", True, "Allow sums of float16 in float16.", traced=True)
use_direct_linearize = _bool_flag(
    "jax_use_direct_linearize", True, "Kept for compatibility; linearization is direct here."
)
default_device = _define(
    Flag("jax_default_device", None, "Where new arrays live: a Device, a platform name or None.", device, traced=True)
)
no_tracing = _bool_flag("jax_no_tracing", False, "Refuse to trace anything new.", traced=True)
no_execution = _bool_flag("jax_no_execution", False, "Refuse to run compiled programs.", traced=True)
thread_guard = _bool_flag("jax_thread_guard", False, "Refuse to start programs from a second thread.")
remove_size_one_mesh_axis_from_type = _bool_flag(
    "jax_remove_size_one_mesh_axis_from_type", False, "Leave mesh axes of size one out of types.", traced=True
)
auto_pcast = _bool_flag(
    "jax_auto_pcast", True, "Insert casts between varying and invariant values by itself.", traced=True
)
custom_vjp3 = _bool_flag("jax_custom_vjp3", False, "Kept for compatibility.")
disable_bwd_checks = _bool_flag(
    "jax_disable_bwd_checks", False, "Skip the type checks of custom_vjp's backward results.", traced=True
)
mutable_array_checks = _bool_flag(
    "jax_mutable_array_checks", True, "Check that references are used safely.", traced=True
)
_GUARD = ("allow", "log", "disallow", "log_explicit", "disallow_explicit")
transfer_guard_host_to_device = _enum_flag(
    "jax_transfer_guard_host_to_device", None, _GUARD, "What to do about implicit transfers from host to device."
)
transfer_guard_device_to_device = _enum_flag(
    "jax_transfer_guard_device_to_device", None, _GUARD, "The same, device to device."
)
transfer_guard_device_to_host = _enum_flag(
    "jax_transfer_guard_device_to_host", None, _GUARD, "The same, device to host: nothing, as arrays lie there."
)
transfer_guard = _enum_flag("jax_transfer_guard", None, _GUARD, "What to do about implicit transfers in any direction.")
transfer_guard.parts = (
    transfer_guard_host_to_device.name,
    transfer_guard_device_to_device.name,
    transfer_guard_device_to_host.name,
)
array_garbage_collection_guard = _enum_flag(
    "jax_array_garbage_collection_guard",
    None,
    ("allow", "log", "fatal"),
    "What to do when an array is freed by the garbage collector.",
)
traceback_filtering = _enum_flag(
    "jax_traceback_filtering",
    "auto",
    ("off", "tracebackhide", "remove_frames", "auto", "quiet_remove_frames"),
    "How frames of the library are hidden from tracebacks.",
)
logging_level = _enum_flag(
    "jax_logging_level",
    "NOTSET",
    ("NOTSET", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"),
    "Level of the loggers of the library.",
)
enable_compilation_cache = _bool_flag(
    "jax_enable_compilation_cache", True, "Keep compiled programs on disk, given a folder."
)
compilation_cache_dir = _typed_flag(
    "jax_compilation_cache_dir", str, None, "Folder of compiled programs.", optional=True
)
compilation_cache_max_size = _typed_flag(
    "jax_compilation_cache_max_size", int, -1, "Its size limit in bytes; -1: none."
)
persistent_cache_min_compile_time_secs = _typed_flag(
    "jax_persistent_cache_min_compile_time_secs", float, 1.0, "Shorter compilations are not kept on disk."
)
persistent_cache_min_entry_size_bytes = _typed_flag(
    "jax_persistent_cache_min_entry_size_bytes", int, 0, "Smaller programs are not kept on disk."
)
raise_persistent_cache_errors = _bool_flag(
    "jax_raise_persistent_cache_errors", False, "Raise, not warn, on cache damage."
)
platforms = _typed_flag("jax_platforms", str, None, "Comma-separated platforms in order of preference.", optional=True)
platform_name = _typed_flag("jax_platform_name", str, "", "Older name for the preferred platform.")
num_cpu_devices = _typed_flag(
    "jax_num_cpu_devices",
    int,
    -1,
    "Number of simulated CPU devices; -1: from XLA_FLAGS or 1; fixed once devices are asked for.",
)
pprint_use_color = _bool_flag("jax_pprint_use_color", True, "Colour in printed jaxprs, on terminals.")
include_full_tracebacks_in_locations = _bool_flag(
    "jax_include_full_tracebacks_in_locations", True, "Kept for compatibility."
)
traceback_in_locations_limit = _typed_flag("jax_traceback_in_locations_limit", int, 10, "Kept for compatibility.")
use_shardy_partitioner = _bool_flag("jax_use_shardy_partitioner", True, "Kept for compatibility.")
use_simplified_jaxpr_constants = _bool_flag("jax_use_simplified_jaxpr_constants", False, "Kept for compatibility.")
captured_constants_warn_bytes = _typed_flag(
    "jax_captured_constants_warn_bytes",
    int,
    2_000_000_000,
    "Warn when a trace captures constants larger than this; -1: never.",
)
captured_constants_report_frames = _typed_flag(
    "jax_captured_constants_report_frames", int, 0, "Frames to show in that warning."
)
cpu_collectives_implementation = _typed_flag(
    "jax_cpu_collectives_implementation", str, "gloo", "Kept for compatibility.", optional=True
)
exec_time_optimization_effort = _typed_flag("jax_exec_time_optimization_effort", float, 0.0, "Kept for compatibility.")
memory_fitting_effort = _typed_flag("jax_memory_fitting_effort", float, 0.0, "Kept for compatibility.")
optimization_level = _typed_flag("jax_optimization_level", str, "UNKNOWN", "Kept for compatibility.")
debug_log_modules = _typed_flag("jax_debug_log_modules", str, "", "Comma-separated modules to log at level DEBUG.")
check_static_indices = _bool_flag(
    "jax_check_static_indices", False, "Raise IndexError for static indices out of bounds.", traced=True
)
_NAN_BEHAVIOUR = ("ignore", "raise")
error_checking_behavior_nan = _enum_flag(
    "jax_error_checking_behavior_nan", "ignore", _NAN_BEHAVIOUR, "jnp error checking.", traced=True
)
error_checking_behavior_divide = _enum_flag(
    "jax_error_checking_behavior_divide", "ignore", _NAN_BEHAVIOUR, "jnp error checking.", traced=True
)
error_checking_behavior_oob = _enum_flag(
    "jax_error_checking_behavior_oob", "ignore", _NAN_BEHAVIOUR, "jnp error checking.", traced=True
)
explicit_x64_dtypes = _enum_flag(
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
                _bool_flag(name, default, doc)
            elif isinstance(default, tuple):
                _typed_flag(name, default[0], None, doc, optional=True)
            else:
                _typed_flag(name, type(default), default, doc)
    for name, (default, reason) in other_options.REFUSED.items():
        doc = f"Not to be changed: {reason}."
        made = _bool_flag(name, default, doc) if isinstance(default, bool) else _typed_flag(name, str, default, doc)
        made.check = other_options.refusing(name, default, reason)


_define_other_options()
jax2tf_associative_scan_reductions = _flags["jax2tf_associative_scan_reductions"]


class Config:
    """JAX's `config` object: `update(name, value)`, `read(name)`, and one attribute per option."""

    def update(self, name: str, value: Any) -> None:
        """Set option `name` for the whole process.

        Raises AttributeError for an unknown name, ValueError for a value that the option does not accept, RuntimeError
        where it is too late for a change.
        """
        global _version
        flag = _flags.get(name)
        if flag is None:
            raise AttributeError(f"Unrecognized config option: {name}{_near(name)}")
        value = flag.validate(value)
        if flag.guard is not None and value != _global[name]:
            flag.guard(value)
        with _lock:
            _global.update(dict.fromkeys(flag.names, value))
            _version += 1
        _resolve()

    def read(self, name: str) -> Any:
        """The value of option `name`. Raises AttributeError for an unknown name."""
        if name not in _flags:
            raise AttributeError(f"Unrecognized config option: {name}{_near(name)}")
        return value_of(name)

    _read = read

    @property
    def values(self) -> dict[str, Any]:
        """All options by name, as the current thread sees them."""
        epoch()
        return dict(_thread.values)

    @property
    def x64_enabled(self) -> bool:
        return x64_enabled()

    @property
    def jax_enable_x64(self) -> bool:
        return x64_enabled()

    epoch = staticmethod(epoch)

    def __getattr__(self, name: str) -> Any:
        if name in _flags:
            return value_of(name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"config.{name} cannot be assigned; use config.update({name!r}, {value!r})")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *_flags]

    def config_with_absl(self) -> None:
        """Define one absl command-line flag per option, so that `--jax_enable_x64` and its like work; those that are
        given are taken over when `absl.app.run` has parsed the command line. ModuleNotFoundError without absl.
        """
        from absl import app, flags

        for flag in _flags.values():
            if flag.name in flags.FLAGS or flag.internal:
                continue
            value = _global[flag.name]
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
        for name in _flags:
            if name in absl_flags.FLAGS and absl_flags.FLAGS[name].present:
                self.update(name, absl_flags.FLAGS[name].value)

    def __repr__(self) -> str:
        changed = {n: v for n, v in self.values.items() if v != _flags[n].default}
        return f"<config, changed: {changed}>"


def _near(name: str) -> str:
    import difflib

    found = difflib.get_close_matches(name, _flags, n=1)
    return f" (did you mean {found[0]}?)" if found else ""


config = Config()
if switches.disable_jit:
    _global["jax_disable_jit"] = True
if switches.log_compiles:
    _global["jax_log_compiles"] = True
