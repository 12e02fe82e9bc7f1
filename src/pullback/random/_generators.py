"""Random generators: functions on the words of keys, by which keys are made, split and turned into random bits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pullback.lax.generators.threefry import threefry_bits_p, threefry_fold_in_p, threefry_split_p
from pullback.random import _rbg
from pullback.util import config


@dataclass(frozen=True, eq=False)
class PRNGImpl:
    """A generator on words of keys: seed(u32[2] words) -> key, split(key, shape), fold_in(key, u32[]) -> key,
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
    seed=lambda words: words,
    split=_threefry_split,
    fold_in=_fold_in,
    random_bits=_threefry_bits,
)
rbg = PRNGImpl(
    "rbg",
    "rbg",
    (4,),
    seed=_rbg.seed,
    split=lambda key, shape: _rbg.on_halves(key, lambda half: _threefry_split(half, shape)),
    fold_in=lambda key, data: _rbg.on_halves(key, lambda half: _fold_in(half, data)),
    random_bits=_rbg.random_bits,
)
unsafe_rbg = PRNGImpl(
    "unsafe_rbg",
    "urbg",
    (4,),
    seed=_rbg.seed,
    split=_rbg.unsafe_split,
    fold_in=_rbg.unsafe_fold_in,
    random_bits=_rbg.random_bits,
)

implementations: dict[str, PRNGImpl] = {i.name: i for i in (threefry, rbg, unsafe_rbg)}


def generator(name: str) -> PRNGImpl:
    """The generator of that name. Raises ValueError for an unknown one."""
    if name in implementations:
        return implementations[name]
    names = ", ".join(f'"{n}"' for n in implementations)
    raise ValueError(f'unrecognized PRNG implementation "{name}". Did you mean one of: {names}?')


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
