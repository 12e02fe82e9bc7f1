"""Types of the functions that tables make: `python -m tools.stubs` writes the files *.pyi that type checkers read.

Names, parameters and their order are those of the running package; what is returned is an Array but for the functions
that are listed here. tests/api/test_types.py compares the files with the package.
"""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).parents[1] / "src" / "pullback"
MODULES = (
    *("numpy", "numpy.fft", "numpy.linalg", "lax", "lax.linalg", "nn", "random", "image", "ops"),
    *(f"scipy.stats.{path.stem}" for path in sorted((SOURCE / "scipy/stats").glob("[a-z]*.py"))),
    *("scipy.fft", "scipy.interpolate", "scipy.linalg", "scipy.ndimage", "scipy.signal", "scipy.special"),
)
HEAD = """# ruff: noqa
# Written by `python -m tools.stubs`: what functions take is in their docstrings.
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, TypeVar, overload

from pullback.core.tracer import Array

T = TypeVar("T")

"""
# What functions say themselves that they return, as a stub can repeat it.
PLAIN = (
    *("Array", "int", "bool", "str", "None", "tuple[int, ...]", "tuple[Array, ...]", "list[Array]"),
    *("tuple[Array, Array]", "list[tuple[int, int]]", "tuple[tuple[int, ...], ...]"),
)
KINDS = {  # of functions of numpy that do not return an Array, or of which calls below find out nothing
    "Any": "unique_counts unique_inverse result_type promote_types load save savez get_printoptions printoptions "
    "set_printoptions",
    "tuple[Array, Array]": "divmod frexp modf histogram polydiv",
    "tuple[Array, Array, Array]": "histogram2d",
    "tuple[Array, list[Array]]": "histogramdd",
    "tuple[int, ...]": "broadcast_shapes shape",
    "int": "ndim size",
    "bool": "isscalar issubdtype iscomplexobj isrealobj can_cast iterable isdtype",
    "str": "array_repr array_str",
    "list[Array]": "split array_split hsplit vsplit dsplit meshgrid broadcast_arrays",
    "tuple[Array, ...]": "nonzero unravel_index ix_ mask_indices diag_indices diag_indices_from tril_indices "
    "tril_indices_from triu_indices triu_indices_from unstack",
    "Array": "astype fill_diagonal isclose permute_dims place put put_along_axis ravel_multi_index reshape select "
    "unpackbits fromfunction",
}
RETURNS = {
    where: {name: kind for kind, names in kinds.items() for name in names.split()}
    for where, kinds in {
        "numpy": KINDS,
        "numpy.linalg": {
            "EigResult": "eig", "EighResult": "eigh", "SlogdetResult": "slogdet",
            "tuple[Array, Array, Array, Array]": "lstsq",
        },
        "nn": {"Array": "dot_product_attention glu scaled_dot_general scaled_matmul"},
        "random": {"Array": "randint triangular wrap_key_data"},
        "lax": {
            "Array": "betainc igamma igammac igamma_grad_a polygamma zeta complex conj real imag bitcast_convert_type "
            "convert_element_type reduce_precision reduce_and reduce_max reduce_min reduce_or reduce_prod reduce_xor "
            "scatter scatter_add scatter_max scatter_min scatter_mul scatter_sub select select_n random_gamma_grad "
            "rng_uniform",
        },
        "lax.linalg": {
            "Array": "cholesky cholesky_update symmetric_product triangular_solve tridiagonal_solve "
            "householder_product",
        },
        "image": {"Array": "resize scale_and_translate"},
        "ops": {"Array": "segment_sum segment_prod segment_max segment_min"},
        "scipy.linalg": {
            "Array": "block_diag cho_solve cholesky det expm funm hilbert inv lu_solve solve solve_triangular sqrtm "
            "solve_sylvester toeplitz",
            "tuple[Array, Array]": "lu_factor",
            "tuple[Array, bool]": "cho_factor",
        },
        "scipy.ndimage": {"Array": "map_coordinates"},
        "scipy.signal": {"Array": "convolve convolve2d correlate correlate2d detrend fftconvolve"},
    }.items()
}  # fmt: skip
# Functions of lax that give what they are given.
SAME = frozenset((
    *("stop_gradient", "optimization_barrier", "with_sharding_constraint", "psum", "pmean", "pmax", "pmin"),
    *("ppermute", "pshuffle", "pbroadcast", "pcast"),
))  # fmt: skip
OVERLOADS: dict[str, dict[str, str]] = {}  # written by hand
OVERLOADS["lax"] = {
    "cond": """def cond(
    pred: Any, true_fun: Callable[..., T], false_fun: Callable[..., T], *operands: Any, operand: Any = ...
) -> T: ...""",
    "switch": """def switch(
    index: Any, branches: Sequence[Callable[..., T]], *operands: Any, operand: Any = ...
) -> T: ...""",
    "map": "def map(f: Callable[[Any], T], xs: Any, *, batch_size: int | None = ...) -> T: ...",
    "associative_scan": """def associative_scan(
    fn: Callable[[Any, Any], Any], elems: T, reverse: bool = ..., axis: int = ...
) -> T: ...""",
}
OVERLOADS["numpy.linalg"] = {
    "svd": """@overload
def svd(
    a: Any, full_matrices: bool = ..., compute_uv: Literal[True] = ..., hermitian: bool = ...,
    subset_by_index: Any = ...,
) -> SVDResult: ...
@overload
def svd(
    a: Any, full_matrices: bool = ..., *, compute_uv: Literal[False], hermitian: bool = ...,
    subset_by_index: Any = ...,
) -> Array: ...
@overload
def svd(
    a: Any, full_matrices: bool = ..., compute_uv: bool = ..., hermitian: bool = ..., subset_by_index: Any = ...
) -> Any: ...""",
    "qr": """@overload
def qr(a: Any, mode: Literal["reduced", "complete", "full"] = ...) -> QRResult: ...
@overload
def qr(a: Any, mode: Literal["r"]) -> Array: ...
@overload
def qr(a: Any, mode: str) -> Any: ...""",
}
RETURNS["numpy.linalg"] = {
    "eig": "EigResult", "eigh": "EighResult", "slogdet": "SlogdetResult", "lstsq": "tuple[Array, Array, Array, Array]",
}  # fmt: skip
OVERLOADS["numpy"] = {
    "where": """@overload
def where(
    condition: Any, x: None = ..., y: None = ..., /, *, size: Any = ..., fill_value: Any = ...
) -> tuple[Array, ...]: ...
@overload
def where(condition: Any, x: Any, y: Any, /, *, size: Any = ..., fill_value: Any = ...) -> Array: ...""",
}


