"""The grammar of the loop IR: loop nests over flat, typed buffers. Data only; nothing here transforms anything.

An expression is pure and evaluated where its statement stands: a `Load` sees the memory of that moment (pin a value
with `Let`). Expressions form DAGs: the same object inside one statement is one value. `select` is lazy in its loads: a
load reachable only through the branch not taken is not performed, so its index may then lie outside the buffer; every
other index must lie inside. Integer arithmetic wraps and nothing traps. Different buffers never overlap in memory.

Nodes are compared by identity, and frozen for the type checker only (util/record.py): compile time is made of
constructions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from pullback.util.record import record

Role = Literal["parallel", "reduce", "scan", "sequential", "vector", "threads"]
Space = Literal["input", "output", "temporary", "constant", "local"]


@record
class Buffer:
    """A flat array in memory, aligned to 64 bytes; bool takes one byte (0 or 1), complex is (re, im) side by side.

    input, output: the caller's; constant: `data`; temporary: in the arena of the program, uninitialized at its start;
    local: small scratch space (some KB), each iteration of a parallel loop has its own, uninitialized at its start.
    """

    name: str
    dtype: str
    size: int  # elements
    space: Space
    data: np.ndarray | None = None  # values of a constant, flat


@record
class Var:
    """A scalar bound once: by Let, as a loop index (i64), as a carried value or as the result of a loop or call."""

    name: str
    dtype: str


class Expr:
    """Base of expressions; every one has a `dtype`. Operators on expressions are installed by build.py."""

    __slots__ = ()
    dtype: str
    if TYPE_CHECKING:

        def _binary(self, other: Expr | int | float | complex) -> Expr: ...

        __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __floordiv__ = __mod__ = _binary
        __truediv__ = __rtruediv__ = __and__ = __or__ = __xor__ = __lt__ = __le__ = __gt__ = __ge__ = _binary

        def __neg__(self) -> Expr: ...


@record
class Const(Expr):
    """A number."""

    dtype: str
    value: Any  # Python bool, int, float or complex; floats already rounded to dtype


@record
class Read(Expr):
    """The value of a variable."""

    var: Var

    @property
    def dtype(self) -> str:  # type: ignore[override]
        return self.var.dtype


@record
class Load(Expr):
    """An element of a buffer."""

    buffer: Buffer
    index: Expr  # i64, elements from the start of the buffer

    @property
    def dtype(self) -> str:  # type: ignore[override]
        return self.buffer.dtype


@record
class Op(Expr):
    """An operation of `ops.OPS` on its arguments."""

    name: str  # a key of ops.OPS
    dtype: str
    args: tuple[Expr, ...]
    attrs: tuple[tuple[str, Any], ...] = ()  # ("y", 3) of integer_pow


# Attr of a product of floats: a sum takes it in unrounded. Products without it are rounded, as NumPy's are, so that
# equal values have a difference of zero however they were computed.
TERM = ("term", True)
RARE = ("rare", True)  # attr of a select: its first branch is evaluated only where some lane takes it
SHORT_NANS = ("short_nans", True)  # attr of a conversion to 16 bits: NaNs among its operands have zeros beyond those


@record
class Lambda:
    """A pure function of scalars. An op with the attr ("function", Lambda) is computed by calling it."""

    name: str
    params: tuple[Var, ...]
    value: Expr


@record
class Combine:
    """An associative function of two groups of k scalars: `exprs` over reads of `left` and `right`."""

    left: tuple[Var, ...]
    right: tuple[Var, ...]
    exprs: tuple[Expr, ...]
    neutral: tuple[Expr, ...] = ()  # leaves everything unchanged; without it the loop is not split into lanes or chunks


@record
class Carried:
    """A group of k scalars carried through a loop.

    Before the first iteration `vars` are `inits`; after each they become `updates`, all evaluated at the end of the
    body; after the loop `results` hold the last ones (`inits` if there was no iteration). With `combine`, the group is
    a reduction: updates = combine(vars, something), inits are counted exactly once, and a loop may be split into
    lanes and chunks whose partial results are combined.
    """

    vars: tuple[Var, ...]
    inits: tuple[Expr, ...]
    updates: tuple[Expr, ...]
    results: tuple[Var, ...]
    combine: str | Combine | None = None  # an op name (k = 1): add mul min max and or xor; None: order is fixed


@record
class Address:
    """Argument of a Call: the address of an element of a buffer."""

    buffer: Buffer
    offset: Expr  # i64, elements


class Stmt:
    """Base of statements."""

    __slots__ = ()


@record
class Let(Stmt):
    """Names a value for the statements that follow."""

    var: Var
    value: Expr


@record
class Store(Stmt):
    """Writes an element of a buffer."""

    buffer: Buffer
    index: Expr  # i64, elements
    value: Expr


@record
class Loop(Stmt):
    """`body` for var = 0 .. extent - 1.

    parallel: iterations in any order, also at once; nothing carried, no iteration reads what another writes.
    reduce: any order, all carried groups have `combine`. sequential: in order.
    scan: as if in order, all carried groups have `combine` (k = 1), an update is the reading of a Let of the body whose
    value is combine(var, something), and var is read nowhere else; so running results may be combined in any order.
    vector: as parallel or reduce, innermost in effect: the emitter maps it to lanes. threads: as parallel, by the pool.
    """

    var: Var
    extent: Expr  # i64
    role: Role
    body: tuple[Stmt, ...]
    carried: tuple[Carried, ...] = ()
    attrs: tuple[tuple[str, Any], ...] = ()  # hints of passes: SQUARE, STREAMED, RIM, ("unroll", 4), ("grain", 64)


# Attrs of a sequential loop that progress bars count: iteration i begins step `steps_from + i * steps_each` of `steps`
# (0 and 1 if they are not said).
STEPS, STEPS_EACH, STEPS_FROM = "steps", "steps_each", "steps_from"
STREAMED = ("streamed", True)  # attr of a vector loop whose contiguous stores need not stay in the caches
RIM = ("rim", True)  # attr of parallel loops over the ends of others, where conditions change: not cut, not written out
SINGLY = ("singly", True)  # attr of a loop whose lanes load one by one what instructions would gather from far
SQUARE = ("square", True)  # attr of a parallel loop that is alone in a vector loop, and has Lets and Stores only


@record
class While(Stmt):
    """Repeats: body_cond; stop unless cond; body. What changes from one iteration to the next lives in buffers."""

    body_cond: tuple[Stmt, ...]
    cond: Expr  # bool; sees the Lets of body_cond
    body: tuple[Stmt, ...]  # sees the Lets of body_cond


@record
class If(Stmt):
    """Runs one of two lists of statements."""

    cond: Expr  # bool
    then: tuple[Stmt, ...]
    orelse: tuple[Stmt, ...] = ()


@record
class Call(Stmt):
    """Calls the C function `symbol`; scalars go by value, addresses as pointers. It may read and write them all."""

    symbol: str
    args: tuple[Expr | Address, ...]
    result: Var | None = None


@record
class HostCall(Stmt):
    """Calls Python callable number `index` of the program with the addresses of `buffers`; non-zero return ends it."""

    index: int
    buffers: tuple[Buffer, ...]


@record
class Kernel:
    """Statements that a program runs in several places, each time on other buffers and values.

    `buffers` and `params` stand for what a `Run` gives. Local buffers are the kernel's own.
    """

    name: str
    buffers: tuple[Buffer, ...]  # all of them temporaries here, whatever they are where it is run
    params: tuple[Var, ...]
    body: tuple[Stmt, ...]


@record
class Run(Stmt):
    """Runs a kernel on different buffers, of the types and sizes of the kernel's."""

    kernel: Kernel
    buffers: tuple[Buffer, ...]
    args: tuple[Expr, ...]


@record
class Function:
    """One program: the k-th input buffer is inputs[k] of `int f(void** inputs, void** outputs, void* arena)`."""

    name: str
    buffers: tuple[Buffer, ...]  # in order within each space
    body: tuple[Stmt, ...]
