"""Random keys: how they are made from seeds, opened by functions that take them, split and folded.

A *raw* key is u32[2] (threefry) or u32[4] (rbg); a *typed* key array has the element type `key<fry>`, in memory the
same words. Functions take both; their first step is `open_key`, which gives the generator and the words. In programs
keys stay typed, and raw ones are made so: the generator is then one on typed keys (`_key_primitives.py`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback.api.named_calls import are_shown
from pullback.core import Tracer, hooks, typeof
from pullback.core.dimensions import index as size_of
from pullback.core.explain import shown, type_shown
from pullback.random import _reuse
from pullback.random._generators import PRNGImpl, PRNGSpec, implementations
from pullback.random._key_arrays import (
    KeyDType,
    is_typed,
    random_clone_p,
    random_unwrap_p,
    resolve_impl,
    unwrap,
    wrap,
)
from pullback.random._key_primitives import of_keys
from pullback.sharding import NamedSharding
from pullback.util import config, dtypes
from pullback.util.errors import JAXTypeError
from pullback.util.tracebacks import api_boundary
from pullback.util.warning import warn


def _check_words(name: str, argument: str, words: Any, impl: PRNGImpl) -> None:
    """TypeError unless these are the words of keys of the generator."""
    missing = not all(hasattr(words, a) for a in ("ndim", "shape", "dtype"))
    if missing:
        wrong = "is no array"
    elif words.ndim < 1:
        wrong = "has no dimension"
    elif tuple(words.shape[-1:]) != impl.key_shape:
        wrong = f"has shape {tuple(words.shape)}, where keys of {impl.name} end in {impl.key_shape}"
    elif words.dtype != np.uint32:
        wrong = f"has dtype {words.dtype}, not uint32"
    else:
        return
    raise TypeError(
        f"{name}: argument '{argument}' {wrong}: invalid PRNG key data; give a key, as jax.random.key(seed) makes it, "
        f"or its uint32 words, got {shown(words)}"
    )


_OF_WORDS = frozenset({"key_data", "key_impl"})  # what asks for the words, in programs too
_NOT_CONSUMING = frozenset({"key_data", "key_impl", "clone", "fold_in"})


def _opened(name: str, key: Any) -> Any:
    """The words of a typed key for function `name`, which consumes it unless it only looks at it."""
    if not _reuse.is_on():
        return random_unwrap_p.bind(key) if are_shown() else unwrap(key)
    if name in _NOT_CONSUMING:
        return random_clone_p.bind(unwrap(key))
    with _reuse.opening(name):
        return random_unwrap_p.bind(key)  # of eager keys, too, so that traces show which they use


def open_key(name: str, key: Any, *, single: bool = True) -> tuple[PRNGImpl, Any, bool]:
    """(generator, words, typed) of the `key` argument of function `name`; of a traced key the words are the typed key.

    Raises TypeError for what is no key, and ValueError for an array of several keys (`single`).
    """
    is_shown = isinstance(key, Tracer) and name not in _OF_WORDS and not _reuse.is_on()
    if is_typed(key):
        is_shown = is_shown or (are_shown() and name not in _OF_WORDS and not _reuse.is_on())
        impl, typed = key.dtype._impl, True
        impl, words = (of_keys(impl), key) if is_shown else (impl, _opened(name, key))
    else:
        if isinstance(key, (list, tuple)):
            raise TypeError(
                f"{name}: unexpected PRNG key type "
                f"{type_shown(key)}; argument 'key' comes first, from jax.random.key(seed)"
            )
        impl, words, typed = resolve_impl(None), key, False
        _check_words(name, "key", key, impl)
        policy = config.value_of("jax_legacy_prng_key")
        if policy != "allow":
            text = (
                f"{name}: got a raw uint32 key; make typed keys with jax.random.key(seed), or set "
                "jax_legacy_prng_key to 'allow'"
            )
            if policy == "error":
                raise ValueError(text)
            warn(text, UserWarning)
        if is_shown:
            impl, words = of_keys(impl), wrap(impl, key)
    if single and words.ndim != (0 if is_typed(words) else 1):
        shape = tuple(key.shape)
        raise ValueError(
            f"{name}: argument 'key' must be one key, got an array of keys of shape {shape}; jax.vmap takes them "
            "one by one"
        )
    return impl, words, typed


def _close(impl: PRNGImpl, words: Any, typed: bool) -> Any:
    if is_typed(words):
        return words if typed else unwrap(words)
    return wrap(impl, words) if typed else words


def on_words(impl: PRNGImpl, words: Any) -> tuple[PRNGImpl, Any]:
    """The generator on words, and the words, of what `open_key` gives."""
    return (words.dtype._impl, unwrap(words)) if is_typed(words) else (impl, words)


def _of_seed(name: str, impl: PRNGImpl, seed: Any) -> Any:
    """The words of a seed, or the typed key of one that is traced."""
    seed = _checked_seed(name, seed)
    if are_shown():  # programs that are run have the words as constants
        seed = jnp.asarray(seed)
    return (of_keys(impl) if isinstance(seed, Tracer) and not _reuse.is_on() else impl).seed(seed)


def _checked_seed(name: str, seed: Any) -> Any:
    """A scalar integer seed of a canonical dtype, with the offset that is set: of NumPy where it is not traced."""
    if is_typed(seed):
        raise TypeError(f"{name}: argument 'seed' must be an integer, got a key")
    offset = config.value_of("jax_random_seed_offset")
    if isinstance(seed, int) and not isinstance(seed, bool):
        if not -(2**63) <= seed < 2**63:
            raise OverflowError(f"{name}: Python int {seed} too large for a seed; seeds are 64-bit integers")
        seed = np.int64(seed)
    if isinstance(seed, (bool, np.generic, np.ndarray)) and not np.ndim(seed):
        kind = np.asarray(seed).dtype
        if kind != np.bool_ and not dtypes.issubdtype(kind, np.integer):
            raise TypeError(f"{name}: argument 'seed' must be an integer, got {seed!r} of type {kind}")
        seed = np.asarray(seed).astype(dtypes.canonicalize_dtype(kind))
        return (seed + np.asarray(offset)).astype(seed.dtype) if offset else seed
    seed = jnp.asarray(seed)
    if seed.ndim:
        raise TypeError(
            f"{name}: argument 'seed' must be one integer, got an array of shape {tuple(seed.shape)}; jax.vmap makes a "
            "key of each"
        )
    if seed.dtype != bool and not dtypes.issubdtype(seed.dtype, np.integer):
        raise TypeError(f"{name}: argument 'seed' must be an integer, got {seed!r}")
    return seed + offset if offset else seed


def key(seed: Any, *, impl: Any = None, dtype: Any = None) -> Any:
    """A typed random key from an integer seed.

    `impl` names the generator ('threefry2x32', 'threefry4x32', 'rbg', 'unsafe_rbg', 'philox2x32', 'philox4x32'), or
    `dtype` gives its key type. Raises TypeError if `seed` is not a scalar integer, ValueError for an unknown generator.
    """
    if dtype is not None:
        if impl is not None:
            raise ValueError("key: give one of the arguments 'impl' and 'dtype', not both")
        if not isinstance(dtype, KeyDType):
            raise TypeError(f"key: argument 'dtype' must be a key type such as jax.random.key_dtype(), got {dtype}")
        impl = dtype
    found = resolve_impl(impl)
    return _close(found, _of_seed("key", found, seed), True)


def PRNGKey(seed: Any, *, impl: Any = None) -> Any:
    """A raw key, u32[n], from an integer seed; a typed one if `jax_enable_custom_prng` is set. As `key` otherwise."""
    found = resolve_impl(impl)
    return _close(found, _of_seed("PRNGKey", found, seed), config.value_of("jax_enable_custom_prng"))


def key_data(keys: Any) -> Any:
    """The words of a key array, u32[..., n]; raw keys are returned as they are, of NumPy as arrays."""
    _, words, typed = open_key("key_data", keys, single=False)
    if isinstance(words, np.ndarray):
        return jnp.asarray(words)
    place = getattr(words, "_device", None) if typed else None
    if isinstance(place, NamedSharding) and len(place.spec) < words.ndim:  # as JAX says it: the words lie together
        parts = (*place.spec.partitions, None)
        return hooks.device_put(words, place.update(spec=place.spec.update(partitions=parts)))
    return words


def wrap_key_data(key_bits_array: Any, *, impl: Any = None, dtype: Any = None) -> Any:
    """Words u32[..., n] as a typed key array. Raises TypeError if shape or dtype do not fit the generator."""
    found = resolve_impl(dtype if dtype is not None else impl)
    _check_words("wrap_key_data", "key_bits_array", key_bits_array, found)
    if isinstance(key_bits_array, np.ndarray):
        key_bits_array = jnp.asarray(key_bits_array)
    return wrap(found, key_bits_array)


def key_impl(keys: Any) -> Any:
    """The name of the generator of a key array."""
    impl, _, _ = open_key("key_impl", keys, single=False)
    return impl.name if impl.name in implementations else PRNGSpec(impl)


def clone(key: Any) -> Any:
    """The same key, as one that the check of key reuse counts as new."""
    impl, words, typed = open_key("clone", key, single=False)
    return _close(impl, random_clone_p.bind(words), typed)


def _count(num: Any) -> tuple[int, ...]:
    try:
        shape = tuple(size_of(n) for n in num) if isinstance(num, (list, tuple)) else (size_of(num),)
    except TypeError as error:
        if isinstance(error, JAXTypeError):
            raise
        raise TypeError(
            f"split: argument 'num' must be an integer or a tuple of integers, got {num!r} of type {type(num).__name__}"
        ) from None
    if any(n < 0 for n in shape):
        raise ValueError(f"split: argument 'num' is {num}; numbers of keys must not be negative")
    return shape


@api_boundary
def split(key: Any, num: int | tuple[int, ...] = 2) -> Any:
    """New, independent keys from one key: `num` of them, or an array of the shape `num`."""
    impl, words, typed = open_key("split", key)
    return _close(impl, impl.split(words, _count(num)), typed)


@api_boundary
def fold_in(key: Any, data: Any) -> Any:
    """A new key from a key and an integer (taken modulo 2**32).

    Raises TypeError if `data` is not a scalar, OverflowError for a Python int outside uint32.
    """
    impl, words, typed = open_key("fold_in", key)
    if np.ndim(data):
        raise TypeError(
            f"fold_in: argument 'data' must be one integer, got an array of shape {tuple(np.shape(data))}; jax.vmap "
            "folds in each"
        )
    if isinstance(data, str) or np.iscomplexobj(data):
        raise TypeError(f"fold_in: argument 'data' must be an integer, got {shown(data)}")
    if isinstance(data, (int, float, np.generic)) and not isinstance(data, Tracer):
        with np.errstate(all="ignore"):
            data = np.asarray(data, np.uint32) if isinstance(data, int) else np.asarray(data).astype(np.uint32)
        data = jnp.asarray(data)
    elif typeof(data).dtype != np.uint32:
        data = jnp.asarray(data).astype(np.uint32)
    return _close(impl, impl.fold_in(words, data), typed)


def random_bits(impl: PRNGImpl, words: Any, width: int, shape: tuple[int, ...]) -> Any:
    """Unsigned words of `width` bits (8, 16, 32 or 64), of the given shape, from the words of one key."""
    return impl.random_bits(words, width, shape)
