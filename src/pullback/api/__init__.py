"""The transformations, as users call them; each file checks its arguments first, then uses `transforms`."""

from typing import Any as _Any

from pullback._ext import _core as _core
from pullback.api.checkpoint import checkpoint, checkpoint_name, checkpoint_policies, remat
from pullback.api.custom import custom_jvp, custom_vjp
from pullback.api.custom_gradient import closure_convert, custom_gradient
from pullback.api.grad import (
    fwd_and_bwd,
    grad,
    jvp,
    linear_transpose,
    linearize,
    value_and_grad,
    vjp,
)
from pullback.api.jacobians import hessian, jacfwd, jacobian, jacrev
from pullback.api.jit import jit
from pullback.api.shapes import ShapeDtypeStruct, eval_shape, make_jaxpr
from pullback.api.values import (
    block_until_ready,
    clear_caches,
    copy_to_host_async,
    device_get,
    device_put,
    effects_barrier,
    ensure_compile_time_eval,
    named_call,
    named_scope,
    typeof,
)
from pullback.api.vmap import vmap
from pullback.core import hooks
from pullback.core.explain import explain_all as _explain_all

__all__ = [
    "ShapeDtypeStruct",
    "block_until_ready",
    "checkpoint",
    "checkpoint_name",
    "checkpoint_policies",
    "clear_caches",
    "closure_convert",
    "copy_to_host_async",
    "custom_gradient",
    "custom_jvp",
    "custom_vjp",
    "device_get",
    "device_put",
    "effects_barrier",
    "fwd_and_bwd",
    "ensure_compile_time_eval",
    "eval_shape",
    "grad",
    "hessian",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jit",
    "jvp",
    "linear_transpose",
    "linearize",
    "make_jaxpr",
    "named_call",
    "named_scope",
    "remat",
    "value_and_grad",
    "vjp",
    "vmap",
]

# What runs the user's function says itself what is wrong, and these what they take.
_explain_all(globals(), {}, {}, skip={
    "block_until_ready", "copy_to_host_async", "device_get", "eval_shape", "jvp", "linearize", "typeof", "vjp",
})  # fmt: skip

hooks.fill(vmap=vmap)


def _assembled(*args: _Any, **kwargs: _Any) -> _Any:
    """What the class of arrays does when it is called, which few programs do."""
    from pullback.api.global_arrays import assembled

    return assembled(*args, **kwargs)


_core.set_hooks(assemble=_assembled)
