"""Random generators, and the cipher behind them."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.core.explain import explain_all as _explain_all
from pullback.lax.generators.threefry import threefry_bits_p, threefry_fold_in_p, threefry_split_p
from pullback.manual import add_pages as _add_pages
from pullback.manual.extend.random import PAGES as _PAGES
from pullback.random._generators import PRNGImpl, PRNGSpec, implementations, rbg, threefry, unsafe_rbg
from pullback.util.absent import absent_names

threefry_prng_impl = PRNGSpec(threefry)
rbg_prng_impl = PRNGSpec(rbg)
unsafe_rbg_prng_impl = PRNGSpec(unsafe_rbg)


def define_prng_impl(
    *, key_shape: tuple[int, ...], seed: Any, split: Any, random_bits: Any, fold_in: Any, name: str = "<unnamed>",
    tag: str = "?",
) -> PRNGSpec:  # fmt: skip
    """A generator of one's own, to be passed as `impl`.

    seed(scalar integer) -> u32[*key_shape]; split(key, shape) -> u32[*shape, *key_shape];
    random_bits(key, width, shape) -> unsigned integers; fold_in(key, u32[]) -> key.

    Raises ValueError unless keys have one dimension.
    """
    import pullback.numpy as jnp
    from pullback.random._key_arrays import KEY_DTYPES, KeyDType

    if len(key_shape) != 1:
        raise ValueError(f"define_prng_impl: keys must have one dimension, got key_shape={key_shape}")
    impl = PRNGImpl(name, tag, tuple(key_shape), lambda given: seed(jnp.asarray(given)), split, fold_in, random_bits)
    KEY_DTYPES[impl] = KeyDType(impl)
    return PRNGSpec(impl)


def threefry_2x32(keypair: Any, count: Any) -> Any:
    """The words of the counters `count`, u32 of any shape, paired first half with second half, under a key of two
    words."""
    import pullback.numpy as jnp

    flat = jnp.ravel(count)
    if flat.dtype != np.uint32:
        raise TypeError(f"threefry_2x32 requires uint32 arguments, got {flat.dtype}")
    n = flat.shape[0]
    half = (n + 1) // 2
    padded = jnp.concatenate([flat, jnp.zeros(2 * half - n, np.uint32)])
    key = jnp.stack(list(keypair)) if isinstance(keypair, (tuple, list)) else keypair
    words = _blocks(key, padded[:half], padded[half:])
    return jnp.concatenate(words)[:n].reshape(jnp.shape(count))


def _blocks(key: Any, x0: Any, x1: Any) -> tuple[Any, Any]:
    """The cipher in terms of array operations: 20 rounds, a part of the key added after every four."""
    from pullback.lax.generators.threefry import _PARITY, _ROTATIONS

    k0, k1 = key[0], key[1]
    keys = (k0, k1, k0 ^ k1 ^ np.uint32(_PARITY))
    y0, y1 = x0 + k0, x1 + k1
    for group in range(5):
        for rotation in _ROTATIONS[group % 2]:
            y0 = y0 + y1
            y1 = ((y1 << np.uint32(rotation)) | (y1 >> np.uint32(32 - rotation))) ^ y0
        y0 = y0 + keys[(group + 1) % 3]
        y1 = y1 + keys[(group + 2) % 3] + np.uint32(group + 1)
    return y0, y1


_explain_all(globals())
_add_pages(globals(), _PAGES)
__getattr__ = absent_names(__name__)

__all__ = [
    "define_prng_impl", "implementations", "rbg_prng_impl", "threefry_2x32", "threefry_bits_p", "threefry_fold_in_p",
    "threefry_prng_impl", "threefry_split_p", "unsafe_rbg_prng_impl",
]  # fmt: skip
