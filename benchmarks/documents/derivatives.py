"""F2: derivatives of least squares and of softmax(Ax + b)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from examples import least_squares

from benchmarks.documents.section import Section, Setting, faster, run, times_table
from benchmarks.program import Program
from benchmarks.report import readable, times
from benchmarks.timing import Figures

SIDES = ("pullback", "jax", "numpy", "torch", "autograd")


@cache
def cases_of(jax: Any, size: int) -> dict[str, least_squares.Case]:
    """The example's cases by name, made once for each library."""
    return {case.name: case for case in least_squares.cases(jax, size)}


def torch_function(torch: Any, name: str) -> Callable:
    """The same derivative by torch.func."""
    func = torch.func

    def f(x, a, b):
        return ((a @ x - b) ** 2).sum()

    def softmax(x, a, b):
        return torch.softmax(a @ x + b, 0)

    def product(x, a, b, v):
        return func.jvp(lambda x: func.grad(f)(x, a, b), (x,), (v,))[1]

    if name.startswith("softmax"):
        return (func.jacfwd if name.endswith("forward") else func.jacrev)(softmax)
    if name.startswith("Hessian-vector"):
        return product
    return {
        "gradient: formula, jitted": least_squares.gradient_formula,
        "gradient: grad": func.grad(f),
        "gradient: grad, jitted": func.grad(f),
        "Hessian: formula, jitted": least_squares.hessian_formula,
        "Hessian: hessian": func.hessian(f),
        "Hessian: hessian, jitted": func.hessian(f),
        "Hessian: jacrev(jacrev), jitted": func.jacrev(func.jacrev(f)),
    }[name]


def autograd_function(autograd: Any, anp: Any, name: str) -> Callable:
    """The same derivative by autograd."""
    f = least_squares.least_squares(anp)

    def softmax(x, a, b):
        y = anp.exp(anp.dot(a, x) + b)
        return y / anp.sum(y)

    if name.startswith("gradient"):
        return autograd.grad(f)
    return autograd.jacobian(softmax) if name.startswith("softmax") else autograd.hessian_vector_product(f)


def programs(size: int) -> list[Program]:
    """One for each case. autograd has no forward Jacobians, and its large ones take a minute."""
    import pullback

    def of(name: str, case: least_squares.Case) -> Program:
        narrow = case.inputs[1].shape[1] < size
        by_autograd = name == "gradient: grad" or ("reverse" in name and narrow) or "product" in name
        return Program(
            name,
            inputs=lambda rng: case.inputs,
            jax=lambda jax: cases_of(jax, size)[name].function,
            numpy=case.formula,
            torch=lambda torch: torch_function(torch, name),
            autograd=(lambda autograd, anp: autograd_function(autograd, anp, name)) if by_autograd else None,
            jit=False,
            x64=True,
            tolerance=1e-9,
        )

    return [of(name, case) for name, case in cases_of(pullback, size).items()]


def measure(setting: Setting) -> Iterator[Figures]:
    """All libraries."""
    return run("F2", programs(100 if setting.quick else least_squares.SIZE), SIDES, setting)


def render(figures: Sequence[Figures], folder: Path) -> list[str]:
    """A table; NumPy's column is the formula."""
    by_name = {f.name: f for f in figures}

    def sentence(side: str, title: str) -> str:
        parts = []
        for derivative, formula in (("gradient: grad", "gradient: formula"), ("Hessian: hessian", "Hessian: formula")):
            ours, theirs = by_name.get(derivative + ", jitted"), by_name.get(formula + ", jitted")
            if ours and theirs and side in ours.seconds and side in theirs.seconds:
                ratio = ours.seconds[side] / theirs.seconds[side]
                kind = derivative.split(":")[0]
                parts.append(f"the {kind} in {readable(ours.seconds[side])}, {times(ratio)} times the formula's time")
        for shape in dict.fromkeys(f.name.split(":")[0] for f in figures if f.name.startswith("softmax")):
            modes = [by_name.get(f"{shape}: {mode}") for mode in ("forward", "reverse")]
            known = [f.seconds[side] for f in modes if f and side in f.seconds]
            if len(known) == 2:
                parts.append(
                    f"the Jacobian of {shape} in {readable(known[0])} forward and {readable(known[1])} in reverse"
                )
        return f"**{title}.** Jitted, it computes {'; '.join(parts)}."

    return [
        sentence("jax", "JAX today"),
        sentence("pullback", "pullback")
        + f" It is faster than JAX by {faster(figures, 'jax')}, than PyTorch by {faster(figures, 'torch')}.",
        times_table("derivative", figures, SIDES),
        "NumPy's column is the formula, PyTorch's `torch.func`, eager.",
    ]


SECTION = Section(
    "F2",
    "Derivatives of least squares and of softmax(Ax + b)",
    f"compares, for f(x) = |Ax - b|^2 with n = {least_squares.SIZE} in float64, the gradient by formula, by "
    "`grad` and jitted; the Hessian by formula, `hessian` and `jacrev(jacrev)`; forward and reverse Jacobians of "
    "softmax(Ax + b), where A is square and where it has ten columns; and a Hessian-vector product at n = 3000. Each "
    "is checked against its formula; [examples/least_squares.py](../examples/least_squares.py).",
    measure,
    render,
)
