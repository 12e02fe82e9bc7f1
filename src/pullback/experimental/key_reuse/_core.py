"""What a function does with the keys that it is given, asked without calling it: the names that JAX has in this module.

A signature says which arguments are consumed (`Sink`), which results are new keys (`Source`), and which are keys that
were given (`Forward`). The rules are those of the option `jax_debug_key_reuse` (random/_reuse.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.api import make_jaxpr
from pullback.core import Primitive
from pullback.errors import KeyReuseError
from pullback.random import _reuse
from pullback.random._key_arrays import primitive_of_keys
from pullback.util import config, dtypes
from pullback.util.record import NamedTuple


class _Part:
    """A key array by its number among arguments or results, and which of its keys are meant."""

    def __init__(self, idx: int, mask: Any = True) -> None:
        mask = np.asarray(mask)
        self.idx = idx
        self.mask: Any = bool(mask.flat[0]) if mask.size and (mask == mask.flat[0]).all() else mask

    def _key(self) -> Any:
        mask = self.mask
        return type(self), self.idx, mask if isinstance(mask, bool) else (mask.shape, mask.tobytes())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Part) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.idx}{'' if self.mask is True else f', {self.mask}'})"


class Sink(_Part):
    """An argument that is consumed."""


class Source(_Part):
    """A result that is a key which nobody has consumed."""


class Forward(NamedTuple):
    """A result that is an argument."""

    in_idx: int
    out_idx: int

    def __repr__(self) -> str:
        return f"Forward({self.in_idx}, {self.out_idx})"


class KeyReuseSignature:
    """What a function does with keys; equal if it is the same, in whatever order it is said."""

    def __init__(self, *args: Sink | Source | Forward) -> None:
        self.sinks = frozenset(a for a in args if isinstance(a, Sink))
        self.sources = frozenset(a for a in args if isinstance(a, Source))
        self.forwards = frozenset(a for a in args if isinstance(a, Forward))
        self._args = args

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KeyReuseSignature) and (self.sinks, self.sources, self.forwards) == (
            other.sinks,
            other.sources,
            other.forwards,
        )

    def __hash__(self) -> int:
        return hash((self.sinks, self.sources, self.forwards))

    def __repr__(self) -> str:
        return f"KeyReuseSignature{self._args}"


consume_p = primitive_of_keys("consume", "The same keys, which count as consumed.", register=False)
assert_consumed_value_p = primitive_of_keys(
    "assert_consumed_value", "The same keys, which must be consumed where `value` says so.", register=False
)


def consume(key: Any) -> Any:
    """The key, which counts as consumed."""
    return consume_p.bind(key)


def assert_consumed(key: Any, value: Any = True) -> None:
    """AssertionError where keys are watched, unless `key` is consumed where `value` says so, and nowhere else."""
    assert_consumed_value_p.bind(key, value=_reuse.Mask(value))


def assert_unconsumed(key: Any) -> None:
    """AssertionError where keys are watched, if one of `key` is consumed."""
    assert_consumed(key, False)


def _watched(fun: Callable[..., Any], args: tuple[Any, ...]) -> tuple[list[Any], list[Any], set[int]]:
    """The numbers of the words of arguments and of results, and those that are consumed."""
    with config.debug_key_reuse(True):  # in which programs show the words of keys
        closed = make_jaxpr(lambda *xs: fun(*xs))(*args)
    consumed: set[int] = set()
    ins = [_reuse.fresh_ids(v.aval) if dtypes.is_extended(v.aval.dtype) else None for v in closed.jaxpr.invars]
    name = getattr(fun, "__name__", "function")
    outs = _reuse.run(closed, ins, consumed, name)
    keys = [dtypes.is_extended(v.aval.dtype) for v in closed.jaxpr.outvars]
    return ins, [x if is_key else None for x, is_key in zip(outs, keys, strict=True)], consumed


def check_key_reuse(fun: Callable[..., Any], /, *args: Any) -> None:
    """KeyReuseError if fun(*args) consumes a key twice."""
    _watched(fun, args)


def function_type_signature(fun: Callable[..., Any], *args: Any) -> KeyReuseSignature:
    """What fun does with its arguments and results that are keys; KeyReuseError if it consumes one twice."""
    ins, outs, consumed = _watched(fun, args)
    taken = set(consumed)
    forwards: list[Any] = []
    sources: list[Any] = []
    for k, ids in enumerate(outs):
        if ids is None:
            continue
        given = [n for n, own in enumerate(ins) if own is not None and set(own.flat) == set(ids.flat)]
        if given:
            forwards.append(Forward(given[0], k))
        elif consumed.isdisjoint(ids.flat):
            sources.append(Source(k))
            taken.update(ids.ravel().tolist())  # of arguments a part of which is a result
    sinks = []
    for k, ids in enumerate(ins):
        if ids is not None and not taken.isdisjoint(ids.flat):
            sinks.append(Sink(k, np.isin(ids, list(taken)).any(axis=-1)))
    return KeyReuseSignature(*sinks, *sources, *forwards)


def key_reuse_signature_from_primitive(prim: Primitive, *args: Any, **params: Any) -> KeyReuseSignature:
    """That of one primitive."""
    return function_type_signature(lambda *xs: prim.bind(*xs, **params), *args)


__all__ = [
    "Forward",
    "KeyReuseError",
    "KeyReuseSignature",
    "Sink",
    "Source",
    "assert_consumed",
    "assert_consumed_value_p",
    "assert_unconsumed",
    "check_key_reuse",
    "consume",
    "consume_p",
    "function_type_signature",
    "key_reuse_signature_from_primitive",
]
