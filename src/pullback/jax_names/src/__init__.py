"""Private modules of JAX that published libraries import nevertheless; only the names that they need.

They are attributes of `jax._src`, as in JAX, where `import jax` has loaded them all. What is public in JAX is defined
in a private module, mostly of the same name: so a module here has the names of the public ones that go with it, too.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

# JAX's files of jax.lax, each of which has a part of its names.
LAX_FILES = ("ann", "control_flow", "convolution", "fft", "lax", "other", "parallel", "slicing", "special",
             "windowed_reductions")  # fmt: skip
CONTROL_FLOW_FILES = ("conditionals", "for_loop", "loops", "solves")
NUMPY_FILES = ("array_constructors", "array_creation", "einsum", "indexing", "lax_numpy", "polynomial", "reductions",
               "sorting", "tensor_contractions", "ufunc_api", "ufuncs", "window_functions")  # fmt: skip
INTERPRETERS = ("ad", "mlir", "partial_eval", "pxla", "xla")

# Modules that are public ones here, or parts of them. Files of this folder say in their heads who needs their names.
ELSEWHERE = {
    "clusters": "pullback.distributed.clusters",  # levanter, eformer
    "basearray": "pullback.typing",
    "buffer_callback": "pullback.experimental.buffer_callback",
    "callback": "pullback.lax.control.callback",
    "compute_on": "pullback.experimental.compute_on",
    "config": "pullback.util.config",  # chex, optax
    "custom_batching": "pullback.custom_batching",
    "custom_derivatives": "pullback.custom_derivatives",  # lineax, optimistix
    "custom_partitioning": "pullback.experimental.custom_partitioning",
    "custom_partitioning_sharding_rule": "pullback.experimental.custom_partitioning",
    "debugging": "pullback.debug",
    "dlpack": "pullback.dlpack",
    "errors": "pullback.errors",
    "export": "pullback.export",
    "export._export": "pullback.export",
    "export.shape_poly": "pullback.export",
    "extend": "pullback.extend",
    "extend.random": "pullback.extend.random",
    "ffi": "pullback.ffi",
    "hijax": "pullback.experimental.hijax",
    "image": "pullback.image",
    "image.scale": "pullback.jax_names.src.scale",
    **{f"interpreters.{name}": f"pullback.interpreters.{name}" for name in INTERPRETERS},  # equinox, flax
    "interpreters.mlir": "pullback.jax_names.src.mlir",
    "interpreters.batching": "pullback.jax_names.src.batching",  # brainstate, ott
    "lax": "pullback.jax_names.src.lax",  # numpyro, distrax
    **{f"lax.{name}": "pullback.lax" for name in LAX_FILES if name not in ("lax", "parallel")},
    **{f"lax.control_flow.{name}": "pullback.lax" for name in CONTROL_FLOW_FILES},
    "lax.control_flow.loops": "pullback.jax_names.src.loops",
    "lib.mlir": "pullback.extend.mlir",  # jaxdecomp
    "layout": "pullback.experimental.layout",
    "linear_util": "pullback.extend.linear_util",  # equinox, jaxopt
    "lax.linalg": "pullback.jax_names.src.linalg",
    "mesh_utils": "pullback.experimental.mesh_utils",
    "monitoring": "pullback.monitoring",
    "nn": "pullback.nn",  # haiku
    "nn.functions": "pullback.nn",  # sbijax
    "numpy.fft": "pullback.numpy.fft",
    "numpy.index_tricks": "pullback.numpy._grids",  # quaxed: the classes of c_ and r_
    **{f"numpy.{name}": "pullback.numpy" for name in NUMPY_FILES},  # esquilax: ufunc
    "numpy.linalg": "pullback.numpy.linalg",
    "ops": "pullback.ops",
    "profiler": "pullback.profiler",
    "random.prng": "pullback.jax_names.src.prng",
    "random.threefry2x32": "pullback.jax_names.src.threefry",  # quax
    "ref": "pullback.ref",
    "scipy": "pullback.scipy",  # numpyro, jaxopt
    "scipy.sparse.linalg": "pullback.jax_names.src.krylov",
    "shard_alike": "pullback.experimental.shard_alike",
    "shard_map": "pullback.experimental.shard_map",
    "stages": "pullback.stages",  # jaxadi
    "tree": "pullback.tree",
    "typing": "pullback.jax_names.src.types",
    "xla_metadata": "pullback.experimental.xla_metadata",
}


def names_of(module: str, *places: Any) -> Callable[[str], Any]:
    """The `__getattr__` of a module that has, beside its own names, those of other modules."""

    def __getattr__(name: str) -> Any:
        for place in places:
            if not name.startswith("__") and hasattr(place, name):
                return getattr(place, name)
        shown = module.replace("pullback.jax_names.src", "jax._src")
        text = f"module {shown!r} has no attribute {name!r} where pullback stands in for jax"
        raise AttributeError(text, name=name, obj=sys.modules[module])

    return __getattr__


def __getattr__(name: str) -> ModuleType:
    target = ELSEWHERE.get(name, f"{__name__}.{name}")
    try:
        return importlib.import_module(target)
    except ModuleNotFoundError as error:
        if error.name != target:
            raise
    raise AttributeError(f"pullback stands in for jax, and has no module 'jax._src.{name}'")
