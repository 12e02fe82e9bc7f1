"""Types without values: ShapeDtypeStruct, eval_shape, make_jaxpr."""

from __future__ import annotations

import contextlib
import functools
import operator
from collections.abc import Callable, Sequence
from types import FunctionType, NoneType
from typing import Any, cast

import numpy as np

from pullback._ext import _core
from pullback.api import _arguments as arguments
from pullback.api._places import Wanted
from pullback.api._shared_caches import shared_caches
from pullback.core import ClosedJaxpr, DebugInfo, ShapedArray, axis_env, extend_axis_env, high, trace, typeof
from pullback.core.avals import Reference, placed, typed
from pullback.core.jaxpr import Jaxpr, Literal
from pullback.core.source import Origin, at_any_callers, named_at, result_names
from pullback.core.tracer import Tracer
from pullback.core.types import said_by
from pullback.lax.control.bodies import remembered
from pullback.lax.control.common import KEPT
from pullback.sharding import ManualAxisType, NamedSharding, PartitionSpec, Sharding
from pullback.sharding._current import current_mesh
from pullback.sharding._layout import Format, Layout
from pullback.transforms.places import as_shown
from pullback.util import config, dtypes
from pullback.util.memory import make_room
from pullback.util.pytree import tree_flatten, tree_unflatten
from pullback.util.switches import switches
from pullback.util.tracebacks import api_boundary


class ShapeDtypeStruct:
    """Shape and dtype of an array that need not exist; accepted wherever only types matter.

    shape: a tuple of integers; dtype: anything that names a dtype. TypeError if dtype is None.
    """

    __slots__ = ("shape", "dtype", "weak_type", "manual_axis_type", "_said", "_layout")
    is_only_a_type = True  # has an aval, but no value to compute with

    @api_boundary
    def __init__(
        self, shape, dtype, *, sharding=None, weak_type: bool = False, manual_axis_type=None, is_ref: bool = False
    ):
        if dtype is None:
            raise ValueError("ShapeDtypeStruct: dtype must be specified.")
        try:
            self.shape = tuple(shape)
        except TypeError:
            raise TypeError(f"ShapeDtypeStruct: argument 'shape' must be a sequence, got {shape!r}") from None
        try:
            self.dtype = dtype if dtypes.is_extended(dtype) else dtypes.as_dtype(dtype)
        except TypeError as error:
            raise TypeError(f"ShapeDtypeStruct: argument 'dtype' must be a dtype: {error}") from None
        self.weak_type = weak_type
        if sharding is not None and not isinstance(sharding, (Sharding, PartitionSpec, Format)):
            raise ValueError(
                "ShapeDtypeStruct: argument 'sharding' must be a Sharding, a PartitionSpec, a Format or None, got "
                f"{sharding} of type {type(sharding)}"
            )
        if not isinstance(manual_axis_type, (ManualAxisType, NoneType)):
            raise TypeError(
                "ShapeDtypeStruct: argument 'manual_axis_type' must be a jax.sharding.ManualAxisType or None, got "
                f"{manual_axis_type!r}"
            )
        self.manual_axis_type = manual_axis_type
        self._layout = None
        if isinstance(sharding, Format):
            if sharding.layout is Layout.AUTO:
                raise TypeError(
                    "ShapeDtypeStruct: argument 'sharding' leaves the layout to the compiler (`Layout.AUTO`); a type "
                    f"has a Layout that is known, or None. Got {sharding}"
                )
            self._layout, sharding = sharding.layout, sharding.sharding
        if isinstance(sharding, NamedSharding):
            sharding.check_compatible_aval(self.shape)
        elif isinstance(sharding, PartitionSpec) and len(sharding) > len(self.shape):
            raise ValueError(
                f"ShapeDtypeStruct: {sharding} takes an array of rank at least {len(sharding)}, got shape {self.shape}"
            )
        self._said = sharding

    @property
    def sharding(self) -> Any:
        """The sharding that was said, a spec being one over the mesh in force where it is asked for; TypeError where
        there is none.
        """
        if not isinstance(self._said, PartitionSpec):
            return self._said
        mesh = current_mesh()
        if mesh is None or not mesh.axis_names:
            raise TypeError(
                f"ShapeDtypeStruct: {self._said} is meant over the context mesh, but none is in force; enter one by "
                "`with jax.set_mesh(mesh):`, or give a NamedSharding"
            )
        return NamedSharding(mesh, self._said)

    @classmethod
    def like(cls, x) -> ShapeDtypeStruct:
        """The struct of an array, a number or another struct; TypeError for what is none of these."""
        if isinstance(x, cls):
            return x.update()
        aval = typeof(x)
        return cls(aval.shape, aval.dtype, weak_type=aval.weak_type, manual_axis_type=_varying(aval))

    @property
    def format(self) -> Format:
        """Where such an array lies, and how in memory, if that was said."""
        return Format(self._layout, self.sharding)

    def _as_said(self) -> Any:
        return Format(self._layout, self._said) if self._layout else self._said

    @property
    def ndim(self):
        """Number of dimensions."""
        return len(self.shape)

    @property
    def size(self):
        """Number of elements."""
        return ShapedArray(self.shape, self.dtype).size

    @property
    def aval(self):
        """The aval that it stands for."""
        aval = ShapedArray(self.shape, dtypes.canonicalize_dtype(self.dtype, True), self.weak_type)
        if self.manual_axis_type is not None:
            aval = typed(aval, None, self.manual_axis_type.varying)
        return placed(aval, self.sharding)

    def update(self, **kw) -> ShapeDtypeStruct:
        """The struct with some fields replaced."""
        shape, dtype = kw.pop("shape", self.shape), kw.pop("dtype", self.dtype)
        fields: dict[str, Any] = {
            "sharding": self._as_said(),
            "weak_type": self.weak_type,
            "manual_axis_type": self.manual_axis_type,
        } | kw
        return ShapeDtypeStruct(shape, dtype, **fields)

    def __len__(self):
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __eq__(self, other):
        names = "shape", "dtype", "weak_type", "manual_axis_type", "_said", "_layout"
        return isinstance(other, ShapeDtypeStruct) and all(getattr(self, n) == getattr(other, n) for n in names)

    def __hash__(self):
        return hash((self.shape, self.dtype, self.weak_type))

    def __repr__(self):
        name = getattr(self.dtype, "name", str(self.dtype))
        weak = ", weak_type=True" if self.weak_type else ""
        where = f", sharding={self.sharding}" if self.sharding is not None else ""
        how = f", format={self._layout}" if self._layout is not None else ""
        along = f", manual_axis_type={self.manual_axis_type}" if self.manual_axis_type is not None else ""
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={name}{weak}{where}{how}{along})"


