"""What tests run on: one CPU or several, no accelerator; and which tests are left out there."""

from __future__ import annotations

import functools
import os
import re
import sys
import unittest
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from pullback.api import jit
from pullback.jax_names import version
from pullback.runtime.arrays.devices import devices
from pullback.sharding import Mesh
from pullback.util.config import config

JIT_IMPLEMENTATION = (jit,)
running_in_cloud_tpu_vm = False
kSanitizeNameRE = re.compile(r"[ \"'\[\](){}<>=,._]+")


class Setting:
    """An option of tests, read from the environment where it is set there."""

    def __init__(self, name: str, default: int) -> None:
        text = os.environ.get(name, "")
        number = int(text) if text.lstrip("-").isdigit() else int(text.lower() in ("true", "yes", "on") or default)
        self.value = type(default)(number)


NUM_GENERATED_CASES = Setting("JAX_NUM_GENERATED_CASES", 10)
SKIP_SLOW_TESTS = Setting("JAX_SKIP_SLOW_TESTS", False)
TEST_NUM_THREADS = Setting("JAX_TEST_NUM_THREADS", 0)
TEST_WITH_PERSISTENT_COMPILATION_CACHE = Setting("JAX_TEST_WITH_PERSISTENT_COMPILATION_CACHE", False)


def device_under_test() -> str:
    """The platform that tests run on."""
    return "cpu"


def test_device_matches(device_types: Iterable[str]) -> bool:
    """Whether one of these kinds of devices is the one that tests run on."""
    if isinstance(device_types, str):
        raise TypeError("test_device_matches: give the kinds of devices in a list")
    return device_under_test() in device_types


test_device_matches.__test__ = False  # type: ignore[attr-defined]  # no test, though its name begins like one's


def _no(*_args: Any, **_kwargs: Any) -> bool:
    """False: there is no such device, and no such build."""
    return False


is_device_tpu = is_device_cuda = is_device_rocm = is_device_tpu_at_least = _no
is_cloud_tpu = is_cloud_tpu_at_least = _no
is_cuda_compute_capability_at_least = is_cuda_compute_capability_equal = is_cuda_version_at_least = _no
is_asan = is_msan = is_tsan = is_sanitized = is_test_rbe = _no
cuda_versions = None


def get_tpu_version() -> int:
    raise ValueError("get_tpu_version: tests run on a CPU")


def get_cuda_nonportable_max_cluster_size() -> int:
    raise ValueError("get_cuda_nonportable_max_cluster_size: tests run on a CPU")


def is_optimized_build() -> bool:
    return True


def is_gil_disabled() -> bool:
    return not getattr(sys, "_is_gil_enabled", lambda: True)()


def is_running_under_pytest() -> bool:
    return "pytest" in sys.modules


def runtime_environment() -> str | None:
    """Who runs the tests: "pytest", or None."""
    return "pytest" if is_running_under_pytest() else None


def device_supports_buffer_donation() -> bool:
    return True


def parse_version(v: str) -> tuple[int, ...]:
    """The numbers of a version: (1, 2, 3) of "1.2.3rc1"."""
    return tuple(int(re.match(r"\d+", part).group()) for part in v.split(".") if part[:1].isdigit())  # type: ignore


def numpy_version() -> tuple[int, ...]:
    return parse_version(np.__version__)[:3]


def jaxlib_version() -> tuple[int, ...]:
    return parse_version(version.__version__)[:3]


def stablehlo_version_at_least(required_version: str) -> bool:
    return True


def pjrt_c_api_version_at_least(major_version: int, minor_version: int) -> bool:
    return True


def pattern_search(patterns: str | Sequence[str], string: str) -> str | None:
    """The first of some regular expressions that is found in a string."""
    return next((p for p in ([patterns] if isinstance(patterns, str) else patterns) if re.search(p, string)), None)


def device_kind_match(device_patterns: str | Sequence[str]) -> str | None:
    """The first of some regular expressions that is found in the kind of the device."""
    return pattern_search(device_patterns, devices()[0].device_kind)


def sanitize_test_name(s: str) -> str:
    """A text as part of a test's name."""
    return kSanitizeNameRE.sub("_", s).strip("_")


def _left_out(condition: Callable[[], Any], reason: Callable[[], str]) -> Callable[[Any], Any]:
    """A decorator of tests and of classes of them: they are left out where the condition holds when they run."""

    def decorate(test: Any) -> Any:
        if isinstance(test, type):
            set_up = test.setUp  # type: ignore[attr-defined]

            @functools.wraps(set_up)
            def setUp(self: Any) -> None:
                if condition():
                    self.skipTest(reason())
                set_up(self)

            test.setUp = setUp  # type: ignore[attr-defined]
            return test

        @functools.wraps(test)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            if condition():
                raise unittest.SkipTest(reason())
            return test(*args, **kwargs)

        return wrapper

    return decorate


def skip_on_devices(*disabled_devices: str, skip_reason: str | None = None) -> Callable[[Any], Any]:
    """Leave a test out on some kinds of devices."""
    return _left_out(
        lambda: test_device_matches(disabled_devices), lambda: skip_reason or f"not on {device_under_test()}"
    )


def run_on_devices(*enabled_devices: str, skip_reason: str | None = None) -> Callable[[Any], Any]:
    """Run a test on some kinds of devices only."""
    return _left_out(
        lambda: not test_device_matches(enabled_devices),
        lambda: skip_reason or f"only on {', '.join(enabled_devices)}, not on {device_under_test()}",
    )


def skip_on_flag(flag_name: str, skip_value: Any) -> Callable[[Any], Any]:
    """Leave a test out where an option has a value."""
    return _left_out(lambda: config.read(flag_name) == skip_value, lambda: f"not where {flag_name} is {skip_value}")


def skip_under_pytest(reason: str) -> Callable[[Any], Any]:
    """Leave a test out under pytest."""
    return _left_out(is_running_under_pytest, lambda: reason)


def pytest_mark_if_available(marker: str) -> Callable[[Any], Any]:
    """Mark a test for pytest, where that is installed."""

    def decorate(test: Any) -> Any:
        try:
            import pytest
        except ImportError:
            return test
        return getattr(pytest.mark, marker)(test)

    return decorate


class ThreadUnsafe:
    """A decorator and a context, for tests that must be alone: here tests run one after another."""

    def __init__(self, condition: bool = True) -> None:
        self.condition = condition

    def __call__(self, test: Any) -> Any:
        return test

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        pass


thread_unsafe_test = thread_unsafe_test_class = ThreadUnsafe


def request_cpu_devices(nr_devices: int) -> None:
    """Have so many devices, where it is not too late; a test without enough of them is left out."""
    try:
        if len(devices()) < nr_devices:
            config.update("jax_num_cpu_devices", nr_devices)
    except RuntimeError:
        pass  # devices are in use: `create_mesh` leaves those tests out that need more


def create_mesh(mesh_shape: Any, axis_names: Any, iota_order: bool = False, axis_types: Any = None) -> Mesh:
    """A mesh of the first devices; SkipTest where there are not enough of them."""
    size = int(np.prod(mesh_shape, dtype=int))
    if len(devices()) < size:
        raise unittest.SkipTest(f"needs {size} devices, there are {len(devices())}")
    return Mesh(np.array(devices()[:size]).reshape(mesh_shape), axis_names, axis_types=axis_types)
