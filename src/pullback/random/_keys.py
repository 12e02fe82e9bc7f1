"""Random keys: the generators, typed key arrays and raw uint32 keys, and what is done with keys alone.

A *raw* key is u32[2] (threefry) or u32[4] (rbg); a *typed* key array has the element type `key<fry>`, in memory the
same words. Functions take both; their first step is `open_key`, which gives the generator and the words.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback import lax
from pullback.core import ZERO, NoRule, Primitive, ShapedArray, Tracer, add_array_type, extended, typeof
from pullback.core.dimensions import index as size_of
from pullback.core.explain import shown
from pullback.core.lowering import Pointwise
from pullback.lax.generators.threefry import threefry_bits_p, threefry_fold_in_p, threefry_split_p
from pullback.random import _rbg, _reuse
from pullback.sharding import PartitionSpec
from pullback.util import config, dtypes
from pullback.util.errors import JAXTypeError
from pullback.util.warning import warn

# --------------------------------------------------------------------------------------------------------- generators


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
        return resolve_impl, (self.name,)

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


class KeyDType(dtypes.ExtendedDType):
    """The element type of key arrays of one generator, such as `key<fry>`."""

    type = dtypes.prng_key
    base = np.dtype(np.uint32)

    def __init__(self, impl: PRNGImpl) -> None:
        self._impl = impl
        self.name = f"key<{impl.tag}>"
        self.base_shape = impl.key_shape

    def wrap(self, words: Any) -> PRNGKeyArray:
        """The key array of these words."""
        return PRNGKeyArray(self._impl, words)

    def __reduce__(self) -> Any:
        return key_dtype, (self._impl.name,)


_KEY_DTYPES = {i: KeyDType(i) for i in implementations.values()}


def resolve_impl(spec: Any) -> PRNGImpl:
    """The generator of a name, a key type, or None (the default one). Raises ValueError for an unknown name."""
    if spec is None:
        spec = config.value_of("jax_default_prng_impl")
    if isinstance(spec, PRNGImpl):
        return spec
    if isinstance(spec, KeyDType):
        return spec._impl
    if isinstance(spec, PRNGSpec):
        return spec._impl
    if isinstance(spec, str):
        if spec in implementations:
            return implementations[spec]
        names = ", ".join(f'"{n}"' for n in implementations)
        raise ValueError(f'unrecognized PRNG implementation "{spec}". Did you mean one of: {names}?')
    raise TypeError(f"unrecognized type {type(spec)} for specifying PRNG implementation.")


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


# --------------------------------------------------------------------------------------------------------- key arrays


class PRNGKeyArray:
    """An array of random keys, of element type `key<...>`: shape, indexing and movement as of any array, no
    arithmetic."""

    __slots__ = ("__weakref__", "_base_array", "_ids", "_impl", "aval")
    __array_priority__ = 1000
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, impl: PRNGImpl, words: Any) -> None:
        self._impl = impl
        self._base_array = words
        self._ids: Any = None  # for the check of key reuse (_reuse.py)
        self.aval = ShapedArray(tuple(words.shape[:-1]), _KEY_DTYPES[impl])

    # Facts.
    shape = property(lambda self: self.aval.shape)
    dtype = property(lambda self: self.aval.dtype)
    ndim = property(lambda self: len(self.aval.shape))
    size = property(lambda self: self.aval.size)
    itemsize = property(lambda self: self.aval.dtype.itemsize)
    nbytes = property(lambda self: self.aval.size * self.aval.dtype.itemsize)
    weak_type = False
    is_fully_addressable = property(lambda self: self._base_array.is_fully_addressable)
    is_fully_replicated = property(lambda self: self._base_array.is_fully_replicated)
    sharding = property(lambda self: self._of_keys(self._base_array.sharding))
    committed = property(lambda self: self._base_array.committed)
    _committed = committed
    device = property(lambda self: self._base_array.device)

    def _of_keys(self, sharding: Any) -> Any:
        """Where keys lie whose words lie so: nothing is said of the words' last axis."""
        spec = getattr(sharding, "spec", ())
        return sharding if len(spec) <= self.ndim else sharding.update(spec=PartitionSpec(*spec[: self.ndim]))

    def devices(self) -> Any:
        """The devices that hold the keys."""
        return self._base_array.devices()

    def block_until_ready(self) -> PRNGKeyArray:
        """Wait until the words are computed; returns the array."""
        self._base_array.block_until_ready()
        return self

    def copy_to_host_async(self) -> None:
        self._base_array.copy_to_host_async()

    def unsafe_buffer_pointer(self) -> int:
        """The address of the words."""
        return self._base_array.unsafe_buffer_pointer()

    def addressable_data(self, index: int) -> PRNGKeyArray:
        """The keys on the device of that number."""
        return PRNGKeyArray(self._impl, self._base_array.addressable_data(index))

    @property
    def addressable_shards(self) -> list[Any]:
        """The parts on devices of this process; the index is that of the words, whose last axis is whole."""
        return [self._shard(shard) for shard in self._base_array.addressable_shards]

    @property
    def global_shards(self) -> list[Any]:
        """All parts; the data of those on other processes is None."""
        return [self._shard(shard) for shard in self._base_array.global_shards]

    def _shard(self, shard: Any) -> Any:
        return shard if shard.data is None else replace(shard, data=PRNGKeyArray(self._impl, shard.data))

    def is_deleted(self) -> bool:
        return self._base_array.is_deleted()

    def delete(self) -> None:
        self._base_array.delete()

    # What keys cannot do.
    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise TypeError(
            "JAX array with PRNGKey dtype cannot be converted to a NumPy array. Use jax.random.key_data(arr) to "
            "get its words."
        )

    def __bool__(self) -> bool:
        raise TypeError("key array cannot be converted to boolean.")

    def __copy__(self) -> PRNGKeyArray:
        return self

    def __deepcopy__(self, memo: Any) -> PRNGKeyArray:
        return self

    def __reduce__(self) -> Any:
        return _unpickle, (self._impl.name, np.asarray(self._base_array))

    def __eq__(self, other: object) -> Any:
        """Elementwise: whether all words are equal; keys of different generators cannot be compared (TypeError)."""
        if not is_typed(other):
            return NotImplemented
        if other.dtype is not self.dtype:  # type: ignore[attr-defined]
            raise TypeError(f"equal: cannot compare {self.dtype} with {other.dtype}")  # type: ignore[attr-defined]
        words = unwrap(self), unwrap(other)
        rank = max(words[0].ndim, words[1].ndim)  # keys promote their ranks, whatever is said of arrays
        one, two = (lax.expand_dims(x, range(rank - x.ndim)) for x in words)
        return jnp.all(one == two, axis=-1)

    def __ne__(self, other: object) -> Any:
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else ~equal

    # Sequence behaviour.
    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __iter__(self) -> Any:
        if not self.shape:
            raise TypeError("iteration over a 0-d array")
        rows = [PRNGKeyArray(self._impl, row) for row in self._base_array]
        if _reuse.is_on():
            for row, ids in zip(rows, _reuse.ids_of(self)):
                row._ids = ids
        return iter(rows)

    def __repr__(self) -> str:
        return f"Array({self.shape}, dtype={self.dtype.name}) overlaying:\n{self._base_array}"

    __str__ = __repr__


