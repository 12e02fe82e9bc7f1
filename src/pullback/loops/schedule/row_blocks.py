"""Row blocks (tile and fuse): a product and the nests that go through its result share one loop of threads over blocks
of rows.

The rows of a result then wait in the cache for what comes next, and have no place in memory where nothing else reads
them. What joins: products (loops with the attr ROWS), nests whose outermost loop goes over the same rows, and a
contraction of those rows with a few others, at the end (the attr SUMS).

Needs: loop IR as it comes from lowering. Guarantees: the same statements on each row; sums over rows are made of blocks
that depend on the extents alone. What does not belong to a block of rows goes before it, which changes how long
temporaries live: it comes before the arena is planned.

    threads p < 16 {rows=11600} {                       threads c < 242 {
      let first = p*728                                   let first = c*48; let count = 48
      let count = 728                                     call product(count, &x[first*114], &w[0], &h[0])
      call product(count, &x[first*114], &w[0],    =>     parallel i < count { parallel j < 114 {
                   &y[first*114])                           y[(first + i)*114 + j] = tanh(h[i*114 + j])
    }                                                     } }
    parallel i < 11600 { parallel j < 114 {             }
      y[i*114 + j] = tanh(y[i*114 + j])
    } }

Measured: an iteration of PLN moves 85 MB instead of 112, and takes 0.6 to 1 of some 12.5 ms of processor time less.
Results of less than a megabyte stay in the cache anyway.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import field

from pullback.loops.ir.affine import Interval, depends, interval, terms
from pullback.loops.ir.fold import const, make
from pullback.loops.ir.fresh import Fresh
from pullback.loops.ir.ir import (
    Address,
    Buffer,
    Call,
    Carried,
    Const,
    Expr,
    Function,
    HostCall,
    Let,
    Load,
    Loop,
    Op,
    Read,
    Run,
    Stmt,
    Store,
    Var,
    While,
)
from pullback.loops.ir.types import ITEMSIZE
from pullback.loops.ir.visit import (
    Rewriter,
    Substitute,
    accessed,
    bound,
    free_vars,
    loaded,
    loads,
    statements,
    stored,
    stores,
)
from pullback.loops.passes.simplify import make_sum
from pullback.loops.schedule.apply.partials import combining, neutrals
from pullback.loops.schedule.joining import Joined, Joining
from pullback.loops.schedule.machine import CORES, NOMINAL
from pullback.util.record import frozen_record, mutable_record

# ("rows", n) of a loop of threads: its body begins with Lets of the first row and of the number of rows of this
# iteration, out of n. Nothing else depends on its index, and any rows may be taken at once that are ("least", k) or
# more. Calls write their last argument only; of buffers whose address depends on the first row they touch these rows.
ROWS, LEAST = "rows", "least"
# ("sums", k) of a loop of threads: iteration p is about the rows from p*k on. Its body has one sequential loop over
# steps of ("rows", r) rows each, which begins with a Let of the first one; nothing else in it depends on its index.
SUMS = "sums"

BYTES = 2 * NOMINAL.second.bytes  # of a product's result: less stays in the cache, however its readers go through it
BLOCK = (
    NOMINAL.first.bytes
)  # bytes of the rows of a result that are computed at once: half of what the first or second cache has
LARGEST = NOMINAL.second.bytes // 4  # bytes beyond which not even the fewest rows stay in the second cache
FEWEST, MOST = 24, 192  # rows of a block: multiples of the rows that kernels of products take at once
SHARED = NOMINAL.second.bytes // 2  # bytes of the product's other operand that each block reads again
AHEAD = 64  # statements among which readers are looked for


def of_rows(rows: int, least: int) -> tuple[tuple[str, int], ...]:
    """The attrs of a loop of threads over rows."""
    return ("grain", 1), (ROWS, rows), (LEAST, least)


def of_sums(rows: int) -> tuple[tuple[str, int], ...]:
    """The attrs of a loop of threads that sums over rows, so many in each iteration."""
    return ("grain", 1), (SUMS, rows)


def steps_of(rows: int) -> tuple[tuple[str, int], ...]:
    """The attrs of the loop over steps of so many rows in it."""
    return ((ROWS, rows),)


def row_blocks(function: Function) -> Function:
    """The function with products and the readers of their rows in common loops."""
    if not any(isinstance(stmt, Loop) and dict(stmt.attrs).get(ROWS) for stmt in statements(function.body)):
        return function
    return _RowBlocks("b", function).run()


@mutable_record
class Member:
    """A statement that goes through rows: `var` counts them, or parts of `part` of a row."""

    loop: Loop
    kind: str  # product, nest, sums
    var: Var
    part: int = 1  # parts of a row
    span: int = 1  # rows after the one that `var` says
    reads: set[Buffer] = field(default_factory=set)
    writes: set[Buffer] = field(default_factory=set)
    strides: dict[Buffer, int | None] = field(default_factory=dict)  # elements from row to row; None: otherwise
    starts: dict[Buffer, frozenset[Expr]] = field(default_factory=dict)  # where rows begin: terms of outer loops

    def meets(self, other: Member) -> bool:
        """Whether rows of one depend on other rows of the other."""
        shared = (self.writes & (other.reads | other.writes)) | (other.writes & self.reads)
        return any(
            self.strides[b] is None or self.strides[b] != other.strides[b] or self.starts[b] != other.starts[b]
            for b in shared
        )

    def set_strides(self, places: Iterable[tuple[Buffer, Expr]], ranges: dict[Var, Interval]) -> None:
        """Find `strides` and `starts` from all places that are accessed, as far as these stay within their rows."""
        inside = {v for stmt in statements((self.loop,)) for v in bound(stmt)}
        for buffer, index in places:
            stride, start = self._stride(index, ranges, inside)
            if self.strides.get(buffer, stride) != stride or self.starts.get(buffer, start) != start:
                stride = None
            self.strides[buffer] = stride
            self.starts.setdefault(buffer, start)

    def _stride(self, index: Expr, ranges: dict[Var, Interval], inside: set[Var]) -> tuple[int | None, frozenset[Expr]]:
        """Elements from row to row of an access that stays within its row, or the rows of a step; None for another."""
        found, constant = terms(index)
        factor, rest, start = 0, [], []
        for term in found:
            inner, by = term, 1
            if isinstance(term, Op) and term.name == "mul" and isinstance(term.args[1], Const):
                inner, by = term.args[0], term.args[1].value
            if isinstance(inner, Read) and inner.var is self.var:
                factor += by
            elif depends(term, inside, {}):
                rest.append(term)
            else:
                start.append(term)
        bounds = interval(make_sum(rest, constant), ranges)
        if factor <= 0 or bounds is None or bounds[0] < 0 or bounds[1] >= factor * self.span:
            return None, frozenset()
        return factor * self.part, frozenset(start)


class _RowBlocks(Joining):
    def begins(self, loop: Loop) -> bool:
        return loop.role == "threads"

    def group(self, loop: Loop, following: Sequence[Stmt]) -> Joined | None:
        """The loop over blocks with what combines its sums, after statements that go before it."""
        rows = dict(loop.attrs).get(ROWS, 0)
        first = _member(loop, rows) if rows else None
        result = None if first is None else _result(first, rows)
        if first is None or result is None:
            return None
        members = [first]
        before: list[Stmt] = []
        skipped: list[Stmt] = []
        taken = 0
        bound_inside: set[Var] = set()
        for k, stmt in enumerate(following[:AHEAD]):
            member = None if set(free_vars((stmt,))) & bound_inside else _member(stmt, rows)
            if member is not None and not any(member.meets(other) for other in members) and self._own(member):
                if member.kind != "product" or _result(member, rows) is not None:
                    members.append(member)
                    bound_inside.update(bound(stmt))
                    before, taken = list(skipped), k + 1
                    if member.kind == "sums":
                        break
                    continue
            if not independent(stmt, members, bound_inside):
                break
            skipped.append(stmt)
        if not any(result in member.reads for member in members[1:]):
            return None
        if (cut := _Cut.of(members, rows)) is None:
            return None
        return Joined([*before, *_Blocks(self.new, members, cut, self.uses).made()], taken)

    def _own(self, member: Member) -> bool:
        """Whether the local buffers of a member are its own."""
        uses: Counter[Buffer] = Counter()
        for stmt in statements((member.loop,)):
            uses.update(loads(stmt) | stores(stmt))
        return all(uses[b] == self.uses[b] for b in uses if b.space == "local")


def _member(stmt: Stmt, rows: int) -> Member | None:
    """How a statement goes through `rows` rows; None if it does not."""
    if not isinstance(stmt, Loop) or not isinstance(stmt.extent, Const):
        return None
    attrs = dict(stmt.attrs)
    inside = list(statements((stmt,)))
    if stmt.role == "threads":
        if attrs.get(ROWS) == rows:
            first = stmt.body[0]
            assert isinstance(first, Let)
            member = Member(stmt, "product", first.var)
        elif SUMS in attrs and -(-rows // attrs[SUMS]) == stmt.extent.value:
            steps = _steps(stmt)
            row = steps.body[0]
            assert isinstance(row, Let)
            member = Member(stmt, "sums", row.var, span=dict(steps.attrs)[ROWS])
        else:
            return None
    elif stmt.role in ("parallel", "reduce") and stmt.extent.value and stmt.extent.value % rows == 0:
        if any(isinstance(s, (Call, HostCall, Run, While)) for s in inside):
            return None
        if any(neutrals(group) is None for group in stmt.carried):
            return None
        member = Member(stmt, "nest", stmt.var, part=stmt.extent.value // rows)
    else:
        return None
    member.reads, member.writes = loaded((stmt,)), stored((stmt,))
    for call in inside:
        if isinstance(call, Call):
            member.writes -= {arg.buffer for arg in call.args[:-1] if isinstance(arg, Address)}
    _find_strides(member)
    return member


def _steps(loop: Loop) -> Loop:
    """The loop over steps of rows in a loop with the attr SUMS."""
    return next(stmt for stmt in loop.body if isinstance(stmt, Loop) and ROWS in dict(stmt.attrs))


def _find_strides(member: Member) -> None:
    """How far apart the rows of each buffer lie, as far as all accesses stay within their own."""
    ranges: dict[Var, Interval] = {}
    for stmt in statements((member.loop,)):
        if isinstance(stmt, Loop):
            bounds = interval(stmt.extent, ranges)
            if bounds is not None and stmt.var is not member.var:
                ranges[stmt.var] = (0, max(bounds[1] - 1, 0))
    places = list(accessed((member.loop,)))
    for stmt in statements((member.loop,)):
        if isinstance(stmt, Call):
            places += [(arg.buffer, arg.offset) for arg in stmt.args if isinstance(arg, Address)]
    member.set_strides(places, ranges)


def _result(product: Member, rows: int) -> Buffer | None:
    """The buffer that a product writes, if it is large and what all blocks read is small."""
    call = next((stmt for stmt in statements((product.loop,)) if isinstance(stmt, Call)), None)
    if product.kind != "product" or call is None or not isinstance(call.args[-1], Address):
        return None
    buffer = call.args[-1].buffer
    again = sum(
        b.size * ITEMSIZE[b.dtype] for b, stride in product.strides.items() if stride is None and b.space != "local"
    )
    stride = product.strides.get(buffer)
    if stride is None or stride * rows * ITEMSIZE[buffer.dtype] < BYTES or again > SHARED:
        return None
    return buffer


def independent(stmt: Stmt, members: Sequence[Member], results: set[Var]) -> bool:
    """Whether a statement may go before all members."""
    if isinstance(stmt, HostCall) or set(free_vars((stmt,))) & results:
        return False
    reads, writes = loaded((stmt,)), stored((stmt,))
    return not any((reads | writes) & m.writes or writes & m.reads for m in members)


@frozen_record
class _Cut:
    """How rows are cut: `blocks` of `size` rows, the last of which may have more or fewer."""

    rows: int
    size: int
    blocks: int

    @staticmethod
    def of(members: Sequence[Member], rows: int) -> _Cut | None:
        """Blocks for the readers of products; None if there are too few rows, or they are too long, or no
        blocks are such that all can take them."""
        written = [(m, _result(m, rows)) for m in members]
        row = max((m.strides[b] or 0) * ITEMSIZE[b.dtype] for m, b in written if b is not None)
        size = MOST
        sums = members[-1] if members[-1].kind == "sums" else None
        piece = MOST if sums is None else dict(sums.loop.attrs)[SUMS]
        while size > FEWEST and (size * row > BLOCK or rows < CORES * size or piece % size):
            size //= 2
        if size * row > LARGEST:
            return None
        least = max([dict(m.loop.attrs)[LEAST] for m in members if m.kind == "product"])
        blocks = -(-rows // size)
        rest = rows - (blocks - 1) * size
        if rest < least:
            if sums is not None:
                return None
            blocks -= 1
        if sums is not None and (piece % size or size % sums.span or rows % sums.span):
            return None
        return _Cut(rows, size, blocks) if blocks > 1 and size >= least else None

    @property
    def longest(self) -> int:
        """Rows of the longest block."""
        return max(self.size, self.rows - (self.blocks - 1) * self.size)


class _Blocks:
    """The loop over blocks of rows of some members."""

    def __init__(self, new: Fresh, members: Sequence[Member], cut: _Cut, uses: Counter[Buffer]) -> None:
        self.new, self.members, self.cut = new, members, cut
        self._after: list[Stmt] = []
        self._scratch = self._contracted(uses)

    def _contracted(self, uses: Counter[Buffer]) -> dict[Buffer, Buffer]:
        """Temporaries that only members use, and products fill: their rows of one block, as scratch space."""
        inside: Counter[Buffer] = Counter()
        for member in self.members:
            for stmt in statements((member.loop,)):
                inside.update(loads(stmt) | stores(stmt))
        found: dict[Buffer, Buffer] = {}
        for member in self.members:
            buffer = _result(member, self.cut.rows)
            if buffer is None or buffer.space != "temporary" or inside[buffer] != uses[buffer]:
                continue
            stride = member.strides[buffer]
            users = [m for m in self.members if buffer in m.strides]
            filled = users[0] is member and sum(buffer in loads(s) for s in statements((member.loop,))) == 1
            if stride is None or member.starts[buffer] or not filled or any(m.strides[buffer] != stride for m in users):
                continue
            if stride * self.cut.rows == buffer.size:
                found[buffer] = self.new.buffer("rows", buffer.dtype, self.cut.longest * stride, "local")
        return found

    def made(self) -> list[Stmt]:
        """The loop, and the statements that combine sums over rows."""
        cut, last = self.cut, self.members[-1]
        number = self.new.var(Var("block", "i64"))
        first, count = self.new.var(Var("first", "i64")), self.new.var(Var("count", "i64"))
        size = const("i64", cut.size)
        rest = cut.rows - (cut.blocks - 1) * cut.size
        here: Expr = size
        if rest != cut.size:
            here = make("select", (make("eq", (Read(number), const("i64", cut.blocks - 1))), const("i64", rest), size))
        body: list[Stmt] = [Let(first, make("mul", (Read(number), size))), Let(count, here)]
        for member in self.members:
            match member.kind:
                case "product":
                    body += self._product(member, first, count)
                case "nest":
                    body += self._nest(member, number, first, count)
                case "sums":
                    body.append(self._sums(member, first, count))
        if last.kind != "sums":
            loop = Loop(number, const("i64", cut.blocks), "threads", tuple(body), (), (("grain", 1),))
            return [loop, *self._after]
        # Blocks of one iteration of the sums, one after the other.
        each = dict(last.loop.attrs)[SUMS] // cut.size
        inner = self.new.var(Var("inner", "i64"))
        start = make("mul", (Read(last.loop.var), const("i64", each)))
        extent: Expr = const("i64", each)
        if cut.blocks % each:
            extent = make("min", (extent, make("sub", (const("i64", cut.blocks), start))))
        body.insert(0, Let(number, make("add", (start, Read(inner)))))
        steps = _steps(last.loop)
        at = last.loop.body.index(steps)
        blocks = Loop(inner, extent, "sequential", tuple(body))
        whole = (*last.loop.body[:at], blocks, *last.loop.body[at + 1 :])
        return [Loop(last.loop.var, last.loop.extent, "threads", whole, (), (("grain", 1),)), *self._after]

    def _local(self, var: Var, value: Expr) -> Contract:
        return Contract(self._scratch, var, value)

    def _product(self, member: Member, first: Var, count: Var) -> Sequence[Stmt]:
        own_first, own_count, *body = member.loop.body
        assert isinstance(own_first, Let) and isinstance(own_count, Let)
        local = self._local(own_first.var, const("i64", 0)).block(body)
        return Substitute({own_first.var: Read(first), own_count.var: Read(count)}).block(local)

    def _nest(self, member: Member, number: Var, first: Var, count: Var) -> Sequence[Stmt]:
        """The rows of a block; what it carries goes to partial results, which are combined after all blocks."""
        loop, part = member.loop, const("i64", member.part)
        inner = self.new.var(loop.var)
        starts = [neutrals(group) for group in loop.carried]
        groups = tuple(
            Carried(group.vars, tuple(start or ()), group.updates, group.results, group.combine)
            for group, start in zip(loop.carried, starts)
        )
        rows = Loop(loop.var, make("mul", (Read(count), part)), loop.role, loop.body, groups, loop.attrs)
        partials = [self.new.buffer("partial", v.dtype, self.cut.blocks) for g in loop.carried for v in g.vars]
        results = [v for group in loop.carried for v in group.results]
        keep = [Store(buffer, Read(number), Read(result)) for buffer, result in zip(partials, results)]
        (here,) = self._local(loop.var, Read(inner)).block((rows,))
        assert isinstance(here, Loop)
        index = make("add", (make("mul", (Read(first), part)), Read(inner)))
        sub = Substitute({loop.var: index})
        groups = tuple(
            Carried(g.vars, g.inits, tuple(map(sub.rewrite, g.updates)), g.results, g.combine) for g in here.carried
        )
        here = Loop(inner, here.extent, here.role, sub.block(here.body), groups, here.attrs)
        if loop.carried:
            again = self.new.var(Var("block", "i64"))
            values = iter([Load(buffer, Read(again)) for buffer in partials])
            merged = tuple(combining(group, [next(values) for _ in group.vars]) for group in loop.carried)
            self._after.append(Loop(again, const("i64", self.cut.blocks), "reduce", (), merged))
        # Results have their names outside, where partial ones are combined.
        return Substitute({}, self.new.var).block((here, *keep))

    def _sums(self, member: Member, first: Var, count: Var) -> Loop:
        """The steps of one block."""
        steps = _steps(member.loop)
        row, *rest = steps.body
        assert isinstance(row, Let)
        step = self.new.var(steps.var)
        offset = make("mul", (Read(step), const("i64", member.span)))
        body = (Let(row.var, make("add", (Read(first), offset))), *self._local(row.var, offset).block(rest))
        extent = make("floordiv", (Read(count), const("i64", member.span)))
        return Loop(step, extent, "sequential", body)


class Contract(Rewriter):
    """Rows of whole buffers become rows of scratch space, counted from the block's first: there `var` is `value`."""

    def __init__(self, scratch: dict[Buffer, Buffer], var: Var, value: Expr) -> None:
        super().__init__()
        self._scratch = scratch
        self._here = Substitute({var: value})

    def expr(self, expr: Expr) -> Expr:
        if isinstance(expr, Load) and expr.buffer in self._scratch:
            return Load(self._scratch[expr.buffer], self._here.rewrite(expr.index))
        return expr

    def stmt(self, stmt: Stmt) -> list[Stmt]:
        match stmt:
            case Store() if stmt.buffer in self._scratch:
                return [Store(self._scratch[stmt.buffer], self._here.rewrite(stmt.index), stmt.value)]
            case Call():
                return [Call(stmt.symbol, tuple(map(self._argument, stmt.args)), stmt.result)]
        return [stmt]

    def _argument(self, arg: Expr | Address) -> Expr | Address:
        if isinstance(arg, Address) and arg.buffer in self._scratch:
            return Address(self._scratch[arg.buffer], self._here.rewrite(arg.offset))
        return arg
