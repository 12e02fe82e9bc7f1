"""What the `emit` rule of a Nest sees: operands and results in memory, statements, library routines, products and
programs inside.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pullback.compiler.lower import control
from pullback.compiler.lower.contexts import NestContext
from pullback.compiler.lower.storage import Storage
from pullback.compiler.products import convolutions, products
from pullback.loops.ir import Expr


class RuleContext(NestContext):
    """A NestContext with all that is written in terms of one."""

    _alone = False  # whether calls of libraries run on one thread already

    # Libraries.

    def call_fortran(self, symbol: str, *args: Any, result: str | None = None) -> Expr | None:
        """Call a BLAS or LAPACK routine such as 'dgemm': every argument goes by reference.

        An argument is a Storage or Address (an array), an Expr or number (a scalar: ints become those of the library,
        util.lapack.integer, and floats need an Expr), or a one-letter string. It runs on the calling thread alone;
        inside a loop with role 'threads' that needs `blas_alone` around the loop.
        """
        if self._alone:
            return products.call_fortran(self, symbol, args, result)
        with products.one_thread(self):
            return products.call_fortran(self, symbol, args, result)

    @contextmanager
    def blas_alone(self) -> Iterator[None]:
        """Calls of Fortran routines inside run on the thread that calls them alone; said once for all of them."""
        with products.one_thread(self):
            self._alone = True
            yield
            self._alone = False

    # Programs inside.

    def carry_loop(self, closed, length, reverse, consts, init, xs, carry, ys, turned=()) -> None:
        """carry, ys = scan(closed); the carry lives in the memory of its results."""
        control.carry_loop(self, closed, length, reverse, consts, init, xs, carry, ys, turned)

    def while_loop(self, cond, body, cond_consts, body_consts, init, results) -> None:
        """results = while_loop; the state lives in the memory of the results."""
        control.while_loop(self, cond, body, cond_consts, body_consts, init, results)

    def choose(self, branches, index: Storage, operands, results) -> None:
        """results = branches[clamp(index)](*operands)."""
        control.choose(self, branches, index, operands, results)

    # Products.

    def matmul(self, out: Storage, x: Storage, y: Storage, alpha: float = 1.0, beta: float = 0.0) -> None:
        """out[m, n] = alpha * x[m, k] @ y[k, n] + beta * out, for any strides of x and y; see products.py."""
        products.matmul(self, out, x, y, alpha, beta)

    def dot_general(self, out: Storage, x: Storage, y: Storage, contracting, batch=((), ())) -> None:
        """out = dot_general(x, y), all axes of any strides; see products.py."""
        products.dot_general(self, out, x, y, contracting, batch)

    def convolve(self, out: Storage, x: Storage, w: Storage, params: dict[str, Any]) -> bool:
        """out = x * w, all in the order (batch, feature, space); False if there is no kernel of their type."""
        return convolutions.convolve(self, out, x, w, params)