add_array_type(PRNGKeyArray)

# Movement is what it is for all arrays: the same methods, which bind primitives that core/extended.py runs on the
# words.
for _name in (
    "__getitem__", "T", "at", "copy", "flatten", "ravel", "repeat", "reshape", "squeeze",
    "swapaxes",
    "take", "transpose",
):  # fmt: skip
    setattr(PRNGKeyArray, _name, Tracer.__dict__[_name])


# JAX's names for what arrays of numbers do.
def _refuse(name: str) -> Callable[..., Any]:
    def refused(self: PRNGKeyArray, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"Cannot call abstract method {name}: random keys are no numbers")

    return refused


for _name in (
    "all", "any", "argmax", "argmin", "argpartition", "argsort", "astype", "byteswap", "choose", "clip", "compress",
    "conj", "conjugate", "cumprod", "cumsum", "diagonal", "dot", "item", "max", "mean", "min", "nonzero", "prod",
    "ptp", "round", "searchsorted", "sort", "std", "sum", "trace", "var", "view",
):  # fmt: skip
    setattr(PRNGKeyArray, _name, _refuse(_name))


def _unpickle(name: str, words: np.ndarray) -> PRNGKeyArray:
    return PRNGKeyArray(resolve_impl(name), jnp.asarray(words))


# --------------------------------------------------------------------------------- between typed keys and their words


def _unwrap_reference(key: Any) -> Any:
    if not isinstance(key, PRNGKeyArray):
        return key
    _reuse.opened(key)
    return key._base_array


def _same_dim(primitive_of: Callable[[], Primitive]) -> Callable[..., Any]:
    def batch(args: Any, dims: Any, **params: Any) -> Any:
        return primitive_of().bind(*args, **params), dims[0]

    return batch


_NO_COTANGENT = NoRule("keys have no cotangents")

