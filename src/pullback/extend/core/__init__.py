"""Jaxprs, primitives, and the trace in force."""

from pullback.core import (
    AbstractToken,
    ClosedJaxpr,
    DebugInfo,
    DropVar,
    Jaxpr,
    JaxprEqn,
    JaxprTypeError,
    Literal,
    Primitive,
    Var,
    check_jaxpr,
    jaxpr_as_fun,
    jaxprs_in_params,
    new_jaxpr_eqn,
    subjaxprs,
)
from pullback.core.explain import explain_all as _explain_all
from pullback.extend.core import primitives
from pullback.extend.core._old_names import *
from pullback.extend.core._tracing import (
    concrete_or_error,
    find_top_trace,
    get_opaque_trace_state,
    mapped_aval,
    no_effects,
    nonempty_axis_env_DO_NOT_USE,
    primal_dtype_to_tangent_dtype,
    set_current_trace,
    take_current_trace,
    unmapped_aval,
    unsafe_am_i_under_a_jit_DO_NOT_USE,
    unsafe_am_i_under_a_vmap_DO_NOT_USE,
    unsafe_get_axis_names_DO_NOT_USE,
    valid_jaxtype,
)
from pullback.lax.control.callback import Effect
from pullback.manual import add_pages as _add_pages
from pullback.manual.extend.core import PAGES as _PAGES
from pullback.util.absent import absent_names

__all__ = [
    "AbstractToken", "ClosedJaxpr", "DebugInfo", "DropVar", "Effect", "Jaxpr", "JaxprEqn", "JaxprTypeError", "Literal",
    "Primitive", "Var", "check_jaxpr", "concrete_or_error", "find_top_trace", "get_opaque_trace_state", "jaxpr_as_fun",
    "jaxprs_in_params", "mapped_aval", "new_jaxpr_eqn", "no_effects", "nonempty_axis_env_DO_NOT_USE",
    "primal_dtype_to_tangent_dtype", "primitives", "set_current_trace", "subjaxprs", "take_current_trace",
    "unmapped_aval", "unsafe_am_i_under_a_jit_DO_NOT_USE", "unsafe_am_i_under_a_vmap_DO_NOT_USE",
    "unsafe_get_axis_names_DO_NOT_USE", "valid_jaxtype",
]  # fmt: skip

_explain_all(globals())
_add_pages(globals(), _PAGES)
__getattr__ = absent_names(__name__)
