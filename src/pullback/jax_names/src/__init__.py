"""Private modules of JAX that published libraries import nevertheless; only the names that they need.

They are attributes of `jax._src`, as in JAX, where `import jax` has loaded them all.
"""

import importlib
from types import ModuleType

# JAX's files of jax.lax, each of which has a part of its names.
LAX_FILES = ("ann", "control_flow", "convolution", "fft", "lax", "linalg", "other", "parallel", "slicing", "special",
             "windowed_reductions")  # fmt: skip

# Modules that are public ones here, or parts of them. Files of this folder say in their heads who needs their names.
ELSEWHERE = {
    "ad_checkpoint": "pullback.ad_checkpoint",  # oryx
    "config": "pullback.util.config",  # chex, optax
    "custom_derivatives": "pullback.custom_derivatives",  # lineax, optimistix
    "interpreters": "pullback.interpreters",  # equinox, flax
    "interpreters.batching": "pullback.jax_names.src.batching",  # brainstate
    "lax": "pullback.jax_names.src.lax",  # numpyro, distrax
    **{f"lax.{name}": "pullback.lax" for name in LAX_FILES},
    "linear_util": "pullback.extend.linear_util",  # equinox, jaxopt
    "mesh": "pullback.sharding",  # flax, orbax: Mesh
    "nn": "pullback.nn",  # haiku
    "nn.functions": "pullback.nn",  # sbijax
    "numpy.fft": "pullback.numpy.fft",
    "numpy.index_tricks": "pullback.numpy._grids",  # quaxed: the classes of c_ and r_
    "numpy.lax_numpy": "pullback.numpy",
    "numpy.linalg": "pullback.numpy.linalg",
    "numpy.ufuncs": "pullback.numpy",  # esquilax: ufunc
    "random": "pullback.random",  # numpyro
    "random.threefry2x32": "pullback.jax_names.src.threefry",  # quax
    "scipy": "pullback.scipy",  # numpyro, jaxopt
    "source_info_util": "pullback.extend.source_info_util",  # equinox
    "stages": "pullback.stages",  # jaxadi
    "typing": "pullback.typing",  # jaxtyping
}


def __getattr__(name: str) -> ModuleType:
    target = ELSEWHERE.get(name, f"{__name__}.{name}")
    try:
        return importlib.import_module(target)
    except ModuleNotFoundError as error:
        if error.name != target:
            raise
    raise AttributeError(f"pullback stands in for jax, and has no module 'jax._src.{name}'")