def names_of(module: Any) -> list[str]:
    """The names that users see of a module, with the named tuples that its functions return, which it may not list."""
    names = set(dir(module)) | {name for name, value in vars(module).items() if hasattr(value, "_fields")}
    return sorted(name for name in names if not name.startswith("_") and is_own(name, getattr(module, name)))


def is_own(name: str, value: Any) -> bool:
    """Whether a name is not merely what the module is written with."""
    if inspect.ismodule(value):
        return value.__name__.startswith("pullback.")
    where = getattr(value, "__module__", "") or ""
    return name not in ("absent_names", "annotations") and not where.startswith(("typing", "collections", "functools"))


def entry(where: str, name: str, value: Any) -> str:
    """The line or lines of one name."""
    if isinstance(value, bool) or value is None:
        return f"{name}: {type(value).__name__ if value is not None else 'None'}"
    if isinstance(value, (int, float)):
        return f"{name}: {type(value).__name__}"
    if where == "lax" and inspect.isclass(value) and value.__module__.startswith("pullback."):
        return f"from {value.__module__} import {name} as {name}"
    if where == "numpy.linalg" and inspect.isclass(value) and hasattr(value, "_fields"):
        return "\n    ".join([f"class {name}(NamedTuple):", *(f"{field}: Array" for field in value._fields)])
    if inspect.ismodule(value) or inspect.isclass(value) or not callable(value):
        return f"{name}: Any"
    if name in OVERLOADS.get(where, ()):
        return OVERLOADS[where][name]
    try:
        parameters = list(inspect.signature(value).parameters.values())
    except (TypeError, ValueError):
        parameters, said = [], "Any"
        given = ["*args: Any", "**kwargs: Any"]
    else:
        said, given = str(inspect.signature(value).return_annotation), written(parameters)
    if where == "lax" and re.search(r"\b[CTY]\b", said):  # what it is given decides: its own types say how
        return f"from {value.__module__} import {name} as {name}"
    returns = RETURNS.get(where, {}).get(name) or (said if said in PLAIN else None)
    if where == "lax" and name in SAME:
        given[0], returns = given[0].replace(": Any", ": T"), "T"
    returns = returns or ("Array" if where.startswith("scipy.stats.") or gives_arrays(value) else "Any")
    return f"def {name}({', '.join(given)}) -> {returns}: ..."


