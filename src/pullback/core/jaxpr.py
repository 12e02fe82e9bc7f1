"""The typed functional program that everything works on; field names are JAX's, since other libraries read them.

    { lambda consts ; invars. let eqns in outvars }

Every variable is bound once, before its uses; an equation applies one primitive to atoms (variables or literals).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from pullback.core import avals
from pullback.core.asked import asked
from pullback.core.atoms import Atom, Literal, Program, Var, jaxprs_in_params
from pullback.core.atoms import DropVar as DropVar
from pullback.core.avals import ShapedArray
from pullback.core.interpreter import current_interpreter, eval_interpreter
from pullback.core.source import ANY_CALLERS, UNKNOWN, SourceInfo, at_line, calling_line, names_inside
from pullback.util.notebooks import program_html, shown_by


def _printing() -> Any:
    """What prints jaxprs, which most programs do not ask for."""
    from pullback.core import print

    return print


class JaxprEqnContext:
    """What is set around an equation, beside its parameters: nothing here, where parameters say it all.

    Interpreters that libraries write enter `eqn.ctx.manager` before they bind an equation's primitive.
    """

    compute_type = xla_metadata = None

    @property
    def manager(self) -> AbstractContextManager[None]:
        """Sets it again."""
        return nullcontext()


_CONTEXT = JaxprEqnContext()


class JaxprEqn:
    """One step of a program: `outvars = primitive[params] invars`.

    `source` is the line that it comes from, None where that is not known; libraries ask for `source_info`, which is
    always there.
    """

    __slots__ = ("invars", "outvars", "primitive", "params", "effects", "source", "ctx", "inner")

    def __init__(
        self,
        invars: Sequence[Atom],
        outvars: Sequence[Var],
        primitive,
        params: dict[str, Any],
        effects=frozenset(),
        source_info: SourceInfo | None = None,
        ctx=_CONTEXT,
    ):
        self.invars = list(invars)
        self.outvars = list(outvars)
        self.primitive = primitive
        self.params = params
        self.effects = effects
        self.source_info = source_info
        self.ctx = ctx
        self.inner: bool | None = None  # whether there are jaxprs among the parameters, once a pass has asked

    @property
    def source_info(self) -> SourceInfo:
        """The line that it comes from, and the scopes around it."""
        return UNKNOWN if self.source is None else self.source

    @source_info.setter
    def source_info(self, value: SourceInfo | None) -> None:
        self.source = None if value is UNKNOWN else value

    def replace(self, **kw) -> JaxprEqn:
        """The equation with some fields replaced."""
        new = JaxprEqn(self.invars, self.outvars, self.primitive, self.params, self.effects, self.source, self.ctx)
        for field, value in kw.items():
            setattr(new, field, list(value) if field in ("invars", "outvars") else value)
        if "params" not in kw:
            new.inner = self.inner
        return new

    def __repr__(self):
        return _printing().eqn_text(self)


def new_jaxpr_eqn(invars, outvars, primitive, params, effects=frozenset(), source_info=None, ctx=_CONTEXT) -> JaxprEqn:
    """An equation of a program."""
    return JaxprEqn(invars, outvars, primitive, params, effects, source_info, ctx)


_Names = Sequence[str] | Callable[[], Sequence[str]] | None


class DebugInfo:
    """Where a jaxpr came from: for which transformation, the function as 'name at file:line' or its name, the names of
    its arguments and results.

    The names may be functions that give them, since few are ever read.
    """

    __slots__ = ("_arg_names", "_result_paths", "func_src_info", "traced_for")

    def __init__(
        self,
        traced_for: str = "jit",
        func_src_info: str = "<unknown>",
        arg_names: _Names = None,
        result_paths: _Names = None,
    ) -> None:
        self.traced_for, self.func_src_info = traced_for, func_src_info
        self._arg_names, self._result_paths = arg_names, result_paths

    @property
    def func_name(self) -> str:
        """The name of the function."""
        return self.func_src_info.partition(" at ")[0]

    @property
    def func_filename(self) -> str | None:
        """The file of the function; None if it is not known."""
        return self.func_src_info.partition(" at ")[2].rpartition(":")[0] or None

    @property
    def func_lineno(self) -> int | None:
        """The first line of the function; None if it is not known."""
        line = self.func_src_info.partition(" at ")[2].rpartition(":")[2]
        return int(line) if line.isdigit() else None

    @property
    def arg_names(self) -> tuple[str, ...] | None:
        """A name such as x['w'][0] for each argument; None if they are not known."""
        if callable(self._arg_names):
            self._arg_names = self._arg_names()
        return None if self._arg_names is None else tuple(self._arg_names)

    @property
    def result_paths(self) -> tuple[str, ...] | None:
        """A name such as result['a'] for each result; None if they are not known."""
        if callable(self._result_paths):
            self._result_paths = self._result_paths()
        return None if self._result_paths is None else tuple(self._result_paths)

    def without_results(self) -> DebugInfo:
        """What is said of a program whose results may be others than the function's."""
        return DebugInfo(self.traced_for, self.func_src_info, self._arg_names)

    def without_names(self) -> DebugInfo:
        """What is said of a derivative, or a part, whose arguments and results are others than the function's."""
        return DebugInfo(self.traced_for, self.func_src_info)

    def __reduce__(self) -> Any:
        return DebugInfo, (self.traced_for, self.func_src_info, self.arg_names, self.result_paths)

    def __repr__(self) -> str:
        return (
            f"DebugInfo(traced_for={self.traced_for!r}, func_src_info={self.func_src_info!r}, "
            f"arg_names={self.arg_names!r}, result_paths={self.result_paths!r})"
        )


