"""Instructions on tiles as LLVM writes them: intrinsics whose tiles are numbered by constants."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pullback.loops.ir.ir import Address, Call, Const
from pullback.loops.ir.tiles import DOTS, INSTRUCTIONS

if TYPE_CHECKING:
    from ..code import Code
    from ..evaluate import Evaluator


def emit_instruction(ev: Evaluator, code: Code, stmt: Call) -> None:
    """A call of one of INSTRUCTIONS; NotImplementedError where the CPU has none."""
    if not code.multiplies_tiles:
        raise NotImplementedError(f"emit: {stmt.symbol} is for CPUs with AMX (Target.multiplies_tiles)")
    if stmt.symbol == "tile_shapes":
        held = code.fresh("shapes")
        code.entry.append(f"  {held} = alloca [8 x i64], align 64")
        for k, arg in enumerate(stmt.args):
            place = code.fresh("word")
            assert not isinstance(arg, Address)
            code.line(f"  {place} = getelementptr i64, ptr {held}, i64 {k}")
            code.line(f"  store i64 {ev.scalar(arg).ref}, ptr {place}")
        code.declare("declare void @llvm.x86.ldtilecfg(ptr)")
        code.line(f"  call void @llvm.x86.ldtilecfg(ptr {held})")
        return
    args = []
    for arg in stmt.args:
        if isinstance(arg, Address):
            args.append(("ptr", ev.address(arg.buffer, arg.offset)))
        elif isinstance(arg, Const) and len(args) < (3 if stmt.symbol.removeprefix("tile_dot_") in DOTS else 1):
            args.append(("i8", str(int(arg.value))))
        else:
            args.append(("i64", ev.scalar(arg).ref))
    name = f"llvm.x86.{INSTRUCTIONS[stmt.symbol]}"
    kinds = ", ".join(f"{kind} immarg" if kind == "i8" else kind for kind, _ in args)
    code.declare(f"declare void @{name}({kinds})")
    code.line(f"  call void @{name}({', '.join(f'{kind} {ref}' for kind, ref in args)})")


__all__ = ["emit_instruction"]
