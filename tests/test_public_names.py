"""No public name of JAX gets lost, nor the parameters of a function: tests/data/public_names.txt has them all."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest
from patience import PATIENCE

import pullback as jax
import pullback.numpy as jnp
from pullback.util import other_options
from pullback.util.absent_table import REASONS, TABLE

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tools"))
import api_coverage  # noqa: E402

LINES = (ROOT / "tests" / "data" / "public_names.txt").read_text().splitlines()


def test_names_and_parameters():
    assert len(LINES) > 2900
    wrong = api_coverage.compare(LINES)
    unexplained = [
        f"{line}: {what}" for line, what in wrong.items() if not api_coverage.reason_of(api_coverage.parse(line)[0])
    ]
    assert not unexplained, "\n".join(unexplained)


def test_every_explanation_is_needed():
    differing = [api_coverage.parse(line)[0] for line in api_coverage.compare(LINES)]
    unused = [p for p, _ in api_coverage.explained() if not any(api_coverage.fnmatch.fnmatch(n, p) for n in differing)]
    assert not unused


def test_a_lost_name_and_a_changed_signature_are_found():
    assert api_coverage.difference("jax.numpy.nothing(x)") == "missing"
    assert api_coverage.difference("jax.numpy.sort(b, axis=)") is not None
    assert api_coverage.difference("config.jax_nothing value") == "missing"
    assert api_coverage.difference("jax.Array.sum(axis=)") is not None


def test_names_that_are_not_here_say_why():
    assert all(reason in REASONS for rows in TABLE.values() for reason, _ in rows)
    with pytest.raises(NotImplementedError, match=r"ffi.build_ffi_lowering_function: belongs to MLIR"):
        jax.ffi.build_ffi_lowering_function("f")
    with pytest.raises(NotImplementedError, match=r"interpreters.mlir.TokenSet: belongs to MLIR"):
        jax.interpreters.mlir.TokenSet()
    fused = importlib.import_module("pullback.experimental.fused")
    with pytest.raises(NotImplementedError, match="asked for its attribute 'bind'"):
        fused.fused_p.bind(1.0)
    assert not isinstance(1, jax.export.Exported) and "MLIR" in repr(jax.extend.mlir.passmanager)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        jax.ffi.nothing()
    assert not hasattr(jax.core, "nothing") and not hasattr(jax.extend.core.primitives, "nothing_p")


MODULES = """
import pullback as jax, pullback.extend, pullback.interpreters
print(*sorted(name for name in dir(jax.extend) if type(getattr(jax.extend, name)).__name__ == "module"))
print(jax.interpreters.pxla.__name__, jax.experimental.compilation_cache.__name__)
"""


def test_modules_are_there_whatever_was_imported_before():
    """Those that JAX has once their package is imported."""
    done = subprocess.run([sys.executable, "-c", MODULES], capture_output=True, text=True, check=True, timeout=PATIENCE)
    assert done.stdout.splitlines() == [
        "backend core linear_util lowering mlir pallas random sharding source_info_util xla",
        "pullback.interpreters.pxla pullback.experimental.compilation_cache",
    ]


def test_completion_shows_public_names():
    """And not what a module imports."""
    import pullback.scipy.optimize

    numeric = (jnp.fft, jnp.linalg, jax.lax.linalg, jax.nn.initializers, jax.ops, jax.random, pullback.scipy.optimize)
    for module in (*numeric, jax.debug, jax.profiler, jax.sharding):
        assert dir(module) == sorted(module.__all__)


def test_options_without_effect():
    """Each can be read, set and set back, in all ways; those whose effect would be missed keep their default."""
    for group in other_options.GROUPS:
        for name, default in group.options.items():
            default = None if isinstance(default, tuple) else default
            assert getattr(jax.config, name) == default
            other = not default if isinstance(default, bool) else 7 if isinstance(default, int) else None
            if other is not None:
                jax.config.update(name, other)
                assert jax.config.read(name) == other
                jax.config.update(name, default)
    for name, (default, _) in other_options.REFUSED.items():
        jax.config.update(name, default)
        with pytest.raises(NotImplementedError, match=name):
            jax.config.update(name, not default)
    with pytest.raises(ValueError, match="must be of type int"):
        jax.config.update("jax_pgle_profiling_runs", "many")


def test_context_managers_of_options():
    with jax.disable_jit(disable=True), jax.checking_leaks(), jax.enable_x64(new_val=True):
        assert jax.config.jax_disable_jit and jax.config.jax_check_tracer_leaks and jnp.ones(1).dtype == "float64"
    assert not jax.config.jax_disable_jit and not jax.config.jax_check_tracer_leaks
