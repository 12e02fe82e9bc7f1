"""Optimizers as triples of functions.

    init, update, get_params = adam(1e-3)
    state = init(params)                        params: any pytree of arrays
    state = update(step, gradient, state)       step: 0, 1, 2, ...; gradient: a pytree like params
    params = get_params(state)

The state is a pytree: it goes through jit, scan and pmap. A step size is a number or a schedule, step -> number.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pullback.numpy as jnp
from pullback.core.explain import explain_all as _explain_all
from pullback.manual import add_pages as _add_pages
from pullback.manual.example_libraries.optimizers import PAGES as _PAGES
from pullback.tree_util import (
    register_pytree_node,
    tree_flatten,
    tree_leaves,
    tree_map,
    tree_unflatten,
)
from pullback.util.absent import listed as _listed
from pullback.util.record import NamedTuple

__all__ = [
    "Array",
    "InitFn",
    "Params",
    "ParamsFn",
    "State",
    "Step",
    "UpdateFn",
    "Updates",
    "JoinPoint",
    "Optimizer",
    "OptimizerState",
    "adagrad",
    "adam",
    "adamax",
    "clip_grads",
    "constant",
    "exponential_decay",
    "inverse_time_decay",
    "l2_norm",
    "make_schedule",
    "momentum",
    "nesterov",
    "optimizer",
    "pack_optimizer_state",
    "piecewise_constant",
    "polynomial_decay",
    "rmsprop",
    "rmsprop_momentum",
    "sgd",
    "sm3",
    "unpack_optimizer_state",
]

Array = Step = Params = State = Updates = Any
InitFn, UpdateFn, ParamsFn = Callable[[Any], Any], Callable[[Any, Any, Any], Any], Callable[[Any], Any]

Schedule = Callable[[Any], Any]


class OptimizerState(NamedTuple):
    """The state of an optimizer, flat: for each array of the parameters the leaves of its own state.

    tree_def is the structure of the parameters, subtree_defs that of each array's state.

    >>> from pullback.example_libraries import optimizers
    >>> state = optimizers.momentum(0.1, 0.9).init_fn({"w": jnp.zeros(3)})
    >>> print(state.tree_def, len(state.packed_state[0]))
    PyTreeDef({'w': *}) 2
    """

    packed_state: tuple[list[Any], ...]
    tree_def: Any
    subtree_defs: tuple[Any, ...]


register_pytree_node(
    OptimizerState,
    lambda state: ((state.packed_state,), (state.tree_def, state.subtree_defs)),
    lambda structure, children: OptimizerState(children[0], *structure),
)


class Optimizer(NamedTuple):
    """The three functions of an optimizer.

    init_fn(params) gives the first state, update_fn(step, gradients, state) the next, params_fn(state) the parameters.

    >>> from pullback.example_libraries import optimizers
    >>> init_fn, update_fn, params_fn = optimizers.sgd(0.5)
    >>> print(params_fn(update_fn(0, jnp.array([2.0]), init_fn(jnp.array([3.0])))))
    [2.]
    """

    init_fn: Callable[[Any], OptimizerState]
    update_fn: Callable[[Any, Any, OptimizerState], OptimizerState]
    params_fn: Callable[[OptimizerState], Any]


def optimizer(opt_maker: Callable[..., Any]) -> Callable[..., Optimizer]:
    """A function that makes optimizers of pytrees, from one that makes optimizers of single arrays.

    `opt_maker(...)` gives (init, update, get_params) with init(x) -> state, update(step, gradient, state) -> state and
    get_params(state) -> x. The update raises TypeError for a gradient whose structure is not that of the parameters.
    """

    @functools.wraps(opt_maker)
    def make(*args: Any, **kwargs: Any) -> Optimizer:
        init, update, get_params = opt_maker(*args, **kwargs)

        def packed(states: list[Any], tree_def: Any) -> OptimizerState:
            flat = [tree_flatten(state) for state in states]
            return OptimizerState(tuple(leaves for leaves, _ in flat), tree_def, tuple(tree for _, tree in flat))

        def states_of(state: OptimizerState) -> list[Any]:
            return [tree_unflatten(tree, leaves) for tree, leaves in zip(state.subtree_defs, state.packed_state)]

        def tree_init(params: Any) -> OptimizerState:
            leaves, tree_def = tree_flatten(params)
            return packed([init(x) for x in leaves], tree_def)

        def tree_update(step: Any, gradient: Any, state: OptimizerState) -> OptimizerState:
            leaves, tree_def = tree_flatten(gradient)
            if tree_def != state.tree_def:
                raise TypeError(
                    f"update_fun: argument 'gradient' has the structure {tree_def}; the parameters that init_fun got "
                    f"have {state.tree_def}"
                )
            new = packed([update(step, g, one) for g, one in zip(leaves, states_of(state))], tree_def)
            for before, after in zip(state.subtree_defs, new.subtree_defs):
                if before != after:
                    raise TypeError(
                        f"update_fun: the state of a parameter has the structure {before}, and {after} after the "
                        "step; the function given to optimizer must keep it"
                    )
            return new

        def tree_params(state: OptimizerState) -> Any:
            return tree_unflatten(state.tree_def, [get_params(one) for one in states_of(state)])

        return Optimizer(tree_init, tree_update, tree_params)

    return make


def _first(state: tuple[Any, ...]) -> Any:
    return state[0]


def _with_zeros(count: int) -> Callable[[Any], tuple[Any, ...]]:
    """init of the state (x, 0, ...) with `count` arrays of zeros."""
    return lambda x: (x, *[jnp.zeros_like(x) for _ in range(count)])


def _over_root(gradient: Any, squares: Any) -> Any:
    """gradient / sqrt(squares), and 0 where there are no squares yet."""
    some = squares > 0
    return jnp.where(some, gradient / jnp.sqrt(jnp.where(some, squares, 1.0)), 0.0)


# --------------------------------------------------------------------------------------------------------- optimizers


@optimizer
def sgd(step_size: Any):
    """Gradient descent: x -= step_size g."""
    rate = make_schedule(step_size)
    return (lambda x: x), (lambda step, g, x: x - rate(step) * g), (lambda x: x)


@optimizer
def momentum(step_size: Any, mass: Any):
    """Gradient descent with momentum: v = mass v + g, x -= step_size v."""
    rate = make_schedule(step_size)

    def update(step, g, state):
        x, velocity = state
        velocity = mass * velocity + g
        return x - rate(step) * velocity, velocity

    return _with_zeros(1), update, _first


@optimizer
def nesterov(step_size: Any, mass: Any):
    """Nesterov's momentum: v = mass v + g, x -= step_size (mass v + g)."""
    rate = make_schedule(step_size)

    def update(step, g, state):
        x, velocity = state
        velocity = mass * velocity + g
        return x - rate(step) * (mass * velocity + g), velocity

    return _with_zeros(1), update, _first


