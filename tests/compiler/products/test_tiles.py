"""Products by instructions on tiles (AMX): their meaning on every CPU, and their code where it runs."""

import ctypes

import ml_dtypes
import numpy as np
import pytest
from lowering_checks import for_thread_counts, lax, normal

import pullback
from pullback.compiler.products.kernels import SIZES
from pullback.compiler.products.symbols import kernel_of
from pullback.compiler.products.tile_kernels import SLAB, WORDS, tile_kernel, tile_kernel_name, tile_shape
from pullback.compiler.products.tiles import suits
from pullback.loops.emit.cpu.target import current_target, host_target
from pullback.loops.emit.jit import compile_function
from pullback.loops.ir.check import check as check_function
from pullback.loops.ir.interpret import interpret
from pullback.loops.ir.tiles import DOTS, Tiles, dot_floats, shapes
from pullback.util.switches import switches

TYPES = {"bf16": ml_dtypes.bfloat16, "i8": np.int8, "u8": np.uint8}


@pytest.fixture
def tiles():
    """Code is for the machine's own CPU; the test is left out where that has no tiles."""
    with switches.set(cpu="host"):
        if not host_target().multiplies_tiles:
            pytest.skip("this CPU, or its system, has no tiles")
        yield


def matrix(kind, *shape, seed=0):
    if kind == "bf16":
        return normal(*shape, seed=seed).astype(ml_dtypes.bfloat16)
    return np.random.default_rng(seed).integers(-128, 128, shape).astype(TYPES[kind])


def run_kernel(kind, m, words, n, rows, columns, added):
    """(what the interpreter gives, what the code gives if it runs here, exact results) of one call of a kernel."""
    left, right = ("bf16", "bf16") if kind == "bf16" else (kind[:2], kind[2:])
    each = 2 if kind == "bf16" else 4
    x, y = matrix(left, m, each * words), matrix(right, each * words, n, seed=1)
    if added:
        starts, height, width = range(0, n - n % columns, columns), m - m % rows, n - n % columns
    else:
        starts, height, width = [min(j, n - columns) for j in range(0, n, columns)], m, n
    packed = np.stack([y[:, j : j + columns] for j in starts]).reshape(len(starts), words, each, columns)
    word = np.float32 if kind == "bf16" else np.int32
    inputs = [np.ascontiguousarray(a).view(np.uint8).view(word).ravel() for a in (x, packed.swapaxes(2, 3))]
    fields = dict(
        rows=height, panels=len(starts), inner=words, columns=width, x_row=words, x_inner=1, y_panel=words * columns,
        y_last=(len(starts) - 1) * words * columns, y_inner=columns, out_row=n,
    )  # fmt: skip
    inputs.insert(0, np.array([fields[name] for name in SIZES], np.int64))
    function = tile_kernel(kind, rows, columns, added, (inputs[1].size, inputs[2].size, m * n))
    check_function(function)
    found = [interpret(function, inputs)[0].reshape(m, n)]
    if current_target().multiplies_tiles:
        code = compile_function(function, subroutine=True, verify=True)
        out = np.zeros((m, n), word)
        call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)(code.address)
        call(*(a.ctypes.data for a in (*inputs, out)))
        found.append(out)
    wide = np.float64 if kind == "bf16" else np.int64
    want = np.zeros((m, n), wide)
    want[:height, :width] = (x.astype(wide) @ y.astype(wide))[:height, :width]
    return found, want


@pytest.mark.parametrize("kind", list(DOTS))
@pytest.mark.parametrize(
    "m, words, n, rows, columns", [(5, 3, 16, 5, 16), (33, 16, 32, 32, 32), (40, 35, 50, 23, 32), (17, 19, 33, 17, 16)]
)
@pytest.mark.parametrize("added", [False, True])
def test_kernels_mean_what_their_code_does(m, words, n, rows, columns, kind, added):
    found, want = run_kernel(kind, m, words, n, rows, columns, added)
    for got in found[1:]:
        np.testing.assert_array_equal(got, found[0])
    np.testing.assert_allclose(found[0], want, rtol=1e-5, atol=1e-4 if kind == "bf16" else 0)


