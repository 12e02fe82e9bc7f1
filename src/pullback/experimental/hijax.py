"""Types and primitives of one's own above arrays (core/high.py says how they are traced)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pullback.core import AbstractValue, ShapedArray, Zero, high, is_undefined_primal, typeof
from pullback.core.explain import explain_all as _explain_all
from pullback.core.high import HiType, MutableHiType, cur_qdd, register_hitype
from pullback.core.interpreter import current_interpreter, eval_interpreter
from pullback.experimental._own_primitives import VJPHiPrimitive
from pullback.interpreters.ad import instantiate_zeros
from pullback.jax_names.src.effects import control_flow_allowed_effects
from pullback.jax_names.src.state.types import AbstractRef
from pullback.util.absent import absent_names


class HiPrimitive:
    """Base of primitives on objects of such types: `to_lojax(*args, **params)` says what they are in terms of arrays,
    which is what runs and is mapped. So it is differentiated, too, unless there is a rule: `jvp(primals, tangents,
    **params) -> (out, out_dot)`, with `abstract_eval(*avals, **params) -> (type of the result, effects)`.
    """

    multiple_results = False

    def __init__(self, name: str) -> None:
        self.name = name

    def to_lojax(self, *args: Any, **params: Any) -> Any:
        """The result, from other primitives."""
        raise NotImplementedError(f"primitive {self.name!r} has no to_lojax")

    def abstract_eval(self, *avals: Any, **params: Any) -> Any:
        """(type of the result, effects)."""
        raise NotImplementedError(f"primitive {self.name!r} has no abstract_eval, which its jvp rule needs")

    def jvp(self, primals: Any, tangents: Any, **params: Any) -> Any:
        """(result, its tangent)."""
        raise NotImplementedError(f"primitive {self.name!r} has no jvp")

    def bind(self, *args: Any, **params: Any) -> Any:
        """The result of the primitive."""
        if current_interpreter() is not eval_interpreter() and self._says_derivatives(args):
            return _Differentiated(self, args, params)(*args)
        given = [high.actual(x) for x in args]
        high.note_use(given)
        out = self.to_lojax(*given, **params)
        high.note_made(out)
        return out

    def _says_derivatives(self, args: Sequence[Any]) -> bool:
        """Whether derivatives go by the rule alone: where there is one, and of objects that say what their tangents
        are, as those of their arrays are not theirs."""
        types = [high.type_of(x) for x in args if high.is_high(x)]
        if any(kind.has_qdd for kind in types):
            return False
        if type(self).jvp is not HiPrimitive.jvp:
            return True
        return type(self).abstract_eval is not HiPrimitive.abstract_eval and any(map(high.is_opaque, types))


class _Differentiated(VJPHiPrimitive):
    """A call of a primitive that is differentiated by its jvp rule."""

    def __init__(self, primitive: HiPrimitive, args: Sequence[Any], given: dict[str, Any]) -> None:
        self.primitive, self.given, self.params = primitive, given, {}
        self.in_avals = tuple(high.type_of(x) if high.is_high(x) else typeof(x) for x in args)
        self.out_aval, _ = primitive.abstract_eval(*self.in_avals, **given)
        super().__init__()

    def __repr__(self) -> str:
        return self.primitive.name

    def expand(self, *args: Any) -> Any:
        return self.primitive.to_lojax(*args, **self.given)

    def jvp(self, primals: Any, tangents: Any) -> Any:
        return self.primitive.jvp(primals, tangents, **self.given)


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
