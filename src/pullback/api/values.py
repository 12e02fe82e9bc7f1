"""Moving values and small wrappers: device_put, device_get, block_until_ready, named_call, ensure_compile_time_eval."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np

from pullback._ext import _core
from pullback.api import _arguments as arguments
from pullback.core import current_interpreter, hooks, using
from pullback.core.source import names_inside
from pullback.core.staging import ConcreteFirstInterpreter
from pullback.core.tracer import Tracer
from pullback.util.pytree import flatten_axes, tree_flatten, tree_map, tree_unflatten


def device_put(x: Any, device: Any = None, *, src: Any = None, donate: Any = False, may_alias: Any = None):
    """The tree with every leaf an array on `device` (a Device or Sharding, or a tree prefix of them; None: where it is,
    or the default device). Traced values stay as they are. TypeError for leaves that are no arrays.
    """
    for place in tree_flatten(device)[0]:
        if isinstance(place, (str, int, float)):
            raise ValueError(
                "`jax.device_put` only accepts `None`, `jax.sharding.Sharding`, `jax.Device` or a pytree of these "
                f"values. Received invalid value: {place!r}"
            )
    leaves, tree = arguments.checked_leaves("device_put", "argument ", x)
    if device is None or not isinstance(device, (tuple, list, dict)):
        devices = [device] * len(leaves)
    else:
        devices = flatten_axes("device_put device", tree, device)
    placed = [leaf if isinstance(leaf, Tracer) else hooks.device_put(leaf, d) for leaf, d in zip(leaves, devices)]
    return tree_unflatten(tree, placed)


def device_get(x: Any):
    """The tree with every array as a NumPy array on the host; traced values stay as they are."""
    return tree_map(
        lambda leaf: np.asarray(leaf) if hasattr(leaf, "aval") and not isinstance(leaf, Tracer) else leaf, x
    )


def block_until_ready(x: Any):
    """The tree, once all its arrays are computed."""
    for leaf in tree_flatten(x)[0]:
        if isinstance(leaf, _core.Array):
            leaf.block_until_ready()
    return x


def effects_barrier() -> None:
    """Wait for the side effects of all programs: a call returns after its own, so there is nothing to wait for."""


def copy_to_host_async(x: Any):
    """The tree; its arrays are on the host already."""
    return x


def named_call(fun: Callable, *, name: str | None = None) -> Callable:
    """`fun` under another name in traces and profiles."""
    arguments.check_callable("named_call", fun)
    label = name or arguments.function_name(fun)

    def wrapped(*args, **kwargs):
        with named_scope(label):
            return fun(*args, **kwargs)

    _core.named_after(wrapped, fun)
    wrapped.__name__ = label
    return wrapped


@contextlib.contextmanager
def named_scope(name: str):
    """Context manager: operations inside belong to the scope `name`. TypeError if name is no string."""
    if not isinstance(name, str):
        raise TypeError(f"named_scope: argument 'name' must be a string, got {name!r}")
    with names_inside(name):
        yield


@contextlib.contextmanager
def ensure_compile_time_eval():
    """Context manager: operations on concrete values are evaluated at once, even while a function is traced."""
    with using(ConcreteFirstInterpreter(current_interpreter())):
        yield


def clear_caches() -> None:
    """Forget all compiled programs."""
    hooks.clear_caches()
