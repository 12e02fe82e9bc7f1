"""Drafts: code that LLVM makes without optimizations, in half the time, for programs that may not run for long.

What is called is a function of a few instructions (FRONT_TEXT), the same for all drafts: it runs the better code, if
that is there, else the draft, and adds up how long the program has run. When that comes to about as long as the better
code takes to make, it has it made (improve.py). So a program that runs a few times never waits for optimizations, and
one that runs often has them.

Whoever compiles has to say how long one run is expected to take: what runs once, and for long, is not drafted.

A draft computes the same bits: what is rounded when, the text says (ops.py).

Not the default: the first calls of 39 programs took 0.84 of the time, the 20 that followed 1.18 (one 3.9).

Measured (Xeon, AVX-512, 68 programs): code generation takes 0.54 of the time in the geometric mean, and compilation
0.82. Drafts run 1.1 times as long as better code, sums that stay in registers up to twice, a triangular solve 4 times.
"""

from __future__ import annotations

import re

from .cpu.target import Target
from .improve import BETTER, DRAFT, IMPROVE, LEFT, NEVER, START, TABLE, WAIT, cost
from .module import QUICK
from .symbols import ENTRY, SLOTS

# A function with more lines might need too much of a stack: values that go there share no places in a draft. (Those of
# 11,000 and of 2,000 lines took 50 KB.)
MOST_LINES = 1 << 14

_DEFINED = re.compile(r"\n(?=define )")


def is_plain(text: str) -> bool:
    """Whether LLVM would optimize no function of a module, so that a draft is all that there can be."""
    return text.count("\ndefine ") == text.count(f" {QUICK} ")


def suits(text: str, target: Target, run: float) -> bool:
    """Whether a module should be drafted, one run of which is expected to take `run` nanoseconds."""
    if not target.triple.startswith("x86_64") or run > cost(text.count("\n")):
        return False
    if "@llvm.x86.t" in text:  # instructions on tiles
        return False
    if "fmul contract" in text and not target.features:  # LLVM may know of fma, and fuses where it optimizes
        return False
    return all(function.count("\n") < MOST_LINES for function in _DEFINED.split(text))


def _at(slot: str) -> str:
    return f"getelementptr (i64, ptr @{SLOTS}, i64 {TABLE.index(slot)})"


_GIVEN = "(ptr %inputs, ptr %outputs, ptr %arena)"
FRONT_TEXT = f"""
@{SLOTS} = global [{len(TABLE)} x ptr] zeroinitializer, align 8
declare i64 @llvm.readcyclecounter()
define i32 @{ENTRY}{_GIVEN} nounwind {{
  %better = load atomic ptr, ptr {_at(BETTER)} acquire, align 8
  %none = icmp eq ptr %better, null
  br i1 %none, label %first, label %go
go:
  %b = tail call i32 %better{_GIVEN}
  ret i32 %b
first:
  %draft = load ptr, ptr {_at(DRAFT)}
  %wait = load i64, ptr {_at(WAIT)}
  %less = add i64 %wait, -1
  store i64 %less, ptr {_at(WAIT)}
  %timed = icmp slt i64 %less, 0
  br i1 %timed, label %time, label %run
run:
  %r = tail call i32 %draft{_GIVEN}
  ret i32 %r
time:  ; of short calls one in 16
  %begin = call i64 @llvm.readcyclecounter()
  %t = call i32 %draft{_GIVEN}
  %end = call i64 @llvm.readcyclecounter()
  %took = sub i64 %end, %begin
  %short = icmp ult i64 %took, 50000
  %next = select i1 %short, i64 15, i64 0
  store i64 %next, ptr {_at(WAIT)}
  %calls = add i64 %next, 1
  %spent = mul i64 %took, %calls
  %left = load i64, ptr {_at(LEFT)}
  %rest = sub i64 %left, %spent
  store i64 %rest, ptr {_at(LEFT)}
  %out = icmp slt i64 %rest, 0
  br i1 %out, label %ask, label %done
ask:
  %start = load ptr, ptr {_at(START)}
  %improve = load ptr, ptr {_at(IMPROVE)}
  %thread = alloca i64
  %failed = call i32 %start(ptr %thread, ptr null, ptr %improve, ptr @{SLOTS})
  %started = icmp eq i32 %failed, 0
  %then = select i1 %started, i64 {NEVER}, i64 0
  store i64 %then, ptr {_at(LEFT)}
  br label %done
done:
  ret i32 %t
}}
"""

__all__ = ["FRONT_TEXT", "is_plain", "suits"]
