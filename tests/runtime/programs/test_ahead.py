"""Kernels compiled ahead are those that programs would compile, and are used only while they are."""

import inspect
import os

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback._ext import _core
from pullback.compiler.products import kernels as shapes
from pullback.compiler.products import symbols
from pullback.compiler.products.symbols import usual_kernels
from pullback.loops.emit.cpu.target import current_target
from pullback.loops.ir import Builder
from pullback.runtime.programs import ahead, build_ahead, kernels
from pullback.util.switches import switches

LEVEL = {64: "x86-64-v4", 32: "x86-64-v3"}.get(current_target().vector_bytes)
wide = pytest.mark.skipif(LEVEL is None, reason="no kernels are compiled ahead for vectors of 16 bytes")


@wide
def test_products_call_usual_kernels():
    target = current_target().vector_bytes
    for dtype in ("f32", "f64", "i32"):
        sizes = set(shapes.block_sizes(dtype, target))
        found = {shapes.product_shape(dtype, m, n) for m in range(1, 70) for n in range(1, 300)}
        assert found <= sizes, found - sizes
    for dtype in ("f32", "f64"):
        grams = {shapes.gram_kernel_name(dtype, *shapes.block_shape(dtype, n, n)) for n in range(64, 600)}
        assert grams <= set(usual_kernels(target))


def test_levels_that_are_built():
    here, elsewhere = build_ahead.levels("here"), build_ahead.levels("elsewhere")
    assert sorted(here + elsewhere) == sorted(build_ahead.levels("all")) == sorted(ahead.BUILT)
    assert here == [level for level in ahead.BUILT if level == ahead.own_level()]
    with pytest.raises(SystemExit, match="expected one of: all, here, elsewhere"):
        build_ahead.levels("there")


@wide
def test_only_whole_files_of_these_sources(tmp_path, monkeypatch):
    name = usual_kernels(current_target().vector_bytes)[0]
    code = build_ahead.code_of(name, LEVEL)
    path = tmp_path / ahead.file_name("products", LEVEL)
    monkeypatch.setattr(ahead, "FOLDER", tmp_path)

    def found():
        ahead._places.cache_clear()
        return ahead.kernel_ahead(name, LEVEL)

    assert found() is None
    build_ahead.write(path, "products", {"another": b"123", name: code})
    assert found().code == code and ahead.kernel_ahead("a third", LEVEL) is None
    whole = path.read_bytes()
    for damaged in (whole[:-1], whole[:40], b"", b"{}\n"):
        path.write_bytes(damaged)
        assert found() is None
    path.write_bytes(whole)
    monkeypatch.setattr(ahead, "sources_digest", lambda kind: "of an edited checkout")
    assert found() is None


def test_files_of_products_are_of_what_writes_them_alone():
    """An edit of the schedule made them useless: each process then compiled kernels again, 10 to 30 ms each."""
    files = {path for name in ahead.SOURCES["products"] for path in ahead._files(os.path.join(ahead.PACKAGE, name))}
    writers = (symbols.kernel_of, shapes.panel_kernel, shapes.gram_kernel, symbols.tile_kernel, Builder.load)
    assert {inspect.getsourcefile(writer) for writer in writers} <= files
    assert not any("schedule" in path or "passes" in path for path in files)


@wide
def test_code_of_the_level_has_this_machines_results(tmp_path, monkeypatch):
    x = np.random.default_rng(0).standard_normal((40, 70)).astype("f4")
    asked = []

    def product():
        """x @ x.T with nothing in memory nor on disk."""
        jax.clear_caches()
        kernels._compiled.cache_clear()
        with switches.set(cache_dir=str(tmp_path / str(len(list(tmp_path.iterdir()))))):
            return np.asarray(jax.jit(lambda x: jnp.dot(x, x.T + 1))(x))

    with monkeypatch.context() as patch:
        patch.setattr(ahead, "kernel_ahead", lambda name, level: asked.append(name))
        own = product()
    assert asked and set(asked) <= set(usual_kernels(current_target().vector_bytes))
    codes = {name: build_ahead.code_of(name, LEVEL) for name in asked}
    monkeypatch.setattr(ahead, "FOLDER", tmp_path)
    build_ahead.write(tmp_path / ahead.file_name("products", LEVEL), "products", codes)
    ahead._places.cache_clear()
    monkeypatch.setattr(symbols, "kernel_of", lambda name: pytest.fail(f"{name} was compiled again"))
    assert np.array_equal(product(), own)
    kernels._compiled.cache_clear()
    ahead._places.cache_clear()


@wide
def test_functions_are_loaded_without_the_compiler(tmp_path, monkeypatch):
    name = ahead.function_name("exp", "f32")
    monkeypatch.setattr(ahead, "FOLDER", tmp_path)
    ahead._places.cache_clear()
    assert ahead.function_ahead(name) is None
    codes = {name: build_ahead.code_of(name, LEVEL)}
    build_ahead.write(tmp_path / ahead.file_name("functions", LEVEL), "functions", codes)
    ahead._places.cache_clear()
    address, owner = ahead.function_ahead(name)
    types = (np.dtype("f4"), np.dtype("f4"))
    x = np.random.default_rng(0).standard_normal(1000).astype("f4")
    with np.errstate(all="ignore"):  # kernels compute what they do not choose
        found = _core.function_of_kernel("exp", address, types, owner)(x)
    assert np.array_equal(found, jax.jit(jnp.exp)(x))
    ahead._places.cache_clear()


def test_functions_of_kernels_say_what_they_take():
    with pytest.raises(ValueError, match="1 types; expected 2 to 4"):
        _core.function_of_kernel("f", 1, (np.dtype("f4"),), None)
    with pytest.raises(ValueError, match="elements of 2 bytes"):
        _core.function_of_kernel("f", 1, (np.dtype("f2"),) * 2, None)
    with pytest.raises(TypeError, match="no dtype"):
        _core.function_of_kernel("f", 1, ("f4", "f4"), None)
