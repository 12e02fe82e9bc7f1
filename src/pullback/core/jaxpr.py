"""The typed functional program that everything works on; field names are JAX's, since other libraries read them.

    { lambda consts ; invars. let eqns in outvars }

Every variable is bound once, before its uses; an equation applies one primitive to atoms (variables or literals).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from pullback.core.avals import ShapedArray, typeof
from pullback.core.hooks import hooks
from pullback.core.source import SourceInfo


class Var:
    """A variable; identity is its name."""

    __slots__ = ("aval", "count")
    _counter = itertools.count()

    def __init__(self, aval, *_unused):
        self.aval = aval
        self.count = next(Var._counter)

    def __repr__(self):
        return f"v{self.count}:{self.aval.str_short()}"


class DropVar(Var):
    """Takes a result that nobody reads; prints as _."""

    __slots__ = ()

    def __repr__(self):
        return "_"


class Literal:
    """A constant scalar inside an equation."""

    __slots__ = ("val", "aval", "_operand")

    def __init__(self, val, aval=None):
        self.val = val
        self.aval = typeof(val) if aval is None else aval
        self._operand = None

    @property
    def operand(self):
        """The value as an operand of a primitive: its type is exactly `aval`, also where that is weak."""
        if not self.aval.weak_type:
            return self.val
        if self._operand is None:
            self._operand = hooks.asarray(self.val, dtype=self.aval.dtype, weak_type=True)
        return self._operand

    @property
    def hash(self):
        """Hash of value and type, for common-subexpression elimination."""
        return hash((np.asarray(self.val).tobytes(), self.aval))

    def __repr__(self):
        return f"{_literal_text(self.val)}:{self.aval.str_short()}"


Atom = Var | Literal


class JaxprEqn:
    """outvars = primitive[params] invars."""

    __slots__ = ("invars", "outvars", "primitive", "params", "effects", "source_info", "ctx")

    def __init__(
        self,
        invars: Sequence[Atom],
        outvars: Sequence[Var],
        primitive,
        params: dict[str, Any],
        effects=frozenset(),
        source_info: SourceInfo | None = None,
        ctx=None,
    ):
        self.invars = list(invars)
        self.outvars = list(outvars)
        self.primitive = primitive
        self.params = params
        self.effects = effects
        self.source_info = source_info
        self.ctx = ctx

    def replace(self, **kw) -> JaxprEqn:
        """The equation with some fields replaced."""
        new = JaxprEqn(self.invars, self.outvars, self.primitive, self.params, self.effects, self.source_info, self.ctx)
        for field, value in kw.items():
            setattr(new, field, list(value) if field in ("invars", "outvars") else value)
        return new

    def __repr__(self):
        from pullback.core.print import eqn_text

        return eqn_text(self)


def new_jaxpr_eqn(invars, outvars, primitive, params, effects=frozenset(), source_info=None, ctx=None) -> JaxprEqn:
    """An equation (JAX's name for the constructor)."""
    return JaxprEqn(invars, outvars, primitive, params, effects, source_info, ctx)


class DebugInfo(NamedTuple):
    """Where a jaxpr came from: which transformation, the function's name, the names of its arguments and results."""

    traced_for: str = "jit"
    func_name: str = "<unknown>"
    arg_names: tuple[str, ...] | None = None
    result_paths: tuple[str, ...] | None = None

    @property
    def func_src_info(self) -> str:
        """The name of the function."""
        return self.func_name


class Jaxpr:
    """An open program: constvars stand for arrays held elsewhere."""

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
        from pullback.core.print import jaxpr_text

        return jaxpr_text(self)

    def pretty_print(self, *, source_info: bool = False, name_stack: bool = False, **_kw) -> str:
        """The text of the jaxpr, with each equation's line or scope after it."""
        from pullback.core.print import jaxpr_text

        return jaxpr_text(self, source_info=source_info, name_stack=name_stack)


class ClosedJaxpr:
    """A jaxpr with the values of its constvars."""

    __slots__ = ("jaxpr", "consts", "derived", "__weakref__")

    def __init__(self, jaxpr: Jaxpr, consts: Sequence[Any] = ()):
        if len(jaxpr.constvars) != len(consts):
            raise ValueError(f"ClosedJaxpr: {len(jaxpr.constvars)} constvars but {len(consts)} consts")
        self.jaxpr = jaxpr
        self.consts = list(consts)
        self.derived: dict[Any, Any] = {}  # what `cached` made, by key

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
        """`make()` computed once per key for this jaxpr; transformations keep their results here."""
        found = self.derived.get(key)
        if found is None:
            found = self.derived[key] = make()
        return found

    def __call__(self, *args):
        from pullback.core.evaluate import eval_jaxpr

        return eval_jaxpr(self.jaxpr, self.consts, *args)

    def __repr__(self):
        return repr(self.jaxpr)

    __str__ = __repr__

    def pretty_print(self, **options) -> str:
        """As `Jaxpr.pretty_print`."""
        return self.jaxpr.pretty_print(**options)


def subjaxprs(params: dict[str, Any]) -> Iterator[Jaxpr]:
    """The jaxprs inside an equation's params, in order."""
    for value in params.values():
        for item in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(item, ClosedJaxpr):
                yield item.jaxpr
            elif isinstance(item, Jaxpr):
                yield item


def jaxprs_in_params(params: dict[str, Any]) -> list[Jaxpr]:
    """As `subjaxprs`, a list (JAX's name)."""
    return list(subjaxprs(params))


def jaxpr_as_fun(closed: ClosedJaxpr):
    """A function of arrays that evaluates the jaxpr and gives a list."""
    return closed


def _literal_text(val) -> str:
    if isinstance(val, (bool, np.bool_)):
        return str(bool(val))
    array = np.asarray(val)
    return str(array.item()) if array.ndim == 0 else f"array{array.shape}"
