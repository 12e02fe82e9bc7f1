"""Where a name is that a module has not: in another of our modules, or under another name than NumPy's or PyTorch's."""

from __future__ import annotations

import sys
from importlib.util import find_spec

# Modules in the order in which they are looked through for a name, and how users write them.
_SHOWN = {
    "pullback.numpy": "jax.numpy",
    "pullback.lax": "jax.lax",
    "pullback.nn": "jax.nn",
    "pullback.random": "jax.random",
    "pullback.numpy.linalg": "jax.numpy.linalg",
    "pullback.numpy.fft": "jax.numpy.fft",
    "pullback.scipy.special": "jax.scipy.special",
    "pullback": "jax",
}

# Names that are in libraries written for JAX.
_IN_LIBRARIES = {
    "Equinox and Flax":
        "Linear Conv1d Conv2d LayerNorm BatchNorm1d BatchNorm2d Dropout Embedding LSTM GRU Module Sequential",
    "Optax": "optim Adam SGD Optimizer lr_scheduler CrossEntropyLoss MSELoss cross_entropy mse_loss",
}  # fmt: skip
_LIBRARIES = {name: library for library, names in _IN_LIBRARIES.items() for name in names.split()}

# Functions of NumPy that read and write files.
_READERS = ("fromregex", "genfromtxt", "loadtxt", "memmap")
_WRITERS = ("savetxt", "savez_compressed")

# Packages some of whose modules are imported only when a program says so.
_PACKAGES = ("example_libraries", "experimental", "extend", "interpreters", "scipy")

# Names of other libraries for which there is another here. Some are in jax.lax, too, where they promote nothing.
OTHER_LIBRARIES = {
    # PyTorch
    "backward": "jax.grad",
    "bmm": "jax.numpy.matmul",
    "cat": "jax.numpy.concatenate",
    "clamp": "jax.numpy.clip",
    "compile": "jax.jit",
    "detach": "jax.lax.stop_gradient",
    "div": "jax.numpy.divide",
    "from_numpy": "jax.numpy.asarray",
    "index_select": "jax.numpy.take",
    "manual_seed": "jax.random.key",
    "masked_fill": "jax.numpy.where",
    "mm": "jax.numpy.matmul",
    "mul": "jax.numpy.multiply",
    "no_grad": "jax.lax.stop_gradient",
    "permute": "jax.numpy.transpose",
    "rand": "jax.random.uniform",
    "rand_like": "jax.random.uniform",
    "randn": "jax.random.normal",
    "randn_like": "jax.random.normal",
    "randperm": "jax.random.permutation",
    "sub": "jax.numpy.subtract",
    "tensor": "jax.numpy.array",
    "unsqueeze": "jax.numpy.expand_dims",
    "gelu": "jax.nn.gelu",
    "log_softmax": "jax.nn.log_softmax",
    "one_hot": "jax.nn.one_hot",
    "relu": "jax.nn.relu",
    "sigmoid": "jax.nn.sigmoid",
    "softmax": "jax.nn.softmax",
    # NumPy and autograd
    "alltrue": "jax.numpy.all",
    "asfarray": "jax.numpy.asarray",
    "cumproduct": "jax.numpy.cumprod",
    "default_rng": "jax.random.key",
    "elementwise_grad": "jax.vmap",
    "in1d": "jax.numpy.isin",
    "msort": "jax.numpy.sort",
    "product": "jax.numpy.prod",
    "row_stack": "jax.numpy.vstack",
    "seed": "jax.random.key",
    "sometrue": "jax.numpy.any",
    "trapz": "jax.numpy.trapezoid",
    # numba
    "njit": "jax.jit",
    "prange": "jax.vmap",
}


def found_elsewhere(module: str, name: str) -> str:
    """What to write instead of the name that the module has not, or ''; only modules that are loaded are looked at."""
    if name.startswith("_"):
        return ""
    if name in OTHER_LIBRARIES:
        return OTHER_LIBRARIES[name]
    for place, shown in _SHOWN.items():
        loaded = sys.modules.get(place)
        if place != module and loaded is not None and name in loaded.__dict__.get("__all__", ()):
            return f"{shown}.{name}"
    return "jax.random" if name == "random" else ""


def advice(module: str, name: str) -> str:
    """What the error for a name that the module has not says behind a semicolon, or ''."""
    if instead := found_elsewhere(module, name):
        return f"it is {instead} here"
    if name in _LIBRARIES:
        return f"libraries written for JAX have it, such as {_LIBRARIES[name]}"
    if module == "pullback.numpy" and name in _READERS:
        return f"write jax.numpy.asarray(numpy.{name}(...)), outside of jit"
    if module == "pullback.numpy" and name in _WRITERS:
        return f"write numpy.{name}(file, x), outside of jit"
    place = module.removeprefix("pullback.")
    if place in _PACKAGES and not name.startswith("_") and find_spec(f"{module}.{name}") is not None:
        return f"it is a module: write import jax.{place}.{name}"
    return ""


__all__ = ["OTHER_LIBRARIES", "advice", "found_elsewhere"]
