"""Functions with derivative rules of the user's own: custom_jvp and custom_vjp."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any, Generic, ParamSpec, Self, TypeVar, overload

import numpy as np

from pullback.api import _arguments as arguments
from pullback.core import (
    Zero,
    current_interpreter,
    eval_interpreter,
    hooks,
    tangent_aval,
    typeof,
)
from pullback.core.asked import unasked
from pullback.core.literals import TypedComplex, TypedFloat, TypedInt
from pullback.core.references import Reference
from pullback.core.source import located
from pullback.core.tracer import OfType, Tracer
from pullback.core.types import lie_alike
from pullback.transforms.custom import CustomJVP, CustomVJP
from pullback.transforms.zeros import instantiate, is_float0
from pullback.util.errors import UnexpectedTracerError
from pullback.util.pytree import (
    keystr,
    tree_flatten,
    tree_flatten_with_path,
    tree_leaves,
    tree_map,
    tree_structure,
    tree_unflatten,
    treedef_tuple,
)
from pullback.util.tracebacks import api_boundary

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])
_TYPED: dict[type, Callable] = {
    bool: lambda x, _dtype: x,
    **dict.fromkeys([int, TypedInt], TypedInt),
    **dict.fromkeys([float, TypedFloat], TypedFloat),
    **dict.fromkeys([complex, TypedComplex], TypedComplex),
}


_NO_NAMED = tree_structure({})


class _Split:
    """The arguments of a call, cut into differentiable trees and fixed Python values."""

    def __init__(self, args: tuple, nondiff: tuple[int, ...], name: str, fun: Callable):
        self.count = len(args)
        self.fixed = {i % len(args): args[i % len(args)] for i in nondiff if -len(args) <= i < len(args)}
        dynamic = tuple(a for i, a in enumerate(args) if i not in self.fixed)
        given, self.tree = tree_flatten(dynamic)
        self.references = {n: leaf for n, leaf in enumerate(given) if isinstance(leaf, Reference)}
        checked: Any = dynamic
        names = None if self.references else functools.partial(arguments.leaf_paths, fun, args, {}, tuple(self.fixed))
        if self.references:
            checked = tree_unflatten(self.tree, [None if isinstance(leaf, Reference) else leaf for leaf in given])
        leaves, _ = arguments.checked_leaves(name, "argument ", checked, names)
        self.avals = [typeof(leaf) for leaf in leaves]
        self._given = leaves
        self._numbers = self._found_numbers(given, leaves)

    def _found_numbers(self, given: list[Any], leaves: list[Any]) -> dict[int, tuple[Any, Any]]:
        """Position of leaf -> array and number of Python, which functions and rules get for that array."""
        if not any([type(x) in _TYPED for x in given]):
            return {}
        plain = [x for x in given if not isinstance(x, Reference)] if self.references else given
        return {
            k: (leaf, _TYPED[type(x)](x, leaf.dtype))
            for k, (x, leaf) in enumerate(zip(plain, leaves))
            if type(x) in _TYPED
        }

    def take(self) -> list[Any]:
        """The leaves, once: the rules of a staged call, which live with its program, are not to hold them."""
        leaves, self._given = self._given, []
        return leaves

    def whole(self, leaves) -> Any:
        """The dynamic arguments with new leaves; references, which have no derivative, are what they were, and so are
        numbers of Python that are not traced.
        """
        if self._numbers:
            leaves = list(leaves)
            for k, (leaf, number) in self._numbers.items():
                if leaves[k] is leaf:
                    leaves[k] = number
        if not self.references:
            return tree_unflatten(self.tree, leaves)
        rest = iter(leaves)
        n = len(self.avals) + len(self.references)
        return tree_unflatten(self.tree, [self.references[k] if k in self.references else next(rest) for k in range(n)])

    def with_references(self, references: dict[int, Any]) -> _Split:
        """The same with other references."""
        found = copy.copy(self)
        found.references = references
        return found

    def full(self, leaves) -> list[Any]:
        """The arguments with new leaves."""
        values = iter(self.whole(leaves))
        return [self.fixed[i] if i in self.fixed else next(values) for i in range(self.count)]

    def check_fixed(self, name: str) -> None:
        """UnexpectedTracerError if a fixed argument is traced: bwd runs when the trace may be over."""
        for number, value in self.fixed.items():
            if any(isinstance(leaf, Tracer) for leaf in tree_leaves(value)):
                raise UnexpectedTracerError(
                    f"custom_vjp: argument {number} of {name} is in nondiff_argnums and holds a JAX Tracer, which bwd "
                    "could not use: it runs when that trace may be over. Take the argument out of nondiff_argnums, and "
                    "return None (or zeros) from bwd for it."
                )

    @property
    def fixed_values(self) -> list[Any]:
        return [self.fixed[i] for i in sorted(self.fixed)]


def _named(flat: Callable, rule: Callable, symbolic_zeros: bool = False) -> Callable:
    """The flat function, with the name of the user's for programs as text."""
    flat.__name__ = arguments.function_name(rule)
    flat.symbolic_zeros = symbolic_zeros  # type: ignore[attr-defined]
    return flat