random_unwrap_p = Primitive(
    "random_unwrap",
    reference=_unwrap_reference,
    evaluate=_unwrap_reference,
    jvp=ZERO,
    transpose=_NO_COTANGENT,
    abstract_eval=lambda key: ShapedArray(key.shape + key.dtype.base_shape, key.dtype.base),
    batch=_same_dim(lambda: random_unwrap_p),
    lower=Pointwise(lambda ctx, index: ctx.operand(0, index), is_view=True, cost=0),
    traits={"extended", "inside"},
    doc="The words of keys: key<...>[*K] -> u32[*K, n].",
)


def _wrap_aval(words: ShapedArray, *, impl: PRNGImpl) -> ShapedArray:
    return ShapedArray(words.shape[:-1], _KEY_DTYPES[impl])


random_wrap_p = Primitive(
    "random_wrap",
    abstract_eval=_wrap_aval,
    reference=lambda words, *, impl: PRNGKeyArray(impl, words),
    evaluate=lambda words, *, impl: PRNGKeyArray(impl, words),
    jvp=ZERO,
    transpose=_NO_COTANGENT,
    batch=_same_dim(lambda: random_wrap_p),
    lower=Pointwise(lambda ctx, index: ctx.operand(0, index), is_view=True, cost=0),
    traits={"extended", "inside"},
    doc="Words as keys: u32[*K, n] -> key<...>[*K].",
)


random_clone_p = Primitive(
    "random_clone",
    reference=lambda words: words,
    evaluate=lambda words: words,
    jvp=ZERO,
    transpose=_NO_COTANGENT,
    abstract_eval=lambda words: words,
    batch=_same_dim(lambda: random_clone_p),
    lower=Pointwise(lambda ctx, index: ctx.operand(0, index), is_view=True, cost=0),
    traits={"inside"},
    doc="The same words, which the check of key reuse counts as new.",
)


def unwrap(key: Any) -> Any:
    """The words of a typed key array or tracer."""
    return _unwrap_reference(key) if type(key) is PRNGKeyArray else random_unwrap_p.bind(key)


def wrap(impl: PRNGImpl, words: Any) -> Any:
    """Words, concrete or traced, as a typed key array."""
    return random_wrap_p.bind(words, impl=impl) if isinstance(words, Tracer) else PRNGKeyArray(impl, words)


extended.register(PRNGKeyArray, unwrap, lambda dtype, words: wrap(dtype._impl, words))
extended.reuse = _reuse


def is_typed(key: Any) -> bool:
    """Whether this is a typed key array, concrete or traced."""
    return type(key) is PRNGKeyArray or isinstance(getattr(key, "dtype", None), KeyDType)


def _check_words(name: str, argument: str, words: Any, impl: PRNGImpl) -> None:
    """TypeError unless these are the words of keys of the generator."""
    missing = not all(hasattr(words, a) for a in ("ndim", "shape", "dtype"))
    if missing:
        wrong = f"to have ndim, shape, and dtype attributes. Got {words}"
    elif words.ndim < 1:
        wrong = f".ndim >= 1; got ndim={words.ndim}"
    elif tuple(words.shape[-1:]) != impl.key_shape:
        wrong = f".shape to end with {impl.key_shape}; got shape={tuple(words.shape)} for impl={impl}"
    elif words.dtype != np.uint32:
        wrong = f".dtype = uint32; got dtype={words.dtype}"
    else:
        return
    raise TypeError(
        f"JAX encountered invalid PRNG key data: expected key_data{' ' * missing}{wrong}\n({name}: argument "
        f"'{argument}' must be a key, as jax.random.key(seed) makes it, or uint32 words, got {shown(words)})"
    )


_NOT_CONSUMING = frozenset({"key_data", "key_impl", "clone", "fold_in"})


def _opened(name: str, key: Any) -> Any:
    """The words of a typed key for function `name`, which consumes it unless it only looks at it."""
    if not _reuse.is_on():
        return unwrap(key)
    if name in _NOT_CONSUMING:
        return random_clone_p.bind(unwrap(key))
    with _reuse.opening(name):
        return random_unwrap_p.bind(key)  # of eager keys, too, so that traces show which they use


