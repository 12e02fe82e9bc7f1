"""Derivatives of least squares, f(x) = |Ax - b|^2, and of softmax(Ax + b), in float64, checked against formulas.

The gradient is 2 A'(Ax - b) and the Hessian 2 A'A; with s = softmax(Ax + b), its Jacobian is (diag(s) - s s') A.
Forward mode goes through a function once for each input, reverse mode once for each output; a Hessian-vector product
needs no Hessian.

    python -m examples.least_squares                       # n = 1000, and 3000 for the Hessian-vector product
    python -m examples.least_squares --size 200
    python -m examples.least_squares --backend jax         # the same source on JAX
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from examples import _common as common

SIZE = 1000
TOLERANCE = 1e-9


@dataclass(frozen=True)
class Case:
    """One row: a function of JAX's API, its inputs, and the formula for its value in NumPy."""

    name: str
    function: Callable
    inputs: tuple
    formula: Callable


def least_squares(np: Any) -> Callable:
    """|Ax - b|^2, by NumPy or what has its names."""
    return lambda x, a, b: np.sum((np.dot(a, x) - b) ** 2)


def gradient_formula(x, a, b):
    return 2 * a.T @ (a @ x - b)


def hessian_formula(x, a, b):
    return 2 * a.T @ a


def product_formula(x, a, b, v):
    """The Hessian of least squares times v."""
    return 2 * a.T @ (a @ v)


def softmax_formula(x, a, b):
    """The Jacobian of softmax(Ax + b) in x."""
    y = a @ x + b
    s = np.exp(y - y.max())
    s /= s.sum()
    return s[:, None] * (a - s @ a)


def inputs(rows: int, columns: int, more: int = 0) -> tuple:
    """(x, A, b) in float64, A of rows x columns, and as many further vectors like x."""
    rng = np.random.default_rng(rows + columns)
    a = rng.standard_normal((rows, columns)) / np.sqrt(columns)
    further = (rng.standard_normal(columns) for _ in range(more))
    return rng.standard_normal(columns), a, rng.standard_normal(rows), *further


def cases(jax: Any, size: int = SIZE) -> list[Case]:
    """All rows; matrices are size x size, for the narrow Jacobian size x size / 100, for the product 3 size."""
    f = least_squares(jax.numpy)
    grad, hessian, twice = jax.grad(f), jax.hessian(f), jax.jacrev(jax.jacrev(f))

    def softmax(x, a, b):
        return jax.nn.softmax(a @ x + b)

    def product(x, a, b, v):
        return jax.jvp(lambda x: grad(x, a, b), (x,), (v,))[1]

    square, narrow = inputs(size, size), inputs(size, max(1, size // 100))
    found = [
        Case("gradient: formula, jitted", jax.jit(gradient_formula), square, gradient_formula),
        Case("gradient: grad", grad, square, gradient_formula),
        Case("gradient: grad, jitted", jax.jit(grad), square, gradient_formula),
        Case("Hessian: formula, jitted", jax.jit(hessian_formula), square, hessian_formula),
        Case("Hessian: hessian", hessian, square, hessian_formula),
        Case("Hessian: hessian, jitted", jax.jit(hessian), square, hessian_formula),
        Case("Hessian: jacrev(jacrev), jitted", jax.jit(twice), square, hessian_formula),
    ]
    for given in (square, narrow):
        shape = " x ".join(map(str, given[1].shape))
        for mode, jacobian in (("forward", jax.jacfwd), ("reverse", jax.jacrev)):
            found.append(Case(f"softmax {shape}: {mode}", jax.jit(jacobian(softmax)), given, softmax_formula))
    large = inputs(3 * size, 3 * size, more=1)
    found.append(Case(f"Hessian-vector product, n = {3 * size}", jax.jit(product), large, product_formula))
    return found


def main(argv: list[str] | None = None) -> int:
    """Run the example; 0 if all values agree with the formulas."""
    parser = common.parser("least_squares", __doc__, picture=False)
    parser.add_argument("--size", type=int, default=SIZE, help="rows and columns of A (default: %(default)s)")
    common.add_rounds(parser)
    options = parser.parse_args(argv)
    jax = common.backend(options.backend)
    jax.config.update("jax_enable_x64", True)

    rows, worst = [], 0.0
    for case in cases(jax, options.size):
        common.progress(case.name)
        given = tuple(map(jax.numpy.asarray, case.inputs))
        error = common.difference(case.function(*given), case.formula(*case.inputs))
        worst = max(worst, error)
        calls = {"here": partial(case.function, *given), "NumPy": partial(case.formula, *case.inputs)}
        times = common.seconds(jax, calls, options.rounds)
        rows.append([case.name, times["here"], times["NumPy"], f"{error:.0e}"])
    common.progress("")

    print("\n" + common.table(["derivative", options.backend, "formula in NumPy", "relative error"], rows))
    if worst > TOLERANCE:
        print("a derivative differs from its formula", file=sys.stderr)
    return int(worst > TOLERANCE)


if __name__ == "__main__":
    sys.exit(main())
