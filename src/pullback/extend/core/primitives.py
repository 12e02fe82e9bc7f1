"""All primitives as `<name>_p`, by JAX's names where those differ."""

from __future__ import annotations

from pullback import lax, random  # their import fills the registry  # noqa: F401
from pullback.core import NoRule, Primitive, registry
from pullback.core.primitive import load_late
from pullback.util.absent import absent_names

load_late()

# Where JAX has another variable for the same operation.
_OTHER_NAMES = {
    "add_jaxvals_p": "add_any", "linear_solve_p": "custom_linear_solve", "remat_p": "remat2",
    "scatter_add_p": "scatter-add", "scatter_max_p": "scatter-max", "scatter_min_p": "scatter-min",
    "scatter_mul_p": "scatter-mul", "random_gamma_p": "threefry_gamma",
}  # fmt: skip


def _absent(name: str, reason: str) -> Primitive:
    rule = NoRule(reason)
    return Primitive(
        name, abstract_eval=rule, reference=rule, jvp=rule, transpose=rule, batch=rule, lower=rule, register=False
    )


# Libraries have tables with entries for these; in our jaxprs they do not occur.
call_p = _absent("call", "calls are jit_p, whose jaxpr is a parameter")
closed_call_p = _absent("closed_call", "calls are jit_p, whose jaxpr is a parameter")


_not_here = absent_names(__name__)


def __getattr__(name: str) -> Primitive:
    found = _OTHER_NAMES.get(name, name[:-2] if name.endswith("_p") else "")
    if found in registry:
        return registry[found]
    try:
        return _not_here(name)
    except AttributeError:
        raise AttributeError(f"there is no primitive {name!r}") from None


def __dir__() -> list[str]:
    made = {"call_p", "closed_call_p", *_OTHER_NAMES}
    return sorted({f"{name}_p" for name in registry if name.isidentifier()} | made)
