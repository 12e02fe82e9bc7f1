"""What holds in all tests: jaxprs and loop nests are checked before and after every pipeline; there are four devices;
tracebacks are whole; Ctrl-C is heard.
"""

import gc
import os
import signal

os.environ.setdefault("PULLBACK_CHECK", "1")
os.environ.setdefault("JAX_TRACEBACK_FILTERING", "off")  # a test that fails shows where
os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=4")

# A shell starts jobs in the background with the signal ignored; tests of interruption would then wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish():
    """The cyclic collector leaves alone what thousands of collected tests are made of, which stays to the end.

    A test that collects looked through all of it each time: 0.3 s, which was a fifth of the run.
    """
    gc.collect()
    gc.freeze()