def open_key(name: str, key: Any, *, single: bool = True) -> tuple[PRNGImpl, Any, bool]:
    """(generator, words, typed) of the `key` argument of function `name`.

    Raises TypeError for what is no key, and ValueError for an array of several keys (`single`).
    """
    if is_typed(key):
        impl, words, typed = key.dtype._impl, _opened(name, key), True
    else:
        if isinstance(key, (list, tuple)):
            raise TypeError(
                f"{name}: unexpected PRNG key type {type(key)}; argument 'key' comes first, from jax.random.key(seed)"
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
    if single and words.ndim != 1:
        shape = tuple(key.shape)
        raise ValueError(
            f"{name} accepts a single key, but was given a key array of shape {shape} != (). Use jax.vmap for batching."
        )
    return impl, words, typed


def _close(impl: PRNGImpl, words: Any, typed: bool) -> Any:
    return wrap(impl, words) if typed else words


# ----------------------------------------------------------------------------------------------- the public functions


def _seed_words(name: str, seed: Any) -> Any:
    """u32[2]: the upper and lower 32 bits of a scalar integer seed. 32-bit seeds have 0 above, also negative ones."""
    if is_typed(seed):
        raise TypeError(f"{name} accepts a scalar seed, but was given a PRNG key.")
    offset = config.value_of("jax_random_seed_offset")
    if isinstance(seed, int) and not isinstance(seed, bool):
        if not -(2**63) <= seed < 2**63:
            raise OverflowError(f"{name}: Python int {seed} too large for a seed; seeds are 64-bit integers")
        seed = np.int64(seed)
    if isinstance(seed, (bool, np.generic, np.ndarray)) and not np.ndim(seed):
        kind = np.asarray(seed).dtype
        if kind != np.bool_ and not dtypes.issubdtype(kind, np.integer):
            raise TypeError(f"{name}: PRNG key seed must be an integer; got {seed!r} of type {kind}")
        wide = dtypes.canonicalize_dtype(kind)
        value = int(np.asarray(seed).astype(wide)) + offset
        high = (value >> 32) & 0xFFFFFFFF if dtypes.itemsize_bits(wide) > 32 else 0
        return jnp.asarray(np.array([high, value & 0xFFFFFFFF], np.uint32))
    seed = jnp.asarray(seed)
    if seed.ndim:
        raise TypeError(
            f"{name} accepts a scalar seed, but was given an array of shape {tuple(seed.shape)} != (). "
            "Use jax.vmap for batching"
        )
    if seed.dtype != bool and not dtypes.issubdtype(seed.dtype, np.integer):
        raise TypeError(f"{name}: PRNG key seed must be an integer; got {seed!r}")
    if offset:
        seed = seed + offset
    low = lax.convert_element_type(seed, np.uint32)
    if dtypes.itemsize_bits(seed.dtype) > 32:
        high = lax.convert_element_type(lax.shift_right_logical(seed, lax.full_like(seed, 32)), np.uint32)
    else:
        high = lax.full_like(low, 0)
    return lax.concatenate([lax.reshape(high, (1,)), lax.reshape(low, (1,))], 0)


def key(seed: Any, *, impl: Any = None, dtype: Any = None) -> Any:
    """A typed random key from an integer seed.

    `impl` names the generator ('threefry2x32', 'rbg', 'unsafe_rbg'), or `dtype` gives its key type. Raises TypeError if
    `seed` is not a scalar integer, ValueError for an unknown generator.
    """
    if dtype is not None:
        if impl is not None:
            raise ValueError("key: give one of the arguments 'impl' and 'dtype', not both")
        if not isinstance(dtype, KeyDType):
            raise TypeError(f"key: argument 'dtype' must be a key type such as jax.random.key_dtype(), got {dtype}")
        impl = dtype
    found = resolve_impl(impl)
    return wrap(found, found.seed(_seed_words("key", seed)))


def PRNGKey(seed: Any, *, impl: Any = None) -> Any:
    """A raw key, u32[n], from an integer seed; a typed one if `jax_enable_custom_prng` is set. As `key` otherwise."""
    found = resolve_impl(impl)
    words = found.seed(_seed_words("PRNGKey", seed))
    return wrap(found, words) if config.value_of("jax_enable_custom_prng") else words


def key_dtype(impl_spec: Any = None) -> KeyDType:
    """The element type of the keys of a generator (None: the default one)."""
    return _KEY_DTYPES[resolve_impl(impl_spec)]


def key_data(keys: Any) -> Any:
    """The words of a key array, u32[..., n]; raw keys are returned as they are, of NumPy as arrays."""
    _, words, _ = open_key("key_data", keys, single=False)
    return jnp.asarray(words) if isinstance(words, np.ndarray) else words


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


def split(key: Any, num: int | tuple[int, ...] = 2) -> Any:
    """New, independent keys from one key: `num` of them, or an array of the shape `num`."""
    impl, words, typed = open_key("split", key)
    return _close(impl, impl.split(words, _count(num)), typed)


def fold_in(key: Any, data: Any) -> Any:
    """A new key from a key and an integer (taken modulo 2**32).

    Raises TypeError if `data` is not a scalar, OverflowError for a Python int outside uint32.
    """
    impl, words, typed = open_key("fold_in", key)
    if np.ndim(data):
        raise TypeError(
            f"fold_in accepts a scalar, but was given an array of shape {tuple(np.shape(data))} != (). "
            "Use jax.vmap for batching."
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
