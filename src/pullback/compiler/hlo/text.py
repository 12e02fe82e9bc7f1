"""Types, constants and computations of HLO as text."""

from __future__ import annotations

import collections
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from pullback.core.atoms import Literal
from pullback.core.avals import ShapedArray
from pullback.core.extended import words
from pullback.core.jaxpr import ClosedJaxpr, JaxprEqn
from pullback.util import dtypes

INDEX = ShapedArray((), np.dtype(np.int32))
TRUTH = ShapedArray((), np.dtype(np.bool_))

_MOST_SHOWN = 16  # elements of a constant that are written out
_LETTERS = {"bool": "pred", "int": "s", "uint": "u", "float": "f", "complex": "c", "bfloat": "bf"}


def plain(name: str) -> str:
    """A name without what HLO does not allow in names."""
    return re.sub(r"[^A-Za-z0-9_.-]", "_", name) or "_"


def shape_text(of: Any) -> str:
    """A type with its layout, by rows: `f32[2,3]{1,0}`; of a list of types that of a tuple."""
    if isinstance(of, list):
        return f"({', '.join(map(shape_text, of))})"
    dtype, sizes = of.dtype, tuple(of.shape)
    if dtypes.is_extended(dtype):  # what is in memory
        dtype, sizes = dtype.base, (*sizes, *dtype.base_shape)
    name = "bool" if dtype == dtypes.float0 else dtype.name
    name = re.sub("^[a-z]+", lambda kind: _LETTERS[kind[0]], name).replace("_", "")
    layout = f"{{{','.join(map(str, reversed(range(len(sizes)))))}}}" if sizes else ""
    return f"{name}[{','.join(map(str, sizes))}]{layout}"


def constant_text(value: Any) -> str:
    """The elements of a constant; `{...}` for many."""
    value = np.asarray(value)
    digits = 17 if value.dtype in (np.float64, np.complex128) else 9
    return _nested(value.tolist(), digits) if value.size <= _MOST_SHOWN else "{...}"


def _nested(x: Any, digits: int) -> str:
    if isinstance(x, list):
        return f"{{{', '.join(_nested(part, digits) for part in x)}}}"
    if isinstance(x, complex):
        return f"({_nested(x.real, digits)}, {_nested(x.imag, digits)})"
    return f"{x:.{digits}g}" if isinstance(x, float) else str(x).lower()


def braces(name: str, values: Iterable[Any]) -> str:
    """An attribute that is a list: `dimensions={0,1}`."""
    return f"{name}={{{','.join(map(str, values))}}}"


class Module:
    """What the computations of a program share: their texts, and the names that are taken."""

    def __init__(self, write: Callable[[Computation, JaxprEqn], None], mesh: Mapping[Any, int]):
        self.write = write  # writes an equation
        self.mesh = mesh  # the axes whose devices collectives are among, and their sizes
        self.computations: list[str] = []
        self._counts: collections.Counter[str] = collections.Counter()

    def numbered(self, name: str) -> str:
        """A name that nothing else of the module has."""
        self._counts[name] += 1
        return f"{name}.{self._counts[name]}"


