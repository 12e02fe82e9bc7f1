"""Types and primitives of one's own above arrays: the names with which libraries define them.

What is defined raises NotImplementedError when it is used; that libraries are imported needs no more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback.core import AbstractValue, ShapedArray, Zero, is_undefined_primal
from pullback.interpreters.ad import instantiate_zeros
from pullback.jax_names.src.state.types import AbstractRef
from pullback.util.absent import absent_names


def _absent(what: str) -> NotImplementedError:
    return NotImplementedError(f"{what}: types above arrays (hijax) are not supported")


class HiType(AbstractValue):
    """Base of types above arrays."""


class MutableHiType(HiType):
    """Base of such types with a state."""


class HiPrimitive:
    """Base of primitives on such types; `bind` raises NotImplementedError."""

    multiple_results = False

    def __init__(self, name: str) -> None:
        self.name = name

    def bind(self, *args: Any, **params: Any) -> Any:
        """Not supported."""
        raise _absent(f"primitive {self.name!r}")


class VJPHiPrimitive:
    """Base of primitives with their own derivatives; calling one raises NotImplementedError."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise _absent(f"primitive {type(self).__name__!r}")


class AvalQDD:
    """A type and its state; not supported."""

    def __init__(self, *args: Any) -> None:
        raise _absent(type(self).__name__)


class AvalMutableQDD(AvalQDD):
    """A type and its state, which changes; not supported."""


class aval_property:
    """Marks what tracers of a type have as a property."""

    def __init__(self, fget: Callable[[Any], Any]) -> None:
        self.fget = fget


class aval_method:
    """Marks what tracers of a type have as a method."""

    def __init__(self, fun: Callable[..., Any]) -> None:
        self.fun = fun


class _EffectTypes(set):
    """Classes of effects."""

    def add_type(self, effect_type: type) -> None:
        """Add a class."""
        self.add(effect_type)


control_flow_allowed_effects = _EffectTypes()


def register_hitype(val_cls: type, typeof_fn: Callable[[Any], Any]) -> None:
    """Say which type the objects of a class have. They are used by primitives alone, which are not supported."""


def cur_qdd(x: Any) -> Any:
    """The state of a value; not supported."""
    raise _absent("cur_qdd")


__getattr__ = absent_names(__name__)

__all__ = [
    "AbstractRef", "AbstractValue", "AvalMutableQDD", "AvalQDD", "HiPrimitive", "HiType", "MutableHiType",
    "ShapedArray", "VJPHiPrimitive", "Zero", "aval_method", "aval_property", "control_flow_allowed_effects",
    "cur_qdd", "instantiate_zeros", "is_undefined_primal", "register_hitype",
]  # fmt: skip
