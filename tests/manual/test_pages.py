"""The pages of `help()`: each belongs to a public function, says all parameters, and its example runs."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
import re

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import manual
from pullback.manual.scipy.distributions import DISTRIBUTIONS

# Packages of which every public function and class has a page.
COMPLETE: tuple[str, ...] = (
    "pullback",
    "pullback.ad_checkpoint",
    "pullback.custom_batching",
    "pullback.custom_derivatives",
    "pullback.debug",
    "pullback.distributed",
    "pullback.dlpack",
    "pullback.dtypes",
    "pullback.example_libraries.optimizers",
    "pullback.example_libraries.stax",
    "pullback.experimental.checkify",
    "pullback.experimental.jet",
    "pullback.experimental.layout",
    "pullback.experimental.mesh_utils",
    "pullback.experimental.multihost_utils",
    "pullback.experimental.ode",
    "pullback.experimental.serialize_executable",
    "pullback.experimental.shard_map",
    "pullback.experimental.sparse",
    "pullback.experimental.sparse.linalg",
    "pullback.export",
    "pullback.ffi",
    "pullback.flatten_util",
    "pullback.image",
    "pullback.lax",
    "pullback.lax.linalg",
    "pullback.monitoring",
    "pullback.nn",
    "pullback.nn.initializers",
    "pullback.numpy",
    "pullback.numpy.fft",
    "pullback.numpy.linalg",
    "pullback.ops",
    "pullback.profiler",
    "pullback.random",
    "pullback.ref",
    "pullback.scipy.cluster.vq",
    "pullback.scipy.fft",
    "pullback.scipy.integrate",
    "pullback.scipy.interpolate",
    "pullback.scipy.linalg",
    "pullback.scipy.ndimage",
    "pullback.scipy.optimize",
    "pullback.scipy.signal",
    "pullback.scipy.sparse.linalg",
    "pullback.scipy.spatial.transform",
    "pullback.scipy.special",
    "pullback.scipy.stats",
    "pullback.sharding",
    "pullback.stages",
    "pullback.tree",
    "pullback.tree_util",
)

# Public modules without pages: what libraries and extensions import, names for errors and types, and smaller things of
# jax.experimental, whose docstrings are all there is.
WITHOUT: tuple[str, ...] = (
    "api_util", "core", "errors", "experimental", "extend", "interpreters", "lib", "memory", "test_util", "typing",
    "version",
)  # fmt: skip
# Programs, and packages that are no part of the API.
INTERNAL: tuple[str, ...] = (
    "api", "compiler", "core", "doctor", "explain", "jax_names", "loops", "manual", "partition", "reports", "runtime",
    "transforms", "tune", "util",
)  # fmt: skip

SECTIONS = ("Arguments:", "Returns:", "Raises:", "Unlike ", ">>>")


def packages() -> dict[str, dict[str, str]]:
    """The pages of each package, by the package's name."""
    found = {}
    for info in pkgutil.walk_packages(manual.__path__, "pullback.manual."):
        pages = getattr(importlib.import_module(info.name), "PAGES", None)
        name = info.name.replace(".manual.", ".").replace("pullback.pullback", "pullback")
        if pages is None:
            continue
        pages, whole = manual.by_name(pages), found.get(name.rpartition(".")[0], {})
        if not set(pages) <= set(whole):  # else they are a part of those of its package
            found[name] = pages
    return found


PACKAGES = packages() | {f"pullback.scipy.stats.{name}": manual.by_name(pages) for name, pages in DISTRIBUTIONS.items()}
PAGES = [(package, name) for package, pages in PACKAGES.items() for name in pages]


def public_functions(package: str) -> list[str]:
    """Names of a package's public functions: classes and constants have no pages."""
    module = importlib.import_module(package)
    names = {*(getattr(module, "__all__", None) or dir(module)), *getattr(module, "_ELSEWHERE", ())}  # loaded late
    functions = [n for n in names if not n.startswith("_") and callable(getattr(module, n))]
    return [
        n
        for n in functions
        if not inspect.isclass(getattr(module, n)) and getattr(module, n).__module__.startswith("pullback")
    ]


def parameters(function: object) -> list[str]:
    try:
        return [p.name for p in inspect.signature(function).parameters.values()]
    except (TypeError, ValueError):
        return []


