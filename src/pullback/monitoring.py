"""Listeners to events, durations, time spans and numbers that programs record (`jax.monitoring`).

The package records how long tracing and compiling took: `/jax/core/compile/jaxpr_trace_duration` for each function that
is traced, `/jax/core/compile/jaxpr_to_mlir_module_duration` and `/jax/core/compile/backend_compile_duration` for each
program that is made or read from disk; `/pullback/jit/program_wanted` is an event for each function and types of
arguments for which `jit` wants a program, be it one that is there for another function.
"""

from pullback.manual import add_pages as _add_pages
from pullback.manual.monitoring import PAGES as _PAGES
from pullback.util.monitoring import (
    clear_event_listeners,
    record_event,
    record_event_duration_secs,
    record_event_time_span,
    record_scalar,
    register_event_duration_secs_listener,
    register_event_listener,
    register_event_time_span_listener,
    register_scalar_listener,
    unregister_event_duration_listener,
    unregister_event_listener,
    unregister_event_time_span_listener,
    unregister_scalar_listener,
)

__all__ = [
    "record_event",
    "record_event_duration_secs",
    "record_event_time_span",
    "record_scalar",
    "register_event_listener",
    "register_event_duration_secs_listener",
    "register_event_time_span_listener",
    "register_scalar_listener",
    "unregister_event_listener",
    "unregister_event_duration_listener",
    "unregister_event_time_span_listener",
    "unregister_scalar_listener",
    "clear_event_listeners",
]

_add_pages(globals(), _PAGES)
