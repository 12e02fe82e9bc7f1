"""Instructions that a call takes, counted by callgrind, which load on the machine does not change.

The bounds are about a third above what was measured when they were set, so that a Python frame or a lookup that slips
into the path of every call is seen.
"""

import re
import shutil
import subprocess
import sys

import pytest
from patience import PATIENCE

CALLS = {  # code: instructions that it may take, the interpreter's own for the loop included
    "f(x)": 2_300,
    "x + y": 2_500,
    "x * 2.0": 2_650,
    "x[1]": 1_750,
    "m.T": 1_900,
    "x.sum()": 2_600,
    "gradient(x)": 340_000,
    "jax.vmap(double)(m)": 186_000,  # 181,000 to 184,000, by what runs beside it
    "jax.jvp(double, (x,), (y,))": 205_000,  # 179,000 on a Xeon
    "jax.lax.scan(body, one, x)": 172_000,
}
COUNT = 2_000, 300  # of calls that take few instructions, and of the others
SCRIPT = """
import os, subprocess, sys
import pullback as jax, pullback.numpy as jnp
x, y, m = jnp.ones(5), jnp.ones(5), jnp.ones((4, 4))
f = jax.jit(lambda x: x + 1)
gradient = jax.grad(lambda x: jnp.sum(jnp.tanh(x) ** 2))
one = jnp.float32(1)
def double(x):
    return jnp.tanh(x) * 2
def body(carry, x):
    return carry + x, carry * x
def control(*options):
    subprocess.run(["callgrind_control", *options, str(os.getpid())], check=True, stdout=subprocess.DEVNULL)
loops = []
for call in {calls}:
    scope = dict(globals())
    exec("def loop(n):\\n    for _ in range(n):\\n        " + call, scope)
    loops.append(scope["loop"])
    loops[-1](10)
control("-i", "on")
for loop, count in zip(loops, {counts}):
    loop(20)
    control("-z")
    loop(count)
    control("-d")
"""


@pytest.mark.skipif(shutil.which("callgrind_control") is None, reason="valgrind is not installed")
def test_instructions_per_call(tmp_path):
    output = tmp_path / "counts"
    command = ["valgrind", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={output}", sys.executable]
    counts = [COUNT[most > 100_000] for most in CALLS.values()]
    script = SCRIPT.format(calls=list(CALLS), counts=counts)
    done = subprocess.run([*command, "-c", script], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found = {}
    for number, call in enumerate(CALLS, 1):
        text = (tmp_path / f"counts.{number}").read_text()
        totals = re.search(r"^(?:summary|totals): (\d+)", text, re.M)
        assert totals, text[:500]
        found[call] = int(totals[1]) // counts[number - 1]
    assert {c: n for c, n in found.items() if n > CALLS[c]} == {}, found
