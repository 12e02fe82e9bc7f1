"""Exported functions as bytes: a line with the version, then fields by name, the program, and structures of trees.

Programs are pickled, and read by an unpickler that knows the classes of programs and nothing else. A program is written
without custom rules, which are Python functions: derivatives are stored as programs of their own.
"""

from __future__ import annotations

import enum
import importlib
import io
import pickle
from collections.abc import Callable
from typing import Any

from pullback.core import ClosedJaxpr
from pullback.util.pytree import PyTreeDef, default_registry, tree_structure

MAGIC = b"pullback-exported-3\n"

_KNOWN = {
    ("ml_dtypes", None), ("numpy", "dtype"), ("numpy", "ndarray"), ("numpy._core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "scalar"), ("numpy.core.multiarray", "_reconstruct"),
    ("numpy.core.multiarray", "scalar"), ("builtins", "frozenset"), ("builtins", "slice"), ("builtins", "complex"),
    ("pullback.core.atoms", "DropVar"), ("pullback.core.atoms", "Literal"), ("pullback.core.atoms", "Var"),
    ("pullback.core.avals", "ShapedArray"), ("pullback.core.jaxpr", "ClosedJaxpr"),
    ("pullback.core.jaxpr", "ElementJaxpr"),
    ("pullback.core.dimensions.expressions", "Dimension"), ("pullback.core.dimensions.expressions", "Factor"),
    ("pullback.core.dimensions.scopes", "SymbolicScope"), ("pullback.core.jaxpr", "DebugInfo"),
    ("pullback.core.jaxpr", "Jaxpr"), ("pullback.core.jaxpr", "JaxprEqn"), ("pullback.core.jaxpr", "JaxprEqnContext"),
    ("pullback.core.primitive", "_by_name"), ("pullback.core.source", "NameStack"),
    ("pullback.core.source", "SourceInfo"), ("pullback.random._key_arrays", "key_dtype"),
    ("pullback.random._generators", "generator"),
    ("pullback.runtime.arrays.native_hooks", "reconstruct"),
    ("pullback.core.avals", "typed"), ("pullback.sharding._mesh", "AbstractDevice"),
    ("pullback.sharding._mesh", "AbstractMesh"), ("pullback.sharding._mesh", "AxisType"),
    ("pullback.sharding._shardings", "ArrayCopySemantics"), ("pullback.sharding._shardings", "MemorySpace"),
    ("pullback.sharding._shardings", "NamedSharding"),
    ("pullback.sharding._specs", "UNCONSTRAINED"),
    ("pullback.sharding._specs", "_made"),
}  # fmt: skip

_MOVED = {  # where older files look for what is now elsewhere
    ("pullback.lax.products.conv", "ConvDimensionNumbers"): (
        "pullback.lax.products.conv_shapes",
        "ConvDimensionNumbers",
    ),
    ("pullback.random._keys", "key_dtype"): ("pullback.random._key_arrays", "key_dtype"),
    ("pullback.random._keys", "resolve_impl"): ("pullback.random._generators", "generator"),
}


class _Reader(pickle.Unpickler):
    """Reads programs; UnpicklingError for what is no part of one."""

    def find_class(self, module: str, name: str) -> Any:
        module, name = _MOVED.get((module, name), (module, name))
        if (module, name) in _KNOWN or (module, None) in _KNOWN:
            return super().find_class(module, name)
        if module.startswith("pullback.lax.") and name.isidentifier():
            found = getattr(importlib.import_module(module), name, None)
            if isinstance(found, type) and issubclass(found, (tuple, enum.Enum)) and found.__module__ == module:
                return found
        raise pickle.UnpicklingError(f"{module}.{name} is no part of a program")


def read(data: bytes) -> Any:
    """What `write` wrote; ValueError for other bytes."""
    try:
        return _Reader(io.BytesIO(data)).load()
    except Exception as error:
        raise ValueError(f"deserialize: these bytes are no exported function: {error}") from None


def write(value: Any, name: str) -> bytes:
    """Programs, types and plain values as bytes; NotImplementedError if a Python function is among them."""
    try:
        data = pickle.dumps(value, 4)
        _Reader(io.BytesIO(data)).load()
    except Exception as error:
        raise NotImplementedError(
            f"export: {name} holds what cannot be written down, as serialization of host callbacks and other Python "
            f"functions is not there: {error}"
        ) from None
    return data


def write_program(closed: ClosedJaxpr, name: str) -> bytes:
    """A program as bytes."""
    return write(closed, name)


# ---- structures of trees

_by_type: dict[type, tuple[str, Callable[[Any], bytes], Callable[[bytes], Any], Callable[..., Any] | None]] = {}
_by_name: dict[str, type] = {}


def _register(nodetype: type, name: str, entry: Any) -> None:
    if nodetype in _by_type:
        raise ValueError(f"how to serialize {nodetype} has been registered before; a type is registered once")
    if name in _by_name:
        raise ValueError(
            f"argument 'serialized_name' is {name!r}, which {_by_name[name]} has; {nodetype} needs a name of its own"
        )
    _by_type[nodetype], _by_name[name] = entry, nodetype


def register_pytree_node_serialization(
    nodetype: type,
    *,
    serialized_name: str,
    serialize_auxdata: Callable[[Any], bytes],
    deserialize_auxdata: Callable[[bytes], Any],
    from_children: Callable[..., Any] | None = None,
) -> type:
    """How a pytree node type of the user's is written down: under a name, its static data by a pair of functions.

    from_children(auxdata, children) makes the node, by default as registered for pytrees. Gives the type. ValueError
    for a type or a name that is registered already.
    """
    _register(nodetype, serialized_name, (serialized_name, serialize_auxdata, deserialize_auxdata, from_children))
    return nodetype


def register_namedtuple_serialization(nodetype: type, *, serialized_name: str) -> type:
    """The name under which a named tuple is written down. Gives the type; ValueError as for other node types."""
    if not hasattr(nodetype, "_fields"):
        raise ValueError(
            f"register_namedtuple_serialization: {nodetype} is no named tuple, but may be for "
            "register_pytree_node_serialization"
        )
    _register(nodetype, serialized_name, (serialized_name, lambda _: b"", lambda _: None, None))
    return nodetype


def write_tree(tree: PyTreeDef) -> Any:
    """The structure as tuples of strings; ValueError for a node type that is not registered."""
    if tree.num_nodes == tree.num_leaves == 1:
        return "*"
    data = tree.node_data()
    children = tuple(map(write_tree, tree.children()))
    if data is None:
        return "none"
    kind, aux = data
    if kind is type(None):
        return "none"
    if kind in (tuple, list):
        return (kind.__name__, children)
    if kind is dict:
        keys = tuple(aux)
        if not all(isinstance(key, (str, int, float, bool)) for key in keys):
            raise ValueError(f"serialize: keys of dicts must be strings or numbers, got {keys}")
        return ("dict", children, keys)
    if kind not in _by_type:
        raise ValueError(
            f"Cannot serialize PyTreeDef node type {kind}: register it by jax.export.register_"
            f"{'namedtuple' if hasattr(kind, '_fields') else 'pytree_node'}_serialization"
        )
    name, to_bytes, _, _ = _by_type[kind]
    written = to_bytes(aux)
    if not isinstance(written, (bytes, bytearray)):
        raise ValueError(f"Custom serialization for `{kind}` must give bytes, got {type(written)}")
    return ("node", children, name, bytes(written))


def read_tree(written: Any) -> PyTreeDef:
    """The structure that was written down; ValueError for a name that is not registered."""
    return tree_structure(_example(written))


def _example(written: Any) -> Any:
    if written == "*":
        return 0
    if written == "none":
        return None
    kind, parts, *rest = written
    children = [_example(part) for part in parts]
    if kind in ("tuple", "list"):
        return tuple(children) if kind == "tuple" else children
    if kind == "dict":
        return dict(zip(rest[0], children, strict=True))
    name, data = rest
    if name not in _by_name:
        raise ValueError(
            f"Cannot deserialize a PyTreeDef for the type name `{name}`: register it as it was where it was written"
        )
    nodetype = _by_name[name]
    _, _, from_bytes, make = _by_type[nodetype]
    if hasattr(nodetype, "_fields") and make is None:
        return nodetype(*children)
    aux = from_bytes(data)
    if make is not None:
        return make(aux, children)
    leaves = [tree_structure(child) for child in children]
    tree = PyTreeDef.from_node_data_and_children(default_registry, (nodetype, aux), leaves)
    return tree.unflatten([0] * tree.num_leaves)
