"""Products of bfloat16 in pairs, by the instruction for them or by floats in its order, with equal results."""

import ctypes

import ml_dtypes
import numpy as np
import pytest
from cpu_levels import cpus
from lowering_checks import lax, normal

import pullback
from pullback._ext import _core
from pullback.compiler.products.kernels import CHAIN, SIZES, kernel_name, panel_kernel
from pullback.compiler.products.symbols import kernel_of
from pullback.loops.emit.cpu.target import current_target
from pullback.loops.emit.jit import compile_function
from pullback.loops.ir.check import check as check_function
from pullback.loops.ir.interpret import interpret
from pullback.util.switches import switches


def bf16(*shape, seed=0):
    return normal(*shape, seed=seed).astype(ml_dtypes.bfloat16)


@pytest.mark.parametrize("m, k, n", [(3, 2, 16), (7, 300, 21)])
@pytest.mark.parametrize("long", [False, True])
def test_kernels_of_pairs(m, k, n, long):
    x, y = bf16(m, k), bf16(k, n, seed=1)
    x[0, 0], y[0, 1] = 1e-39, 1e38  # a denormal
    rows, columns = 3, 16
    starts = [min(j, n - columns) for j in range(0, n, columns)]
    wide = np.stack([y[:, j : j + columns] for j in starts]).astype(np.float32)  # [panel, k, column]
    narrow = wide.astype(ml_dtypes.bfloat16).reshape(len(starts), k // 2, 2, columns).swapaxes(2, 3).copy()
    floats = x.astype(np.float32)
    floats[np.abs(floats) < np.finfo(np.float32).tiny] = 0
    turned = lambda a: np.ascontiguousarray(a[:, np.arange(k) ^ 1])  # the second of each pair first
    results = []
    for name, left, right in (("f32", turned(floats), turned(wide)), ("bf16", x, narrow)):
        inner = k if name == "f32" else k // 2
        fields = dict(
            rows=m, panels=len(starts), inner=inner, columns=n, x_row=inner, x_inner=1,
            y_panel=columns * inner, y_last=(len(starts) - 1) * columns * inner, y_inner=columns, out_row=n,
        )  # fmt: skip
        inputs = [np.array([fields[f] for f in SIZES], np.int64), left.view(np.float32), right.view(np.float32)]
        function = panel_kernel(name, rows, columns, long, sizes=(inputs[1].size, inputs[2].size, m * n))
        check_function(function)
        results.append(interpret(function, [np.ravel(a) for a in inputs])[0])
        if name == "f32" or current_target().dots_pairs:
            code = compile_function(function, subroutine=True, verify=True)
            out = np.zeros(m * n, np.float32)
            call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)(code.address)
            call(*(a.ctypes.data for a in (*inputs, out)))
            results.append(out)
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])
    want = floats.astype(np.float64) @ y.astype(np.float64)
    np.testing.assert_allclose(results[0].reshape(m, n), want, rtol=1e-4, atol=1e-4)


def test_a_kernel_of_pairs_has_a_name():
    for inner, long in ((CHAIN // 2, False), (CHAIN // 2 + 1, True)):
        name = kernel_name("bf16", 3, 16, inner)
        assert (name, kernel_of(name).name) == (f"pb_panels_bf16_3x16{'_long' * long}", name)


@pytest.mark.parametrize("turned", ["nn", "nt", "tn"])
@pytest.mark.parametrize(
    "shape", [(37, 33, 50), (130, 2048, 96), (63, 501, 62), (7, 129, 5), (6, 20, 31, 40), (2, 5, 130, 90, 128)]
)
def test_results_are_the_same_on_all_cpus_and_for_all_threads(shape, turned):
    *batch, m, k, n = shape
    x, y = bf16(*batch, m, k), bf16(*batch, k, n, seed=1)
    exact = x.astype(np.float64) @ y.astype(np.float64)
    x, y = (np.swapaxes(a, -1, -2).copy() if side == "t" else a for a, side in zip((x, y), turned))
    axes = tuple(range(len(batch)))
    contracted = tuple((len(batch) + place,) for place in (turned[0] == "n", turned[1] == "t"))
    product = lambda x, y: lax.dot_general(x, y, (contracted, (axes, axes)), preferred_element_type=np.float32)
    before, results = _core.num_threads(), []
    try:
        for cpu in cpus():
            with switches.set(cpu=cpu):
                if current_target().multiplies_tiles:
                    continue  # which adds in an order of its own: test_tiles.py
                program = pullback.jit(lambda x, y: product(x, y)).lower(x, y).compile()
                narrow = "bf16" if current_target().dots_pairs else "f32"
                assert f"call pb_panels_{narrow}_" in program.as_text("loops")
                for threads in (1, 3):
                    _core.set_num_threads(threads)
                    results.append(np.asarray(program(x, y)))
    finally:
        _core.set_num_threads(before)
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])
    np.testing.assert_allclose(results[0], exact, rtol=1e-4, atol=1e-4)


def test_infinities_and_nans_stay_in_their_rows():
    x, y = bf16(40, 33), bf16(33, 30, seed=1)
    x[3, 32], x[5, 0] = np.inf, np.nan
    got = np.asarray(pullback.jit(lambda x, y: x @ y)(x, y)).astype(np.float32)
    assert got.dtype == np.float32 and np.isinf(got[3]).all() and np.isnan(got[5]).all()
    assert np.isfinite(np.delete(got, (3, 5), 0)).all()