@optimizer
def adagrad(step_size: Any, momentum: Any = 0.9):
    """Adagrad (Duchi, Hazan, Singer 2011) with a running mean of the steps: s += g^2, m = (1 - momentum) g / sqrt(s) +
    momentum m, x -= step_size m.
    """
    rate = make_schedule(step_size)

    def update(step, g, state):
        x, squares, mean = state
        squares = squares + jnp.square(g)
        mean = (1.0 - momentum) * _over_root(g, squares) + momentum * mean
        return x - rate(step) * mean, squares, mean

    return _with_zeros(2), update, _first


@optimizer
def rmsprop(step_size: Any, gamma: Any = 0.9, eps: Any = 1e-8):
    """RMSProp: s = gamma s + (1 - gamma) g^2, x -= step_size g / sqrt(s + eps)."""
    rate = make_schedule(step_size)

    def update(step, g, state):
        x, squares = state
        squares = squares * gamma + jnp.square(g) * (1.0 - gamma)
        return x - rate(step) * g / jnp.sqrt(squares + eps), squares

    return _with_zeros(1), update, _first


@optimizer
def rmsprop_momentum(step_size: Any, gamma: Any = 0.9, eps: Any = 1e-8, momentum: Any = 0.9):
    """RMSProp with momentum: v = momentum v + step_size g / sqrt(s + eps), x -= v."""
    rate = make_schedule(step_size)

    def update(step, g, state):
        x, squares, velocity = state
        squares = squares * gamma + jnp.square(g) * (1.0 - gamma)
        velocity = momentum * velocity + rate(step) * g / jnp.sqrt(squares + eps)
        return x - velocity, squares, velocity

    return _with_zeros(2), update, _first


