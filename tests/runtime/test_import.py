"""`import pullback` and eager work load no compiler."""

import subprocess
import sys

CODE = """
import sys
import pullback as pb, pullback.numpy as jnp
x = jnp.ones(3)
for _ in range(3):
    x + 1, x * x, jnp.sum(x), jnp.exp(x), x[0], x.T, x < 2, -x, x @ x, jnp.where(x > 0, x, 0), pb.grad(jnp.sum)(x)
heavy = ("llvmlite", "scipy", "opt_einsum", "pullback.loops.emit", "pullback.compiler.lower",
    "pullback.loops.passes", "pullback.loops.schedule")
print([m for m in sys.modules if m.startswith(heavy)])
pb.jit(lambda x: x + 1)(x)
print("llvmlite" in sys.modules)
print([m for m in ("scipy", "fractions", "logging") if m in sys.modules])
"""


def test_what_is_loaded():
    out = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True, timeout=120)
    assert out.stdout.split("\n")[:3] == ["[]", "True", "[]"], out.stdout


WORK = """
import gc, sys
import numpy
import threading, dataclasses, traceback  # which this package needs
before, collections = set(sys.modules), []
gc.callbacks.append(lambda phase, info: collections.append(info["generation"]) if phase == "start" else None)
import pullback.numpy
gc.callbacks.clear()
ours = [m for m in sys.modules if m.startswith("pullback")]
print(sorted(m for m in ("importlib.abc", "importlib.resources", "tempfile", "pathlib", "urllib.parse", "shutil",
                             "logging")
             if m in set(sys.modules) - before))
print(len(ours) <= 240, max(collections, default=0) < 2, gc.isenabled(), gc.get_freeze_count())
"""


def test_work_of_an_import():
    """What `import pullback.numpy` costs beside NumPy: modules (211 of ours), and no search of memory for cycles."""
    out = subprocess.run([sys.executable, "-S", "-c", f"import sys; sys.path[:] = {sys.path}\n{WORK}"],
                         capture_output=True, text=True, check=True, timeout=120)  # fmt: skip
    assert out.stdout.split("\n")[:2] == ["[]", "True True True 0"], out.stdout