class Computation:
    """One that is being written: its lines, and the names of a program's values in it."""

    def __init__(self, module: Module):
        self.module = module
        self.lines: dict[str, str] = {}  # name of an instruction -> what it is
        self.values: dict[Any, str] = {}

    def emit(self, name: str, result: Any, operation: str, operands: Iterable[str], *attributes: str) -> str:
        """Write an instruction; its name, numbered. The result's type is an aval, or a list for a tuple."""
        found = self.module.numbered(name)
        said = "".join(f", {a}" for a in attributes if a)
        self.lines[found] = f"{shape_text(result)} {operation}({', '.join(operands)}){said}"
        return found

    def results(
        self, name: str, avals: list[Any], operation: str, operands: Iterable[str], *attributes: str
    ) -> list[str]:
        """Write an instruction with these results, which are elements of a tuple unless there is one."""
        if len(avals) == 1:
            return [self.emit(name, avals[0], operation, operands, *attributes)]
        return self.elements(self.emit(name, avals, operation, operands, *attributes), avals)

    def elements(self, whole: str, avals: Sequence[Any]) -> list[str]:
        """The elements of a tuple."""
        name = "get-tuple-element"
        return [self.emit(name, aval, name, [whole], f"index={i}") for i, aval in enumerate(avals)]

    def tuple(self, operands: Sequence[str], avals: Sequence[Any]) -> str:
        """A tuple of these."""
        return self.emit("tuple", list(avals), "tuple", operands)

    def parameters(self, avals: Sequence[Any], names: Sequence[str] = ()) -> list[str]:
        """The parameters."""
        named = [*map(plain, names), *(f"Arg_{i}" for i in range(len(names), len(avals)))]
        return [self.emit(name, a, "parameter", [str(i)]) for i, (a, name) in enumerate(zip(avals, named))]

    def constant(self, value: Any, aval: Any = INDEX) -> str:
        """A constant."""
        shown = words(value) if dtypes.is_extended(aval.dtype) else np.asarray(value, aval.dtype)
        return self.emit("constant", aval, "constant", [constant_text(shown)])

    def spread(self, operand: str, aval: Any, shape: Sequence[Any]) -> str:
        """An operand of an operation on elements of arrays of this shape, which scalars and axes of size 1 are spread
        over."""
        if tuple(aval.shape) == tuple(shape):
            return operand
        kept = [k for k, (m, n) in enumerate(zip(aval.shape, shape)) if m == n]
        if aval.shape:
            sizes = ShapedArray([shape[k] for k in kept], aval.dtype)
            operand = self.emit("reshape", sizes, "reshape", [operand])
        dimensions = "dimensions={" + ",".join(map(str, kept)) + "}"
        return self.emit("broadcast", ShapedArray(shape, aval.dtype), "broadcast", [operand], dimensions)

    def read(self, atom: Any) -> str:
        """An operand of an equation."""
        return self.constant(atom.val, atom.aval) if isinstance(atom, Literal) else self.values[atom]

    def run(self, closed: ClosedJaxpr, operands: Sequence[str]) -> list[str]:
        """Write the equations of a program on these operands; its results."""
        jaxpr, kept = closed.jaxpr, self.values
        self.values = dict(zip(jaxpr.invars, operands, strict=True))
        for var, value in zip(jaxpr.constvars, closed.consts, strict=True):
            self.values[var] = self.constant(value, var.aval)
        for eqn in jaxpr.eqns:
            self.module.write(self, eqn)
        outs = [self.read(a) for a in jaxpr.outvars]
        self.values = kept
        return outs

    def function(self, name: str, closed: ClosedJaxpr) -> str:
        """A program as a computation of its own, with a tuple of its results unless there is one; its name."""
        inner = Computation(self.module)
        outs = inner.run(closed, inner.parameters(closed.in_avals))
        return inner.finish(name, outs[0] if len(outs) == 1 else inner.tuple(outs, closed.out_avals))

    def of_tuple(self, name: str, avals: list[Any], body: Callable[[Computation, list[str]], str]) -> str:
        """A computation of one tuple, as loops and branches take: body gives the result for its elements."""
        inner = Computation(self.module)
        whole = inner.emit("arg_tuple", avals, "parameter", ["0"])
        return inner.finish(name, body(inner, inner.elements(whole, avals)))

    def finish(self, name: str, root: str) -> str:
        """Add the computation to the module; its name."""
        lines = {**{n: t for n, t in self.lines.items() if n != root}, f"ROOT {root}": self.lines[root]}
        text = "\n".join(f"  {n} = {t}" for n, t in lines.items())
        found = self.module.numbered(name)
        self.module.computations.append(f"{found} {{\n{text}\n}}")
        return found.removeprefix("ENTRY ")
