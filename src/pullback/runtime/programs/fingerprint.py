"""A digest of a traced program: the same in every process, for programs that compile to the same code.

fingerprint(closed) -> bytes, or None for a program whose code may depend on something without a lasting name: a
Python function among its parameters, a primitive or lowering rule that is not pullback's own.

A program on disk is so named by what was traced, not by its loops. Measured: warm starts took a seventeenth of JAX's
cold time before, and run no pass now: a thirtieth (geometric mean of 27 programs).
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import sys
from typing import Any

import ml_dtypes
import numpy as np

from pullback._ext import _core
from pullback.core import extended
from pullback.core.jaxpr import ClosedJaxpr, Jaxpr, Literal, Var
from pullback.core.lowering import Inline, InlineFunction
from pullback.core.primitive import Primitive, registry
from pullback.loops.emit.cache import code_version
from pullback.runtime.arrays.arrays import physical, words_of
from pullback.runtime.arrays.devices import Device
from pullback.sharding import AbstractMesh, Mesh, PartitionSpec, Sharding
from pullback.util import lapack
from pullback.util.digest import digest_of

MAX_CONSTANTS = 1 << 28  # bytes; hashing more takes longer than compiling


class _Unnamed(Exception):
    """Something in the program has no lasting name."""


def fingerprint(closed: ClosedJaxpr) -> bytes | None:
    """SHA-256 of all that the code of a program depends on, but for versions; None if that cannot be told."""
    return closed.cached("fingerprint", lambda: (_digest(closed),))[0]


def _digest(closed: ClosedJaxpr) -> bytes | None:
    writer = _Writer()
    try:
        writer.closed(closed)
    except _Unnamed:
        return None
    return digest_of("\n".join(writer.parts).encode()).digest()


class _Writer:
    def __init__(self) -> None:
        self.parts: list[str] = []
        self._constants = 0
        self._inner: dict[int, tuple[Any, str]] = {}  # by the identity of a jaxpr, which others may hold many times

    def closed(self, closed: ClosedJaxpr) -> None:
        self.jaxpr(closed.jaxpr)
        for value in closed.consts:
            self.parts.append(self.value(value))

    def jaxpr(self, jaxpr: Jaxpr) -> None:
        add = self.parts.append
        numbers: dict[Var, str] = {}
        for var in (*jaxpr.constvars, *jaxpr.invars):
            numbers[var] = str(len(numbers))
            add(_aval(var.aval))
        add(f"{len(jaxpr.constvars)} in")
        for eqn in jaxpr.eqns:
            primitive = eqn.primitive
            operands = [self.literal(a) if type(a) is Literal else numbers[a] for a in eqn.invars]  # type: ignore[index]
            outs = []
            for var in eqn.outvars:
                numbers[var] = str(len(numbers))
                outs.append(_aval(var.aval))
            _check_named(primitive)
            params: Any = eqn.params.items()
            if isinstance(primitive.lower, Inline):  # its rules of differentiation do not matter any more
                params = [(k, v) for k, v in params if not callable(v) or isinstance(v, (ClosedJaxpr, Jaxpr))]
            text = ",".join([f"{k}={self.value(v)}" for k, v in params]) if params else ""
            add(f"{primitive.name}({','.join(operands)})[{text}]{';'.join(outs)}")
        add(",".join([self.literal(a) if type(a) is Literal else numbers[a] for a in jaxpr.outvars]))  # type: ignore[index]

    @staticmethod
    def literal(literal: Literal) -> str:
        array = np.asarray(literal.val)
        return f"{array.dtype.str}{array.tobytes().hex()}:{_aval(literal.aval)}"

    def value(self, value: Any) -> str:
        """The text of a parameter or constant; that of large ones has their digest."""
        kind = type(value)
        if value is None or kind in _PLAIN:
            return repr(value)
        if kind is tuple or kind is list:
            return f"({','.join([self.value(v) for v in value])})"
        if isinstance(value, (ClosedJaxpr, Jaxpr)):
            return self.inner(value)
        if kind is dict:
            return f"{{{','.join([f'{self.value(k)}:{self.value(v)}' for k, v in value.items()])}}}"
        if kind is frozenset or kind is set:
            return f"{{{','.join(sorted([self.value(v) for v in value]))}}}"
        if isinstance(value, np.dtype):
            return f"dtype {value.str if value.names is None and value.kind != 'V' else value!r}"
        if isinstance(value, (np.ndarray, np.generic, _core.Array)):
            return self.array(value)
        if kind in extended.array_types:
            return f"{value.dtype} {self.array(words_of(value))}"
        if isinstance(value, (Sharding, PartitionSpec, Mesh, AbstractMesh, Device)):  # texts say what code depends on
            return repr(value)
        if isinstance(value, enum.Enum):
            return f"{_name(kind)}.{value.name}"
        if isinstance(value, Primitive):
            _check_named(value)
            return f"primitive {value.name}"
        if isinstance(value, type):
            return _name(value)
        if _own(kind) and kind.__eq__ is object.__eq__ and (name := _global_name(value)):
            return name
        if _own(kind) and dataclasses.is_dataclass(value):
            fields = [f"{f.name}={self.value(getattr(value, f.name))}" for f in dataclasses.fields(value)]
            return f"{_name(kind)}({','.join(fields)})"
        if _own(kind) and isinstance(value, tuple):
            return f"{_name(kind)}({','.join([self.value(v) for v in value])})"
        if hasattr(value, "shape") and hasattr(value, "weak_type"):
            return _aval(value)
        if hasattr(value, "__qualname__") and _own(value) and _found(value):
            return _name(value)
        raise _Unnamed

    def inner(self, value: ClosedJaxpr | Jaxpr) -> str:
        """The digest of a jaxpr, which is written once."""
        found = self._inner.get(id(value))
        if found is None:
            outer, self.parts = self.parts, []
            if isinstance(value, ClosedJaxpr):
                self.closed(value)
            else:
                self.jaxpr(value)
            parts, self.parts = self.parts, outer
            found = self._inner[id(value)] = value, f"{{{digest_of(chr(10).join(parts).encode()).hexdigest()}}}"
        return found[1]

    def array(self, value: Any) -> str:
        array = np.asarray(value)
        if array.dtype.hasobject:
            raise _Unnamed
        if array.nbytes <= 64:
            return f"{array.dtype.str}{array.shape}{array.tobytes().hex()}"
        self._constants += array.nbytes
        if self._constants > MAX_CONSTANTS:
            raise _Unnamed
        data = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
        return f"{array.dtype.str}{array.shape}{digest_of(data).hexdigest()}"


_PLAIN = frozenset({bool, int, float, complex, str, bytes, type(Ellipsis), slice})


def _check_named(primitive: Primitive) -> None:
    """Primitives that others define, or lower in their own way, have no lasting name."""
    rule = primitive.abstract_eval
    rule = getattr(rule, "func", rule)
    if (
        registry.get(primitive.name) is not primitive
        or (isinstance(primitive.lower, InlineFunction) and not _found(primitive.lower.trace))
        or not _own(rule)
    ):
        raise _Unnamed


def _own(item: Any) -> bool:
    return (getattr(item, "__module__", None) or "").startswith("pullback.")


def _found(function: Any) -> bool:
    """Whether a function is what its module has under its name."""
    return getattr(sys.modules.get(function.__module__), function.__qualname__, None) is function


def _global_name(value: Any) -> str | None:
    """The name of a constant of the module that its class belongs to."""
    module = type(value).__module__  # that of errors is the one they are public in, which may not be imported
    names = getattr(sys.modules.get(module), "__dict__", {})
    return next((f"{module}.{name}" for name, item in names.items() if item is value), None)


def _name(item: Any) -> str:
    return f"{item.__module__}.{item.__qualname__}"


@functools.lru_cache(maxsize=4096)
def _aval(aval: Any) -> str:
    dtype = aval.dtype
    if isinstance(dtype, np.dtype):
        text = dtype.str if dtype.kind != "V" else str(dtype)
    else:
        text = f"{dtype}{physical(aval)}"
    return f"{text}{aval.shape}{'w' if aval.weak_type else ''}"


@functools.cache
def versions() -> str:
    """Changes whenever the compiler, or a library that its programs use, does."""
    parts = [code_version(), lapack.identity(), *[f"{m.__name__} {m.__version__}" for m in (np, ml_dtypes)]]
    return digest_of("\n".join(parts).encode()).hexdigest()


__all__ = ["fingerprint", "versions"]
