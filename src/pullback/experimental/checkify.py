"""Run-time checks inside jitted functions: `check` states them, `checkify` turns them into a value that comes out.

    def f(x):
        checkify.check(x > 0, "x must be positive, got {x}", x=x)
        return jnp.log(x)

    error, y = jit(checkify.checkify(f))(-1.0)
    error.throw()                                  # JaxRuntimeError: x must be positive, got -1.0 (`check` failed)

A check is a primitive without results. `checkify` traces the function, numbers its checks, and evaluates the jaxpr
with one
more value going through it: the number of the first check that failed (0: none) and what its message shows. Calls are
inlined; branches and loops carry the value along.
"""

from __future__ import annotations

import functools
import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback import lax, tree_util
from pullback.core import (
    ClosedJaxpr,
    Literal,
    NoRule,
    Primitive,
    ShapedArray,
    Tracer,
    jaxprs_in_params,
    not_mapped,
    trace,
    typeof,
)
from pullback.util import dtypes
from pullback.util.errors import JaxRuntimeError


class JaxException(Exception):
    """Base of the kinds of errors that checks find."""


class FailedCheckError(JaxException):
    """A `check` of the user's."""


class NaNError(JaxException):
    """A NaN that an operation made."""


class DivisionByZeroError(JaxException):
    """A division by zero."""


class OOBError(JaxException):
    """An index out of bounds."""


ErrorCategory = type[JaxException]
user_checks = frozenset({FailedCheckError})
nan_checks = frozenset({NaNError})
div_checks = frozenset({DivisionByZeroError})
index_checks = frozenset({OOBError})
float_checks = nan_checks | div_checks
automatic_checks = float_checks | index_checks
all_checks = automatic_checks | user_checks


# ------------------------------------------------------------------------------------------------------------ messages


@dataclass(frozen=True, eq=False)
class _Message:
    """A format string, the tree of its arguments, and the kind of error."""

    text: str
    tree: Any
    category: ErrorCategory

    def format(self, values: Sequence[Any]) -> str:
        args, kwargs = tree_util.tree_unflatten(self.tree, [np.asarray(v) for v in values])
        shown = self.text.format(*args, **kwargs)
        return f"{shown} (`check` failed)" if self.category is FailedCheckError else shown


@dataclass(frozen=True)
class _Site:
    """One check of a program: its message and the avals of what the message shows."""

    message: _Message
    avals: tuple[ShapedArray, ...]


def _element_at(place: tuple[int, ...]) -> Callable[[Any], Any]:
    return lambda x: np.asarray(x)[place]


class Error:
    """What `checkify` gives beside the result: the first check that failed, if one did. A tree of arrays."""

    def __init__(self, code: Any, payload: tuple[tuple[Any, ...], ...], messages: tuple[_Message, ...]) -> None:
        self._code, self._payload, self._messages = code, payload, messages

    def get(self) -> str | None:
        """The message of the first failed check, None if all held. Of several (under vmap) errors, one line for
        each."""
        codes = np.asarray(self._code)
        if codes.ndim == 0:
            return self._message(int(codes), lambda x: x)
        lines = []
        for place in np.ndindex(*codes.shape):
            line = self._message(int(codes[place]), _element_at(place))
            if line is not None:
                lines.append(f"at mapped index {', '.join(map(str, place))}: {line}")
        return "\n".join(lines) or None

    def _message(self, code: int, pick: Callable[[Any], Any]) -> str | None:
        if code == 0:
            return None
        return self._messages[code - 1].format([pick(x) for x in self._payload[code - 1]])

    def get_exception(self) -> JaxException | None:
        """The error as an exception of its kind, None if all checks held."""
        codes = np.asarray(self._code).ravel()
        failed = codes[codes > 0]
        return self._messages[failed[0] - 1].category(self.get()) if failed.size else None

    def throw(self) -> None:
        """Raise JaxRuntimeError if a check failed."""
        message = self.get()
        if message is not None:
            raise JaxRuntimeError(message)

    def __repr__(self) -> str:
        return f"Error({self.get()})" if not isinstance(self._code, Tracer) else "Error(<traced>)"


def _rebuilt(messages: Any, code: Any, payload: Any) -> Error:
    return Error(code, payload, messages)


tree_util.register_pytree_node(
    Error, lambda e: ((e._code, e._payload), e._messages), lambda messages, children: _rebuilt(messages, *children)
)
init_error = Error(np.int32(0), (), ())


# ---------------------------------------------------------------------------------------------------- the primitive


