"""Run-time checks inside jitted functions: `check` states them, `checkify` turns them into a value that comes out.

    def f(x):
        checkify.check(x > 0, "x must be positive, got {x}", x=x)
        return jnp.log(x)

    error, y = jit(checkify.checkify(f))(-1.0)
    error.throw()                                  # JaxRuntimeError: x must be positive, got -1.0 (`check` failed)

A check is a primitive without results. `checkify` traces the function, numbers its checks, and evaluates the jaxpr
with one more value going through it: the number of the first check that failed (0: none) and what its message shows.
Calls are inlined; branches and loops carry the value along. A function with a derivative rule of its own keeps the
rule: the call gives the results, and its body, read beside it, the checks.
"""

from __future__ import annotations

import functools
import string
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback import lax, random, tree_util
from pullback.core import (
    Array,
    ClosedJaxpr,
    Literal,
    NoRule,
    Primitive,
    ShapedArray,
    Tracer,
    Zero,
    eval_jaxpr,
    jaxprs_in_params,
    not_mapped,
    trace,
    typeof,
)
from pullback.core.explain import explain_all as _explain_all
from pullback.core.interpreter import current_interpreter, eval_interpreter
from pullback.core.lowering import Inline, InlineFunction
from pullback.experimental._check_errors import DivisionByZeroError as DivisionByZeroError
from pullback.experimental._check_errors import Error as Error
from pullback.experimental._check_errors import ErrorCategory as ErrorCategory
from pullback.experimental._check_errors import FailedCheckError as FailedCheckError
from pullback.experimental._check_errors import JaxException as JaxException
from pullback.experimental._check_errors import JaxRuntimeError as JaxRuntimeError
from pullback.experimental._check_errors import NaNError as NaNError
from pullback.experimental._check_errors import OOBError as OOBError
from pullback.experimental._check_errors import _Message, _Site
from pullback.experimental._check_errors import all_checks as all_checks
from pullback.experimental._check_errors import automatic_checks as automatic_checks
from pullback.experimental._check_errors import div_checks as div_checks
from pullback.experimental._check_errors import float_checks as float_checks
from pullback.experimental._check_errors import index_checks as index_checks
from pullback.experimental._check_errors import init_error as init_error
from pullback.experimental._check_errors import nan_checks as nan_checks
from pullback.experimental._check_errors import user_checks as user_checks
from pullback.lax.control.while_loop import with_scalar_condition
from pullback.manual import add_pages as _add_pages
from pullback.manual.experimental.checkify import PAGES as _PAGES
from pullback.transforms.discharge import discharge_program
from pullback.util import dtypes
from pullback.util.absent import listed as _listed
from pullback.util.record import frozen_record
from pullback.util.tracebacks import api_boundary

# ---------------------------------------------------------------------------------------------------- the primitive


def _unused(*args: Any, **params: Any) -> Any:
    raise ValueError(
        "checkify.check was not functionalized: within jit, scan and the like its error can only be returned. Call the "
        "function through checkify.checkify, outside of them."
    )


def _evaluate(pred: Any, *values: Any, message: _Message) -> list[Any]:
    if not message.debug and not bool(np.all(np.asarray(pred))):
        raise JaxRuntimeError(message.format(values))
    return []


def _batch(args: Any, dims: Any, *, message: _Message) -> Any:
    size = next(x.shape[d] for x, d in zip(args, dims, strict=True) if d is not not_mapped)
    moved = [
        jnp.broadcast_to(x, (size, *np.shape(x))) if d is not_mapped else jnp.moveaxis(x, d, 0)
        for x, d in zip(args, dims, strict=True)
    ]
    last = size - 1 - jnp.argmin(jnp.flip(moved[0]))  # the last that failed, as in JAX
    check_p.bind(jnp.all(moved[0]), *[jnp.take(x, last, axis=0) for x in moved[1:]], message=message)
    return [], []


def _jvp(primals: Any, tangents: Any, *, message: _Message) -> Any:
    check_p.bind(*primals, message=message)
    return [], []


def _inlined(avals: Sequence[Any], params: Any) -> ClosedJaxpr:
    if not params["message"].debug:
        _unused()
    return trace(lambda *_: [], list(avals))


_EFFECTS = frozenset({"check"})
check_p = Primitive(
    "check", abstract_eval=lambda *avals, message: [], reference=_unused, evaluate=_evaluate, jvp=_jvp, batch=_batch,
    transpose=NoRule("a check has no results"), lower=InlineFunction(trace=_inlined),
    multiple_results=True, effects=lambda params: _EFFECTS, doc="States that a condition holds.",
)  # fmt: skip