class Jaxpr(Program):
    """An open program: constvars stand for arrays held elsewhere.

    invars are its arguments, eqns its equations in order, outvars its results.

    >>> jaxpr = jax.make_jaxpr(lambda x: x * 2.0)(1.0).jaxpr
    >>> print(jaxpr.invars[0].aval.shape, [equation.primitive.name for equation in jaxpr.eqns])
    () ['mul']
    """

    __slots__ = ("constvars", "invars", "outvars", "eqns", "effects", "debug_info", "__weakref__")

    def __init__(
        self,
        constvars: Sequence[Var],
        invars: Sequence[Var],
        outvars: Sequence[Atom],
        eqns: Sequence[JaxprEqn],
        effects=frozenset(),
        debug_info: DebugInfo | None = None,
        is_high: bool = False,
    ):
        self.constvars = list(constvars)
        self.invars = list(invars)
        self.outvars = list(outvars)
        self.eqns = list(eqns)
        self.effects = effects
        self.debug_info = debug_info or DebugInfo()

    def replace(self, **kw) -> Jaxpr:
        """The jaxpr with some fields replaced."""
        return Jaxpr(
            **(
                {
                    "constvars": self.constvars,
                    "invars": self.invars,
                    "outvars": self.outvars,
                    "eqns": self.eqns,
                    "effects": self.effects,
                    "debug_info": self.debug_info,
                }
                | kw
            )
        )

    def __repr__(self):
        return _printing().jaxpr_text(self)

    _repr_mimebundle_ = shown_by(lambda self: program_html(_printing().lines_with_places(self)))

    def pretty_print(self, **options) -> str:
        """The text of the jaxpr. Options: source_info and name_stack (each equation's line and scope behind it),
        print_shapes, print_effects, custom_pp_eqn_rules (False: all parameters, by name), width, use_color.
        """
        return _printing().jaxpr_text(self, **options)


class ElementJaxpr(Jaxpr):
    """What a primitive does to elements, for those who read its equations: its name says it, too, and the compiler goes
    by that.
    """

    __slots__ = ()
    of_elements = True


