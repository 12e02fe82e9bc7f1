"""checkpoint: trade memory for work by recomputing intermediate values in the backward pass."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ParamSpec, TypeVar, overload

from pullback.api import _arguments as arguments
from pullback.core import DebugInfo, JaxprEqn, Primitive, Var, hoist_tracers, trace
from pullback.core.avals import expect_places, type_of_operand, typed
from pullback.core.lowering import Elementwise
from pullback.core.references import Reference
from pullback.core.source import Origin, named_at, result_names
from pullback.core.types import moving
from pullback.lax.collectives.sharding import device_put_p
from pullback.lax.control.bodies import remembered
from pullback.lax.control.common import lasts
from pullback.sharding._shardings import MemorySpace
from pullback.transforms.call import checkpoint_p
from pullback.util.pytree import Unspecified, tree_flatten, tree_unflatten
from pullback.util.record import NamedTuple, frozen_record
from pullback.util.tracebacks import api_boundary

_unspecified = Unspecified()
P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


@overload
def checkpoint(
    fun: Callable[P, R],
    *,
    prevent_cse: bool | Sequence[bool] = True,
    policy: Callable[..., Any] | None = None,
    static_argnums: int | tuple[int, ...] = (),
    static_argnames: str | Iterable[str] = (),
    concrete: Any = ...,
) -> Callable[P, R]: ...
@overload
def checkpoint(
    fun: None = None,
    *,
    prevent_cse: bool | Sequence[bool] = True,
    policy: Callable[..., Any] | None = None,
    static_argnums: int | tuple[int, ...] = (),
    static_argnames: str | Iterable[str] = (),
    concrete: Any = ...,
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
def checkpoint(  # type: ignore[misc]
    fun: Callable[..., Any] | None = None,
    *,
    prevent_cse: bool | Sequence[bool] = True,
    policy: Callable | None = None,
    static_argnums: int | tuple[int, ...] = (),
    static_argnames: str | Iterable[str] = (),
    concrete: Any = _unspecified,
) -> Any:
    """`fun`, whose intermediate values are not kept for its gradient but computed again.

    policy(primitive, *avals, **params) -> bool says which results are kept after all (see `checkpoint_policies`).
    static_argnums, static_argnames: arguments that are passed on as they are, by position or by name. Without `fun`,
    a decorator. NotImplementedError for `concrete`, in whose place these are.
    """
    if fun is None:
        return functools.partial(
            checkpoint, prevent_cse=prevent_cse, policy=policy, static_argnums=static_argnums,
            static_argnames=static_argnames,
        )  # fmt: skip
    arguments.check_callable("checkpoint", fun)
    _check_options(prevent_cse, policy, static_argnums, static_argnames, concrete)
    nums, names = arguments.as_tuple(static_argnums), frozenset(arguments.as_tuple(static_argnames))
    signature = arguments.signature_of(fun) if names else None
    if signature is not None:  # those named may come as positional arguments, too
        by_position = arguments.completed(signature, None, tuple(names))[0]
    else:
        by_position = ()
    name = arguments.function_name(fun)

    @api_boundary
    def checkpointed(*args, **kwargs):
        if any(not -len(args) <= n < len(args) for n in nums):
            raise ValueError(
                f"checkpoint: static_argnums={nums} names an argument that the call does not have; {name} was given "
                f"{len(args)} by position, numbered from {-len(args)} to {len(args) - 1}"
            )
        fixed = {n % len(args): args[n] for n in (*nums, *by_position) if -len(args) <= n < len(args)}
        fixed_names = {k: kwargs.pop(k) for k in names if k in kwargs}
        given, tree = tree_flatten((tuple(a for i, a in enumerate(args) if i not in fixed), kwargs))
        arrays = [0 if isinstance(x, Reference) else x for x in given]
        paths = functools.partial(arguments.leaf_paths, fun, args, kwargs, tuple(fixed))
        leaves, _ = arguments.checked_leaves("checkpoint", "argument ", tree_unflatten(tree, arrays), paths)
        leaves = [x if isinstance(x, Reference) else leaf for x, leaf in zip(given, leaves)]
        avals = tuple([type_of_operand(x) for x in leaves])

        def traced():
            out_tree: list[Any] = []

            def flat(*values):
                dynamic, named = tree_unflatten(tree, values)
                rest = iter(dynamic)
                given = [fixed[i] if i in fixed else next(rest) for i in range(len(args))]
                outs, found = arguments.flatten_result(fun(*given, **named, **fixed_names), fun, "checkpoint")
                out_tree[:] = [found]
                return outs

            origin = Origin(fun, "checkpoint", paths)
            names = arguments.lasting_names(fun, tree, len(args), list(fixed))
            said = DebugInfo("checkpoint / remat", named_at(name, fun), names, result_names(out_tree))
            closed = trace(flat, avals, said, origin)
            # Without constants, as libraries evaluate it: eval_jaxpr(eqn.params["jaxpr"], (), *operands).
            return *hoist_tracers(closed, arrays=True), out_tree[0]

        if fixed or fixed_names:
            closed, consts, out_tree = traced()
        else:
            closed, consts, out_tree = remembered(fun, ("checkpoint", tree, avals), traced, lasts)
        outs = checkpoint_p.bind(
            *consts, *leaves, jaxpr=closed, prevent_cse=prevent_cse, differentiated=False, policy=policy
        )
        return tree_unflatten(out_tree, outs)

    return arguments.named_after(checkpointed, fun)


def _check_options(prevent_cse: Any, policy: Any, static_argnums: Any, static_argnames: Any, concrete: Any) -> None:
    """TypeError for options of `checkpoint` of other kinds than it takes."""
    if not all(
        isinstance(p, bool) for p in (prevent_cse if isinstance(prevent_cse, (tuple, list)) else (prevent_cse,))
    ):
        raise TypeError(f"checkpoint: argument 'prevent_cse' must be a bool or a tuple of bools, got {prevent_cse!r}")
    if policy is not None and not callable(policy):
        raise TypeError(f"checkpoint: argument 'policy' must be a function or None, got {policy!r}")
    nums = static_argnums if isinstance(static_argnums, tuple) else (static_argnums,)
    if not all(isinstance(n, int) for n in nums):
        raise TypeError(
            f"checkpoint: argument 'static_argnums' must be an int or a tuple of ints, got {static_argnums!r}"
        )
    if concrete is not _unspecified:
        raise NotImplementedError(
            "checkpoint: argument 'concrete' is no longer there; name the arguments that are to stay as they are in "
            "'static_argnums' or 'static_argnames'"
        )
    if not all(isinstance(n, str) for n in arguments.as_tuple(static_argnames)):
        raise TypeError(f"checkpoint: argument 'static_argnames' must be a string or strings, got {static_argnames!r}")


remat = checkpoint


def _name_abstract(aval, *, name):
    return aval


def _name_reference(x, *, name):
    return x


def _name_jvp(primals, tangents, *, name):
    return name_p.bind(primals[0], name=name), tangents[0]


def _name_transpose(x_bar, x, *, name):
    return [x_bar]


def _name_batch(args, dims, *, name):
    return name_p.bind(args[0], name=name), dims[0]


def _name_scalar(b, x, *, name):
    return x


name_p = Primitive(
    "name",
    doc="A value with a name that checkpoint policies can mention.",
    abstract_eval=_name_abstract,
    reference=_name_reference,
    jvp=_name_jvp,
    transpose=_name_transpose,
    batch=_name_batch,
    lower=Elementwise(_name_scalar, cost=0),
)


def checkpoint_name(x: T, name: str) -> T:
    """`x`, named for `checkpoint_policies.save_only_these_names` and its like."""
    leaves, tree = tree_flatten(x)
    return tree_unflatten(tree, [name_p.bind(leaf, name=name) for leaf in leaves])


class Offloadable(NamedTuple):
    """What a policy says of a value that is kept in another memory until the backward pass: from which, in which."""

    src: Any
    dst: Any

    def moves(self, v: Var) -> tuple[JaxprEqn, JaxprEqn]:
        """The equations that bring a value there, and back."""
        ways = []
        for name in (self.dst, self.src):
            if name not in _SPACES:
                raise ValueError(f"checkpoint: a policy names memory {name!r}; there are {', '.join(_SPACES)}")
            ways.append(_SPACES[name])
        there, here = ways
        expect_places()
        other = Var(typed(v.aval, v.aval.placing, v.aval.vma, there))
        return (
            JaxprEqn([v], [other], device_put_p, moving(there)),
            JaxprEqn([other], [v], device_put_p, moving(here)),
        )


_SPACES = {space.value: space for space in MemorySpace}  # by the names of kinds of memory


@frozen_record
class DotsSaveable:
    """Keep the results of products; of convolutions, too, unless only of those without batch dimensions."""

    only_if_no_batch_dims: bool

    def __call__(self, primitive, *_, **params) -> bool:
        if not self.only_if_no_batch_dims:
            return primitive.name in ("dot_general", "conv_general_dilated", "ragged_dot_general")
        if primitive.name != "dot_general":
            return False
        (_, _), (left, right) = params["dimension_numbers"]
        return not left and not right


@frozen_record
class SaveOnlyTheseNames:
    """Keep the values with these names only."""

    saveable_names: frozenset

    def __call__(self, primitive, *_, **params) -> bool:
        return primitive is name_p and params["name"] in self.saveable_names


@frozen_record
class SaveAnyNamesButThese:
    """Keep named values, but for these names."""

    names: frozenset

    def __call__(self, primitive, *_, **params) -> bool:
        return primitive is name_p and params["name"] not in self.names


class checkpoint_policies:
    """Policies for `checkpoint`: which intermediate values are kept for the backward pass."""

    @staticmethod
    def everything_saveable(*_, **__) -> bool:
        """Keep everything: as without checkpoint."""
        return True

    @staticmethod
    def nothing_saveable(*_, **__) -> bool:
        """Keep nothing: the default."""
        return False

    dots_saveable = checkpoint_dots = DotsSaveable(only_if_no_batch_dims=False)
    dots_with_no_batch_dims_saveable = DotsSaveable(only_if_no_batch_dims=True)
    checkpoint_dots_with_no_batch_dims = dots_with_no_batch_dims_saveable

    @staticmethod
    def save_anything_except_these_names(*names) -> Callable:
        """Keep everything but the values with these names."""
        return lambda primitive, *_, **params: not (primitive is name_p and params["name"] in names)

    @staticmethod
    def save_any_names_but_these(*names) -> Callable:
        """Keep named values, but for these names."""
        return SaveAnyNamesButThese(frozenset(names))

    @staticmethod
    def save_only_these_names(*names) -> Callable:
        """Keep the values with these names only."""
        return SaveOnlyTheseNames(frozenset(names))  # TypeError for what is no name

    @staticmethod
    def offload_dot_with_no_batch_dims(offload_src, offload_dst) -> Callable:
        """Keep what `dots_with_no_batch_dims_saveable` keeps, in memory `offload_dst` until it is used."""

        def policy(primitive, *avals, **params) -> Any:
            kept = checkpoint_policies.dots_with_no_batch_dims_saveable(primitive, *avals, **params)
            return Offloadable(offload_src, offload_dst) if kept else False

        return policy

    @staticmethod
    def save_and_offload_only_these_names(
        *, names_which_can_be_saved, names_which_can_be_offloaded, offload_src, offload_dst
    ) -> Callable:
        """Keep the values with these names, of which some are in memory `offload_dst` until they are used. ValueError
        for names in both.
        """
        both = set(names_which_can_be_saved) & set(names_which_can_be_offloaded)
        if both:
            raise ValueError(
                f"save_and_offload_only_these_names: {sorted(both, key=str)} are to be both saved and offloaded; leave "
                "each in one of the two arguments"
            )
        kept, moved = frozenset(names_which_can_be_saved), frozenset(names_which_can_be_offloaded)

        def policy(primitive, *_, **params) -> Any:
            if primitive is not name_p or params["name"] not in moved:
                return primitive is name_p and params["name"] in kept
            return Offloadable(offload_src, offload_dst)

        return policy

    @staticmethod
    def save_from_both_policies(first, second) -> Callable:
        """Keep what either policy keeps."""
        return lambda primitive, *a, **k: first(primitive, *a, **k) or second(primitive, *a, **k)
