"""What the values of options may be: each function gives the value as it is kept, or raises ValueError."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .errors import class_shown

_TRUE = {"1", "true", "yes", "on", "y", "t"}
_FALSE = {"0", "false", "no", "off", "n", "f", ""}


def parse_bool(text: str) -> bool:
    low = text.strip().lower()
    if low in _TRUE:
        return True
    if low in _FALSE:
        return False
    raise ValueError(f"expected one of 1, 0, true, false, yes, no, on, off, got {text!r}")


def boolean(name: str) -> Callable[[Any], Any]:
    def check(value: Any) -> bool:
        if isinstance(value, str):
            raise ValueError(f"{name}: expected a bool, got {value!r} of type {class_shown(type(value))}")
        return bool(value)

    return check


def of_type(name: str, type_: type, optional: bool) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        if value is None and optional:
            return None
        if type_ is float and isinstance(value, int) and not isinstance(value, bool):
            return float(value)
        if not isinstance(value, type_) or (type_ is int and isinstance(value, bool)):
            none = "None or " if optional else ""
            raise ValueError(
                f"{name}: new {type_.__name__} config value must be {none}of type {type_.__name__}, "
                f"got {value} of type {class_shown(type(value))}"
            )
        return value

    return check


def one_of(name: str, values: tuple[str, ...], optional: bool) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        if value is None and optional:
            return None
        text = getattr(value, "value", value)
        if not isinstance(text, str) or text not in values:
            none = "None or " if optional else ""
            raise ValueError(
                f"{name}: expected {none}one of {list(values)}; got {value} of type {class_shown(type(value))}"
            )
        return text

    return check


def anything(value: Any) -> Any:
    return value


def device(value: Any) -> Any:
    """A Device object, a platform name or None."""
    known = value in ("cpu", "gpu", "cuda", "rocm", "tpu") if isinstance(value, str) else hasattr(value, "platform")
    if value is not None and not known:
        raise ValueError(
            "jax_default_device: expected a Device, such as jax.devices('cpu')[0], or a platform's name, such as "
            f"'cpu'; got {value!r}"
        )
    if isinstance(value, str) and value != "cpu":
        raise RuntimeError(f"Unknown backend {value}. Available backends are ['cpu']: jax_default_device is {value!r}")
    return value


def mesh(value: Any) -> Any:
    if value is not None and not hasattr(value, "axis_names"):
        raise ValueError(f"jax_mesh_in_force: expected a mesh or None, set by `set_mesh`; got {value!r}")
    return value