class _Custom(Generic[P, R]):
    """What custom_jvp and custom_vjp share."""

    __name__: str
    __qualname__: str

    @api_boundary
    def __init__(self, fun: Callable[P, R], nondiff_argnums: Any = (), nondiff_argnames: Any = ()):
        arguments.check_callable(type(self).__name__, fun)
        functools.update_wrapper(self, fun)
        self.fun: Callable[..., R] = fun
        if isinstance(nondiff_argnums, int):
            name = type(self).__name__
            raise TypeError(f"{name}: argument 'nondiff_argnums' must be a sequence of integers, got {nondiff_argnums}")
        nums, _ = arguments.resolve_argnums(
            type(self).__name__, fun, "nondiff", arguments.as_tuple(nondiff_argnums), ()
        )
        if nondiff_argnames:
            more, _ = arguments.resolve_argnums(type(self).__name__, fun, "nondiff", None, nondiff_argnames)
            nums = (*nums, *more)
        self.nondiff_argnums = tuple(sorted(set(nums)))
        self._name = arguments.function_name(fun)
        self._positions = arguments.Positions(type(self).__name__, fun)
        # Rules of the package's own functions are written for arrays; those of others get what `jvp` was given.
        self._wants_arrays = str(getattr(fun, "__module__", "")).startswith("pullback.")

    @api_boundary
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        raise NotImplementedError(type(self).__name__)

    @overload
    def __get__(self, instance: None, owner: Any = None) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: Any = None) -> Callable[..., R]: ...
    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __getattr__(self, name: str) -> Any:
        """What the function has, such as the rules of a custom_vmap that it is."""
        if name == "fun" or name.startswith("__"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self.fun, name)

    def _flat_function(self, split: _Split, out_tree: list):
        def flat(*leaves):
            outs, tree = arguments.flatten_result(self.fun(*split.full(leaves)), self.fun, type(self).__name__)
            out_tree[:] = [tree]
            return outs

        flat.names_of_arguments = lambda: self._names(split)  # type: ignore[attr-defined]
        return _named(flat, self.fun)

    def _names(self, split: _Split) -> Any:
        """The names of the leaves of a call, for a DebugInfo; None where they are not told."""
        return None

    def _evaluated(self, split: _Split) -> Any:
        """The function's result where nothing transforms it: no rule is made."""
        outs, tree = arguments.flatten_result(self.fun(*split.full(split.take())), self.fun, type(self).__name__)
        return tree_unflatten(tree, outs)

    def _rules(self, *args: Any) -> list[Callable]:
        raise NotImplementedError(type(self).__name__)

    def _marked(self, flat: list[Callable], rules: tuple, split: _Split, out_tree: list) -> list[Callable]:
        """Flat rules that say which references they get, and how they are made for others: those of a program, which
        end with its trace, stand for those that it is called with.
        """
        if split.references:
            for rule in flat:
                rule.references = split.references  # type: ignore[attr-defined]
                rule.rules_with = lambda found: self._rules(  # type: ignore[attr-defined]
                    *rules, split.with_references(found), list(out_tree)
                )
        return flat


