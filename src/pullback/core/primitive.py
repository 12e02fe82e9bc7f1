"""The record that a primitive is: everything the system needs to know of it, in one place.

    log1p_p = Primitive("log1p", abstract_eval=..., reference=..., jvp=..., transpose=NoRule("not linear"),
                        batch=..., lower=...)

Each rule field holds a rule, `ZERO` (derivative is zero everywhere it exists), or `NoRule("reason")`; the reason is
what a user reads who needs the rule, and what the coverage table prints. Rule signatures:

    abstract_eval(*avals, **params) -> aval                     a list of avals where multiple_results
    reference(*numpy_arrays, **params) -> numpy_array           the meaning; exact dtype of abstract_eval; list likewise
    jvp(primals, tangents, **params) -> (out, out_dot)          tangents and out_dot may be `Zero`
    transpose(x_bar, *args, **params) -> [arg_bar or None]      linear args: UndefinedPrimal(aval); x_bar may be `Zero`
    batch(args, dims, **params) -> (out, out_dim)               dims: int or not_mapped (None)
    lower                                                       a kind from core/lowering.py
    traits                                                      what passes ask by name: "commutative", "movement", ...;
        "inside" says that a Pointwise rule reads operands at places inside of them only, whatever its selects choose;
        "stacked" that a stack of operands takes no longer than one after the other, where `lower` does not tell;
        "own types" that the shape rule says how results vary and are cut over meshes (core/types.py);
        "added by plans" that plans add in another order than the reference: they do eager work from the first call on;
        "exact" that the reference and compiled code have the same bits, by themselves and among other operations, as
        nothing is added, or by the same library (of zeros of both signs, the largest may be either);
        "quicker compiled" that eager work is compiled code from the first call on, in a fraction of the reference's
        time (both where `lower` does not say it: runtime/eager/bits.py);
        "own order" that compiled code gives the same elements in another order than the reference, which may be another
        on each machine: eager work is compiled code;
        "transposes zeros" that the transpose rule is asked even where all cotangents vanish;
        "mixed" that under vmap, as in JAX, an element of a batch is not what it is by itself;
        "once" that one device calls it for all that share the work: it runs a function of the user's, which may be slow

Fields that only higher-order primitives (jit, scan, cond, while, checkpoint, custom rules) fill:

    evaluate(*arrays, **params)                                  how to run on concrete arrays, where not by reference
    batch_axis(axis_data, args, dims, **params)                  as batch, and knows the size and name of the axis
    partial_eval(interpreter, args, params) -> outs              split into a known and an unknown part
    partial_eval_jaxpr / dce ...                                 see transforms/partial_eval.py
    typecheck(*avals, **params)                                  JaxprTypeError unless they fit (core/typechecks.py)
    saving(eqn, unknown_in, unknown_out, halves) -> ...          what a policy of checkpoint keeps of bodies: params
                                                                 that give it, params that take it, its avals, before
                                                                 which argument they come (transforms/policies.py)
    partition(eqn) -> Factors or None                            dimensions that are cut together (partition/rules)
    outer(args, params) -> args, params                          what its programs close over as leading arguments
    discharge(*args, **params) -> outs                           with references among args, or read and written inside:
                                                                 bind what works on values (transforms/discharge.py)
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable
from typing import Any

from pullback._ext import _core
from pullback.core.atoms import Program, has_references
from pullback.core.avals import Reference
from pullback.core.hooks import hooks
from pullback.core.interpreter import current_interpreter, using
from pullback.core.lowering import Inline
from pullback.core.tracer import Tracer
from pullback.util.pytree import register_pytree_node


class Zero:
    """A symbolic zero: a tangent or cotangent of `aval` that is known to vanish and is never stored."""

    __slots__ = ("aval",)

    def __init__(self, aval):
        self.aval = aval

    def __repr__(self):
        return f"Zero({self.aval.short()})"

    @staticmethod
    def from_primal_value(x):
        """The zero tangent of `x`."""
        from pullback.core.avals import tangent_aval, typeof

        return Zero(tangent_aval(typeof(x)))


# A node without leaves, as in JAX: rules of libraries run in `vmap` and `jit` hand their symbolic zeros through.
register_pytree_node(Zero, lambda zero: ((), zero.aval), lambda aval, _: Zero(aval))


class _ZeroRule:
    """The derivative vanishes wherever it exists (floor, sign, comparisons)."""

    def __repr__(self):
        return "ZERO"


ZERO = _ZeroRule()


class NoRule:
    """Stands where a rule is missing on purpose; `reason` completes the sentence '<name> has no <rule> rule: ...'."""

    def __init__(self, reason: str):
        self.reason = reason

    def __repr__(self):
        return f"NoRule({self.reason!r})"


class UndefinedPrimal:
    """Marks a linear argument in a transpose rule: no value, only `aval`."""

    __slots__ = ("aval",)

    def __init__(self, aval):
        self.aval = aval

    def __repr__(self):
        return f"UndefinedPrimal({self.aval.short()})"


register_pytree_node(UndefinedPrimal, lambda undefined: ((), undefined.aval), lambda aval, _: UndefinedPrimal(aval))


def is_undefined_primal(x) -> bool:
    """True for the linear arguments of a transpose rule."""
    return type(x) is UndefinedPrimal


not_mapped = None

_UNSET = NoRule("none was given")


class Primitive:
    """An operation that programs consist of, with its rules; the module's text has the fields and their signatures."""

    accepts: tuple[
        str, ...
    ] = ()  # of elementwise ones: the kinds of dtypes of each operand, as dtypes.kind_of has them
    scope: Callable = staticmethod(lambda params: contextlib.nullcontext())  # in which its programs have their types
    spelled_out: Callable | None = None  # of those that JAX has not: the same in JAX's, for interpreters of libraries
    takes_numbers = False  # whether an implementation and rules of a library's are to have Python's numbers as they are
    multiple_results = False  # whether results are a list; classes of libraries say so
    ref_primitive = False  # as libraries ask: reads and writes of references have rules of their own
    typecheck: Callable | None = None  # of calls, loops and branches
    call_primitive = False  # as libraries ask: calls are jit_p, whose jaxpr is a parameter

    def __init__(
        self,
        name: str,
        *,
        abstract_eval=_UNSET,
        reference=_UNSET,
        jvp=_UNSET,
        transpose=_UNSET,
        batch=_UNSET,
        lower=_UNSET,
        multiple_results: bool = False,
        traits: frozenset[str] | set[str] = frozenset(),
        samples=None,
        doc: str = "",
        evaluate: Callable | None = None,
        batch_axis: Callable | None = None,
        partial_eval: Callable | None = None,
        dce: Callable | None = None,
        saving: Callable | None = None,
        effects: Callable | None = None,
        collective_axes: Callable | None = None,
        discharge: Callable | None = None,
        outer: Callable | None = None,
        register: bool = True,
    ):
        self.name = name
        self.abstract_eval = abstract_eval
        self.reference = reference
        self.jvp = jvp
        self.transpose = transpose
        self.batch = batch
        self.lower = lower
        self.multiple_results = multiple_results or type(self).multiple_results
        self.traits = frozenset(traits)
        self.samples = samples
        self.doc = doc
        self.evaluate = evaluate
        self.batch_axis = batch_axis
        self.partial_eval = partial_eval
        self.dce = dce
        self.saving = saving
        self.effects = effects
        self.collective_axes = collective_axes
        self.discharge = discharge
        self.outer = outer
        self.partition: Callable | None = None  # partition/rules fill it
        self.applications: dict[Any, Any] = {}  # jaxprs of one equation each (transforms/remembered.py)
        if register:
            registry.setdefault(name, self)
        self._take_methods()
        self._remember_calls()

    def _remember_calls(self) -> None:
        """Evaluation on concrete arrays remembers plans: repeated calls do not leave C."""
        if self.evaluate is not None or isinstance(self.lower, Inline):
            return
        self.bind = _core.JitFunction(  # type: ignore[method-assign]
            self.process,
            self._miss,
            maxsize=1024,
            warmup=2,
            static_keywords=True,
            known=self.applications,
            find=self._find,
        )
        self.run = _core.JitFunction(  # type: ignore[method-assign]
            self.run, self._miss_run, maxsize=1024, warmup=2, static_keywords=True, while_tracing=True
        )

    def _take_methods(self) -> None:
        """Make rules of what a library's class of primitives has as methods: `impl(*arrays, **params)`, and
        `abstract_eval(*avals, **params)`, which gives types and effects."""
        cls = type(self)
        if cls.impl is not Primitive.impl:
            self.evaluate = self.impl
            self.takes_numbers = True
        types = getattr(cls, "abstract_eval", None)
        if types is not None:
            self.def_effectful_abstract_eval(lambda *avals, **params: types(self, *avals, **params))

    def bind(self, *args: Any, **params: Any):
        """Run under the current interpreter; arrays are positional, everything static is a keyword."""
        interpreter = current_interpreter()
        if self.discharge is not None:
            holds_values, uses_references = _programs_hold(params)
            if holds_values and self.outer is not None:
                args, params = self.outer(args, params)
            if not interpreter.stages_references:
                for arg in args:
                    if isinstance(arg, Reference):
                        uses_references = True
                if uses_references:
                    return self.discharge(*args, **params)
        return self.process(*args, **params)

    def process(self, *args: Any, **params: Any):
        """`bind` in Python, for calls that no plan is remembered for."""
        return current_interpreter().process(self, args, params)

    def bind_with_trace(self, trace: Any, args: Any, *rest: Any) -> Any:
        """`bind` under a given interpreter; the last argument has the parameters, before it may stand the types."""
        with using(trace):
            return trace.process(self, tuple(args), rest[-1])

    def run(self, *args: Any, **params: Any):
        """The value on concrete arrays, whatever the current interpreter."""
        return hooks.evaluate(self, args, params)

    def _miss_run(self, args: tuple, params: dict[str, Any]) -> tuple[Any, Any]:
        return hooks.evaluate(self, args, params), hooks.remember(self, args, params, "run")

    def _miss(self, args: tuple, params: dict[str, Any]) -> tuple[Any, Any]:
        return self.process(*args, **params), hooks.remember(self, args, params, "bind")

    def _find(self, key: tuple, args: tuple, params: dict[str, Any]) -> tuple[Any, Any] | None:
        return hooks.application(self, key, args, params)

    def rule(self, field: str) -> Callable:
        """The rule in `field`, or NotImplementedError with the reason for which there is none."""
        rule = getattr(self, field)
        if isinstance(rule, NoRule):
            raise NotImplementedError(
                f"{_RULE_NAMES.get(field, field)} of primitive '{self.name}' is not there: {rule.reason}"
            )
        return rule

    def has_rule(self, field: str) -> bool:
        """True unless the field is a NoRule."""
        return not isinstance(getattr(self, field), NoRule)

    # The names under which third-party libraries define primitives.
    def def_impl(self, impl):
        """Set how to run on concrete arrays: impl(*arrays, **params)."""
        self.evaluate = impl
        self.takes_numbers = True
        self.__dict__.pop("bind", None)
        self.__dict__.pop("run", None)
        return impl

    @property
    def impl(self) -> Callable:
        """How it runs on concrete arrays: impl(*arrays, **params). NotImplementedError for one that nobody has said it
        of.
        """
        if self.evaluate is not None:
            return self.evaluate
        self.rule("lower")
        return self.run

    @impl.setter
    def impl(self, impl: Callable) -> None:
        self.def_impl(impl)

    def get_bind_params(self, params: dict) -> dict:
        """The parameters of an equation as keyword arguments of `bind`."""
        return dict(params)

    def def_abstract_eval(self, rule):
        """Set the rule of types: rule(*avals, **params) -> aval, or a list of avals."""
        self.abstract_eval = rule
        return rule

    def def_effectful_abstract_eval(self, rule):
        """Set the rule of types and effects: rule(*avals, **params) -> (aval or list of avals, set of effects).

        An equation has the effects that the rule gave last: it is asked right before an equation is recorded.
        """
        found: frozenset = frozenset()

        def types(*avals, **params):
            nonlocal found
            out, effects = rule(*avals, **params)
            found = frozenset(effects)
            return out

        self.abstract_eval = types
        self.effects = lambda _params: found
        return rule

    def __repr__(self):
        return self.name

    def __copy__(self):
        """Another primitive with the same rules, which may get another name (as pennylane does it)."""
        copied = object.__new__(type(self))
        copied.__dict__ |= {k: v for k, v in self.__dict__.items() if k not in ("bind", "run")} | {"applications": {}}
        copied._remember_calls()
        return copied

    def __deepcopy__(self, memo):
        return self if memo else self.__copy__()  # inside of a program that is copied it stays what it is

    def __reduce__(self):
        return _by_name, (self.name,)


