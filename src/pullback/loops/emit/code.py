"""The text of one LLVM function, written with common subexpressions found and loop invariants hoisted on the way.

Instructions are appended to the innermost *scope* (function, loop body, branch) that their operands need: an
instruction all of whose operands come from outside a loop goes in front of that loop, and a second instruction with the
same text is the first one. This is what early-cse, gvn and licm would do, without their time: the emitter knows at once
that buffers do not overlap and which loops write what.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from typing import Union

Line = Union[str, list["Line"]]


class Scope:
    """A region of code: `lines` so far, and `ahead`, the place in front of it in the scope around it."""

    __slots__ = ("ahead", "barrier", "lines", "memo", "skippable", "writes")

    def __init__(self, lines: list[Line], ahead: list[Line], barrier: bool, skippable: bool, writes: Set) -> None:
        self.lines = lines
        self.ahead = ahead
        self.barrier = barrier  # nothing moves out: a branch, whose code would run although not taken
        self.skippable = skippable  # loads do not move out: a loop that may not run at all
        self.writes = writes  # buffers written by later iterations
        self.memo: dict[str, str] = {}


CALLS = 32  # in one block


class Code:
    """Writes one function; references are LLVM value names or constants as text."""

    def __init__(
        self,
        converts_halves: bool = True,
        looks_up: int = 0,
        dots_pairs: bool = False,
        multiplies_tiles: bool = False,
        fuses: bool = False,
        picks: int = 0,
        mask_bits: int = 0,
    ) -> None:
        self.converts_halves = converts_halves  # the CPU has instructions for it
        self.looks_up = looks_up  # entries of the tables that one instruction looks up
        self.dots_pairs = dots_pairs  # the same
        self.multiplies_tiles = multiplies_tiles  # the same
        self.fuses = fuses  # the same: products and sums rounded once
        self.picks = picks  # bytes of the smallest elements that one instruction picks from two registers
        self.mask_bits = mask_bits  # of a vector register, if there are none for masks
        self.masks: dict[str, tuple[str, str]] = {}  # integers as wide as what was compared, and such a mask if written
        self.terms: dict[str, tuple[str, str]] = {}  # factors of products that sums take in unrounded
        lines: list[Line] = []
        self.entry: list[Line] = []  # allocas
        self.scopes = [Scope(lines, lines, True, True, frozenset())]
        self.level: dict[str, int] = {}  # scope depth of each value; constants are not in here: 0
        self.block = "entry"  # label of the block being written
        self.declarations: dict[str, str] = {}
        self._count = 0
        self._never = ""  # a byte on the stack that is zero
        self._calls = 0  # of functions, since the last label

    # Names and raw lines.

    def fresh(self, hint: str = "v") -> str:
        self._count += 1
        return f"%{hint}.{self._count}"

    def line(self, text: str) -> None:
        """A line at the current place: terminators, stores, calls."""
        self.scopes[-1].lines.append(text)

    def label(self, name: str) -> None:
        """Starts the block `name` (without %)."""
        self.scopes[-1].lines.append(f"{name}:")
        self.block = name
        self._calls = 0

    def here(self, text: str, hint: str = "v") -> str:
        """An instruction with a result that stays at its place."""
        name = self.fresh(hint)
        self.scopes[-1].lines.append(f"  {name} = {text}")
        self.level[name] = len(self.scopes) - 1
        return name

    def define(self, name: str) -> str:
        """States that `name` is a value of the current scope (a phi, a parameter)."""
        self.level[name] = len(self.scopes) - 1
        return name

    def leave(self, names: Iterable[str]) -> None:
        """States that values of a loop that has been closed are read after it, as they are in its last iteration."""
        top = len(self.scopes) - 1
        for name in names:
            if self.level.get(name, 0) > top:
                self.level[name] = top

    def part(self) -> None:
        """Ends the block being written by a branch that LLVM does not know to be always taken."""
        if not self._never:
            self._never = self.fresh("never")
            self.entry += [f"  {self._never} = alloca i8", f"  store volatile i8 0, ptr {self._never}"]
            self.declare("declare void @llvm.trap()")
        number = self.fresh("").strip("%.")
        never = self.here(f"load volatile i8, ptr {self._never}")
        goes_on = self.here(f"icmp eq i8 {never}, 0")
        self.line(f"  br i1 {goes_on}, label %part.{number}, label %never.{number}")
        self.line(f"never.{number}:")
        self.line("  call void @llvm.trap()")
        self.line("  unreachable")
        self.label(f"part.{number}")

    def called(self) -> None:
        """Ends the block after many calls: LLVM takes a time for them that grows with their square (`parts`).

        Measured: code generation of 1,000 exponentials of complex numbers took 2.4 s, now 0.5.
        """
        self._calls += 1
        if self._calls >= CALLS:
            self.part()

    # Pure instructions.

    def inst(self, text: str, *operands: str) -> str:
        """A pure instruction, placed as far out as its operands allow; found again if it was written before."""
        level = self.level
        depth = 0
        for operand in operands:
            at = level.get(operand, 0)
            if at > depth:
                depth = at
        return self._place(text, text, depth, depth)

    def load(self, text: str, key: str, buffer: object, *operands: str) -> str:
        """A load: as `inst`, but it stays inside loops that write its buffer or may not run. `key` tells its memory."""
        lowest = max((self.level.get(operand, 0) for operand in operands), default=0)
        scopes = self.scopes
        depth = None
        for d in range(len(scopes) - 1, lowest, -1):
            if depth is None and scopes[d].skippable:
                depth = d
            if buffer in scopes[d].writes:
                lowest = d
                break
        return self._place(text, key, lowest, lowest if depth is None else depth)

    def unseen(self, kind: str, name: str, value: str, *operands: str) -> str:
        """A constant that LLVM takes for a variable, read where these operands are; each name has one value."""
        self.declare(f"@{name} = private global {kind} {value}")
        text = f"load {kind}, ptr @{name}, !invariant.load !0"
        depth = self._allowed(max((self.level.get(operand, 0) for operand in operands), default=0))
        found = (scope.memo.get(text) for scope in self.scopes[: depth + 1])
        return next(filter(None, found), None) or self._written(text, text, depth)

    def _place(self, text: str, key: str, lowest: int, depth: int) -> str:
        """Finds the instruction in scope `lowest` or deeper; else writes it into scope `depth` or deeper."""
        scopes = self.scopes
        for scope in scopes[lowest:]:
            found = scope.memo.get(key)
            if found is not None:
                return found
        return self._written(text, key, self._allowed(depth))

    def _allowed(self, depth: int) -> int:
        """The outermost scope from `depth` on that instructions may move to."""
        for d in range(len(self.scopes) - 1, depth, -1):
            if self.scopes[d].barrier:
                return d
        return depth

    def _written(self, text: str, key: str, depth: int) -> str:
        """Writes an instruction into a scope."""
        scopes, top = self.scopes, len(self.scopes) - 1
        self._count += 1
        name = f"%v.{self._count}"
        (scopes[depth].lines if depth == top else scopes[depth + 1].ahead).append(f"  {name} = {text}")
        scopes[depth].memo[key] = name
        self.level[name] = depth
        return name

    def intrinsic(self, name: str, result: str, *args: tuple[str, str]) -> str:
        """A pure call of an LLVM intrinsic with (type, value) arguments."""
        self.declare(f"declare {result} @{name}({', '.join(kind for kind, _ in args)})")
        text = f"call {result} @{name}({', '.join(f'{kind} {value}' for kind, value in args)})"
        return self.inst(text, *(value for _, value in args))

    def declare(self, text: str) -> None:
        self.declarations[text] = text

    # Scopes.

    def open_loop(self, writes: Set, skippable: bool = False) -> None:
        """Begins the scope of a loop: its lines start with the branch into it, so that `ahead` stands before that."""
        ahead: list[Line] = []
        lines: list[Line] = []
        self.scopes[-1].lines += [ahead, lines]
        self.scopes.append(Scope(lines, ahead, False, skippable, writes))

    def open_branch(self) -> None:
        """Begins the scope of a conditional branch."""
        lines: list[Line] = []
        self.scopes[-1].lines.append(lines)
        self.scopes.append(Scope(lines, lines, True, True, frozenset()))

    def close(self) -> None:
        self.scopes.pop()

    def text(self) -> str:
        """All lines in order."""
        out: list[str] = []
        stack: list[Line] = [self.scopes[0].lines, self.entry]
        while stack:
            item = stack.pop()
            if isinstance(item, str):
                out.append(item)
            else:
                stack.extend(reversed(item))
        return "\n".join(out)
