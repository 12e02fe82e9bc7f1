"""Vectorize: which loop of each nest becomes the vector loop, and where it stands.

Needs: indices simplified. Guarantees: roles only change from parallel or reduce to vector; parallel loops directly
inside one another may change places. LLVM's own vectorizer takes several milliseconds for each loop; here the choice is
a formula: the cost of the nest for each candidate, where contiguous accesses are shared by the lanes and others not.

    parallel j < 1000 {                             parallel i < 300 {
      parallel i < 300 {                      =>      vector j < 1000 {
        y[i*1000 + j] = x[i*1000 + j]                   y[i*1000 + j] = x[i*1000 + j]

Of loops that lanes could take at equal cost the innermost is taken. Measured: with lanes over the outermost,
log-sum-exps along rows took 3.7 ms instead of 1.4. What a reduction reads in its updates is priced as lanes read it:
64 means of 100 rows of a table, found by places that may be out of bounds, took 66 us by gathers, now 17.
"""

from __future__ import annotations

from collections.abc import Sequence

from pullback.loops.ir.affine import depends
from pullback.loops.ir.ir import If, Loop, Stmt, While
from pullback.loops.ir.vectors import vectorizable
from pullback.loops.ir.visit import statements
from pullback.loops.schedule.cost import START, cost, tree, updating, vector_of
from pullback.loops.schedule.space import around, extent_of


def vectorize(body: Sequence[Stmt]) -> tuple[Stmt, ...]:
    """The statements with a vector loop chosen in every nest that has one worth it."""
    return _block(body)[0]


def _block(body: Sequence[Stmt]) -> tuple[tuple[Stmt, ...], float]:
    """The statements with their loops vectorized, and what running them once costs."""
    result: list[Stmt] = []
    total = 0.0
    for stmt in body:
        match stmt:
            case Loop():
                stmt, price = _loop(stmt)
                total += price
            case If():
                then, a = _block(stmt.then)
                orelse, b = _block(stmt.orelse)
                stmt = If(stmt.cond, then, orelse)
                total += 1 + a + b
            case While():
                head, a = _block(stmt.body_cond)
                inner, b = _block(stmt.body)
                stmt = While(head, stmt.cond, inner)
                total += 16 * (a + b)
            case _:
                total += cost((stmt,))
        result.append(stmt)
    return tuple(result), total


def _chain(loop: Loop) -> list[Loop]:
    """`loop` and the parallel loops that stand alone in one another."""
    chain = [loop]
    while loop.role == "parallel" and len(loop.body) == 1:
        (inner,) = loop.body
        if not isinstance(inner, Loop) or inner.role != "parallel" or _reads_index(inner, chain):
            break
        chain.append(inner)
        loop = inner
    return chain


def _reads_index(loop: Loop, chain: Sequence[Loop]) -> bool:
    """Whether the extent is not the same in all iterations around it."""
    return depends(loop.extent, {outer.var for outer in chain}, {})


def _loop(loop: Loop) -> tuple[Loop, float]:
    """The loop with the best choice inside it, and its cost."""
    if loop.role == "vector":
        return loop, extent_of(loop) * cost(loop.body)
    if loop.role == "threads":
        body, price = _block(loop.body)
        return Loop(loop.var, loop.extent, loop.role, body, loop.carried, loop.attrs), extent_of(loop) * price
    if loop.role == "scan":
        return loop, cost((loop,))
    chain = _chain(loop)
    inner, price = _block(chain[-1].body)
    updates = cost((Loop(chain[-1].var, chain[-1].extent, "sequential", (), chain[-1].carried),)) if loop.carried else 0
    trips = 1
    for each in chain:
        trips *= extent_of(each)
    best, best_price = -1, trips * (price + 0.5) + updates
    # Whoever wrote a vector loop inside has chosen.
    chosen_inside = any(isinstance(stmt, Loop) and stmt.role == "vector" for stmt in statements(chain[-1].body))
    if loop.role in ("parallel", "reduce") and not chosen_inside:
        # Of equals the innermost: its neighbours are nearest in memory, and threads take the outer ones.
        for k, candidate in reversed(list(enumerate(chain))):
            extent = extent_of(candidate)
            if extent < 2 or not vectorizable(candidate):
                continue
            vector = vector_of(candidate)
            own = trips * (cost(chain[-1].body, vector) + (updating(loop, vector) if loop.carried else 0))
            own += (trips / extent) * (START + tree(loop))
            if own < best_price:
                best, best_price = k, own
    if best < 0:
        return around(chain, inner), best_price
    body = chain[-1].body
    chosen = chain.pop(best)
    vector_loop = Loop(chosen.var, chosen.extent, "vector", (), chosen.carried, chosen.attrs)
    return around([*chain, vector_loop], body), best_price
