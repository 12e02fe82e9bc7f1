"""The current interpreter: what happens when a primitive is bound.

One interpreter is current at a time, in a context variable. A transformation makes its own the current one, runs the
user's function, and sets its parent back while its rules run. There are no levels: an interpreter treats every value
that is not its own tracer as a constant.
"""

from __future__ import annotations

import threading
from contextvars import ContextVar
from typing import Any

from pullback._ext import _core


class WrittenOut:
    """A flat function as interpreters of users are given it: with `call_wrapped`, and what transformations of
    `linear_util` read."""

    debug_info: Any = None

    def __init__(self, f: Any):
        self.f = f

    def call_wrapped(self, *args: Any) -> Any:
        """f(*args)."""
        return self.f(*args)


class Interpreter:
    """Meaning of `primitive.bind(*args, **params)`.

    Those of users (`jax.core.Trace`) give the methods that are called process_primitive, process_custom_jvp_call and
    process_custom_vjp_call instead, of which the others are made here.
    """

    parent: Any = None  # an Interpreter; None for the one that evaluates
    remembers = False  # transforms concrete values: remembered functions are transformed as jaxprs (`call`)

    transformation = "a transformation"  # what messages call it

    lets_out = False  # whether references from outside may be given values that this does not hold
    stages_references = False  # whether reads and writes of references are recorded
    differentiates = False  # whether rules of the user's for derivatives are run, at once or later

    def process(self, primitive, args: tuple, params: dict) -> Any:
        """Run one primitive; args may be tracers of this interpreter, of others, or concrete values."""
        if type(self).process_primitive is Interpreter.process_primitive:
            raise NotImplementedError(f"{type(self).__name__} has no process_primitive")
        if primitive.spelled_out is not None:  # rules of libraries are for JAX's primitives
            return primitive.spelled_out(*args, **params)
        return self.process_primitive(primitive, args, params)

    def process_primitive(self, primitive, tracers, params: dict) -> Any:
        """The same, as interpreters of users have it and call it of their parents."""
        return self.process(primitive, tuple(tracers), params)

    def full_raise(self, value: Any) -> Any:
        """The value as it is: libraries' interpreters ask what stands for it, and there are no levels."""
        return value

    def call(self, closed, args) -> list:
        """Run a jaxpr without effects as a whole: transform it, once, and hand it to the parent.

        Only of interpreters that remember."""
        raise NotImplementedError(type(self).__name__)

    def process_custom_jvp(self, custom, fun, jvp, args) -> list:
        """Run flat `fun(*args) -> list`, which has a custom forward derivative."""
        rule = getattr(self, "process_custom_jvp_call", None)
        if rule is None:
            raise NotImplementedError(f"{type(self).__name__} has no process_custom_jvp_call")
        return rule(custom.primitive, WrittenOut(fun), WrittenOut(custom.flat_jvp(jvp)), args, symbolic_zeros=False)

    def process_custom_vjp(self, custom, fun, fwd, bwd, args) -> list:
        """Run flat `fun(*args) -> list`, which has a custom reverse derivative."""
        rule = getattr(self, "process_custom_vjp_call", None)
        if rule is None:
            raise NotImplementedError(f"{type(self).__name__} has no process_custom_vjp_call")
        wrapped = [WrittenOut(f) for f in (fun, fwd, bwd)]
        return rule(custom.primitive, *wrapped, args, out_trees=None, symbolic_zeros=False)

    @property
    def main(self) -> Interpreter:
        """Itself: what libraries compare to see whether two tracers are of one transformation."""
        return self

    def invalidate(self) -> None:
        """The trace is over; tracers of it that are used later have leaked."""


_current: ContextVar[Interpreter] = ContextVar("pullback_interpreter")
_core.set_interpreter_variable(_current)
_eval: Interpreter | None = None


def current_interpreter() -> Interpreter:
    """The interpreter in force in this thread and context."""
    found = _current.get(None)
    return _eval if found is None else found  # type: ignore[return-value]


def is_within_transformation() -> bool:
    """Whether a transformation is in force in this thread and context, though it may have its parent run something."""
    return _current.get(None) is not None


def set_eval_interpreter(interpreter: Interpreter) -> None:
    """Set the interpreter that is current when no transformation is: evaluation of concrete values."""
    global _eval
    _eval = interpreter


def eval_interpreter() -> Interpreter:
    """The interpreter that evaluates."""
    return _eval  # type: ignore[return-value]


class _Watching(threading.local):
    code = 0  # or 3: what `set_tracing` is told where the interpreter that evaluates is current
    who: frozenset[str] = frozenset()


_watching = _Watching()


def set_watching(who: str, active: bool) -> None:
    """Whether calls of this thread go through Python though nothing is transformed, as somebody looks at them."""
    _watching.who = _watching.who | {who} if active else _watching.who - {who}
    _watching.code = 3 if _watching.who else 0
    if current_interpreter() is _eval:
        _core.set_tracing(_watching.code)


class using:
    """Context manager: make `interpreter` the current one."""

    __slots__ = ("interpreter", "token")

    def __init__(self, interpreter: Interpreter):
        self.interpreter = interpreter

    def __enter__(self):
        interpreter = self.interpreter
        self.token = _current.set(interpreter)
        _core.set_tracing(_watching.code if interpreter is _eval else 2 if interpreter.remembers else 1)
        return interpreter

    def __exit__(self, *exc):
        _current.reset(self.token)
        found: Any = _current.get(_eval)
        _core.set_tracing(_watching.code if found is _eval else 2 if found.remembers else 1)
        return False


# Named axes of vmap, pmap and shard_map in force: name -> size.
_axis_env: ContextVar[dict] = ContextVar("pullback_axis_env", default={})  # noqa: B039  never written to: `extend_axis_env` makes new ones


def axis_env() -> dict:
    """The named axes in force, name -> size."""
    return _axis_env.get()


class extend_axis_env:
    """Context manager: add a named axis."""

    def __init__(self, name, size: int):
        self.name, self.size = name, size

    def __enter__(self):
        self.token = None if self.name is None else _axis_env.set({**_axis_env.get(), self.name: self.size})

    def __exit__(self, *exc):
        if self.token is not None:
            _axis_env.reset(self.token)
        return False


def axis_size(name) -> int:
    """Size of the named axis; NameError where there is none."""
    env = _axis_env.get()
    if name not in env:
        named = [n for n in env if not isinstance(n, tuple)]  # and not what is known of one of them
        raise NameError(
            f"Found an unbound axis name: {name}. The axes in force are {named}; name one with "
            f"vmap(..., axis_name={name!r}), pmap or shard_map."
        )
    return env[name]
