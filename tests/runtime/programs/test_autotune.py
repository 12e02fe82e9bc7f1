"""Forms of nests that are measured: the answer is kept on disk, and means the same."""

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import lax
from pullback.errors import JaxRuntimeError
from pullback.runtime.programs import autotune
from pullback.util.switches import switches


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    """A folder of its own, and a machine on which other forms are always quicker."""
    monkeypatch.setattr(autotune, "default_folder", lambda: tmp_path)
    monkeypatch.setattr(autotune, "WORTH_NS", 0.0)
    monkeypatch.setattr(autotune, "RIVAL", 100.0)
    monkeypatch.setattr(autotune, "LONGEST", 3600.0)  # however busy the machine is
    return tmp_path


def standard(x):
    return (x - x.mean(0)) / jnp.sqrt(x.var(0) + 1e-5)


def times(monkeypatch, quick):
    """Programs whose text has `quick` in it are measured as quicker."""
    measured = []

    def time(program, arguments):
        program.call(arguments)
        measured.append(switches.form)
        return 1.0 if quick in switches.form else 2.0

    monkeypatch.setattr(autotune, "_time", time)
    return measured


def test_what_is_measured_as_quickest_is_taken_and_kept(monkeypatch, _folder):
    x = np.random.default_rng(0).standard_normal((700, 90)).astype("f4")
    plain = jax.jit(lambda x: standard(x)).lower(x).as_text("nests")
    measured = times(monkeypatch, "=fission")
    tuned = jax.jit(lambda x: standard(x), compiler_options={"autotune": True})
    np.testing.assert_allclose(tuned(x), standard(jnp.asarray(x)), rtol=1e-4, atol=1e-5)
    assert len(measured) >= 3 and tuned.lower(x).as_text("nests") != plain
    (kept,) = _folder.glob("form-*")
    assert kept.read_text().endswith("=fission")
    measured.clear()
    with switches.set(tune=True):
        again = jax.jit(lambda x: standard(x))
        np.testing.assert_array_equal(again(x), tuned(x))
    assert not measured  # it is the same program, whose answer is on disk


def test_the_best_of_real_times(_folder):
    x = np.random.default_rng(0).standard_normal((3000, 40)).astype("f4")
    tuned = jax.jit(lambda x: jax.nn.softmax(x, 0), compiler_options={"autotune": True})
    np.testing.assert_allclose(tuned(x), jax.nn.softmax(jnp.asarray(x), 0), rtol=1e-5)


def test_programs_that_may_not_end_are_not_run(monkeypatch):
    measured = times(monkeypatch, "")

    def until(x):
        return lax.while_loop(lambda v: v.sum() < 1e6, lambda v: v * 2, x)

    def told(x):
        jax.debug.callback(lambda v: None, x.sum())
        return standard(x)

    for f in (until, told):
        jax.jit(f, compiler_options={"autotune": True})(np.ones((50, 40), "f4"))
    assert not measured


def test_without_it_nothing_is_measured(monkeypatch, _folder):
    measured = times(monkeypatch, "")
    jax.jit(lambda x: standard(x) + 1, compiler_options={"autotune": False})(np.ones((50, 40), "f4"))
    jax.jit(lambda x: standard(x) + 1)(np.ones((50, 40), "f4"))
    assert not measured and not list(_folder.glob("*"))


def test_options_that_are_none():
    with pytest.raises(TypeError, match="autotune must be True or False, got 1"):
        jax.jit(standard, compiler_options={"autotune": 1})(np.ones((5, 4), "f4"))
    with pytest.raises(JaxRuntimeError, match="No such compile option: 'autotuned'"):
        jax.jit(standard, compiler_options={"autotuned": True})(np.ones((5, 4), "f4"))
