"""Primitives of the user's own with their own derivatives and batching: `VJPHiPrimitive`.

A primitive is an object: its class has the rules, the object the types and parameters of one call. Evaluated, it is
what `expand` says. Differentiated, its flat form is a call with a custom jvp: that runs the forward rule, and binds the
linear map whose transpose is the backward rule. Arguments and results may be trees, and objects of types above arrays,
whose tangents are those of their carriers (core/high.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.api._arguments import as_array
from pullback.api.custom_vmap import custom_vmap
from pullback.core import ShapedArray, Zero, high, hooks, tangent_aval, typeof
from pullback.core.interpreter import current_interpreter, eval_interpreter
from pullback.core.tracer import Tracer
from pullback.lax.control.linear_call import linear_call
from pullback.numpy import moveaxis
from pullback.transforms.batching import BatchInterpreter
from pullback.transforms.custom import CustomJVP, CustomVJP
from pullback.transforms.zeros import instantiate, symbolic
from pullback.util.pytree import flatten_axes, tree_flatten, tree_map, tree_unflatten
from pullback.util.tracebacks import api_boundary


class _Accumulator:
    """What `vjp_bwd` hands the cotangent of one argument to."""

    def __init__(self, aval: Any) -> None:
        self.aval = aval
        self.value: Any = None

    def accum(self, x: Any) -> None:
        """Add a cotangent; None and symbolic zeros add nothing."""
        if x is not None and type(x) is not Zero:
            self.value = x if self.value is None else hooks.add(self.value, x)


class VJPHiPrimitive:
    """Base of primitives that say themselves how they are differentiated and mapped.

    A subclass sets `in_avals` (one type, or tree of types, an argument), `out_aval` (a tree of types) and `params` (a
    dict of static values, which become attributes), and then calls `super().__init__()`. It has `expand(*args)`, what
    the primitive computes, and any of the rules: `vjp_fwd(nzs_in, *args) -> (out, residuals)` with `vjp_bwd_retval(
    residuals, out_bar) -> args_bar`, or with `vjp_bwd(residuals, out_bar, *accumulators)`; `jvp(primals, tangents) ->
    (out, out_dot)`; `lin(nzs_in, *args) -> (out, residuals)` with `linearized(residuals, *tangents) -> out_dot`;
    `batch(axis_data, args, dims) -> (out, dims)`, without which `expand` is mapped. Its objects are called.

    Raises TypeError for arguments of other types, NotImplementedError where there is no rule.
    """

    in_avals: tuple[Any, ...]
    out_aval: Any
    params: dict[str, Any]
    effects: frozenset[Any] = frozenset()

    def __init__(self) -> None:
        for name in ("in_avals", "out_aval", "params"):
            if not hasattr(self, name):
                raise AttributeError(f"{type(self).__name__}: set {name} before super().__init__()")
        self.__dict__.update(self.params)
        self.in_avals_flat, self.in_tree = tree_flatten(tuple(self.in_avals))
        self.out_avals_flat, self.out_tree = tree_flatten(self.out_aval)

    def __hash__(self) -> int:
        return hash((type(self), self.in_tree, tuple(self.in_avals_flat), tuple(sorted(self.params.items()))))

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and (self.in_avals, self.params) == (other.in_avals, other.params)  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        return f"{type(self).__name__}[{self.params}]"

    # rules, which subclasses write

    def expand(self, *args: Any) -> Any:
        """The result, by other operations."""
        raise NotImplementedError(f"{type(self).__name__}: subclasses must have expand")

    def vjp_fwd(self, _nzs_in: Any, /, *_args: Any) -> Any:
        """(result, what the backward rule gets)."""
        raise NotImplementedError(f"{type(self).__name__}: for vjp and grad, subclasses must have vjp_fwd")

    def vjp_bwd_retval(self, _residuals: Any, _out_bar: Any, /) -> Any:
        """The cotangents of the arguments."""
        raise NotImplementedError(f"{type(self).__name__}: for vjp and grad, subclasses must have vjp_bwd_retval")

    def vjp_bwd(self, residuals: Any, out_bar: Any, /, *accumulators: Any) -> Any:
        """Hand the cotangents of the arguments to accumulators."""
        _hand_out(accumulators, self.vjp_bwd_retval(residuals, out_bar))

    def jvp(self, _primals: Any, _tangents: Any) -> Any:
        """(result, its tangent)."""
        raise NotImplementedError(f"{type(self).__name__}: for jvp, subclasses must have jvp")

    def lin(self, _nzs_in: Any, *_primals: Any) -> Any:
        """(result, what `linearized` gets)."""
        raise NotImplementedError(f"{type(self).__name__}: for linearize, subclasses must have lin and linearized")

    def linearized(self, _residuals: Any, *_tangents: Any) -> Any:
        """The tangent of the result."""
        raise NotImplementedError(f"{type(self).__name__}: for linearize, subclasses must have lin and linearized")

    def batch(self, _axis_data: Any, _args: Any, _dims: Any) -> Any:
        """(result, its mapped axes)."""
        raise NotImplementedError(f"{type(self).__name__}: no batch")

    def batch_dim_rule(self, _axis_data: Any, _dims: Any, /) -> Any:
        """The mapped axes of the result of `expand`, which are found without it."""
        raise NotImplementedError(f"{type(self).__name__}: no batch_dim_rule")

    def _has(self, rule: str) -> bool:
        return getattr(type(self), rule) is not getattr(VJPHiPrimitive, rule)

    # calls

    @api_boundary
    def __call__(self, *args: Any) -> Any:
        leaves, tree = tree_flatten(args)
        if tree != self.in_tree:
            raise TypeError(f"{self!r}: the arguments must have the structure {self.in_tree} of in_avals, got {tree}")
        for leaf, aval in zip(leaves, self.in_avals_flat, strict=True):
            self._check(leaf, aval)
        has_high = any(high.is_high(leaf) for leaf in leaves) or not all(
            isinstance(a, ShapedArray) for a in self.out_avals_flat
        )
        if current_interpreter() is eval_interpreter() and not any(isinstance(leaf, Tracer) for leaf in leaves):
            return _arrays(self.expand(*tree_map(high.actual, args)))
        if self._has("batch") and not has_high and _is_mapped():
            mapped = custom_vmap(self._call)
            mapped.def_vmap(self._batched)
            return mapped(*args)
        return self._call(*args)

    def _check(self, leaf: Any, aval: Any) -> None:
        have = high.type_of(leaf) if high.is_high(leaf) else typeof(leaf)
        if isinstance(aval, ShapedArray) and isinstance(have, ShapedArray):
            fits = have.shape == aval.shape and have.dtype == aval.dtype
        else:
            fits = have == aval
        if not fits:
            raise TypeError(f"{self!r}: an argument of type {have} was passed, but in_avals say {aval}")

    def _call(self, *args: Any) -> Any:
        low, tree = tree_flatten(high.lowered(args))
        low = [as_array(x) for x in low]
        slots = self._slots(args)
        out_trees: list[Any] = []

        def flattened(out: Any) -> list[Any]:
            outs, out_tree = tree_flatten(high.lowered(out))
            out_trees[:] = [out_tree]
            return [as_array(x) for x in outs]

        def fun(*values: Any) -> list[Any]:
            return flattened(self.expand(*tree_map(high.actual, high.raised(tree_unflatten(tree, values)))))

        def jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
            given = high.raised(tree_unflatten(tree, primals))
            out, dots = self._differentiated(given, [symbolic(tangents[n]) for n in slots])
            outs = flattened(out)
            found: list[Any] = [Zero(tangent_aval(typeof(x))) for x in outs]
            for n, dot in zip(self._slots(out), dots, strict=True):
                if dot is not None and type(dot) is not Zero:
                    found[n] = dot
            return outs, found

        outs = current_interpreter().process_custom_jvp(CustomJVP, fun, jvp, low)
        return high.raised(tree_unflatten(out_trees[0], outs))

    def _slots(self, values: Any) -> list[int]:
        """For each leaf of values, the number of the flat array whose tangent is the leaf's."""
        slots, count = [], 0
        for leaf in tree_flatten(values)[0]:
            if high.is_high(leaf):
                count += len(tree_flatten(high.Lowered.of(leaf))[0])
                slots.append(count - 1)
            else:
                slots.append(count)
                count += 1
        return slots

    def _differentiated(self, args: Any, dots: list[Any]) -> tuple[Any, list[Any]]:
        """(result, the tangents of its leaves), given those of the arguments' leaves."""
        moves = tree_unflatten(self.in_tree, [type(t) is not Zero for t in dots])
        if self._has("vjp_fwd"):
            out, residuals = self.vjp_fwd(moves, *args)[:2]
            return out, self._linear(args, dots, out, residuals)
        if self._has("jvp"):
            out, out_dot = self.jvp(tuple(args), tuple(tree_unflatten(self.in_tree, dots)))
        elif self._has("lin"):
            out, residuals = self.lin(moves, *args)[:2]
            out_dot = self.linearized(residuals, *tree_unflatten(self.in_tree, dots))
        else:
            raise NotImplementedError(f"{type(self).__name__}: to be differentiated, it must have vjp_fwd, jvp or lin")
        return out, self._leaves_of(out_dot, self.out_tree)

    def _leaves_of(self, tree: Any, structure: Any) -> list[Any]:
        """A tangent or cotangent, or None, for each leaf of the structure."""
        return list(flatten_axes(f"{type(self).__name__}", structure, tree, tupled_args=False))

    def _linear(self, args: Any, dots: list[Any], out: Any, residuals: Any) -> list[Any]:
        """The tangents of the result's leaves: a linear map whose transpose is the backward rule."""
        kept, kept_tree = tree_flatten(high.lowered(residuals))
        of_out = [_carrier(leaf) for leaf in tree_flatten(out)[0]]
        of_args = [_carrier(leaf) for leaf in tree_flatten(args)[0]]

        def bwd(values: Sequence[Any], outs_bar: Sequence[Any]) -> list[Any]:
            return self._pulled_back(high.raised(tree_unflatten(kept_tree, values)), of_args, outs_bar)

        if self._has("jvp") or self._has("linearized"):
            held = high.lowered((tuple(args), residuals))

            def forward(both: Any, tangents: Any) -> Any:
                primals = tuple(high.raised(both[0]))
                given = tree_unflatten(self.in_tree, tangents)
                dot = self.jvp(primals, given)[1] if self._has("jvp") else self.linearized(both[1], *given)
                return [instantiate(t) for t in self._leaves_of(dot, self.out_tree)]

            def backward(both: Any, outs_bar: Any) -> Any:
                bars = self._pulled_back(high.raised(both[1]), of_args, outs_bar)
                return [hooks.zeros(tangent_aval(typeof(x))) if b is None else b for b, x in zip(bars, of_args)]

            given = [instantiate(t) for t in dots]
            return linear_call(forward, backward, held, given)

        def fwd(*_primals: Any, **_perturbed: Any) -> tuple[list[Any], list[Any]]:
            return of_out, [as_array(x) for x in kept]

        bwd.symbolic_zeros = True  # type: ignore[attr-defined]
        bwd.refuse_forward = lambda: self.jvp((), ())  # type: ignore[attr-defined]
        return CustomVJP.linearize(fwd, bwd, of_args, dots)[1]

    def _pulled_back(self, residuals: Any, of_args: list[Any], outs_bar: Sequence[Any]) -> list[Any]:
        bars = tree_unflatten(self.out_tree, [symbolic(b) for b in outs_bar])
        if self._has("vjp_bwd"):
            accumulators = [_Accumulator(tangent_aval(typeof(x))) for x in of_args]
            self.vjp_bwd(residuals, bars, *tree_unflatten(self.in_tree, accumulators))
            return [a.value for a in accumulators]
        found = self.vjp_bwd_retval(residuals, bars)
        given = self._leaves_of(tuple(found), self.in_tree)
        return [None if b is None or type(b) is Zero else as_array(b) for b in given]

    def _batched(self, size: int, in_batched: Sequence[Any], *args: Any) -> tuple[Any, Any]:
        dims = tree_map(lambda b: 0 if b else None, tuple(in_batched))
        out, out_dims = self.batch(_Axis(size), args, dims)
        leaves, tree = tree_flatten(out)
        axes = list(flatten_axes(f"{type(self).__name__}.batch", tree, out_dims, tupled_args=False))
        moved = [x if d is None else moveaxis(x, d, 0) for x, d in zip(leaves, axes)]
        return tree_unflatten(tree, moved), tree_unflatten(tree, [d is not None for d in axes])


class _Axis:
    """What `batch` is told of the mapped axis: its size."""

    name = None

    def __init__(self, size: int) -> None:
        self.size = size


def _carrier(leaf: Any) -> Any:
    """The array whose tangent a leaf's is."""
    return high.Lowered.of(leaf).carrier if high.is_high(leaf) else as_array(leaf)


def _arrays(tree: Any) -> Any:
    return tree_map(lambda leaf: leaf if high.is_high(leaf) else as_array(leaf), tree)


def _is_mapped() -> bool:
    """Whether a mapped axis may reach the operations of now."""
    who: Any = current_interpreter()
    while who is not None and who is not eval_interpreter():
        if isinstance(who, BatchInterpreter) or not hasattr(who, "parent"):
            return True
        who = who.parent
    return False


def _hand_out(accumulators: Any, cotangents: Any) -> None:
    leaves, tree = tree_flatten(tuple(accumulators), is_leaf=lambda x: isinstance(x, _Accumulator))
    for one, bar in zip(leaves, flatten_axes("vjp_bwd_retval", tree, tuple(cotangents), tupled_args=False)):
        one.accum(bar)


__all__ = ["VJPHiPrimitive"]
