"""Writing loops over index spaces, for the lowering rules that emit statements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any


def loops(b: Any, shape: Sequence[int], body: Callable[[tuple[Any, ...]], None], role: str = "parallel") -> None:
    """`body(index)` inside loops over `shape`, the last dimension innermost; dimensions of size 1 have no loop."""
    with ExitStack() as stack:
        index = tuple(b.const("i64", 0) if n == 1 else stack.enter_context(b.loop(n, role)) for n in shape)
        body(index)


def copy_into(ctx: Any, source: Any, target: Any, offset: Sequence[int] | None = None) -> None:
    """target[i] = source[i + offset] for all i of the target."""
    b = ctx.b

    def body(index):
        place = index if offset is None else tuple(b.op("add", i, o) if o else i for i, o in zip(index, offset))
        ctx.store(target, index, ctx.load(source, place))

    loops(b, target.shape, body)
