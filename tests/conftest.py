"""What holds in all tests: jaxprs and loop nests are checked before and after every pipeline, those of programs of all
kinds after each pass; there are four devices; tracebacks are whole; Ctrl-C is heard; the data of a test are its own,
and it leaves nothing behind.
"""

import gc
import itertools
import os
import signal
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

os.environ.setdefault("PULLBACK_CHECK", "1")
os.environ.setdefault("JAX_TRACEBACK_FILTERING", "off")  # a test that fails shows where
os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=4")

# A shell starts jobs in the background with the signal ignored; tests of interruption would then wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


TESTS = Path(__file__).parent
PROGRAMS = (
    "compiler/lower/test_control.py",
    "compiler/lower/test_random_programs.py",
    "compiler/lower/test_repeats.py",
    "compositions",
    "fuzz",
    "lax/control",
    "lax/linalg/test_stacks.py",
    "lax/movement",
    "lax/reductions/test_folds.py",
    "transforms",
)


@pytest.fixture(autouse=True)
def _leaves_nothing_behind() -> Iterator[None]:
    """A test that changes options, threads and the like for those after it fails, whichever these are."""
    from left_behind import give_back, state

    before = state()
    yield
    changed = give_back(before)
    assert not changed, f"the test has changed, and not given back: {'; '.join(changed)}"


@pytest.fixture(autouse=True)
def _checks_after_each_pass(request: pytest.FixtureRequest) -> Iterator[None]:
    if request.path.relative_to(TESTS).as_posix().startswith(PROGRAMS):
        from pullback.util.switches import switches

        with switches.set(check=2):
            yield
    else:
        yield


@pytest.fixture(autouse=True)
def _data_of_its_own(request: pytest.FixtureRequest) -> None:
    """Generators of a module start anew for each test, by its name.

    Else a test's data would depend on which others ran before it in the same worker, and so on the machine: one sum
    came out near zero where it had never been before, and missed its tolerance.
    """
    seed = zlib.crc32(request.node.name.encode())
    for value in vars(request.module).values():
        if isinstance(value, np.random.Generator):
            value.bit_generator.state = np.random.default_rng(seed).bit_generator.state
        elif isinstance(value, np.random.RandomState):
            value.seed(seed)


@pytest.fixture
def x64() -> Iterator[None]:
    """The test runs with 64-bit types."""
    import pullback

    with pullback.enable_x64(True):
        yield


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all", action="store_true", help="all cases of large grids, of which a part runs otherwise")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "sample(n): n of the cases, spread over all values, run unless --all is given")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of large grids the cases that hold all pairs of values; one that is named runs by itself."""
    if config.getoption("--all") or any("[" in arg for arg in config.args):
        return
    from grids import sampled

    items[:], left_out = sampled(items)
    config.hook.pytest_deselected(items=left_out)


TESTS_OF_ROUND = 100  # after so many the collector lets go of what they have left


def pytest_collection_finish():
    """The cyclic collector leaves alone what thousands of collected tests are made of, which stays to the end.

    A test that collects looked through all of it each time: 0.3 s, which was a fifth of the run.
    """
    _leave_alone()


def _leave_alone() -> None:
    gc.collect()
    gc.freeze()


_done = itertools.count(1)


def pytest_runtest_logfinish():
    """And what tests have compiled, which programs that are alike share: a collection took a second at the end."""
    if next(_done) % TESTS_OF_ROUND == 0:
        _leave_alone()
