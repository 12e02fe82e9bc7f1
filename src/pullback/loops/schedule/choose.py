"""Choose: for each nest the forms that are legal, each as it would run, and the one that is expected to take least.

A form is a way to rewrite a nest (`apply/`), and nothing there chooses; lanes, tiles and threads come to each nest that
a form consists of. A nest of several loops may also be cut into runs of them, where that is cheapest (by dynamic
programming: the least price of what follows a cut is asked for once), each run in its own best form. All prices are
those of one machine, NOMINAL: forms differ in the order of additions, and results must not depend on where they run.

A nest that is expected to take little more than its operations in lanes is left as it is written, and other forms are
not looked at. Choices are remembered by the nest's key. `as_text("schedule")` shows them; PULLBACK_SKIP=<form> leaves
one out, PULLBACK_FORM=<form> takes it wherever it is possible.

Measured: 57 computations in 245 spellings beside passes that each decided by sizes of their own: 1.015 times their time
in the geometric mean, 0.5 to 0.75 for what they had missed (log-sum-exps of short rows, or from a softmax).
"""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial

from pullback.loops.ir.fresh import Fresh
from pullback.loops.ir.ir import Function, Let, Loop, Run, Stmt, Store, While
from pullback.loops.ir.key import part_key
from pullback.loops.ir.visit import loads, local_uses, shares_locals, statements, stores, with_blocks
from pullback.loops.schedule.apply.across import across
from pullback.loops.schedule.apply.blocks import blocks
from pullback.loops.schedule.apply.columns import columns, folded
from pullback.loops.schedule.apply.fission import MAX_UNITS, Fission
from pullback.loops.schedule.apply.parallelize import parallelize
from pullback.loops.schedule.apply.reorder import rows_first
from pullback.loops.schedule.apply.strips import short_rows, strips
from pullback.loops.schedule.apply.tile import tile
from pullback.loops.schedule.apply.vectorize import vectorize
from pullback.util.digest import digest_of
from pullback.util.record import NamedTuple, frozen_record
from pullback.util.switches import switches

from .cost import cost, nanoseconds
from .machine import NOMINAL
from .price import Price, Touched, between, least, price, touched
from .sketch import Form
from .space import UNKNOWN_EXTENT, chain_of, extent_of


class Kind(NamedTuple):
    """A kind of form, and what finds it in a nest."""

    name: str
    why: str
    of: Callable[[Fresh, Sequence[Loop]], Form | None]


OF_ONE_LOOP = (
    Kind("rows_first", "a loop down each column goes row by row", rows_first),
    Kind("columns", "a reduction down columns reads row by row, in pieces that threads share", columns),
    Kind("folded", "the same for few columns, several rows side by side", folded),
)
OF_SEVERAL = (
    Kind("short_rows", "a row in each lane, where rows are shorter than the lanes or hardly longer", short_rows),
    Kind("across", "results that each reduce a row of their own lie in lanes, their rows copied for that", across),
    Kind("blocks", "loops along rows take a block of rows each, and what is between them is in lanes", blocks),
    Kind("strips", "loops down the same columns take a strip of them at a time, row by row", strips),
)
FORMS: tuple[Kind, ...] = OF_ONE_LOOP + OF_SEVERAL
FISSION = "fission"  # each run of the loops of a nest by itself
WRITTEN = "written"  # as it is

GAIN = 1.05  # times faster that a form must be: prices differ from times by more
# What a form must be able to save in one run of the program: to price it takes about half a millisecond, and programs
# are taken to run some hundred times.
EFFORT_NS = 5_000.0
# Statements of a nest that are priced in that time, about; longer ones take longer. The gradient of a network that is
# written out for 200 steps, whose weights' share is one nest of 3,600 statements, took 530 ms to schedule, now 90.
PRICED = 200
LONGEST = 2  # units that a part of a cut nest has: each run of so many is priced
REMEMBERED = 4096  # choices


@frozen_record
class Choice:
    """What became of a nest: the form, those of its parts, and what is expected of it and of the others."""

    form: str
    price: Price
    parts: tuple[Choice, ...] = ()
    cuts: tuple[int, ...] = ()  # of fission: the units at which its parts begin
    others: tuple[Choice, ...] = ()

    @property
    def ns(self) -> float:
        """What it is expected to take."""
        return self.price.total


class Found(NamedTuple):
    """A form of a nest as it would run."""

    build: Callable[[], list[Stmt]]
    choice: Choice


class Nest(NamedTuple):
    """What `schedule` made of a nest; its key is the same in every process. It runs `trips` times in each run of the
    function or kernel of that name.
    """

    key: str
    choice: Choice
    body: list[Stmt]
    function: str
    trips: int


