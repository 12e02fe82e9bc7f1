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

# Packages of which every public function has a page.
COMPLETE: tuple[str, ...] = (
    "pullback",
    "pullback.debug",
    "pullback.experimental.sparse",
    "pullback.export",
    "pullback.image",
    "pullback.lax",
    "pullback.lax.linalg",
    "pullback.nn",
    "pullback.nn.initializers",
    "pullback.numpy",
    "pullback.numpy.fft",
    "pullback.numpy.linalg",
    "pullback.ops",
    "pullback.random",
    "pullback.scipy.cluster.vq",
    "pullback.scipy.fft",
    "pullback.scipy.integrate",
    "pullback.scipy.linalg",
    "pullback.scipy.ndimage",
    "pullback.scipy.optimize",
    "pullback.scipy.signal",
    "pullback.scipy.sparse.linalg",
    "pullback.scipy.special",
    "pullback.scipy.stats",
    "pullback.sharding",
    "pullback.tree",
    "pullback.tree_util",
)

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


PACKAGES = packages() | {
    f"pullback.scipy.stats.{name}": manual.by_name(pages) for name, pages in DISTRIBUTIONS.items()
}
PAGES = [(package, name) for package, pages in PACKAGES.items() for name in pages]


def public_functions(package: str) -> list[str]:
    """Names of a package's public functions: classes and constants have no pages."""
    module = importlib.import_module(package)
    names = getattr(module, "__all__", None) or dir(module)
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
    assert function.__doc__.endswith(page.strip() + "\n"), "the page is not in the docstring"
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


@pytest.mark.parametrize("package", COMPLETE)
def test_every_function_has_a_page(package):
    module = importlib.import_module(package)
    docs = {name: getattr(module, name).__doc__ or "" for name in public_functions(package)}
    assert [name for name, doc in docs.items() if "\nReturns:\n" not in doc or "\n>>> " not in doc] == []


def test_every_function_of_a_distribution_has_a_page():
    import pullback.scipy.stats as stats

    modules = {name: module for name, module in vars(stats).items() if inspect.ismodule(module) and name[0] != "_"}
    assert set(modules) == set(DISTRIBUTIONS)
    for name, module in modules.items():
        own = {n for n, f in vars(module).items() if getattr(f, "__module__", "") == module.__name__ and n[0] != "_"}
        assert own == set(manual.by_name(DISTRIBUTIONS[name])), name


def test_what_stands_before_a_page_is_not_indented():
    assert "\n\nElements are read" in jnp.reshape.__doc__
