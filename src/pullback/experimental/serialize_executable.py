"""Compiled functions as bytes, to be run by other processes without a compilation.

data, in_tree, out_tree = serialize(jax.jit(f).lower(x).compile())
deserialize_and_load(data, in_tree, out_tree)(x)
"""

from __future__ import annotations

import pickle
from typing import Any

from pullback.api.stages import Compiled, Traced
from pullback.core.explain import explain_all as _explain_all
from pullback.manual import add_pages as _add_pages
from pullback.manual.experimental.serialize_executable import PAGES as _PAGES
from pullback.runtime.arrays.devices import devices
from pullback.runtime.programs.compiler import admit

_MAGIC = b"pullback-executable-1\n"


def serialize(compiled: Compiled) -> tuple[bytes, Any, Any]:
    """(bytes, tree of the arguments, tree of the results) of a compiled function.

    The bytes hold the traced program and its machine code. ValueError for a program that calls Python functions, which
    have no lasting name.
    """
    if not isinstance(compiled, Compiled):
        raise TypeError(f"serialize: expected what jit(f).lower(...).compile() gives, got {type(compiled)}")
    _, (traced, stored) = compiled.__reduce__()
    in_tree, out_tree = traced.in_tree, traced.out_tree
    traced.in_tree = traced.out_tree = None
    try:
        return _MAGIC + pickle.dumps((vars(traced), stored)), in_tree, out_tree
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        raise ValueError(f"serialize: {traced.fun_name} holds what cannot be written down: {error}") from None


def deserialize_and_load(
    serialized: bytes, in_tree: Any, out_tree: Any, backend: Any = None, execution_devices: Any = None
) -> Compiled:
    """The compiled function. Its code is used where the CPU and the version are the same, else it is compiled anew.

    backend: None or "cpu" (RuntimeError for another). execution_devices: None or the one device where it is to run, the
    first (NotImplementedError for others). As with pickle, do not load bytes that others may have changed: they can run
    anything. ValueError for other bytes.
    """
    first = devices(backend)[:1]
    if execution_devices is not None and list(execution_devices) != first:
        raise NotImplementedError(
            f"deserialize_and_load: execution_devices {list(execution_devices)} are not supported; a loaded program "
            f"runs on {first}"
        )
    if not bytes(serialized[: len(_MAGIC)]) == _MAGIC:
        raise ValueError("deserialize_and_load: these bytes do not come from serialize of this version")
    fields, stored = pickle.loads(memoryview(serialized)[len(_MAGIC) :])
    traced = Traced.__new__(Traced)
    vars(traced).update(fields, in_tree=in_tree, out_tree=out_tree)
    admit(stored)
    return traced.lower().compile()


__all__ = ["deserialize_and_load", "serialize"]

_explain_all(globals())
_add_pages(globals(), _PAGES)