@dataclass
class Watch:
    """What `schedule` chose, nest after nest, how often kernels run, and what is between the nests, in ns."""

    nests: list[Nest] = field(default_factory=list)
    runs: Counter[str] = field(default_factory=Counter)
    between: float = 0.0


_known: dict[Hashable, Choice] = {}  # by the nest's key and the forms that were left out
_local = threading.local()  # the Watch of a thread that asks


def _watch() -> Watch | None:
    return getattr(_local, "watch", None)


@contextmanager
def watching() -> Iterator[Watch]:
    """What is chosen meanwhile, every form priced."""
    before, watch = _watch(), Watch()
    _local.watch = watch
    try:
        yield watch
    finally:
        _local.watch = before


def schedule(function: Function) -> Function:
    """The function with each nest in the form that is expected to take least."""
    chooser = _Chooser(function)
    body = chooser.block(function.body, 1)
    mentioned = {buffer for stmt in statements(body) for buffer in loads(stmt) | stores(stmt)}
    added = tuple(buffer for buffer in chooser.new.buffers if buffer in mentioned)
    return Function(function.name, (*function.buffers, *added), body)


class _Chooser:
    def __init__(self, function: Function) -> None:
        self.name = function.name
        self.watch = _watch()
        self.new = Fresh("s", function)
        self.locals = local_uses(function.body)

    def block(self, body: Sequence[Stmt], trips: int) -> tuple[Stmt, ...]:
        """The statements, which run `trips` times, with what takes the place of their nests."""
        result: list[Stmt] = []
        for stmt in body:
            if isinstance(stmt, Loop) and stmt.role != "sequential":
                result += self.nest(stmt, trips)
                continue
            again = trips * (extent_of(stmt) if isinstance(stmt, Loop) else 1)
            again *= UNKNOWN_EXTENT if isinstance(stmt, While) else 1
            result.append(with_blocks(stmt, self.block, again))
            if isinstance(stmt, Run) and self.watch is not None:
                self.watch.runs[stmt.kernel.name] += trips
            elif isinstance(stmt, (Let, Store)) and self.watch is not None:
                self.watch.between += trips * NOMINAL.op_ns * cost((stmt,))
        return tuple(result)

    def nest(self, loop: Loop, trips: int) -> list[Stmt]:
        """What takes the place of a nest."""
        shared = shares_locals(loop, self.locals)  # scratch space of one thread, which others could not see
        chain = chain_of(loop) if loop.role == "parallel" and not shared else None
        if chain is None:
            body = self.walked(loop, shared)
            choice = Choice(WRITTEN, self.priced(body) if self.watch is not None else Price())
        else:
            best = self.best(chain, trips)
            body, choice = best.build(), best.choice
        if self.watch is not None:
            self.watch.nests.append(Nest(_digest(loop), choice, body, self.name, trips))
        return body

    def best(self, chain: Sequence[Loop], trips: int) -> Found:
        """The cheapest form of a nest, or the one that is asked for."""
        nest = chain[0]
        asked = _asked(nest)
        every = self.watch is not None or asked != ""
        if not every and trips * nanoseconds((nest,)) < EFFORT_NS:  # in scalar operations, so it takes less
            body = self.walked(nest)
            return Found(lambda: body, Choice(WRITTEN, Price()))
        written = self.written(nest)
        if asked == WRITTEN:
            return written
        effort = EFFORT_NS * max(1.0, sum(1 for _ in statements((nest,))) / PRICED)
        worth = trips * (written.choice.ns - least(nest, NOMINAL)) / effort  # forms that may be looked at
        if not every and worth < 1:
            return written
        known_by = (_digest(nest), switches.skip, min(int(worth), LONGEST * MAX_UNITS))
        known = None if every else _known.get(known_by)
        if known is not None:
            return Found(lambda: self.formed(chain, known), known)
        candidates = [written, *self.forms(chain, OF_ONE_LOOP)]
        if FISSION not in switches.skip:
            candidates += self.cut(chain, math.inf if every else worth)
        candidates += self.forms(chain, OF_SEVERAL)
        best = next((x for x in candidates if x.choice.form == asked), None) or _cheapest(candidates)
        others = tuple(x.choice for x in candidates if x is not best)
        choice = replace(best.choice, others=others)
        if not every:
            if len(_known) >= REMEMBERED:
                _known.clear()
            _known[known_by] = best.choice
        return Found(best.build, choice)

    def walked(self, loop: Stmt, shared: bool = False) -> list[Stmt]:
        """A nest with lanes, tiles and threads."""
        skip = switches.skip
        body: Sequence[Stmt] = (loop,)
        if "vectorize" not in skip:
            body = vectorize(body)
        if "tile" not in skip:
            body = tile(self.new, body)
        if "parallelize" not in skip and not shared:
            body = [s for stmt in body for s in (parallelize(self.new, stmt) if isinstance(stmt, Loop) else [stmt])]
        return list(body)

    def priced(self, body: Sequence[Stmt], others: Sequence[Touched] = (), in_turns: float | None = None) -> Price:
        """What statements are expected to take, among others that run before them in turns."""
        if len(body) + len(others) == 1:
            return price(body[0], NOMINAL, in_turns=in_turns)
        parts = [*(touched(stmt, NOMINAL) for stmt in body), *others]
        prices = (price(stmt, NOMINAL, between(parts, k), in_turns) for k, stmt in enumerate(body))
        return sum(prices, start=Price())

    def written(self, loop: Loop, others: Sequence[Touched] = ()) -> Found:
        """A nest as it is written."""
        body = self.walked(loop)
        return Found(lambda: body, Choice(WRITTEN, self.priced(body, others)))

    def forms(
        self, chain: Sequence[Loop], kinds: Sequence[Kind] = FORMS, others: Sequence[Touched] = ()
    ) -> Iterator[Found]:
        """The nest in each form of some kinds that it has."""
        for kind in kinds:
            form = None if kind.name in switches.skip else kind.of(self.new, chain)
            if form is None:
                continue
            if form.sketch is not None:
                yield Found(partial(self.built, form), Choice(kind.name, self.priced(form.sketch, others)))
            else:
                body = self.built(form)
                yield Found(partial(list, body), Choice(kind.name, self.priced(body, others, form.in_turns)))

    def built(self, form: Form) -> list[Stmt]:
        """What a form consists of, with lanes, tiles and threads."""
        return [s for stmt in form.build() for s in self.walked(stmt)]

    def cut(self, chain: Sequence[Loop], effort: float) -> Iterator[Found]:
        """The nest cut where that is cheapest; from the last unit on, so that each rest is looked at once."""
        fission = Fission(self.new, chain)
        count = len(fission.units)
        longest = LONGEST if effort >= LONGEST * count else 1
        if count < 2 or effort < count:
            return
        alone = [fission.nest(k, k + 1) for k in range(count)]
        units = [touched(nest, NOMINAL) for nest in alone]
        rest: dict[int, tuple[Price, list[Found], tuple[int, ...]]] = {count: (Price(), [], ())}
        for first in reversed(range(count)):
            options = []
            for last in range(first + 1, min(first + longest, count - (first == 0)) + 1):
                nest = chain_of(alone[first] if last == first + 1 else fission.nest(first, last))
                assert nest is not None
                others = (*units[last:], *units[:first])
                part = _cheapest([self.written(nest[0], others), *self.forms(nest, FORMS, others)])
                after, parts, cuts = rest[last]
                options.append((part.choice.price + after, [part, *parts], (first, *cuts)))
            rest[first] = min(options, key=lambda option: option[0].total)
        total, parts, cuts = rest[0]
        choice = Choice(FISSION, total, tuple(part.choice for part in parts), cuts)
        yield Found(lambda: [stmt for part in parts for stmt in part.build()], choice)

    def formed(self, chain: Sequence[Loop], choice: Choice) -> list[Stmt]:
        """The nest in a form that was chosen before."""
        if choice.form == WRITTEN:
            return self.walked(chain[0])
        if choice.form == FISSION:
            fission = Fission(self.new, chain)
            body: list[Stmt] = []
            for part, first, last in zip(choice.parts, choice.cuts, (*choice.cuts[1:], len(fission.units))):
                nest = chain_of(fission.nest(first, last))
                assert nest is not None
                body += self.formed(nest, part)
            return body
        form = next(kind for kind in FORMS if kind.name == choice.form).of(self.new, chain)
        assert form is not None, choice
        return self.built(form)


def _cheapest(candidates: Sequence[Found]) -> Found:
    """The first, which is the nest as it is written, unless another is cheaper by more than prices can tell."""
    written, *others = candidates
    best = min(others, key=lambda other: other.choice.ns, default=written)
    return best if best.choice.ns * GAIN < written.choice.ns else written


def form_text(forms: Mapping[str, str]) -> str:
    """Forms of nests by their keys, as `PULLBACK_FORM` has them."""
    return ",".join(f"{key}={form}" for key, form in sorted(forms.items()))


def _asked(nest: Loop) -> str:
    """The form that is asked for of a nest, or of all; "" for none. ValueError for what is no form."""
    if "=" not in switches.form:
        names = [WRITTEN, FISSION, *(kind.name for kind in FORMS)]
        if switches.form and switches.form not in names:
            raise ValueError(f"PULLBACK_FORM={switches.form!r}: expected one of {', '.join(names)}")
        return switches.form
    wanted = dict(each.split("=", 1) for each in switches.form.split(","))
    return wanted.get(_digest(nest), "")


def _digest(nest: Loop) -> str:
    """A short name of a nest, the same in every process."""
    return digest_of(repr(part_key((nest,))[0]).encode()).hexdigest()[:16]
