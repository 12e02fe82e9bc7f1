"""Forms of nests by themselves, whatever they cost and without lanes and threads."""

from pullback.loops.ir import Function
from pullback.loops.ir.fresh import Fresh
from pullback.loops.ir.visit import loaded, stored, with_nests
from pullback.loops.schedule.apply.tile import tile
from pullback.loops.schedule.apply.vectorize import vectorize
from pullback.loops.schedule.space import chain_of


def in_form(form, function):
    """The function with `form` (of new names and a chain of loops) of each nest; itself if no nest has it."""
    new, found = Fresh("t", function), []

    def nest(loop):
        chain = chain_of(loop) if loop.role == "parallel" else None
        known = None if chain is None else form(new, chain)
        found.append(known is not None)
        return [loop] if known is None else known.build()

    body = with_nests(function.body, nest)
    if not any(found):
        return function
    used = loaded(body) | stored(body)
    kept = [b for b in function.buffers if b.space != "local" or b in used]
    return Function(function.name, (*kept, *(b for b in new.buffers if b in used)), body)


def vectorized(function):
    """The function with lanes."""
    return Function(function.name, function.buffers, vectorize(function.body))


def tiled(function):
    """The function, which has lanes, with tiles."""
    new = Fresh("t", function)
    body = tile(new, function.body)
    return Function(function.name, (*function.buffers, *new.buffers), body)
