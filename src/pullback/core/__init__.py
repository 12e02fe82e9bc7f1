"""Tracing: avals, primitives, the current interpreter, tracers, jaxprs. Read in this order:

avals, primitive, interpreter, tracer, jaxpr, staging, evaluate, check, print, hooks.
"""

from pullback.core.array_types import pytype_aval_mappings
from pullback.core.avals import (
    AbstractToken,
    AbstractValue,
    ShapedArray,
    abstract_token,
    is_array_like,
    tangent_aval,
    typeof,
)
from pullback.core.avals import typeof as get_aval
from pullback.core.check import JaxprTypeError, check_jaxpr
from pullback.core.hooks import hooks, install_methods, install_operators
from pullback.core.interpreter import (
    Interpreter,
    axis_env,
    axis_size,
    current_interpreter,
    eval_interpreter,
    extend_axis_env,
    set_eval_interpreter,
    using,
)
from pullback.core.interpreter import Interpreter as Trace
from pullback.core.jaxpr import (
    Atom,
    ClosedJaxpr,
    DebugInfo,
    DropVar,
    Jaxpr,
    JaxprEqn,
    Literal,
    Var,
    eval_jaxpr,
    jaxpr_as_fun,
    jaxprs_in_params,
    new_jaxpr_eqn,
    subjaxprs,
)
from pullback.core.jaxpr import (
    JaxprEqnContext as JaxprEqnContext,
)
from pullback.core.primitive import (
    ZERO,
    NoRule,
    Primitive,
    UndefinedPrimal,
    Zero,
    is_undefined_primal,
    not_mapped,
    registry,
)
from pullback.core.staging import EvalInterpreter, JitTracer, StagingInterpreter, hoist_tracers, raise_leak, trace
from pullback.core.tracer import Array, Tracer, add_array_type
from pullback.manual import add_pages as _add_pages
from pullback.manual.core import PAGES as _PAGES

__all__ = [name for name in dir() if not name.startswith("_")]
_add_pages(globals(), _PAGES)

set_eval_interpreter(EvalInterpreter())
