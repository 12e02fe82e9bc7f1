"""Types and primitives of one's own above arrays (core/high.py says how they are traced)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback.core import AbstractValue, ShapedArray, Zero, high, is_undefined_primal
from pullback.core.explain import explain_all as _explain_all
from pullback.core.high import HiType, MutableHiType, cur_qdd, register_hitype
from pullback.experimental._own_primitives import VJPHiPrimitive
from pullback.interpreters.ad import instantiate_zeros
from pullback.jax_names.src.effects import control_flow_allowed_effects
from pullback.jax_names.src.state.types import AbstractRef
from pullback.util.absent import absent_names


class HiPrimitive:
    """Base of primitives on objects of such types: `to_lojax(*args, **params)` says what they are in terms of arrays,
    which is what runs, is differentiated and is mapped.
    """

    multiple_results = False

    def __init__(self, name: str) -> None:
        self.name = name

    def to_lojax(self, *args: Any, **params: Any) -> Any:
        """The result, from other primitives."""
        raise NotImplementedError(f"primitive {self.name!r} has no to_lojax")

    def bind(self, *args: Any, **params: Any) -> Any:
        """The result of the primitive."""
        given = [high.actual(x) for x in args]
        high.note_use(given)
        out = self.to_lojax(*given, **params)
        high.note_made(out)
        return out


class AvalQDD:
    """A type and its state."""

    def __init__(self, aval: Any, qdd: Any) -> None:
        self.aval, self.qdd = aval, qdd


class AvalMutableQDD:
    """A type and its state, which changes."""

    def __init__(self, aval: Any, mutable_qdd: Any) -> None:
        self.aval, self.mutable_qdd = aval, mutable_qdd


class aval_property:
    """Marks what tracers of a type have as a property."""

    def __init__(self, fget: Callable[[Any], Any]) -> None:
        self.fget = fget


class aval_method:
    """Marks what tracers of a type have as a method."""

    def __init__(self, fun: Callable[..., Any]) -> None:
        self.fun = fun


__getattr__ = absent_names(__name__)

__all__ = [
    "AbstractRef", "AbstractValue", "AvalMutableQDD", "AvalQDD", "HiPrimitive", "HiType", "MutableHiType",
    "ShapedArray", "VJPHiPrimitive", "Zero", "aval_method", "aval_property", "control_flow_allowed_effects",
    "cur_qdd", "instantiate_zeros", "is_undefined_primal", "register_hitype",
]  # fmt: skip

_explain_all(globals())