def _unused(*args: Any, **params: Any) -> Any:
    raise ValueError(
        "Cannot abstractly evaluate a checkify.check which was not functionalized. This probably means you tried to "
        "stage "
        "(jit/scan/pmap/...) a `check` without functionalizing it through `checkify.checkify`."
    )


def _evaluate(pred: Any, *values: Any, message: _Message) -> list[Any]:
    if not bool(np.all(np.asarray(pred))):
        raise JaxRuntimeError(message.format(values))
    return []


def _batch(args: Any, dims: Any, *, message: _Message) -> Any:
    size = next(x.shape[d] for x, d in zip(args, dims, strict=True) if d is not not_mapped)
    moved = [
        jnp.broadcast_to(x, (size, *np.shape(x))) if d is not_mapped else jnp.moveaxis(x, d, 0)
        for x, d in zip(args, dims, strict=True)
    ]
    first = jnp.argmin(moved[0])  # the first that failed
    check_p.bind(jnp.all(moved[0]), *[jnp.take(x, first, axis=0) for x in moved[1:]], message=message)
    return [], []


def _jvp(primals: Any, tangents: Any, *, message: _Message) -> Any:
    check_p.bind(*primals, message=message)
    return [], []


check_p = Primitive(
    "check", abstract_eval=lambda *avals, message: [], reference=_unused, evaluate=_evaluate, jvp=_jvp, batch=_batch,
    transpose=NoRule("a check has no results"), lower=NoRule("it was not functionalized; use checkify.checkify"),
    multiple_results=True, effects=lambda params: frozenset({"check"}), doc="States that a condition holds.",
)  # fmt: skip


def check(pred: Any, msg: str, *fmt_args: Any, debug: bool = False, **fmt_kwargs: Any) -> None:
    """State that `pred`, a bool scalar, holds; `msg` is formatted with the arguments, which are trees of arrays.

    With a concrete `pred` it raises JaxRuntimeError at once; in a traced function, `checkify` must be around it. Raises
    TypeError if pred is not a bool scalar, or the arguments are not arrays. With `debug` it is a `debug_check`.
    """
    if debug and not isinstance(pred, Tracer):
        return
    if not isinstance(msg, str):
        raise TypeError(f"checkify.check: argument 'msg' must be a string, got {type(msg)}")
    aval = typeof(pred)
    if aval.shape != () or aval.dtype != np.bool_:
        raise TypeError(f"debug_check/check takes a scalar pred as argument, got {aval.str_short()}.")
    leaves, tree = tree_util.tree_flatten((fmt_args, fmt_kwargs))
    for leaf in leaves:
        if not hasattr(leaf, "dtype"):
            raise TypeError(
                "Formatting arguments to checkify.check need to be PyTrees of arrays, but got "
                f"{leaf!r} of type {type(leaf)}."
            )
    _verify_format(msg, fmt_args, fmt_kwargs)
    check_p.bind(jnp.asarray(pred), *leaves, message=_Message(msg, tree, FailedCheckError))


