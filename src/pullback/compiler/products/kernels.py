"""Subroutines that programs call for the bulk of a product: one kernel for each element type, of any sizes.

A kernel multiplies rows of x with *panels* of y: as many neighbouring columns as two vector registers hold, or three
(`product_shape`), one row of the contracted axis after the other. It keeps a block of results in registers, ROWS x 2 of
them, so each step of the contracted axis reads two registers of y and ROWS elements of x for 2 * ROWS multiply-adds:
the machine's limit. (The scheme is that of Goto and van de Geijn, "Anatomy of high-performance matrix multiplication",
2008.)

A kernel is loop IR, compiled ahead (runtime/programs/ahead.py) or when a program first calls it and kept on disk, so
products cost programs no time to compile. Its name says all of it: pb_panels_f32_6x16.

Blocks are 6 x 16 float32 with AVX2, 12 x 32 with AVX-512; sums are chains of 128. BLAS stays for `x @ x.T` of more than
512 rows (`syrk` does half of the work) and contractions longer than 4096, where a panel of y outgrows the second cache.

Measured: one thread of an EPYC, GFLOP/s, ours and OpenBLAS: 87 and 66 at 64, 84 and 79 at 128, 89 and 91 at 512, 92 and
94 at 1024.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

from pullback.loops.emit.cpu.target import current_target, registers_of
from pullback.loops.emit.symbols import KERNEL
from pullback.loops.ir import ITEMSIZE, Builder, Expr, Function

STEPS = 4  # contracted elements that a near kernel takes at a time: addresses of rows wait on the stack for so many
STEPS_OF_16 = 1  # the same with 16 registers: LLVM reads the panel's rows of two steps at once, and sums have no place
SHAPES = ((4, 6), (3, 8), (2, 10))  # (registers of columns, rows) of blocks with AVX-512
CHAIN = 128  # floats summed in one chain: errors are then no larger than those of NumPy's products
BEGUN = 0.5  # multiply-adds for each contracted element that take as long as what is done once for a block
ANY = 1 << 40  # elements of a buffer whose size is the caller's

# Fields of the kernel's first argument, i64; lengths in elements.
SIZES = (
    "rows",
    "panels",
    "inner",
    "columns",
    "x_row",
    "x_inner",
    "y_panel",
    "y_last",  # where the last panel begins, at most
    "y_inner",
    "out_row",
)


def block_shape(dtype: str, m: int, n: int) -> tuple[int, int]:
    """(rows, columns) of the block of results, for a product of m rows and n columns on the current target.

    Two registers of columns, or one where they hold all of n. Few rows are cut evenly, since the last block overlaps
    the one before.
    """
    target = current_target().vector_bytes
    width, most = target // ITEMSIZE[dtype], 12 if target == 64 else 6
    rows, columns = (most, 2 * width) if n > width else (2 * most, width)
    return _evenly(m, rows), columns


def block_rows(dtype: str, m: int, columns: int) -> tuple[int, float]:
    """(rows of the block of results, steps) for m rows and a panel of so many columns: those of the fewest steps.

    Steps are multiply-adds of registers for each contracted element, or what takes as long: a load is half of one, as a
    core does two of either at a time, and fewer than eight sums would wait for their own last step.
    """
    target = current_target().vector_bytes
    registers = columns * ITEMSIZE[dtype] // target
    most = _sums(target) // registers

    def steps(rows: int) -> float:
        return -(-m // rows) * (max(rows * registers, rows + registers, 8) + BEGUN * registers)

    rows = min(range(1, min(m, most) + 1), key=lambda rows: (steps(rows), -rows))
    return rows, steps(rows)


def _sums(vector_bytes: int) -> int:
    """Registers of sums that a block has at most: all but four, for elements of x and rows of y."""
    return registers_of(vector_bytes) - 4


def block_sizes(dtype: str, vector_bytes: int) -> list[tuple[int, int]]:
    """(rows, columns) of all blocks that a product or a convolution may want: of one to four registers of columns."""
    width = vector_bytes // ITEMSIZE[dtype]
    return [(rows, count * width) for count in range(1, 5) for rows in range(1, _sums(vector_bytes) // count + 1)]


def whole_panels(dtype: str, n: int) -> list[int]:
    """Columns of panels of one to four registers that n columns fill, those first that are best where all are equal."""
    register = current_target().vector_bytes // ITEMSIZE[dtype]
    return [count * register for count in (2, 3, 4, 1) if count * register <= n]


def product_shape(dtype: str, m: int, n: int) -> tuple[int, int]:
    """(rows, columns) of the block of results that take the fewest steps for m rows and n columns, with AVX-512.

    Rows of a block of two registers are as many as there are general registers for, each row of x taking one; of three
    and four registers of columns, 24 sums. With 16 registers (AVX2) it is block_shape, or three registers of columns
    and fewer rows where these leave less of the last empty; they are up to a tenth slower where nothing is left empty:
    each step reads three registers of y for four rows. 114 columns are 120 instead of 128: a product of 11,600 x 114
    with 114 x 114 takes 3.6 ms of one core, not 4.1.
    """
    rows, columns = block_shape(dtype, m, n)
    register = current_target().vector_bytes // ITEMSIZE[dtype]
    if current_target().vector_bytes == 64:
        if n <= register:
            return rows, columns

        def steps(shape: tuple[int, int]) -> tuple[float, int]:
            rows, columns = shape
            count = columns // register
            each = max(rows * count, rows * (1 + 1 / STEPS) + count, 8)
            return -(-m // rows) * -(-n // columns) * each, -columns

        found = [(_evenly(m, most), count * register) for count, most in SHAPES if count == 2 or count * register <= n]
        return min(found, key=steps)
    wide = 3 * register
    if (
        columns != 2 * register
        or n < wide
        or m < 4 * rows
        or 20 * -(-n // wide) * wide > 19 * -(-n // columns) * columns
    ):
        return rows, columns
    return 2 * rows // 3, wide


def _evenly(m: int, most: int) -> int:
    """Rows of blocks, so many at most: few rows are cut evenly, since the last block overlaps the one before."""
    return -(-m // -(-m // most)) if m < 4 * most else most


def kernel_name(
    dtype: str,
    rows: int,
    columns: int,
    inner: int,
    indexed: bool = False,
    added: bool = False,
    near: bool = False,
    words: bool = False,
) -> str:
    """The symbol of the kernel for a product of `inner` contracted elements, or pairs of them (bf16)."""
    chained = inner if dtype[0] == "i" or dtype[0] == "u" else CHAIN // 2 if dtype == "bf16" else CHAIN
    kind = "_added" if added else "_long" if inner > chained else ""
    kind += ("_indexed" if indexed else "") + ("_near" if near else "")
    kind += "_words" if words else ""
    return f"{KERNEL}{dtype}_{rows}x{columns}{kind}"


def panel_kernel(
    dtype: str,
    rows: int,
    columns: int,
    long: bool = False,
    indexed: bool = False,
    sizes: tuple[int, int, int] = (ANY, ANY, ANY),
    added: bool = False,
    near: bool = False,
    words: bool = False,
) -> Function:
    """out[i, j] = sum over k of x[i, k] * y[j // columns, k, j % columns], for `rows` rows of x at least.

    Arguments: the sizes, x, y, out; `sizes` are the elements of the last three. The last block of rows overlaps the one
    before, and so does the last panel in out and (if it overlaps there) in y: the caller wants `columns` of them at
    least. With `long`, sums of CHAIN products are added up: the error then grows with their number only. With `added`,
    they are added to what is in out, where no block overlaps another, so that nothing is added to twice: calls for
    pieces of multiples of CHAIN, one after the other, give the results of one call for all.

    An `indexed` kernel has two more arguments, after the sizes: where the k-th contracted element lies in a row of x,
    and in a panel of y. It makes a convolution a product without a copy of all windows.

    A `near` kernel is for contracted elements that are neighbours in x, and whose rows of a panel are. With 32
    registers it takes STEPS of them at a time, in the same order: more rows of x than there are registers for their
    addresses are then read as fast. (One core of a Xeon with AMX, 504 x 512 x 576 in float32 and float64: 178 and
    83 GFLOP/s in blocks of 8 x 3 registers, 163 and 73 of 12 x 2; without, 166, 78, 149 and 65. With AVX2 on an
    EPYC, 1024 in float32 on two cores: 149 GFLOP/s by four at a time, sums waiting on the stack, 215 by one.)

    A kernel of dtype bf16 takes two contracted elements at a time, which lie in 32 bits, the second before the first,
    as its instruction does: sizes count such pairs. A kernel of `words` is for two integers of 16 bits in one of 32; to
    all others it is a product of such words.
    """
    kernel = _PanelKernel(dtype, rows, columns, indexed, sizes, near, words)
    kernel.write(long, added)
    length = kernel.length + long
    return kernel.b.function(kernel_name(dtype, rows, columns, length, indexed, added, near, words))


class _PanelKernel:
    """Writes a kernel: its arguments, and from the outside inwards panels, blocks, chains of sums, steps."""

    def __init__(
        self, dtype: str, rows: int, columns: int, indexed: bool, sizes: tuple[int, int, int], near: bool, words: bool
    ) -> None:
        self.narrow, dtype = dtype == "bf16", "f32" if dtype == "bf16" else dtype
        self.length = CHAIN // 2 if self.narrow else CHAIN
        self.rows, self.columns, self.near, self.words = rows, columns, near, words
        self.b = b = Builder()
        size = b.input("sizes", "i64", len(SIZES))
        self.tables = [b.input(name, "i64", ANY) for name in ("x_at", "y_at")] if indexed else []
        self.x, self.y = b.input("x", dtype, sizes[0]), b.input("y", dtype, sizes[1])
        self.out = b.output("out", dtype, sizes[2])
        self.field = {name: b.let(b.load(size, k), name) for k, name in enumerate(SIZES)}
        # Registers of columns one by one: LLVM cuts longer vectors into powers of two only.
        # Of a block for another target, three of its registers are not whole registers here.
        self.width = gcd(columns, current_target().vector_bytes // ITEMSIZE[dtype])
        self.parts = columns // self.width
        self.zeros = [b.const(dtype, 0)] * (rows * self.parts)

    def write(self, long: bool, added: bool) -> None:
        b, field = self.b, self.field
        blocks = b.let(b.floordiv(field["rows"] + (self.rows - 1), b.index(self.rows)), "blocks")
        with b.loop(field["panels"], "sequential", "panel") as panel:
            column = b.let(b.op("min", panel * self.columns, field["columns"] - self.columns), "column")
            first = b.let(b.op("min", panel * field["y_panel"], field["y_last"]), "first")
            with b.loop(blocks, "sequential", "block") as block:
                row = b.let(b.op("min", block * self.rows, field["rows"] - self.rows), "row")
                with b.loop(self.width, "vector", "j", (("lanes", self.width),)) as j:
                    # What is added to is in no block twice.
                    top, left = (block * self.rows, panel * self.columns) if added else (row, column)
                    places = [self._place(top, left, j, n) for n in range(len(self.zeros))]
                    if long or added:
                        begin = [b.load(self.out, place) for place in places] if added else self.zeros
                        results = self._chains(row, first, j, begin)
                    else:
                        results = self._chain(row, b.index(0), field["inner"], first, j)
                    for place, result in zip(places, results):
                        b.store(self.out, place, result)

    def _place(self, top: Expr, left: Expr, j: Expr, n: int) -> Expr:
        """Where the n-th register of a block of results lies."""
        return (top + n // self.parts) * self.field["out_row"] + left + n % self.parts * self.width + j

    def _chains(self, row: Expr, first: Expr, j: Expr, begin: Sequence[Expr]) -> list[Expr]:
        """`begin` and the sums of all chains."""
        b, inner = self.b, self.field["inner"]
        chains = b.floordiv(inner + (self.length - 1), b.index(self.length))
        with b.carried_loop(chains, [((value,), None) for value in begin]) as c:
            start = c.i * self.length
            sums = self._chain(row, start, b.op("min", b.index(self.length), inner - start), first, j)
            c.update(*[b.add(var, value) for var, value in zip(c.vars, sums)])
        return c.results

    def _chain(self, row: Expr, start: Expr, extent: Expr, first: Expr, j: Expr) -> list[Expr]:
        """Sums of products over contracted elements from `start` on, of the columns from `first` on."""
        b = self.b
        together = STEPS if current_target().vector_bytes == 64 else STEPS_OF_16
        if not self.near or together == 1:
            return self._steps(row, start, extent, 1, first, j, self.zeros)
        whole = b.let(b.floordiv(extent, b.index(together)), "whole")
        totals = self._steps(row, start, whole, together, first, j, self.zeros)
        return self._steps(row, start + whole * together, extent - whole * together, 1, first, j, totals)

    def _steps(
        self, row: Expr, start: Expr, extent: Expr, each: int, first: Expr, j: Expr, begin: Sequence[Expr]
    ) -> list[Expr]:
        """`begin` and the products of `extent` times `each` contracted elements from `start` on."""
        b = self.b
        with b.carried_loop(extent, [((value,), None) for value in begin]) as k:
            totals: list[Expr] = list(k.vars)
            for step in range(each):
                x_at, y_at = self._contracted(start + k.i * each)
                starts = [step * self.columns + n * self.width for n in range(self.parts)]
                right = [b.load(self.y, first + y_at + start + j) for start in starts]
                left = [b.load(self.x, (row + r) * self.field["x_row"] + x_at + step) for r in range(self.rows)]
                totals = self._plus(totals, [(value, other) for value in left for other in right])
                if each > 1:
                    totals = [b.let(total) for total in totals]
            k.update(*totals)
        return k.results

    def _contracted(self, at: Expr) -> tuple[Expr, Expr]:
        """Where a contracted element lies in a row of x, and in a panel of y."""
        if self.tables:
            x_at, y_at = (self.b.let(self.b.load(table, at), "at") for table in self.tables)
            return x_at, y_at
        if self.near:
            return at, at * self.columns
        return at * self.field["x_inner"], at * self.field["y_inner"]

    def _plus(self, totals: list[Expr], factors: list[tuple[Expr, Expr]]) -> list[Expr]:
        """The sums with one product more each."""
        b = self.b
        if self.words or self.narrow:
            name = "dot_words" if self.words else "dot_pairs"
            return [b.op(name, total, *both) for total, both in zip(totals, factors)]
        return [b.add(total, b.term(*both)) for total, both in zip(totals, factors)]


GRAM_SIZES = ("count", "inner", "chain", "x_inner")  # as SIZES: the first argument of a gram kernel


def gram_kernel_name(dtype: str, rows: int, columns: int) -> str:
    """The symbol of the kernel for products of a matrix with its own transpose."""
    return f"{KERNEL}{dtype}_{rows}x{columns}_gram"


def gram_kernel(dtype: str, rows: int, columns: int, sizes: tuple[int, int] = (ANY, ANY)) -> Function:
    """tiles[panel, block, r, j] += sum over k of x[k, row + r] * x[k, column + j], where the tile meets the lower
    triangle of the `count` x `count` result.

    Arguments: the sizes (GRAM_SIZES), x, tiles. Both sides are read where they lie, `chain` contracted elements at a
    time, which stay in the first cache while all tiles are computed. The last panel and the last block overlap those
    before, so they have tiles of their own: results that two tiles have in common could not be added to in place.
    """
    b = Builder()
    size = b.input("sizes", "i64", len(GRAM_SIZES))
    x, tiles = b.input("x", dtype, sizes[0]), b.output("tiles", dtype, sizes[1])
    count, inner, length, x_inner = (b.let(b.load(size, k), name) for k, name in enumerate(GRAM_SIZES))
    zero = b.const(dtype, 0)
    panels = b.let(b.floordiv(count + (columns - 1), b.index(columns)), "panels")
    blocks = b.let(b.floordiv(count + (rows - 1), b.index(rows)), "blocks")
    with b.loop(b.floordiv(inner + length - 1, length), "sequential", "chain") as chain:
        start = b.let(chain * length, "start")
        extent = b.let(b.op("min", length, inner - start), "extent")
        with b.loop(panels, "sequential", "panel") as panel:
            column = b.let(b.op("min", panel * columns, count - columns), "column")
            first = b.let(b.floordiv(panel * columns, b.index(rows)), "first")
            with b.loop(blocks - first, "sequential", "below") as below:
                block = b.let(first + below, "block")
                row = b.let(b.op("min", block * rows, count - rows), "row")
                tile = b.let((panel * blocks + block) * (rows * columns), "tile")
                with b.loop(columns, "vector", "j", (("lanes", columns),)) as j:
                    with b.carried_loop(extent, [((zero,), None)] * rows) as k:
                        at = b.let((start + k.i) * x_inner, "at")
                        right = b.load(x, at + column + j)
                        left = [b.load(x, at + row + r) for r in range(rows)]
                        k.update(*[b.add(var, b.term(value, right)) for var, value in zip(k.vars, left)])
                    for r in range(rows):
                        place = tile + r * columns + j
                        b.store(tiles, place, b.add(b.load(tiles, place), k.results[r]))
    return b.function(gram_kernel_name(dtype, rows, columns))


__all__ = [
    "GRAM_SIZES",
    "SIZES",
    "block_rows",
    "block_shape",
    "block_sizes",
    "gram_kernel",
    "gram_kernel_name",
    "kernel_name",
    "panel_kernel",
    "product_shape",
    "whole_panels",
]