class custom_jvp(_Custom[P, R]):
    """A function whose forward derivative is given by `defjvp` or `defjvps`; the reverse one is its transpose.

    nondiff_argnums: arguments that are passed on to the rule as they are, before primals and tangents.
    """

    jvp: Callable | None = None
    symbolic_zeros = False

    def defjvp(self, jvp: F, symbolic_zeros: bool = False) -> F:
        """Set the rule `jvp(*nondiff, primals, tangents) -> (out, out_dot)`; usable as a decorator."""
        self.jvp = jvp
        self.symbolic_zeros = symbolic_zeros
        return jvp

    def defjvps(self, *jvps: Callable | None) -> None:
        """Set one rule an argument, `rule(x_dot, out, *primals) -> out_dot`, or None where the derivative vanishes."""
        if self.nondiff_argnums:
            raise TypeError(
                f"defjvps gives a rule to each argument, but {self._name} has nondiff_argnums={self.nondiff_argnums}; "
                "give one rule for all to defjvp"
            )

        def jvp(primals, tangents):
            if len(jvps) != len(primals):
                raise ValueError(
                    f"defjvps: {self._name} has {len(primals)} arguments, but {len(jvps)} rules were given (None for "
                    "an argument without a derivative)"
                )
            out = self(*primals)  # type: ignore[call-arg]
            parts = [rule(t, out, *primals) for rule, t in zip(jvps, tangents) if rule is not None]
            leaves, tree = tree_flatten(out)
            sums: list[Any] = [Zero(tangent_aval(typeof(x))) for x in leaves]
            for part in parts:
                sums = [p if type(s) is Zero else hooks.add(s, p) for s, p in zip(sums, tree_leaves(part))]
            return out, tree_unflatten(tree, [instantiate(s) for s in sums])

        self.defjvp(jvp)

    def _names(self, split: _Split) -> Any:
        if split.references:
            return None
        tree = treedef_tuple((split.tree, _NO_NAMED))
        return arguments.lasting_names(self.fun, tree, split.count, list(split.fixed))

    @api_boundary
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        jvp = self.jvp
        if jvp is None:
            raise AttributeError(
                f"No JVP defined for {self._name}: give its rule to defjvp before the function is called"
            )
        split = _Split(self._positions.of(args, kwargs), self.nondiff_argnums, self._name, self.fun)
        interpreter = current_interpreter()
        if interpreter is eval_interpreter():
            return self._evaluated(split)
        out_tree: list[Any] = []
        (flat_jvp,) = self._rules(jvp, split, out_tree)
        outs = interpreter.process_custom_jvp(CustomJVP, self._flat_function(split, out_tree), flat_jvp, split.take())
        return tree_unflatten(out_tree[0], outs)

    def _rules(self, jvp: Callable, split: _Split, out_tree: list[Any]) -> list[Callable]:
        """The flat rule, alone in a list."""

        def flat_jvp(primals, tangents):
            if self._wants_arrays:
                primals, tangents = map(arguments.as_array, primals), map(arguments.as_array, tangents)
            xs = split.whole(primals)
            if self.symbolic_zeros:
                ts = [SymbolicZero(t.aval) if type(t) is Zero else t for t in tangents]
            else:
                ts = [instantiate(t) for t in tangents]
            pair = jvp(*split.fixed_values, tuple(xs), tuple(split.whole(ts)))
            return _checked_pair(pair, self._name, jvp, out_tree)

        return self._marked([_named(flat_jvp, jvp, self.symbolic_zeros)], (jvp,), split, out_tree)


