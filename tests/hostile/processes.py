"""Runs a script in a process of its own, so that a crash, an abort or a hang is a failed test and nothing worse."""

import subprocess
import sys
import textwrap

_HEAD = """
import faulthandler, os, signal, threading, time
faulthandler.enable()
import numpy as np
import pullback as jax, pullback.numpy as jnp
from pullback import lax
"""


def run(body, timeout=120):
    """What `body` prints; AssertionError with its errors if it doesn't end well."""
    script = _HEAD + textwrap.dedent(body)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=timeout, check=False)
    assert done.returncode == 0, f"ended with {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout.split()
