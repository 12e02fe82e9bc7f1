"""The kernel of products against NumPy, compiled and interpreted; how large products are cut."""

import ctypes
from dataclasses import replace

import numpy as np
import pytest
from cpu_levels import cpus
from lowering_checks import check, lax, normal

import pullback
from pullback._ext import _core
from pullback.compiler.products.kernels import (
    CHAIN,
    GRAM_SIZES,
    SIZES,
    block_shape,
    gram_kernel,
    gram_kernel_name,
    kernel_name,
    panel_kernel,
    product_shape,
)
from pullback.compiler.products.symbols import kernel_of
from pullback.loops.emit.jit import compile_function
from pullback.loops.ir.check import check as check_function
from pullback.loops.ir.interpret import interpret
from pullback.loops.schedule.machine import LAPTOP, Cache, using
from pullback.util.switches import switches


def panels_of(y, columns):
    """y[k, n] as [panel, k, column], the last panel overlapping the one before."""
    n = y.shape[1]
    starts = [min(j, n - columns) for j in range(0, n, columns)]
    return np.ascontiguousarray(np.stack([y[:, j : j + columns] for j in starts]))


@pytest.mark.parametrize("long", [False, True])
@pytest.mark.parametrize("dtype, ir", [(np.float32, "f32"), (np.float64, "f64"), (np.int32, "i32")])
@pytest.mark.parametrize("m, k, n", [(3, 1, 8), (7, 5, 8), (9, 300, 21), (6, 0, 8)])
@pytest.mark.parametrize("rows, columns", [(3, 8), (2, 24)])
@pytest.mark.parametrize("near", [False, True])
def test_kernel(m, k, n, dtype, ir, long, rows, columns, near):
    n = max(n, columns)
    x, y = (3 * normal(m, k)).astype(dtype), (3 * normal(k, n, seed=1)).astype(dtype)
    packed = panels_of(y, columns)
    fields = dict(
        rows=m, panels=len(packed), inner=k, columns=n, x_row=k, x_inner=1, y_panel=k * columns, y_last=k * n,
        y_inner=columns, out_row=n,
    )  # fmt: skip
    sizes = np.array([fields[name] for name in SIZES], np.int64)
    function = panel_kernel(ir, rows, columns, long, sizes=(max(x.size, 1), max(packed.size, 1), m * n), near=near)
    check_function(function)
    want = x @ y
    inputs = [np.ravel(a) if a.size else np.zeros(1, a.dtype) for a in (sizes, x, packed)]
    (got,) = interpret(function, inputs)
    np.testing.assert_allclose(got.reshape(m, n), want, rtol=1e-4, atol=1e-4)
    code = compile_function(function, subroutine=True, verify=True)
    out = np.zeros((m, n), dtype)
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)(code.address)
    call(*(a.ctypes.data for a in (*inputs, out)))
    np.testing.assert_allclose(out, want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype, ir", [(np.float32, "f32"), (np.float64, "f64")])
@pytest.mark.parametrize("n, k, chain", [(8, 1, 4), (9, 7, 4), (21, 30, 8), (16, 16, 16)])
def test_gram_kernel(n, k, chain, dtype, ir):
    rows, columns = 3, 8
    x = normal(k, n).astype(dtype)
    sizes = np.array([dict(count=n, inner=k, chain=chain, x_inner=n)[name] for name in GRAM_SIZES], np.int64)
    shape = (-(-n // columns), -(-n // rows), rows, columns)
    function = gram_kernel(ir, rows, columns, sizes=(x.size, int(np.prod(shape))))
    check_function(function)
    code = compile_function(function, subroutine=True, verify=True)
    tiles = np.zeros(shape, dtype)
    ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)(code.address)(sizes.ctypes.data, x.ctypes.data, tiles.ctypes.data)
    (interpreted,) = interpret(function, [sizes, x.ravel()])
    want, product = np.zeros(shape, dtype), x.T @ x
    for panel, block in np.ndindex(*shape[:2]):
        if block >= panel * columns // rows:
            row, column = min(block * rows, n - rows), min(panel * columns, n - columns)
            want[panel, block] = product[row : row + rows, column : column + columns]
    np.testing.assert_allclose(tiles, want, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(interpreted.reshape(shape), want, rtol=1e-4, atol=1e-4)


def test_a_name_says_which_kernel_it_is():
    for name in (
        kernel_name("f32", 6, 16, 10),
        kernel_name("f64", 12, 4, CHAIN + 1),
        kernel_name("i32", 6, 16, 5000),
        kernel_name("f32", 8, 48, 9, near=True),
    ):
        assert kernel_of(name).name == name
    assert kernel_of(gram_kernel_name("f32", 6, 16)).name == gram_kernel_name("f32", 6, 16)


def test_few_rows_are_cut_evenly():
    rows, _ = block_shape("f32", 100, 100)
    for m in range(1, 4 * rows):
        size, _ = block_shape("f32", m, 100)
        assert size <= rows and -(-m // size) == -(-m // rows)


@pytest.mark.parametrize("cpu", [cpu for cpu in cpus() if cpu not in ("host", "x86-64-v4")])
def test_columns_are_cut_so_that_little_is_left_empty(cpu):
    with switches.set(cpu=cpu):
        two = block_shape("f32", 1000, 1000)[1]
        width = two // 2
        assert product_shape("f32", 1000, 3 * width)[1] == 3 * width  # four registers with two at a time
        assert product_shape("f32", 1000, 7 * two + 2)[1] == 3 * width  # 15 and not 16
        for n in (two, 6 * two, 8 * two, 3 * width - 1):
            assert product_shape("f32", 1000, n)[1] == two
        assert product_shape("f32", 10, 3 * width) == block_shape("f32", 10, 3 * width)


@pytest.mark.skipif("x86-64-v4" not in cpus(), reason="this CPU has no AVX-512")
@pytest.mark.parametrize("dtype, lanes", [("f32", 16), ("f64", 8)])
def test_columns_of_registers_are_as_many_as_leave_least_empty(dtype, lanes):
    with switches.set(cpu="x86-64-v4"):
        assert product_shape(dtype, 1000, 3 * lanes)[1] == 3 * lanes  # one panel
        assert product_shape(dtype, 1020, 64 * lanes)[1] == 4 * lanes  # 16 panels, of three registers 22
        assert product_shape(dtype, 1000, 57 * lanes)[1] == 3 * lanes  # 19, of four registers 15
        for m in range(1, 40):
            rows, columns = product_shape(dtype, m, 1000)
            assert rows <= m and rows * columns // lanes <= 24


@pytest.mark.sample(24)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
@pytest.mark.parametrize(
    "m, k, n",
    [(114, 50, 114), (30, 200, 72), (4, 4, 128), (5, 33, 37), (16, 16, 16), (65, 40, 70), (9, 300, 501), (99, 17, 5)],
)
@pytest.mark.parametrize("transposed", [(False, False), (True, False), (False, True), (True, True)])
def test_products(m, k, n, dtype, transposed):
    x, y = (4 * normal(m, k)).astype(dtype), (4 * normal(k, n, seed=1)).astype(dtype)
    x, y = (np.ascontiguousarray(a.T) if turned else a for a, turned in zip((x, y), transposed))
    numbers = (((0 if transposed[0] else 1,), (1 if transposed[1] else 0,)), ((), ()))
    check(lambda x, y: lax.dot_general(x, y, numbers), x, y, rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64])
@pytest.mark.parametrize("m, k, n", [(97, 90, 101), (301, 40, 512), (50, 30, 1030), (2049, 60, 17), (13, 64, 700)])
def test_blocks_share_rows_and_columns_out(m, k, n, dtype):
    x, y = normal(m, k).astype(dtype), normal(k, n, seed=1).astype(dtype)
    before, results = _core.num_threads(), []
    with pullback.enable_x64(True):
        program = pullback.jit(lambda x, y: x @ y).lower(x, y).compile()
        try:
            for threads in (1, 2, 3):
                _core.set_num_threads(threads)
                results.append(np.asarray(program(x, y)))
        finally:
            _core.set_num_threads(before)
    assert "threads" in program.as_text("loops")
    for product in results:
        np.testing.assert_array_equal(product, results[0])
    np.testing.assert_allclose(results[0], x.astype(np.clongdouble) @ y, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("m, k, n", [(30, 40, 7), (4, 700, 33), (65, 17, 130), (24, 5000, 20), (150, 300, 90)])
@pytest.mark.parametrize("transposed", [(False, False), (True, False), (False, True), (True, True)])
def test_complex_products_are_real_ones(m, k, n, dtype, transposed):
    x, y = (normal(m, k) + 1j * normal(m, k, seed=2)).astype(dtype), (normal(k, n, seed=1) * (2 - 1j)).astype(dtype)
    x[0, 1], y[2, 1] = complex(1, np.inf), complex(np.nan, 0)
    sides = tuple(np.ascontiguousarray(a.T) if turned else a for a, turned in zip((x, y), transposed))
    fun = lambda x, y: (x.T if transposed[0] else x) @ (y.T if transposed[1] else y)
    with pullback.enable_x64(True):
        program = pullback.jit(fun).lower(*sides).compile()
        got = np.asarray(program(*sides))
    assert "pb_panels_" in program.as_text("loops") and "gemm" not in program.as_text("loops")
    assert not np.isfinite(got[0]).any() and not np.isfinite(got[:, 1]).any()
    exact = x[1:].astype(np.clongdouble) @ np.delete(y, 1, 1).astype(np.clongdouble)
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(np.delete(got[1:], 1, 1), exact, rtol=16 * eps, atol=16 * eps * np.sqrt(k))


@pytest.mark.parametrize("k", [270, 2100])
def test_long_complex_products_are_left_to_blas(k):
    x = (normal(260, k) + 1j * normal(260, k, seed=1)).astype(np.complex64)
    program = pullback.jit(lambda x: x @ x.T.conj()).lower(x).compile()
    assert ("cgemm" in program.as_text("loops")) == (k == 2100)
    np.testing.assert_allclose(np.asarray(program(x)), x @ x.T.conj(), rtol=1e-4, atol=5e-3)


def test_complex_batches():
    x = (normal(30, 9, 20) + 1j * normal(30, 9, 20, seed=1)).astype(np.complex64)
    y = (normal(30, 20, 11, seed=2) - 1j * normal(30, 20, 11, seed=3)).astype(np.complex64)
    check(lambda x, y: lax.dot_general(x, y, (((2,), (1,)), ((0,), (0,)))), x, y, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("count, m, k, n", [(3, 16, 16, 16), (40, 17, 20, 30), (3, 130, 64, 130), (100, 6, 5, 70)])
def test_batches(count, m, k, n):
    x, y = normal(count, m, k), normal(count, k, n, seed=1)
    check(lambda x, y: lax.dot_general(x, y, (((2,), (1,)), ((0,), (0,)))), x, y, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("shape", [(100, 64, 64, 64), (6, 33, 40, 70), (2, 5, 130, 90, 128)])
@pytest.mark.parametrize("numbers", ["nn", "nt", "tn"])
def test_threads_share_the_matrices_of_a_batch(shape, numbers):
    *batch, m, k, n = shape
    x, y = normal(*batch, m, k), normal(*batch, k, n, seed=1)
    x, y = (np.swapaxes(a, -1, -2).copy() if turned == "t" else a for a, turned in zip((x, y), numbers))
    axes = tuple(range(len(batch)))
    contracted = tuple((len(batch) + place,) for place in (numbers[0] == "n", numbers[1] == "t"))
    program = pullback.jit(lambda x, y: lax.dot_general(x, y, (contracted, (axes, axes)))).lower(x, y).compile()
    text = program.as_text("loops")
    assert f"}} item < {np.prod(batch)} {{" in text and text.count("threads") == 1 and "sequential item" not in text
    before, results = _core.num_threads(), []
    try:
        for threads in (1, 2, 3):
            _core.set_num_threads(threads)
            results.append(np.asarray(program(x, y)))
    finally:
        _core.set_num_threads(before)
    want = np.einsum(f"...{'km' if numbers[0] == 't' else 'mk'},...{'nk' if numbers[1] == 't' else 'kn'}->...mn", x, y)
    for product in results:
        np.testing.assert_array_equal(product, results[0])
    np.testing.assert_allclose(results[0], want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "m, k, n", [(30, 5000, 30), (5, 4097, 40), (1, 999, 300), (3, 999, 300), (300, 999, 1), (4, 700, 77)]
)
@pytest.mark.parametrize("turned", [False, True])
def test_long_and_thin_products(m, k, n, turned):
    x, y = normal(m, k), normal(k, n, seed=1)
    x, y = (np.asfortranarray(a) if turned else a for a in (x, y))
    numbers = (((0 if turned else 1,), (1 if turned else 0,)), ((), ()))
    check(lambda x, y: lax.dot_general(x, y, numbers), x.T if turned else x, y.T if turned else y, rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_that_compete_for_the_first_cache_are_copied_apart(dtype):
    x, y = normal(131, 2048).astype(dtype), normal(2048, 96, seed=1).astype(dtype)
    few_ways = replace(LAPTOP, first=Cache(1 << 14, 4, 0.4))  # two of any block of rows that are 4096 bytes apart
    many_ways = replace(LAPTOP, first=Cache(1 << 18, 64, 0.4))
    results = []
    for machine, m, k in ((few_ways, 130, 2048), (few_ways, 130, 2008), (many_ways, 131, 2048)):
        with pullback.enable_x64(True), using(machine):
            lowered = pullback.jit(lambda x, y: x @ y).lower(x[:m, :k], y[:k])
            apart = f"f{8 * x.itemsize}[{m * (k + 64 // x.itemsize)}]"
            assert (apart in lowered.as_text("loops")) == (not results)
            results.append(np.asarray(lowered.compile()(x[:m, :k], y[:k])))
    np.testing.assert_array_equal(results[0], results[2][:130])
    np.testing.assert_allclose(results[0], x[:130] @ y, rtol=1e-4, atol=1e-3)


def test_errors_grow_with_the_number_of_chains_only():
    x, y = normal(30, 4096), normal(4096, 30, seed=1)
    exact = x.astype(np.float64) @ y.astype(np.float64)
    error = lambda got: np.sqrt(np.mean((np.asarray(got) - exact) ** 2))
    assert error(pullback.jit(lambda x, y: x @ y)(x, y)) <= 1.1 * error(x @ y)