class ClosedJaxpr(Program):
    """A jaxpr with the values of its constvars."""

    __slots__ = ("jaxpr", "consts", "derived", "__weakref__")

    def __init__(self, jaxpr: Jaxpr, consts: Sequence[Any] = ()):
        if len(jaxpr.constvars) != len(consts):
            raise ValueError(f"ClosedJaxpr: {len(jaxpr.constvars)} constvars but {len(consts)} consts")
        self.jaxpr = jaxpr
        self.consts = list(consts)
        self.derived: dict[Any, Any] = {}  # what `cached` made, by key

    def __reduce__(self):
        return ClosedJaxpr, (self.jaxpr, self.consts)  # what `cached` made can be made again

    @property
    def literals(self):
        """The consts (JAX's older name)."""
        return self.consts

    @property
    def in_avals(self) -> list[ShapedArray]:
        """Avals of the arguments."""
        return [v.aval for v in self.jaxpr.invars]

    @property
    def out_avals(self) -> list[ShapedArray]:
        """Avals of the results."""
        return [v.aval for v in self.jaxpr.outvars]

    @property
    def eqns(self) -> list[JaxprEqn]:
        """The equations of the open program."""
        return self.jaxpr.eqns

    constvars = property(lambda self: self.jaxpr.constvars, doc="The variables of the consts.")
    invars = property(lambda self: self.jaxpr.invars, doc="The variables of the arguments.")
    outvars = property(lambda self: self.jaxpr.outvars, doc="What the results are.")
    debug_info = property(lambda self: self.jaxpr.debug_info, doc="Where the open program comes from.")

    @property
    def effects(self):
        """The effects of the open program."""
        return self.jaxpr.effects

    def map_jaxpr(self, f) -> ClosedJaxpr:
        """The same consts with `f(jaxpr)`."""
        return ClosedJaxpr(f(self.jaxpr), self.consts)

    def replace(self, *, jaxpr=None, consts=None) -> ClosedJaxpr:
        """The closed jaxpr with some fields replaced."""
        return ClosedJaxpr(self.jaxpr if jaxpr is None else jaxpr, self.consts if consts is None else consts)

    def cached(self, key, make):
        """`make()` computed once per key for this jaxpr; transformations keep their results here.

        What it traces belongs to the jaxpr's lines, and not to those of the first who asks.
        """
        found = self.derived.get(key)
        if found is None:
            with at_line(calling_line(), ANY_CALLERS):
                found = self.derived[key] = make()
        return found

    def __call__(self, *args):
        return eval_jaxpr(self.jaxpr, self.consts, *args)

    def __repr__(self):
        return repr(self.jaxpr)

    __str__ = __repr__

    _repr_mimebundle_ = shown_by(lambda self: program_html(_printing().lines_with_places(self)))

    def pretty_print(self, **options) -> str:
        """As `Jaxpr.pretty_print`."""
        return self.jaxpr.pretty_print(**options)


def subjaxprs(jaxpr: Jaxpr) -> Iterator[Jaxpr]:
    """The programs among the parameters of a jaxpr's equations, not those within these."""
    return (inner for eqn in jaxpr.eqns for inner in jaxprs_in_params(eqn.params))


def jaxpr_as_fun(closed: ClosedJaxpr):
    """A function of arrays that evaluates the jaxpr and gives a list; it can be given a name."""
    return functools.partial(closed)


def last_uses(jaxpr: Jaxpr) -> dict[int, list[Var]]:
    """For each equation's number, the variables that nobody needs after it."""
    last: dict[Any, int] = {}
    for i, eqn in enumerate(jaxpr.eqns):
        for atom in eqn.invars:
            if type(atom) is not Literal:
                last[atom] = i
    for atom in jaxpr.outvars:
        if type(atom) is not Literal:
            last.pop(atom, None)
    uses: dict[int, list[Var]] = {}
    for var, i in last.items():
        uses.setdefault(i, []).append(var)
    return uses


def bind_again(eqn: JaxprEqn, values: Sequence[Any]) -> Any:
    """The results of an equation on other values. Where explicit axes cut its operands, its results are cut as they
    are in the program: what was ambiguous the user has settled, by an `out_sharding` that the equation does not say.
    """
    if avals.any_placed and any([getattr(a.aval, "placing", None) is not None for a in eqn.invars]):
        if eqn.outvars and not jaxprs_in_params(eqn.params):
            with asked(getattr(eqn.outvars[0].aval, "placing", None) or True):
                return eqn.primitive.bind(*values, **eqn.params)
    return eqn.primitive.bind(*values, **eqn.params)


def eval_jaxpr(jaxpr: Jaxpr, consts, *args, propagate_source_info: bool = True) -> list:
    """Evaluate under the current interpreter; values are dropped after their last use.

    Operations that are traced belong to the lines and scopes that the jaxpr's have (propagate_source_info).
    Raises TypeError when the number of arguments is not that of the jaxpr.
    """
    if len(args) != len(jaxpr.invars):
        raise TypeError(f"eval_jaxpr: the jaxpr takes {len(jaxpr.invars)} arguments, got {len(args)}")
    env: dict[Any, object] = dict(zip(jaxpr.constvars, consts))
    env.update(zip(jaxpr.invars, args))
    uses = last_uses(jaxpr)
    is_seen = propagate_source_info and current_interpreter() is not eval_interpreter()
    here = calling_line() if is_seen else None
    for i, eqn in enumerate(jaxpr.eqns):
        values = [a.operand if type(a) is Literal else env[a] for a in eqn.invars]
        source = eqn.source if is_seen else None
        if source is None:
            outs = bind_again(eqn, values)
        else:
            with at_line(here, source), names_inside(*source.name_stack):
                outs = bind_again(eqn, values)
        if eqn.primitive.multiple_results:
            env.update(zip(eqn.outvars, outs))
        else:
            env[eqn.outvars[0]] = outs
        for var in uses.get(i, ()):
            env.pop(var, None)
    return [a.array if type(a) is Literal else env[a] for a in jaxpr.outvars]
