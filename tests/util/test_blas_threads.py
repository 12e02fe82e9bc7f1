"""BLAS runs on one thread while we ask it, and on as many as before afterwards."""

import threading

import numpy as np
import pytest
from patience import PATIENCE

import pullback as jax
import pullback.numpy as jnp
from pullback._ext import _core
from pullback.lax.linalg import routines
from pullback.lax.linalg.singular_values import svd_p
from pullback.util.blas_threads import control, on_one_thread

found = control()
needs_control = pytest.mark.skipif(found is None, reason="a BLAS whose threads cannot be set")


@needs_control
def test_threads_are_given_back():
    get, set_ = found
    before = get()
    set_(2)
    try:
        assert on_one_thread(lambda x, *, y: (x, y, get()))(1, y=2) == (1, 2, 1)
        assert get() == 2
        with pytest.raises(ValueError):
            on_one_thread(int)("one")
        assert get() == 2
    finally:
        set_(before)


@needs_control
def test_references_of_decompositions_run_on_one_thread(monkeypatch):
    get, set_ = found
    before, seen = get(), []
    gesdd = routines.gesdd
    monkeypatch.setattr(routines, "gesdd", lambda *args: seen.append(get()) or gesdd(*args))
    set_(2)
    try:
        svd_p.reference(np.eye(40, dtype=np.float32), full_matrices=True, compute_uv=True)
    finally:
        set_(before)
    assert seen == [1]
    np.testing.assert_allclose(jnp.linalg.svdvals(2 * jnp.eye(3)), 2 * np.ones(3), rtol=1e-6)


@needs_control
def test_threads_of_python_that_overlap_give_back_what_was_there():
    """Each for itself, the last would give back the one thread that the first had set."""
    get, set_ = found
    before = get()
    set_(3)
    try:
        inside, go_on = threading.Event(), threading.Event()

        def first():
            with_one = on_one_thread(lambda: (inside.set(), go_on.wait(PATIENCE), get()))
            seen.append(with_one()[2])

        seen: list[int] = []
        other = threading.Thread(target=first)
        other.start()
        inside.wait(PATIENCE)
        _core.blas_begin()
        go_on.set()
        other.join()
        assert get() == 1 and seen == [1]
        _core.blas_end()
        assert get() == 3
    finally:
        set_(before)


@needs_control
def test_compiled_programs_give_threads_back():
    get, set_ = found
    before = get()
    set_(2)
    try:
        x = np.random.default_rng(0).normal(size=(60, 60))
        with jax.enable_x64(True):
            solved = jax.jit(lambda x: jnp.linalg.svd(x)[1])
            assert "pb_blas_begin" in solved.lower(x).compile().as_text("loops")
            solved(x)
        assert get() == 2
    finally:
        set_(before)
