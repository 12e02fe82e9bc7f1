"""Stands for jax._src.effects: the class of effects, and sets in which libraries enter theirs (oryx, probabilistic
languages like it). Here control flow, checkpoint and compilation take equations with any effect, entered or not.
"""

from collections.abc import Iterable
from typing import Any

from pullback.lax.control.callback import Effect

Effects = set[Effect]
no_effects: frozenset[Effect] = frozenset()


class EffectTypeSet:
    """Classes of effects."""

    def __init__(self) -> None:
        self._types: set[type] = set()

    def add_type(self, effect_type: type) -> None:
        """Add a class."""
        self._types.add(effect_type)

    def contains(self, eff: Any) -> bool:
        """Whether an effect is of one of the classes."""
        return isinstance(eff, tuple(self._types))

    def filter_in(self, effects: Iterable[Any]) -> list[Any]:
        """The effects that are."""
        return [eff for eff in effects if self.contains(eff)]

    def filter_not_in(self, effects: Iterable[Any]) -> list[Any]:
        """The effects that are not."""
        return [eff for eff in effects if not self.contains(eff)]

    def __contains__(self, effect_type: type) -> bool:
        return effect_type in self._types

    def __repr__(self) -> str:
        return f"EffectTypeSet({self._types})"


control_flow_allowed_effects = EffectTypeSet()
custom_derivatives_allowed_effects = EffectTypeSet()
lowerable_effects = EffectTypeSet()
ordered_effects = EffectTypeSet()
partial_eval_kept_effects = EffectTypeSet()
remat_allowed_effects = EffectTypeSet()
shardable_ordered_effects = EffectTypeSet()

__all__ = [
    "Effect", "EffectTypeSet", "Effects", "control_flow_allowed_effects", "custom_derivatives_allowed_effects",
    "lowerable_effects", "no_effects", "ordered_effects", "partial_eval_kept_effects", "remat_allowed_effects",
    "shardable_ordered_effects",
]  # fmt: skip
