"""Streamed loops: their stores are non-temporal (past the caches), in whole lines. And rows, whose usual stores are
whole lines, too.

A streamed store does not read its line first, and leaves the caches to others; it has to begin a line. So the vectors
from the first line on are stored so, then the first and the last one as usual: iterations may be repeated. Where lines
of several results do not begin together, all is stored as usual; that is known only when the loop runs.

    y[i] = f(x[i]), i < n    =>    k = elements to the first line
                                   if lines begin together: for i = k; i + L <= n; i += L: store past the caches
                                   for i = 0; i < (together ? 2 L : n); i += L: store at min(together ? i n : i, n - L)

The body is written twice, not for each of the four cases: exp of a large array is compiled in 0.7 of the time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pullback.loops.ir.affine import depends, summands
from pullback.loops.ir.ir import Loop, Read, Store, Var
from pullback.loops.ir.types import ITEMSIZE
from pullback.loops.ir.visit import bound, statements

from .functions import FunctionEmitter
from .lanes import operations
from .types import LINE
from .values import Asm

LEAST_STREAMED = 8  # vectors, below which finding the first line is not worth it
LEAST_OF_ROW = 4  # vectors of a row, of which one is repeated
CACHED_BYTES = 1 << 17  # bytes of rows that are in a cache: those of a few partial results
CHEAP_OPS = 6  # operations of a loop that waits for its stores


def streamed(to: FunctionEmitter, loop: Loop, n: str, lanes: int, plain: Callable[[], None]) -> None:
    """The loop of at least `lanes` iterations with its contiguous stores past the caches, `plain()` if it has none."""
    code, ev = to.code, to.eval
    stores = _contiguous(to, loop, lanes)
    if not stores:
        plain()
        return
    places = _places(to, loop, stores, lanes)
    first = _first_line(to, stores[0], places[0])
    together = _together(to, first, stores, places)
    if n[0] == "%":
        enough = code.inst(f"icmp sge i64 {n}, {LEAST_STREAMED * lanes}", n)
        together = code.inst(f"and i1 {together}, {enough}", together, enough)
    last = str(int(n) - lanes) if n[0] != "%" else code.inst(f"sub i64 {n}, {lanes}", n)

    def vector(i: str, _: list) -> list:
        to.instance(loop, i, lanes)
        to.block(loop.body)
        ev.vector = None
        return []

    def past() -> None:
        ev.streamed = frozenset(store.buffer for store in stores)
        end = code.inst(f"add i64 {last}, 1", last)
        to.counted(loop, first, end, lanes, [], vector)
        ev.streamed = frozenset()
        code.declare("declare void @llvm.x86.sse.sfence()")
        code.line("  call void @llvm.x86.sse.sfence()")  # before another thread is told that they are there

    to.branch(together, past, lambda: None)
    end = code.inst(f"select i1 {together}, i64 {2 * lanes}, i64 {n}", together, n)
    step = code.inst(f"select i1 {together}, i64 {n}, i64 1", together, n)

    def usual(i: str, _: list) -> list:
        at = code.inst(f"mul i64 {i}, {step}", i, step)
        return vector(Asm(code, 1).call("llvm.smin", "i64", at, last), [])

    to.counted(loop, "0", end, lanes, [], usual, some=True)


def row_start(to: FunctionEmitter, loop: Loop, n: int, lanes: int) -> str | None:
    """Where the vectors of a row of n begin, so that its contiguous stores are whole lines: the first line's place less
    `lanes`, or 0 where the row begins a line; None if that is nothing to gain.

    A store across two lines takes twice what one of a line takes, where lines come from afar. Measured: x + r, 4000
    rows of 210, took 190 us, now 140 (JAX 135); 2000 rows of 777 340, now 250 (JAX 270).
    """
    if n < LEAST_OF_ROW * lanes or operations((loop,)) > CHEAP_OPS or not (stores := _contiguous(to, loop, lanes)):
        return None
    ragged = [n * ITEMSIZE[store.buffer.dtype] % LINE for store in stores]
    moved = [_is_moved(store, loop) for store in stores]
    if not all(ragged) or not all(moved):
        return None
    if all(store.buffer.space == "temporary" and _bytes(store) <= CACHED_BYTES for store in stores):
        return None
    code = to.code
    first = _first_line(to, stores[0], *_places(to, loop, stores[:1], lanes))
    whole = code.inst(f"icmp eq i64 {first}, 0", first)
    return code.inst(f"select i1 {whole}, i64 0, i64 {code.inst(f'sub i64 {first}, {lanes}', first)}", whole, first)


def _bytes(store: Store) -> int:
    return store.buffer.size * ITEMSIZE[store.buffer.dtype]


def _is_moved(store: Store, loop: Loop) -> bool:
    """Whether a store's first place is another in each run of a loop: a row of many."""
    return any(not isinstance(term, Read) or term.var is not loop.var for term, _ in summands(store.index)[0])


def _places(to: FunctionEmitter, loop: Loop, stores: Sequence[Store], lanes: int) -> list[str]:
    """Where the first iteration stores."""
    to.instance(loop, "0", lanes)
    to.eval.begin([store.index for store in stores])
    places = [to.code.inst(f"ptrtoint ptr {p} to i64", p) for p in (to.eval.address(s.buffer, s.index) for s in stores)]
    to.eval.vector = None
    return places


def _first_line(to: FunctionEmitter, store: Store, place: str) -> str:
    """The iteration at which a store begins a line."""
    rest = to.code.inst(f"sub i64 0, {place}", place)
    rest = to.code.inst(f"and i64 {rest}, {LINE - 1}", rest)
    return to.code.inst(f"lshr i64 {rest}, {ITEMSIZE[store.buffer.dtype].bit_length() - 1}", rest)


def _together(to: FunctionEmitter, first: str, stores: Sequence[Store], places: Sequence[str]) -> str:
    """Whether all stores begin lines at the iteration `first`."""
    code, apart = to.code, ""
    for place, store in zip(places, stores):
        skipped = code.inst(f"mul i64 {first}, {ITEMSIZE[store.buffer.dtype]}", first)
        at = code.inst(f"add i64 {place}, {skipped}", place, skipped)
        apart = code.inst(f"or i64 {at}, {apart}", at, apart) if apart else at
    apart = code.inst(f"and i64 {apart}, {LINE - 1}", apart)
    return code.inst(f"icmp eq i64 {apart}, 0", apart)


def _contiguous(to: FunctionEmitter, loop: Loop, lanes: int) -> list[Store]:
    """The stores of whole lines that the body itself makes, at places that are known before the loop."""
    to.instance(loop, "0", lanes)
    vector = to.eval.vector
    assert vector is not None
    inside: set[Var] = {v for stmt in loop.body for v in bound(stmt)}
    found = [
        stmt
        for stmt in loop.body
        if isinstance(stmt, Store)
        and vector.stride(stmt.index) == 1
        and lanes * ITEMSIZE[stmt.buffer.dtype] % LINE == 0
        and not depends(stmt.index, inside, {})
    ]
    to.eval.vector = None
    others = {s.buffer for s in statements(loop.body) if isinstance(s, Store) and s not in found}
    return [store for store in found if store.buffer not in others and store.buffer.space != "local"]