def debug_check(pred: Any, msg: str, *fmt_args: Any, **fmt_kwargs: Any) -> None:
    """`check`, but without effect where no `checkify` is around it."""
    if isinstance(pred, Tracer):
        check(pred, msg, *fmt_args, **fmt_kwargs)


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
        for eqn in jaxpr.eqns:
            for key, message, avals in self._checks_of(eqn):
                if key not in self.numbers:
                    self.numbers[key] = len(self.sites)
                    self.sites.append(_Site(message, avals))
            for inner in jaxprs_in_params(eqn.params):
                self.collect(inner)

    def _checks_of(self, eqn: Any) -> list[tuple[Any, _Message, tuple[ShapedArray, ...]]]:
        found: list[tuple[Any, _Message, tuple[ShapedArray, ...]]] = []
        if eqn.primitive is check_p:
            if FailedCheckError in self.errors:
                avals = tuple(a.aval.strip_weak_type() for a in eqn.invars[1:])
                found.append(((id(eqn), "user"), eqn.params["message"], avals))
            return found
        if jaxprs_in_params(eqn.params):
            return found
        empty = tree_util.tree_structure(((), {}))
        if NaNError in self.errors and any(_is_float(v.aval) for v in eqn.outvars):
            text = f"nan generated by primitive: {eqn.primitive.name}."
            found.append(((id(eqn), "nan"), _Message(_literal(text), empty, NaNError), ()))
        if DivisionByZeroError in self.errors and eqn.primitive.name in ("div", "rem"):
            found.append(((id(eqn), "div"), _Message("division by zero.", empty, DivisionByZeroError), ()))
        return found

    def contains(self, jaxpr: Any) -> bool:
        return any(self._checks_of(e) or any(self.contains(j) for j in jaxprs_in_params(e.params)) for e in jaxpr.eqns)

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
            inner = jaxprs_in_params(eqn.params)
            if inner and any(self.contains(j) for j in inner):
                state, outs = self._higher_order(eqn, state, values)
            else:
                outs = eqn.primitive.bind(*values, **eqn.params)
                outs = list(outs) if eqn.primitive.multiple_results else [outs]
                state = self._automatic(eqn, state, values, outs)
            env.update(zip(eqn.outvars, outs, strict=True))
        return state, [read(a) for a in jaxpr.outvars]

    def _automatic(self, eqn: Any, state: _State, values: Sequence[Any], outs: Sequence[Any]) -> _State:
        nan = self.numbers.get((id(eqn), "nan"))
        if nan is not None:
            for out in outs:
                if _is_float(typeof(out)):
                    state = self.fail(state, nan, jnp.any(jnp.isnan(out)), ())
        zero = self.numbers.get((id(eqn), "div"))
        if zero is not None:
            state = self.fail(state, zero, jnp.any(jnp.asarray(values[1]) == 0), ())
        return state

    def _higher_order(self, eqn: Any, state: _State, values: list[Any]) -> tuple[_State, list[Any]]:
        name, params = eqn.primitive.name, eqn.params
        if name == "cond":
            branches = [self._with_state(b, typed=[typeof(x) for x in values[1:]]) for b in params["branches"]]
            return self._split(lax.switch(values[0], branches, state.flat(), values[1:]))
        if name == "scan":
            return self._scan(params, state, values)
        if name == "while":
            return self._while(params, state, values)
        bodies = [v for v in params.values() if isinstance(v, ClosedJaxpr)]
        if not bodies:
            raise NotImplementedError(f"checkify: checks inside of '{name}' are not supported")
        (closed,) = bodies
        return self.run(closed.jaxpr, closed.consts, state, values)

    def _with_state(self, closed: ClosedJaxpr, typed: Sequence[ShapedArray]) -> Callable[..., Any]:
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

    def _while(self, params: dict[str, Any], state: _State, values: list[Any]) -> tuple[_State, list[Any]]:
        n, m = params["cond_nconsts"], params["body_nconsts"]
        cond_consts, body_consts, init = values[:n], values[n : n + m], values[n + m :]
        cond, body = params["cond_jaxpr"], params["body_jaxpr"]

        def test(carry: Any) -> Any:
            _, inner = carry
            (out,) = cond(*cond_consts, *inner)
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


def _is_float(aval: Any) -> bool:
    return dtypes.issubdtype(aval.dtype, np.inexact)


def _literal(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def checkify(f: Callable[..., Any], errors: frozenset[ErrorCategory] = user_checks) -> Callable[..., tuple[Error, Any]]:
    """The function (error, f(*args)) of f's arguments, in which the checks of the categories `errors` are values.

    `user_checks` are calls of `check`; `nan_checks` and `div_checks` watch each operation. Raises NotImplementedError
    for `index_checks`.
    """
    if OOBError in errors:
        raise NotImplementedError(
            "checkify: index_checks are not supported; out-of-bounds indices are clipped or dropped"
        )

    @functools.wraps(f)
    def checked(*args: Any, **kwargs: Any) -> tuple[Error, Any]:
        leaves, tree = tree_util.tree_flatten((args, kwargs))
        out_trees: list[Any] = []

        def flat(*flat_args: Any) -> list[Any]:
            inner_args, inner_kwargs = tree_util.tree_unflatten(tree, flat_args)
            outs, out_tree = tree_util.tree_flatten(f(*inner_args, **inner_kwargs))
            out_trees[:] = [out_tree]
            return outs

        closed = trace(flat, [typeof(x) for x in leaves])
        work = _Functionalizer(frozenset(errors))
        work.collect(closed.jaxpr)
        blank = [tuple(jnp.zeros(a.shape, a.dtype) for a in site.avals) for site in work.sites]
        state, outs = work.run(closed.jaxpr, closed.consts, _State(jnp.zeros((), np.int32), blank), leaves)
        error = Error(state.code, tuple(state.payload), tuple(site.message for site in work.sites))
        return error, tree_util.tree_unflatten(out_trees[0], outs)

    return checked


def check_error(error: Error) -> None:
    """Raise JaxRuntimeError if `error` says so; in a traced function, state it as a `check`.

    Raises TypeError for anything but an Error.
    """
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
