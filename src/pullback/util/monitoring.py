"""Listeners to events, durations, time spans and numbers that programs record; recording calls them in order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_events: list[Callable[..., None]] = []
_durations: list[Callable[..., None]] = []
_spans: list[Callable[..., None]] = []
_scalars: list[Callable[..., None]] = []


def record_event(event: str, **kwargs: str | int) -> None:
    """Call each event listener with the event's name and the metadata."""
    for callback in tuple(_events):
        callback(event, **kwargs)


def record_event_duration_secs(event: str, duration: float, **kwargs: str | int) -> None:
    """Call each duration listener with the event's name, seconds and metadata."""
    for callback in tuple(_durations):
        callback(event, duration, **kwargs)


def record_event_time_span(event: str, start_time: float, end_time: float, **kwargs: str | int) -> None:
    """Call each time span listener with the event's name, its start and end in seconds, and the metadata."""
    for callback in tuple(_spans):
        callback(event, start_time, end_time, **kwargs)


def record_scalar(event: str, value: float | int, **kwargs: str | int) -> None:
    """Call each scalar listener with the event's name, the number and the metadata."""
    for callback in tuple(_scalars):
        callback(event, value, **kwargs)


def register_event_listener(callback: Callable[..., None]) -> None:
    """Have `callback(event, **metadata)` called for each event."""
    _events.append(callback)


def register_event_duration_secs_listener(callback: Callable[..., None]) -> None:
    """Have `callback(event, duration, **metadata)` called for each duration."""
    _durations.append(callback)


def register_event_time_span_listener(callback: Callable[..., None]) -> None:
    """Have `callback(event, start_time, end_time, **metadata)` called for each time span."""
    _spans.append(callback)


def register_scalar_listener(callback: Callable[..., None]) -> None:
    """Have `callback(event, value, **metadata)` called for each number."""
    _scalars.append(callback)


def unregister_event_listener(callback: Callable[..., None]) -> None:
    """Undo `register_event_listener`."""
    _remove(_events, callback)


def unregister_event_duration_listener(callback: Callable[..., None]) -> None:
    """Undo `register_event_duration_secs_listener`."""
    _remove(_durations, callback)


def unregister_event_time_span_listener(callback: Callable[..., None]) -> None:
    """Undo `register_event_time_span_listener`."""
    _remove(_spans, callback)


def unregister_scalar_listener(callback: Callable[..., None]) -> None:
    """Undo `register_scalar_listener`."""
    _remove(_scalars, callback)


def clear_event_listeners() -> None:
    """Forget all listeners."""
    for listeners in (_events, _durations, _spans, _scalars):
        listeners.clear()


def _remove(listeners: list[Any], callback: Any) -> None:
    if callback not in listeners:
        raise ValueError(f"{callback!r} is not registered as a listener")
    listeners.remove(callback)
