"""What holds in all tests: jaxprs and loop nests are checked before and after every pipeline, those of programs of all
kinds after each pass; there are four devices; tracebacks are whole; Ctrl-C is heard.
"""

import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path

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
def _checks_after_each_pass(request: pytest.FixtureRequest) -> Iterator[None]:
    if request.path.relative_to(TESTS).as_posix().startswith(PROGRAMS):
        from pullback.util.switches import switches

        with switches.set(check=2):
            yield
    else:
        yield


def pytest_collection_finish():
    """The cyclic collector leaves alone what thousands of collected tests are made of, which stays to the end.

    A test that collects looked through all of it each time: 0.3 s, which was a fifth of the run.
    """
    gc.collect()
    gc.freeze()
