"""Solvers whose derivatives come from what they solve: custom_linear_solve and custom_root.

A x = b gives x_dot = A^-1 (b_dot - A_dot x), and the transpose of A^-1 solves with A^T: the solver itself is never
differentiated. f(x, t) = 0 gives x_dot = -(df/dx)^-1 df/dt t_dot.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from pullback.core import ClosedJaxpr, current_interpreter, eval_interpreter, eval_jaxpr, hoist_tracers, trace
from pullback.core.jaxpr import DebugInfo
from pullback.core.lowering import Inline
from pullback.core.source import lasting, named_at, with_marks
from pullback.lax.records.families import *
from pullback.transforms.batching import batch_jaxpr
from pullback.transforms.custom import CustomJVP
from pullback.transforms.discharge import reading
from pullback.transforms.jvp import jvp_flat
from pullback.transforms.transpose import backward_pass
from pullback.util.pytree import keystr, tree_flatten, tree_flatten_with_path, tree_unflatten
from pullback.util.record import NamedTuple

__all__ = ["custom_linear_solve", "custom_root", "linear_solve_p"]


class _Part(NamedTuple):
    """A function as a jaxpr whose first `consts` arguments are constants of its own."""

    jaxpr: ClosedJaxpr
    consts: int


class _LinearSolveTuple(NamedTuple):
    """Something of each function of a linear solve, as parameters have it."""

    matvec: Any
    vecmat: Any
    solve: Any
    transpose_solve: Any


class _Parts(NamedTuple):
    """The functions of a linear solve; transposed ones are None where they were not given."""

    matvec: _Part
    vecmat: _Part | None
    solve: _Part
    transpose_solve: _Part | None

    def counts(self) -> list[int]:
        return [part.consts if part is not None else 0 for part in self]

    def params(self) -> dict[str, Any]:
        jaxprs = [None if part is None else part.jaxpr for part in self]
        return {"const_lengths": _LinearSolveTuple(*self.counts()), "jaxprs": _LinearSolveTuple(*jaxprs)}

    def transposed(self) -> _Parts:
        if self.vecmat is None or self.transpose_solve is None:
            raise TypeError(
                "custom_linear_solve: transpose_solve required, but not given: reverse-mode derivatives (jax.grad, "
                "jax.vjp) solve the transposed system"
            )
        return _Parts(self.vecmat, self.matvec, self.transpose_solve, self.solve)


def _parts(const_lengths: Sequence[int], jaxprs: Sequence[ClosedJaxpr | None]) -> _Parts:
    """The functions that parameters say."""
    return _Parts(*[None if j is None else _Part(j, n) for j, n in zip(jaxprs, const_lengths)])  # type: ignore[arg-type]


def _split(parts: _Parts, args: Sequence[Any]) -> tuple[list[list[Any]], list[Any]]:
    """The constants of each part, and the right-hand side."""
    found, at = [], 0
    for n in parts.counts():
        found.append(list(args[at : at + n]))
        at += n
    return found, list(args[at:])


def _run(part: _Part, consts: Sequence[Any], args: Sequence[Any]) -> list[Any]:
    return eval_jaxpr(part.jaxpr.jaxpr, part.jaxpr.consts, *consts, *args)


def _part(
    fun: Callable, avals: Sequence[Any], of: Callable | None = None, tree: Any = None, traced_for: str = ""
) -> tuple[_Part, list[Any]]:
    """A flat function as a part, and the values of its constants. `of`: that of the user's, of a tree and after
    functions of ours.
    """
    info = None if of is None else _info(traced_for, of, tree)
    closed, consts = reading("custom_linear_solve", *hoist_tracers(trace(fun, avals, info)))
    return _Part(closed, len(consts)), consts


def _info(traced_for: str, of: Callable, tree: Any) -> DebugInfo:
    def names(of: Callable) -> list[str]:
        name = ([*inspect.signature(of).parameters] or ["args[0]"])[-1]
        paths = tree_flatten_with_path(with_marks(tree))[0]
        return [name + keystr(path) for path, _ in paths]

    def results() -> list[str]:
        return ["result" + keystr(path) for path, _ in tree_flatten_with_path(with_marks(tree))[0]]

    try:
        arguments = lasting(of, names)
    except (TypeError, ValueError):  # it has no signature
        arguments = None
    return DebugInfo(traced_for, named_at(getattr(of, "__name__", str(of)), of), arguments, results)


def _solve_values(*args, const_lengths, jaxprs):
    parts = _parts(const_lengths, jaxprs)
    consts, b = _split(parts, args)
    return _run(parts.solve, consts[2], b)


def _solve_avals(*avals, const_lengths, jaxprs):
    return list(jaxprs.solve.out_avals)


def _whole(params):
    """The jaxpr of the solution, of all operands."""
    parts = _parts(**params)
    before = [
        a for part in (parts.matvec, parts.vecmat) if part is not None for a in part.jaxpr.in_avals[: part.consts]
    ]
    after = (
        [] if parts.transpose_solve is None else parts.transpose_solve.jaxpr.in_avals[: parts.transpose_solve.consts]
    )
    solve, count = parts.solve.jaxpr.in_avals, parts.solve.consts
    avals = [*before, *solve[:count], *after, *solve[count:]]
    return trace(lambda *args: _solve_values(*args, **params), avals)


def _solve_jvp(primals, tangents, *, const_lengths, jaxprs):
    parts = _parts(const_lengths, jaxprs)
    outs = linear_solve_p.bind(*primals, **parts.params())
    consts, b = _split(parts, primals)
    consts_dot, b_dot = _split(parts, tangents)
    n = len(b)
    x, aux = outs[:n], outs[n:]
    right: list[Any] = [None if is_zero(t) else t for t in b_dot]
    if not all(map(is_zero, consts_dot[0])):
        _, change = jvp_flat(lambda *c: _run(parts.matvec, c, x), consts[0], consts_dot[0])
        right = [r if is_zero(c) else add_tangents(r, lax.neg(c)) for r, c in zip(right, change)]
    if all(r is None for r in right):
        return outs, [tangent_zero(out) for out in outs]
    right = [lax.full_like(v, 0) if r is None else r for r, v in zip(right, b)]
    args = [c for part in consts for c in part]
    return outs, [*linear_solve_p.bind(*args, *right, **parts.params())[:n], *[tangent_zero(a) for a in aux]]


def _solve_transpose(bars, *args, const_lengths, jaxprs):
    parts = _parts(const_lengths, jaxprs)
    consts, b = _split(parts, args)
    if any(is_linear(c) for part in consts for c in part):
        raise NotImplementedError(
            "Transpose (reverse-mode) rule of primitive 'custom_linear_solve' is not there for what its functions "
            "close over"
        )
    bars = list(bars)[: len(b)]
    none = [None] * (len(args) - len(b))
    if all(map(is_zero, bars)):
        return [*none, *[tangent_zero(x) for x in b]]
    bars = [instantiate(bar) for bar in bars]
    turned = parts.transposed()
    found = linear_solve_p.bind(*consts[1], *consts[0], *consts[3], *consts[2], *bars, **turned.params())
    return [*none, *found[: len(b)]]


def _solve_batch(axis, args, dims, *, const_lengths, jaxprs):
    """The right-hand side is batched, and so is each function whose constants are, or whose solution is."""
    parts = _parts(const_lengths, jaxprs)
    consts, b = _split(parts, args)
    consts_dims, b_dims = _split(parts, dims)
    b = [batch_front(x, d, axis.size) for x, d in zip(b, b_dims)]
    new: list[Any] = []
    values: list[Any] = []
    for part, cs, ds in zip(parts, consts, consts_dims):
        if part is None:
            new.append(None)
            continue
        rest = len(part.jaxpr.in_avals) - part.consts
        closed, _ = batch_jaxpr(part.jaxpr, axis, [d is not None for d in ds] + [True] * rest, True)
        new.append(_Part(closed, part.consts))
        values += [c if d is None else move_batch_axis(c, d, 0) for c, d in zip(cs, ds)]
    outs = linear_solve_p.bind(*values, *b, **_Parts(*new).params())
    return outs, [0] * len(outs)


linear_solve_p = Primitive(
    "custom_linear_solve",
    doc="The solution of a linear system by a function of the user's.",
    abstract_eval=_solve_avals,
    reference=_solve_values,
    evaluate=_solve_values,
    jvp=_solve_jvp,
    transpose=_solve_transpose,
    multiple_results=True,
    batch=NoRule("use batch_axis"),
    batch_axis=_solve_batch,
    lower=Inline(_whole),
    traits={"own types"},  # those of the user's solution
)


def _check_result(
    name: str, tree: Any, wanted: Sequence[Any], outs: Sequence[Any], out_tree: Any, of_counts: type = TypeError
) -> None:
    """TypeError for another structure than that of the argument, `of_counts` for another number of results,
    ValueError for other shapes.
    """
    if out_tree != tree or [np.shape(o) for o in outs] != [a.shape for a in wanted]:
        error = ValueError if out_tree == tree else of_counts if len(outs) != len(wanted) else TypeError
        raise error(
            f"{name} must give arrays of the structure and shapes of its argument: expected {tree} of "
            f"{[a.short() for a in wanted]}, got {out_tree} of {[typeof(o).short() for o in outs]}"
        )


def _strong(*leaves: Any) -> list[Any]:
    """The auxiliary results of a solver as arrays, without weak types."""
    return [lax.convert(x, x.dtype) if isinstance(x.dtype, np.dtype) else x for x in as_arrays("aux", *leaves)]


def _flat(function: Callable, tree: Any, name: str, wanted: Sequence[Any] | None = None) -> Callable:
    """A function of a pytree as one of its leaves, whose result must have the same structure and shapes."""

    def flat(*leaves):
        outs, out_tree = tree_flatten(function(tree_unflatten(tree, leaves)))
        if wanted is not None:
            _check_result(name, tree, wanted, outs, out_tree, of_counts=ValueError)
        return as_arrays(name, *outs)

    return flat


def custom_linear_solve(
    matvec: Callable,
    b: Any,
    solve: Callable,
    transpose_solve: Callable | None = None,
    symmetric: bool = False,
    has_aux: bool = False,
) -> Any:
    """x with matvec(x) = b, as `solve(matvec, b)` finds it; derivatives solve again instead of going through the
    solver.

    matvec is linear and keeps the structure of the pytree b (TypeError otherwise). Reverse mode needs
    `transpose_solve(vecmat, b)` or `symmetric`. With `has_aux`, solvers give (x, anything), and so does this function.
    """
    if transpose_solve is None and symmetric:
        transpose_solve = solve
    leaves, tree = tree_flatten(b)
    leaves = as_arrays("custom_linear_solve", *leaves)
    avals = [typeof(x) for x in leaves]
    matvec_part, matvec_consts = _part(
        _flat(matvec, tree, "custom_linear_solve: matvec", avals), avals, matvec, tree, "custom_linear_solve"
    )

    def as_function(part, consts):
        return lambda x: tree_unflatten(tree, _run(part, consts, as_arrays("custom_linear_solve", *tree_flatten(x)[0])))

    aux_trees: list[Any] = []

    def solver(function, operator):
        def flat(*right):
            out = function(operator, tree_unflatten(tree, right))
            x, aux = out if has_aux else (out, ())
            aux_leaves, aux_tree = tree_flatten(aux)
            aux_trees[:] = [aux_tree]
            return [
                *_flat(lambda _: x, tree, "custom_linear_solve: solve", avals)(*right),
                *as_arrays("custom_linear_solve", *aux_leaves),
            ]

        return flat

    solve_part, solve_consts = _part(
        solver(solve, as_function(matvec_part, matvec_consts)), avals, solve, tree, "custom_linear_solve solve"
    )
    aux_tree = aux_trees[0]
    vecmat_part = transpose_part = None
    vecmat_consts: list[Any] = []
    transpose_consts: list[Any] = []
    if transpose_solve is not None:
        if symmetric:
            vecmat_part, vecmat_consts = matvec_part, matvec_consts
        else:

            def vecmat(*bars):
                linear = [UndefinedPrimal(a) for a in avals]
                closed = matvec_part.jaxpr
                found = backward_pass(closed.jaxpr, closed.consts, [*matvec_consts, *linear], list(bars))
                return [instantiate(x) for x in found[matvec_part.consts :]]

            vecmat_part, vecmat_consts = _part(vecmat, avals)
        transpose_part, transpose_consts = _part(
            solver(transpose_solve, as_function(vecmat_part, vecmat_consts)),
            avals,
            transpose_solve,
            tree,
            "custom_linear_solve transpose_solve",
        )
    parts = _Parts(matvec_part, vecmat_part, solve_part, transpose_part)
    outs = linear_solve_p.bind(
        *matvec_consts, *vecmat_consts, *solve_consts, *transpose_consts, *leaves, **parts.params()
    )
    n = len(leaves)
    x = tree_unflatten(tree, outs[:n])
    return (x, tree_unflatten(aux_tree, outs[n:])) if has_aux else x


def custom_root(
    f: Callable, initial_guess: Any, solve: Callable, tangent_solve: Callable, has_aux: bool = False
) -> Any:
    """x with f(x) = 0, as `solve(f, initial_guess)` finds it; derivatives by the implicit function theorem.

    `tangent_solve(g, y)` solves g(x) = y for linear g. With `has_aux`, `solve` gives (x, anything), and so does
    this function. f must keep the structure (TypeError) and the shapes (ValueError) of its argument.
    """
    for argument, function in (("f", f), ("solve", solve), ("tangent_solve", tangent_solve)):
        unneeded = function is None and argument == "tangent_solve"  # where no derivative is asked for
        if not callable(function) and not unneeded:
            raise TypeError(f"custom_root: argument '{argument}' must be a function, got {function!r}")
    leaves, tree = tree_flatten(initial_guess)
    leaves = as_arrays("custom_root", *leaves)
    avals = [typeof(x) for x in leaves]
    if current_interpreter() is eval_interpreter():

        def checked(x: Any) -> Any:
            out = f(x)
            _check_result("custom_root: f", tree, avals, *tree_flatten(out))
            return out

        checked(tree_unflatten(tree, leaves))
        found = solve(checked, tree_unflatten(tree, leaves))
        x, aux = found if has_aux else (found, ())
        x_leaves, x_tree = tree_flatten(x)
        _check_result("custom_root: solve", tree, avals, x_leaves, x_tree)
        x = tree_unflatten(tree, as_arrays("custom_root: solve", *x_leaves))
        aux_leaves, aux_tree = tree_flatten(aux)
        return (x, tree_unflatten(aux_tree, _strong(*aux_leaves))) if has_aux else x
    part, consts = _part(_flat(f, tree, "custom_root: f", avals), avals)
    aux_trees: list[Any] = []

    def solved(*guess):
        out = solve(
            lambda x: tree_unflatten(tree, _run(part, consts, as_arrays("custom_root", *tree_flatten(x)[0]))),
            tree_unflatten(tree, guess),
        )
        x, aux = out if has_aux else (out, ())
        aux_leaves, aux_tree = tree_flatten(aux)
        aux_trees[:] = [aux_tree]
        return [*_flat(lambda _: x, tree, "custom_root: solve", avals)(*guess), *as_arrays("custom_root", *aux_leaves)]

    solve_part, solve_consts = _part(solved, avals)
    aux_tree, n, m = aux_trees[0], len(leaves), len(solve_consts)

    def _custom_root(*args):  # these two are named as jaxprs name them
        return _run(solve_part, args[part.consts : part.consts + m], args[part.consts + m :])

    def _root_jvp(primals, tangents):
        outs = current_interpreter().process_custom_jvp(CustomJVP, _custom_root, _root_jvp, tuple(primals))
        x, values = list(outs[:n]), list(primals[: part.consts])
        if all(map(is_zero, tangents[: part.consts])):
            return list(outs), [tangent_zero(out) for out in outs]
        _, change = jvp_flat(lambda *c: _run(part, c, x), values, tangents[: part.consts])
        right = [lax.neg(instantiate(c)) for c in change]

        def linear(y):
            _, dots = jvp_flat(lambda *s: _run(part, values, s), x, tree_flatten(y)[0])
            return tree_unflatten(tree, [instantiate(d) for d in dots])

        x_dot = custom_linear_solve(linear, tree_unflatten(tree, right), tangent_solve, tangent_solve)
        return list(outs), [*tree_flatten(x_dot)[0], *[tangent_zero(a) for a in outs[n:]]]

    outs = current_interpreter().process_custom_jvp(
        CustomJVP, _custom_root, _root_jvp, (*consts, *solve_consts, *leaves)
    )
    x = tree_unflatten(tree, outs[:n])
    return (x, tree_unflatten(aux_tree, outs[n:])) if has_aux else x