def check(pred: Any, msg: str, *fmt_args: Any, debug: bool = False, **fmt_kwargs: Any) -> None:
    """State that `pred`, a bool scalar, holds; `msg` is formatted with the arguments, which are trees of arrays.

    With a concrete `pred` it raises at once; in a traced function, `checkify` must be around it.
    """
    if debug and current_interpreter() is eval_interpreter():
        return
    if not isinstance(msg, str):
        raise TypeError(f"checkify.check: argument 'msg' must be a string, got {type(msg)}")
    aval = typeof(pred)
    if aval.shape != () or aval.dtype != np.bool_:
        raise TypeError(f"debug_check/check takes a scalar pred as argument, got {aval.short()}.")
    leaves, tree = tree_util.tree_flatten((fmt_args, fmt_kwargs))
    for leaf in leaves:
        if not hasattr(leaf, "dtype"):
            raise TypeError(
                "checkify.check: what is put in the message is arrays, alone or in containers; got "
                f"{leaf!r} of type {type(leaf)}."
            )
    _verify_format(msg, fmt_args, fmt_kwargs)
    keys = tuple(x.dtype if dtypes.is_extended(x.dtype) else None for x in leaves)
    words = [x if k is None else random.key_data(x) for k, x in zip(keys, leaves, strict=True)]
    message = _Message(msg, tree, FailedCheckError, debug, None if set(keys) <= {None} else keys)
    check_p.bind(jnp.asarray(pred), *words, message=message)


def debug_check(pred: Any, msg: str, *fmt_args: Any, **fmt_kwargs: Any) -> None:
    """`check`, but without effect where no `checkify` is around it."""
    check(pred, msg, *fmt_args, debug=True, **fmt_kwargs)


