"""`import jax` gives pullback: for programs and libraries written for JAX, without a change.

    import pullback
    pullback.install_as_jax()
    import jax, jax.numpy as jnp, optax          # all of them use pullback

An import of `jax.X` imports `pullback.X` and gives that same module object under both names. A few names lie elsewhere
(table below). It works when real JAX is installed too, as long as it has not been imported.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Sequence
from typing import Any

from pullback._ext import _core
from pullback.core.staging import JitTracer
from pullback.core.tracer import Array, OfType
from pullback.jax_names import version
from pullback.jax_names.src import ELSEWHERE
from pullback.sharding._specs import PartitionSpec
from pullback.transforms.batching import BatchTracer
from pullback.transforms.jvp import JVPTracer
from pullback.util.config import config
from pullback.util.flags import read_environment

# Modules that have another place here, longest names first where one begins with another.
_MOVED = {
    **{f"jax._src.{name}": target for name, target in ELSEWHERE.items()},
    "jaxlib": "pullback.jax_names.jaxlib",
    "jaxlib.mlir": "pullback.extend.mlir",
    "jax._src": "pullback.jax_names.src",
    "jax.version": "pullback.jax_names.version",
    "jax": "pullback",
}


def _target(name: str) -> str | None:
    for prefix in sorted(_MOVED, key=len, reverse=True):
        if name == prefix or name.startswith(prefix + "."):
            return _MOVED[prefix] + name[len(prefix) :]
    return None


class _Loader(importlib.abc.Loader):
    """Gives an existing module under a second name, which `__name__` then is: by it SciPy, scikit-learn and others, all
    that go by the standard of array libraries, see that a namespace is JAX's. Its spec and loader stay its own."""

    def __init__(self, name: str, target: str) -> None:
        self.name, self.target = name, target

    def create_module(self, _spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        module = importlib.import_module(self.target)
        self.saved = module.__spec__, getattr(module, "__loader__", None)
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        module.__spec__, module.__loader__ = self.saved
        stands_for_it = self.target.startswith("pullback.jax_names.src.")
        if stands_for_it or self.target == self.name.replace("jax", "pullback", 1):  # the place it has in JAX, too
            module.__name__ = self.name
        if module is sys.modules.get("jax"):
            read_environment()
            for name in _LOADED_WITH_JAX:
                importlib.import_module(name)


class _Finder(importlib.abc.MetaPathFinder):
    """Answers for `jax`, `jaxlib` and what lies under them; raises ModuleNotFoundError for what pullback has not."""

    def find_spec(
        self, fullname: str, _path: Sequence[str] | None = None, _module: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        mapped = _target(fullname)
        if mapped is None:
            return None
        try:
            module = importlib.import_module(mapped)
        except ModuleNotFoundError as error:
            if error.name is None or not (mapped == error.name or mapped.startswith(error.name + ".")):
                raise  # something that the module itself needs is missing
            raise ModuleNotFoundError(
                f"No module named {fullname!r}: pullback stands in for jax, and has no module {mapped!r}", name=fullname
            ) from None
        loader = _Loader(fullname, mapped)
        spec = importlib.machinery.ModuleSpec(fullname, loader, is_package=hasattr(module, "__path__"))
        spec.origin = getattr(module, "__file__", None)
        return spec


class _ConfigModule(types.ModuleType):
    """The module `jax.config` of older versions, beside the object `jax.config`: `from jax.config import config`."""

    config = config

    def __getattr__(self, name: str) -> object:
        return getattr(config, name)


# Spellings of older versions, found in many programs; real JAX of today has only the tree_util ones.
_OLD_TREE_NAMES = (
    "tree_all", "tree_flatten", "tree_leaves", "tree_map", "tree_reduce", "tree_structure", "tree_transpose",
    "tree_unflatten",
)  # fmt: skip

# What is loaded anyway: libraries look in sys.modules for what `import jax` has loaded.
_LOADED_WITH_JAX = (
    "jaxlib", "jax.core", "jax.dtypes", "jax.lax", "jax.numpy", "jax.numpy.fft", "jax.numpy.linalg", "jax.random",
    "jax.sharding", "jax.tree", "jax.tree_util", "jax.version",
)  # fmt: skip

# Classes that have other names there: sepes and tests of messages go by the type's name, pickles by the module's.
_CLASSES = (
    (Array, "jax", "Array"),
    (_core.Array, "jaxlib._jax", "ArrayImpl"),
    (PartitionSpec, "jax", "P"),
    (JitTracer, "jax._src.interpreters.partial_eval", "DynamicJaxprTracer"),
    (JVPTracer, "jax._src.interpreters.ad", "JVPTracer"),
    (BatchTracer, "jax._src.interpreters.batching", "BatchTracer"),
)

# Whose classes programs show: types of elements, and errors.
_SHOW_CLASSES = ("numpy", "dtypes", "errors")
_ELEMENT_TYPES = "pullback.util._element_types"

_finder: _Finder | None = None


def installed_as_jax() -> bool:
    """Whether `import jax` gives pullback in this process."""
    return _finder is not None


def install_as_jax() -> None:
    """From now on `import jax` and its submodules give pullback, in the whole process; a second call does nothing.

    `jax.__version__` is that of the JAX whose API this is. Raises RuntimeError if real JAX has been imported already.
    """
    global _finder
    if _finder is not None:
        return
    package = importlib.import_module("pullback")
    for name in ("jax", "jaxlib"):
        if name in sys.modules:
            found = getattr(sys.modules[name], "__file__", None)
            raise RuntimeError(
                f"install_as_jax: '{name}' has been imported already, from {found}. Call pullback.install_as_jax() "
                "before anything imports jax, or start the program with `python -m pullback run program.py`."
            )
    _finder = _Finder()
    sys.meta_path.insert(0, _finder)
    package.__version__ = version.__version__  # type: ignore[attr-defined]
    package.__version_info__ = version.__version_info__  # type: ignore[attr-defined]
    package.version = version  # type: ignore[attr-defined]
    tree_util = importlib.import_module("pullback.tree_util")
    for name in _OLD_TREE_NAMES:
        setattr(package, name, getattr(tree_util, name))
    for namespace in map(importlib.import_module, ("pullback.numpy", "pullback.lax")):
        for name in dir(namespace):  # libraries go through `vars(jnp)`, which is to have what is imported late, too
            getattr(namespace, name)
    sys.modules["jax.config"] = _ConfigModule("jax.config")
    importlib.import_module("pullback.random")  # has a class of arrays, too
    for cls in _subclasses(OfType):
        cls.__module__ = cls.__module__.replace("pullback", "jax", 1)
    for cls, module, name in _CLASSES:
        cls.__module__, cls.__name__, cls.__qualname__ = module, name, name
    for name in _SHOW_CLASSES:
        for cls in vars(importlib.import_module(f"pullback.{name}")).values():
            if isinstance(cls, type) and cls.__module__ in (f"pullback.{name}", _ELEMENT_TYPES):
                cls.__module__ = f"jax.{name}"


def _subclasses(cls: type[Any]) -> list[type[Any]]:
    """A class and those made of it: whose an array is, autoray and pennylane tell by the module of its class."""
    return [cls, *(made for child in cls.__subclasses__() for made in _subclasses(child))]