def _varying(aval: ShapedArray) -> ManualAxisType | None:
    """Along which axes of shard_map values of a type vary; None where along none."""
    return aval.manual_axis_type if isinstance(aval, ShapedArray) and aval.vma else None


def struct_of_type(aval: ShapedArray) -> ShapeDtypeStruct:
    """The struct of a type, with where its values lie if all axes of its mesh are explicit."""
    return ShapeDtypeStruct(
        aval.shape,
        aval.dtype,
        weak_type=aval.weak_type,
        sharding=_sharding_of_type(aval),
        manual_axis_type=_varying(aval),
    )


@api_boundary
def eval_shape(fun: Callable, *args, **kwargs):
    """The types of `fun(*args, **kwargs)`, as a tree of ShapeDtypeStruct, without computing anything.

    Arguments are arrays or anything with shape and dtype. The same function is traced once for arguments of the same
    types; of a jitted one the types say its `out_shardings`. TypeError as for `jit`.
    """
    arguments.check_callable("eval_shape", fun)
    if getattr(fun, "_out_shardings", None) is not None:
        return cast(Any, fun).eval_shape(*args, **kwargs)
    closed, out_tree = trace_with_tree(fun, args, kwargs, remember=True, as_jit=True)
    return tree_unflatten(out_tree, map(struct_of_type, closed.out_avals))


def _sharding_of_type(aval: Any) -> Any:
    """How values of a type lie over a mesh whose axes are all explicit; None for others, of which types say not all."""
    sharding = aval.sharding if isinstance(aval, ShapedArray) else None
    return None if sharding is None or not sharding.mesh.are_all_axes_explicit else sharding


def _lasts(found: tuple[ClosedJaxpr, Any], own: bool) -> bool:
    """Whether what was traced may be kept with the function: it closes over nothing that is traced, and over little."""
    closed, _ = found
    if not own or closed.effects or any([isinstance(c, Tracer) for c in closed.consts]):
        return False
    return sum([np.size(c) for c in closed.consts]) <= KEPT


def said_of_results(jaxpr: Jaxpr, of_jit: bool = False) -> list[Any]:
    """The shardings of results for which a program, or a jitted function whose results they are, has a constraint;
    `of_jit`: only what out_shardings of the program itself says.
    """
    makers = {v: (eqn, k) for eqn in jaxpr.eqns for k, v in enumerate(eqn.outvars)}
    found: list[Any] = []
    for atom in jaxpr.outvars:
        eqn, k = (None, 0) if isinstance(atom, Literal) else makers.get(atom, (None, 0))
        if eqn is None or (of_jit and eqn.primitive.name != "laid_out"):
            found.append(None)
        elif eqn.primitive.name == "jit":
            found.append(said_of_results(eqn.params["jaxpr"].jaxpr)[k])
        else:
            found.append(said_by(eqn))
    return found