def written(parameters: list[inspect.Parameter]) -> list[str]:
    """Parameters as a stub has them."""
    found: list[str] = []
    for k, p in enumerate(parameters):
        after = parameters[k + 1] if k + 1 < len(parameters) else None
        if p.kind is p.KEYWORD_ONLY and not any(q.kind in (q.KEYWORD_ONLY, q.VAR_POSITIONAL) for q in parameters[:k]):
            found.append("*")
        star = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        found.append(f"{star}{p.name}: Any" + (" = ..." if p.default is not p.empty else ""))
        if p.kind is p.POSITIONAL_ONLY and (after is None or after.kind is not after.POSITIONAL_ONLY):
            found.append("/")
    return found


def gives_arrays(function: Any) -> bool:
    """Whether calls on small arrays give an array, each that works."""
    import pullback.numpy as jnp
    from pullback import random
    from pullback.core import Array

    x, v, key = jnp.eye(3) + 0.5, jnp.ones(3), random.key(0)
    i, key3, yes = jnp.arange(3), (key, 3), x > 0
    tried: list[tuple[Any, ...]] = [
        *((x,), (v,), (x, x), (v, v), (x, 1), (x, x, x), (v, v, v), (3,), (3, 1.0), (x, 0, 1), ([x, x],), (yes,), (i,)),
        *((i, i), (yes, x, x), ("ij,jk", x, x), (key,), (key, x), (key, v), key3, (key, 0.5), (key, (3,)), (key, v, x)),
        *((key, 5, 0.5), (key, 2, (3,)), (key, 1.0, 1.0), (0, 3), ((3,), 1.0)),
    ]
    results = []
    for arguments in tried:
        try:
            results.append(function(*arguments))
        except Exception:
            continue
    return bool(results) and all(isinstance(r, Array) for r in results)


def stub(where: str) -> str:
    """The text of a module's stub."""
    module = importlib.import_module(f"pullback.{where}")
    lines, classes = [], []
    for name in names_of(module):
        value = getattr(module, name)
        if value is importlib.import_module("pullback.core").Array:
            classes.append(f"{name} = Array")
        elif inspect.ismodule(value) and value.__name__.startswith("pullback."):
            classes.append(f"from pullback import {name} as {name}" if value.__name__ == f"pullback.{name}" else
                           f"from {value.__name__.rpartition('.')[0]} import {name} as {name}")  # fmt: skip
        else:
            lines.append(entry(where, name, value))
    return HEAD + "\n".join([*classes, *lines, "", "def __getattr__(name: str) -> Any: ...", ""])


def path_of(where: str) -> Path:
    """Where a module's stub lies."""
    base = SOURCE / where.replace(".", "/")
    return base / "__init__.pyi" if base.is_dir() else base.with_suffix(".pyi")


if __name__ == "__main__":
    for module_name in MODULES:
        path_of(module_name).write_text(stub(module_name))
