"""Random generators: functions on the words of keys, by which keys are made, split and turned into random bits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pullback import lax
from pullback.lax.generators.threefry import threefry_bits_p, threefry_fold_in_p, threefry_split_p
from pullback.numpy import asarray
from pullback.random import _counters, _rbg
from pullback.util import config, dtypes


@dataclass(frozen=True, eq=False)
class PRNGImpl:
    """A generator on words of keys: seed(scalar integer) -> key, split(key, shape), fold_in(key, u32[]) -> key,
    random_bits(key, width, shape) -> u8/u16/u32/u64."""

    name: str
    tag: str
    key_shape: tuple[int, ...]
    seed: Callable[..., Any]
    split: Callable[..., Any]
    fold_in: Callable[..., Any]
    random_bits: Callable[..., Any]

    def __reduce__(self) -> Any:
        return generator, (self.name,)

    def __copy__(self) -> PRNGImpl:
        return self

    def __deepcopy__(self, memo: Any) -> PRNGImpl:
        return self

    def __repr__(self) -> str:
        return f"<random generator {self.name}, keys of u32[{self.key_shape[0]}]>"

    def __str__(self) -> str:
        return self.tag  # as jaxprs show it, in types of keys and in parameters


def _words_of(seed: Any) -> Any:
    """u32[2]: the upper and lower 32 bits of a scalar integer. Those of 32 bits have 0 above, also negative ones."""
    wide = dtypes.itemsize_bits(seed.dtype) > 32
    if isinstance(seed, np.ndarray):
        value = int(seed)
        return asarray(np.array([value >> 32 & 0xFFFFFFFF if wide else 0, value & 0xFFFFFFFF], np.uint32))
    low = lax.convert_element_type(seed, np.uint32)
    if wide:
        high = lax.convert_element_type(lax.shift_right_logical(seed, lax.full_like(seed, 32)), np.uint32)
    else:
        high = lax.full_like(low, 0)
    return lax.concatenate([lax.reshape(high, (1,)), lax.reshape(low, (1,))], 0)


def _threefry_split(key: Any, shape: tuple[int, ...]) -> Any:
    return threefry_split_p.bind(key, shape=shape, partitionable=config.value_of("jax_threefry_partitionable"))


def _threefry_bits(key: Any, width: int, shape: tuple[int, ...]) -> Any:
    return threefry_bits_p.bind(
        key, shape=shape, width=width, partitionable=config.value_of("jax_threefry_partitionable")
    )


def _fold_in(key: Any, data: Any) -> Any:
    return threefry_fold_in_p.bind(key, data)


threefry = PRNGImpl(
    "threefry2x32",
    "fry",
    (2,),
    seed=_words_of,
    split=_threefry_split,
    fold_in=_fold_in,
    random_bits=_threefry_bits,
)
rbg = PRNGImpl(
    "rbg",
    "rbg",
    (4,),
    seed=lambda seed: _rbg.seed(_words_of(seed)),
    split=lambda key, shape: _rbg.on_halves(key, lambda half: _threefry_split(half, shape)),
    fold_in=lambda key, data: _rbg.on_halves(key, lambda half: _fold_in(half, data)),
    random_bits=_rbg.random_bits,
)
unsafe_rbg = PRNGImpl(
    "unsafe_rbg",
    "urbg",
    (4,),
    seed=lambda seed: _rbg.seed(_words_of(seed)),
    split=_rbg.unsafe_split,
    fold_in=_rbg.unsafe_fold_in,
    random_bits=_rbg.random_bits,
)


def _of_counters(name: str, tag: str, block: _counters.Block, n_key: int, n_counter: int, seed: Any) -> PRNGImpl:
    key_of_words = seed(block, n_key, n_counter)
    return PRNGImpl(
        name,
        tag,
        (n_key,),
        seed=lambda seed: key_of_words(_words_of(seed)),
        split=_counters.split(block, n_key, n_counter),
        fold_in=_counters.fold_in(block, n_key, n_counter),
        random_bits=_counters.random_bits(block, n_counter),
    )


philox_2x32 = _of_counters("philox2x32", "phx2", _counters.philox_2x32, 1, 2, _counters.seed_of_counter)
philox_4x32 = _of_counters("philox4x32", "phx4", _counters.philox_4x32, 2, 4, _counters.seed_of_counter)
threefry_4x32 = _of_counters("threefry4x32", "fry4", _counters.threefry_4x32, 4, 4, _counters.seed_of_key)

implementations: dict[str, PRNGImpl] = {
    i.name: i for i in (philox_2x32, philox_4x32, threefry, rbg, unsafe_rbg, threefry_4x32)
}


def generator(name: str) -> PRNGImpl:
    """The generator of that name. Raises ValueError for an unknown one."""
    if name in implementations:
        return implementations[name]
    names = ", ".join(f'"{n}"' for n in implementations)
    raise ValueError(f'no generator is called "{name}"; there are {names}')


class PRNGSpec:
    """Names a generator where a string does not do."""

    def __init__(self, impl: PRNGImpl) -> None:
        self._impl = impl

    def __repr__(self) -> str:
        return f"PRNGSpec({self._impl.name!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PRNGSpec) and self._impl is other._impl

    def __hash__(self) -> int:
        return hash(self._impl.name)