def _checked_pair(pair, name, rule, out_tree):
    """(outs, outs_dot) of a user's jvp rule; TypeError where structure, shapes or dtypes of the two disagree."""
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        raise TypeError(
            f"custom_jvp: the rule of {name} must return two things, (outputs, their tangents), got {pair!r}"
            f"{_rule_at(rule)}"
        )
    outs, tree = tree_flatten(pair[0])
    dots, dot_tree = tree_flatten(pair[1])
    if tree != dot_tree:
        raise TypeError(
            f"custom_jvp: the rule of {name} returned outputs of structure {tree}, and tangents of another, "
            f"{dot_tree}; give one tangent for each output, arranged alike{_rule_at(rule)}"
        )
    if out_tree and out_tree[0] != tree:
        raise TypeError(
            f"custom_jvp: {name} itself returns {out_tree[0]}, but the outputs that its rule returned, first of the "
            f"two, are {tree}; the structures must be the same{_rule_at(rule)}"
        )
    out_tree[:] = [tree]
    new_dots = []
    for out, dot in zip(outs, dots):
        want = tangent_aval(typeof(out))
        if isinstance(dot, SymbolicZero):
            new_dots.append(Zero(want))
            continue
        have = typeof(dot)
        if have.shape != want.shape or (have.dtype != want.dtype and not (have.weak_type and isinstance(dot, float))):
            raise TypeError(
                f"custom_jvp: the rule of {name} returned an output {typeof(out).short()} with a tangent "
                f"{have.short()}; its tangent must be {want.short()}{_rule_at(rule)}"
            )
        new_dots.append(dot if have.dtype == want.dtype else hooks.convert(dot, want.dtype, False))
    return _arrays(outs), _arrays(new_dots)


def _rule_at(rule: Callable) -> str:
    """A line that says where a rule is written: users' frames are those of the call that needed it."""
    return f"\nThe rule is {located(rule)}."


def _arrays(values: list[Any]) -> list[Any]:
    """A rule's results as tracers may hold them: what is NumPy's is an array."""
    return [arguments.as_array(x) if isinstance(x, (np.ndarray, np.generic)) else x for x in values]


class SymbolicZero(OfType):
    """A tangent that is known to vanish, as rules defined with `symbolic_zeros=True` see it."""

    def __init__(self, aval):
        self.aval = aval

    @staticmethod
    def from_primal_value(val: Any) -> Any:
        """The zero tangent of a value."""
        return SymbolicZero(tangent_aval(typeof(val)))

    def __repr__(self):
        return f"SymbolicZero({self.aval.short()})"


class CustomVJPPrimal:
    """What a fwd rule defined with `symbolic_zeros=True` gets for each leaf: the value, and whether it is perturbed."""

    def __init__(self, value, perturbed: bool):
        self.value = value
        self.perturbed = perturbed


