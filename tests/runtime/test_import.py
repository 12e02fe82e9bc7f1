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
"""


def test_what_is_loaded():
    out = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True, timeout=120)
    assert out.stdout.split("\n")[:2] == ["[]", "True"], out.stdout
