"""Reorder: a nest that only walks down each column goes row by row instead; what it knows of a column is read again.

    parallel j < 1000 {                          parallel r < 500 {
      let m = mean[j]                              parallel j < 1000 {
      parallel r < 500 {                   =>        let m = mean[j]
        y[r*1000+j] = x[r*1000+j] - m                y[r*1000+j] = x[r*1000+j] - m
      }                                            }
    }                                            }

Needs: iterations that never meet (parallel loops). Guarantees: the same values.
"""

from __future__ import annotations

from collections.abc import Sequence

from pullback.loops.ir.fresh import Fresh
from pullback.loops.ir.ir import Const, Let, Loop
from pullback.loops.ir.visit import Substitute, loaded, stored
from pullback.loops.schedule.sketch import Form
from pullback.loops.schedule.space import around


def rows_first(new: Fresh, chain: Sequence[Loop]) -> Form | None:
    """The nest with the loop inside of the last of `chain` outside of it; None if it has more than that in it."""
    column = chain[-1]
    *lets, loop = column.body
    if not lets or not all(isinstance(stmt, Let) for stmt in lets):
        return None
    if not isinstance(loop, Loop) or loop.role != "parallel" or loop.attrs or not isinstance(loop.extent, Const):
        return None
    if loaded(lets) & stored(loop.body) or any(b.space == "local" for b in loaded((column,)) | stored((column,))):
        return None
    row = Loop(loop.var, loop.extent, "parallel", ())
    nest = around([*chain[:-1], row, column], (*lets, *loop.body))
    return Form(lambda: list(Substitute({}, new.var).block((nest,))))
