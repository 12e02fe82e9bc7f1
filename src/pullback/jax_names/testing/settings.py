"""Options, environment, meshes, warnings and output, for the time of a test."""

from __future__ import annotations

import contextlib
import functools
import io
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from pullback.jax_names.testing.data import to_default_dtype
from pullback.jax_names.testing.machine import create_mesh
from pullback.numpy._arguments import promote_dtypes, promote_dtypes_inexact
from pullback.sharding import AxisType, Mesh, set_mesh
from pullback.util.config import config
from pullback.util.flags import options
from pullback.util.pytree import tree_map

MeshSpec = Sequence[tuple[str, int]]


def _option(name: str) -> Any:
    return options[name if name.startswith("jax_") else f"jax_{name}"]


@contextlib.contextmanager
def thread_local_config_context(**kwds: Any) -> Iterator[None]:
    """Options set for this thread."""
    with contextlib.ExitStack() as stack:
        for name, value in kwds.items():
            stack.enter_context(_option(name)(value))
        yield


@contextlib.contextmanager
def global_config_context(**kwds: Any) -> Iterator[None]:
    """Options set for the process, and set back."""
    saved = {name: _option(name).get_global() for name in kwds}
    try:
        for name, value in kwds.items():
            config.update(_option(name).name, value)
        yield
    finally:
        for name, value in saved.items():
            config.update(_option(name).name, value)


@contextlib.contextmanager
def assert_global_configs_unchanged() -> Iterator[None]:
    """AssertionError where options of the process have other values at the end than at the start."""
    before = {name: flag.get_global() for name, flag in options.items()}
    yield
    changed = {n: flag.get_global() for n, flag in options.items() if n in before and flag.get_global() != before[n]}
    assert not changed, f"options of the process were changed and not set back: {changed}"


def _with_defaults(attribute: str, kwds: dict[str, Any]) -> Callable[[Any], Any]:
    def decorate(cls: Any) -> Any:
        if not isinstance(cls, type):
            raise TypeError(f"options are given to classes of tests, got {cls!r}")
        setattr(cls, attribute, {**getattr(cls, attribute), **kwds})
        return cls

    return decorate


def with_config(**kwds: Any) -> Callable[[Any], Any]:
    """Run the tests of a class with options set for their thread."""
    return _with_defaults("_default_thread_local_config", kwds)


def with_global_config(**kwds: Any) -> Callable[[Any], Any]:
    """Run the tests of a class with options set for the process."""
    return _with_defaults("_default_global_config", kwds)


def strict_promotion_if_dtypes_match(dtypes: Any) -> Any:
    """No implicit promotion where all dtypes are the same; the standard one elsewhere."""
    strict = all(dtype == dtypes[0] for dtype in dtypes)
    return thread_local_config_context(jax_numpy_dtype_promotion="strict" if strict else "standard")


@contextlib.contextmanager
def set_env(**kwargs: str | None) -> Iterator[None]:
    """Environment variables set, or taken away where None."""
    saved = {name: os.environ.get(name) for name in kwargs}

    def write(values: dict[str, str | None]) -> None:
        for name, value in values.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value

    write(kwargs)
    try:
        yield
    finally:
        write(saved)


@contextlib.contextmanager
def ignore_warning(*, message: str = "", category: type[Warning] = Warning, **kw: Any) -> Iterator[None]:
    """Warnings of a kind, or with a text, are not shown."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=message, category=category, **kw)
        yield


@contextlib.contextmanager
def capture_stdout() -> Iterator[Callable[[], str]]:
    """Gives a function that says what has been printed."""
    with contextlib.redirect_stdout(io.StringIO()) as stream:
        yield stream.getvalue


@contextlib.contextmanager
def capture_stderr() -> Iterator[Callable[[], str]]:
    """Gives a function that says what has been printed as errors."""
    with contextlib.redirect_stderr(io.StringIO()) as stream:
        yield stream.getvalue


@contextlib.contextmanager
def with_mesh(named_shape: MeshSpec) -> Iterator[None]:
    """A mesh of these axes in force."""
    names = tuple(name for name, _ in named_shape)
    with create_mesh(tuple(size for _, size in named_shape), names):
        yield


def with_mesh_from_kwargs(f: Callable[..., Any]) -> Callable[..., Any]:
    """Run a test under the mesh that its argument `mesh` describes."""

    @functools.wraps(f)
    def wrapper(*args: Any, mesh: MeshSpec, **kwargs: Any) -> Any:
        with with_mesh(mesh):
            return f(*args, mesh=mesh, **kwargs)

    return wrapper


def with_explicit_mesh(
    sizes: Any, names: Any, axis_types: Any = None, iota_order: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Run a test under a mesh whose axes are explicit, which the test gets after `self`."""
    if axis_types is None:
        axis_types = (AxisType.Explicit,) * len(names)

    def decorate(f: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(f)
        def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
            mesh: Mesh = create_mesh(sizes, names, iota_order, axis_types)
            with set_mesh(mesh):
                return f(self, *args, **kwargs, mesh=mesh)

        return wrapper

    return decorate


def promote_like_jnp(fun: Callable[..., Any], inexact: bool = False) -> Callable[..., Any]:
    """A function of NumPy's on operands that are first brought to the dtype which jax.numpy computes in."""
    promote = promote_dtypes_inexact if inexact else promote_dtypes

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        flat: list[Any] = []
        tree_map(flat.append, args)
        done = iter([np.asarray(x) for x in promote(*flat)])
        return fun(*tree_map(lambda _: next(done), args), **kwargs)

    return wrapper


def with_jax_dtype_defaults(func: Callable[..., Any], use_defaults: Any = True) -> Callable[..., Any]:
    """A function of NumPy's whose results get the dtype that is the default of their kind here."""

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        result = func(*args, **kwargs)
        if isinstance(use_defaults, bool):
            return tree_map(to_default_dtype, result) if use_defaults else result
        return tree_map(lambda x, use: to_default_dtype(x) if use else x, result, use_defaults)

    return wrapper