class custom_vjp(_Custom[P, R]):
    """A function whose reverse derivative is given by `defvjp(fwd, bwd)`.

    fwd(*args) -> (out, residuals);  bwd(*nondiff, residuals, out_bar) -> one cotangent an argument (None for zero).
    """

    fwd: Callable | None = None
    bwd: Callable | None = None
    symbolic_zeros = optimize_remat = False

    def defvjp(self, fwd: Callable, bwd: Callable, symbolic_zeros: bool = False, optimize_remat: bool = False) -> None:
        """Set the two rules."""
        self.fwd, self.bwd = fwd, bwd
        self.symbolic_zeros, self.optimize_remat = symbolic_zeros, optimize_remat

    @api_boundary
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        fwd, bwd = self.fwd, self.bwd
        if fwd is None or bwd is None:
            raise AttributeError(
                f"No VJP defined for {self._name}: give its rules to defvjp before the function is called"
            )
        split = _Split(self._positions.of(args, kwargs), self.nondiff_argnums, self._name, self.fun)
        split.check_fixed(self._name)
        interpreter = current_interpreter()
        if interpreter is eval_interpreter():
            return self._evaluated(split)
        out_tree: list[Any] = []
        flat_fwd, flat_bwd = self._rules(fwd, bwd, split, out_tree)
        outs = interpreter.process_custom_vjp(
            CustomVJP, self._flat_function(split, out_tree), flat_fwd, flat_bwd, split.take()
        )
        return tree_unflatten(out_tree[0], outs)

    def _rules(self, fwd: Callable, bwd: Callable, split: _Split, out_tree: list[Any]) -> list[Callable]:
        """The two flat rules."""
        kept: list[_Residuals] = []

        def flat_fwd(*leaves, perturbed=None):
            values: Any = leaves
            if self.symbolic_zeros:
                values = [CustomVJPPrimal(x, p) for x, p in zip(leaves, perturbed or (True,) * len(leaves))]
            pair = fwd(*split.full(values))
            if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                raise TypeError(
                    f"custom_vjp: {arguments.function_name(fwd)}, the fwd rule of {self._name}, must return two "
                    f"things, (outputs, residuals for bwd), got {pair!r}{_rule_at(fwd)}"
                )
            outs, tree = tree_flatten(pair[0])
            if out_tree and out_tree[0] != tree:
                raise TypeError(
                    f"custom_vjp: {self._name} itself returns {out_tree[0]}, but the outputs that its fwd rule "
                    f"returned, first of the two, are {tree}; the structures must be the same{_rule_at(fwd)}"
                )
            out_tree[:] = [tree]
            kept[:] = [_Residuals(pair[1])]
            return _arrays(outs), kept[0].take()

        def flat_bwd(residuals, outs_bar):
            outs_bar = [SymbolicZero(bar.aval) if type(bar) is Zero else bar for bar in outs_bar]
            with unasked():
                bars = bwd(*split.fixed_values, kept[0].restored(residuals), tree_unflatten(out_tree[0], outs_bar))
            return _argument_cotangents(bars, split, self._name, bwd)

        flat = [_named(flat_fwd, fwd, self.symbolic_zeros), _named(flat_bwd, bwd, self.symbolic_zeros)]
        return self._marked(flat, (fwd, bwd), split, out_tree)


@api_boundary
def zero_from_primal(val: Any, symbolic_zeros: bool = False) -> Any:
    """The tree of zero tangents of a tree of primal values, as arrays or as SymbolicZero; float0 for integers."""

    def zero(leaf: Any) -> Any:
        aval = tangent_aval(typeof(leaf))
        return SymbolicZero(aval) if symbolic_zeros else instantiate(Zero(aval))

    return tree_map(zero, val)


@api_boundary
def custom_vjp_primal_tree_values(tree: Any) -> Any:
    """The tree with the values of its CustomVJPPrimal leaves; TypeError for other leaves."""

    def value(leaf: Any) -> Any:
        if type(leaf) is not CustomVJPPrimal:
            raise TypeError(f"custom_vjp_primal_tree_values: unexpected leaf of type {type(leaf)}")
        return leaf.value

    return tree_map(value, tree)


def _is_kept(leaf: Any) -> bool:
    return type(leaf) in _TYPED or isinstance(leaf, Reference)


class _Residuals:
    """What a fwd rule keeps for its bwd: arrays, and Python scalars and references, which reach the bwd as they are."""

    def __init__(self, tree: Any) -> None:
        leaves, self.tree = tree_flatten(tree)
        self.scalars = {n: leaf for n, leaf in enumerate(leaves) if _is_kept(leaf)}
        self.count = len(leaves)
        others = [n for n in range(self.count) if n not in self.scalars]

        def paths():
            found = tree_flatten_with_path(tree)[0]
            return [keystr(found[n][0]) for n in others]

        self._given, _ = arguments.checked_leaves("custom_vjp", "residual ", [leaves[n] for n in others], paths)

    def take(self) -> list[Any]:
        """The arrays, once, as those of _Split."""
        arrays, self._given = self._given, []
        return arrays

    def restored(self, arrays: list[Any]) -> Any:
        """The residuals with other arrays."""
        rest = iter(arrays)
        leaves = [self.scalars[n] if n in self.scalars else next(rest) for n in range(self.count)]
        return tree_unflatten(self.tree, leaves)


