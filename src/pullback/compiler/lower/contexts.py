"""Operands and results in memory, and the means to write statements over them.

What the `emit` rule of a Nest sees is more, a RuleContext (rule_context.py): products and control flow are written with
what is here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np

from pullback.compiler.graph.fuse.access import ir_dtype
from pullback.compiler.lower import moves
from pullback.compiler.lower.storage import Storage, contiguous, offset_of
from pullback.core.jaxpr import ClosedJaxpr, JaxprEqn, Literal
from pullback.loops.ir import Address, Buffer, Builder, Expr


class Lowering(Protocol):
    """What a nest asks of the program that it becomes a part of (program.py has it)."""

    b: Builder

    def constant(self, array: np.ndarray, name: str) -> Buffer: ...
    def scalar_constant(self, value: np.ndarray) -> Buffer: ...
    def by_reference(self, eqn: JaxprEqn, operands: Sequence[Storage], results: Sequence[Storage]) -> None: ...
    def subprogram(self, closed: ClosedJaxpr, inputs: Sequence[Storage], outputs: Sequence[Storage]) -> Any: ...
    def copied(self, closed: ClosedJaxpr, inputs: Sequence[Storage], outputs: Sequence[Storage]) -> list[Storage]: ...


class NestContext:
    """Operands, results, loops, calls. Storages have .buffer .offset .shape .strides .dtype .ndim .size .contiguous,
    .at(i),
    .slice(starts, sizes), .transposed(permutation), .reshaped(shape)."""

    def __init__(
        self,
        lowering: Lowering,
        eqn: JaxprEqn,
        operands: Sequence[Storage],
        results: Sequence[Storage],
        unread: Set[int] = frozenset(),
    ) -> None:
        self.lowering = lowering
        self.b: Builder = lowering.b
        self.eqn = eqn
        self.params: dict[str, Any] = eqn.params
        self.in_avals = [a.aval for a in eqn.invars]
        self.out_avals = [v.aval for v in eqn.outvars]
        self.out_aval = self.out_avals[0] if self.out_avals else None
        self._operands, self._results, self._unread = operands, results, unread
        self._items: list[tuple[Expr, int]] = []  # index and extent of each open parallel loop

    def operand(self, k: int) -> Storage:
        """The k-th operand in memory; row-major unless the record's kind says `strided`."""
        return self._operands[k]

    def result(self, k: int = 0) -> Storage:
        """The memory of the k-th result, row-major."""
        return self._results[k]

    def is_read(self, k: int) -> bool:
        """Whether anything reads the k-th result; one that nothing reads need not be written."""
        return k not in self._unread

    def static(self, k: int) -> np.ndarray | None:
        """The k-th operand's value where it is a literal, else None."""
        atom = self.eqn.invars[k]
        return np.asarray(atom.val) if isinstance(atom, Literal) else None

    # Elements.

    def load(self, storage: Storage, index: Sequence[Expr | int] = ()) -> Expr:
        """The element at an index."""
        return self.b.load(storage.buffer, self.offset(storage, index))

    def store(self, storage: Storage, index: Sequence[Expr | int], value: Expr) -> None:
        """Store one element."""
        self.b.store(storage.buffer, self.offset(storage, index), value)

    def offset(self, storage: Storage, index: Sequence[Expr | int] = ()) -> Expr:
        """The flat offset of an element in the storage's buffer."""
        if not index:
            return self.b.index(storage.offset)
        return offset_of(self.b, storage, [self.b.index(i) for i in index])

    def address(self, storage: Storage, index: Sequence[Expr | int] = ()) -> Address:
        """The address of an element (default: the first), as an argument of `call`."""
        return self.b.address(storage.buffer, self.offset(storage, index))

    def scalar(self, k: int) -> Expr:
        """The value of an operand of one element."""
        return self.load(self.operand(k), (0,) * self.operand(k).ndim)

    # Memory.

    def temporary(self, dtype: Any, shape: Sequence[int], name: str = "t") -> Storage:
        """Uninitialized memory in the program's arena; `dtype` is a NumPy dtype or a loop IR type.

        Each iteration of the parallel loops that are open (`loops`) has its own: threads share them.
        """
        extents = [extent for _, extent in self._items]
        whole = contiguous(
            self.b.temporary(name, self._dtype(dtype), math.prod((*extents, *shape))), (*extents, *shape)
        )
        for index, _ in self._items:
            whole = whole.at(index)
        return whole

    def local(self, dtype: Any, shape: Sequence[int], name: str = "t") -> Storage:
        """Scratch memory (some KB) of which each iteration of a parallel loop has its own."""
        return contiguous(self.b.local(name, self._dtype(dtype), math.prod(shape)), shape)

    def constant(self, array: np.ndarray, name: str = "c") -> Storage:
        """An array whose values are part of the program."""
        array = np.asarray(array)
        return contiguous(self.lowering.constant(array, name), array.shape)

    def contiguous(self, storage: Storage) -> Storage:
        """The storage itself if row-major, else a row-major copy."""
        if storage.contiguous:
            return storage
        copy = self.temporary(storage.dtype, storage.shape)
        self.copy(copy, storage)
        return copy

    def _dtype(self, dtype: Any) -> str:
        return dtype if isinstance(dtype, str) else ir_dtype(np.dtype(dtype))

    # Statements.

    @contextmanager
    def loops(self, shape: Sequence[int], role: str = "parallel") -> Iterator[list[Expr]]:
        """Context manager of nested loops over a shape; gives the index as a list."""
        with moves.loops(self.b, shape, role) as index:
            before = len(self._items)
            if role == "parallel":
                self._items += [(i, n) for i, n in zip(index, shape) if n != 1]
            yield index
            del self._items[before:]

    def copy(self, dst: Storage, src: Storage) -> None:
        """dst[...] = src; the shapes agree, and the two do not overlap unless they are the same memory."""
        moves.copy(self.b, dst, src)

    def fill(self, dst: Storage, value: Any) -> None:
        """dst[...] = value, a number or an expression."""
        with self.loops(dst.shape) as index:
            self.store(dst, index, value if isinstance(value, Expr) else self.b.const(dst.dtype, value))

    def if_(self, cond: Expr):
        """`with ctx.if_(c) as branch: ...`, `with branch.otherwise(): ...`."""
        return self.b.if_(cond)

    def while_(self):
        """`with ctx.while_() as w:` condition statements, `w.test(cond)`, body."""
        return self.b.while_()

    def call(self, symbol: str, *args: Expr | Address, result: str | None = None) -> Expr | None:
        """Call a C function of the runtime or a library."""
        return self.b.call(symbol, *args, result=result)

    def by_reference(self) -> None:
        """Run the record's reference in Python, with the GIL held: for what no loops or library calls are written."""
        operands = [self.operand(k) for k in range(len(self.in_avals))]
        self.lowering.by_reference(self.eqn, operands, [self.result(k) for k in range(len(self.out_avals))])

    # Programs inside.

    def subprogram(self, closed: ClosedJaxpr, inputs: Sequence[Storage], outputs: Sequence[Storage]) -> None:
        """Lower a jaxpr here. A result may have the memory of an argument: it is as if all were written at the end."""
        self.lowering.subprogram(closed, inputs, outputs)
