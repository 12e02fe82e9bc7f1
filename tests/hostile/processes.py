"""Runs a script in a process of its own, so that a crash, an abort or a hang is a failed test and nothing worse."""

import subprocess
import sys
import textwrap

from patience import PATIENCE

# Ctrl-C comes and work is counted by the processor time of the process: whatever else runs on the machine, a call is
# under way once the process has worked for a while, and has gone on if it works for long after that. Python drops a
# KeyboardInterrupt in the callback of a weak reference, as when a module has just been imported: where calls are made
# until it comes, the signal is sent again after some time.
_HEAD = '''
import faulthandler, os, signal, subprocess, threading, time
faulthandler.enable()
import numpy as np
import pullback as jax, pullback.numpy as jnp
from pullback import lax

def press_after(seconds, sent=None, heard=None):
    """Ctrl-C by a thread, which is returned, once the process has worked so long; again until `heard`, if given."""
    def press():
        while time.process_time() - time.thread_time() - began < seconds:
            time.sleep(0.001)
        if sent is not None:
            sent.append(time.process_time())
        os.kill(os.getpid(), signal.SIGINT)
        while heard is not None and not heard.wait(30):
            os.kill(os.getpid(), signal.SIGINT)
    began = time.process_time()
    thread = threading.Thread(target=press)
    thread.start()
    return thread

def work_after_ctrl_c(call, seconds):
    """What the process works from Ctrl-C, which comes when it has worked so long, to KeyboardInterrupt. Calls are made
    until then.
    """
    sent, heard = [], threading.Event()
    try:
        press_after(seconds, sent, heard)
        while True:
            call()
    except KeyboardInterrupt:
        heard.set()
        return time.process_time() - sent[0]

def work_of(call, until=None):
    """What the process works until a call has ended, or, with calls made until then, until KeyboardInterrupt by another
    process, as this one may hold the GIL, after so many seconds.
    """
    if until is None:
        began = time.process_time()
        call()
        return time.process_time() - began
    again = f"while sleep 30; do kill -INT {os.getpid()}; done"
    command = ["sh", "-c", f"read begun; sleep {until}; kill -INT {os.getpid()}; {again}"]
    sender = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    began = time.process_time()
    try:
        os.write(sender.stdin.fileno(), b"\\n")
        while True:
            call()
            time.sleep(0)
    except KeyboardInterrupt:
        worked = time.process_time() - began
    sender.kill()
    sender.communicate()
    return worked

def settle():
    """Wait until all that was abandoned has ended."""
    while work_of(lambda: time.sleep(0.1)) > 0.02:
        pass
'''


def run(body, timeout=PATIENCE):
    """What `body` prints; AssertionError with its errors if it doesn't end well."""
    script = _HEAD + textwrap.dedent(body)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=timeout, check=False)
    assert done.returncode == 0, f"ended with {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout.split()
