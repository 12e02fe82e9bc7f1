"""`import pullback` and eager work load no compiler."""

import ast
import inspect
import os
import subprocess
import sys

import pytest
from patience import PATIENCE

from pullback.runtime.programs.imports import importing

CODE = """
import sys
import pullback as pb, pullback.numpy as jnp
from pullback.runtime.programs.ahead import function_ahead, function_name
x = jnp.ones(3)
built = function_ahead(function_name("exp", "f32"))  # by `make build`, from these very sources
for _ in range(3):
    x + 1, x * x, jnp.sum(x), jnp.exp(x) if built else x
    x[0], x.T, x < 2, -x, x @ x, jnp.where(x > 0, x, 0), pb.grad(jnp.sum)(x)
pb.nn.relu
heavy = ("llvmlite", "scipy", "opt_einsum", "pullback.loops.emit", "pullback.compiler.lower",
    "pullback.loops.passes", "pullback.loops.schedule", "pullback.random")
names = ("pullback.loops.emit", "pullback.loops.emit.symbols")
print([m for m in sys.modules if m.startswith(heavy) and m not in names])
assert pb.nn.initializers.zeros and "initializers" in dir(pb.nn)
w = jnp.ones((40, 40))
print(pb.jit(pb.grad(lambda w: (jnp.tanh(w @ w) ** 2).mean()))(w).shape)
compiler = ("llvmlite", "pullback.compiler.pipelines", "pullback.compiler.graph.fuse", "pullback.loops.schedule")
print([m for m in compiler if m in sys.modules])
print([m for m in ("scipy", "fractions", "logging", "numpy.ma") if m in sys.modules])
"""


def test_what_is_loaded(tmp_path):
    """The compiler when something is compiled; for a program on disk, whatever it calls, not even then."""
    env = os.environ | {"PULLBACK_CACHE_DIR": str(tmp_path)}
    for loaded in (True, False):
        out = subprocess.run(
            [sys.executable, "-c", CODE], capture_output=True, text=True, check=True, timeout=PATIENCE, env=env
        )
        eager, shape, compiler, others = out.stdout.splitlines()
        assert (eager, shape, others) == ("[]", "(40, 40)", "[]")
        assert len(ast.literal_eval(compiler)) == 4 * loaded, out.stdout


SUM = """
import sys
import pullback.numpy as jnp
print([jnp.sum(jnp.ones((64, 100)), axis=k).shape for k in (0, 1, None)], "llvmlite" in sys.modules)
"""


def test_sums_without_llvm():
    """The order of a sum asks the compiler's prices, and these ask for no code."""
    out = subprocess.run([sys.executable, "-c", SUM], capture_output=True, text=True, check=True, timeout=PATIENCE)
    assert out.stdout.strip() == "[(100,), (64,), ()] False"


LAPACK = """
import sys
import pullback as pb, pullback.numpy as jnp, pullback.scipy.linalg
jnp.linalg.solve(2 * jnp.eye(3), jnp.ones(3)), jnp.linalg.eigh(jnp.eye(3)), jnp.linalg.svd(jnp.eye(3))
print(pb.jit(jnp.linalg.inv)(2 * jnp.eye(3)).sum().item(), "scipy" in sys.modules)
"""


def test_lapack_without_scipy(tmp_path):
    """NumPy has loaded one."""
    env = os.environ | {"PULLBACK_CACHE_DIR": str(tmp_path)}
    run = [sys.executable, "-c", LAPACK]
    out = subprocess.run(run, capture_output=True, text=True, check=True, timeout=PATIENCE, env=env)
    assert out.stdout.splitlines() == ["1.5 False"]


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
print(len(ours) <= 250, max(collections, default=0) < 2, gc.isenabled(), gc.get_freeze_count() > 30000)
"""


def test_work_of_an_import():
    """What `import pullback.numpy` costs beside NumPy: modules (up to 250 of ours, 30 of them pages of help), no search
    of memory for cycles.
    """
    out = subprocess.run([sys.executable, "-S", "-c", f"import sys; sys.path[:] = {sys.path}\n{WORK}"],
                         capture_output=True, text=True, check=True, timeout=PATIENCE)  # fmt: skip
    assert out.stdout.split("\n")[:2] == ["[]", "True True True True"], out.stdout


COLLECTOR = """
import gc, weakref
class Cycle:
    def __init__(self): self.me = self