def make_jaxpr(
    fun: Callable, static_argnums=(), axis_env: Sequence[tuple[Any, int]] | None = None, return_shape: bool = False
) -> Callable:
    """A function that gives the jaxpr of `fun`, traced once, for arguments of the types it is called with.

    axis_env: (name, size) of mapped axes that collectives of `fun` act over. With `return_shape`, (jaxpr, tree of
    ShapeDtypeStruct).
    """
    axes = [(name, operator.index(size)) for name, size in axis_env or ()]
    arguments.check_callable("make_jaxpr", fun)
    nums, _ = arguments.resolve_argnums("make_jaxpr", fun, "static", arguments.as_tuple(static_argnums), ())

    @api_boundary
    def make_jaxpr_f(*args, **kwargs):
        with contextlib.ExitStack() as mapped:
            mapped.enter_context(config.named_calls(True))
            for name, size in axes:
                mapped.enter_context(extend_axis_env(name, size))
            closed, out_tree = trace_with_tree(fun, args, kwargs, nums, remember=True)
        from pullback.lax.control.closed_over import with_operands  # with jaxprs that are shown, not at start-up

        closed = with_operands(as_shown(closed))
        if return_shape:
            return closed, tree_unflatten(
                out_tree, [ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type) for a in closed.out_avals]
            )
        return closed

    _core.named_after(make_jaxpr_f, fun)
    make_jaxpr_f.__name__ = f"make_jaxpr({arguments.function_name(fun)})"
    return make_jaxpr_f


def trace_with_tree(
    fun, args, kwargs, static_nums=(), remember: bool = False, as_jit: bool = False
) -> tuple[ClosedJaxpr, Any]:
    """(closed jaxpr, tree of the result) of `fun` for these arguments; closed-over tracers stay as consts.

    remember: what the same function gave before for the same types may be given again; as_jit: by `jit`, too, which
    then finds what is traced here.
    """
    if high.has_high((args, kwargs)):
        args, kwargs = high.lowered((args, kwargs))
        low = high.through(fun)
        return trace_with_tree(_core.named_after(lambda *a, **k: low(*a, **k)[0], fun), args, kwargs, static_nums)
    fixed = {n % len(args): args[n] for n in static_nums if -len(args) <= n < len(args)}
    leaves, tree = tree_flatten((tuple(a for i, a in enumerate(args) if i not in fixed), kwargs))
    name = arguments.function_name(fun)
    avals: list[Any] = []
    for i, leaf in enumerate(leaves):
        if isinstance(leaf, Reference):
            avals.append(leaf.ref_aval)
        elif type(leaf) is ShapeDtypeStruct and leaf.manual_axis_type is not None:
            avals.append(leaf.aval)
        elif not hasattr(leaf, "aval") and hasattr(leaf, "shape") and hasattr(leaf, "dtype"):
            avals.append(
                placed(
                    ShapedArray(
                        tuple(leaf.shape),
                        dtypes.canonicalize_dtype(leaf.dtype, True),
                        getattr(leaf, "weak_type", False),
                    ),
                    getattr(leaf, "sharding", None),
                )
            )
        else:
            try:
                aval = typeof(leaf)
                avals.append(placed(aval, getattr(leaf, "_device", None)))
            except TypeError:
                avals.append(arguments.check_leaf(leaf, name, arguments.leaf_paths(fun, args, kwargs, list(fixed))[i]))
    if remember and not static_nums and not any([isinstance(leaf, Reference) for leaf in leaves]):
        again = functools.partial(trace_with_tree, fun, args, kwargs, as_jit=as_jit)
        make = functools.partial(remembered, fun, ("eval_shape", tree, tuple(avals)), again, _lasts)
        return _shared_with_jit(fun, tree, avals, make) if as_jit else make()
    arguments.check_tracing(fun)
    out_tree: list[Any] = []

    def flat(*values):
        dynamic, names = tree_unflatten(tree, values)
        rest = iter(dynamic)
        given = [fixed[i] if i in fixed else next(rest) for i in range(len(args))]
        out, found = arguments.flatten_result(fun(*given, **names), fun, "make_jaxpr")
        out_tree[:] = [found]
        return out

    def paths():
        return arguments.leaf_paths(fun, args, kwargs, list(fixed))

    names = arguments.lasting_names(fun, tree, len(args), list(fixed))
    info = DebugInfo("jit", named_at(name, fun), names, result_names(out_tree))
    with at_any_callers(fun) if as_jit else contextlib.nullcontext():
        closed = trace(flat, avals, info, Origin(fun, "make_jaxpr", paths))
    return closed, out_tree[0]


_AS_IT_COMES = Wanted(None, None, None, None)


def _shared_with_jit(fun, tree, avals: list[Any], make: Callable[[], Any]) -> tuple[ClosedJaxpr, Any]:
    """What `make` gives, or what `jit(fun)` has traced for these types; else `jit(fun)` gets it where it lasts."""
    if type(fun) is not FunctionType or axis_env() or config.value_of("jax_check_tracer_leaks"):
        return make()
    traces = shared_caches(fun, "traces", (_AS_IT_COMES,))
    key = tree, tuple(avals), (), config.epoch()
    known = traces.get(key)
    if known is not None and not known[1]:
        return known[0], known[2]
    found = make()
    if _lasts(found, True):
        make_room(traces, max(1, switches.cache_calls))
        traces[key] = found[0], [], found[1]
    return found