def test_a_long_contraction_goes_on_where_it_stopped(tiles):
    (interpreted, got), want = run_kernel("bf16", 18, SLAB + 21, 32, 16, 32, False)
    np.testing.assert_array_equal(got, interpreted)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-3)


def test_order_and_denormal_numbers():
    """Even and odd products are summed apart, from zero."""
    pair = lambda even, odd: np.array([even, odd], ml_dtypes.bfloat16).view(np.uint32)[0]
    a = np.array([[pair(1, 1), pair(1, 1e-39)]], np.uint32)
    b = np.array([[pair(2.0**30, 1)], [pair(-(2.0**30), 1e38)]], np.uint32)
    c = np.array([[0.25]], np.float32)
    assert dot_floats(c, a, b)[0, 0] == 1.25  # in the order of the elements it would be 0.25


def test_tiles_do_not_reach_beyond_a_buffer():
    tiles = Tiles()
    tiles.call("tile_shapes", *shapes([(2, 64)]))
    with pytest.raises(IndexError, match="row 1 of tile 0"):
        tiles.call("tile_load", 0, (np.zeros(31, np.float32), 0), 64)


def test_names_and_shapes():
    for kind in WORDS:
        for added in (False, True):
            name = tile_kernel_name(kind, 23, 32, added)
            assert kernel_of(name).name == name
    for m in range(1, 200):
        rows, columns = tile_shape(m, 100)
        assert rows <= min(m, 32) and -(-m // rows) == -(-m // 32) and columns == 32


@pytest.mark.parametrize("kinds", ["bf16 bf16", "i8 i8", "u8 i8"])
@pytest.mark.parametrize("turned", ["nn", "nt", "tn"])
@pytest.mark.parametrize(
    "shape",
    [(37, 33, 50), (130, 2048, 96), (7, 800, 5), (4, 1200, 4), (40, 15, 40), (300, 65, 520),
     (6, 20, 31, 40), (2, 5, 130, 90, 128),
     (0, 5, 6), (5, 0, 40), (3, 0, 20, 20)],
)  # fmt: skip
def test_products(tiles, shape, turned, kinds):
    *batch, m, k, n = shape
    left, right = kinds.split()
    x, y = matrix(left, *batch, m, k), matrix(right, *batch, k, n, seed=1)
    wide, narrow = (np.float64, np.float32) if left == "bf16" else (np.int64, np.int32)
    exact = x.astype(wide) @ y.astype(wide)
    x, y = (np.swapaxes(a, -1, -2).copy() if side == "t" else a for a, side in zip((x, y), turned))
    axes = tuple(range(len(batch)))
    contracted = tuple((len(batch) + place,) for place in (turned[0] == "n", turned[1] == "t"))
    product = pullback.jit(
        lambda x, y: lax.dot_general(x, y, (contracted, (axes, axes)), preferred_element_type=narrow)
    )
    program = product.lower(x, y).compile()
    assert ("_tiles" in program.as_text("loops")) == (suits(m, k, n) and np.prod(batch) > 0)
    results = for_thread_counts(program, x, y)
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_allclose(results[0], exact, rtol=1e-4, atol=1e-4 if left == "bf16" else 0)
    if left == "bf16":  # the same sums, rounded
        short = pullback.jit(lambda x, y: lax.dot_general(x, y, (contracted, (axes, axes))))(x, y)
        np.testing.assert_array_equal(np.asarray(short), results[0].astype(ml_dtypes.bfloat16))


def test_infinities_and_nans_stay_in_their_rows_and_columns(tiles):
    x, y = matrix("bf16", 40, 33), matrix("bf16", 33, 70, seed=1)
    x[3, 32], x[5, 0], y[2, 69] = np.inf, np.nan, np.nan
    got = np.asarray(pullback.jit(lambda x, y: x @ y)(x, y)).astype(np.float32)
    assert np.isinf(got[3, :69]).all() and np.isnan(got[5]).all() and np.isnan(got[:, 69]).all()
    assert np.isfinite(np.delete(got, (3, 5), 0)[:, :69]).all()


def test_levels_without_tiles_do_without(tiles):
    with switches.set(cpu="x86-64-v3"):
        x = matrix("bf16", 40, 40)
        assert "_tiles" not in pullback.jit(lambda x: x @ x.T).lower(x).compile().as_text("loops")