early, kept, frozen = Cycle(), Cycle(), Cycle()
refs = [weakref.ref(early), weakref.ref(kept), weakref.ref(frozen)]
del early
gc.collect()
gc.freeze()
late = Cycle()
refs.append(weakref.ref(late))
import pullback.numpy
print(any(o is late for o in gc.get_objects()), any(o is kept for o in gc.get_objects()))
del late, kept
gc.collect()
print([r() is None for r in refs], len(gc.get_objects()) < 30000)
gc.unfreeze()
gc.collect()
print([r() is None for r in refs])
"""


def test_collector_after_an_import():
    """What was there before is collected as ever, what the user froze stays so, what the import made is left alone."""
    out = subprocess.run(
        [sys.executable, "-c", COLLECTOR], capture_output=True, text=True, check=True, timeout=PATIENCE
    )
    assert out.stdout.splitlines() == [
        "True False",
        "[True, False, False, True] True",
        "[True, True, False, True]",
    ], out.stdout + out.stderr


LATE = """
import pickle, sys
from pullback import lax, numpy as jnp
late = ("pullback.lax.linalg", "pullback.numpy.linalg", "pullback.numpy.fft", "pullback.numpy._poly",
        "pullback.numpy._einsum")
print([m for m in sorted(sys.modules) if m.startswith(late)])
names, found = set(dir(jnp)), {}
exec("from pullback.numpy import *", found)
print(names - set(found) - {n for n in names if n.startswith("_")}, found["linalg"] is jnp.linalg)
from pullback.numpy import einsum as named
new = {n for n in {*dir(jnp)} - names if n[0] != "_"}
print(named is found["einsum"] is jnp.einsum, not new, found["unique"] is jnp.unique)
functions = (jnp.sum, jnp.amax, jnp.einsum, jnp.unique, jnp.linalg.inv, jnp.fft.fft, lax.linalg.lu, lax.linalg.lu_p)
print(all(pickle.loads(pickle.dumps(f)) is f for f in functions))
try:
    jnp.no_such_name
except AttributeError as error:
    print(error)
"""


def test_modules_that_are_imported_late():
    """Names of modules that are imported when they are first used are found as all others are."""
    out = subprocess.run([sys.executable, "-c", LATE], capture_output=True, text=True, check=True, timeout=PATIENCE)
    lines = ["[]", "set() True", "True True True", "True", "module 'pullback.numpy' has no attribute 'no_such_name'"]
    assert out.stdout.splitlines() == lines, out.stdout + out.stderr


def test_late_names_for_type_checkers():
    """What type checkers read of late names is what is looked up."""
    import pullback.numpy as jnp

    (block,) = [
        node for node in ast.parse(inspect.getsource(jnp)).body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "_TYPE_CHECKING"
    ]  # fmt: skip
    read = {
        alias.asname or alias.name: node.module.rpartition(".")[2]
        for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }  # fmt: skip
    assert read == {**jnp._WHERE, **dict.fromkeys(jnp._LATE_MODULES, "numpy")}
    assert all(
        callable(getattr(jnp, name)) for name in read if name not in (*jnp._LATE_MODULES, *jnp._LATE["_grids"].split())
    )


class _Interrupted:
    def __set_name__(self, owner, name):
        raise KeyboardInterrupt


def test_ctrl_c_while_a_class_is_imported():
    with pytest.raises(KeyboardInterrupt), importing():
        type("made", (), {"field": _Interrupted()})
    with pytest.raises(RuntimeError, match="another"), importing():  # the lock is free again
        raise RuntimeError("another")
