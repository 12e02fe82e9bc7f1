"""Pages of listeners to what programs record."""

EVENT = "    event: name, such as '/jax/core/compile/backend_compile_duration'."
METADATA = "    kwargs: metadata: strings or integers by name."
CALLBACK = "    callback: function that registration was given."


def _record(numbers: str, callback: str, call: str, shown: str, register: str, unregister: str) -> str:
    return f"""
Arguments:
{EVENT}
{numbers}{METADATA}
Returns:
    None.
Raises:
    What a listener raises.

>>> def listen({callback}, **metadata): print({callback}, metadata)
>>> jax.monitoring.{register}(listen)
>>> jax.monitoring.{call}
{shown}
>>> jax.monitoring.{unregister}(listen)
"""


def _register(signature: str, register: str, unregister: str) -> str:
    return f"""
Arguments:
    callback: function called as callback({signature}, **metadata).
Returns:
    None.
Raises:
    Nothing; what is no function fails when something is recorded.

>>> seen = []
>>> def listen({signature}, **metadata): seen.append(event)
>>> jax.monitoring.{register}(listen)
>>> jax.monitoring.{unregister}(listen)
"""


def _unregister(register: str, unregister: str) -> str:
    return f"""
Arguments:
{CALLBACK}
Returns:
    None.
Raises:
    ValueError for what is not registered.

>>> def listen(*values, **metadata): pass
>>> jax.monitoring.{register}(listen)
>>> jax.monitoring.{unregister}(listen)
"""


PLAIN = ("register_event_listener", "unregister_event_listener")
SECONDS = ("register_event_duration_secs_listener", "unregister_event_duration_listener")
SPAN = ("register_event_time_span_listener", "unregister_event_time_span_listener")
NUMBER = ("register_scalar_listener", "unregister_scalar_listener")

PAGES = {
    "record_event": _record("", "event", 'record_event("/app/start", host=1)', "/app/start {'host': 1}", *PLAIN),
    "record_event_duration_secs": _record(
        "    duration: float, in seconds.\n", "event, duration", 'record_event_duration_secs("/app/load", 0.5)',
        "/app/load 0.5 {}", *SECONDS,
    ),
    "record_event_time_span": _record(
        "    start_time, end_time: floats, in seconds.\n", "event, start_time, end_time",
        'record_event_time_span("/app/load", 1.0, 2.0)', "/app/load 1.0 2.0 {}", *SPAN,
    ),
    "record_scalar": _record(
        "    value: float or integer.\n", "event, value", 'record_scalar("/app/loss", 0.25)', "/app/loss 0.25 {}",
        *NUMBER,
    ),
    "register_event_listener": _register("event", *PLAIN),
    "register_event_duration_secs_listener": _register("event, duration", *SECONDS),
    "register_event_time_span_listener": _register("event, start_time, end_time", *SPAN),
    "register_scalar_listener": _register("event, value", *NUMBER),
    "unregister_event_listener": _unregister(*PLAIN),
    "unregister_event_duration_listener": _unregister(*SECONDS),
    "unregister_event_time_span_listener": _unregister(*SPAN),
    "unregister_scalar_listener": _unregister(*NUMBER),
    "clear_event_listeners": """
Returns:
    None.

>>> jax.monitoring.clear_event_listeners()
""",
}  # fmt: skip