@pytest.mark.parametrize("package, name", PAGES)
def test_page(package, name):
    function = getattr(importlib.import_module(package), name)
    page = PACKAGES[package][name]
    assert function.__doc__.endswith(manual.completed(page)), "the page is not in the docstring"
    said = {
        each.strip("* ") for line in re.findall(r"^    ([\w*, ]+): \S", page, re.MULTILINE) for each in line.split(",")
    }
    heads = re.findall(r"^(\S.*)$", page, re.MULTILINE)
    if not inspect.isclass(function) or "Arguments:" in heads:  # objects of some classes are made by functions
        assert not set(parameters(function)) - said, "parameters without a line `    name: what`"
    assert "Returns:" in heads or inspect.isclass(function)
    assert all(len(line) <= 120 for line in page.splitlines())
    test = doctest.DocTestParser().get_doctest(
        page, {"jax": jax, "jnp": jnp, "lax": jax.lax, "np": np}, f"{package}.{name}", None, 0
    )
    assert test.examples, "no example"
    said = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE, verbose=False)
    runner.run(test, out=said.append)
    assert not runner.failures, "".join(said)


def public_classes(package: str) -> list[str]:
    """Names of a package's public classes, but for errors, marks of side effects, and what is NumPy's."""
    module = importlib.import_module(package)
    names = {*(getattr(module, "__all__", None) or dir(module)), *getattr(module, "_ELSEWHERE", ())}  # loaded late
    found = {n: getattr(module, n) for n in names if not n.startswith("_") and inspect.isclass(getattr(module, n))}
    plain = (BaseException, jax.core.Effect)
    return [n for n, c in found.items() if c.__module__.startswith("pullback") and not issubclass(c, plain)]


def test_every_public_module_is_looked_at():
    """Either all its functions have pages, or it stands among those that have none."""
    found = [info.name.split(".")[1:] for info in pkgutil.iter_modules(jax.__path__, "pullback.")]
    found += [info.name.split(".")[1:] for info in pkgutil.walk_packages(jax.scipy.__path__, "pullback.scipy.")]
    public = {".".join(["pullback", *p]) for p in found if not any(part.startswith("_") for part in p)}
    others = {f"pullback.{name}" for name in (*WITHOUT, *INTERNAL, "example_libraries", "include", "scipy")}
    others |= {f"pullback.scipy.{name}" for name in ("cluster", "sparse", "spatial")}
    distributions = {name for name in public if name.rpartition(".")[0] == "pullback.scipy.stats"}
    assert public - set(COMPLETE) - others - distributions == set()


@pytest.mark.parametrize("package", COMPLETE)
def test_every_function_has_a_page(package):
    module = importlib.import_module(package)
    short = {}
    for name in public_functions(package):
        doc = getattr(module, name).__doc__ or ""
        wanted = ["\nReturns:\n", "\n>>> "]
        wanted += ["\nArguments:\n", "\nRaises:\n"] if parameters(getattr(module, name)) else []
        if missing := [head.strip() for head in wanted if head not in doc]:
            short[name] = missing
    assert not short


@pytest.mark.parametrize("package", [*COMPLETE, "pullback.extend.random", "pullback.interpreters.ad"])
def test_every_class_has_an_example(package):
    module = importlib.import_module(package)
    assert [n for n in public_classes(package) if "\n>>> " not in (getattr(module, n).__doc__ or "")] == []


REFUSING = [(p, n) for p, n in PAGES if manual.RAISES in manual.completed(PACKAGES[p][n])]


@pytest.mark.parametrize("package, name", REFUSING)
def test_arguments_that_are_wrong_are_refused(package, name):
    """What pages say of errors unless they say more."""
    function = getattr(importlib.import_module(package), name)
    needed = [p for p in inspect.signature(function).parameters.values() if p.default is p.empty and p.kind < 2]
    with pytest.raises((TypeError, ValueError)):
        function(*[object() for _ in needed] or [object()])


def test_every_function_of_a_distribution_has_a_page():
    import pullback.scipy.stats as stats

    modules = {name: module for name, module in vars(stats).items() if inspect.ismodule(module) and name[0] != "_"}
    assert set(modules) == set(DISTRIBUTIONS)
    for name, module in modules.items():
        home = module.__spec__.name
        own = {n for n, f in vars(module).items() if getattr(f, "__module__", "") == home and n[0] != "_"}
        assert own == set(manual.by_name(DISTRIBUTIONS[name])), name


def test_what_stands_before_a_page_is_not_indented():
    assert "\n\nElements are read" in jnp.reshape.__doc__