def _argument_cotangents(bars, split: _Split, name: str, bwd: Callable) -> list[Any]:
    """One cotangent a leaf; TypeError/ValueError where the user's bwd gives the wrong structure, shape or dtype."""
    if isinstance(bars, list):
        bars = tuple(bars)
    children = split.tree.children()
    if not isinstance(bars, tuple) or len(bars) != len(children):
        got = f"a tuple of length {len(bars)}" if isinstance(bars, tuple) else f"{bars!r}"
        raise TypeError(
            f"custom_vjp: the bwd rule of {name} must return a tuple of length {len(children)}, a cotangent for each "
            f"argument, got {got}{_rule_at(bwd)}"
        )
    flat: list[Any] = []
    for number, (bar, child) in enumerate(zip(bars, children)):
        flat.extend(_leaf_cotangents(bar, child, f"[{number}]", name, bwd))
    out: list[Any] = []
    paths = [keystr(p) for p, _ in tree_flatten_with_path(split.whole(split.avals))[0]]
    flat = [bar for n, bar in enumerate(flat) if n not in split.references]
    paths = [path for n, path in enumerate(paths) if n not in split.references]
    for bar, aval, path in zip(flat, split.avals, paths):
        want = aval.to_cotangent_aval()
        if bar is None or isinstance(bar, SymbolicZero) or is_float0(bar) or type(bar) is Zero:
            out.append(None)
            continue
        have = typeof(bar)
        if is_float0(want):  # the argument is not differentiable
            out.append(None)
            continue
        if have.shape != want.shape:
            raise ValueError(
                f"custom_vjp: the bwd rule of {name} returned {have.short()} at output{path}, where the argument's "
                f"cotangent is {want.short()}; the shapes must be the same{_rule_at(bwd)}"
            )
        if have.vma != want.vma:
            raise ValueError(
                f"custom_vjp: the bwd rule of {name} returned {have} at output{path}, where the argument's cotangent "
                f"is {want}, so the manual axis types do not match; sum it over the axes along which the input is the "
                f"same (lax.psum), or say that it varies (lax.pcast){_rule_at(bwd)}"
            )
        if have.placing is not want.placing and isinstance(bar, Tracer) and not lie_alike(have, want):
            raise ValueError(
                f"custom_vjp: the bwd rule of {name} returned {have} at output{path}, where the argument's cotangent "
                f"is {want}, which is cut otherwise; use jax.sharding.reshard{_rule_at(bwd)}"
            )
        out.append(bar)  # of another dtype, as in JAX: backward_pass converts it for rules that are not users'
    return out


def _leaf_cotangents(bar, child, path, name, bwd):
    """The cotangents of one argument's leaves; None stands for zeros of a whole subtree."""
    if bar is None:
        return [None] * child.num_leaves
    leaves, tree = tree_flatten(bar)
    if tree == child:
        return leaves
    leaves, prefix = tree_flatten(bar, is_leaf=lambda x: x is None)
    try:
        parts = prefix.flatten_up_to(tree_unflatten(child, [()] * child.num_leaves))
    except ValueError:
        parts = []
    counts = [1 if part == () else tree_flatten(part, is_leaf=lambda x: x == ())[1].num_leaves for part in parts]
    if parts and all(leaf is None or count == 1 for leaf, count in zip(leaves, counts)):
        return [leaf for leaf, count in zip(leaves, counts) for _ in range(count)]
    raise TypeError(
        f"custom_vjp: the bwd rule of {name} returned the structure {tree} at output{path}, but the argument there is "
        f"{child}; give a cotangent for each of its leaves, or None for zeros{_rule_at(bwd)}"
    )