def _programs_hold(params: dict[str, Any]) -> tuple[bool, bool]:
    """Whether programs among the parameters close over values of a trace or references, and whether they use such."""
    values = references = False
    for param in params.values():
        if isinstance(param, Program):
            if param.consts and any([isinstance(c, (Tracer, Reference)) for c in param.consts]):  # type: ignore[attr-defined]
                values = True
            if has_references(param):
                references = True
        elif type(param) is tuple and param and isinstance(param[0], Program):
            of_each = [_programs_hold({"": program}) for program in param]
            values = values or any([held for held, _ in of_each])
            references = references or any([used for _, used in of_each])
    return values, references


_RULE_NAMES = {
    "jvp": "Differentiation rule",
    "transpose": "Transpose (reverse-mode) rule",
    "batch": "Batching (vmap) rule",
    "lower": "Compilation rule",
    "reference": "Reference evaluation",
    "abstract_eval": "Shape rule",
}

late: list[str] = []  # modules that are imported when they are first used, and have primitives


class _Registry(dict[str, Primitive]):
    """Primitives by name; one that is not there yet is looked for in the modules that are imported late."""

    def __missing__(self, name: str) -> Primitive:
        if not late:
            raise KeyError(name)
        load_late()
        return self[name]


registry = _Registry()


def by_name(name: str) -> Primitive:
    """The primitive of this name; KeyError if there is none."""
    return registry[name]


def _by_name(name: str) -> Primitive:
    return by_name(name)  # what files of exported programs call it


def load_late() -> None:
    """Import the modules that have primitives and were not used yet."""
    while late:
        importlib.import_module(late.pop())