def _verify_format(msg: str, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
    position = 0
    for _, name, _, _ in string.Formatter().parse(msg):
        if name is None:
            continue
        key = name.split(".")[0].split("[")[0]
        if key == "" or key.isdigit():
            index = int(key) if key else position
            position += key == ""
            if index >= len(args):
                raise IndexError(
                    f"checkify.check: the message {msg!r} shows argument {index}, but only {len(args)} were given"
                )
        elif key not in kwargs:
            raise KeyError(f"checkify.check: the message {msg!r} shows {key!r}, which was not given")


# --------------------------------------------------------------------------------------------------- functionalization

_Check = tuple[Any, _Message, tuple[ShapedArray, ...]]  # what it is found by, what it says, types of what that shows
_NONE: Mapping[Any, Any] = {}


class _State:
    """The value that goes through: code of the first failure, and for each site what its message shows."""

    def __init__(self, code: Any, payload: list[tuple[Any, ...]]) -> None:
        self.code, self.payload = code, payload

    def flat(self) -> list[Any]:
        return [self.code, *[x for values in self.payload for x in values]]

    @staticmethod
    def of(flat: Sequence[Any], sites: Sequence[_Site]) -> _State:
        values = iter(flat)
        code = next(values)
        return _State(code, [tuple(next(values) for _ in site.avals) for site in sites])


class _Functionalizer:
    """Evaluates jaxprs with a `_State`; sites are numbered as they are met, in one pass before the other."""

    def __init__(self, errors: frozenset[ErrorCategory]) -> None:
        self.errors = errors
        self.sites: list[_Site] = []
        self.numbers: dict[Any, int] = {}

    # First pass: number all sites, so that the state has one type everywhere.

    def collect(self, jaxpr: Any) -> None:
        makers = {var: eqn for eqn in jaxpr.eqns for var in eqn.outvars}
        for eqn in jaxpr.eqns:
            for key, message, avals in self._checks_of(eqn, makers):
                if key not in self.numbers:
                    self.numbers[key] = len(self.sites)
                    self.sites.append(_Site(message, avals))
            for inner in _bodies(eqn):
                self.collect(inner)

    def _checks_of(self, eqn: Any, makers: Mapping[Any, Any] = _NONE) -> list[_Check]:
        found: list[_Check] = []
        if eqn.primitive is check_p:
            if FailedCheckError in self.errors:
                avals = tuple(a.aval.strip_weak_type() for a in eqn.invars[1:])
                found.append(((id(eqn), "user"), eqn.params["message"], avals))
            return found
        if _bodies(eqn):
            return found
        empty = tree_util.tree_structure(((), {}))
        if OOBError in self.errors and starts_of(eqn) is not None:
            three = tree_util.tree_structure(((0, 0, 0), {}))
            text = f"out-of-bounds indexing: the array has shape {_indexed_shape(eqn, makers)}, and index "
            text = _literal(text) + "{} is out of bounds for axis {} with size {}. "
            number = ShapedArray((), np.dtype(np.int32))
            found.append(((id(eqn), "index"), _Message(text, three, OOBError), (number,) * 3))
        if DivisionByZeroError in self.errors and eqn.primitive.name == "div":
            found.append(((id(eqn), "div"), _Message("division by zero", empty, DivisionByZeroError), ()))
        if NaNError in self.errors and _computes(eqn.primitive) and any(_is_float(v.aval) for v in eqn.outvars):
            text = f"nan generated by primitive: {eqn.primitive.name}."
            found.append(((id(eqn), "nan"), _Message(_literal(text), empty, NaNError), ()))
        return found

    def contains(self, jaxpr: Any) -> bool:
        return any(self._checks_of(e) or any(self.contains(j) for j in _bodies(e)) for e in jaxpr.eqns)

    # Second pass: evaluate.

    def fail(self, state: _State, number: int, failed: Any, values: Sequence[Any]) -> _State:
        first = jnp.logical_and(failed, state.code == 0)
        code = jnp.where(first, np.int32(number + 1), state.code)
        payload = list(state.payload)
        kept = zip(values, state.payload[number], strict=True)
        payload[number] = tuple(jnp.where(first, jnp.asarray(new).astype(old.dtype), old) for new, old in kept)
        return _State(code, payload)

    def run(self, jaxpr: Any, consts: Sequence[Any], state: _State, args: Sequence[Any]) -> tuple[_State, list[Any]]:
        env: dict[Any, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
        env.update(zip(jaxpr.invars, args, strict=True))

        def read(atom: Any) -> Any:
            return atom.operand if type(atom) is Literal else env[atom]

        for eqn in jaxpr.eqns:
            values = [read(a) for a in eqn.invars]
            if eqn.primitive is check_p:
                key = (id(eqn), "user")
                if key in self.numbers:
                    state = self.fail(state, self.numbers[key], jnp.logical_not(values[0]), values[1:])
                continue
            inner = _bodies(eqn)
            if inner and any(self.contains(j) for j in inner):
                state, outs = self._higher_order(eqn, state, values)
            else:
                outs = eqn.primitive.bind(*values, **eqn.params)
                outs = list(outs) if eqn.primitive.multiple_results else [outs]
                state = self._automatic(eqn, state, values, outs)
            env.update(zip(eqn.outvars, outs, strict=True))
        return state, [read(a) for a in jaxpr.outvars]

    def _automatic(self, eqn: Any, state: _State, values: Sequence[Any], outs: Sequence[Any]) -> _State:
        index = self.numbers.get((id(eqn), "index"))
        if index is not None:
            state = self._indexed(eqn, state, values, index)
        zero = self.numbers.get((id(eqn), "div"))
        if zero is not None:
            state = self.fail(state, zero, jnp.any(jnp.asarray(values[1]) == 0), ())
        nan = self.numbers.get((id(eqn), "nan"))
        if nan is not None:
            for out in outs:
                if _is_float(typeof(out)):
                    state = self.fail(state, nan, jnp.any(jnp.isnan(out)), ())
        return state

    def _indexed(self, eqn: Any, state: _State, values: Sequence[Any], number: int) -> _State:
        """The state after a check of start indices, an array whose last axis runs over the operand's axes `axes`."""
        operands, axes, sizes = starts_of(eqn) or ((), (), ())
        shape = eqn.invars[0].aval.shape
        if not axes:
            return state
        found = [jnp.asarray(values[k]) for k in operands]
        starts = found[0] if len(found) == 1 and found[0].ndim else jnp.stack(found)
        last = np.asarray([shape[axis] - size for axis, size in zip(axes, sizes)], starts.dtype)
        failed = jnp.reshape((starts < 0) | (starts > last), -1)
        if not failed.shape[0]:
            return state
        first = jnp.argmax(failed)
        axis = jnp.take(np.asarray(axes, np.int32), first % len(axes))
        size = jnp.take(np.asarray(shape, np.int32), axis)
        return self.fail(state, number, jnp.any(failed), (jnp.reshape(starts, -1)[first], axis, size))

    def _higher_order(self, eqn: Any, state: _State, values: list[Any]) -> tuple[_State, list[Any]]:
        name, params = eqn.primitive.name, eqn.params
        if name == "cond":
            branches = [self._with_state(b) for b in params["branches"]]
            return self._split(lax.switch(values[0], branches, state.flat(), values[1:]))
        if name == "scan":
            return self._scan(params, state, values)
        if name == "while":
            return self._while(params, state, values)
        closed = eqn.primitive.lower.body(eqn)
        if name not in _CUSTOM:
            return self.run(closed.jaxpr, closed.consts, state, values)
        outs = eqn.primitive.bind(*values, **{**params, **_quiet_rules(params), "call_jaxpr": _without_checks(closed)})
        state, _ = self.run(closed.jaxpr, closed.consts, state, [lax.stop_gradient(x) for x in values])
        return state, list(outs)

    def _with_state(self, closed: ClosedJaxpr) -> Callable[..., Any]:
        def call(flat: Sequence[Any], args: Sequence[Any]) -> Any:
            state, outs = self.run(closed.jaxpr, closed.consts, _State.of(flat, self.sites), args)
            return state.flat(), outs

        return call

    def _split(self, result: Any) -> tuple[_State, list[Any]]:
        flat, outs = result
        return _State.of(flat, self.sites), list(outs)

    def _scan(self, params: dict[str, Any], state: _State, values: list[Any]) -> tuple[_State, list[Any]]:
        closed, n_consts, n_carry = params["jaxpr"], params["num_consts"], params["num_carry"]
        consts, init, xs = values[:n_consts], values[n_consts : n_consts + n_carry], values[n_consts + n_carry :]

        def step(carry: Any, x: Any) -> Any:
            flat, inner = carry
            now, outs = self.run(closed.jaxpr, closed.consts, _State.of(flat, self.sites), [*consts, *inner, *x])
            return (now.flat(), outs[:n_carry]), outs[n_carry:]

        (flat, carry), ys = lax.scan(
            step,
            (state.flat(), list(init)),
            list(xs),
            params["length"],
            reverse=params["reverse"],
            unroll=params["unroll"],
        )
        return _State.of(flat, self.sites), [*carry, *ys]

    def _while(self, params: dict[str, Any], state: _State, values: Sequence[Any]) -> tuple[_State, list[Any]]:
        values, params = with_scalar_condition(values, params)
        n, m = params["cond_nconsts"], params["body_nconsts"]
        cond_consts, body_consts, init = values[:n], values[n : n + m], values[n + m :]
        cond, body = params["cond_jaxpr"], params["body_jaxpr"]

        def test(carry: Any) -> Any:
            flat, inner = carry
            _, (out,) = self.run(cond.jaxpr, cond.consts, _State.of(flat, self.sites), [*cond_consts, *inner])
            return out

        def step(carry: Any) -> Any:
            flat, inner = carry
            now = _State.of(flat, self.sites)
            if self.contains(cond.jaxpr):
                now, _ = self.run(cond.jaxpr, cond.consts, now, [*cond_consts, *inner])
            now, outs = self.run(body.jaxpr, body.consts, now, [*body_consts, *inner])
            return now.flat(), outs

        flat, out = lax.while_loop(test, step, (state.flat(), list(init)))
        now = _State.of(flat, self.sites)
        if self.contains(cond.jaxpr):
            now, _ = self.run(cond.jaxpr, cond.consts, now, [*cond_consts, *out])
        return now, list(out)


def _bodies(eqn: Any) -> list[Any]:
    """The jaxprs of an equation in which checks are found: of loops, branches and calls, and not of what is a whole."""
    if eqn.primitive.name in ("cond", "scan", "while"):
        return jaxprs_in_params(eqn.params)
    inner = jaxprs_in_params(eqn.params)
    if type(eqn.primitive.lower) is Inline:
        body = eqn.primitive.lower.body(eqn)
        if eqn.primitive.name not in ("custom_linear_solve", "linear_call"):
            return [body.jaxpr]
        inner = [body.jaxpr]
    for jaxpr in inner:
        if _has_user_checks(jaxpr):
            raise NotImplementedError(f"checkify: checks inside of '{eqn.primitive.name}' are not supported")
    return []


def _has_user_checks(jaxpr: Any) -> bool:
    return any(
        eqn.primitive is check_p or any(map(_has_user_checks, jaxprs_in_params(eqn.params))) for eqn in jaxpr.eqns
    )


def _without_checks(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The jaxpr with its checks gone, also those of loops, branches and calls."""
    if not _has_user_checks(closed.jaxpr):
        return closed

    def cut(value: Any) -> Any:
        if isinstance(value, ClosedJaxpr):
            return _without_checks(value)
        return tuple(map(cut, value)) if isinstance(value, tuple) else value

    eqns = []
    for eqn in closed.jaxpr.eqns:
        if eqn.primitive is check_p:
            continue
        if any(map(_has_user_checks, jaxprs_in_params(eqn.params))):
            rules = _quiet_rules(eqn.params) if eqn.primitive.name in _CUSTOM else {}
            params = {**{name: cut(value) for name, value in eqn.params.items()}, **rules}
            eqn = eqn.replace(params=params, effects=eqn.effects - _EFFECTS)
        eqns.append(eqn)
    effects = frozenset().union(*(eqn.effects for eqn in eqns)) if eqns else frozenset()
    return ClosedJaxpr(closed.jaxpr.replace(eqns=eqns, effects=effects), closed.consts)


_CUSTOM = ("custom_jvp_call", "custom_vjp_call")


def _quiet_rules(params: dict[str, Any]) -> dict[str, Any]:
    return {key: _quiet(rule) for key, rule in params.items() if key in ("jvp", "fwd", "bwd")}


def _quiet(rule: Callable[..., Any]) -> Callable[..., Any]:
    """A derivative rule without its checks; symbolic zeros of its results stay what they are."""

    @functools.wraps(rule)
    def run(*args: Any, **kwargs: Any) -> Any:
        arrays: list[Any] = []

        def parts(value: Any) -> Any:
            if isinstance(value, (tuple, list)):
                return type(value)(map(parts, value))
            if value is None or type(value) is Zero or dtypes.float0 == getattr(value, "dtype", None):
                return value
            arrays.append(value)
            return _Place(len(arrays) - 1)

        found: list[Any] = []

        def flat() -> list[Any]:
            found.append(parts(rule(*args, **kwargs)))
            return arrays

        closed = _without_checks(discharge_program(trace(flat, [])))
        values = eval_jaxpr(closed.jaxpr, closed.consts)

        def whole(part: Any) -> Any:
            if isinstance(part, (tuple, list)):
                return type(part)(map(whole, part))
            return values[part.number] if type(part) is _Place else part

        return whole(found[0])

    return run


@frozen_record
class _Place:
    """Stands for an array in the result of a rule."""

    number: int


def starts_of(eqn: Any) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]] | None:
    """(numbers of the operands that are start indices, the axes they are of, window sizes along these), or None."""
    name, params = eqn.primitive.name, eqn.params
    shape = eqn.invars[0].aval.shape if eqn.invars else ()
    every = tuple(range(len(shape)))
    if name == "dynamic_slice":
        return tuple(k + 1 for k in every), every, tuple(params["slice_sizes"])
    if name == "dynamic_update_slice":
        return tuple(k + 2 for k in every), every, eqn.invars[1].aval.shape
    if name != "gather" and not name.startswith("scatter"):
        return None
    numbers = params["dimension_numbers"]
    if name == "gather":
        axes = tuple(numbers.start_index_map)
        return (1,), axes, tuple(params["slice_sizes"][axis] for axis in axes)
    axes = tuple(numbers.scatter_dims_to_operand_dims)
    gone = (*numbers.inserted_window_dims, *numbers.operand_batching_dims)
    window = iter(numbers.update_window_dims)
    sizes = [1 if axis in gone else eqn.invars[2].aval.shape[next(window)] for axis in every]
    return (1,), axes, tuple(sizes[axis] for axis in axes)


def _indexed_shape(eqn: Any, makers: Mapping[Any, Any]) -> tuple[int, ...]:
    """The shape of the array that the user indexes: places that are known are taken by a slice first, on that line."""
    operand, (numbers, axes, _) = eqn.invars[0], starts_of(eqn) or ((), (), ())
    maker = None if isinstance(operand, Literal) else makers.get(operand)
    if maker is None or maker.primitive.name != "slice" or eqn.source is None or maker.source is None:
        return operand.aval.shape
    shape, params = maker.invars[0].aval.shape, maker.params
    starts = [eqn.invars[k] for k in numbers]
    if len(starts) == len(axes):
        axes = tuple(k for k, at in zip(axes, starts) if not (isinstance(at, Literal) and np.all(at.val == 0)))
    whole = all(params["start_indices"][k] == 0 and operand.aval.shape[k] == shape[k] for k in axes)
    return shape if whole and maker.source.in_full == eqn.source.in_full else operand.aval.shape


# Beside what moves values: what chooses among them, or casts them.
_CHOOSING = frozenset(
    [
        *("select_n", "clamp", "max", "min", "reduce_max", "reduce_min", "cummax", "cummin", "pmax", "pmin"),
        *("sort", "top_k", "approx_top_k", "partition", "order_statistics"),
        *("convert_element_type", "bitcast_convert_type", "all_gather", "all_to_all", "ppermute"),
    ]
)


def _computes(primitive: Primitive) -> bool:
    """Whether a primitive may generate a NaN, and not only hand one on."""
    if primitive.name in _CHOOSING:
        return False
    return primitive.name == "pad" or primitive.traits.isdisjoint(("movement", "identity", "barrier"))


def _is_float(aval: Any) -> bool:
    return dtypes.issubdtype(aval.dtype, np.inexact)


def _as_computed(x: Any) -> Any:
    """A number as an array: an index that is a number is no computed one, and is not checked."""
    return jnp.asarray(x) if isinstance(x, (int, float, complex, np.number)) and not isinstance(x, bool) else x


def _literal(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def checkify(f: Callable[..., Any], errors: frozenset[ErrorCategory] = user_checks) -> Callable[..., tuple[Error, Any]]:
    """The function (error, f(*args)) of f's arguments, in which the checks of the categories `errors` are values.

    `user_checks` are calls of `check`; `nan_checks` and `div_checks` watch each operation, `index_checks` each access
    by computed indices, and numbers among the arguments are computed ones, as under jit. NotImplementedError for checks
    in functions of solvers.
    """

    if not callable(f):
        raise TypeError(f"checkify: argument 'f' must be a function, got {f!r}")
    if isinstance(errors, str) or not set(errors) <= all_checks:
        raise TypeError(
            f"checkify: argument 'errors' must be a set of checks, such as checkify.float_checks, got {errors!r}"
        )

    @api_boundary
    @functools.wraps(f)
    def checked(*args: Any, **kwargs: Any) -> tuple[Error, Any]:
        args, kwargs = tree_util.tree_map(_as_computed, (args, kwargs))
        out_trees: list[Any] = []
        leaves, tree = tree_util.tree_flatten((args, kwargs))
        places = [k for k, leaf in enumerate(leaves) if isinstance(leaf, (Array, Tracer, np.ndarray))]
        given = [jnp.asarray(leaves[k]) for k in places]

        def flat(*arrays: Any) -> list[Any]:
            whole = list(leaves)
            for k, array in zip(places, arrays, strict=True):
                whole[k] = array
            values, names = tree_util.tree_unflatten(tree, whole)
            outs, out_tree = tree_util.tree_flatten(f(*values, **names))
            out_trees[:] = [out_tree]
            return outs

        closed = discharge_program(trace(flat, [typeof(x) for x in given]))
        if FailedCheckError not in errors:
            closed = _without_checks(closed)
        work = _Functionalizer(frozenset(errors))
        work.collect(closed.jaxpr)
        blank = [tuple(jnp.zeros(a.shape, a.dtype) for a in site.avals) for site in work.sites]
        state, outs = work.run(closed.jaxpr, closed.consts, _State(jnp.zeros((), np.int32), blank), given)
        outs = [jnp.asarray(x) if isinstance(x, np.generic) else x for x in outs]  # constants of the program
        error = Error(state.code, tuple(state.payload), tuple(site.message for site in work.sites))
        return error, tree_util.tree_unflatten(out_trees[0], outs)

    return checked


def check_error(error: Error) -> None:
    """Raise JaxRuntimeError if `error` says so; in a traced function, state it as a `check`."""
    if not isinstance(error, Error):
        raise TypeError(f"check_error: expected an Error, got {type(error)}")
    if not isinstance(error._code, Tracer):
        error.throw()
        return
    for number, (message, values) in enumerate(zip(error._messages, error._payload, strict=True)):
        check_p.bind(error._code != number + 1, *values, message=message)


__all__ = [
    "Error", "ErrorCategory", "JaxRuntimeError", "all_checks", "automatic_checks", "check", "check_error", "checkify",
    "debug_check", "div_checks", "float_checks", "index_checks", "init_error", "nan_checks", "user_checks",
]  # fmt: skip

_explain_all(globals())
_add_pages(globals(), _PAGES)

__dir__ = _listed(__name__)
