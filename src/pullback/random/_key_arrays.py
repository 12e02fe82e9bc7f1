"""Typed key arrays: their element types, what can be done with them, and the primitives between keys and words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback import lax
from pullback.core import ZERO, NoRule, Primitive, ShapedArray, Tracer, add_array_type, extended
from pullback.core.explain import type_shown
from pullback.core.lowering import Pointwise
from pullback.numpy._arguments import dtype_of, is_arraylike
from pullback.random import _reuse
from pullback.random._generators import PRNGImpl, PRNGSpec, generator, implementations
from pullback.util import config, dtypes
from pullback.util.tracebacks import api_boundary

_WORD = np.dtype(np.uint32)


class KeyDType(dtypes.ExtendedDType):
    """The element type of key arrays of one generator, such as `key<fry>`."""

    type = dtypes.prng_key

    def __init__(self, impl: PRNGImpl) -> None:
        self._impl = impl
        self.name = f"key<{impl.tag}>"

    @property
    def base(self) -> np.dtype:
        """The NumPy dtype of the words."""
        return _WORD

    @property
    def base_shape(self) -> tuple[int, ...]:
        """The dimensions of the words of a key."""
        return self._impl.key_shape

    def __reduce__(self) -> Any:
        return key_dtype, (self._impl.name,)


KEY_DTYPES = {i: KeyDType(i) for i in implementations.values()}


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
        return generator(spec)
    raise TypeError(f"a generator is named by a string, a PRNGSpec or a dtype of keys, got {type_shown(spec)}")


def key_dtype(impl_spec: Any = None) -> KeyDType:
    """The element type of the keys of a generator (None: the default one)."""
    return KEY_DTYPES[resolve_impl(impl_spec)]


class PRNGKeyArray(extended.ArrayOfWords):
    """An array of random keys, of element type `key<...>`: shape, indexing and movement as of any array, no
    arithmetic."""

    __slots__ = ("__weakref__", "_ids", "_impl", "aval")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, impl: PRNGImpl, words: Any) -> None:
        self._impl = impl
        self._base_array = words
        self._ids: Any = None  # for the check of key reuse (_reuse.py)
        self.aval = ShapedArray(tuple(words.shape[:-1]), KEY_DTYPES[impl])

    # Where it lies.
    sharding = property(lambda self: self._of_keys(self._base_array.sharding))

    def _of_keys(self, sharding: Any) -> Any:
        """Where keys lie whose words lie so: each axis is spoken of, but not the words' last."""
        spec = getattr(sharding, "spec", None)
        if spec is None or len(spec) == self.ndim:
            return sharding
        parts = (*spec, *[None] * self.ndim)[: self.ndim]
        return sharding.update(spec=spec.update(partitions=parts))

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

    # What keys cannot do.
    @api_boundary
    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise TypeError(
            f"keys of dtype {self.dtype} cannot be converted to NumPy; their words can: jax.random.key_data(keys)"
        )

    @api_boundary
    def __bool__(self) -> bool:
        raise TypeError(f"keys of dtype {self.dtype} are neither true nor false")

    def __copy__(self) -> PRNGKeyArray:
        return self

    def __deepcopy__(self, memo: Any) -> PRNGKeyArray:
        return self

    def __reduce__(self) -> Any:
        return _unpickle, (self._impl.name, np.asarray(self._base_array))

    @api_boundary
    def __eq__(self, other: object) -> Any:
        """Elementwise: whether all words are equal; keys of different generators cannot be compared (TypeError)."""
        if not is_typed(other):
            if is_arraylike(other):
                raise TypeError(f"equal does not accept dtypes {self.dtype}, {dtype_of(other)}.")
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
    @api_boundary
    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    @api_boundary
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
    @api_boundary
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
    return ShapedArray(words.shape[:-1], KEY_DTYPES[impl])


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


def primitive_of_keys(name: str, doc: str, register: bool = True) -> Primitive:
    """A primitive that gives the keys that it is given, typed or as words, and means something to who watches keys."""

    def batch(args: Any, dims: Any, **params: Any) -> Any:
        return primitive.bind(*args, **params), dims[0]

    primitive = Primitive(
        name,
        reference=lambda words, **params: words,
        evaluate=lambda words, **params: words,
        jvp=ZERO,
        transpose=_NO_COTANGENT,
        abstract_eval=lambda words, **params: words,
        batch=batch,
        lower=Pointwise(lambda ctx, index: ctx.operand(0, index), is_view=True, cost=0),
        traits={"extended", "inside"},
        doc=doc,
        register=register,
    )
    return primitive


random_clone_p = primitive_of_keys(
    "random_clone", "The same key, typed or as words, which the check of key reuse counts as new."
)


def unwrap(key: Any) -> Any:
    """The words of a typed key array or tracer."""
    return _unwrap_reference(key) if type(key) is PRNGKeyArray else random_unwrap_p.bind(key)


def wrap(impl: PRNGImpl, words: Any) -> Any:
    """Words, concrete or traced, as a typed key array."""
    return random_wrap_p.bind(words, impl=impl) if isinstance(words, Tracer) else PRNGKeyArray(impl, words)


_WAY = extended.Way(
    unwrap,
    lambda dtype, words: wrap(dtype._impl, words),
    lambda dtype, words: PRNGKeyArray(dtype._impl, words),
)
extended.register(KeyDType, PRNGKeyArray, _WAY)
extended.reuse = _reuse


def is_typed(key: Any) -> bool:
    """Whether this is a typed key array, concrete or traced."""
    return type(key) is PRNGKeyArray or isinstance(getattr(key, "dtype", None), KeyDType)