def _weight(b: Any, step: Any, dtype: Any) -> Any:
    """The weights in all of a running mean with factor b that began at zero: what its bias is corrected by."""
    return 1 - jnp.asarray(b, dtype) ** (step + 1)


@optimizer
def adam(step_size: Any, b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-8):
    """Adam (Kingma, Ba 2015): x -= step_size m' / (sqrt(v') + eps) with the corrected means of g and g^2."""
    rate = make_schedule(step_size)

    def update(step, g, state):
        x, mean, squares = state
        mean = (1 - b1) * g + b1 * mean
        squares = (1 - b2) * jnp.square(g) + b2 * squares
        corrected = mean / _weight(b1, step, mean.dtype)
        spread = squares / _weight(b2, step, mean.dtype)
        return x - rate(step) * corrected / (jnp.sqrt(spread) + eps), mean, squares

    return _with_zeros(2), update, _first


@optimizer
def adamax(step_size: Any, b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-8):
    """Adamax (Kingma, Ba 2015): Adam with the largest |g|, discounted, in place of the root of the mean square."""
    rate = make_schedule(step_size)

    def update(step, g, state):
        x, mean, largest = state
        mean = (1 - b1) * g + b1 * mean
        largest = jnp.maximum(b2 * largest, jnp.abs(g))
        corrected = rate(step) / _weight(b1, step, mean.dtype)
        return x - corrected * mean / (largest + eps), mean, largest

    return _with_zeros(2), update, _first


@optimizer
def sm3(step_size: Any, momentum: Any = 0.9):
    """SM3 (Anil, Gupta, Koren, Singer 2019): Adagrad that keeps a vector for each axis in place of all squares.

    The square sum of an element is taken to be the least of its axes' entries.
    """
    rate = make_schedule(step_size)

    def init(x):
        x = jnp.asarray(x)
        sums = [jnp.zeros(n, x.dtype) for n in x.shape] or [jnp.zeros_like(x)]
        return x, jnp.zeros_like(x), sums

    def update(step, g, state):
        x, mean, sums = state
        axes = range(x.ndim)
        rows = [jnp.expand_dims(s, [a for a in axes if a != k]) for k, s in enumerate(sums)] if x.ndim else sums
        squares = functools.reduce(jnp.minimum, rows) + jnp.square(g)
        mean = (1.0 - momentum) * _over_root(g, squares) + momentum * mean
        sums = [squares.max([a for a in axes if a != k]) for k in axes] if x.ndim else [squares]
        return x - rate(step) * mean, mean, sums

    return init, update, _first


# ---------------------------------------------------------------------------------------------------------- schedules


def constant(step_size: Any) -> Schedule:
    """step_size at every step."""
    return lambda step: step_size


def exponential_decay(step_size: Any, decay_steps: Any, decay_rate: Any) -> Schedule:
    """step_size decay_rate^(step / decay_steps)."""
    return lambda step: step_size * decay_rate ** (step / decay_steps)


def inverse_time_decay(step_size: Any, decay_steps: Any, decay_rate: Any, staircase: bool = False) -> Schedule:
    """step_size / (1 + decay_rate step / decay_steps); with `staircase` step / decay_steps is rounded down."""

    def schedule(step):
        ratio = jnp.floor(step / decay_steps) if staircase else step / decay_steps
        return step_size / (1 + decay_rate * ratio)

    return schedule


