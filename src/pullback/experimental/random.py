"""Random numbers by a generator that remembers how often it was asked, as `numpy.random.default_rng`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback import random
from pullback.ref import new_ref
from pullback.tree_util import register_dataclass
from pullback.util.record import frozen_record


def _shape(size: Any, *arrays: Any) -> tuple[int, ...]:
    if size is None:
        return jnp.broadcast_shapes(*(jnp.shape(a) for a in arrays))
    return tuple(size) if isinstance(size, Sequence) else (size,)


@register_dataclass
@frozen_record
class StatefulPRNG:
    """A generator: a key, and how often it was asked as a `Ref`, which each draw counts up.

    >>> stateful_rng(42).uniform()
    Array(0.5302608, dtype=float32)
    """

    _base_key: Any
    _counter: Any

    def key(self, shape: int | Sequence[int] = ()) -> Any:
        """A new key, or an array of them."""
        key = random.fold_in(self._base_key, self._counter[...])
        self._counter[...] += 1
        shape = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
        return random.split(key, shape) if shape else key

    def split(self, num: int | Sequence[int]) -> StatefulPRNG:
        """`num` generators as one whose key is an array, for vmap."""
        keys = self.key(num)
        return StatefulPRNG(keys, new_ref(jnp.zeros(keys.shape, int)))

    def spawn(self, n_children: int) -> list[StatefulPRNG]:
        """A list of independent generators."""
        return [StatefulPRNG(key, new_ref(0)) for key in self.key((n_children,))]

    def random(self, size: Any = None, dtype: Any = float) -> Any:
        """Numbers from [0, 1)."""
        return random.uniform(self.key(), _shape(size), dtype)

    def uniform(self, low: Any = 0, high: Any = 1, size: Any = None, *, dtype: Any = float) -> Any:
        """Numbers from [low, high)."""
        return random.uniform(self.key(), _shape(size, low, high), dtype, low, high)

    def normal(self, loc: Any = 0, scale: Any = 1, size: Any = None, *, dtype: Any = float) -> Any:
        """Numbers of a normal distribution."""
        return loc + scale * random.normal(self.key(), _shape(size, loc, scale), dtype)

    def integers(self, low: Any, high: Any = None, size: Any = None, *, dtype: Any = int) -> Any:
        """Integers from [low, high), or from [0, low) if that is all."""
        low, high = (0, low) if high is None else (low, high)
        return random.randint(self.key(), _shape(size, low, high), low, high, dtype)


def stateful_rng(seed: Any = None, *, impl: Any = None) -> StatefulPRNG:
    """A generator from an integer seed, or from the system's entropy; `impl` names the generator of its keys.

    Raises TypeError for a seed that is no integer.
    """
    if seed is None:
        seed = np.random.SeedSequence().generate_state(1, np.uint32)[0]
    return StatefulPRNG(random.key(seed, impl=impl), new_ref(0))


__all__ = ["StatefulPRNG", "stateful_rng"]
