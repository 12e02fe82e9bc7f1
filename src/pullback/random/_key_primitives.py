"""What programs show of typed keys: random_seed, random_split, random_fold_in and random_bits.

Each is a generator's function of the words of one key, for every key of an array; programs are written out to that when
they are flattened. `of_keys(impl)` is a generator whose functions take typed keys and are these primitives.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from pullback.api import vmap
from pullback.core import ZERO, NoRule, Primitive, ShapedArray, not_mapped, trace
from pullback.core.hooks import hooks
from pullback.core.lowering import InlineFunction
from pullback.random._generators import PRNGImpl
from pullback.random._key_arrays import KEY_DTYPES, unwrap, wrap

_NO_REFERENCE = NoRule("it is what its generator makes of words")


def _mapped(function: Callable[..., Any], ndim: int) -> Callable[..., Any]:
    """A function of one key's words for each of an array of keys."""
    return functools.reduce(lambda f, _: vmap(f), range(ndim), function)


def _batch_front(args: Any, dims: Any) -> list[Any]:
    """The operands with the mapped axis in front."""
    size = next(x.shape[d] for x, d in zip(args, dims) if d is not not_mapped)
    return [hooks.broadcast(x, size, 0) if d is not_mapped else hooks.moveaxis(x, d, 0) for x, d in zip(args, dims)]


def _primitive(
    name: str, types: Callable[..., Any], run: Callable[..., Any], written_out: Callable[..., Any], doc: str
) -> Primitive:
    """The record of a function `run` of keys, in terms of functions of words; `written_out` traces it, and is what the
    module has under its name: programs with it are found on the disk by that.
    """
    primitive = Primitive(
        name,
        abstract_eval=types,
        reference=_NO_REFERENCE,
        evaluate=run,
        jvp=ZERO,
        transpose=NoRule("random words are integers, which have no cotangents"),
        batch=lambda args, dims, **params: (primitive.bind(*_batch_front(args, dims), **params), 0),
        lower=InlineFunction(trace=written_out),
        traits={"extended", "inside"},
        doc=doc,
    )
    return primitive


def _seed(seed: Any, *, impl: PRNGImpl) -> Any:
    return wrap(impl, _mapped(impl.seed, seed.ndim)(seed))


def _split(key: Any, *, shape: tuple[int, ...]) -> Any:
    impl = key.dtype._impl
    return wrap(impl, _mapped(lambda words: impl.split(words, shape), key.ndim)(unwrap(key)))


def _fold_in(key: Any, data: Any) -> Any:
    impl = key.dtype._impl
    return wrap(impl, _mapped(impl.fold_in, key.ndim)(unwrap(key), data))


def _bits(key: Any, *, bit_width: int, shape: tuple[int, ...]) -> Any:
    impl = key.dtype._impl
    return _mapped(lambda words: impl.random_bits(words, bit_width, shape), key.ndim)(unwrap(key))


def _traced(run: Callable[..., Any], avals: Any, params: Any) -> Any:
    return trace(lambda *args: [run(*args, **params)], avals)


def _seed_written_out(avals: Any, params: Any) -> Any:
    return _traced(_seed, avals, params)


def _split_written_out(avals: Any, params: Any) -> Any:
    return _traced(_split, avals, params)


def _fold_in_written_out(avals: Any, params: Any) -> Any:
    return _traced(_fold_in, avals, params)


def _bits_written_out(avals: Any, params: Any) -> Any:
    return _traced(_bits, avals, params)


random_seed_p = _primitive(
    "random_seed",
    lambda seed, *, impl: ShapedArray(seed.shape, KEY_DTYPES[impl]),
    _seed,
    _seed_written_out,
    "Keys of seeds: integers[*K] -> key<...>[*K].",
)
random_split_p = _primitive(
    "random_split",
    lambda key, *, shape: ShapedArray((*key.shape, *shape), key.dtype),
    _split,
    _split_written_out,
    "New keys from each key: key<...>[*K] -> key<...>[*K, *shape].",
)
random_fold_in_p = _primitive(
    "random_fold_in",
    lambda key, data: ShapedArray(key.shape, key.dtype),
    _fold_in,
    _fold_in_written_out,
    "A new key from each key and a word: key<...>[*K], u32[*K] -> key<...>[*K].",
)
random_bits_p = _primitive(
    "random_bits",
    lambda key, *, bit_width, shape: ShapedArray((*key.shape, *shape), np.dtype(f"uint{bit_width}")),
    _bits,
    _bits_written_out,
    "Random words: key<...>[*K] -> u8/u16/u32/u64[*K, *shape], each key's by itself.",
)


@functools.cache
def of_keys(impl: PRNGImpl) -> PRNGImpl:
    """The generator on typed keys in place of words."""
    return replace(
        impl,
        seed=lambda seed: random_seed_p.bind(seed, impl=impl),
        split=lambda key, shape: random_split_p.bind(key, shape=tuple(shape)),
        fold_in=random_fold_in_p.bind,
        random_bits=lambda key, width, shape: random_bits_p.bind(key, bit_width=width, shape=tuple(shape)),
    )
