"""Products in the expansion of a math function that go into a sum are rounded with it: fma, written as such.

Only here, and by a rule that sees nothing but the expansion: LLVM would go by how often a product is used in the whole
loop, and sin(x) would have other bits beside cos(x) than alone. What an op is applied to is not touched: the products
of a program are rounded (`ir.TERM`).

    x * y + z      =>      fma(x, y, z)         where nothing else in the expansion uses the product
    z - x * y      =>      fma(-x, y, z)

Why: differences of equal values are zero, whether a value was computed here or there, loaded or passed in, and compiled
arithmetic has eager arithmetic's bits. LLVM had fused products into sums by how often the product was used: x y - y x
was a rounding error. Terms of contractions (`ir.TERM`, made by `Builder.term`: `dot_general`, convolutions, Fourier
transforms, small factorizations) are rounded together with their sum.

Measured: it costs where steps wait for each other, Lorenz by Runge-Kutta 13.5 to 16.7 ns a step, a recurrence stacked
over 1e7 steps 11.2 to 16.6 ms. Elementwise programs, programs by rows and training showed no change beyond the noise of
a loaded machine, a fifth either way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pullback.loops.ir.ir import Expr, Op
from pullback.loops.ir.visit import Rewriter, operands, rebuilt

if TYPE_CHECKING:
    from pullback.loops.ir.build import Builder

EXACT = ("exact", True)  # attr of sums and products whose rounding errors are computed


def contracted(b: Builder, roots: Sequence[Expr], given: Sequence[Expr]) -> list[Expr]:
    """Expansions of a math op on the arguments `given`, with products in sums rounded once."""
    done: dict[Expr, Expr] = {x: x for x in given}
    order = _below(roots, done)
    if not any(_sum_of(node) for node in order):
        return list(roots)
    uses: Counter[Expr] = Counter(x for node in order for x in operands(node))
    uses.update(roots)
    outside = frozenset(given)
    for node in order:
        args = tuple([done[x] for x in operands(node)])
        done[node] = _fused(b, node, args, uses, outside) or rebuilt(node, args)
    return [done[root] for root in roots]


def _below(roots: Sequence[Expr], given: dict[Expr, Expr]) -> list[Expr]:
    """What the expansion itself consists of, operands before users."""
    seen: set[Expr] = set(given)
    order: list[Expr] = []
    stack = [(root, False) for root in reversed(roots)]
    while stack:
        node, visited = stack.pop()
        if visited:
            order.append(node)
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack += [(x, False) for x in reversed(operands(node)) if x not in seen]
    return order


def _sum_of(node: Expr) -> bool:
    return (
        isinstance(node, Op)
        and node.name in ("add", "sub")
        and node.dtype in ("f32", "f64")
        and EXACT not in node.attrs
    )


def _fused(b: Builder, node: Expr, args: Sequence[Expr], uses: Counter[Expr], outside: frozenset[Expr]) -> Expr | None:
    """A sum with one of its products taken in, the first if there are two; None if it has none."""
    if not _sum_of(node):
        return None
    assert isinstance(node, Op)
    for side in (0, 1):
        product, negative = node.args[side], node.name == "sub" and side == 1
        known: Any = args[side]
        if _is_free(product, "neg", uses, outside):
            product, known, negative = operands(product)[0], operands(known)[0], not negative
        if not _is_free(product, "mul", uses, outside) or not isinstance(known, Op) or known.name != "mul":
            continue
        x, y = known.args
        rest = args[1 - side]
        if node.name == "sub" and side == 0:
            rest = b.neg(rest)
        return b.fma(b.neg(x) if negative else x, y, rest)
    return None


def _is_free(node: Expr, name: str, uses: Counter[Expr], outside: frozenset[Expr]) -> bool:
    """Whether a node is such an op of the expansion's own, with one user."""
    return (
        isinstance(node, Op)
        and node.name == name
        and uses[node] == 1
        and node not in outside
        and EXACT not in node.attrs
    )


class Contract(Rewriter):
    """The same in statements that an expansion writes."""

    def __init__(self, b: Builder, given: Sequence[Expr]) -> None:
        super().__init__()
        self._b, self._given = b, given

    def rewrite(self, root: Expr) -> Expr:
        """An expression of a statement."""
        return contracted(self._b, (root,), self._given)[0]