def polynomial_decay(step_size: Any, decay_steps: Any, final_step_size: Any, power: Any = 1.0) -> Schedule:
    """From step_size to final_step_size, which is reached after decay_steps, along (1 - step / decay_steps)^power."""

    def schedule(step):
        left = (1 - jnp.minimum(step, decay_steps) / decay_steps) ** power
        return left * (step_size - final_step_size) + final_step_size

    return schedule


def piecewise_constant(boundaries: Any, values: Any) -> Schedule:
    """values[k] after the k-th boundary; a step at a boundary still has the value before it.

    ValueError unless both are sequences of numbers, with one more value than boundaries.
    """
    edges, steps = jnp.array(boundaries), jnp.array(values)
    if edges.ndim != 1 or steps.ndim != 1:
        raise ValueError(
            f"piecewise_constant: boundaries and values are one-dimensional, got shapes {edges.shape} and {steps.shape}"
        )
    if steps.shape[0] != edges.shape[0] + 1:
        raise ValueError(
            f"piecewise_constant: {edges.shape[0]} boundaries separate {edges.shape[0] + 1} values, got "
            f"{steps.shape[0]}"
        )
    return lambda step: steps[jnp.sum(step > edges)]


def make_schedule(scalar_or_schedule: Any) -> Schedule:
    """The schedule itself, or that of a number; TypeError for anything else."""
    if callable(scalar_or_schedule):
        return scalar_or_schedule
    if jnp.ndim(scalar_or_schedule) == 0 and not isinstance(scalar_or_schedule, (str, bytes, type(None))):
        return constant(scalar_or_schedule)
    raise TypeError(
        f"make_schedule: a step size must be a number or a function of the step, got {type(scalar_or_schedule)}"
    )


# ---------------------------------------------------------------------------------------------------------- utilities


def l2_norm(tree: Any) -> Any:
    """The Euclidean norm of a pytree of arrays, taken as one vector."""
    return jnp.sqrt(sum(jnp.vdot(x, x) for x in tree_leaves(tree)))


def clip_grads(grad_tree: Any, max_norm: Any) -> Any:
    """The pytree scaled down to the norm max_norm where its norm is larger."""
    norm = l2_norm(grad_tree)
    return tree_map(lambda g: jnp.where(norm < max_norm, g, g * (max_norm / norm)), grad_tree)


class JoinPoint:
    """Marks where, in an unpacked state, the tree of the parameters ends and the state of one array (`subtree`) begins.

    It is a leaf: tree functions do not look inside.
    """

    def __init__(self, subtree: Any) -> None:
        self.subtree = subtree

    def __iter__(self) -> Any:
        yield self.subtree


def unpack_optimizer_state(opt_state: OptimizerState) -> Any:
    """The state as a pytree like the parameters, with a JoinPoint for each array: what one would save."""
    points = [
        JoinPoint(tree_unflatten(tree, leaves)) for tree, leaves in zip(opt_state.subtree_defs, opt_state.packed_state)
    ]
    return tree_unflatten(opt_state.tree_def, points)


def pack_optimizer_state(marked_pytree: Any) -> OptimizerState:
    """The state from what `unpack_optimizer_state` gave. TypeError for leaves that are no JoinPoint."""
    points, tree_def = tree_flatten(marked_pytree)
    for point in points:
        if not isinstance(point, JoinPoint):
            raise TypeError(f"pack_optimizer_state: expected a JoinPoint at each leaf, got {type(point).__name__}")
    flat = [tree_flatten(point.subtree) for point in points]
    return OptimizerState(tuple(leaves for leaves, _ in flat), tree_def, tuple(tree for _, tree in flat))


_explain_all(globals())
_add_pages(globals(), _PAGES)

__dir__ = _listed(__name__)
