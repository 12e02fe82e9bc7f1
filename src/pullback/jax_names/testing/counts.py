"""How often functions were traced and compiled, and what their jaxprs hold."""

from __future__ import annotations

import contextlib
import unittest
from collections.abc import Callable, Iterator
from typing import Any

from pullback.api import make_jaxpr, vjp
from pullback.core.atoms import jaxprs_in_params
from pullback.util import monitoring

_TRACED = "/jax/core/compile/jaxpr_trace_duration"
_WANTED = "/pullback/jit/program_wanted"
_COMPILED = "/jax/core/compile/backend_compile_duration"


class Count:
    """A number that grows while something is watched: `count()` says it."""

    def __init__(self) -> None:
        self.value = 0

    def __call__(self) -> int:
        return self.value

    def __getitem__(self, index: int) -> int:
        return [self.value][index]


@contextlib.contextmanager
def _durations(name: str) -> Iterator[Count]:
    count = Count()

    def listen(event: str, _seconds: float, **_: Any) -> None:
        count.value += event == name

    with register_event_duration_listener(listen):
        yield count


@contextlib.contextmanager
def count_events(event: str) -> Iterator[Count]:
    """Counts events of a name (see `jax.monitoring`)."""
    count = Count()

    def listen(name: str, **_: Any) -> None:
        count.value += name == event

    monitoring.register_event_listener(listen)
    try:
        yield count
    finally:
        monitoring.unregister_event_listener(listen)


def count_jit_tracing_cache_miss() -> Any:
    """Counts functions that are traced."""
    return _durations(_TRACED)


count_pjit_cpp_cache_miss = count_jit_tracing_cache_miss


def count_jit_and_pmap_lowerings() -> Any:
    """Counts functions for which a program is wanted, be it one that is there for another function."""
    return count_events(_WANTED)


def count_jit_compilation_cache_miss() -> Any:
    """Counts programs that are compiled, or loaded from the cache on disk."""
    return _durations(_COMPILED)


count_primitive_compiles = count_jit_compilation_cache_miss


@contextlib.contextmanager
def assert_num_jit_and_pmap_compilations(times: int) -> Iterator[None]:
    """AssertionError unless so many functions want a program meanwhile."""
    with count_jit_and_pmap_lowerings() as count:
        yield
    if count() != times:
        raise AssertionError(f"expected {times} functions to be compiled, but {count()} were")


def _not_counted(what: str) -> Callable[..., Any]:
    def count(*_args: Any, **_kwargs: Any) -> Any:
        raise unittest.SkipTest(f"{what} are not counted here")

    return count


count_device_put = _not_counted("calls of device_put")
count_internal_device_puts = _not_counted("calls of device_put")
count_device_put_fast_path_hit = _not_counted("calls of device_put")
count_aot_jit_cpp_cache_miss = _not_counted("calls of compiled functions")
count_compilation_after_persistent_cache_miss = _not_counted("programs that are not on disk")
count_jax_array_shard_arg_calls = _not_counted("arguments that are cut")
count_subjaxpr_to_hlo_conversion = _not_counted("functions of HLO texts")
collect_lowered_jaxprs = _not_counted("programs as MLIR")


@contextlib.contextmanager
def register_event_duration_listener(callback: Callable[..., None]) -> Iterator[None]:
    """Have `callback(event, seconds, **metadata)` called for each duration meanwhile."""
    monitoring.register_event_duration_secs_listener(callback)
    try:
        yield
    finally:
        monitoring.unregister_event_duration_listener(callback)


def iter_eqns(jaxpr: Any) -> Iterator[Any]:
    """The equations of a jaxpr, and those of the jaxprs in their parameters after each of them."""
    for eqn in getattr(jaxpr, "jaxpr", jaxpr).eqns:
        yield eqn
        for inner in jaxprs_in_params(eqn.params):
            yield from iter_eqns(inner)


def _products(fun: Callable[..., Any], args: Any, kwargs: Any) -> list[Any]:
    found = [e for e in iter_eqns(make_jaxpr(fun)(*args, **kwargs)) if e.primitive.name == "dot_general"]
    found += [e for e in iter_eqns(make_jaxpr(fun)(*args, **kwargs)) if e.primitive.name == "conv_general_dilated"]
    assert found, "the function has no product and no convolution"
    return found


def assert_dot_precision(expected_precision: Any, fun: Callable[..., Any], *args: Any) -> None:
    """AssertionError unless all products of a function have this precision."""
    wanted = expected_precision if expected_precision is None else (expected_precision, expected_precision)
    for eqn in _products(fun, args, {}):
        assert eqn.params["precision"] == wanted, f"precision is {eqn.params['precision']}, expected {wanted}"


def assert_dot_preferred_element_type(expected: Any, fun: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """AssertionError unless all products of a function give this dtype."""
    for eqn in _products(fun, args, kwargs):
        given = eqn.params["preferred_element_type"]
        assert given == expected, f"preferred_element_type is {given}, expected {expected}"


def fwd_bwd_jaxprs(f: Callable[..., Any], *example_args: Any) -> tuple[Any, Any]:
    """The jaxprs of the two passes of a function's vjp."""
    forward, shape = make_jaxpr(lambda *args: vjp(f, *args), return_shape=True)(*example_args)
    result, pull = shape
    backward = make_jaxpr(lambda pull, bar: pull(bar))(pull, result)
    return forward, backward
