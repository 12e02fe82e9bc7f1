"""The option `jax_debug_key_reuse`: KeyReuseError where a random key is consumed twice.

Sampling and splitting consume a typed key; `fold_in`, `clone`, `key_data` and comparisons do not. Each word of a key
has a number, which moves with it: slices, reshapes and copies of keys keep the numbers of what they were made of. A
number that is consumed is remembered, and must not be consumed again.

Eager keys carry their numbers (`PRNGKeyArray._ids`). A jitted function is checked when it is called, by running its
jaxpr on numbers instead of words; bodies of loops run twice, so what they use in every iteration is found.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from pullback.core import ClosedJaxpr, Jaxpr
from pullback.core.jaxpr import Literal, jaxprs_in_params
from pullback.util import config, dtypes
from pullback.util.errors import KeyReuseError

_KEYS = frozenset({"random_unwrap", "random_wrap"})
_KEEPS = _KEYS | {"optimization_barrier", "device_put"}  # the same numbers
_LOOKS = frozenset({"threefry_fold_in", "random_clone", "eq", "ne", "stop_gradient", "debug_callback", "debug_print"})
_MOVES = frozenset({
    "slice", "reshape", "squeeze", "expand_dims", "broadcast_in_dim", "transpose", "copy", "copy_p", "rev",
    "dynamic_slice", "gather", "split",
})  # fmt: skip

_numbers = itertools.count(1)
_consumed: set[int] = set()
_by: list[str] = []  # the function that is opening keys to consume them


def is_on() -> bool:
    """Whether keys are watched."""
    return bool(config.value_of("jax_debug_key_reuse"))


class Mask:
    """Which keys of an array are meant, as a parameter of an equation."""

    def __init__(self, value: Any) -> None:
        self.array = np.asarray(value, np.bool_)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mask) and np.array_equal(self.array, other.array)

    def __hash__(self) -> int:
        return hash((self.array.shape, self.array.tobytes()))

    def __repr__(self) -> str:
        return str(self.array)


def fresh_ids(aval: Any) -> np.ndarray:
    """Numbers of their own for the words of a key array of this type."""
    return _fresh((*aval.shape, *aval.dtype.base_shape))


def _fresh(shape: Sequence[int]) -> np.ndarray:
    return np.array([next(_numbers) for _ in range(int(np.prod(shape)))], np.int64).reshape(shape)


def ids_of(key: Any) -> np.ndarray:
    """The numbers of the words of an eager key array."""
    if key._ids is None:
        key._ids = _fresh(key._base_array.shape)
    return key._ids


@contextmanager
def opening(name: str) -> Iterator[None]:
    """While function `name` takes the words of keys, which it consumes."""
    _by.append(name)
    try:
        yield
    finally:
        _by.pop()


def opened(key: Any) -> None:
    """Note that the words of an eager key are taken; KeyReuseError if they are consumed a second time."""
    if _by and is_on():
        _consume(_by[-1], ids_of(key), _consumed)


def moved(primitive: Any, args: Sequence[Any], params: dict, outs: Sequence[Any]) -> None:
    """Note that a primitive has made eager key arrays of others."""
    if primitive.name not in _MOVES:
        for key in args:
            if hasattr(key, "_ids"):
                _consume(primitive.name, ids_of(key), _consumed)
        return
    keys = [hasattr(x, "_ids") for x in args]
    words = [ids_of(x).astype(np.int32) if is_key else x for x, is_key in zip(args, keys)]
    found, dims = primitive.rule("batch")(words, [x.ndim - 1 if k else None for x, k in zip(words, keys)], **params)
    pairs = zip(found, dims) if primitive.multiple_results else [(found, dims)]
    for out, (ids, dim) in zip(outs, pairs):
        out._ids = np.moveaxis(np.asarray(ids), dim, -1).astype(np.int64)


def called(name: str, closed: Any, leaves: Sequence[Any]) -> list[np.ndarray | None] | None:
    """Check the call of a jitted function on eager arguments, and note which keys it consumes.

    The numbers of results that are keys consumed already; None if the function has nothing to do with keys.
    """
    if not any([hasattr(x, "_ids") for x in leaves]) and not _has_keys(closed.jaxpr):
        return None
    consumed = set(_consumed)
    outs = run(closed, [ids_of(x) if hasattr(x, "_ids") else None for x in leaves], consumed, name)
    _consumed.update(consumed)
    return [None if ids is None or consumed.isdisjoint(ids.flat) else ids for ids in outs]


def note_results(outs: Sequence[Any], ids: Sequence[np.ndarray | None]) -> None:
    """Give results of a jitted function the numbers that `called` has found."""
    for out, found in zip(outs, ids):
        if found is not None and hasattr(out, "_ids"):
            out._ids = found


def _has_keys(jaxpr: Jaxpr) -> bool:
    return any(
        [eqn.primitive.name in _KEYS or any(_has_keys(j) for j in jaxprs_in_params(eqn.params)) for eqn in jaxpr.eqns]
    )


def _consume(name: str, ids: np.ndarray, consumed: set[int]) -> None:
    numbers = ids.ravel().tolist()
    if len(set(numbers)) < len(numbers) or not consumed.isdisjoint(numbers):
        raise KeyReuseError(
            f"{name}: a random key is consumed that was consumed before. Make new keys with jax.random.split, or say "
            "with jax.random.clone(key) that it shall be used again."
        )
    consumed.update(numbers)


def _assert_consumed(aval: Any, ids: np.ndarray, value: np.ndarray, consumed: set[int]) -> None:
    """AssertionError unless the keys are consumed that `value` says, and no others."""
    found = np.isin(ids, list(consumed)).any(axis=-1)
    if not np.array_equal(found, np.broadcast_to(value, aval.shape)):
        said = "consumed" if value.all() else "not consumed" if not value.any() else f"consumed where {value}"
        raise AssertionError(f"Expected key to be {said}: {aval.short()} is consumed where {found}")


_Ids = Any  # the numbers of an array's words; None where it has nothing to do with keys


def run(closed: Any, given: Sequence[_Ids], consumed: set[int], name: str) -> list[_Ids]:
    """The numbers of the results of a jaxpr for arguments of these; adds to `consumed`."""
    jaxpr = closed.jaxpr
    values = dict(zip(jaxpr.constvars, closed.consts))
    env: dict[Any, _Ids] = {v: ids_of(c) for v, c in values.items() if hasattr(c, "_ids")}
    env.update(zip(jaxpr.invars, given))
    for eqn in jaxpr.eqns:
        ids = [None if type(a) is Literal else env.get(a) for a in eqn.invars]
        outs = _equation(eqn, ids, values, consumed, name)
        for var, found in zip(eqn.outvars, outs):
            if found is None and dtypes.is_extended(var.aval.dtype):
                found = fresh_ids(var.aval)
            env[var] = found
    return [None if type(a) is Literal else env.get(a) for a in jaxpr.outvars]


def _equation(eqn: Any, ids: list[_Ids], values: dict, consumed: set[int], name: str) -> Sequence[_Ids]:
    kind, params = eqn.primitive.name, eqn.params
    nothing = [None] * len(eqn.outvars)
    if kind == "cond":
        return _branches(params["branches"], ids[1:], consumed, name)
    if kind == "scan":
        return _scan(params, ids, consumed, name)
    if kind == "while":
        return _while(params, ids, consumed, name)
    inner = [v for v in params.values() if isinstance(v, ClosedJaxpr)]
    words = [x is not None and not dtypes.is_extended(a.aval.dtype) for x, a in zip(ids, eqn.invars)]
    # Words with numbers are given to our own samplers only, which may use them in two ways of which one counts.
    if len(inner) == 1 and len(inner[0].jaxpr.invars) == len(ids) and not any(words):
        if params.get("differentiated"):  # evaluated again for its derivative
            return run(inner[0], ids, set(), name)
        return run(inner[0], ids, consumed, params.get("name") or name)
    if kind == "assert_consumed_value":
        _assert_consumed(eqn.invars[0].aval, ids[0], params["value"].array, consumed)
        return ids
    if all(x is None for x in ids) or kind in _LOOKS:
        return nothing
    if kind == "consume":
        _consume(name, ids[0], consumed)
        return ids
    if kind in _KEEPS:
        return ids
    if kind in _MOVES:
        rest = [a.val if type(a) is Literal else values.get(a) for a in eqn.invars[1:]]
        if ids[0] is not None and all(x is not None for x in rest):
            outs = eqn.primitive.rule("reference")(ids[0], *map(np.asarray, rest), **params)
            return outs if eqn.primitive.multiple_results else [outs]
    for x in ids:
        if x is not None:
            _consume(name, x, consumed)
    return nothing


def _branches(branches: Sequence[Any], ids: list[_Ids], consumed: set[int], name: str) -> Sequence[_Ids]:
    """What any branch consumes counts as consumed."""
    after = [set(consumed) for _ in branches]
    outs = [run(branch, ids, used, name) for branch, used in zip(branches, after)]
    consumed.update(*after)
    same = [
        all(x is not None and y is not None and np.array_equal(x, y) for y in of) for of in zip(*outs) for x in of[:1]
    ]
    return [x if is_same else None for x, is_same in zip(outs[0], same)]


def _scan(params: dict, ids: list[_Ids], consumed: set[int], name: str) -> Sequence[_Ids]:
    n_consts, n_carry = params["num_consts"], params["num_carry"]
    body, n_outs = params["jaxpr"], len(params["jaxpr"].jaxpr.outvars)
    consts, carry, xs = ids[:n_consts], ids[n_consts : n_consts + n_carry], ids[n_consts + n_carry :]
    before = set(consumed)
    for row in range(2):
        rows = [None if x is None else (x[row] if len(x) > row else _fresh(x.shape[1:])) for x in xs]
        used = set(consumed)
        outs = run(body, [*consts, *carry, *rows], used, name)
        for x, part in zip(xs, rows):
            if (
                x is not None and part is not None and row == 0 and not used.isdisjoint(part.flat)
            ):  # as all other rows will be
                _consume(name, x, before)
        consumed |= used
        carry = outs[:n_carry]
    consumed |= before
    return [*carry, *[None] * (n_outs - n_carry)]


def _while(params: dict, ids: list[_Ids], consumed: set[int], name: str) -> Sequence[_Ids]:
    n_cond, n_body = params["cond_nconsts"], params["body_nconsts"]
    for_cond, for_body, carry = ids[:n_cond], ids[n_cond : n_cond + n_body], ids[n_cond + n_body :]
    for _ in range(2):
        run(params["cond_jaxpr"], [*for_cond, *carry], consumed, name)
        carry = run(params["body_jaxpr"], [*for_body, *carry], consumed, name)
    return carry
